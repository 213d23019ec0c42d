"""When catching up after a point-in-time restore is over: every stray transaction is booked, and all that was adopted is final."""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.recovery.point_in_time import Stray, Trace, stray_booked, stray_entry_id
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Post


class RestoreEnd:
    """Of one account network."""

    def __init__(self, context: NetworkContext) -> None:
        self._context, self._network, self._reader = context, context.network, context.reader
        self._store, self._clock = context.store, context.clock

    def book_strays(self, trace: Trace) -> int:
        """Record stray transactions as the operator's loss, where no reorganisation reaches them; their number. Raises
        Unavailable."""
        booked, paid = 0, set()
        native = self._context.native().asset
        for stray in trace.strays:
            first = stray.txid not in paid
            paid.add(stray.txid)
            if self._is_booked(stray) or not self._deep(stray.block_number):
                continue
            receipt = self._reader.receipt(stray.txid)
            if receipt is None:
                continue
            fee = Amount(AssetId(native), receipt.fee or 0) if first else None
            entry = stray_booked(self._network.id, self._network.realm, stray, fee, self._clock.now_ms())
            self._store.commit([Post(entry)])
            booked += 1
        return booked

    def _is_booked(self, stray: Stray) -> bool:
        return self._store.get(JournalEntry, id=stray_entry_id(self._network.id, stray)) is not None

    def _deep(self, number: int) -> bool:
        cursor = self._store.get(Cursor, network=self._network.id)
        return cursor is not None and cursor.number - number + 1 >= self._network.reorg_depth

    def left(self, trace: Trace, shown: Callable[[Stray], str]) -> list[str]:
        """The obstacles to going on, one sentence each; `shown` renders a stray. Raises Unavailable."""
        found = []
        if trace.next <= self._reader.tip():
            found.append(f"blocks from {trace.next} on are not read yet")
        for stray in trace.strays:
            if not self._is_booked(stray):
                found.append(f"nothing asked for {shown(stray)}: --book-unmatched books it as the operator's loss")
        for order in self._store.every(PaymentOrder):
            if order.network == self._network.id:
                found += self._not_final(order, trace.since)
        for move in self._store.every(Move):
            if move.network == self._network.id:
                found += self._not_final(move, trace.since)
        return found

    def _not_final(self, record: PaymentOrder | Move, since: int) -> list[str]:
        """Why what was found since, whose bytes are forgotten, is not behind us yet."""
        newest = record.newest
        if newest is None or not newest.forgotten or newest.at < since:
            return []
        if record.state == "signed":
            return [f"{newest.txid} is not settled yet"]
        receipt = self._reader.receipt(newest.txid)
        final = receipt is not None and self._deep(receipt.block_number)
        return [] if final else [f"{newest.txid} is not as deep as reorganisations are followed yet"]
