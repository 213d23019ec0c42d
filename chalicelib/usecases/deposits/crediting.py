"""Credits deposits whose block is deep enough, and reverses those whose block fell out of the chain. Each is one transaction."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, NamedTuple

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.deposits.deposits import GREY_LISTED, HELD, SET_ASIDE, Deposit, deposit_work
from chalicelib.domain.deposits.sums import fits, posted_sums
from chalicelib.domain.ids import asset_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.awaited_deposits import Owned, awaiting, balance_keys, owned_of
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import Views, views_now
from chalicelib.usecases.deposits.counted_rates import no_longer_unpriced
from chalicelib.usecases.deposits.posting import DepositPostings
from chalicelib.usecases.invoices.completed_early import ended_early, open_again
from chalicelib.usecases.invoices.pieces_again import take_again
from chalicelib.usecases.invoices.status import changed, paid
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import AtEpoch, AtPart, Change, Close, Dropped, Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.deposits import DepositScreening
from chalicelib.usecases.wallets.sweep_candidates import hint_for
from chalicelib.usecases.wallets.utxos import confirmed, taken_back

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """A deposit as it is credited, its posting, and the changes of its transaction; the merchant's balance comes on top."""

    after: Deposit
    entry: JournalEntry
    changes: list[Change]


class _Facts(NamedTuple):
    """A deposit's flags as its sender stands on the grey list now, what its merchant owns of its coin, and its invoice."""

    flags: tuple[str, ...]
    owned: Owned | None
    invoice: Invoice | None


