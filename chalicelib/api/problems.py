"""Faults of a request, in the interface's words: every field at once, and no secret repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from chalicelib.api.body import MAX_PROBLEMS
from chalicelib.api.numbers import JsonNumber
from chalicelib.domain.errors import FieldProblem

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Catalogue

MOST_SHOWN = 100
"""Characters of a sent text that an error repeats."""
NOT_SHOWN = "(not shown)"
_SECRET_FIELDS = frozenset({"secret", "privateKey", "private_key", "rpcUrl", "rpcUrls", "wsUrl"})


def validated(model: type[Any], sent: Mapping[str, Any], catalogue: Catalogue | None) -> tuple[Any, list[FieldProblem]]:
    """`sent` as `model` (a Request), or None and everything that is wrong with it, one entry per field."""
    problems: list[FieldProblem] = []
    result = None
    try:
        result = model.model_validate(sent, context=catalogue)
    except ValidationError as error:
        problems = _collected(error, model)
    problems += model.changes_nothing(sent)
    if catalogue is not None:
        wrong = frozenset(problem.field.split(".")[0] for problem in problems)
        problems += model.cross(sent, wrong, catalogue)
    return result, problems


def _collected(error: ValidationError, model: type[BaseModel]) -> list[FieldProblem]:
    fields: dict[str, tuple[Any, list[str]]] = {}
    for line in error.errors(include_url=False):
        name = ".".join(str(part) for part in line["loc"])[:200] or "request"
        _, constraints = fields.setdefault(name, (None if line["type"] == "missing" else line["input"], []))
        if line["type"] == "extra_forbidden":
            # Nobody knows what it is: it may be a secret under a mistyped name.
            fields[name] = (NOT_SHOWN, constraints)
        constraint = _in_words(line, model)
        if constraint not in constraints:
            constraints.append(constraint)
    found = [FieldProblem(name, shown(name, value), tuple(constraints)) for name, (value, constraints) in fields.items()]
    if len(found) <= MAX_PROBLEMS:
        return found
    return [*found[:MAX_PROBLEMS], FieldProblem("request", None, (f"has {len(found) - MAX_PROBLEMS} more fields that are wrong",))]


_WORDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "constraint": "{text}",
}


def _in_words(line: ErrorDetails, model: type[Any]) -> str:
    kind, values = line["type"], line.get("ctx", {})
    if kind == "extra_forbidden":
        *places, name = line["loc"]
        return str(_model_at(model, places).unknown(str(name)))
    if kind == "literal_error":
        return "must be one of: " + str(values["expected"]).replace("'", "").replace(" or ", ", ")
    return _WORDS.get(kind, line["msg"]).format(**values) if kind in _WORDS else line["msg"]


def _model_at(model: type[Any], places: Sequence[str | int]) -> type[Any]:
    """The model of the object that lies at `places` in a body of `model`; of the one around it where there is none of that name.
    Raises LookupError for a field without fields."""
    for place in places:
        if isinstance(place, str):  # a number is a place in a list, whose model is known by the list's name
            fields = model.model_fields.items()
            model = next((_inner(field.annotation) for name, field in fields if place in (field.alias, name)), model)
    return model


def _inner(annotation: Any) -> type[Any]:
    """The model within a field's type, as deep as it lies in lists and alternatives."""
    found, rest = None, [annotation]
    while rest and found is None:
        each = rest.pop()
        found = each if isinstance(each, type) and issubclass(each, BaseModel) else None
        rest += get_args(each)
    if found is None:
        raise LookupError(f"{annotation} has no fields")
    return found


_SECRET_WORDS = ("secret", "private", "mnemonic", "seed", "wif", "password")


def shown(name: str, value: Any) -> Any:
    """A sent value in the form that an error may repeat: secrets not at all, under any misspelled name, long ones shortened."""
    first = name.partition(".")[0].partition("[")[0]
    if value is not None and (first in _SECRET_FIELDS or any(word in first.lower() for word in _SECRET_WORDS)):
        return NOT_SHOWN
    if isinstance(value, JsonNumber):
        return value if len(value.text) <= MOST_SHOWN else value.text[:MOST_SHOWN] + "…"
    if isinstance(value, str):
        return value if len(value) <= MOST_SHOWN else value[:MOST_SHOWN] + "…"
    if isinstance(value, (dict, list)):
        text = json.dumps(value, default=lambda number: number.text, ensure_ascii=False)
        return value if len(text) <= 2 * MOST_SHOWN else text[: 2 * MOST_SHOWN] + "…"
    return value
