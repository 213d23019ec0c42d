"""One list of changes as one DynamoDB transaction (TransactWriteItems).

docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pynamodb.exceptions import TransactWriteError
from pynamodb.expressions.operand import Path
from pynamodb.transactions import TransactWrite

from chalicelib.domain.chain import BlockDeposits, ScanEpoch
from chalicelib.domain.ids import AssetId, NetworkId, asset_parts
from chalicelib.domain.ledger import Book, WalletBalance
from chalicelib.domain.merchants.activity import Activity
from chalicelib.domain.work import Work, is_one_item, outbox_work, with_events_apart
from chalicelib.store import access, alone, unheard
from chalicelib.store.models import NEEDS, Models, WorkItem
from chalicelib.store.schema import key_of, where_is, work_by_time, work_key
from chalicelib.store.unheard import BUSY_SECONDS, LISTENS_SECONDS, Heard
from chalicelib.usecases.ports.changes import (
    MOST_ITEMS,
    OUTBOX_ITEMS,
    Absent,
    Add,
    AtEpoch,
    AtPart,
    Beside,
    Change,
    Close,
    Conflict,
    Delete,
    DeleteEmpty,
    Dropped,
    Emit,
    Enforce,
    Name,
    Open,
    Post,
    Remove,
    Save,
    Still,
    Stub,
    Take,
)
from chalicelib.usecases.ports.failures import Unstorable


class Busy(Exception):
    """Another transaction changes the same items; nothing is known about the conditions."""


# A transaction that is not valid, or too large, is refused as ValidationException, or cancelled with the reason ValidationError:
# docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
_BUSY = ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded")


class _Plan:
    """The transaction's items, each with the change that asked for it.

    DynamoDB answers with one reason per item, in the order sent, and pynamodb sends checks, deletes, puts, updates in that
    order: `owners` keeps the same four groups.
    """

    def __init__(self, models: Models, token: str, direct: Emit | None, now_ms: int, *, apart: bool) -> None:
        self.models, self.direct, self.now_ms, self.apart = models, direct, now_ms, apart
        self.events = 0
        """Items of events beside their outbox rows."""
        self.transaction = TransactWrite(connection=models.connection, client_request_token=token)
        self.owners: tuple[list[Change], list[Change], list[Change], list[Change]] = ([], [], [], [])

    def check(self, change: Change, model: Any, key: tuple[str, str], condition: Any) -> None:
        self.transaction.condition_check(model, *key, condition=condition)
        self.owners[0].append(change)

    def delete(self, change: Change, item: Any, condition: Any = None) -> None:
        self.transaction.delete(item, condition=condition)
        self.owners[1].append(change)

    def put(self, change: Change, item: Any, condition: Any) -> None:
        self.transaction.save(item, condition=condition)
        self.owners[2].append(change)

    def add(self, change: Change, item: Any, actions: list[Any], condition: Any = None) -> None:
        self.transaction.update(item, actions=actions, condition=condition)
        self.owners[3].append(change)

    def raw(self, change: Change, group: Literal["delete", "put", "update"], request: dict[str, Any]) -> None:
        """An item that has no model."""
        asked = self.transaction
        {"delete": asked._delete_items, "put": asked._put_items, "update": asked._update_items}[group].append(request)
        self.owners[{"delete": 1, "put": 2, "update": 3}[group]].append(change)

    def run(self) -> None:
        try:
            self.transaction._commit()
        except TransactWriteError as error:
            reasons = error.cancellation_reasons
            if error.cause_response_code == "ValidationException" or any(r and r.code == "ValidationError" for r in reasons or ()):
                raise Unstorable(" ".join(str(error.cause_response_message).split())[:300]) from error
            if error.cause_response_code != "TransactionCanceledException" or not reasons:
                if error.cause_response_code in ("TransactionInProgressException", "TransactionConflictException"):
                    raise Busy from error
                raise
            owners = [change for group in self.owners for change in group]
            codes = [(reason.code if reason else None, change) for reason, change in zip(reasons, owners, strict=True)]
            failed = [change for code, change in codes if code is not None and code.startswith("ConditionalCheckFailed")]
            for change in failed:
                if change is not self.direct:
                    raise Conflict(change) from error
            if failed:
                raise Heard(LISTENS_SECONDS) from error
            busy = [change for code, change in codes if code in _BUSY]
            if busy:
                raise (Heard(BUSY_SECONDS) if all(change is self.direct for change in busy) else Busy) from error
            raise


def write(
    models: Models, changes: Sequence[Change], token: str, direct: Emit | None = None, now_ms: int = 0, *, apart: bool = True
) -> None:
    """Commit `changes`. Raises Conflict with the first change whose condition failed, TooNew for what only a newer version of the
    service understands, Busy, Unstorable, pynamodb's and botocore's errors.

    `token` makes a retry safe for ten minutes: what was committed under it already is answered as done (ClientRequestToken). The
    events of `direct` are stored without an outbox row; raises Heard where they must not be. `now_ms`: the machines'
    time. `apart`: few events lie beside outbox rows of one item, where there is room.
    """
    _demand_known(models, changes)
    plan = _Plan(models, token, direct, now_ms, apart=apart)
    wallets: dict[_Wallet, _Moved] = {}
    for change in added_up(changes):
        _put_in(plan, change)
        match change:
            case Post():
                _posted(wallets, change)
            case Beside(network, address, asset, pending, held, small, aside, only_if, unused):
                moved = wallets.setdefault((network, address, asset), _Moved(change))
                moved.only_if, moved.unused = only_if or moved.only_if, unused or moved.unused
                moved.pending, moved.held = moved.pending + pending, moved.held + held
                moved.small, moved.aside = moved.small + small, moved.aside + aside
    for place, moved in sorted(wallets.items(), key=lambda entry: entry[0]):
        _move_wallet(plan, place, moved)
    owners = [change for group in plan.owners for change in group]
    counted = sum(_counts(change) and change is not direct for change in owners) - plan.events
    if counted + (0 if direct is None else OUTBOX_ITEMS) > MOST_ITEMS:
        raise ValueError(f"a transaction has at most {MOST_ITEMS} items")
    if len(owners) > unheard.MOST_DIRECT and direct is not None:
        raise Heard(0)
    if len(owners) > unheard.MOST_DIRECT and plan.events:
        return write(models, changes, token, now_ms=now_ms, apart=False)
    try:
        if not alone.saved(plan):
            plan.run()
    except alone.Occupied as error:
        raise Busy from error


def _demand_known(models: Models, changes: Iterable[Change]) -> None:
    """Raises TooNew where a record in a state that only a newer version knows would be replaced or removed, or its work closed.
    One that is saved over its version before: `Models.over`."""
    for change in changes:
        match change:
            case Close(work):
                models.demand_work(work)
            case Delete(kind, key):
                models.demand_place(kind, *key_of(kind, dict(key)))
            case Save(record) | Stub(record) | Remove(record) if not isinstance(change, Save) or change.anew:
                where = where_is(type(record))
                models.demand_place(type(record), where.pk(record), where.sk(record))


def added_up(changes: Iterable[Change]) -> list[Change]:
    """`changes` with one `Add` for each record: a transaction may touch an item only once."""
    kept: list[Change] = []
    places: dict[tuple[str, str, str], int] = {}
    for change in changes:
        if not isinstance(change, Add):
            kept.append(change)
            continue
        place = (change.kind.__name__, *key_of(change.kind, dict(change.key)))
        if place not in places:
            places[place] = len(kept)
            kept.append(change)
            continue
        had = kept[places[place]]
        sums = Counter(had.deltas) if isinstance(had, Add) else Counter()
        sums.update(change.deltas)
        kept[places[place]] = Add(change.kind, change.key, sums)
    return kept


def _counts(change: Change) -> bool:
    """Whether an item is one of those that a use case may have."""
    return not (isinstance(change, Save) and type(change.record) is Activity)


def _put_in(plan: _Plan, change: Change) -> None:
    """The items of one change, but those of wallets: several changes may be about one wallet, and it is written once."""
    models = plan.models
    match change:
        case Save():
            _save(plan, change)
        case Add() | Take():
            _add(plan, change)
        case Delete() | Remove():
            _delete(plan, change)
        case Post(entry):
            item = models.item(entry)
            plan.put(change, item, type(item).pk.does_not_exist())
        case Emit():
            _emit(plan, change)
        case Open(work, by_time):
            plan.put(change, work_item(models, work, by_time=by_time), models.work.pk.does_not_exist())
        case Close(work):
            obligation = models.work(*work_key(work))
            plan.delete(change, obligation, models.work.pk.exists())
        case AtEpoch() | AtPart() | Dropped() | Still() | Absent():
            _check_in(plan, change)
        case Enforce() | Stub() | Name() | DeleteEmpty():
            _raw_in(plan, change)


def _raw_in(plan: _Plan, change: Enforce | Stub | Name | DeleteEmpty) -> None:
    """The items that have no model."""
    if isinstance(change, Enforce):
        plan.raw(change, *access.enforcing(plan.models.table("tenants"), change.key))
        return
    from chalicelib.store import stubs  # of what leaves for the archive: one function alone needs it

    match change:
        case Stub():
            plan.raw(change, "put", stubs.stub_put(plan.models, change))
        case Name():
            plan.raw(change, "put", stubs.name_put(plan.models, change))
        case DeleteEmpty() if not plan.models.has_unknown(change.balance):  # which may say of money
            plan.raw(change, "delete", stubs.empty_delete(plan.models, change))


def _check_in(plan: _Plan, change: AtEpoch | AtPart | Dropped | Still | Absent) -> None:
    """The items of a change that writes nothing: the others commit only while what it says is so."""
    models = plan.models
    match change:
        case AtEpoch(network, epoch):
            model: Any = models.of(ScanEpoch)
            plan.check(change, model, key_of(ScanEpoch, {"network": network}), model.f_epoch == epoch)
        case AtPart(network, hash_, part, epoch):
            # A condition costs what the item costs, and a part is small. A version without epochs leaves both out.
            listed: Any = models.of(BlockDeposits)
            stands = listed.f_dropped.does_not_exist() | (listed.f_dropped == False)  # noqa: E712 - a condition, not a test
            known = listed.f_epoch.does_not_exist() | (listed.f_epoch <= epoch)
            key = key_of(BlockDeposits, {"network": network, "hash": hash_, "part": str(part)})
            plan.check(change, listed, key, listed.pk.exists() & stands & known)
        case Dropped(network, hash_):
            first: Any = models.of(BlockDeposits)
            gone = first.f_dropped == True  # noqa: E712 - a condition, not a test
            plan.check(change, first, key_of(BlockDeposits, {"network": network, "hash": hash_}), gone)
        case Still(record):
            kind_of: Any = models.of(type(record))
            where = where_is(type(record))
            plan.check(change, kind_of, (where.pk(record), where.sk(record)), kind_of.f_version == record.version)
        case Absent(kind, key):
            absent = models.of(kind)
            plan.check(change, absent, key_of(kind, dict(key)), absent.pk.does_not_exist())


def _save(plan: _Plan, change: Save) -> None:
    record = change.record
    if record.version > 1 and not change.anew:
        plan.raw(change, "update", plan.models.over(record))
        return
    item: Any = plan.models.item(record)
    model: Any = type(item)
    plan.put(change, item, model.pk.does_not_exist() if record.version == 1 else model.f_version == record.version - 1)


def _delete(plan: _Plan, change: Delete | Remove) -> None:
    if isinstance(change, Delete):
        kind = change.kind
        plan.delete(change, plan.models.of(kind)(*key_of(kind, dict(change.key))), known_form(kind))
        return
    record, kind = change.record, type(change.record)
    model: Any = plan.models.of(kind)
    where = where_is(kind)
    plan.delete(change, model(where.pk(record), where.sk(record)), (model.f_version == record.version) & known_form(kind))


def known_form(kind: type) -> Any:
    """The condition that an item of this kind, if it is there, has a form that this version understands. It costs nothing more.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html#write-operation-consumption"""
    form = Path([NEEDS])
    absent = form.does_not_exist()
    known = where_is(kind).understands
    return absent | (form <= known) if known else absent


