"""Internal transfers that no trace told: the balances of deposit addresses against the ledger, at a final block.

A surplus on the chain is recorded as a deposit of that block, with a position that names block and address. It goes the way of any
deposit: listed under its block, so that it falls out with it, and credited by the poll, with the quorum that large payments need.
Each poll compares some addresses with open invoices; the function `compare` goes round all addresses.

What makes it safe:

1. *What is compared.* Addresses of merchants, at a block that has its confirmations and was scanned: so the ledger has everything
   of that block that blocks themselves tell. What is pending up to that block counts; what came after it does not.
2. *One transaction.* The deposit commits together with the address' `BalanceBooking`, by its version, and only while the ledger
   has at the address what was compared: of two at once one passes, and a crash leaves nothing posted.
3. *Never twice.* A later scan may find the same payment in a block (a rescan with a node that traces, a block of another branch).
   At or before a booking that stands it is not credited: `Deposits.detect` asks `not_booked_yet`, and commits only while that is
   so.
4. *Moves of our own.* What a top-up brought and what a sweep took is in the ledger once the move is settled. So addresses with a
   move in flight, one that was given up and may be mined, or one that was settled above the compared block, have to wait. A move
   that settles between the comparison and the booking moves the ledger, so that the booking fails.

An address whose key another signer used has less than came in, and its fees are in no posting: a surplus there is an alarm and
never posted. The chain then counts more transactions of the address than were allotted to its moves.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.domain.addresses.addresses import Watched, family_key, watched_key
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.scanning.internal_transfers import BalanceBooking, Reconciled, ReconcileRound, position_of
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.domain.work import Work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.deposits.recorded_before import Claim
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.ports.readers import Balances
from chalicelib.usecases.scanning.open_invoices import AT_ONCE, next_looks
from chalicelib.usecases.scanning.recording import Recorder

log = logging.getLogger(__name__)

MOST_MOVES = 1000
"""Where more moves than this are under way, no address is compared."""
PAUSES, DAY_MS = 6, 24 * 3_600_000
"""Rounds take a seventh of the time at the most: each reads the whole table, and asks the node for each address."""
MOST_PENDING = 100
"""Where more deposits than this wait at or below the final block, addresses with something pending have to wait, too."""


class InternalTransfers:
    """`page`: how many rows of the table one step of the round reads; 0 for no round."""

    def __init__(self, context: NetworkContext, recorder: Recorder, page: int = 500) -> None:
        self._context, self._network, self._reader, self._store = context, context.network, context.reader, context.store
        self._clock, self._recorder, self._page = context.clock, recorder, page

    def work(self, more: Callable[[], bool]) -> int:
        """Compare the next addresses with open invoices; the number of differences recorded. Raises Unavailable, Conflict.

        Also where nodes trace: a block, or a transaction of it, may have been read without, by any process, on any setting.
        """
        if not isinstance(self._reader, Balances) or not more():
            return 0
        place = self._store.get(Reconciled, network=self._network.id)
        before = place or Reconciled(self._network.id, version=0)
        invoices, after = next_looks(self._store, self._network.id, before)
        own = family_key(self._network)
        addresses = [address for invoice in invoices if (address := invoice.address_in(own)) is not None]
        booked = self._leniently([self._context.form(address) for address in addresses])
        if booked is None:
            return 0
        if place is None or after != before:
            self._store.commit([Save(replace(after, version=version_after(before)))])
        return booked

    def go_on(self, more: Callable[[], bool]) -> int:
        """Go on with the round over all watched addresses, while `more` allows, up to its end; the number of differences recorded.
        The next round begins when `PAUSES` times the last one's length have passed, and after a day at the latest. Raises
        Unavailable, Conflict."""
        place, booked = self._store.get(ReconcileRound, network=self._network.id), 0
        pause = 0 if place is None or place.after else min(PAUSES * place.took, DAY_MS)
        if place is not None and self._clock.now_ms() - place.began_at < pause:
            return 0
        while more():
            booked += self.go_round(more)
            before, place = place, self._store.get(ReconcileRound, network=self._network.id)
            if place is None or not place.after or place == before:
                break  # at its end, or not possible now
        return booked

    def go_round(self, more: Callable[[], bool]) -> int:
        """Take one step of the round over all watched addresses; the number of differences recorded. Raises Unavailable, Conflict.

        The step is done once all of it is compared: after a crash, or a conflict, the same addresses are compared again.
        """
        if not self._page or not isinstance(self._reader, Balances) or not more():
            return 0
        now = self._clock.now_ms()
        place = self._store.get(ReconcileRound, network=self._network.id) or ReconcileRound(self._network.id, now, version=0)
        realm, family = self._network.realm, family_key(self._network)
        step = self._store.sweep(Watched, limit=self._page, after=place.after or None, realm=realm, family=family)
        addresses = [watched.address for watched in self._mine(step.items)]
        booked = self._leniently(addresses)
        if booked is None or (step.next is None and not place.after):
            return booked or 0  # the whole table is one step: there is nothing to remember
        after = replace(next_version(place), after=step.next or "", found=place.found + len(addresses))
        if not place.after:
            after = replace(after, began_at=now)
        if step.next is None:
            log.info("%s: all %d addresses were compared, in %d ms", self._network.id, after.found, now - after.began_at)
            after = replace(after, took=now - after.began_at, began_at=now, found=0)
        self._store.commit([Save(after)])
        return booked

    def check(self, addresses: Sequence[str]) -> int:
        """Compare these addresses (storage form) with the chain, and record their surplus; the number of differences recorded.

        Raises Unavailable, Conflict. The caller decides once whether the nodes trace: it may change while addresses are compared.
        A shortfall is an alarm.
        """
        wanted = list(dict.fromkeys(addresses))
        cursor = self._store.get(Cursor, network=self._network.id)
        if not isinstance(self._reader, Balances) or cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            return 0
        final = cursor.number - self._network.confirmations + 1
        if str(final) not in cursor.recent:
            return 0  # scanning has just started
        told = self._reader.balances_at(wanted, final, cursor.recent[str(final)])
        has = {address: units for address, units in zip(wanted, told, strict=True) if units}
        known = self._known(list(has))
        pending = self._pending(final) if any(wallet.pending for wallet in known.values()) else {}
        differs: dict[str, int] = {}
        busy = self._busy(final) if any(has[address] != wallet.units for address, wallet in known.items()) else set()
        for address, wallet in known.items():
            if (wallet.pending and pending is None) or busy is None or address in busy:
                continue
            if wallet.aside:
                continue  # the chain has there what the ledger does not, for a reason that is recorded and told
            more = has[address] - wallet.units - (pending or {}).get(address, 0)
            if more > 0:
                differs[address] = more
            elif has[address] < wallet.units and self._unmoved(wallet, cursor):
                log.error(
                    "ALARM %s: %s has %d at block %d, and by the ledger %d",
                    *(self._network.id, address, has[address], final, wallet.units),
                )
        booked = 0
        sent = self._reader.nonces(list(differs))
        for (address, more), nonce in zip(differs.items(), sent, strict=True):
            if nonce > self._allotted(address):
                log.error(
                    "ALARM %s: %s has %d more than is known at block %d, and has sent something that we did not",
                    *(self._network.id, address, more, final),
                )
                continue
            booked += self._book(known[address], more, final, cursor)
        return booked

    def everything(self) -> int:
        """Compare every deposit address of the network, by a scan, and record the surplus: for the operator's command. Raises as
        `check` does.

        Also where the nodes trace: blocks that could not be traced were read without.
        """
        booked, page = 0, []
        for watched in self._mine(self._store.every(Watched)):
            page.append(watched.address)
            if len(page) == AT_ONCE:
                booked, page = booked + self.check(page), []
        return booked + self.check(page)

    def _leniently(self, addresses: Sequence[str]) -> int | None:
        """As `check`; None where it has to be retried: blocks tell more soon, or no node tells balances. That is no fault of the
        poll unless the nodes do not trace."""
        if self._store.open_work("rescan", self._network.id, limit=1):
            return None  # blocks themselves tell what a full block left over, and what an operator looks for
        try:
            return self.check(addresses)
        except Unavailable as error:
            if isinstance(self._reader, Balances) and self._reader.traces is False:
                raise
            log.warning("%s: balances are not compared now: %s", self._network.id, error)
            return None

    def _mine(self, found: Iterable[Watched]) -> Iterable[Watched]:
        """Merchants' addresses that receive on this network. Not those to which a payment was returned here: a surplus there may be
        that payment, not recorded yet, and it is not the merchant's."""
        network = self._network
        family = family_key(network)
        for watched in found:
            mine = (watched.realm, watched.family, watched.role) == (network.realm, family, "user")
            if mine and network.slug in watched.networks and network.slug not in watched.returned:
                yield watched

    def _known(self, addresses: Sequence[str]) -> dict[str, WalletBalance]:
        """The ledger's balances of those addresses that are merchants'."""
        asset = self._native()
        keys: list[tuple[type[Any], dict[str, str]]] = [watched_key(self._network, address) for address in addresses]
        keys += [(WalletBalance, {"network": self._network.id, "address": a, "asset": asset}) for a in addresses]
        found = self._store.get_many(keys)
        mine = {watched.address for watched in self._mine(w for w in found[: len(addresses)] if w is not None)}
        wallets = zip(addresses, found[len(addresses) :], strict=True)
        return {a: wallet or WalletBalance(self._network.id, a, asset) for a, wallet in wallets if a in mine}

    def _pending(self, final: int) -> dict[str, int] | None:
        """Units by address of what waits in blocks up to `final`; None where that is too much to read, or where only a
        newer version can read it.

        It is read after what the ledger has. Should one of them be credited or fall out in between, the booking's commit fails.
        """
        due = self._store.open_work("deposit", self._network.id, upto=f"{final:015d}", limit=MOST_PENDING)
        if len(due) == MOST_PENDING:
            return None
        wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": work.id}) for work in due]
        sums: dict[str, int] = defaultdict(int)
        found = each_of(self._store, wanted) if wanted else []
        if any(isinstance(deposit, TooNew) for deposit in found):
            return None
        for deposit in found:
            if deposit is not None and deposit.awaited and deposit.asset == self._native():
                sums[self._context.form(deposit.address)] += deposit.amount
        return sums

    def _unmoved(self, wallet: WalletBalance, cursor: Cursor) -> bool:
        """Whether neither scanning nor a settlement has changed what was compared."""
        scanned = self._store.get(Cursor, network=self._network.id)
        return scanned == cursor and self._known([wallet.address]).get(wallet.address) == wallet

    def _busy(self, final: int) -> set[str] | None:
        """The addresses (storage form) that a move of ours has changed on the chain or in the ledger, and not yet in both as of
        block `final`; None where that is too much to read, or where only a newer version can read it. Read after what the ledger
        has, as `_pending` is."""
        network = self._network
        # First those that were given up: one that is mined after all goes from there back to the open moves.
        open_ = self._store.open_work("givenup", network.id, limit=MOST_MOVES)
        open_ += self._store.open_work("move", network.id, limit=MOST_MOVES)
        above = Work("moved", network.id, f"{final:015d}", "~")  # behind every id
        open_ += self._store.open_work("moved", network.id, after=above, limit=MOST_MOVES)
        if len(open_) >= MOST_MOVES:
            return None
        wanted: list[tuple[type[Any], dict[str, str]]] = [
            (Move, {"network": network.id, "id": work.id.split("|", 1)[0]}) for work in open_
        ]
        moves = each_of(self._store, wanted) if wanted else []
        if any(isinstance(move, TooNew) for move in moves):
            return None
        form = self._context.form
        return {form(end) for move in moves if move is not None for end in (move.source, move.recipient)}

    def _allotted(self, address: str) -> int:
        """How many transactions of ours left an address, or will."""
        source = self._context.rules.normalize(self._network.slug, address)
        counter = self._store.get(NonceCounter, network=self._network.id, wallet=source)
        return 0 if counter is None else counter.next

    def _native(self) -> AssetId:
        return self._context.native().asset

    def _book(self, known: WalletBalance, amount: int, number: int, cursor: Cursor) -> int:
        """How many deposits were recorded. Raises Conflict where the ledger has moved since it was read, Unavailable."""
        address, block_hash = known.address, cursor.recent[str(number)]
        deposit = deposit_id(self._network.id, block_hash, position_of(number, address))
        before = self._store.get(BalanceBooking, network=self._network.id, address=address)
        if before is None:
            booking = BalanceBooking(self._network.id, address, number, deposit)
        else:
            standing = self._standing([*before.at_or_above(0).values()])
            if deposit in standing:
                return 0  # another worker was first
            booking = before.followed_by(number, deposit, standing, self._network.reorg_depth)
        headers = self._reader.headers(number, number)
        if [header.hash for header in headers] != [block_hash]:
            raise Unavailable(f"{self._network.id}: block {number} is not the one that was scanned")
        transfer = Transfer(block_hash, position_of(number, address), None, "", address, amount)
        claim = Claim(booking, known.units, known.pending)
        block = Block(number, block_hash, "", headers[0].time, [transfer])
        self._recorder.record([block], cursor.epoch, claim=claim, tip=cursor.tip)
        if not self._standing([deposit]):
            raise Unavailable(f"{self._network.id}: what {address} has at block {number} could not be proven")
        log.warning("%s: %s has %d more than blocks tell, at block %d: booked", self._network.id, address, amount, number)
        return 1

    def _standing(self, deposits: Sequence[str]) -> set[str]:
        """Those that are there and have not fallen out of the chain."""
        wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": id_}) for id_ in deposits]
        return {found.id for found in self._store.get_many(wanted) if found is not None and found.status != "orphaned"}
