"""Fields of lists: how a value is read from a record, written in a query, and compared.

Operators: `eq` (also without any), `ne`, `gt`, `gte`, `lt`, `lte`, `in` (a list with commas) and `like`: the text contains this,
whatever the case; with `%` in it the whole text must match, `%` standing for any characters. A record that has no value in a
field is found by `ne` alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from chalicelib.api.fields import slug
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.money import NotAnAmount, parse_units

Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "like"]
Read = Callable[[Any, Catalogue], Any]
"""The value of a record's field, None where it has none."""
Parse = Callable[[str, Catalogue | None], Any]
"""The value that a text in a query stands for. Raises ValueError with the constraint in words."""
OPERATORS: tuple[Operator, ...] = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "like")
_EQUAL: tuple[Operator, ...] = ("eq", "ne", "in")
_ORDERED: tuple[Operator, ...] = ("eq", "ne", "gt", "gte", "lt", "lte", "in")
MAX_TEXT = 255
MAX_VALUES = 100
"""Values in one `in`."""
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Interval:
    """Milliseconds from `low` up to but without `high`: an instant, or the whole day that a date without a time stands for."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Like:
    """The pattern of `like`: these parts in this order, from the beginning to the end of the text where `whole`.

    No regular expression: one with many gaps can take for ever.
    """

    parts: tuple[str, ...]
    whole: bool

    @classmethod
    def of(cls, sent: str) -> Like:
        return cls(tuple(sent.lower().split("%")), "%" in sent)

    def fits(self, found: str) -> bool:
        """Whether `found` matches the pattern, in any case."""
        found = found.lower()
        if not self.whole:
            return self.parts[0] in found
        first, *middle, last = self.parts
        if len(found) < len(first) + len(last) or not (found.startswith(first) and found.endswith(last)):
            return False
        place, end = len(first), len(found) - len(last)
        for part in middle:
            place = found.find(part, place, end)
            if place < 0:
                return False
            place += len(part)
        return True


@dataclass(frozen=True, slots=True)
class ListField:
    """One field of a list under its public name.

    `by` is what an index knows it as (`ports.Listed`), `partitions` the index's values for a value of a query: the field's
    own text unless given; None where the index can not tell. `by` "time" is the order of the list's keys. `folded`: case makes
    no difference.
    """

    name: str
    kind: str
    read: Read
    parse: Parse
    operators: tuple[Operator, ...]
    description: str
    examples: tuple[str, ...] = ()
    sortable: bool = True
    aliases: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    several: bool = False
    folded: bool = False
    by: str | None = None
    partitions: Callable[[Any, Catalogue], Sequence[str] | None] = field(default=lambda value, _: (str(value),))

    def known_as(self, *aliases: str) -> ListField:
        """The field with these names as well."""
        return replace(self, aliases=aliases)

    def taking_several(self) -> ListField:
        """The field with a plain parameter that may repeat, or hold a list with commas: any of them."""
        return replace(self, several=True)

    def indexed(self, by: str, partitions: Callable[[Any, Catalogue], Sequence[str] | None] | None = None) -> ListField:
        """Looked up in the index `by`."""
        return replace(self, by=by) if partitions is None else replace(self, by=by, partitions=partitions)


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter of a query: a field's value against one, or against several of `in`."""

    field: ListField
    operator: Operator
    value: Any

    def holds(self, record: Any, catalogue: Catalogue) -> bool:
        """Whether `record` matches."""
        return self.admits(self.field.read(record, catalogue))

    def admits(self, found: Any) -> bool:
        """Whether a record with this value in the field matches."""
        if found is None:
            return self.operator == "ne"
        if self.field.folded:
            found = found.lower()
        return bool(_COMPARE[self.operator](found, self.value))


def _equal(found: Any, value: Any) -> bool:
    if isinstance(value, Interval):
        return bool(value.low <= found < value.high)
    return bool(found == value)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda found, value: not _equal(found, value),
    "in": lambda found, values: any(_equal(found, value) for value in values),
    "gt": lambda found, value: found >= value.high if isinstance(value, Interval) else found > value,
    "gte": lambda found, value: found >= (value.low if isinstance(value, Interval) else value),
    "lt": lambda found, value: found < (value.low if isinstance(value, Interval) else value),
    "lte": lambda found, value: found < value.high if isinstance(value, Interval) else found <= value,
    "like": lambda found, value: value.fits(found),
}


def parsed(field: ListField, operator: Operator, sent: str, catalogue: Catalogue | None) -> Any:
    """The value of a parameter. Raises ValueError with the constraint in words."""
    if operator == "like":
        return Like.of(_text(sent, catalogue))
    if operator == "in":
        return _each(field, sent.split(","), catalogue)
    return field.parse(sent, catalogue)


def _each(field: ListField, texts: Sequence[str], catalogue: Catalogue | None) -> tuple[Any, ...]:
    if len(texts) > MAX_VALUES:
        raise ValueError(f"must have at most {MAX_VALUES} values")
    return tuple(dict.fromkeys(field.parse(text.strip(), catalogue) for text in texts))


