"""Errors as HTTP: status by code, and the three published shapes. An error outside the table is a 500 without details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chalicelib.domain.errors import BusinessRule, ServiceError
from chalicelib.domain.times import iso
from chalicelib.usecases.merchants.access import Usage

Family = Literal["flat", "object", "envelope"]

STATUS: Mapping[str, int] = {
    "INVALID_PARAMETER": 400,
    "VALIDATION_ERROR": 400,
    "INSUFFICIENT_BALANCE": 400,
    "INVALID_ADDRESS": 400,
    "DAILY_LIMIT_EXCEEDED": 400,
    "INVALID_API_KEY": 401,
    "EXPIRED_API_KEY": 401,
    "INSUFFICIENT_PERMISSIONS": 403,
    "IP_NOT_WHITELISTED": 403,
    "NOT_FOUND": 404,
    "RATE_LIMIT_EXCEEDED": 429,
    "INTERNAL_ERROR": 500,
}


class InvalidApiKey(ServiceError):
    """No key, no such key, a revoked one, or two different ones. `prefix` is the part of it that may be shown."""

    code = "INVALID_API_KEY"

    def __init__(self, message: str, prefix: str | None) -> None:
        super().__init__(message, {"key_prefix": prefix})


class ExpiredApiKey(ServiceError):
    code = "EXPIRED_API_KEY"

    def __init__(self, expires_at: int) -> None:
        super().__init__("This API key has expired", {"expired_at": iso(expires_at)})


class InsufficientPermissions(ServiceError):
    code = "INSUFFICIENT_PERMISSIONS"

    def __init__(self, message: str, required: str, available: Sequence[str]) -> None:
        super().__init__(message, {"required": required, "available": list(available)})


class IpNotWhitelisted(ServiceError):
    code = "IP_NOT_WHITELISTED"

    def __init__(self, client_ip: str, whitelisted: Sequence[str]) -> None:
        super().__init__(
            "This API key may not be used from this address", {"client_ip": client_ip, "whitelisted_ips": list(whitelisted)}
        )


class RateLimitExceeded(ServiceError):
    code = "RATE_LIMIT_EXCEEDED"

    def __init__(self, usage: Usage, which: str = "") -> None:
        """`which` requests the window is for, such as " without a valid API key"; empty: those of the key."""
        details = {"limit": usage.window.limit, "window": usage.window.seconds, "reset_at": iso(usage.reset_at * 1000)}
        super().__init__(f"At most {usage.window.limit} requests{which} in {usage.window.seconds} seconds", details)
        self.usage = usage


_VERBS = frozenset({"is", "was", "has", "must", "may", "needs", "failed", "brought"})
"""What the reasons of rules begin with that have their field for a subject."""
INTERNAL = ServiceError("Something went wrong on our side. The request id helps us to find it.")

TOO_NEW = ServiceError("A newer version of the service stored this and is being deployed: send the request again in two minutes")
"""Where a record has a form or a state that this version does not know (`usecases.ports.failures.TooNew`)."""
TOO_NEW_SECONDS = 120
"""After so long it is worth trying again: a deploy replaces all functions within minutes."""


def shaped(error: ServiceError, family: Family, now_ms: int, request_id: str) -> dict[str, Any]:
    """The body of the answer to `error`. `now_ms` in milliseconds since 1970."""
    if family == "flat":
        flat = {"error": said(error), "code": error.code}
        return flat | ({"details": in_words(error.details)} if error.details else {})
    inner = {"code": error.code, "message": said(error), "details": {} if error.details is None else error.details}
    if family == "object":
        return {"error": inner}
    return {"success": False, "error": inner, "meta": {"timestamp": iso(now_ms), "request_id": request_id}}


def said(error: ServiceError) -> str:
    """The message as a sentence: the reason of a rule that begins with its verb gets its field in front."""
    if isinstance(error, BusinessRule) and isinstance(error.details, Mapping) and error.message.partition(" ")[0] in _VERBS:
        return f"{error.details['field']} {error.message}"
    return error.message


def in_words(details: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """Details as one line of text, every field named: "currency: is required; amount: must be more than zero"."""
    if isinstance(details, Mapping):
        return "; ".join(f"{name}: {_listed(value)}" for name, value in details.items())
    return "; ".join(f"{problem['field']}: {_listed(problem['constraints'])}" for problem in details)


def _listed(value: Any) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
