"""Pages for people: payers, payees, visitors of payment links, and those who sign in with a key."""

from __future__ import annotations

import re

from chalicelib.api.context import Ctx
from chalicelib.api.errors import STATUS, in_words
from chalicelib.domain.errors import InvalidParameter, ServiceError

_PAGES = ("pay", "claim", "link", "portal", "console")
_STATES = {
    400: ("That was not understood", "{words}. Go back, and try again."),
    404: ("There is nothing here", "Look at the link again, or ask who sent it to you for a new one."),
    429: ("Too many requests", "Too many came from where you are. Wait a minute, and load this page again."),
    500: (
        "Something went wrong on our side",
        "Wait a minute, and load this page again. If that does not help, tell us this number: {id}",
    ),
}
"""What a page says where no page can be made: the title, and what to do."""


def page_root(ctx: Ctx, page: str) -> str:
    """The path that links of a page begin with: the one that it was called by, before `page` ("pay", "claim", "link", "portal",
    "console", or "" for the first page of all). Empty where that has anything else than letters of a path."""
    return _root(ctx.address, page)


def _root(address: str, page: str) -> str:
    match = re.fullmatch(rf"(?P<root>[A-Za-z0-9/_.-]*?)/{page}(/.*)?", address, re.ASCII | re.DOTALL)
    return match["root"] if match else ""


def is_page(path: str, media: str, form: bool) -> bool:
    """Whether a person reads the answers of a route at `path`, that `media` or a browser's `form` asks for."""
    return path.split("/")[1] in _PAGES and (form or media == "text/html")


def refusal(error: ServiceError, path: str, address: str, request_id: str) -> tuple[str, dict[str, str]]:
    """The page in place of one that could not be made, and its headers. `path` is the route's, `address` what was called."""
    from chalicelib.web import parts

    title, words = _STATES.get(STATUS[error.code], _STATES[400])
    told = in_words(error.details or {}) if isinstance(error, InvalidParameter) else error.message
    text = parts.unknown(_root(address, path.split("/")[1]), title, words.format(words=told, id=request_id))
    return text, {**parts.HEADERS, "Content-Security-Policy": parts.NO_FORMS, "Cache-Control": "no-store"}
