"""The HTTP interface: the edge once (`edge`), then one module per resource. Speaks HTTP, decides nothing about money."""

from __future__ import annotations

from chalice.app import Chalice

VERSIONS = ("/v1", "")
"""Every endpoint answers with and without the version (decisions §1). `/api` is the gateway's stage and in no route."""


def register(app: Chalice) -> None:
    """Put every endpoint of the route table on `app`."""
    from chalicelib.api import edge, resources
    from chalicelib.api.routes import ROUTES

    resources.load()
    app.register_middleware(edge.middleware, "http")
    for route in ROUTES:
        for prefix in VERSIONS:
            # Any content type, so that Chalice never answers 415: the edge looks at it.
            app.route(prefix + route.path, methods=[route.method], content_types=["*/*"])(edge.view(route))