class DepositCrediting:
    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        rates: RatesOf,
        screening: DepositScreening,
        book: DepositPostings,
    ) -> None:
        self._store, self._rules, self._clock, self._rates = store, rules, clock, rates
        self._screening, self._book = screening, book

    def confirm(self, network: Network, key: str, block_hash: str, tip: int, epoch: int) -> None:
        """Credit a pending deposit whose block is final. The caller has checked that block, and no other, against the node.

        Commits only while no reorganisation after `epoch` has dropped the block. Raises Conflict, Unavailable.
        """

        def decide() -> None:
            before = self._store.get(Deposit, id=key)
            if before is None or before.status != "pending" or before.block_hash != block_hash:
                return
            now = self._clock.now_ms()
            news = News(now)
            flags, owned, invoice = self._facts(network, before)
            # There was room when it was seen; what came since by another way may have taken it.
            there = posted_sums(before, None if owned is None else owned.balance, invoice, self._book.wallet(network, before))
            if before.set_aside or not fits(before.amount, there):
                self._confirm_aside(network, before, flags, tip, _rests(before, epoch), now)
                return
            if replace(before, flags=flags).suspect and before.tenant is not None and not before.below_minimum:
                flags = (*flags, HELD)
            step = self.step(news, network, before, flags, invoice, tip, epoch)
            changes = [*step.changes, *confirmed(self._store, network, step.after)]
            if step.after.tenant is not None:
                views = views_now(self._store.catalogue(network.realm), self._rates, now)
                changes += self._book.credited(news, step.after.tenant, step.after, step.entry, views, -before.amount, owned)
            self._store.commit([*changes, *news.emit()])
            take_again(self._store, invoice, now, tip)

        until_settled(decide)

    def _facts(self, network: Network, before: Deposit) -> _Facts:
        """What crediting a deposit rests on, in one read. Without the stock of its invoice's link: the transaction is kept to
        `FEW_ITEMS`, so that it is tested on DynamoDB Local."""
        wanted: dict[str, tuple[type[Any], dict[str, str]]] = {}
        tenant, flags = before.tenant, before.flags
        if before.sender and GREY_LISTED not in flags:
            wanted["grey"] = self._screening.grey_key(network, before)
        if tenant is not None and before.invoice_id is not None:
            wanted["invoice"] = (Invoice, {"tenant": tenant, "id": before.invoice_id})
        balance = [] if tenant is None or before.below_minimum else balance_keys(tenant, before.asset)
        keys = [*wanted.values(), *balance]
        found = self._store.get_many(keys) if keys else []
        named = dict(zip(wanted, found, strict=False))
        flags = (*flags, GREY_LISTED) if named.get("grey") is not None else flags
        owned = owned_of(tenant, before.asset, found[len(wanted) :]) if tenant is not None and balance else None
        return _Facts(flags, owned, named.get("invoice"))

    def step(
        self, news: News, network: Network, before: Deposit, flags: tuple[str, ...], invoice: Invoice | None, tip: int, epoch: int
    ) -> Step:
        """A pending deposit as it is credited with `flags`; all but the merchant's balance."""
        after = replace(next_version(before), status="confirmed", confirmed_at=news.at, flags=flags)
        place, owner = self._book.place(network, after), self._book.owner(after)
        entry = ledger.deposit_credited(after.id, after.round, news.at, place, owner, Amount(after.asset, after.amount))
        held, small = after.amount if after.held else 0, after.amount if after.small else 0
        beside = self._book.beside(network, after, pending=-after.amount, held=held, small=small)
        moved: list[Change] = []
        if after.tenant is not None:
            catalogue = self._store.catalogue(network.realm)
            views = views_now(catalogue, self._rates, news.at)
            hint = hint_for(self._rules, network, catalogue.coin(network.slug, asset_parts(after.asset)[1]), after)
            if hint is not None:
                news.command(hint)
            after = self._book.told(news, after, "transaction.confirmed", views, tip, before.status)
            if invoice is not None:
                paid_now, ends = ended_early(invoice, paid(news, invoice, before, after, views, tip))
                moved = [*changed(invoice, paid_now), *ends]
        changes = [Save(after), Close(deposit_work(before)), Post(entry), beside, _rests(before, epoch), *moved]
        return Step(after, entry, changes)

    def _confirm_aside(
        self, network: Network, before: Deposit, flags: tuple[str, ...], tip: int, rests_on: Change, now: int
    ) -> None:
        """It has its confirmations and is set aside, before or now: nothing is posted, and nothing waits for it any more."""
        news = News(now)
        after = replace(next_version(before), status="confirmed", confirmed_at=now, flags=flags)
        changes: list[Change] = [Close(deposit_work(before)), rests_on]
        if not before.set_aside:
            after = replace(after, flags=(*flags, SET_ASIDE))
            changes.append(self._book.beside(network, after, pending=-before.amount, aside=1))
        if after.tenant is not None:
            views = views_now(self._store.catalogue(network.realm), self._rates, now)
            after = self._book.told(news, after, "transaction.confirmed", views, tip, before.status)
            if not before.set_aside:
                changes += self._no_longer_awaited(news, network, before, after, views, tip)
        self._store.commit([Save(after), *changes, *news.emit()])
        if not before.set_aside:
            alarm_set_aside(network, after)

    def _no_longer_awaited(
        self, news: News, network: Network, before: Deposit, after: Deposit, views: Views, tip: int
    ) -> list[Change]:
        """Take it off what the merchant awaits and off its invoice's sums."""
        if after.tenant is None:
            return []
        invoice = self._book.invoice(after.tenant, after.invoice_id)
        changes = [] if invoice is None else changed(invoice, paid(news, invoice, before, after, views, tip))
        if not after.below_minimum:
            changes.append(awaiting(after.tenant, before, -before.amount))
        return changes

    def orphan(self, network: Network, key: str, block_hash: str, tip: int | None, *, dropped: bool = False) -> None:
        """Orphan the deposit of `block_hash`, which fell out of the chain last seen `tip` high, and reverse its credit. With
        `dropped` only while the block's list is dropped: a scan may have found the block again since.

        Raises Conflict, Unavailable, and TooNew for a deposit that is left to a newer version.
        """

        def decide() -> None:
            before = self._store.get(Deposit, id=key)
            if before is None or before.status == "orphaned" or before.block_hash != block_hash:
                return
            demand_known(before)
            self.orphaned(network, before, tip, Dropped(network.id, block_hash) if dropped else None)

        until_settled(decide)

    def orphaned(self, network: Network, before: Deposit, tip: int | None, rests_on: Change | None = None) -> Deposit:
        """`before` orphaned, in one transaction, on the condition `rests_on`. Raises Conflict, Unavailable."""
        now = self._clock.now_ms()
        news = News(now)
        after, changes = no_longer_unpriced(next_version(before))
        flags = tuple(flag for flag in after.flags if flag not in (HELD, SET_ASIDE))
        after = replace(after, status="orphaned", confirmed_at=None, flags=flags, round=before.round + 1)
        changes += [] if rests_on is None else [rests_on]
        entry: JournalEntry | None = None
        if before.status == "pending":
            changes.append(Close(deposit_work(before)))
        if before.set_aside:
            changes.append(self._book.beside(network, before, aside=-1))
        elif before.status == "pending":
            changes.append(self._book.beside(network, before, pending=-before.amount))
        else:
            amount = Amount(before.asset, before.amount)
            place, owner = self._book.place(network, before), self._book.owner(before)
            entry = ledger.deposit_reversed(before.id, before.round, now, place, owner, amount)
            held, small = before.amount if before.held else 0, before.amount if before.small else 0
            changes += [Post(entry), *([self._book.beside(network, before, held=-held, small=-small)] if held or small else [])]
            changes += taken_back(self._store, network, before)
        tenant = after.tenant
        if tenant is not None:
            views = views_now(self._store.catalogue(network.realm), self._rates, now)
            # Without a rate it moves no invoice, and its work leaves no item for a piece of stock that is within reach.
            invoice = self._book.invoice(tenant, after.invoice_id, with_stock=not before.unpriced)
            after = self._book.told(news, after, "transaction.orphaned", views, None, before.status)
            if not before.set_aside:
                if invoice is not None:
                    left, reopened = open_again(self._store, invoice, now, lambda one: paid(news, one, before, after, views, tip))
                    changes += [*changed(invoice, left), *reopened]
                pending = -before.amount if entry is None else 0
                owned = None if entry is None or before.below_minimum else self._book.owned_without(tenant, before)
                changes += self._book.credited(news, tenant, after, entry, views, pending, owned)
        self._store.commit([Save(after), *changes, *news.emit()])
        return after


def _rests(deposit: Deposit, epoch: int) -> Change:
    """The condition on which a deposit is credited that was looked at at `epoch`: its block has not fallen out."""
    if deposit.part is None:  # a version without parts saved it last
        return AtEpoch(deposit.network, epoch)
    return AtPart(deposit.network, deposit.block[1], deposit.part, epoch)


def alarm_set_aside(network: Network, deposit: Deposit) -> None:
    log.error(
        "ALARM %s: %s in %s moves %d units of %s to %s, more than its sums can take: it is set aside",
        *(network.id, deposit.id, deposit.txid, deposit.amount, deposit.asset, deposit.address),
    )
