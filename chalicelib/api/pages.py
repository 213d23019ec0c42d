"""Pages for people: payers, payees, visitors of payment links, and those who sign in with a key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chalicelib.api.context import Ctx
from chalicelib.api.errors import STATUS, in_words
from chalicelib.domain.errors import InvalidParameter, ServiceError

if TYPE_CHECKING:
    from chalicelib.web.parts import Frame

_PAGES = ("pay", "claim", "link", "portal", "console")
_STATES = {400: "invalid", 404: "missing", 429: "tooMany", 500: "fault"}
"""The names of the messages of a page that says why no page could be made, by the answer's status."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: the route's path, the address that was called, and the languages that the reader wants."""

    path: str
    address: str
    accept_language: str


def page_root(ctx: Ctx, page: str) -> str:
    """The path that links of a page begin with: the one that it was called by, before `page` ("pay", "claim", "link", "portal",
    "console", or "" for the first page of all). Empty where that has anything else than letters of a path."""
    if page == "":  # called with a slash at its end or without
        return _root(f"{ctx.address.rstrip('/')}/", "")
    return _root(ctx.address, page)


def _root(address: str, page: str) -> str:
    match = re.fullmatch(rf"(?P<root>[A-Za-z0-9/_.-]*?)/{page}(/.*)?", address, re.ASCII | re.DOTALL)
    return match["root"] if match else ""


def frame(ctx: Ctx, page: str, shown: Mapping[str, Any] | None = None, *, testnet: bool = False) -> Frame:
    """What a page ("pay", "claim", "link") is made with: the reader's language, and the shop of its record."""
    from chalicelib.web.parts import Frame, shop_of
    from chalicelib.web.words import preferred

    return Frame(page_root(ctx, page), preferred(ctx.accept_language), testnet, shop_of(shown or {}))


def in_language(of: Frame, english: str, key: str, **values: str) -> str:
    """Why something is refused, as text. The rules speak English; who reads another language is told in general, by a message."""
    return english if of.words.lang == "en" else of.words.say(key, **values)


def is_page(path: str, media: str, form: bool) -> bool:
    """Whether a person reads the answers of a route at `path`, that `media` or a browser's `form` asks for."""
    return path.split("/")[1] in _PAGES and (form or media == "text/html")


def refusal(error: ServiceError, asked: Asked, request_id: str) -> tuple[str, dict[str, str]]:
    """The page in place of one that could not be made, and its headers."""
    from chalicelib.web import parts
    from chalicelib.web.words import preferred

    words = preferred(asked.accept_language)
    name = _STATES.get(STATUS[error.code], _STATES[400])
    told = in_words(error.details or {}) if isinstance(error, InvalidParameter) else error.message
    values = {"invalid": {"words": told}, "fault": {"id": request_id}}.get(name, {})
    of = parts.Frame(_root(asked.address, asked.path.split("/")[1]), words)
    text = parts.unknown(of, words.say(f"error.{name}.title"), words.say(f"error.{name}.text", **values))
    return text, {**parts.HEADERS, "Content-Security-Policy": parts.policy(of.shop), "Cache-Control": "no-store"}
