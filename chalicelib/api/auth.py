"""Authentication and authorisation: the key from the headers, the caller's address, level, realm and permission.

Reads headers and the gateway's context only. Keys are never logged; an answer repeats a key's first characters at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalice.app import Request

from chalicelib.api.errors import ExpiredApiKey, InsufficientPermissions, InvalidApiKey, IpNotWhitelisted, RateLimitExceeded
from chalicelib.api.routes import Route
from chalicelib.domain.errors import ServiceError
from chalicelib.domain.ids import Realm
from chalicelib.domain.merchants.merchants import ApiKey
from chalicelib.usecases.merchants.access import PREFIX_LENGTH, Admission, Asked, Gate, Usage, hash_key, may_come_from, well_formed
from chalicelib.usecases.merchants.source_limits import LookUp, SourceLimits

_SHOWN_OF_MALFORMED = 8
_KEYLESS = " without a valid API key from one address"


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


def let_in(
    request: Request, route: Route, gate: Gate, limits: SourceLimits, now_ms: int, headers: dict[str, str]
) -> tuple[ApiKey, Usage]:
    """The caller's key, with the request counted; a refused request is not counted. Puts the rate limit headers in `headers`, also
    where it refuses.

    A key that is none, is not known, revoked, expired or used from a foreign address counts as no key (`count_keyless`), and no
    more such keys of one source and minute than `limits` allows are looked up. Raises InvalidApiKey, ExpiredApiKey,
    RateLimitExceeded, IpNotWhitelisted, InsufficientPermissions, Unavailable.
    """
    client = source_ip(request)
    try:
        plain = key_of(request)
    except InvalidApiKey:
        count_keyless(client, limits, now_ms, headers)
        raise
    look_up = limits.look_up(hash_key(plain), client, now_ms)
    if look_up.exhausted is not None:
        raise _too_many(look_up.exhausted, now_ms, headers, _KEYLESS)
    realm: Realm = "test" if plain.startswith("sk_test_") else "live"
    asked = Asked(client, "admin" if route.level == "admin" else None, route.realm, route.permission)
    # Where the store does not answer, the look-up stays counted: nothing has shown the key to be valid.
    admission = gate.admit(look_up.key_hash, realm, route.rate_class, now_ms, asked)
    if admission is None:
        raise _as_keyless(InvalidApiKey("This API key is not valid", plain[:PREFIX_LENGTH]), look_up, limits, now_ms, headers)
    key = admission.key
    headers.update(usage_headers(admission.usage))
    refusal = _refusal(key, client, now_ms)
    if refusal is not None:
        raise _as_keyless(refusal, look_up, limits, now_ms, headers)
    limits.valid(look_up, now_ms)
    _check_rights(key, route)
    _demand_room(admission, now_ms, headers)
    return key, admission.usage


def charged(key: ApiKey, client: str, gate: Gate, now_ms: int, headers: dict[str, str], requests: int) -> Usage:
    """Count `requests` more of an admitted key, in its own windows, as one: the last of a window may go beyond its limit.

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
        raise _too_many(admission.exhausted, now_ms, headers)


def count_keyless(client: str, limits: SourceLimits, now_ms: int, headers: dict[str, str]) -> None:
    """Count a request without a valid key, for any route. Raises RateLimitExceeded where its source is over its limit."""
    exhausted = limits.keyless(client, now_ms)
    if exhausted is not None:
        raise _too_many(exhausted, now_ms, headers, _KEYLESS)


def _too_many(window: Usage, now_ms: int, headers: dict[str, str], which: str = "") -> RateLimitExceeded:
    """The refusal by a window, whose headers go into `headers`."""
    headers.update(usage_headers(window))
    headers["Retry-After"] = str(max(1, -(-(window.reset_at * 1000 - now_ms) // 1000)))
    return RateLimitExceeded(window, which)


def _as_keyless(refusal: ServiceError, look_up: LookUp, limits: SourceLimits, now_ms: int, headers: dict[str, str]) -> ServiceError:
    """What to raise where the store has told that a key is not valid: `refusal`, or that its source has had too many."""
    exhausted = limits.invalid(look_up, now_ms)
    return refusal if exhausted is None else _too_many(exhausted, now_ms, headers, _KEYLESS)


def _refusal(key: ApiKey, client: str, now_ms: int) -> ServiceError | None:
    """Why the key is not valid now and from there."""
    if key.revoked_at is not None:
        return InvalidApiKey("This API key was revoked", key.prefix)
    if key.expires_at is not None and key.expires_at <= now_ms:
        return ExpiredApiKey(key.expires_at)
    if key.suspended_at is not None:
        return InsufficientPermissions("The operator has suspended this merchant: its API keys are refused", "active merchant", [])
    if not may_come_from(key.ip_whitelist, client):
        return IpNotWhitelisted(client, key.ip_whitelist)
    return None


def usage_headers(usage: Usage) -> dict[str, str]:
    """The published rate limit headers of one window."""
    return {
        "X-RateLimit-Limit": str(usage.window.limit),
        "X-RateLimit-Remaining": str(usage.remaining),
        "X-RateLimit-Reset": str(usage.reset_at),
        "X-RateLimit-Window": str(usage.window.seconds),
    }


def refusal_headers(usage: Usage, now_ms: int) -> dict[str, str]:
    """The same of the window that a request found full, and when it starts anew."""
    return usage_headers(usage) | {"Retry-After": str(max(1, -(-(usage.reset_at * 1000 - now_ms) // 1000)))}


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
