"""The pages for people with an API key, and the page at the API's own address. Their files are served with the explorer's."""

from __future__ import annotations

import hashlib

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.pages import page_root
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import NotFound


@endpoint(
    "GET", "/portal", family="object", level="public", media="text/html", versioned=False, summary="The merchant's portal"
)  # fmt: skip
def get_portal(ctx: Ctx) -> Answer:
    """An empty shell: what it shows it asks the API for, with the key that was typed."""
    from chalicelib.web import shell

    return _shown(shell.page(page_root(ctx, "portal"), "portal"))


@endpoint(
    "GET", "/console", family="object", level="public", media="text/html", versioned=False, summary="The operator's console"
)  # fmt: skip
def get_console(ctx: Ctx) -> Answer:
    """As the portal, for admin keys. Where the setting CONSOLE is off there is no such page."""
    from chalicelib.web import shell

    if not ctx.services.settings.console:
        raise NotFound("There is no console here", {"path": "/console"})
    return _shown(shell.page(page_root(ctx, "console"), "console"))


@endpoint("GET", "/", family="object", level="public", media="text/html", versioned=False, summary="The way to the portal")
def get_door(ctx: Ctx) -> Answer:
    """A browser reads a page. Other clients read what they read at any path where nothing is."""
    from chalicelib.web import shell

    if "text/html" not in ctx.accepts:
        raise NotFound("There is nothing at this path", {"path": "/"})
    return _shown(shell.door(page_root(ctx, "")))


def _shown(text: str) -> Answer:
    from chalicelib.web import shell

    tag = hashlib.sha256(text.encode()).hexdigest()
    return Answer(None, text=text, headers={**shell.HEADERS, "ETag": f'"{tag}"', "Cache-Control": "no-cache"})
