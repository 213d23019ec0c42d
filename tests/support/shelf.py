"""A store that is read, and that keeps what is committed apart: for guards of one signature, without a transaction's conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.ids import Realm
from chalicelib.usecases.ports.changes import Change


class Shelf:
    """Has `records`, each found by whatever fields it is asked for."""

    def __init__(self, *records: object, realm: Realm = "live") -> None:
        self.commits: list[list[Change]] = []
        self._catalogue = Catalogue(realm, default_networks(realm), default_coins(realm))
        self.put(*records)

    def put(self, *records: object) -> None:
        """Have these, and no others."""
        self._records, self._found = records, dict[tuple[Any, ...], Any]()

    def get(self, record: type, /, **key: str) -> Any:
        wanted = (record, *key.items())
        if wanted not in self._found:
            self._found[wanted] = next((each for each in self._records if type(each) is record and _has(each, key)), None)
        return self._found[wanted]

    def get_many(self, wanted: Sequence[tuple[type, Mapping[str, str]]], /) -> list[Any]:
        return [self.get(record, **key) for record, key in wanted]

    def commit(self, changes: Sequence[Change], /) -> None:
        self.commits.append(list(changes))

    def catalogue(self, realm: Realm, fresh: bool = False) -> Catalogue:
        return self._catalogue


def _has(record: object, key: Mapping[str, str]) -> bool:
    return all(getattr(record, name) == value for name, value in key.items())
