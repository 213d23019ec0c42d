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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import lru_cache
from typing import Any, get_args, get_origin

from chalicelib.store import codec

MOST = 10_000
"""Items whose unknown parts a process remembers at a time."""
Place = tuple[str, str, str]
"""Table, pk and sk of an item."""
Attributes = Mapping[str, dict[str, Any]]
"""Of an item, in DynamoDB's JSON."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What this version does not know of an item."""

    nested: Mapping[str, str] = field(default_factory=dict)
    """JSON texts with unknown members, by the names of their fields."""
    attributes: Attributes = field(default_factory=dict)
    archived: bool = False
    """Whether the item lies in the archive: an update of its stub finds none of `attributes` there."""

    def __bool__(self) -> bool:
        return bool(self.nested or self.attributes)


NOTHING = Unknown()


class Newer:
    """What items had that this version does not know, by place and the record's version. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: dict[tuple[Place, int], Unknown] = {}
        self._forgot = False
        self._lock = threading.Lock()

    def remember(self, place: Place, version: int, unknown: Unknown) -> None:
        """The item at `place` had these parts when the record's version was `version`."""
        with self._lock:
            if len(self._known) >= MOST:
                self._known.clear()
                self._forgot = True
            self._known[place, version] = unknown

    def archived(self, place: Place, version: int) -> None:
        """The item lies in the archive, and at `place` there is a stub."""
        with self._lock:
            if (place, version) in self._known:
                self._known[place, version] = replace(self._known[place, version], archived=True)

    def of(self, place: Place, version: int, read: Callable[[], Any]) -> Unknown:
        """What the item at `place` has beside what this version knows, with the record's version `version`.

        `read` reads the item anew, which remembers; it is called where some was forgotten. Raises what `read` raises.
        """
        found = self._known.get((place, version))
        if found is None and self._forgot:
            read()
            found = self._known.get((place, version))
        return found or NOTHING


def with_unknown(hint: Any, before: Any, now: Any) -> Any:
    """`now` with the members of `before` that this version does not know; both in JSON types, as values of the type `hint`.

    An element of a list is told by what is known of it; one that has changed, by its place and its first member.
    """
    hint, _ = codec.bare(hint)
    if is_dataclass(hint) and isinstance(before, dict) and isinstance(now, dict):
        known = codec.hints(hint)
        kept = {name: with_unknown(known[name], before.get(name), value) for name, value in now.items()}
        return kept | {name: value for name, value in before.items() if name not in known}
    if get_origin(hint) in (tuple, list) and isinstance(before, list) and isinstance(now, list):
        return _elements_with_unknown(get_args(hint)[0], before, now)
    return now


def text_with_unknown(hint: Any, before: str, now: str) -> str:
    """The same of JSON texts."""
    found = json.dumps(with_unknown(hint, json.loads(before), json.loads(now)), separators=(",", ":"))
    codec.read_newer()  # what was read here was read before
    return found


def _elements_with_unknown(hint: Any, before: list[Any], now: list[Any]) -> list[Any]:
    from difflib import SequenceMatcher  # a start of a function has no need of it

    was, become = [json.dumps(codec.plain(codec.shaped(hint, each))) for each in before], [json.dumps(each) for each in now]
    result = list(now)
    for tag, begin, end, new_begin, new_end in SequenceMatcher(None, was, become, autojunk=False).get_opcodes():
        if tag not in ("equal", "replace"):
            continue
        for old, place in zip(before[begin:end], range(new_begin, new_end), strict=False):
            if tag == "equal" or _first(old) == _first(now[place]):
                result[place] = with_unknown(hint, old, now[place])
    return result


def _first(element: Any) -> Any:
    return next(iter(element.values()), None) if isinstance(element, dict) else element


# ---- A record over its version before ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1_000)
def _expression(known: tuple[str, ...], set_: frozenset[str]) -> tuple[str, str, dict[str, str]]:
    """The update that sets `set_` and removes what else is `known`, its condition, and the names in both."""
    sets = [f"#{n} = :{n}" for n, name in enumerate(known) if name in set_]
    removed = [f"#{n}" for n, name in enumerate(known) if name not in set_]
    update = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removed)}" if removed else "")
    return update, f"#{known.index('version')} = :before", {f"#{n}": name for n, name in enumerate(known)}


def update_over(table: str, known: tuple[str, ...], item: Attributes) -> dict[str, Any]:
    """The part of a transaction that stores the item of a record over that of its version before, where that is there.

    `known` names all attributes that such items may have, but those of the key.
    """
    set_ = frozenset(item) - {"pk", "sk"}
    update, condition, names = _expression(known, set_)
    values = {f":{n}": item[name] for n, name in enumerate(known) if name in set_}
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