def _text(sent: str, _: Catalogue | None) -> str:
    if not 1 <= len(sent) <= MAX_TEXT:
        raise ValueError(f"must have 1 to {MAX_TEXT} characters")
    return sent


def _amount(sent: str, _: Catalogue | None) -> Decimal:
    try:
        parse_units(sent, len(sent.partition(".")[2]))
    except NotAnAmount as error:
        raise ValueError(str(error)) from None
    return Decimal(sent)


def _whole(sent: str, _: Catalogue | None) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", sent, re.ASCII):
        raise ValueError("must be a whole number")
    return int(sent)


def _flag(sent: str, _: Catalogue | None) -> bool:
    if sent not in ("true", "false"):
        raise ValueError("must be true or false")
    return sent == "true"


_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)([Zz]|[ +-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(sent: str, _: Catalogue | None = None) -> Interval:
    """ISO 8601, UTC where no offset is given; a date alone is the whole day. Raises ValueError with the constraint in words."""
    match = _TIME.fullmatch(sent)
    try:
        if match is None:
            raise ValueError
        day, clock, zone = match.groups()
        # A plus sign that was not encoded comes as a blank.
        zone = (zone or "Z").upper().replace(" ", "+")
        at = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone}").astimezone(UTC)  # beyond the year 9999: OverflowError
        low = (at - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise ValueError("must be a time in ISO 8601 such as 2026-05-31T12:00:00Z, or a day such as 2026-05-31") from None
    return Interval(low, low + (DAY_MS if clock is None else 1))


def day(sent: str, _: Catalogue | None = None) -> Interval:
    """A day in UTC. Raises ValueError with the constraint in words."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", sent, re.ASCII):
        try:
            return instant(sent)
        except ValueError:
            pass
    raise ValueError("must be a day such as 2026-05-31")


def _network(sent: str, catalogue: Catalogue | None) -> str:
    named = str(slug(sent))
    if catalogue is not None and catalogue.network(named) is None:
        raise ValueError(f"must be one of: {', '.join(catalogue.networks)}")
    return named


def _coin(sent: str, catalogue: Catalogue | None) -> str:
    named = str(slug(sent))
    if catalogue is not None and named not in catalogue.slugs():
        raise ValueError(f"must be one of: {', '.join(catalogue.slugs())}")
    return named


def text(name: str, read: Read, description: str, *, sortable: bool = True, examples: tuple[str, ...] = ()) -> ListField:
    """Any text."""
    return ListField(name, "text", read, _text, OPERATORS, description, examples, sortable)


class Spelled(str):
    """An address or a hash of a query in lower case; `sent` is its original spelling, which a lookup by key may need."""

    sent: str

    @classmethod
    def of(cls, sent: str) -> Spelled:
        made = cls(sent.lower())
        made.sent = sent
        return made


def hash_text(name: str, read: Read, description: str) -> ListField:
    """An address or a hash: it has several spellings, and no useful order."""

    def parse(sent: str, catalogue: Catalogue | None) -> str:
        return Spelled.of(_text(sent, catalogue))

    return ListField(name, "text", read, parse, (*_EQUAL, "like"), description, sortable=False, folded=True)


def choice(name: str, read: Read, values: Sequence[str], description: str, *, sortable: bool = True) -> ListField:
    """One of `values`."""

    def parse(sent: str, _: Catalogue | None) -> str:
        if sent not in values:
            raise ValueError(f"must be one of: {', '.join(values)}")
        return sent

    return ListField(name, "choice", read, parse, (*_EQUAL, "like"), description, tuple(values[:1]), sortable, values=tuple(values))


def amount(name: str, read: Read, description: str) -> ListField:
    """Coin units, as Decimal."""
    return ListField(name, "amount", read, _amount, _ORDERED, description, ("0.5",))


def whole(name: str, read: Read, description: str) -> ListField:
    """A whole number."""
    return ListField(name, "integer", read, _whole, _ORDERED, description, ("12",))


def flag(name: str, read: Read, description: str) -> ListField:
    """True or false."""
    return ListField(name, "boolean", read, _flag, _EQUAL, description, ("true",), values=("true", "false"))


def time(name: str, read: Read, description: str) -> ListField:
    """A time, in milliseconds since 1970 in the record, ISO 8601 in a query. A day alone is the whole day, UTC."""
    return ListField(name, "time", read, instant, _ORDERED, description, ("2026-05-31T12:00:00Z", "2026-05-31"))


def network(read: Read, description: str = "The network's slug, in any case.", name: str = "network") -> ListField:
    """A network of the catalogue, by its slug in any case."""
    return ListField(name, "text", read, _network, (*_EQUAL, "like"), description, ("ethereum",))


def coin(read: Read, description: str = "The coin's slug, in any case.", name: str = "coin") -> ListField:
    """A coin of the catalogue, by its slug in any case."""
    return ListField(name, "text", read, _coin, (*_EQUAL, "like"), description, ("usdt",))