def _add(plan: _Plan, change: Add | Take) -> None:
    model: Any = plan.models.of(change.kind)
    item = model(*key_of(change.kind, dict(change.key)))
    if isinstance(change, Take):
        number = getattr(model, f"f_{change.name}")
        plan.add(change, item, [number.add(-change.count)], number >= change.count)
        return
    sums = [getattr(model, f"f_{name}").add(delta) for name, delta in change.deltas.items()]
    plan.add(change, item, [*sums, *(getattr(model, f"f_{name}").set(value) for name, value in change.key.items())])


def _emit(plan: _Plan, change: Emit) -> None:
    if change is plan.direct:
        unheard.put_in(plan, change, _open, plan.now_ms)
        return
    row, one = change.row, is_one_item(change.row.id)
    if one and plan.apart and len(row.events) <= unheard.FEW_EVENTS:
        row, before = with_events_apart(row), len(plan.owners[2])
        unheard.put_events(plan, change, plan.now_ms)
        plan.events += len(plan.owners[2]) - before
    item = plan.models.item(row)
    plan.put(change, item, type(item).pk.does_not_exist())
    if not one:
        _open(plan, change, outbox_work(row))


def _open(plan: _Plan, change: Change, work: Any, *, anew: bool = True) -> None:
    """With `anew` only where it is not open yet."""
    plan.put(change, work_item(plan.models, work), plan.models.work.pk.does_not_exist() if anew else None)


