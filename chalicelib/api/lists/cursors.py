"""Cursors: the end of a list's page, as text for a URL."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of a page: the list continues behind `position`; `value` is the sort value there, where the list is not sorted by
    time."""

    sort: str
    order: str
    position: str
    value: Any = None


def sealed(name: str, cursor: Cursor) -> str:
    """`cursor` of the list called `name`, as text. It only ever leads into the caller's own list: it holds no secret."""
    parts = [name, cursor.sort, cursor.order, cursor.position, cursor.value]
    return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def opened(name: str, sent: str) -> Cursor:
    """The cursor in a text that `sealed` gave for the same list. Raises InvalidParameter."""
    try:
        parts = json.loads(base64.b64decode(sent + "=" * (-len(sent) % 4), altchars=b"-_", validate=True))
        of, sort, order, position, value, *_ = parts  # a newer version of the service may add some
        texts = (of, sort, order, position)
        if of != name or not all(isinstance(text, str) and text.isascii() and text.isprintable() for text in texts):
            raise ValueError
        if not 1 <= len(position) <= 255 or not isinstance(value, str | int | bool | None) or order not in ("asc", "desc"):
            raise ValueError
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise InvalidParameter.one("cursor", sent[:100], "must be a next_cursor that this list gave") from None
    return Cursor(sort, order, position, value)
