"""`usecases.ports.Store` in memory, as strict as the real one: for rules that need no DynamoDB, and for cutting at every call.

It knows the records of webhooks, of the outbox and of collections. What the real store does beside that is tested on the real
store.
"""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from chalicelib.domain.addresses.addresses import Address, RetiredWallet, Wallet, Watched
from chalicelib.domain.archive.payments import ArchiveRound
from chalicelib.domain.chain import Cursor, FeeQuote
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.merchants.suspensions import ListedMerchant, Suspension
from chalicelib.domain.scanning.asked_credits import AskedCredits
from chalicelib.domain.scanning.internal_transfers import Reconciled
from chalicelib.domain.scanning.node_reports import NetworkReport
from chalicelib.domain.scanning.ticks import Busy, TickLease
from chalicelib.domain.screening.grey_list import GreyListEntry
from chalicelib.domain.transactions.node_silence import NodeSilence
from chalicelib.domain.transactions.rounds import AskingRound
from chalicelib.domain.transactions.sightings import Sighting
from chalicelib.domain.treasury.collections import Collecting, Collection, Distribution
from chalicelib.domain.treasury.consolidation_fees import ConsolidationFees
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint
from chalicelib.domain.webhooks.leases import SweepCursor, Turn
from chalicelib.domain.webhooks.redelivery import LatestRedelivery, RedeliveryJob
from chalicelib.domain.withdrawals.batches import WithdrawalBatch
from chalicelib.domain.withdrawals.payout_line import PayoutLine
from chalicelib.domain.withdrawals.slot_shortages import SlotShortage
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, NonceUse, Withdrawal
from chalicelib.domain.work import Command, OutboxRow, Work, is_one_item, one_item_work, outbox_work, time_lane
from chalicelib.usecases.ports.changes import (
    MOST_ITEMS,
    Absent,
    Add,
    Beside,
    Change,
    Close,
    Conflict,
    Delete,
    Emit,
    Open,
    Save,
    Still,
    Take,
)
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import EVERYWHERE, Page, Span

KEYS: dict[type, tuple[str, ...]] = {
    WebhookEndpoint: ("tenant", "id"),
    Delivery: ("tenant", "id"),
    Turn: ("tenant", "endpoint_id"),
    RedeliveryJob: ("tenant", "id"),
    LatestRedelivery: ("tenant", "endpoint_id"),
    SweepCursor: ("id",),
    Withdrawal: ("tenant", "id"),
    WithdrawalBatch: ("tenant", "id"),
    PayoutLine: ("network",),
    SlotShortage: ("network", "asset"),
    ConsolidationFees: ("network",),
    PaymentSwitch: ("realm",),
    FeeQuote: ("network",),
    NodeSilence: ("network",),
    NetworkReport: ("network",),
    Suspension: ("tenant",),
    AskingRound: ("network", "kind"),
    Sighting: ("network", "subject"),
    EventRecord: ("tenant", "id"),
    OutboxRow: ("id",),
    Tally: ("tenant", "of"),
    Address: ("tenant", "id"),
    Watched: ("realm", "family", "address"),
    Wallet: ("network", "role"),
    RetiredWallet: ("network", "address"),
    NonceCounter: ("network", "wallet"),
    NonceUse: ("owner",),
    WalletBalance: ("network", "address", "asset"),
    GreyListEntry: ("realm", "network", "address"),
    Collection: ("id",),
    Collecting: ("network", "address"),
    Distribution: ("network", "address", "asset"),
    Move: ("network", "id"),
    CoinMove: ("network", "id"),
    Deposit: ("id",),
    LogClaim: ("network", "txid"),
    Invoice: ("tenant", "id"),
    Reconciled: ("network",),
    Cursor: ("network",),
    Busy: ("network",),
    TickLease: ("network",),
    ArchiveRound: ("realm",),
    ListedMerchant: ("id",),
    AskedCredits: ("network",),
}


