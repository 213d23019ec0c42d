"""Holds answers against the OpenAPI document: status, content type, headers and body have to be what it says.

Every request that tests make through `tests.support.stack.Client` comes through here, so a test of anything is also a test of
the document. Where an answer is right and the document is not: fields and their types are in `chalicelib/api/records`, error codes
beyond the usual ones are named where the route is (`errors=` of `@endpoint`).

Validators are compiled once per endpoint and status (jsonschema_rs: some 20 µs an answer).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

_EXPECTED = re.compile(r"^#/components/(\w+)/(.+)$")
_REFERENCE = re.compile(r'"#/components/schemas/([^"/]+)')


class Undocumented(AssertionError):
    """An answer that the document does not know of."""


def assert_documented(status: int, headers: Mapping[str, str], body: Any, method: str, target: str) -> None:
    """Raise Undocumented where an answer is not as documented. `target` is what follows `/api`, raw; `headers` by lower-case name.

    Paths and methods that are not in the document are nobody's promise: nothing is checked there.
    """
    template = _template(target.partition("?")[0])
    operation = None if template is None else _document()["paths"][template].get(method.lower())
    if template is None or operation is None:
        return
    where = f"{method} {template} answered {status}"
    if str(status) not in operation["responses"]:
        raise Undocumented(f"{where}, which is not documented; it may answer {', '.join(operation['responses'])}. Body: {body}")
    response = _resolved(operation["responses"][str(status)])
    media = headers.get("content-type", "")
    if media not in response["content"]:
        raise Undocumented(f"{where} as {media!r}")
    for name, reference in response.get("headers", {}).items():
        header = _resolved(reference)
        value = headers.get(name.lower())
        if value is None and header.get("required"):
            raise Undocumented(f"{where} without the header {name}")
        if value is not None and not _header_fits(header["schema"], value):
            raise Undocumented(f"{where} with {name}: {value}")
    if media != "application/json":
        return  # a page
    error = next(_validator(template, method.lower(), status).iter_errors(body), None)
    if error is not None:
        place = "/".join(str(part) for part in error.instance_path)
        raise Undocumented(f"{where}; at {place or 'the top'}: {error.message[:600]}")


def _header_fits(schema: Mapping[str, Any], value: str) -> bool:
    if schema.get("type") == "integer":
        return value.isdecimal() and int(value) >= schema.get("minimum", 0)
    return value == schema.get("const", value)


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    from chalicelib.api.openapi import document

    return document.document()


@lru_cache(maxsize=1)
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """Fixed parts before variable ones, as the gateway prefers them."""
    paths = sorted(_document()["paths"], key=lambda path: [part.startswith("{") for part in path.split("/")])
    return [(re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)), re.DOTALL), path) for path in paths]


@lru_cache(maxsize=4096)
def _template(path: str) -> str | None:
    plain = "/".join(unquote(part).replace("/", "%2F") for part in path.removesuffix("/").split("/"))
    versioned = plain if plain.startswith("/v1/") else "/v1" + plain
    return next((template for pattern, template in _templates() if pattern.fullmatch(versioned)), None)


@cache
def _validator(template: str, method: str, status: int) -> Any:
    response = _resolved(_document()["paths"][template][method]["responses"][str(status)])
    return validator_of(response["content"]["application/json"]["schema"], _document()["components"]["schemas"])


def validator_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """What tells whether a value fits `schema`. It is made with those of the document's `schemas` alone that it refers to: with all
    of them, each validator takes fifty times as long to make, a minute for all endpoints together."""
    needed: dict[str, Any] = {}
    left = [schema]
    while left:
        for name in _REFERENCE.findall(json.dumps(left.pop())):
            if name not in needed:
                needed[name] = schemas[name]
                left.append(schemas[name])
    return jsonschema_rs.Draft202012Validator({**schema, "components": {"schemas": needed}})


def _resolved(item: Any) -> Any:
    """What a reference into the components means, or the thing itself."""
    match = _EXPECTED.match(item.get("$ref", ""))
    return item if match is None else _document()["components"][match[1]][match[2]]
