"""Lists: page, limit, order and cursor, and the pagination that answers show (decisions §7)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.api.models import Query
from chalicelib.domain.errors import InvalidParameter
from chalicelib.usecases.ports import Page

R = TypeVar("R")
Fetch = Callable[[int, "str | None", bool], Page[R]]
"""Limit, the key to go on behind, newest first → one page of the store's."""

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
DEEPEST = 10_000
"""How far `page` reaches and `total` counts; a cursor goes on for ever."""
_CHUNK = 500
_FILTER_CHUNKS = 4  # chunks that one request with filter and cursor looks through


class ListQuery(Query):
    """`perPage` is another name for `limit`. The order is that of creation, newest first."""

    page: Annotated[int, Field(ge=1, le=DEEPEST)] = 1
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT
    sort: Literal["createdAt", "created_at"] = "createdAt"
    order: Literal["asc", "desc"] = "desc"
    cursor: Annotated[str, Field(max_length=2000)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _per_page(cls, sent: Any) -> Any:
        if isinstance(sent, dict) and "perPage" in sent:
            if "limit" in sent:
                raise PydanticCustomError("constraint", "{text}", {"text": "limit and perPage are the same: send one of them"})
            return {("limit" if name == "perPage" else name): value for name, value in sent.items()}
        return sent


def listed(
    query: ListQuery, fetch: Fetch[R], position: Callable[[R], str], keep: Callable[[R], bool] | None = None
) -> tuple[list[R], dict[str, Any]]:
    """The records that the query asks for, and the pagination. `keep` filters. Raises InvalidParameter.

    `position` gives the key that a record lies at in its list. `total` counts up to 10,000 records and looks at no more.
    """
    if query.cursor is not None:
        return _behind(query, _opened(query.cursor), fetch, position, keep)
    if query.page * query.limit > DEEPEST:
        raise InvalidParameter.one("page", query.page, f"page * limit may be at most {DEEPEST}: use cursor beyond that")
    first, end = (query.page - 1) * query.limit, query.page * query.limit
    chosen: list[R] = []
    total, examined, after, size = 0, 0, None, end if keep is None else _CHUNK
    while True:
        page = fetch(min(size, DEEPEST - examined), after, query.order == "desc")
        for record in page.items:
            if keep is None or keep(record):
                if first <= total < end:
                    chosen.append(record)
                total += 1
        examined, after, size = examined + len(page.items), page.next, _CHUNK
        if after is None or examined >= DEEPEST:
            break
    more = total > end or after is not None
    pagination = {
        "page": query.page,
        "limit": query.limit,
        "total": total,
        "pages": -(-total // query.limit),
        "has_next": more,
        "has_prev": query.page > 1,
        "next_cursor": _sealed(position(chosen[-1])) if chosen and more else None,
    }
    return chosen, pagination | ({"total_capped": True} if after is not None else {})


def _behind(
    query: ListQuery, after: str | None, fetch: Fetch[R], position: Callable[[R], str], keep: Callable[[R], bool] | None
) -> tuple[list[R], dict[str, Any]]:
    """The page behind a cursor, at the same cost wherever it is. A filter looks at some records and then hands out a new cursor."""
    chosen: list[R] = []
    size = query.limit if keep is None else _CHUNK
    for _ in range(1 if keep is None else _FILTER_CHUNKS):
        page = fetch(size, after, query.order == "desc")
        after = page.next
        for place, record in enumerate(page.items):
            if keep is None or keep(record):
                chosen.append(record)
                if len(chosen) == query.limit:
                    after = position(record) if page.next is not None or place + 1 < len(page.items) else None
                    break
        if after is None or len(chosen) == query.limit:
            break
    pagination = {
        "page": None,
        "limit": query.limit,
        "total": None,
        "pages": None,
        "has_next": after is not None,
        "has_prev": True,
        "next_cursor": None if after is None else _sealed(after),
    }
    return chosen, pagination


def _sealed(position: str) -> str:
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def _opened(cursor: str) -> str:
    """The position in a cursor. It only ever leads into the caller's own list, so nothing has to be kept secret in it."""
    try:
        position = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidParameter.one("cursor", cursor[:100], "must be a next_cursor that this list gave") from None
    if not (1 <= len(position) <= 255 and position.isascii() and position.isprintable()):
        raise InvalidParameter.one("cursor", cursor[:100], "must be a next_cursor that this list gave")
    return position
