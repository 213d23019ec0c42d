"""The OpenAPI document and the explorer page. Their parts are imported on demand."""

from __future__ import annotations

import hashlib
import re

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import NotFound

_PLACE = re.compile(r"(?P<stage>[A-Za-z0-9/_.-]*?)(?P<version>/v1)?/openapi(/.*)?", re.ASCII)
_FOR_EVER = "public, max-age=31536000, immutable"
_BRIEFLY = "no-cache"


@endpoint(
    "GET", "/openapi/openapi.json", family="object", level="public", answer="openapi.Specification",
    summary="This document: OpenAPI 3.1",
)  # fmt: skip
def get_specification(ctx: Ctx) -> Answer:
    """Generated from the code that serves requests: the route table and the models that validate."""
    from chalicelib.api.openapi import document

    stage, _ = place(ctx)
    server = (f"https://{ctx.domain}{stage}" if ctx.domain else stage) or "/"
    text = document.text(server)
    return Answer(None, text=text, headers={"ETag": _tag(text), "Cache-Control": _BRIEFLY})


@endpoint("GET", "/openapi", family="object", level="public", media="text/html", summary="The explorer page")
def get_explorer(ctx: Ctx) -> Answer:
    """With or without a slash at the end: its links begin with the address that it was called by."""
    from chalicelib.web import explorer

    stage, version = place(ctx)
    text = explorer.page(f"{stage}{version}/openapi")
    headers = {"Content-Type": explorer.PAGE_TYPE, "ETag": _tag(text), "Cache-Control": _BRIEFLY}
    return Answer(None, text=text, headers={**explorer.HEADERS, **headers})


@endpoint("GET", "/openapi/{file}", family="object", level="public", media="text/*", summary="A file of the pages")
def get_explorer_file(ctx: Ctx) -> Answer:
    """Only the names that the explorer and the checkout link to. Each has its content's hash in it: it may be kept for ever."""
    from chalicelib.web import explorer, files

    name = ctx.param("file")
    file = files.by_name(name)
    if file is None:
        raise NotFound(f"There is no file {name[:80]}", {"file": name[:80]})
    headers = {"Content-Type": file.media, "ETag": f'"{file.tag}"', "Cache-Control": _FOR_EVER}
    return Answer(None, text=file.text, headers={**explorer.HEADERS, **headers})


def place(ctx: Ctx) -> tuple[str, str]:
    """The address's part before the version (the gateway's stage, such as `/api`), and the version (`/v1` or none)."""
    match = _PLACE.fullmatch(ctx.address)
    return (match["stage"], match["version"] or "") if match else ("", "")


def _tag(text: str) -> str:
    return f'"{hashlib.sha256(text.encode()).hexdigest()}"'
