"""What a newer version of this service stored in an item stays there when this version stores the record anew.

Two versions write the same items while a deploy replaces one function after the other, and behind a rollback. A record that is
stored over its version before is an update of the attributes that this version knows: others stay. It costs what a put costs, which
also counts the larger of the item before and after.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html

A nested field is one attribute of JSON text, and is written whole. Its unknown members are remembered where it is read, by the
item's key and the record's version: the store takes the next version only over the one that was read.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_origin

from chalicelib.store import codec

MOST = 2_000
"""Items whose unknown parts a process remembers at a time, and their characters."""
MOST_CHARACTERS = 16_000_000
IDENTITY = frozenset(
    {"id", "deposit", "outpoint", "withdrawal", "signer_id", "object_id", "txid", "hash", "position", "address", "to_address"}
    | {"asset", "role", "staked", "coin", "network", "name", "at"}
)
"""Names of members that tell one nested value from another of its type."""
Place = tuple[str, str, str]
"""Table, pk and sk of an item."""
Attributes = Mapping[str, dict[str, Any]]
"""Of an item, in DynamoDB's JSON."""
AsRead = tuple[str, str | None]
"""An attribute of an item and its text, None where it was not there."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What this version does not know of an item."""

    nested: Mapping[str, str] = field(default_factory=dict)
    """JSON texts with unknown members, by the names of their fields."""
    attributes: Attributes = field(default_factory=dict)
    state: str | None = None
    """The record's state, where only a newer version knows it (`domain.versions.newer_state`)."""

    def __bool__(self) -> bool:
        return bool(self.nested or self.attributes or self.state is not None)

    @property
    def characters(self) -> int:
        return sum(map(len, self.nested.values())) + sum(len(str(value)) for value in self.attributes.values())


NOTHING = Unknown()


class Newer:
    """What items had that this version does not know, by place and the record's version. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[Place, dict[int, Unknown]] = OrderedDict()
        self._left: dict[str, set[Place]] = {}
        """Records whose state only a newer version knows, by their ids; records of several kinds may share one."""
        self._characters = 0
        self._forgot = False
        self._lock = threading.Lock()

    def remember(self, place: Place, version: int, unknown: Unknown) -> None:
        """The item at `place` has these parts, none perhaps, with the record's version `version`."""
        if not unknown and place not in self._known and not self._left:
            return
        with self._lock:
            self._note_left(place, left=unknown.state is not None)
            versions = self._known.pop(place, {})
            self._characters -= sum(each.characters for each in versions.values())
            # The one before too: a save that is lost to another begins with it again.
            kept = {number: each for number, each in versions.items() if number == version - 1}
            if unknown:
                kept[version] = unknown
            if kept:
                self._known[place] = kept
                self._characters += sum(each.characters for each in kept.values())
            while len(self._known) > MOST or self._characters > MOST_CHARACTERS:
                _, forgotten = self._known.popitem(last=False)
                self._characters -= sum(each.characters for each in forgotten.values())
                self._forgot = True

    def _note_left(self, place: Place, *, left: bool) -> None:
        places = self._left.get(_id_at(place), set()) - {place} | ({place} if left else set())
        if places:
            self._left[_id_at(place)] = places
        else:
            self._left.pop(_id_at(place), None)

    def of(self, place: Place, version: int, read: Callable[[], Any]) -> Unknown:
        """What the item at `place` has beside what this version knows, with the record's version `version`.

        `read` reads the item anew, which remembers; it is called where some was forgotten. Raises what `read` raises.
        """
        found = self._known.get(place, {}).get(version)
        if found is None and self._forgot:
            read()
            found = self._known.get(place, {}).get(version)
        return found or NOTHING

    def is_left(self, place: Place) -> bool:
        """Whether this process has read the record there in a state that only a newer version knows."""
        if not self._left:
            return False
        with self._lock:
            return place in self._left.get(_id_at(place), ())

    def left_by(self, work_id: str) -> Place | None:
        """The place of the record that an obligation is about, where this process has read it in a state that only a newer version
        knows: what the obligation asks for is left to that."""
        if not self._left:
            return None
        with self._lock:
            return next((min(self._left[part]) for part in (work_id, *work_id.split("|")) if part in self._left), None)


def _id_at(place: Place) -> str:
    """The id of the record at a place, as obligations name it."""
    return place[2] if place[2] != "-" else place[1].partition("#")[2]


