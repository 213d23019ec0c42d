"""Values of dataclass fields to and from DynamoDB attributes.

Text, bytes, integers and booleans are attributes of their own, so that conditions and filters can name them; everything nested
is one JSON text. Integers are exact to 38 digits (what a DynamoDB number keeps), and in JSON without limit.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import threading
import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from pynamodb.attributes import Attribute, BinaryAttribute, BooleanAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.constants import NUMBER, STRING

from chalicelib.domain.money import MAX_DIGITS, UNBOUNDED
from chalicelib.domain.versions import OF_NEWER

_HINTS: dict[Any, dict[str, Any]] = {}


class _Read(threading.local):
    newer = False


_READ = _Read()


def hints(kind: Any) -> dict[str, Any]:
    """Resolved types of a dataclass's fields, in order; resolved once."""
    if kind not in _HINTS:
        resolved = get_type_hints(kind, include_extras=True)
        _HINTS[kind] = {f.name: resolved[f.name] for f in dataclasses.fields(kind)}
    return _HINTS[kind]


@cache
def bare(hint: Any) -> tuple[Any, bool]:
    """The type behind NewType and Optional, and whether None is allowed."""
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        rest = [a for a in get_args(hint) if a is not type(None)]
        optional = len(rest) < len(get_args(hint))
        hint = rest[0] if len(rest) == 1 else rest
    while isinstance(hint, NewType) or get_origin(hint) is Annotated:
        hint = hint.__supertype__ if isinstance(hint, NewType) else get_args(hint)[0]
    return hint, optional


@cache
def _members(kind: Any) -> tuple[tuple[str, ...], str | None]:
    """The names of a dataclass's stored members, and its field for those of a newer version, None where it has none."""
    fields = dataclasses.fields(kind)
    newer = next((f.name for f in fields if f.metadata == OF_NEWER), None)
    return tuple(f.name for f in fields if f.name != newer), newer


def plain(value: Any) -> Any:
    """`value` in JSON types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names, newer = _members(type(value))
        known = {name: plain(getattr(value, name)) for name in names}
        return known if newer is None else {**plain(getattr(value, newer)), **known}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def shaped(hint: Any, value: Any) -> Any:
    """The opposite of `plain`: `value` as the type `hint` says."""
    hint, _ = bare(hint)
    if value is None:
        return None
    origin = get_origin(hint)
    if dataclasses.is_dataclass(hint):
        known = {name: shaped(h, value[name]) for name, h in hints(hint).items() if name in value}
        if len(known) < len(value):
            kind: Any = hint
            newer = _members(kind)[1]
            if newer is None:
                _READ.newer = True
            else:
                known[newer] = {name: member for name, member in value.items() if name not in known}
        return hint(**known)  # type: ignore[operator]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if origin is tuple:
        return tuple(shaped(get_args(hint)[0], item) for item in value)
    if origin is list:
        return [shaped(get_args(hint)[0], item) for item in value]
    return value


def take_newer() -> bool:
    """Whether this thread has read, since it was asked last, nested values with members that this version does not know."""
    newer, _READ.newer = _READ.newer, False
    return newer


class NestedAttribute(Attribute[Any]):
    """A nested value, as one JSON text; read back as the field's type."""

    attr_type = STRING

    def __init__(self, hint: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hint = hint

    def serialize(self, value: Any) -> str:
        return json.dumps(plain(value), separators=(",", ":"))

    def deserialize(self, value: str) -> Any:
        return shaped(self.hint, json.loads(value))


class UnitsAttribute(NumberAttribute):
    """An integer without a bound: text where a DynamoDB number could not keep all its digits (`Record` writes it so)."""

    def get_value(self, value: dict[str, Any]) -> Any:
        return value[STRING] if STRING in value else super().get_value(value)

    @staticmethod
    def typed(value: dict[str, Any]) -> dict[str, Any]:
        """The number as pynamodb would send it, as text where it is too long for a number."""
        digits = value.get(NUMBER, "")
        return {STRING: digits} if len(digits.lstrip("-")) > MAX_DIGITS else value


def attribute_for(name: str, hint: Any) -> Attribute[Any]:
    """The pynamodb attribute that keeps a field of type `hint`."""
    kind, optional = bare(hint)
    if UNBOUNDED in getattr(hint, "__metadata__", ()):
        return UnitsAttribute(attr_name=name, null=optional)
    if kind is str or get_origin(kind) is Literal:
        return UnicodeAttribute(attr_name=name, null=optional)
    if kind is bool:
        return BooleanAttribute(attr_name=name, null=optional)
    if kind is bytes:
        return BinaryAttribute(legacy_encoding=False, attr_name=name, null=optional)
    if kind in (int, float):
        return NumberAttribute(attr_name=name, null=optional)
    return NestedAttribute(kind, attr_name=name, null=optional)


def optional(hint: Any) -> bool:
    """Whether None is a value of this field."""
    return bare(hint)[1]
