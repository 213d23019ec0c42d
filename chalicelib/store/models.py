"""pynamodb models over the records of `schema`, made from the records' own fields so that the two never differ."""

from __future__ import annotations

import dataclasses
import logging
import threading
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError
from pynamodb.attributes import Attribute, BinaryAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.connection import Connection
from pynamodb.constants import NULL
from pynamodb.exceptions import AttributeNullError
from pynamodb.models import Model

from chalicelib.domain.versions import newer_state
from chalicelib.domain.work import Work
from chalicelib.settings import Settings
from chalicelib.store import brevity, codec
from chalicelib.store.indexes import indexed_attributes
from chalicelib.store.newer import NOTHING, AsRead, Newer, Place, Unknown, text_with_unknown, update_over
from chalicelib.store.schema import where_is
from chalicelib.usecases.ports.failures import TooNew, Unavailable

log = logging.getLogger(__name__)

PACKED = "packed"
"""The attribute with a record's compressed field (`schema.Kind.packed`). A version that does not know it fails at such a record,
and leaves it as it is."""
NEEDS = "s"
"""The attribute of an item that a reader must know more for: the least `schema.Kind.understands` that reads it rightly. A release
raises what it understands before another release writes it, so that each runs beside the one before and goes back to it. What is
added to without being read (`Add`, wallets' balances) has no such form."""
ARCHIVE = "archive"
"""The attribute of a stub that names the archive's object with the whole record (`stubs`)."""
Whole = Callable[[type, str, str, str], Any]
"""The record of a kind at a key, out of the archive's object of that name."""


class Record(Model):
    """The common attributes of every item. `Meta` is set per table in `build`."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    unbounded: ClassVar[tuple[str, ...]] = ()
    """Attributes of `domain.money.Units`."""
    unknown: Unknown = NOTHING
    """What this version does not know of the item that was read."""
    _with_defaults: ClassVar[list[tuple[str, Attribute[Any]]]]

    # The same as pynamodb's own, for attributes that are plain: theirs goes through every descriptor twice, which is half of the
    # time of a read (tests/bench/bench_items.py).

    @classmethod
    def _instantiate(cls, attribute_values: dict[str, dict[str, Any]]) -> Any:
        item = cls.__new__(cls)
        item.attribute_values = {name: attribute.default for name, attribute in cls._defaults()}
        names: dict[str, str] = cls._dynamo_to_python_attrs  # type: ignore[attr-defined]  # pynamodb declares it for itself alone
        attributes, strange = cls.get_attributes(), {}
        for stored, value in attribute_values.items():
            name = names.get(stored, stored)
            attribute = attributes.get(name)
            if attribute is None or attribute.attr_name != stored:
                strange[stored] = value
            elif value and NULL not in value:
                item.attribute_values[name] = attribute.deserialize(attribute.get_value(value))
        nested = cls._texts_of_newer(attribute_values) if codec.take_newer() else {}
        if nested or strange:
            item.unknown = Unknown(nested, strange)
        return item

    @classmethod
    def _texts_of_newer(cls, attribute_values: dict[str, dict[str, Any]]) -> dict[str, str]:
        """The nested values that have members which this version does not know."""
        found = {}
        for each in cls.get_attributes().values():
            text = attribute_values.get(each.attr_name, {}).get("S") if isinstance(each, codec.NestedAttribute) else None
            if text is not None:
                each.deserialize(text)
                if codec.take_newer():
                    found[each.attr_name] = text
        return found

    @classmethod
    def _defaults(cls) -> list[tuple[str, Attribute[Any]]]:
        found = cls.__dict__.get("_with_defaults")
        if found is None:
            found = [(name, each) for name, each in cls.get_attributes().items() if each.default is not None]
            cls._with_defaults = found
        return found

    def _set_defaults(self, _user_instantiated: bool = True) -> None:
        self.attribute_values |= {name: attribute.default for name, attribute in self._defaults()}

    def _set_attributes(self, **attributes: Any) -> None:
        if unknown := attributes.keys() - self.get_attributes().keys():
            raise ValueError(f"no attribute of {type(self).__name__}: {', '.join(sorted(unknown))}")
        self.attribute_values |= attributes

    def _container_serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        values: dict[str, dict[str, Any]] = {}
        for name, attribute in self.get_attributes().items():
            value = self.attribute_values.get(name)
            sent = None if value is None else attribute.serialize(value)
            if sent is not None:
                values[attribute.attr_name] = {attribute.attr_type: sent}
            elif null_check and not attribute.null:
                raise AttributeNullError(name)
        for name in self.unbounded:
            if name in values:
                values[name] = codec.UnitsAttribute.typed(values[name])
        return values


class WorkItem(Record):
    """An open obligation."""

    work_kind = UnicodeAttribute()
    lane = UnicodeAttribute()
    order = UnicodeAttribute(null=True)  # empty texts are left out: not every DynamoDB takes them (DynamoDB Local)
    work_id = UnicodeAttribute()
    time_pk = UnicodeAttribute(null=True)


class Counter(Record):
    """A pool's address indexes in use, and its ceiling: see `domain.addresses.index_pools.IndexPool`."""

    count_ = NumberAttribute(attr_name="n", default=0)
    ceiling = NumberAttribute(null=True)
    begins = NumberAttribute(null=True)
    reopened = NumberAttribute(null=True)


