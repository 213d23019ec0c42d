"""The HTTP interface: the edge once (`edge`), then one module per resource. Speaks HTTP, decides nothing about money."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from chalice.app import Chalice, Request, Response

VERSIONS = ("/v1", "")
"""Every endpoint answers with and without the version (decisions §1), but for pages at addresses of their own. `/api` is the
gateway's stage and in no route."""
_HANDLER = "app.app"
"""The handler of the API's function, as Chalice names it; Lambda tells each function its own in the variable `_HANDLER`.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
"""


def register(app: Chalice) -> None:
    """Put the endpoints of the route table on `app`: each when its resource is first asked for, all when `app.routes` is walked.

    The edge is loaded with the first request, which functions of schedules and queues never get. The API's function loads it while
    it starts, which may be before there is a request.
    """
    app.register_middleware(_middleware, "http")
    app.routes = _Routes(app)
    if os.environ.get("_HANDLER") == _HANDLER:
        import_module("chalicelib.api.edge")


def _middleware(request: Request, get_response: Callable[[Request], Response]) -> Response:
    from chalicelib.api import edge

    return edge.middleware(request, get_response)


class _Routes(defaultdict[str, dict[str, Any]]):
    """Chalice's table of routes by path, filled by resource. Whoever walks it (deploying, the local gateway) gets all of it."""

    def __init__(self, app: Chalice) -> None:
        super().__init__(dict)
        self._app = app
        self._lock = threading.RLock()
        self._asked: set[str | None] = set()
        self._registered = 0

    def _load(self, part: str | None) -> None:
        from chalicelib.api import edge, resources
        from chalicelib.api.routes import ROUTES

        with self._lock:
            if part in self._asked or None in self._asked:
                return
            resources.load(part)
            self._asked.add(part)
            done, self._registered = self._registered, len(ROUTES)
            for route in ROUTES[done:]:
                for prefix in VERSIONS if route.versioned else ("",):
                    # Any content type, so that Chalice never answers 415: the edge looks at it.
                    self._app.route(prefix + route.path, methods=[route.method], content_types=["*/*"])(edge.view(route))

    def __getitem__(self, path: str) -> dict[str, Any]:
        if path not in dict.keys(self):
            self._load(path.removeprefix("/v1").strip("/").partition("/")[0])
        return super().__getitem__(path)

    def __iter__(self) -> Iterator[str]:
        self._load(None)
        return super().__iter__()

    def __len__(self) -> int:
        self._load(None)
        return super().__len__()

    def __contains__(self, path: object) -> bool:
        self._load(None)
        return super().__contains__(path)

    def keys(self) -> Any:
        self._load(None)
        return super().keys()

    def items(self) -> Any:
        self._load(None)
        return super().items()

    def values(self) -> Any:
        self._load(None)
        return super().values()
