"""Settlement of sent payments: the chain's receipts alone decide (money rule 8)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.payouts.booking import PayoutBooking
from chalicelib.usecases.payouts.following import PaymentsOut
from chalicelib.usecases.payouts.in_flight import PayoutInFlight
from chalicelib.usecases.payouts.sent import Sent
from chalicelib.usecases.transactions.accounts.following import Following
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.withdrawals.steps import (
    order_id,
    payout_parts,
)


class Settlement:
    """Follows the open payments of one network. Needs no key: it only sends bytes that are already signed.

    A payment may have several transactions, each of which replaced the one before (`Sent`); the chain takes at most one of them.
    """

    def __init__(
        self, context: NetworkContext, sent: Sent, finality: Finality, rates_of: RatesOf, answers: Answers | None = None
    ) -> None:
        """`answers`: the cache of this run, shared with the settlement of bundles."""
        self._context, self._sent, self._finality = context, sent, finality
        self._network, self._store, self._clock = context.network, context.store, context.clock
        losses = Losses(context.network, context.reader, context.store)
        self._booking = PayoutBooking(context, sent, finality, rates_of, losses)
        answers = answers or Answers(context.reader)
        self._following = Following(context.network, context.store, answers, losses, finality)
        self.waits_for_scan = False
        """Whether something was met that is deep enough by the node's height and not by what was scanned yet."""

    def follow(self, more: Callable[[], bool]) -> int:
        """Look at the payments that are out and due, and at some of the others: send again what the chain lost, settle what is
        final; how many (`transactions.sorting`, `transactions.asking`).

        Stops when `more` says that the time is over. Raises Unavailable, Failures.
        """
        self.waits_for_scan = False
        out: PaymentsOut | None = None
        with Each(f"{self._network.id}: payments") as each:
            for works in pages_of(self._store, "sent", self._network.id):
                if out is None:
                    scanned = self._finality.scanned()
                    out = PaymentsOut(self._network, self._store, self._clock, self._sent, self._following, scanned)
                out.add(works)
            if out is None:
                return 0
            self.waits_for_scan = out.ripens
            return out.take(more, lambda work: each.take(work.id, partial(until_settled, partial(self._look, work, scanned))), each)

    def _look(self, work: Work, scanned: Scanned) -> None:
        tenant, withdrawal_id = payout_parts(work)
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if withdrawal is None or withdrawal.status not in ("broadcasting", "confirming"):
            return
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        demand_known(order)
        attempts = () if order is None else self._sent.transactions(order)
        if order is None or not attempts:
            raise LookupError(f"{withdrawal.id} is {withdrawal.status} without signed bytes")
        paid = PayoutInFlight(self._context, self._sent, self._booking, withdrawal, order, attempts)
        self.waits_for_scan |= self._following.look(paid, scanned)

    def watch_settled(self, more: Callable[[], bool]) -> None:
        """As `PayoutBooking.watch_settled`."""
        self._booking.watch_settled(more)

    def let_rest(self, more: Callable[[], bool]) -> None:
        """As `PayoutBooking.let_rest`."""
        self._booking.let_rest(more)
