"""The models of pynamodb, made once for each table and copied afterwards: 35 of them take 12 ms, at each start of the service.

A model belongs to the connection of its `Models`. A copy has all of the first one but the connection, which it gets as any new one.
"""

from __future__ import annotations

from typing import Any

from chalicelib.store.models import Models, Record
from chalicelib.store.schema import where_is

_DONE = "_gateway_copied"


def repair_models() -> None:
    """Copy the model of a record where one of its table was made before. May be called any number of times."""
    models: Any = Models
    if getattr(models, _DONE, False):
        return
    setattr(models, _DONE, True)
    build = models._build
    first: dict[Any, type[Record]] = {}

    def built(self: Any, kind: type) -> Any:
        where = where_is(kind)
        key = (kind, self.table(where.table), self.connection.region, bool(where.understands))
        known = first.get(key)
        if known is None:
            found: type[Record] = build(self, kind)
            first[key] = found
            return found
        return self._share(_twin(known))

    models._build = built


def _twin(model: type[Record]) -> type[Record]:
    """A class below `model` that inherits its attributes. The metaclass does not look for them again: that takes the time."""
    twin: type[Record] = type.__new__(type(model), model.__name__, (model,), {"Meta": model.Meta, "_connection": None})
    return twin
