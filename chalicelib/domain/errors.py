"""Errors of a request, in the interface's own codes. The HTTP edge turns these into status and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class ServiceError(Exception):
    """Base of every error that the caller may see. `details` is what the published table lists for the code."""

    code = "INTERNAL_ERROR"

    def __init__(self, message: str, details: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One wrong field: its name, the value sent (None for no value), and what is allowed."""

    field: str
    value: Any
    constraints: tuple[str, ...]


class InvalidParameter(ServiceError):
    """Malformed, missing or unknown values; all of them at once."""

    code = "INVALID_PARAMETER"

    def __init__(self, problems: Sequence[FieldProblem], message: str = "Invalid request parameters") -> None:
        super().__init__(message, [{"field": p.field, "value": p.value, "constraints": list(p.constraints)} for p in problems])
        self.problems = tuple(problems)

    @classmethod
    def one(cls, field: str, value: Any, *constraints: str) -> InvalidParameter:
        return cls([FieldProblem(field, value, constraints)])


class BusinessRule(ServiceError):
    """A well-formed request that a business rule refuses (the interface calls it VALIDATION_ERROR)."""

    code = "VALIDATION_ERROR"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason, {"field": field, "reason": reason})


class NotFound(ServiceError):
    """A record that does not exist, or is another merchant's: both look the same (money rule 9)."""

    code = "NOT_FOUND"


class InsufficientBalance(ServiceError):
    code = "INSUFFICIENT_BALANCE"


class InvalidAddress(ServiceError):
    code = "INVALID_ADDRESS"


class DailyLimitExceeded(ServiceError):
    code = "DAILY_LIMIT_EXCEEDED"