class Records(dict[tuple[Any, ...], Any]):
    """Records by key, and which keys there are in each partition."""

    def __init__(self, records: Mapping[tuple[Any, ...], Any] = MappingProxyType({})) -> None:
        super().__init__()
        self.partitions: dict[tuple[Any, ...], set[str]] = defaultdict(set)
        self.update(records)

    def __setitem__(self, key: tuple[Any, ...], record: Any) -> None:
        super().__setitem__(key, record)
        self.partitions[key[:-1]].add(key[-1])

    def __delitem__(self, key: tuple[Any, ...]) -> None:
        super().__delitem__(key)
        self.partitions[key[:-1]].discard(key[-1])

    def update(self, records: Mapping[tuple[Any, ...], Any]) -> None:  # type: ignore[override]
        for key, record in records.items():
            self[key] = record

    def pop(self, key: tuple[Any, ...], default: Any = None) -> Any:
        found = self.get(key, default)
        if key in self:
            del self[key]
        return found


class Works(set[Work]):
    """Open work, in order in each lane: of those who do it, and of time."""

    def __init__(self, works: Iterable[Work] = ()) -> None:
        super().__init__()
        self.lanes: dict[tuple[str, str], list[tuple[str, str, Work]]] = defaultdict(list)
        self.times: dict[tuple[str, str], list[tuple[str, Work]]] = defaultdict(list)
        for work in works:
            self.add(work)

    def add(self, work: Work, by_time: bool = True) -> None:
        if work in self:
            return
        super().add(work)
        insort(self.lanes[work.kind, work.lane], (work.order, work.id, work))
        lane = time_lane(work) if by_time else None
        if lane is not None:
            insort(self.times[work.kind, lane], (f"{work.order}#{work.id}", work))

    def discard(self, work: Work) -> None:
        if work not in self:
            return
        super().discard(work)
        inside = self.lanes[work.kind, work.lane]
        del inside[bisect_left(inside, (work.order, work.id))]
        lane = time_lane(work)
        if lane is not None:
            by_time, entry = self.times[work.kind, lane], (f"{work.order}#{work.id}", work)
            if entry in by_time[(place := bisect_left(by_time, entry[:1])) : place + 1]:
                del by_time[place]

    def remove(self, work: Work) -> None:
        if work not in self:
            raise KeyError(work)
        self.discard(work)


