"""The routes of the API, and a path of each."""

from __future__ import annotations

import re

from chalicelib.api.routes import ROUTES, Route


def routes() -> list[Route]:
    from chalicelib.api import resources

    resources.load()
    return ROUTES


def path_of(route: Route) -> str:
    return re.sub(r"\{[^}]+\}", "x", route.address)
