"""The version of a stored record, which the store compares before it overwrites the record; and the states that this version of
the service knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

OF_NEWER: Mapping[str, Any] = {"of_newer": True}
"""The metadata of the field of a nested value that has the members which this version does not know, by their names. They are
stored as the value's own members, as the newer version stored them."""


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


@dataclass(frozen=True, slots=True)
class Known:
    """Beside the type of a record's state that may be any text: those that this version of the service gives."""

    states: frozenset[str]


@cache
def _state_of(kind: type) -> tuple[str, frozenset[str]] | None:
    """The field with the state of such records, and the states that are known; None where they have none."""
    hints = get_type_hints(kind, include_extras=True)
    for name in ("status", "state"):
        hint = hints.get(name)
        if get_origin(hint) is Literal:
            return name, frozenset(get_args(hint))
        if get_origin(hint) is Annotated:
            return next(((name, each.states) for each in get_args(hint) if isinstance(each, Known)), None)
    return None


def newer_state(record: Any) -> str | None:
    """The state of a record that only a newer version of the service knows, None where this one knows it. Such a record is left to
    that version: nothing is paid or credited by it, it keeps its state, and its work stays open."""
    kind: Any = type(record)
    found = _state_of(kind)
    if found is None:
        return None
    state: str = getattr(record, found[0])
    return None if state in found[1] or state == getattr(record, "manual_status", None) else state