def with_unknown(hint: Any, before: Any, now: Any) -> Any:
    """`now` with the members of `before` that this version does not know, where both are of the same thing (`IDENTITY`); both in
    JSON types, as values of the type `hint`. Of a list, each element with those of its own."""
    hint, _ = codec.bare(hint)
    if is_dataclass(hint) and isinstance(before, dict) and isinstance(now, dict):
        if _identity(before) != _identity(now):
            return now
        known = codec.hints(hint)
        kept = {name: with_unknown(known[name], before.get(name), value) for name, value in now.items()}
        return kept | {name: value for name, value in before.items() if name not in known}
    if get_origin(hint) in (tuple, list) and isinstance(before, list) and isinstance(now, list):
        return _elements_with_unknown(get_args(hint)[0], before, now)
    return now


def text_with_unknown(hint: Any, before: str, now: str) -> str:
    """The same of JSON texts."""
    found = json.dumps(with_unknown(hint, json.loads(before), json.loads(now)), separators=(",", ":"))
    codec.take_newer()  # what was read here was read before
    return found


def _elements_with_unknown(hint: Any, before: list[Any], now: list[Any]) -> list[Any]:
    """Equal elements first, wherever they stand; of the others those that one element alone on either side can be."""
    result, left, come = list(now), defaultdict(list), []
    for old in before:
        left[json.dumps(codec.plain(codec.shaped(hint, old)))].append(old)
    for place, new in enumerate(now):
        if same := left.get(json.dumps(new)):
            result[place] = with_unknown(hint, same.pop(0), new)
        else:
            come.append(place)
    changed = _by_identity(old for same in left.values() for old in same)
    for found in _by_identity(come, of=now).values():
        was = changed.get(_identity(now[found[0]]), [])
        if len(found) == len(was) == 1:
            result[found[0]] = with_unknown(hint, was[0], now[found[0]])
    return result


def _by_identity(elements: Iterable[Any], of: Sequence[Any] | None = None) -> dict[Any, list[Any]]:
    """Elements, or their places in `of`, by identity; those without one are left out."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for each in elements:
        if identity := _identity(each if of is None else of[each]):
            found[identity].append(each)
    return found


def _identity(element: Any) -> Any:
    if not isinstance(element, dict):
        return None
    return tuple((name, json.dumps(element[name])) for name in sorted(IDENTITY & element.keys()))


# ---- A record over its version before ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1_000)
def _expression(known: tuple[str, ...], set_: frozenset[str], as_read: AsRead | None) -> tuple[str, str, dict[str, str]]:
    """The update that sets `set_` and removes what else is `known`, its condition, and the names in both."""
    sets = [f"#{n} = :{n}" for n, name in enumerate(known) if name in set_]
    removed = [f"#{n}" for n, name in enumerate(known) if name not in set_]
    update = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removed)}" if removed else "")
    condition = f"#{known.index('version')} = :before"
    if as_read is not None:
        place = f"#{known.index(as_read[0])}"
        same = "" if as_read[1] is None else f" OR {place} = :read"
        condition += f" AND (attribute_not_exists({place}){same})"
    return update, condition, {f"#{n}": name for n, name in enumerate(known)}


def update_over(table: str, known: tuple[str, ...], item: Attributes, as_read: AsRead | None = None) -> dict[str, Any]:
    """The part of a transaction that stores the item of a record over that of its version before, where that is there.

    `known` names all attributes that such items may have, but those of the key. `as_read`: one that may have come in between
    without another version, so that it has to be absent, or as it was read.
    """
    set_ = frozenset(item) - {"pk", "sk"}
    update, condition, names = _expression(known, set_, as_read)
    values = {f":{n}": item[name] for n, name in enumerate(known) if name in set_}
    if as_read is not None and as_read[1] is not None:
        values[":read"] = {"S": as_read[1]}
    return {
        "TableName": table,
        "Key": {"pk": item["pk"], "sk": item["sk"]},
        "UpdateExpression": update,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values | {":before": {"N": str(int(item["version"]["N"]) - 1)}},
    }


def attributes_after(update: Mapping[str, Any]) -> dict[str, dict[str, Any] | None]:
    """The attributes that an update of `update_over` leaves in the item; None for those that are not there then."""
    names, values = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
    return {name: values.get(f":{place[1:]}") for place, name in names.items()}
