"""Answers as JSON text: the envelope, and exact numbers."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.api.numbers import JsonNumber
from chalicelib.domain.times import iso

# A number that must keep its text goes through the encoder as a string that begins with this. Nobody outside knows it.
_MARK = secrets.token_hex(16)
_EXACT = re.compile(rf'"\\u0000{_MARK}([-+0-9.eE]+)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """A handler's answer. `status` None: the route's own. `text` is set where the body is written already."""

    data: Any
    pagination: Mapping[str, Any] | None = None
    status: int | None = None
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def body_text(answer: Answer, *, envelope: bool, now_ms: int, request_id: str) -> str:
    """The body of a success. `now_ms` in milliseconds since 1970."""
    if not envelope:
        return to_json(answer.data)
    meta: dict[str, Any] = {"timestamp": iso(now_ms), "request_id": request_id}
    if answer.pagination is not None:
        meta["pagination"] = answer.pagination
    return to_json({"success": True, "data": answer.data, "meta": meta})


def to_json(value: Any) -> str:
    """`value` as compact JSON. A JsonNumber is written digit for digit. Raises ValueError for NaN, TypeError for foreign types."""
    text = json.dumps(value, default=_exact, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if _MARK in text:
        text = _EXACT.sub(r"\1", text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), separators=(",", ":"))
    return text


def _exact(value: Any) -> str:
    if isinstance(value, JsonNumber):
        return f"\x00{_MARK}{value.text}"
    raise TypeError(f"{type(value).__name__} is not JSON")
