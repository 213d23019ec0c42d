"""Who is calling, and may they: the key from the headers, the caller's address, level, realm and permission.

Reads headers and the gateway's context only. Keys are never logged; an answer repeats a key's first characters at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalice.app import Request

from chalicelib.api.errors import ExpiredApiKey, InsufficientPermissions, InvalidApiKey, IpNotWhitelisted, RateLimitExceeded
from chalicelib.api.routes import Route
from chalicelib.domain.ids import Realm
from chalicelib.domain.merchants import ApiKey
from chalicelib.usecases.access import PREFIX_LENGTH, Admission, Asked, Gate, Usage, hash_key, may_come_from, well_formed

_SHOWN_OF_MALFORMED = 8


def header_values(request: Request, name: str) -> list[str]:
    """Every value of a header, whatever the case of its name; repeated headers apart."""
    event = request.to_original_event()
    multi: Mapping[str, Sequence[str]] = event.get("multiValueHeaders") or {}
    values = [value for key, several in multi.items() if key.lower() == name for value in several]
    if values:
        return values
    single: Mapping[str, str] = event.get("headers") or {}
    return [value for key, value in single.items() if key.lower() == name]


def key_of(request: Request) -> str:
    """The API key that was sent: `X-Api-Key`, or `Authorization: Bearer`. Raises InvalidApiKey for none, or two different ones."""
    sent = [value.strip() for value in header_values(request, "x-api-key")]
    for value in header_values(request, "authorization"):
        scheme, _, rest = value.strip().partition(" ")
        if scheme.lower() == "bearer":
            sent.append(rest.strip())
    if not sent:
        raise InvalidApiKey("An API key is needed: send it in the header X-Api-Key", None)
    if len(set(sent)) > 1:
        raise InvalidApiKey("Two different API keys were sent", None)
    if not well_formed(sent[0]):
        raise InvalidApiKey("This is not an API key", sent[0][:_SHOWN_OF_MALFORMED])
    return sent[0]


def let_in(request: Request, route: Route, gate: Gate, now_ms: int, headers: dict[str, str]) -> tuple[ApiKey, Usage]:
    """The caller's key, counted; who is refused is not. Puts the rate limit headers in `headers`, also where it refuses.

    Raises InvalidApiKey, ExpiredApiKey, RateLimitExceeded, IpNotWhitelisted, InsufficientPermissions, Unavailable.
    """
    plain = key_of(request)
    realm: Realm = "test" if plain.startswith("sk_test_") else "live"
    client = source_ip(request)
    asked = Asked(client, "admin" if route.level == "admin" else None, route.realm, route.permission)
    admission = gate.admit(hash_key(plain), realm, route.rate_class, now_ms, asked)
    if admission is None:
        raise InvalidApiKey("This API key is not valid", plain[:PREFIX_LENGTH])
    key = admission.key
    headers.update(usage_headers(admission.usage))
    if key.revoked_at is not None:
        raise InvalidApiKey("This API key was revoked", key.prefix)
    if key.expires_at is not None and key.expires_at <= now_ms:
        raise ExpiredApiKey(key.expires_at)
    if not may_come_from(key.ip_whitelist, client):
        raise IpNotWhitelisted(client, key.ip_whitelist)
    _check_rights(key, route)
    _demand_room(admission, now_ms, headers)
    return key, admission.usage


def charged(key: ApiKey, client: str, gate: Gate, now_ms: int, headers: dict[str, str], requests: int) -> Usage:
    """Count `requests` more of a key that was let in, in its own windows, as one: the last of a window may go beyond its limit.

    Changes the rate limit headers. Raises RateLimitExceeded where a window is full, InvalidApiKey where the key is gone;
    Unavailable.
    """
    admission = gate.admit(key.hash, key.realm, "standard", now_ms, Asked(client), requests)
    if admission is None:
        raise InvalidApiKey("This API key is not valid", key.prefix)
    headers.update(usage_headers(admission.usage))
    _demand_room(admission, now_ms, headers)
    return admission.usage


def _demand_room(admission: Admission, now_ms: int, headers: dict[str, str]) -> None:
    if admission.exhausted is not None:
        headers.update(usage_headers(admission.exhausted))
        headers["Retry-After"] = str(max(1, -(-(admission.exhausted.reset_at * 1000 - now_ms) // 1000)))
        raise RateLimitExceeded(admission.exhausted)


def usage_headers(usage: Usage) -> dict[str, str]:
    """The published rate limit headers of one window."""
    return {
        "X-RateLimit-Limit": str(usage.window.limit),
        "X-RateLimit-Remaining": str(usage.remaining),
        "X-RateLimit-Reset": str(usage.reset_at),
        "X-RateLimit-Window": str(usage.window.seconds),
    }


def source_ip(request: Request) -> str:
    """The address that the gateway saw; never a header, which the caller could set."""
    return str((request.context.get("identity") or {}).get("sourceIp") or "")


def _check_rights(key: ApiKey, route: Route) -> None:
    if route.level == "admin" and key.level != "admin":
        raise InsufficientPermissions("This needs an admin key", "admin", [key.level, *key.permissions])
    if route.realm is not None and key.realm != route.realm:
        raise InsufficientPermissions(f"This is for {route.realm} keys only", f"{route.realm} key", [f"{key.realm} key"])
    if route.permission is not None and route.permission not in key.permissions:
        raise InsufficientPermissions("This API key lacks a permission", route.permission, key.permissions)