class MemoryStore:
    def __init__(self) -> None:
        self._records = Records()
        self._work = Works()
        self.commits = 0

    @property
    def records(self) -> Records:
        return self._records

    @records.setter
    def records(self, records: Mapping[tuple[Any, ...], Any]) -> None:
        self._records = records if isinstance(records, Records) else Records(records)

    @property
    def work(self) -> Works:
        return self._work

    @work.setter
    def work(self, works: Iterable[Work]) -> None:
        self._work = works if isinstance(works, Works) else Works(works)

    def get(self, kind: type[Any], /, **key: str) -> Any:
        return _copied(self.records.get(self._key(kind, key)))

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
        known_only: bool = False,
        **partition: str,
    ) -> Page[Any]:
        wanted = (kind, *(partition[name] for name in KEYS[kind][:-1]))
        keys = sorted(self.records.partitions.get(wanted, ()), reverse=newest_first)
        keys = [key for key in keys if (span.low is None or key >= span.low) and (span.high is None or key <= span.high)]
        keys = [key for key in keys if after is None or (key < after if newest_first else key > after)]
        found = [_copied(self.records[*wanted, key]) for key in keys[:limit]]
        return Page(found, keys[limit - 1] if len(keys) > limit else None)

    def commit(self, changes: Sequence[Change], /) -> None:
        """All or nothing, every condition against what was there before; no item twice, ten at most, as DynamoDB has it."""
        items = [item for change in changes for item in self._items(change)]
        if len(set(items)) != len(items):
            raise ValueError("a transaction may not touch one item twice")
        if not 1 <= len(items) <= MOST_ITEMS:
            raise ValueError(f"{len(items)} items in a transaction")
        for change in changes:
            if not self._holds(change):
                raise Conflict(change)
        for change in changes:
            self._apply(change)
        self.commits += 1

    def put_all(self, records: Sequence[Any], /) -> None:
        for record in records:
            self.records[self._key_of(record)] = _copied(record)

    def remove(self, kind: type[Any], /, **key: str) -> bool:
        if kind is OutboxRow and is_one_item(key["id"]):
            self.work.discard(one_item_work(key["id"]))
        return self.records.pop(self._key(kind, key)) is not None

    def close_all(self, works: Sequence[Work], /) -> None:
        for work in works:
            self.work.discard(work)

    def open(self, work: Work, /) -> None:
        self.work.add(work)

    def close(self, work: Work, /) -> None:
        if work.kind == "outbox" and is_one_item(work.id):
            self.records.pop((OutboxRow, work.id))
        self.work.discard(work)

    def open_work(
        self, kind: str, lane: str, *, upto: str | None = None, after: Work | None = None, limit: int = 100
    ) -> list[Work]:
        there = self.work.lanes.get((kind, lane), [])
        first = 0 if after is None else bisect_right(there, (after.order, after.id, after))
        behind = len(there) if upto is None else bisect_left(there, (upto + "\0",))
        return [work for _, _, work in there[first : min(behind, first + limit)]]

    def work_by_time(self, kind: str, lane: str, /, *, limit: int, span: Span = EVERYWHERE, after: str | None = None) -> Page[Work]:
        there = self.work.times.get((kind, lane), [])
        first = 0 if span.low is None else bisect_left(there, (span.low,))
        if after is not None:
            first = max(first, bisect_left(there, (after + "\0",)))
        behind = len(there) if span.high is None else bisect_left(there, (span.high + "\0",))
        inside = there[first : min(behind, first + limit)]
        return Page([work for _, work in inside], inside[-1][0] if behind > first + limit else None)

    def reserve_indexes(self, pool: str, count: int) -> Any:
        raise AssertionError("not for webhooks")

    def catalogue(self, realm: str, fresh: bool = False) -> Any:
        raise AssertionError("not for webhooks")

    def all(self, kind: type[Any]) -> list[Any]:
        """Every record of a kind, in the order of keys."""
        return [self.records[key] for key in sorted((k for k in self.records if k[0] is kind), key=str)]

    def _key(self, kind: type[Any], fields: Mapping[str, str]) -> tuple[Any, ...]:
        names = KEYS[kind]
        if len(fields) != len(names) or any(name not in fields for name in names):
            raise ValueError(f"{kind.__name__} has the key {names}, not {tuple(fields)}")
        return (kind, *[fields[name] for name in names])

    def _key_of(self, record: Any) -> tuple[Any, ...]:
        kind = type(record)
        if isinstance(record, Wallet):
            return (kind, record.network, record.place)
        return (kind, *[getattr(record, name) for name in KEYS[kind]])

    def _items(self, change: Change) -> list[Any]:
        match change:
            case Save(record) | Still(record):
                return [self._key_of(record)]
            case Beside(network, address, asset):
                return [self._key(WalletBalance, {"network": network, "address": address, "asset": asset})]
            case Delete(kind, key) | Add(kind, key) | Take(kind, key) | Absent(kind, key):
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
            case Absent(kind, key):
                return self._key(kind, key) not in self.records
            case Still(record):
                stored = self.records.get(self._key_of(record))
                return stored is not None and stored.version == record.version
            case Absent(kind, key):
                return self._key(kind, key) not in self.records
            case Take(kind, key, name, count):
                there = self.records.get(self._key(kind, key))
                return there is not None and getattr(there, name) >= count
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
                self.records[self._key_of(record)] = _copied(record)
            case Add(kind, key, deltas):
                found = self.records.get(self._key(kind, key)) or kind(**key)
                sums = {name: getattr(found, name) + delta for name, delta in deltas.items()}
                self.records[self._key(kind, key)] = replace(found, **sums)
            case Take(kind, key, name, count):
                found = self.records[self._key(kind, key)]
                self.records[self._key(kind, key)] = replace(found, **{name: getattr(found, name) - count})
            case Delete(kind, key):
                self.records.pop(self._key(kind, key), None)
            case Emit(row):
                self.records[self._key_of(row)] = _copied(row)
                self.work.add(outbox_work(row))
            case Open(work, by_time):
                self.work.add(work, by_time)
            case Close(work):
                self.work.remove(work)
                self.close(work)


def _copied(record: Any) -> Any:
    """With a copy of the insides that could be changed: what an event tells. All else is frozen, and may be shared."""
    if not isinstance(record, OutboxRow):
        return record
    return replace(record, events=tuple(replace(event, data=copy.deepcopy(event.data)) for event in record.events))


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

    def kick(self, outbox_id: str, group: str | None = None) -> None:
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