class Models:
    """All models of one stage on one shared connection (a connection each would build a client each)."""

    def __init__(self, settings: Settings, connection: Connection) -> None:
        self.connection = connection
        self._settings = settings
        self._of: dict[type, type[Record]] = {}
        self._known: set[str] = set()
        self._lock = threading.Lock()
        self.newer = Newer()
        self.whole: Whole = _no_archive
        """Reads what a stub stands for."""
        self.work: type[WorkItem] = self._bind(WorkItem, "work")
        self.counter: type[Counter] = self._bind(Counter, "chain")

    def _bind(self, base: type[Any], table: str) -> Any:
        meta = type("Meta", (), {"table_name": self._settings.table(table), "region": self.connection.region})
        return self._share(type(base.__name__, (base,), {"Meta": meta}))

    def _share(self, model: Any) -> Any:
        table, name = model._get_connection(), model.Meta.table_name
        if name not in self._known:  # all models of a table have the same keys
            self.connection._tables[name] = table.connection.get_meta_table(name)
            self._known.add(name)
        table.connection = self.connection
        return model

    def table(self, name: str) -> str:
        """The name of a table of `settings.TABLES` in this stage."""
        return self._settings.table(name)

    def of(self, kind: type) -> type[Record]:
        """The model of a record type, built at first use: a Lambda pays only for what it touches."""
        found = self._of.get(kind)
        if found is None:
            with self._lock:
                found = self._of.get(kind) or self._build(kind)
                self._of[kind] = found
        return found

    def _build(self, kind: type) -> type[Record]:
        where = where_is(kind)
        meta = type("Meta", (), {"table_name": self._settings.table(where.table), "region": self.connection.region})
        body: dict[str, Any] = {"Meta": meta}
        for name, hint in codec.hints(kind).items():
            body[f"f_{name}"] = attribute = codec.attribute_for(name, hint)
            if isinstance(attribute, codec.UnitsAttribute):
                body["unbounded"] = (*body.get("unbounded", ()), name)
        if where.indexed is not None:
            body |= {name: UnicodeAttribute(null=True) for name in indexed_attributes(where.table)}
        if where.understands:
            body[NEEDS] = NumberAttribute(null=True)
        if where.stub is not None:
            body[ARCHIVE] = UnicodeAttribute(null=True)
        if where.packed:
            body[PACKED] = BinaryAttribute(legacy_encoding=False, null=True)
            body[f"f_{where.packed}"].null = True
        for name in brevity.may_be_absent(kind):
            body[f"f_{name}"].null = True
        model: type[Record] = self._share(type(kind.__name__, (Record,), body))
        return model

    def item(self, record: Any, *, whole: bool = False) -> Record:
        """The item that stores `record`; `whole`: with everything that could be left out."""
        kind = type(record)
        where = where_is(kind)
        values: dict[str, Any] = {}
        for name in codec.hints(kind):
            value = getattr(record, name)
            if value is not None:
                values[f"f_{name}"] = value
        if where.indexed is not None:
            values |= where.indexed(record)
        if where.writes:
            values[NEEDS] = where.writes
        if where.packed and self._settings.packed_records:
            text = values.pop(f"f_{where.packed}")
            values[PACKED] = zlib.compress(self._packing(kind).serialize(text).encode(), 9)
        if not whole:
            values = brevity.shortened(kind, values, repeated=self._settings.short_records)
        return self.of(kind)(where.pk(record), where.sk(record), **values)

    def over(self, record: Any) -> dict[str, Any]:
        """The part of a transaction that stores `record` over its version before, and keeps what a newer service put there.

        Raises TooNew, with an alarm, for a record in a state that only a newer version knows; Unavailable, where the item has to be
        read.
        """
        kind, item = type(record), self.item(record)
        place, where = (item.Meta.table_name, item.pk, item.sk), where_is(kind)
        unknown = self.newer.of(place, record.version - 1, lambda: self._read(kind, place))
        if unknown.state is not None and not (where.counts_in_any_state and newer_state(record) == unknown.state):
            raise left_to_newer(kind.__name__, place, f"has the state {unknown.state}")
        known, values = _attribute_names(type(item)), item.serialize()
        self._add_unknown(kind, values, unknown)
        nested = {name: values[name]["S"] for name in unknown.nested if name in values}
        self.newer.remember(place, record.version, Unknown(nested, unknown.attributes, unknown.state))
        if where.stub is not None:  # it may be a stub that is written over: of these attributes it has none
            values = {**unknown.attributes, **values}
            known = (*known, *(name for name in unknown.attributes if name not in known))
        return update_over(place[0], known, values, _stub_as_read(record))

    def demand_work(self, work: Work) -> None:
        """Raises TooNew, with an alarm, for an obligation that is left to a newer version: its record is in a state of that one."""
        place = self.newer.left_by(work.id)
        if place is not None:
            raise left_to_newer("record", place, f"has an unknown state: its work {work.kind} stays open")

    def demand_place(self, kind: type, pk: str, sk: str) -> None:
        """Raises TooNew, with an alarm, where this process read a record there in a state that only a newer version knows."""
        place = (self.table(where_is(kind).table), pk, sk)
        if self.newer.is_left(place):
            raise left_to_newer(kind.__name__, place, "has an unknown state")

    def has_unknown(self, record: Any) -> bool:
        """Whether the item of `record`, as it was read, has attributes that this version does not know."""
        item = self.item(record)
        place = (item.Meta.table_name, item.pk, item.sk)
        return bool(self.newer.of(place, _version(record), lambda: self._read(type(record), place)).attributes)

    def kept(self, record: Any) -> dict[str, Any]:
        """The whole item of a record that is archived, in DynamoDB's JSON, with what a newer service put there.

        Raises Unavailable, where the item has to be read for that.
        """
        kind, item = type(record), self.item(record, whole=True)
        place = (item.Meta.table_name, item.pk, item.sk)
        unknown = self.newer.of(place, _version(record), lambda: self._read(kind, place))
        values = item.serialize()
        self._add_unknown(kind, values, unknown)
        return {**unknown.attributes, **values}

    @staticmethod
    def _add_unknown(kind: type, values: dict[str, Any], unknown: Unknown) -> None:
        for name, before in unknown.nested.items():
            if name in values:
                values[name] = {"S": text_with_unknown(codec.hints(kind)[name], before, values[name]["S"])}

    def _read(self, kind: type, place: tuple[str, str, str]) -> None:
        table, pk, sk = place
        asked = {"TableName": table, "Key": {"pk": {"S": pk}, "sk": {"S": sk}}, "ConsistentRead": True}
        try:
            found = self.connection.client._make_api_call("GetItem", asked).get("Item")
        except (BotoCoreError, ClientError) as error:
            raise Unavailable("the store did not answer") from error
        if found is not None:
            self.record(kind, self.of(kind).from_raw_data(found))

    def record(self, kind: type, item: Any) -> Any:
        """The record that an item of its model stores, or stands for. Raises LookupError, with an alarm, for one that belongs at
        another key, TooNew, with one, for a form that is not known, Unavailable where the archive does not answer."""
        names = codec.hints(kind)
        if where_is(kind).understands or NEEDS in item.unknown.attributes:
            _demand_known(kind, item)
        if ARCHIVE in item.attribute_values:
            return self._archived(kind, item)
        stored = item.attribute_values  # not by its descriptors: they take half of the time of reading an item
        values = {name: stored.get(f"f_{name}") for name in names}
        if stored.get(PACKED) is not None:
            values[where_is(kind).packed] = self._packing(kind).deserialize(zlib.decompress(stored[PACKED]).decode())
        for name, tell in where_is(kind).repeated.items():
            if values[name] is None:
                values[name] = tell(stored)
        # A field that was added after the item was written is not in it: the dataclass's default counts.
        found = kind(**{name: value for name, value in values.items() if value is not None or codec.optional(names[name])})
        # What may happen once for ever is asked by the id in the record, and the record is read by its key: they are one.
        where = where_is(kind)
        if where.pk(found) != item.pk or where.sk(found) != item.sk:
            log.error("ALARM the %s at %s / %s is another one's: it was altered", kind.__name__, item.pk, item.sk)
            raise LookupError(f"the {kind.__name__} at {item.pk} / {item.sk} is another one's")
        state = newer_state(found)
        unknown = item.unknown if state is None else dataclasses.replace(item.unknown, state=state)
        self.newer.remember((item.Meta.table_name, item.pk, item.sk), _version(found), unknown)
        return found

    def _packing(self, kind: type) -> Attribute[Any]:
        """What makes text of the field of a kind that is packed, and back."""
        name = where_is(kind).packed
        return codec.attribute_for(name, codec.hints(kind)[name])

    def _archived(self, kind: type, item: Any) -> Any:
        """The record that a stub stands for. It has to say what the stub says."""
        stub, name = item.attribute_values, item.attribute_values[ARCHIVE]
        found = self.whole(kind, name, item.pk, item.sk)
        said = {"version": stub["f_version"], **{field: stub.get(f"f_{field}") for field in where_is(kind).stub or ()}}
        if any(getattr(found, field) != value for field, value in said.items()):
            log.error("ALARM the %s at %s / %s is not that of the archive", kind.__name__, item.pk, item.sk)
            raise LookupError(f"the {kind.__name__} at {item.pk} / {item.sk} is not the archived one")
        if "archives" in codec.hints(kind):
            return dataclasses.replace(found, archives=(name, *(found.archives or ())))
        return found


