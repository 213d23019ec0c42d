"""One route of the table as one operation of the document."""

from __future__ import annotations

import inspect
import re
from typing import Any

from chalicelib.api import records
from chalicelib.api.body import FORM
from chalicelib.api.openapi import errors, parameters
from chalicelib.api.openapi.schemas import Schema, example, of_answer, ref
from chalicelib.api.openapi.words import tag_of
from chalicelib.api.routes import Route

_DONE: Schema = {"const": True, "description": "Whether it was done."}
_PAGE: Schema = {"text/html; charset=utf-8": {"schema": {"type": "string", "description": "The page, to a browser's form."}}}
_IF_KNOWN = ".where-the-key-is-known"
"""Of headers that a 401 has for a key that was revoked or has expired, and has not for one that never was."""
_KEYED = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Window")
HEADERS: Schema = {
    "X-Request-Id": ("The request's id: name it when you ask us about a request.", {"type": "string"}, True),
    "X-RateLimit-Limit": ("Requests allowed in the window with the least left.", {"type": "integer", "minimum": 1}, True),
    "X-RateLimit-Remaining": ("How many of them are left.", {"type": "integer", "minimum": 0}, True),
    "X-RateLimit-Reset": ("When the window starts anew, in seconds since 1970.", {"type": "integer", "minimum": 1}, True),
    "X-RateLimit-Window": ("The window's length in seconds.", {"type": "integer", "minimum": 1}, True),
    "Retry-After": ("After how many seconds it is worth trying again.", {"type": "integer", "minimum": 1}, True),
    "Idempotency-Replayed": ("`true` where the answer is a stored one and nothing was done.", {"const": "true"}, False),
}


def header_components() -> Schema:
    made: Schema = {
        name: {"description": words, "schema": schema, "required": required} for name, (words, schema, required) in HEADERS.items()
    }
    for name in _KEYED:
        words = f"{made[name]['description']} Absent where the key is not known."
        made[name + _IF_KNOWN] = {**made[name], "description": words, "required": False}
    return made


def _headers(*names: str) -> Schema:
    return {name.removesuffix(_IF_KNOWN): {"$ref": f"#/components/headers/{name}"} for name in names}


def answer_type(route: Route) -> Any:
    """The type of the answer of `route`, or None where the route names no existing one."""
    if route.answer is None:
        return None
    return records.find(route.answer)


def is_list(route: Route) -> bool:
    """Whether the route answers one page of a list."""
    return route.query is not None and "cursor" in route.query.model_fields and route.envelope


def operation(route: Route, schemas: Schema, responses: Schema, taken: set[str]) -> Schema:
    """The operation of `route`. Puts the error responses that it needs into `responses`, its operationId into `taken`."""
    made: Schema = {
        "operationId": _operation_id(route, taken),
        "tags": [tag_of(route.path)],
        "summary": route.summary,
        "description": _description(route),
        "security": [] if route.level == "public" else [{"apiKey": []}, {"bearer": []}],
    }
    if found := parameters.of_route(route):
        made["parameters"] = found
    if route.body is not None:
        schema = ref(route.body.__name__)
        made["requestBody"] = {
            "required": bool({"required", "minProperties"} & schemas[route.body.__name__].keys()),
            "content": {"application/json": {"schema": schema, "example": example(schema, schemas)}},
        }
        if route.form:
            made["requestBody"]["content"][FORM] = {"schema": schema}
    made["responses"] = {str(route.status): _success(route, schemas), **_failures(route, responses, schemas)}
    if route.redirects:
        words = "To a browser's form: the page to go on with is in `Location`"
        made["responses"]["303"] = {"description": words, "headers": _headers("X-Request-Id"), "content": _PAGE}
    made["x-level"] = route.level
    if route.level != "public":
        made |= {"x-permission": route.permission, "x-rate-class": route.rate_class, "x-realm": route.realm or "both"}
    return made


def _operation_id(route: Route, taken: set[str]) -> str:
    first, *rest = route.handler.__name__.split("_")
    name = first + "".join(part.capitalize() for part in rest)
    if name in taken:
        name += "At" + "".join(part.capitalize() for part in re.findall(r"\w+", route.path))
    taken.add(name)
    return name


def _description(route: Route) -> str:
    words = inspect.getdoc(route.handler) or ""
    if route.level == "public":
        return f"{words}\n\nNeeds no key.".strip()
    needs = ["an admin key" if route.level == "admin" else "a key"]
    if route.realm is not None:
        needs[0] = f"{needs[0]} of the {'sandbox' if route.realm == 'test' else 'live'} kind (`sk_{route.realm}_…`)"
    if route.permission is not None:
        needs.append(f"the permission `{route.permission}`")
    return f"{words}\n\nNeeds {' with '.join(needs)}. Rate class: {route.rate_class}.".strip()


def _success(route: Route, schemas: Schema) -> Schema:
    found = answer_type(route)
    data: Schema = {} if found is None else of_answer(found)
    if route.envelope:
        if is_list(route) and found is not None and data.get("type") != "array":
            data = {"type": "array", "items": data}
        data = {
            "type": "object",
            "properties": {"success": _DONE, "data": data, "meta": ref("ListMeta" if is_list(route) else "Meta")},
            "required": ["success", "data", "meta"],
            "additionalProperties": False,
        }
    shown = example(data, schemas)
    if route.shows:
        (shown["data"] if route.envelope else shown).update(route.shows)
    names = ["X-Request-Id", *(_KEYED if route.level != "public" else ()), *(("Idempotency-Replayed",) if route.creates else ())]
    return {
        "description": "Created" if route.status == 201 else "OK",
        "headers": _headers(*names),
        "content": {"application/json": {"schema": data, "example": shown}, **(_PAGE if route.form else {})},
    }


def _failures(route: Route, responses: Schema, schemas: Schema) -> Schema:
    found: Schema = {}
    for status, several in errors.codes(route).items():
        name = errors.name_of(route.family, status, several) + ("_without_a_key" if route.level == "public" else "")
        name += "_or_page" if route.form else ""
        if name not in responses:
            keyed: tuple[str, ...] = () if status == 500 or (route.level == "public" and status != 429) else _KEYED
            if status == 401:
                keyed = tuple(name + _IF_KNOWN for name in keyed)
            names = ("X-Request-Id", *keyed, *(("Retry-After",) if status == 429 else ()))
            responses[name] = errors.response(route.family, status, several, _headers(*names))
            responses[name]["content"] |= _PAGE if route.form else {}
        found[str(status)] = {"$ref": f"#/components/responses/{name}"}
    if route.failure is not None:
        found["500"] = _failing(responses[found["500"]["$ref"].rsplit("/", 1)[1]], records.find(route.failure), schemas)
    return found


def _failing(usual: Schema, record: Any, schemas: Schema) -> Schema:
    """The response 500 of an endpoint that answers with a record of its own where it knows what failed."""
    known, media = of_answer(record), usual["content"]["application/json"]
    examples = {"known": {"summary": inspect.getdoc(record), "value": example(known, schemas)}, **media["examples"]}
    content = {"application/json": {"schema": {"anyOf": [known, media["schema"]]}, "examples": examples}}
    return {**usual, "content": content}
