"""The version of a stored record, which the store compares before it overwrites the record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar


class Versioned(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def version(self) -> int: ...


Record = TypeVar("Record", bound=Versioned)


def next_version(record: Record) -> Record:
    """The record as its next version, with nothing changed yet: `replace(next_version(record), ...)` changes it, and type checkers
    compare what is changed with the record's fields."""
    return replace(record, version=version_after(record))


def version_after(before: Versioned | None) -> int:
    """The version of a record that is stored over `before`; 1 where nothing is stored yet."""
    return 1 if before is None else before.version + 1
