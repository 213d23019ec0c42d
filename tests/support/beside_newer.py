"""Records of which only a newer version understands some, for use cases that read many of them: a store of records by key, and
records with little in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import MagicMock

from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.ids import TenantId
from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.failures import TooNew

RESTING = "resting"
"""The state of a newer version."""


def a(kind: type[Any], state: str = RESTING, **fields: Any) -> Any:
    """A record of `kind` in this state, with `fields`, and what else it has by default."""
    record = object.__new__(kind)
    for field in dataclasses.fields(kind):
        default = None if field.default is dataclasses.MISSING else field.default
        object.__setattr__(record, field.name, fields.get(field.name, default))
    for name in ("state", "status"):
        if name in {field.name for field in dataclasses.fields(kind)} and name not in fields:
            object.__setattr__(record, name, state)
    if "id" not in fields and "id" in {field.name for field in dataclasses.fields(kind)}:
        object.__setattr__(record, "id", "the_1")
    return record


Key = tuple[type[Any], tuple[tuple[str, str], ...]]


class BesideNewer:
    """As `Store`, as far as reads of many records need it. A key that nobody put is left out: there is no such record."""

    def __init__(self) -> None:
        self._found: dict[Key, Any] = {}
        self._works: list[Work] = []
        self.commits: list[Sequence[Change]] = []

    def put(self, kind: type[Any], record: Any = None, /, **key: str) -> None:
        """`record` None: there is one in a form that only a newer version knows."""
        self._found[self._key(kind, key)] = record or TooNew(f"the {kind.__name__} has the form 1")

    def work(self, *works: Work) -> None:
        self._works = sorted({*self._works, *works}, key=lambda work: (work.order, work.id))

    def get(self, kind: type[Any], /, **key: str) -> Any:
        found = self._found.get(self._key(kind, key))
        if isinstance(found, TooNew):
            raise found
        return found

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        return [self.get(kind, **key) for kind, key in wanted]

    def open_work(
        self, kind: str, lane: str, *, upto: str | None = None, after: Work | None = None, limit: int = 100
    ) -> list[Work]:
        there = [work for work in self._works if (work.kind, work.lane) == (kind, lane)]
        there = [work for work in there if after is None or (work.order, work.id) > (after.order, after.id)]
        return [work for work in there if upto is None or work.order <= upto][:limit]

    def commit(self, changes: Sequence[Change], /) -> None:
        self.commits.append(changes)

    @staticmethod
    def _key(kind: type[Any], key: Mapping[str, str]) -> Key:
        return kind, tuple(sorted(key.items()))


NET = default_networks("test")[0]
NETWORK, TENANT = NET.id, TenantId("mch_1:test")
NOW = 1_800_000_000_000
ALL = ("one", "newer", "two")
"""The ids of records, of which one has a form of the newer version."""


def case(kind: type[Any], store: BesideNewer, **parts: Any) -> Any:
    """A use case on this store, with stand-ins for what else it has."""
    made, around = object.__new__(kind), MagicMock()
    around.clock.now_ms.return_value = NOW
    parted = "parts sent followed following attempts kind queues clock context finality booking shown"
    for name in parted.split():
        setattr(made, f"_{name}", getattr(around, name))
    made._store, made._network = store, NET
    for name, part in parts.items():
        setattr(made, f"_{name}", part)
    return made


def with_works(kind: WorkKind, prefix: str = "", order: str = "") -> BesideNewer:
    store = BesideNewer()
    store.work(*works(kind, prefix, order))
    return store


def works(kind: WorkKind, prefix: str = "", order: str = "") -> list[Work]:
    return [Work(kind, NETWORK, order or str(place), f"{prefix}{id}") for place, id in enumerate(ALL)]


def put(store: BesideNewer, kind: type[Any], state: str, key: Callable[[str], dict[str, str]], **fields: Any) -> None:
    for id in ALL:
        store.put(kind, None if id == "newer" else a(kind, state, id=id, **fields), **key(id))


def payout_key(id: str) -> dict[str, str]:
    return {"tenant": TENANT, "id": id}


def move_key(id: str) -> dict[str, str]:
    return {"network": NETWORK, "id": id}
