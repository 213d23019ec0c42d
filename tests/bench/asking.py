"""Which routes of the API a step asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from chalicelib.api import resources
from chalicelib.api.routes import ROUTES
from tests.support.stack import Client


@cache
def _shapes() -> list[tuple[str, re.Pattern[str], str]]:
    """Method, pattern and template of each route; those with fewer names of their own later, so that a fixed path comes first."""
    resources.load()
    routes = sorted(ROUTES, key=lambda route: route.path.count("{"))
    return [(route.method, re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.path))), route.path) for route in routes]


def route_of(method: str, target: str) -> str:
    """As `GET /invoices/{id}`. Raises LookupError."""
    path = target.partition("?")[0].removeprefix("/v1")
    for known, shape, template in _shapes():
        if known == method and shape.fullmatch(path):
            return f"{method} {template}"
    raise LookupError(f"{method} {target} is no route")


def routes() -> set[str]:
    """All that there are."""
    return {f"{method} {template}" for method, _, template in _shapes()}


@contextmanager
def noted() -> Iterator[dict[str, None]]:
    """The routes that are asked inside, in order, but for those inside another such block."""
    found: dict[str, None] = {}
    usual = Client.call

    def call(self: Client, method: str, path: str, *args: Any, **more: Any) -> Any:
        _open[-1][route_of(method, path)] = None
        return usual(self, method, path, *args, **more)

    _open.append(found)
    try:
        with patch.object(Client, "call", call):
            yield found
    finally:
        _open.pop()


_open: list[dict[str, None]] = []
"""What is noted now, the innermost last."""


PAGE = "a page or file from the package: no call of AWS"
SANDBOX = "of simulated networks alone: what it drives has no table in the deployed service's live realm"
UNCOUNTED = {
    "GET /": PAGE,
    "GET /console": PAGE,
    "GET /portal": PAGE,
    "GET /openapi": PAGE,
    "GET /openapi/openapi.json": PAGE,
    "GET /openapi/{file}": PAGE,
    "POST /sandbox/blocks": SANDBOX,
    "POST /sandbox/clock": SANDBOX,
    "POST /sandbox/deposits": SANDBOX,
    "POST /sandbox/rates": SANDBOX,
    "POST /sandbox/reorg": SANDBOX,
    "POST /sandbox/tokens": SANDBOX,
    "POST /sandbox/withdrawals/{id}": SANDBOX,
}
"""Routes without a step, and why."""
