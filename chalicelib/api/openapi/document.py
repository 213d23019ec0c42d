"""The OpenAPI 3.1 document of the whole route table. Made at the first request for it, and once per process.

The same code gives the same document to the byte: everything comes in the order of the modules, or sorted.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from chalicelib.api import records
from chalicelib.api.openapi import errors, webhooks, words
from chalicelib.api.openapi.operations import answer_type, header_components, operation
from chalicelib.api.openapi.parameters import IDEMPOTENCY_KEY
from chalicelib.api.openapi.schemas import Schema, components, model_of
from chalicelib.api.records.base import ListMeta, Meta
from chalicelib.api.routes import ROUTES, Route


def documented() -> list[Route]:
    """The routes in the document: all that answer JSON. The others are the explorer's own page and files."""
    # By module: the table's own order is that of imports, and may begin with whichever module somebody imported first.
    return sorted((route for route in ROUTES if route.media == "application/json"), key=lambda route: route.handler.__module__)


@lru_cache(maxsize=8)
def text(server: str) -> str:
    """The document as JSON, for an interface that lies at `server`: its address without the version."""
    return json.dumps({**_document(), "servers": [{"url": server}]}, ensure_ascii=False, separators=(",", ":"))


def document(server: str = "/api") -> dict[str, Any]:
    """The document as a Python value."""
    parsed: dict[str, Any] = json.loads(text(server))
    return parsed


@lru_cache(maxsize=1)
def _document() -> Schema:
    from chalicelib.api import resources

    resources.load()
    routes = documented()
    schemas = {**components(_models(routes)), **errors.schemas()}
    responses: Schema = {}
    paths: dict[str, Schema] = {}
    taken: set[str] = set()
    for route in routes:
        made = operation(route, schemas, responses, taken)
        paths.setdefault("/v1" + route.path, {})[route.method.lower()] = made
    used = {tag for path in paths.values() for made in path.values() for tag in made["tags"]}
    told = webhooks.webhooks(schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": words.TITLE,
            "version": words.VERSION,
            "description": words.DESCRIPTION,
            "license": {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
        },
        "servers": [],
        "tags": words.tags(used),
        "paths": paths,
        "webhooks": told,
        "components": {
            "securitySchemes": {
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "`sk_live_…` or `sk_test_…`"},
                "bearer": {"type": "http", "scheme": "bearer", "description": "The same key as `Authorization: Bearer`."},
            },
            "parameters": {"IdempotencyKey": IDEMPOTENCY_KEY},
            "headers": header_components(),
            "responses": dict(sorted(responses.items())),
            "schemas": dict(sorted(schemas.items())),
        },
    }


def _models(routes: list[Route]) -> list[type[BaseModel]]:
    """Every model of the document, each once: bodies, records, what events carry."""
    found: list[type[BaseModel]] = [Meta, ListMeta, *webhooks.models()]
    for route in routes:
        if route.body is not None:
            found.append(route.body)
        answer = answer_type(route)
        if answer is not None:
            found.append(model_of(answer))
        if route.failure is not None:
            found.append(model_of(records.find(route.failure)))
    return list(dict.fromkeys(found))
