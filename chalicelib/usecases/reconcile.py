"""Ether that a contract sent, where no node can trace: the balance of deposit addresses against the ledger, at a final block.

What an address has on the chain and the ledger does not know is booked as a deposit of that block, with a position that names
block and address, and goes the way of any deposit: listed under its block, so that it falls out with it, credited by the poll, with
everything that large payments need. What makes it safe:

1. Only addresses of merchants that never sent anything themselves (nonce 0), have nothing pending, and whose balance is taken at a
   block that has its confirmations and is the scanned one. So the ledger has everything of that block that blocks themselves tell.
2. *Claim, then book.* The difference is stored as the address' `BalanceBooking`, by its version, before the deposit: of two at once
   one passes. Dying in between leaves a claim without a deposit, which is finished, or void if its block is gone.
3. What is seen in a block afterwards (a rescan with a node that traces) and lies at or before a booking that stands is not credited
   again: `Deposits.detect` asks `booked_already`.

Sweeps from deposit addresses, and coins sent there to pay for them, will have to be told apart here before they exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.domain.addresses import Watched
from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.deposits import Deposit, deposit_id
from chalicelib.domain.invoices import Invoice
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.reconciliation import BalanceBooking, Reconciled, position_of
from chalicelib.domain.work import Work
from chalicelib.usecases.addresses import watched_key
from chalicelib.usecases.changes import AtEpoch, Save
from chalicelib.usecases.invoices import work_key
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import Balances, ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.scan import Scanner

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Addresses that one poll looks at."""


class Reconciler:
    def __init__(self, network: Network, reader: ChainReader, store: Store, scanner: Scanner, rules: AddressRules) -> None:
        self._network, self._reader, self._store, self._scanner, self._rules = network, reader, store, scanner, rules

    def work(self, more: Callable[[], bool]) -> int:
        """Look at the next addresses with open invoices; how many differences were booked. Raises Unavailable, Conflict.

        Does nothing where the nodes trace, or where it is not known yet whether they do.
        """
        if not isinstance(self._reader, Balances) or self._reader.traces is not False or not more():
            return 0
        place = self._store.get(Reconciled, network=self._network.id)
        after = Work("expiry", self._network.id, place.order, place.id) if place is not None and place.order else None
        due = self._store.open_work("expiry", self._network.id, after=after, limit=AT_ONCE)
        invoices: list[Invoice | None] = self._store.get_many([work_key(work) for work in due])
        form = self._rules.storage_form
        booked = self.check([form(self._network.slug, invoice.address) for invoice in invoices if invoice is not None])
        order, id_ = (due[-1].order, due[-1].id) if len(due) == AT_ONCE else ("", "")
        if place is None or (place.order, place.id) != (order, id_):
            self._store.commit([Save(Reconciled(self._network.id, order, id_, 1 if place is None else place.version + 1))])
        return booked

    def check(self, addresses: Sequence[str]) -> int:
        """Compare these addresses (storage form) with the chain, and book what they have more; how many differences were booked.

        Raises Unavailable, Conflict. Whether the nodes trace is whoever asks' to judge, once: it may change while addresses are
        compared. What they have less is an alarm.
        """
        cursor = self._store.get(Cursor, network=self._network.id)
        if not isinstance(self._reader, Balances) or cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            return 0
        final = cursor.number - self._network.confirmations + 1
        if str(final) not in cursor.recent:
            return 0  # scanning has just begun
        addresses = [address for address in dict.fromkeys(addresses) if self._settled(address, cursor)]
        quiet = self._quiet(addresses)
        if not quiet:
            return 0
        told = self._reader.balances_at(list(quiet), final, cursor.recent[str(final)])
        booked = 0
        for (address, units), balance in zip(quiet.items(), told, strict=True):
            if balance is None or balance == units:
                continue
            if balance < units:
                log.error("ALARM %s: %s has %d at block %d, and by the ledger %d", self._network.id, address, balance, final, units)
                continue
            self._book(address, balance - units, final, cursor)
            booked += 1
        return booked

    def everything(self) -> int:
        """Look at every deposit address of the network, by a scan, and book: for the operator's command. Raises as `check` does.

        Also where the nodes trace: blocks that could not be traced were read without.
        """
        booked, page = 0, []
        for watched in self._store.every(Watched):
            if watched.realm == self._network.realm and watched.role == "user" and self._network.slug in watched.networks:
                page.append(watched.address)
            if len(page) == AT_ONCE:
                booked, page = booked + self.check(page), []
        return booked + self.check(page)

    def _quiet(self, addresses: Sequence[str]) -> dict[str, int]:
        """Those that are merchants' and have nothing pending, with the units that the ledger knows there."""
        native = self._store.catalogue(self._network.realm).native(self._network.slug)
        keys: list[tuple[type[Any], dict[str, str]]] = [watched_key(self._network, address) for address in addresses]
        keys += [(WalletBalance, {"network": self._network.id, "address": a, "asset": native.asset}) for a in addresses]
        found = self._store.get_many(keys)
        quiet: dict[str, int] = {}
        for address, watched, known in zip(addresses, found[: len(addresses)], found[len(addresses) :], strict=True):
            mine = isinstance(watched, Watched) and watched.role == "user" and self._network.slug in watched.networks
            if mine and (known is None or known.pending == 0):
                quiet[address] = 0 if known is None else known.units
        return quiet

    def _settled(self, address: str, cursor: Cursor) -> bool:
        """Whether no booking of the address is unfinished; one that is, is finished."""
        booking = self._store.get(BalanceBooking, network=self._network.id, address=address)
        if booking is None or self._store.get(Deposit, id=booking.deposit) is not None:
            return True
        if self._reader.block_hash(booking.block_number) != booking.block_hash:
            return True  # its block is gone: the claim is void
        self._record(booking, cursor.epoch)
        return False

    def _book(self, address: str, amount: int, number: int, cursor: Cursor) -> None:
        known = self._store.get(BalanceBooking, network=self._network.id, address=address)
        block_hash = cursor.recent[str(number)]
        headers = self._reader.headers(number, number)
        if [header.hash for header in headers] != [block_hash]:
            raise Unavailable(f"{self._network.id}: block {number} is not the one that was scanned")
        booking = BalanceBooking(
            network=self._network.id,
            address=address,
            block_number=number,
            block_hash=block_hash,
            block_time=headers[0].time,
            amount=amount,
            deposit=deposit_id(self._network.id, block_hash, position_of(number, address)),
        )
        if known is not None:
            booking = replace(booking, version=known.version + 1)
        self._store.commit([Save(booking), AtEpoch(self._network.id, cursor.epoch)])
        log.warning("%s: %s has %d more than blocks tell, at block %d: booked", self._network.id, address, amount, number)
        self._record(booking, cursor.epoch)

    def _record(self, booking: BalanceBooking, epoch: int) -> None:
        transfer = Transfer(
            txid=booking.block_hash,
            position=position_of(booking.block_number, booking.address),
            contract=None,
            sender="",
            recipient=booking.address,
            amount=booking.amount,
        )
        self._scanner.record([Block(booking.block_number, booking.block_hash, "", booking.block_time, [transfer])], epoch)
