"""Answer models, one module per resource, for the OpenAPI document and for the tests that check answers against it.

Serving a request never imports these: a use case's own view makes the record, and these say what it has. A route names its
record in the route table (`answer="invoices.Invoice"`, `"list[coins.Coin]"`); `find` looks it up.
"""

from __future__ import annotations

import re
from importlib import import_module
from types import GenericAlias
from typing import Any

_NAME = re.compile(r"(list\[)?(\w+)\.(\w+)(?(1)\])", re.ASCII)


def find(answer: str) -> Any:
    """The type that a route's `answer` names: a model, or a list of one. Raises LookupError for a name that is none."""
    match = _NAME.fullmatch(answer)
    if match is None:
        raise LookupError(f"{answer!r} names no record: write module.Class or list[module.Class]")
    several, module, name = match.groups()
    try:
        model = getattr(import_module(f"{__name__}.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"there is no record {module}.{name}") from error
    return GenericAlias(list, (model,)) if several else model
