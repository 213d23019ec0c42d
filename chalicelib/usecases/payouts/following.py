"""Follows payments in flight: which ones this poll asks a node about, and the views of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.versions import version_after
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.retries import Each
from chalicelib.usecases.payouts.sent import Sent
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.accounts.following import Following
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.losses import has_nonces
from chalicelib.usecases.transactions.notes import Notes
from chalicelib.usecases.transactions.round_robin import Asking
from chalicelib.usecases.transactions.sorting import Out, Sorted
from chalicelib.usecases.withdrawals.steps import order_of, payout_parts

log = logging.getLogger(__name__)

_TOGETHER = 10
"""Records that one transaction of the store changes at the most."""


class PaymentsOut:
    """Payments in flight on one network, for one run. Its methods raise Unavailable."""

    def __init__(self, network: Network, store: Store, clock: Clock, sent: Sent, followed: Following, scanned: Scanned) -> None:
        self._network, self._store, self._sent, self._followed = network, store, sent, followed
        self._scanned, self._clock, self._now = scanned, clock, clock.now_ms()
        self._notes = Notes(network, store, scanned)
        self._sorted = Sorted()
        self._shown: dict[Work, Withdrawal] = {}

    @property
    def ripens(self) -> bool:
        """Whether one is deep enough by the node's height, and not by what is scanned."""
        return self._sorted.ripens

    def add(self, works: Sequence[Work]) -> None:
        """Sort a page of open work. Where it can not be read as a whole each of it is due: the look at it finds what is wrong."""
        try:
            self._sorted.add(self._read(works), self._notes, self._now)
        except (LookupError, ValueError, TypeError) as error:
            log.warning("%s: payments that are out are looked at one by one: %r", self._network.id, error)
            self._sorted.due += works

    def take(self, more: Callable[[], bool], look: Callable[[Work], object], each: Each) -> int:
        """Show how deep those are that were noted, then `look` at those that are due, and at some of the rest; at how many."""
        shallow = list(self._sorted.shallow)
        for start in range(0, len(shallow), _TOGETHER):
            if more():
                each.take("confirmations", partial(self._count, shallow[start : start + _TOGETHER]))
        due, quiet = self._sorted.by_place()
        return Asking(self._network, self._store, self._clock, "sent").take(due, quiet, more, look)

    def _read(self, works: Sequence[Work]) -> list[Out]:
        parts = [payout_parts(work) for work in works]
        withdrawals = known_of(self._store, [(Withdrawal, {"tenant": tenant, "id": id}) for tenant, id in parts])
        orders = known_of(self._store, [(PaymentOrder, {"id": order_of(tenant, id)}) for tenant, id in parts])
        found: list[Out] = []
        for work, withdrawal, order in zip(works, withdrawals, orders, strict=True):
            if withdrawal is None or withdrawal.status not in ("broadcasting", "confirming"):
                continue  # settled between two reads
            self._shown[work] = withdrawal
            found.append(self._out(work, withdrawal, order))
        return found

    def _out(self, work: Work, withdrawal: Withdrawal, order: PaymentOrder | None) -> Out:
        attempts = () if order is None else self._sent.transactions(order)
        if order is None or not attempts or withdrawal.status == "broadcasting":
            return Out(work, asks=True)
        return Out(
            work,
            self._sent.ours(order),
            order.created_at,
            order.signed_at,
            asks=order.renew or order.usurped is not None or self._followed.decided(withdrawal.id),
            undone=withdrawal.block_number is not None or order.round > 0,
            overdue=self._sent.overdue(withdrawal, order, self._now),
            line=(order.wallet, order.nonce) if has_nonces(self._network) else None,
        )

    def _count(self, works: Sequence[Work]) -> None:
        """Shown, and no more: what is in these blocks was met by the scan, and is settled by its receipt."""
        changes = []
        for work in works:
            before, seen = self._shown[work], self._sorted.shallow[work]
            depth = self._scanned.depth(seen.number)
            after = replace(before, txid=seen.txid, confirmations=depth, block_number=seen.number, block_hash=seen.hash)
            if after != before:
                changes.append(Save(replace(after, version=version_after(before))))
        if changes:
            self._store.commit(changes)
