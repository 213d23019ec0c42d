"""Errors of an endpoint, in the exact shape of its family, with one example for each code."""

from __future__ import annotations

from typing import Any

from chalicelib.api import errors as edge
from chalicelib.api.errors import STATUS, Family
from chalicelib.api.openapi.schemas import Schema, ref
from chalicelib.api.routes import Route
from chalicelib.domain.errors import (
    BusinessRule,
    DailyLimitExceeded,
    FieldProblem,
    InsufficientBalance,
    InvalidAddress,
    InvalidParameter,
    NotFound,
    ServiceError,
)
from chalicelib.usecases.merchants.access import Usage, Window

_AT = 1_777_636_800_000  # 2026-05-01T12:00:00.000Z
_REQUEST_ID = "3f0c3f3e-8a52-4a0e-9d0c-1f6a4d4b8f5e"
_PAYOUT = ("INSUFFICIENT_BALANCE", "INVALID_ADDRESS", "DAILY_LIMIT_EXCEEDED")

_EXAMPLES: dict[str, ServiceError] = {
    "INVALID_PARAMETER": InvalidParameter(
        [
            FieldProblem(
                "network", "etherium", ("must be one of: bitcoin, ethereum, tron, bsc, polygon, arbitrum, fantom, litecoin",)
            ),
            FieldProblem("amount", "-1", ("must be a plain decimal such as 12.5, without sign or exponent",)),
        ]
    ),
    "VALIDATION_ERROR": BusinessRule("status", "only a pending withdrawal can be cancelled"),
    "INSUFFICIENT_BALANCE": InsufficientBalance(
        "The balance is lower than the amount", {"requested": "2", "available": "0.5", "coin": "eth"}
    ),
    "INVALID_ADDRESS": InvalidAddress("This is no address of the network", {"address": "0x12", "network": "ethereum"}),
    "DAILY_LIMIT_EXCEEDED": DailyLimitExceeded(
        "The daily limit would be exceeded", {"limit": "10", "used": "9.5", "requested": "2", "available": "0.5"}
    ),
    "INVALID_API_KEY": edge.InvalidApiKey("This API key is not valid", "sk_test_a1B2"),
    "EXPIRED_API_KEY": edge.ExpiredApiKey(_AT),
    "INSUFFICIENT_PERMISSIONS": edge.InsufficientPermissions(
        "This API key lacks a permission", "invoices:create", ["invoices:read", "balances:read"]
    ),
    "IP_NOT_WHITELISTED": edge.IpNotWhitelisted("203.0.113.9", ["198.51.100.0/24"]),
    "NOT_FOUND": NotFound("There is nothing with this id", {"id": "inv_0"}),
    "RATE_LIMIT_EXCEEDED": edge.RateLimitExceeded(Usage(Window("minute", 60, 1000), 0, _AT // 1000 + 60)),
    "INTERNAL_ERROR": edge.INTERNAL,
}
_WORDS = {
    400: "The request is malformed, or a rule of the business says no",
    401: "No API key, or one that is unknown, revoked or expired",
    403: "The API key may not do this, or not from this address",
    404: "There is no such thing, or it is another merchant's: both look the same",
    429: "Too many requests in one of the key's windows, which do not count the refused one, or too many without a valid key",
    500: "Something went wrong on our side; the request id helps to find it",
}


def codes(route: Route) -> dict[int, tuple[str, ...]]:
    """Every code that `route` can answer, by status."""
    found = ["INTERNAL_ERROR", "RATE_LIMIT_EXCEEDED", *route.errors]
    if route.level != "public":
        found += ["INVALID_API_KEY", "EXPIRED_API_KEY", "INSUFFICIENT_PERMISSIONS", "IP_NOT_WHITELISTED"]
    if "{" in route.path:
        found.append("NOT_FOUND")
    if "{" in route.path or route.body is not None or route.query is not None or route.creates:
        found.append("INVALID_PARAMETER")
        if route.method != "GET":
            found.append("VALIDATION_ERROR")
    if route.rate_class == "withdrawals.create":
        found += _PAYOUT
    by_status: dict[int, tuple[str, ...]] = {}
    for code, status in STATUS.items():
        if code in found:
            by_status[status] = (*by_status.get(status, ()), code)
    return dict(sorted(by_status.items()))


def name_of(family: Family, status: int, several: tuple[str, ...]) -> str:
    """The name of a response in the document's components. The same codes in the same shape are one response."""
    usual = {400: ("INVALID_PARAMETER", "VALIDATION_ERROR")}.get(status, tuple(c for c, s in STATUS.items() if s == status))
    said = "" if several == usual else "_" + "_".join(code.lower() for code in several)
    if status == 400 and set(_PAYOUT) <= set(several):
        said = "_payout"
    return f"{family}_{status}{said}"


def response(family: Family, status: int, several: tuple[str, ...], headers: Schema) -> Schema:
    """One error response. The schema names the codes, so that a code which is not documented here does not fit."""
    code = {"properties": {"code": {"enum": list(several)}}}
    narrowed = code if family == "flat" else {"properties": {"error": code}}
    examples = {c: {"summary": _EXAMPLES[c].message, "value": edge.shaped(_EXAMPLES[c], family, _AT, _REQUEST_ID)} for c in several}
    return {
        "description": f"{_WORDS[status]}. Codes: {', '.join(several)}.",
        "headers": headers,
        "content": {"application/json": {"schema": {"allOf": [ref(_SHAPES[family]), narrowed]}, "examples": examples}},
    }


_SHAPES: dict[Family, str] = {"flat": "FlatError", "object": "ObjectError", "envelope": "EnvelopeError"}
_CODE: Schema = {"type": "string", "enum": list(STATUS), "description": "What is wrong, for programs."}
_FAILED: Schema = {"const": False, "description": "Whether it was done."}
_MESSAGE: Schema = {"type": "string", "description": "What is wrong, for people.", "examples": ["This API key is not valid"]}


def schemas() -> Schema:
    """The three published shapes and what they are made of."""
    return {
        "FlatError": {
            "type": "object",
            "description": "Errors of coins and invoices.",
            "properties": {
                "error": _MESSAGE,
                "code": _CODE,
                "details": {
                    "type": "string",
                    "description": "Every wrong field, in words.",
                    "examples": ["amount: must be more than zero"],
                },
            },
            "required": ["error", "code"],
            "additionalProperties": False,
        },
        "ObjectError": {
            "type": "object",
            "description": "Errors of addresses, networks, `/withdraws`, refunds, links, public pages and health.",
            "properties": {"error": ref("Error")},
            "required": ["error"],
            "additionalProperties": False,
        },
        "EnvelopeError": {
            "type": "object",
            "description": "Errors of the endpoints whose answers are envelopes.",
            "properties": {"success": _FAILED, "error": ref("Error"), "meta": ref("Meta")},
            "required": ["success", "error", "meta"],
            "additionalProperties": False,
        },
        "Error": {
            "type": "object",
            "description": "What is wrong.",
            "properties": {
                "code": _CODE,
                "message": _MESSAGE,
                "details": {
                    "description": "A list of the wrong fields with INVALID_PARAMETER, an object with every other code.",
                    "anyOf": [{"type": "array", "items": ref("FieldProblem")}, _details()],
                },
            },
            "required": ["code", "message", "details"],
            "additionalProperties": False,
        },
        "FieldProblem": {
            "type": "object",
            "description": "A field that is wrong.",
            "properties": {
                "field": {"type": "string", "description": "Its name; parts of a name with a dot between.", "examples": ["amount"]},
                "value": {
                    "description": "What was sent, shortened; null where nothing was, or where it is secret.",
                    "examples": ["-1"],
                },
                "constraints": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": "Everything that it would have to be and is not.",
                    "examples": [["is required"]],
                },
            },
            "required": ["field", "value", "constraints"],
            "additionalProperties": False,
        },
    }


def _details() -> dict[str, Any]:
    named = {code: ", ".join(error.details) for code, error in _EXAMPLES.items() if isinstance(error.details, dict)}
    return {
        "type": "object",
        "description": "By code: " + "; ".join(f"{code}: {names}" for code, names in named.items() if code != "NOT_FOUND") + ".",
    }
