"""A payout in flight, as `transactions.accounts.following` looks at it."""

from __future__ import annotations

from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.booking import PayoutBooking
from chalicelib.usecases.payouts.sent import Sent
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.rivals import outbid


class PayoutInFlight:
    """Implements `InFlight`. The money leaves our wallets: while payments are stopped it is not sent again."""

    others = True

    def __init__(
        self,
        context: NetworkContext,
        sent: Sent,
        booking: PayoutBooking,
        withdrawal: Withdrawal,
        order: PaymentOrder,
        attempts: tuple[Attempt, ...],
    ) -> None:
        self._context, self._sent, self._booking = context, sent, booking
        self._withdrawal, self._order, self.attempts = withdrawal, order, attempts
        self.id, self.name = withdrawal.id, order.id
        self.at_stake: tuple[AssetId, int] = (withdrawal.asset, withdrawal.amount)

    def ours(self) -> Ours:
        return self._sent.ours(self._order)

    def mined(self, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> bool:
        return self._booking.ripen(self._withdrawal, self._order, attempt, receipt, scanned)

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        return self._sent.lost(self._order, scanned)

    def lose(self, scanned: Scanned) -> None:
        self._booking.lose(self._withdrawal, self._order, scanned)

    def give_up(self) -> None:
        self._booking.give_up(self._withdrawal, self._order)

    def broadcast(self, raw: str) -> None:
        self._sent.broadcast(raw)

    def still_out(self, sent: bool, ours: Ours, scanned: Scanned) -> None:
        withdrawal = self._booking.sent_again(self._withdrawal, self.attempts[0]) if sent else self._withdrawal
        if outbid(self._context.store, self._order):
            return
        news = News(self._context.clock.now_ms())
        changes = [*self._sent.renewal(withdrawal, self._order, news, scanned), *news.emit()]
        if changes:
            self._context.store.commit(changes)