def _stub_as_read(record: Any) -> AsRead | None:
    """What the stub may be that `record` is saved over: none, or the one that it was read from. A stub has its record's version;
    one that came since is of an object that the record does not name, and would be named by nobody."""
    if where_is(type(record)).stub is None or "archives" not in codec.hints(type(record)):
        return None
    return ARCHIVE, next(iter(record.archives or ()), None)


@cache
def _attribute_names(model: type[Record]) -> tuple[str, ...]:
    """What items of a model may have beside their key."""
    return tuple(each.attr_name for each in model.get_attributes().values() if each.attr_name not in ("pk", "sk"))


def _demand_known(kind: type, item: Any) -> None:
    found = item.attribute_values.get(NEEDS)
    needed = int(item.unknown.attributes[NEEDS]["N"]) if NEEDS in item.unknown.attributes else int(found or 0)
    if needed > where_is(kind).understands:
        raise left_to_newer(kind.__name__, (item.Meta.table_name, item.pk, item.sk), f"has the form {needed}")


def left_to_newer(what: str, place: Place, why: str) -> TooNew:
    """The refusal, with an alarm, to write or to read what is at a place; `why`: what this version does not know of it."""
    log.error("ALARM the %s at %s / %s needs a newer version of the service: it %s", what, place[1], place[2], why)
    return TooNew(f"the {what} at {place[1]} / {place[2]} {why}, which this version does not know")


def _version(record: Any) -> int:
    """Of a record; 0 of one that is written once, and never over."""
    return int(getattr(record, "version", 0))


def _no_archive(kind: type, name: str, pk: str, sk: str) -> Any:
    raise LookupError(f"the {kind.__name__} at {pk} / {sk} is in the archive, which nobody reads here")
