"""Groups of deposits: payments of one merchant and coin in one block, recorded or credited in one transaction.

Each keeps its own record, obligation, wallet row and journal entry (money rule 3). The balance, the totals and the outbox row are
written once, with one `balance.updated`. The members rest on one part of the block's list.

Only plain payments are members: known to nobody yet, or pending; in no doubt; far from every bound of sums; alone for their invoice
in the group. What is not plain is left to the caller, who records or credits it by itself, and so is the whole group where another
worker changed one of its records meanwhile. So a group commits what its members would have committed one after the other, or
nothing, and doing it twice changes nothing: each member's version and obligation forbid it.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_work
from chalicelib.domain.deposits.sums import MATTERS, NEAR, seen_sums
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.totals import InvoiceTotals
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.scanning.internal_transfers import BalanceBooking
from chalicelib.usecases.base.awaited_deposits import Owned, awaiting, balance_keys, owned_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import views_now
from chalicelib.usecases.deposits.crediting import DepositCrediting, Step
from chalicelib.usecases.deposits.first_sight import FirstSight, Scanned
from chalicelib.usecases.deposits.posting import DepositPostings
from chalicelib.usecases.deposits.recorded_before import not_booked_since
from chalicelib.usecases.ports.changes import (
    MOST_ITEMS,
    OUTBOX_ITEMS,
    Absent,
    Add,
    AtEpoch,
    AtPart,
    Change,
    Close,
    Conflict,
    Dropped,
    Open,
    Save,
)
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unstorable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.deposits import DepositScreening

log = logging.getLogger(__name__)

_TRIES = 4
MOST = 12
"""Members of a group: five items of each, and the shared ones, are fewer than `MOST_ITEMS`. As many as a part of a list has."""
_Key = tuple[type[Any], dict[str, str]]


class Member(NamedTuple):
    """A proven movement to a merchant, the id of its deposit, and whose it is."""

    transfer: Transfer
    id: str
    owner: Watched


class _Facts(NamedTuple):
    """The records that members rest on, in the order of the members."""

    invoices: list[Invoice | None]
    doubts: list[bool]
    """Whether a payment may have to be held, or is not alone for its invoice."""
    rest: list[Any]


class Prepared(NamedTuple):
    """A group that is about to be credited: its events so far, the deposits that can be credited, the steps of those that are
    plain, and what their merchant owns, where that was read."""

    news: News
    ready: Sequence[Deposit]
    steps: Sequence[Step]
    owned: Owned | None = None


class DepositGroups:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        rates: RatesOf,
        screening: DepositScreening,
        book: DepositPostings,
        sight: FirstSight,
        crediting: DepositCrediting,
    ) -> None:
        self._store, self._clock, self._rates = store, clock, rates
        self._screening, self._book, self._sight, self._crediting = screening, book, sight, crediting

    def detect(
        self,
        network: Network,
        coin: Coin,
        scanned: Scanned,
        members: Sequence[Member],
        begins: Sequence[Change] = (),
        *,
        new: bool = False,
    ) -> Sequence[Member]:
        """Record movements of `coin` to one merchant, proven to have happened in the block of `scanned`, in one transaction; those
        that have to be recorded one by one, all of them where another worker was at a record of theirs.

        `new`: none of their deposits was known a moment ago; one that is by now lets nothing be committed. With `begins`, the
        changes that begin the block's list of these members, which are new, it is all of them, be it one, or none. Raises Conflict
        where a reorganisation dropped the block (`AtPart`), or was followed (`AtEpoch`), Unavailable.
        """
        keys: list[_Key] = [] if begins or new else [(Deposit, {"id": member.id}) for member in members]
        known = self._store.get_many(keys) if keys else [None] * len(members)
        seen = [
            replace(self._sight.seen(network, coin, m.transfer, m.owner, scanned), id=m.id)
            for m, deposit in zip(members, known, strict=True)
            if deposit is None
        ]
        may_be_booked = network.family == "evm" and not network.simulated and coin.contract is None
        places = [m.transfer.recipient for m in members if may_be_booked]
        booked: list[_Key] = [(BalanceBooking, {"network": network.id, "address": place}) for place in places]
        lies: list[_Key] = [(WalletBalance, {"network": network.id, "address": p, "asset": coin.asset}) for p in places]
        facts = self._facts(network, seen, [*booked, *lies])
        bookings = dict(zip(places, facts.rest, strict=False))
        wallets = dict(zip(places, facts.rest[len(places) :], strict=True))
        news = News(self._clock.now_ms())
        least = self._screening.minimum(network, coin)
        changes: list[Change] = []
        done: set[str] = set()
        for deposit, invoice, doubt in zip(seen, *facts[:2], strict=True):
            transfer = next(m.transfer for m in members if m.id == deposit.id)
            fits_in = deposit.amount >= least and bookings.get(transfer.recipient) is None and _plain(deposit, invoice, doubt)
            valued, waits = self._sight.valued(network, deposit, invoice, news.at) if fits_in else (deposit, [])
            if not fits_in or waits or deposit.tenant is None:
                continue
            told, moved = self._sight.told(news, network, valued, invoice, scanned.height)
            changes += [Save(told), Open(deposit_work(told)), *moved, awaiting(deposit.tenant, told, told.amount)]
            changes.append(self._book.beside(network, told, pending=told.amount))
            if may_be_booked:
                changes.append(not_booked_since(network, coin.asset, transfer.recipient, wallets[transfer.recipient]))
            done.add(deposit.id)
        rests_on = begins or [scanned.stands(network)]
        if len(done) < (len(members) if begins else 2) or not self._committed([*rests_on, *changes, *news.emit()]):
            return members
        return [member for member in members if member.id not in done]

    def confirm(
        self,
        network: Network,
        keys: Sequence[str],
        block_hash: str,
        tip: int,
        epoch: int,
        patience: int | None = None,
        prepared: Prepared | None = None,
    ) -> Sequence[str] | None:
        """Credit pending deposits of one merchant, coin and part of a block in one transaction, as `DepositCrediting.confirm` does
        each; those that have to be credited one by one, all of them where another worker was at a record of theirs. Where that is
        the balance alone, which every group of the merchant and coin writes, it is tried again together. With `patience` only so
        often, and None where another worker was at the balance each time: it may well be crediting the same.

        `prepared` is what `prepare` found of them a moment ago. Raises Conflict where a reorganisation dropped the block
        (`AtPart`), Unavailable.
        """
        for attempt in range(patience or _TRIES):
            if attempt:
                time.sleep(random.uniform(0, 0.05))  # noqa: S311 - spreads retries, guards nothing
            ready = (prepared if not attempt else None) or self.prepare(network, keys, block_hash, tip, epoch, ahead=False)
            left = self._confirmed(network, keys, ready)
            if left is not None:
                return left
        return None if patience else keys

    def prepare(
        self, network: Network, keys: Sequence[str], block_hash: str, tip: int, epoch: int, *, ahead: bool = True
    ) -> Prepared:
        """What `confirm` decides by the deposits alone. With `ahead` another group of the merchant and coin is being committed: the
        balance is read behind it. Raises Unavailable."""
        found = self._store.get_many([(Deposit, {"id": key}) for key in keys])
        ready = [d for d in found if d is not None and d.status == "pending" and d.block_hash == block_hash]
        news = News(self._clock.now_ms())
        if len(ready) < 2 or ready[0].tenant is None:
            return Prepared(news, ready, [])
        tenant, asset = ready[0].tenant, ready[0].asset
        facts = self._facts(network, ready, [] if ahead else balance_keys(tenant, asset))
        steps = [
            self._crediting.step(news, network, before, before.flags, invoice, tip, epoch)
            for before, invoice, doubt in zip(ready, *facts[:2], strict=True)
            if _plain(before, invoice, doubt)
        ]
        return Prepared(news, ready, steps, None if ahead else owned_of(tenant, asset, facts.rest))

    def _confirmed(self, network: Network, keys: Sequence[str], prepared: Prepared) -> Sequence[str] | None:
        """One try; None where another worker changed the balance meanwhile."""
        news, ready, steps, owned = prepared
        if len(steps) < 2 or ready[0].tenant is None:
            return [deposit.id for deposit in ready]
        tenant, asset = ready[0].tenant, ready[0].asset
        owned = owned or owned_of(tenant, asset, self._store.get_many(balance_keys(tenant, asset)))
        if owned.total + sum(deposit.amount for deposit in ready) >= NEAR:
            return keys
        views = views_now(self._store.catalogue(network.realm), self._rates, news.at)
        money = self._book.all_credited(news, tenant, [(step.after, step.entry) for step in steps], views, owned)
        changes = [change for step in steps for change in step.changes]
        committed = self._committed([*changes, *money, *news.emit()])
        if not committed:
            return None if committed is None else keys
        done = {step.after.id for step in steps}
        return [key for key in keys if key not in done]

    def _facts(self, network: Network, deposits: Sequence[Deposit], rest: Sequence[_Key]) -> _Facts:
        """One read."""
        wanted: dict[tuple[int, str], _Key] = {}
        for number, deposit in enumerate(deposits):
            if deposit.invoice_id is not None:
                wanted[number, "invoice"] = (Invoice, {"tenant": str(deposit.tenant), "id": deposit.invoice_id})
            if deposit.sender:
                wanted[number, "grey"] = self._screening.grey_key(network, deposit)
        keys = [*wanted.values(), *rest]
        found = self._store.get_many(keys) if keys else []
        by_name = dict(zip(wanted, found, strict=False))
        invoices = [by_name.get((number, "invoice")) for number in range(len(deposits))]
        paid_by = Counter(deposit.invoice_id for deposit in deposits)
        # Of two payments of one invoice the second changes what the first made of it.
        doubts = [
            by_name.get((number, "grey")) is not None or (deposit.invoice_id is not None and paid_by[deposit.invoice_id] > 1)
            for number, deposit in enumerate(deposits)
        ]
        return _Facts(invoices, doubts, found[len(wanted) :])

    def _committed(self, changes: Sequence[Change]) -> bool | None:
        """Whether all of it is stored; None where another worker was first at the balance, False where at another record, or where
        it is more than a transaction takes, in items or in bytes. Raises Conflict where the block is gone."""
        once = _once(changes)
        if len(once) - 1 + OUTBOX_ITEMS > MOST_ITEMS:  # every other change is one item at most
            return False
        try:
            self._store.commit(once)
        except Unstorable as error:
            log.info("%d payments are taken one by one: %s", sum(isinstance(each, Close | Open) for each in once), error)
            return False
        except Conflict as conflict:
            if isinstance(conflict.change, AtEpoch | AtPart | Dropped):
                raise
            at_balance = conflict.change is None or (isinstance(conflict.change, Save) and type(conflict.change.record) is Balance)
            return None if at_balance else False
        return True


def grouped(members: Sequence[Member], parts: Mapping[str, int] | None = None) -> list[list[Member]]:
    """`members` in groups: each of one merchant and coin, of one part of the block's list, and with one payment for each address.
    The first of each group keep their order, so that the first payment of every address still comes before the second of any."""
    rounds: Counter[tuple[object, ...]] = Counter()
    open_: dict[tuple[object, ...], list[Member]] = {}
    groups: list[list[Member]] = []
    for member in members:
        whose = (member.owner.tenant, member.transfer.contract, None if parts is None else parts[member.id])
        address = (*whose, member.transfer.recipient)
        kind = (*whose, rounds[address])
        rounds[address] += 1
        if kind not in open_ or len(open_[kind]) == MOST:
            open_[kind] = []
            groups.append(open_[kind])
        open_[kind].append(member)
    return groups


def _plain(deposit: Deposit, invoice: Invoice | None, in_doubt: bool) -> bool:
    """Whether its transaction has only what every member's has. `in_doubt`: it may have to be held, or is not alone."""
    if deposit.tenant is None or in_doubt or deposit.suspect or deposit.unpriced or deposit.amount >= MATTERS:
        return False
    if deposit.below_minimum or deposit.set_aside or deposit.returned or deposit.part is None:
        return False
    if invoice is None:
        return deposit.invoice_id is None
    return not invoice.without_piece and max([0, *seen_sums(deposit, None, invoice, None)]) < NEAR


def _once(changes: Iterable[Change]) -> list[Change]:
    """`changes` with each condition once, and one shard for the totals of a merchant and coin: only the sum of shards counts."""
    kept: list[Change] = []
    conditions: set[str] = set()
    totals: dict[tuple[str, str], tuple[Mapping[str, str], Counter[str]]] = {}
    for change in changes:
        if isinstance(change, AtPart | Absent):
            if repr(change) in conditions:
                continue
            conditions.add(repr(change))
        elif isinstance(change, Add) and change.kind is InvoiceTotals:
            _, sums = totals.setdefault((change.key["tenant"], change.key["asset"]), (change.key, Counter()))
            sums.update(change.deltas)
            continue
        kept.append(change)
    return [*kept, *(Add(InvoiceTotals, key, sums) for key, sums in totals.values())]
