"""Deposits: seen in a block, credited after the network's confirmations, reversed when their block falls out. Here they are seen;
`crediting` credits and reverses them.

A payment from an address of the grey list is credited to the merchant's purse `held`, and counts for its invoice when an operator
releases it. The list is read when a deposit is seen and again when it is credited; being on it once is enough.

Seen again in another block, it is the same deposit where the chain still says the same of it. Where it says something else
(amount, coin, sender, recipient: a contract call that was run again), the old one is orphaned. What is there now is screened like a
new one, under the same id: an operator's release, a flag and an owner were the old one's.

At the address of an open invoice every amount is the merchant's and counts. Elsewhere, less than the coin's minDepositAmount is
recorded with a flag and told to the merchant, and is the operator's: it counts for no invoice and no balance of the merchant until
an operator releases it (`usecases/deposits/releases.py`). First sight decides, once. A minimum in USD counts only where rates are
constant (the sandbox): a rate is what one provider says, and no money is taken from a merchant on that.

A deposit that would take a sum past the largest exact number (`domain/deposits/sums.py`) is set aside, when it is seen or when it
is credited: recorded, reported with its flag, and in no balance and no posting until an operator releases it. The block passes, and
its other deposits count.

Every step is one transaction, and doing a step twice changes nothing: the deposit's version, its open work and the
journal entry's id each forbid it (money rules 2, 3 and 12).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.rates import RatesOf, no_rates
from chalicelib.domain.chain import Block, Cursor, Transfer, Unmined
from chalicelib.domain.deposits.deposits import NATIVE_TWIN, REPLACEABLE, SET_ASIDE, Deposit, deposit_id, deposit_work
from chalicelib.domain.deposits.sums import fits, seen_sums
from chalicelib.usecases.base.fiat_values import deposit_worth
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.deposits.counted_rates import by_its_block, counting_at
from chalicelib.usecases.deposits.crediting import DepositCrediting, alarm_set_aside
from chalicelib.usecases.deposits.first_sight import FirstSight, Scanned, in_block
from chalicelib.usecases.deposits.groups import DepositGroups, Member, Prepared
from chalicelib.usecases.deposits.late_rates import at_its_worth
from chalicelib.usecases.deposits.posting import DepositPostings, is_late
from chalicelib.usecases.deposits.recorded_before import not_booked_yet
from chalicelib.usecases.invoices.pieces import as_stored
from chalicelib.usecases.invoices.pieces_again import take_again
from chalicelib.usecases.invoices.status import changed, paid
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.deposits import DepositScreening, anew, same_payment

log = logging.getLogger(__name__)


class Deposits:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, rates: RatesOf = no_rates) -> None:
        self._store, self._rules, self._clock, self._rates = store, rules, clock, rates
        self._screening = DepositScreening(store, rules, clock, rates)
        self._book = DepositPostings(store, rules)
        self._sight = FirstSight(store, rules, clock, rates, self._book)
        self._crediting = DepositCrediting(store, rules, clock, rates, self._screening, self._book)
        self._groups = DepositGroups(store, clock, rates, self._screening, self._book, self._sight, self._crediting)

    @property
    def rates(self) -> RatesOf:
        """The rates that value deposits."""
        return self._rates

    def detect(
        self,
        network: Network,
        coin: Coin,
        scanned: Scanned,
        transfer: Transfer,
        watched: Watched,
        id_: str | None = None,
        twin: bool = False,
    ) -> str:
        """Record a movement to us, proven to have happened in the block of `scanned`; the deposit's id.

        `id_` comes from its transaction's claim, see `usecases/deposits/claims.py`; by default that of its position. With `twin`
        it may be told twice by its block, and is held (`native_twins`). Raises Conflict, Unavailable, and TooNew for a deposit that
        is left to a newer version.
        """
        key = id_ or deposit_id(network.id, transfer.txid, transfer.position)

        def decide() -> str:
            known = self._store.get(Deposit, id=key)
            if known is not None and self._fallen(network, known, scanned.block):
                known = self._crediting.orphaned(network, known, scanned.height, scanned.stands(network))
            seen = self._sight.seen(network, coin, transfer, watched, scanned)
            seen = replace(seen, id=key, flags=(NATIVE_TWIN,) if twin else ())
            if known is None:
                self._counts(network, transfer, scanned, self._screening.screened(network, coin, seen))
            elif not self._stays(network, known, seen, scanned.block):
                self._seen_again(network, coin, transfer, scanned, known, seen)
            return key

        return until_settled(decide) if scanned.claim is None else decide()

    def _stays(self, network: Network, known: Deposit, seen: Deposit, block: Block) -> bool:
        """Whether the deposit as it is stored holds, although `block` has it: it is this block's, credited, or of a later block."""
        if known.block_hash == block.hash and known.status != "orphaned":
            if known.position != seen.position:
                log.error(
                    "ALARM %s: %s is in block %d as %s and as %s", network.id, known.id, block.number, known.position, seen.position
                )
                raise Unavailable(f"{network.id}: nodes number the logs of block {block.number} differently")
            return True
        if known.status == "confirmed":
            if not same_payment(known, seen):
                # Deeper than reorganisations are followed: what is credited is not taken back on one node's word.
                log.error("ALARM %s: %s was credited, and block %d says something else of it", network.id, known.id, block.number)
            return True
        if known.status == "pending" and self._passed(network, known):
            log.info("%s: %s is in a block that was scanned after block %s", network.id, known.id, block.hash)
            return True
        return False

    def _seen_again(
        self, network: Network, coin: Coin, transfer: Transfer, scanned: Scanned, known: Deposit, seen: Deposit
    ) -> None:
        """Another block has a deposit that is known: the same payment moves there, another one takes its place."""
        demand_known(known)
        if not same_payment(known, seen):
            if known.status == "pending":
                # Two transactions: a crash between them leaves an orphaned one, which the next scan finds as such.
                known = self._crediting.orphaned(network, known, scanned.height, scanned.stands(network))
            counted = self._screening.screened(network, coin, anew(known, seen))
            self._counts(network, transfer, scanned, counted, _to_its_owner(known, seen))
        elif known.status == "orphaned":
            flags = self._screening.flags(network, known)
            flags += tuple(flag for flag in seen.flags if flag not in flags)  # a twin's
            back = in_block(replace(known, status="pending", flags=flags, position=seen.position), scanned)
            self._counts(network, transfer, scanned, by_its_block(known, back), known.status)
        else:
            there = in_block(replace(known, position=seen.position), scanned)
            self._moved(network, known, by_its_block(known, there), scanned.height, scanned.stands(network))

    def _counts(
        self, network: Network, transfer: Transfer, scanned: Scanned, deposit: Deposit, previous: str | None = None
    ) -> None:
        """It counts from here on, unless a balance has counted it before. `previous` is its status where it was known."""
        claim = scanned.claim
        rests_on = not_booked_yet(self._store, network, scanned.block, transfer) if claim is None else [Save(claim.booking)]
        if rests_on is not None:
            only_if = None if claim is None else (claim.units, claim.pending)
            rests_on = [scanned.stands(network), *rests_on]
            self._first_seen(network, deposit, scanned.height, rests_on, only_if, previous)

    def detect_unmined(
        self, network: Network, coin: Coin, transfer: Transfer, watched: Watched, waits: Unmined, tip: int | None
    ) -> str:
        """Record a mempool transaction's movement to a merchant, which `waits` to be in a block; the deposit's id. It is told, and
        credits nothing. `tip` is the height of the chain.

        A deposit that is or was in a block stays as it is. Raises Conflict, Unavailable.
        """
        key = deposit_id(network.id, transfer.txid, transfer.position)

        def decide() -> str:
            known = self._store.get(Deposit, id=key)
            now = self._clock.now_ms()
            if known is None:
                seen = _waiting(self._sight.seen(network, coin, transfer, watched, None), waits, now)
                self._first_seen(network, self._screening.screened(network, coin, seen), tip)
            elif known.status == "orphaned":
                at = now if known.glimpsed_at is None else known.glimpsed_at
                back = replace(known, status="pending", flags=self._screening.flags(network, known))
                self._first_seen(network, _waiting(in_block(back, None), waits, at), tip, previous=known.status)
            return key

        return until_settled(decide)

    def vanish(self, network: Network, key: str, tip: int | None) -> None:
        """Remove the deposit of a mempool transaction that is neither waiting nor in a block any more. Raises Conflict,
        Unavailable."""

        def decide() -> None:
            before = self._store.get(Deposit, id=key)
            if before is not None and before.status == "pending" and before.block_number is None:
                self._crediting.orphaned(network, before, tip)

        until_settled(decide)

    def _fallen(self, network: Network, known: Deposit, block: Block) -> bool:
        """Whether it is credited by a block that fell out while a newer version had it: the poll has not orphaned it yet."""
        if known.status != "confirmed" or known.block_hash == block.hash:
            return False
        cursor = self._store.get(Cursor, network=network.id)
        return cursor is not None and known.block_hash in (cursor.fallen or ()) and known.block_hash not in cursor.recent.values()

    def _passed(self, network: Network, deposit: Deposit) -> bool:
        """Whether the scan has passed its block and stands on it: another block that has it is out of date, or not followed yet."""
        if deposit.block_number is None:
            return False
        cursor = self._store.get(Cursor, network=network.id)
        return cursor is not None and cursor.recent.get(str(deposit.block_number)) == deposit.block_hash

    def _moved(self, network: Network, known: Deposit, moved: Deposit, tip: int, rests_on: Change) -> None:
        """It was seen before it was in a block; or its old block is gone and nobody told us before the new one came. The place
        changes, and with the block's time perhaps whether it came in time. Its owner knows of it already."""
        invoice = self._book.invoice(known.tenant, known.invoice_id)
        news = News(self._clock.now_ms())
        moved = replace(moved, late=is_late(moved, invoice, in_time=not known.late))
        moved = at_its_worth(moved, invoice, self._rates, news.at)
        catalogue = self._store.catalogue(network.realm)
        moved, waits = counting_at(moved, invoice, catalogue, self._rates, news.at)
        moved = deposit_worth(moved, invoice, catalogue, self._rates, news.at)
        changes: list[Change] = [Save(moved), rests_on, *waits]
        if deposit_work(moved) != deposit_work(known):
            changes += [Close(deposit_work(known)), Open(deposit_work(moved))]
        if invoice is not None and not moved.set_aside:
            changes += changed(invoice, paid(news, invoice, known, moved, Views(catalogue), tip))
        self._store.commit([*changes, *news.emit()])

    def _first_seen(
        self,
        network: Network,
        deposit: Deposit,
        tip: int | None,
        rests_on: Sequence[Change] = (),
        only_if: tuple[int, int] | None = None,
        previous: str | None = None,
    ) -> None:
        news = News(self._clock.now_ms())
        changes: list[Change] = [Open(deposit_work(deposit)), *rests_on]
        tenant = deposit.tenant
        # Kept to `FEW_ITEMS`, so that it is tested on DynamoDB Local. With more than its block to rest on, or with a rate to wait
        # for, no item is left for the stock of a link, nor for an invoice that ends.
        room = len(rests_on) < 2
        invoice, wallet = self._book.invoice(tenant, deposit.invoice_id, with_stock=room), self._book.wallet(network, deposit)
        waits: list[Change] = []
        owned = self._book.owned_if_it_matters(deposit)
        if not fits(deposit.amount, seen_sums(deposit, None if owned is None else owned.shown, invoice, wallet)):
            deposit = replace(deposit, flags=(*deposit.flags, SET_ASIDE))
        only_if = only_if or self._book.unchanged(wallet, deposit.amount)
        if tenant is not None:
            deposit, waits = self._sight.valued(network, deposit, invoice, news.at)
            changes += waits
            if waits and invoice is not None:
                invoice = as_stored(invoice)
            ends_it = room and not waits
            deposit, moved = self._sight.told(news, network, deposit, invoice, tip, previous, ends_it=ends_it)
            changes += [*moved, *self._book.awaited(deposit, owned)]
        beside = self._book.beside(network, deposit, pending=deposit.amount)
        if deposit.set_aside:
            beside = self._book.beside(network, deposit, aside=1)
        self._store.commit([Save(deposit), *changes, replace(beside, only_if=only_if), *news.emit()])
        if deposit.set_aside:
            alarm_set_aside(network, deposit)
        elif waits or not room:
            take_again(self._store, invoice, news.at, tip)

    def confirm(self, network: Network, key: str, block_hash: str, tip: int, epoch: int) -> None:
        """As `DepositCrediting.confirm`."""
        self._crediting.confirm(network, key, block_hash, tip, epoch)

    def detect_together(
        self,
        network: Network,
        coin: Coin,
        scanned: Scanned,
        members: Sequence[Member],
        begins: Sequence[Change] = (),
        *,
        new: bool = False,
    ) -> Sequence[Member]:
        """As `DepositGroups.detect`."""
        return self._groups.detect(network, coin, scanned, members, begins, new=new)

    def prepare_together(self, network: Network, keys: Sequence[str], block_hash: str, tip: int, epoch: int) -> Prepared:
        """As `DepositGroups.prepare`, while another group of the merchant and coin is being credited."""
        return self._groups.prepare(network, keys, block_hash, tip, epoch)

    def confirm_together(
        self,
        network: Network,
        keys: Sequence[str],
        block_hash: str,
        tip: int,
        epoch: int,
        patience: int | None = None,
        prepared: Prepared | None = None,
    ) -> Sequence[str] | None:
        """As `DepositGroups.confirm`."""
        return self._groups.confirm(network, keys, block_hash, tip, epoch, patience, prepared)

    def orphan(self, network: Network, key: str, block_hash: str, tip: int | None, *, dropped: bool = False) -> None:
        """As `DepositCrediting.orphan`."""
        self._crediting.orphan(network, key, block_hash, tip, dropped=dropped)


def _to_its_owner(known: Deposit, seen: Deposit) -> str | None:
    """The status of `known` for the owner of `seen`, which takes its place: another owner was never told of it."""
    return known.status if known.tenant == seen.tenant else None


def _waiting(deposit: Deposit, waits: Unmined, at: int) -> Deposit:
    """`deposit` as its transaction, seen in no block yet, makes it; it was first seen so `at`."""
    flags = (*deposit.flags, REPLACEABLE) if waits.replaceable else deposit.flags
    return replace(deposit, glimpsed_at=at, spends=waits.spends, flags=flags)