def work_item(models: Models, work: Work, *, by_time: bool = True) -> WorkItem:
    """The item of an open obligation; with `by_time` it is in the index of time, where its kind is."""
    at = work_by_time(work) if by_time else None
    pk, sk = work_key(work)
    return models.work(pk, sk, work_kind=work.kind, lane=work.lane, order=work.order or None, work_id=work.id, time_pk=at)


_Wallet = tuple[NetworkId, str, AssetId]


@dataclass
class _Moved:
    """How one wallet's balance changes, and the first change that asked for it: a transaction may touch an item only once."""

    owner: Change
    units: int = 0
    pending: int = 0
    held: int = 0
    small: int = 0
    aside: int = 0
    only_if: tuple[int, int] | None = None
    unused: bool = False


def _posted(wallets: dict[_Wallet, _Moved], change: Post) -> None:
    for (account, asset), units in change.entry.deltas(Book.WHERE).items():
        if account.startswith("wallet:"):
            place = (asset_parts(asset)[0], account.rsplit(":", 1)[1], asset)
            wallets.setdefault(place, _Moved(change)).units += units


def _move_wallet(plan: _Plan, place: _Wallet, moved: _Moved) -> None:
    """The wallets' materialised balances follow the journal by ADD: many entries may touch one wallet at once."""
    model: Any = plan.models.of(WalletBalance)
    where = where_is(WalletBalance)
    network, address, asset = place
    record = WalletBalance(network, address, asset)
    actions = [
        model.f_units.add(moved.units),
        model.f_network.set(network),
        model.f_address.set(address),
        model.f_asset.set(asset),
    ]
    if moved.pending:
        actions.append(model.f_pending.add(moved.pending))
    if moved.held:
        actions.append(model.f_held.add(moved.held))
    if moved.small:
        actions.append(model.f_small.add(moved.small))
    if moved.aside:
        actions.append(model.f_aside.add(moved.aside))
    condition = None
    if moved.only_if is not None:
        units, pending = moved.only_if
        condition = _is(model.f_units, units) & _is(model.f_pending, pending)
    if moved.unused:
        condition = model.pk.does_not_exist()  # which says more than `only_if` could
    plan.add(moved.owner, model(where.pk(record), where.sk(record)), actions, condition)


def _is(attribute: Any, value: int) -> Any:
    """An attribute that nobody has moved yet is not there, and means nothing of it."""
    return (attribute == value) | attribute.does_not_exist() if value == 0 else attribute == value
