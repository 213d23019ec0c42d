"""`usecases.ports.Store` in memory, as strict as the real one: for rules that need no DynamoDB, and for cutting at every call.

It knows the records of webhooks, of the outbox and of collections. What the real store does beside that is tested on the real
store.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.domain.addresses import Address, Wallet, Watched
from chalicelib.domain.coin_moves import CoinMove
from chalicelib.domain.collecting import Collecting, Collection, Distribution
from chalicelib.domain.deliveries import Delivery
from chalicelib.domain.greylist import GreyListEntry
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.merchants import Tally
from chalicelib.domain.moves import Move
from chalicelib.domain.redelivery import LatestRedelivery, RedeliveryJob
from chalicelib.domain.turns import Turn
from chalicelib.domain.webhooks import EventRecord, WebhookEndpoint
from chalicelib.domain.work import Command, OutboxRow, Work, outbox_work, time_lane
from chalicelib.usecases.changes import Add, Beside, Change, Close, Conflict, Delete, Emit, Open, Save, Still
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import EVERYWHERE, Page, Span

KEYS: dict[type, tuple[str, ...]] = {
    WebhookEndpoint: ("tenant", "id"),
    Delivery: ("tenant", "id"),
    Turn: ("tenant", "endpoint_id"),
    RedeliveryJob: ("tenant", "id"),
    LatestRedelivery: ("tenant", "endpoint_id"),
    EventRecord: ("tenant", "id"),
    OutboxRow: ("id",),
    Tally: ("tenant", "of"),
    Address: ("tenant", "id"),
    Watched: ("realm", "family", "address"),
    Wallet: ("network", "role"),
    WalletBalance: ("network", "address", "asset"),
    GreyListEntry: ("realm", "network", "address"),
    Collection: ("id",),
    Collecting: ("network", "address"),
    Distribution: ("network", "address", "asset"),
    Move: ("network", "id"),
    CoinMove: ("network", "id"),
}


class MemoryStore:
    def __init__(self) -> None:
        self.records: dict[tuple[Any, ...], Any] = {}
        self.work: set[Work] = set()
        self.commits = 0

    def get(self, kind: type[Any], /, **key: str) -> Any:
        return copy.deepcopy(self.records.get(self._key(kind, key)))

    def get_many(self, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], /) -> list[Any]:
        return [self.get(kind, **key) for kind, key in wanted]

    def page(
        self,
        kind: type[Any],
        /,
        *,
        limit: int,
        after: str | None = None,
        newest_first: bool = False,
        span: Span = EVERYWHERE,
        **partition: str,
    ) -> Page[Any]:
        wanted = (kind, *(partition[name] for name in KEYS[kind][:-1]))
        keys = sorted((key for key in self.records if key[:-1] == wanted), reverse=newest_first)
        keys = [k for k in keys if (span.low is None or k[-1] >= span.low) and (span.high is None or k[-1] <= span.high)]
        keys = [key for key in keys if after is None or (key[-1] < after if newest_first else key[-1] > after)]
        return Page([copy.deepcopy(self.records[key]) for key in keys[:limit]], keys[limit - 1][-1] if len(keys) > limit else None)

    def commit(self, changes: Sequence[Change], /) -> None:
        """All or nothing, every condition against what was there before; no item twice, ten at most, as DynamoDB has it."""
        items = [item for change in changes for item in self._items(change)]
        if len(set(items)) != len(items):
            raise ValueError("a transaction may not touch one item twice")
        if not 1 <= len(items) <= 10:
            raise ValueError(f"{len(items)} items in a transaction")
        for change in changes:
            if not self._holds(change):
                raise Conflict(change)
        for change in changes:
            self._apply(change)
        self.commits += 1

    def open_work(
        self, kind: str, lane: str, *, upto: str | None = None, after: Work | None = None, limit: int = 100
    ) -> list[Work]:
        found = [w for w in self.work if w.kind == kind and w.lane == lane and (upto is None or w.order <= upto)]
        if after is not None:
            found = [w for w in found if (w.order, w.id) > (after.order, after.id)]
        return sorted(found, key=lambda w: (w.order, w.id))[:limit]

    def work_by_time(self, kind: str, lane: str, /, *, limit: int, span: Span = EVERYWHERE, after: str | None = None) -> Page[Work]:
        found = sorted((f"{w.order}#{w.id}", w) for w in self.work if w.kind == kind and time_lane(w) == lane)
        inside = [
            (sk, w)
            for sk, w in found
            if (span.low is None or sk >= span.low) and (span.high is None or sk <= span.high) and (after is None or sk > after)
        ]
        return Page([w for _, w in inside[:limit]], inside[limit - 1][0] if len(inside) > limit else None)

    def reserve_indexes(self, pool: str, count: int) -> int:
        raise AssertionError("not for webhooks")

    def catalogue(self, realm: str, fresh: bool = False) -> Any:
        raise AssertionError("not for webhooks")

    def all(self, kind: type[Any]) -> list[Any]:
        """Every record of a kind, in the order of keys."""
        return [self.records[key] for key in sorted((k for k in self.records if k[0] is kind), key=str)]

    def _key(self, kind: type[Any], fields: Mapping[str, str]) -> tuple[Any, ...]:
        if set(fields) != set(KEYS[kind]):
            raise ValueError(f"{kind.__name__} has the key {KEYS[kind]}, not {tuple(fields)}")
        return (kind, *(fields[name] for name in KEYS[kind]))

    def _key_of(self, record: Any) -> tuple[Any, ...]:
        return self._key(type(record), {name: getattr(record, name) for name in KEYS[type(record)]})

    def _items(self, change: Change) -> list[Any]:
        match change:
            case Save(record) | Still(record):
                return [self._key_of(record)]
            case Beside(network, address, asset):
                return [self._key(WalletBalance, {"network": network, "address": address, "asset": asset})]
            case Delete(kind, key) | Add(kind, key):
                return [self._key(kind, key)]
            case Emit(row):
                return [self._key_of(row), outbox_work(row)]
            case Open(work) | Close(work):
                return [work]
        raise AssertionError(f"not for webhooks: {change}")

    def _holds(self, change: Change) -> bool:
        match change:
            case Save(record):
                stored = self.records.get(self._key_of(record))
                return stored is None if record.version == 1 else stored is not None and stored.version == record.version - 1
            case Still(record):
                stored = self.records.get(self._key_of(record))
                return stored is not None and stored.version == record.version
            case Beside(network, address, asset, only_if=only_if) if only_if is not None:
                there = self.get(WalletBalance, network=network, address=address, asset=asset)
                return only_if == ((0, 0) if there is None else (there.units, there.pending))
            case Emit(row):
                return self._key_of(row) not in self.records and outbox_work(row) not in self.work
            case Open(work):
                return work not in self.work
            case Close(work):
                return work in self.work
        return True

    def _apply(self, change: Change) -> None:
        match change:
            case Save(record):
                self.records[self._key_of(record)] = copy.deepcopy(record)
            case Add(kind, key, deltas):
                found = self.records.get(self._key(kind, key)) or kind(**key)
                sums = {name: getattr(found, name) + delta for name, delta in deltas.items()}
                self.records[self._key(kind, key)] = replace(found, **sums)
            case Delete(kind, key):
                self.records.pop(self._key(kind, key), None)
            case Emit(row):
                self.records[self._key_of(row)] = copy.deepcopy(row)
                self.work.add(outbox_work(row))
            case Open(work):
                self.work.add(work)
            case Close(work):
                self.work.remove(work)


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: int = 1_767_323_045_006) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def pass_ms(self, ms: int) -> None:
        self.now += ms


class MemoryQueues:
    """What was sent, in order. `down`: nothing can be sent."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.wakes: list[tuple[str, int]] = []
        """Endpoint and delay."""
        self.failing: list[bool] = []
        self.held: list[bool] = []
        self.buried: list[tuple[str, str]] = []
        self.redeliveries: list[str] = []
        self.down = False

    def kick(self, outbox_id: str) -> None:
        raise AssertionError("the store kicks")

    def send(self, command: Command) -> None:
        self._up()
        self.commands.append(command)

    def wake(self, tenant: str, endpoint_id: str, delay_seconds: int = 0, *, failing: bool = False, held: bool = False) -> None:
        self._up()
        if not isinstance(delay_seconds, int) or not 0 <= delay_seconds <= 900:
            raise ValueError(f"SQS refuses a delay of {delay_seconds}")
        self.wakes.append((endpoint_id, delay_seconds))
        self.failing.append(failing)
        self.held.append(held)

    def redeliver(self, tenant: str, job_id: str) -> None:
        if not self.down:
            self.redeliveries.append(job_id)

    def bury(self, delivery_id: str, tenant: str) -> None:
        self._up()
        self.buried.append((delivery_id, tenant))

    def _up(self) -> None:
        if self.down:
            raise Unavailable("the queue did not answer")


class Cuts:
    """Makes the n-th call of everything it is put around fail, before it took effect or after. `n` 0 cuts nothing."""

    def __init__(self, n: int = 0, *, after: bool = False) -> None:
        self._n = n
        self._after = after
        self.calls = 0

    def around(self, target: Any) -> Any:
        return _Cut(target, self._call)

    def _call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls != self._n:
            return method(*args, **kwargs)
        if self._after:
            method(*args, **kwargs)
        raise Unavailable(f"cut at call {self._n}")


class _Cut:
    def __init__(self, target: Any, call: Callable[..., Any]) -> None:
        self._target = target
        self._call = call

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)
        return lambda *args, **kwargs: self._call(method, *args, **kwargs)
