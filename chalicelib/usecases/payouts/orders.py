"""Builds the orders of payouts on account networks: a nonce and the exact unsigned bytes that use it, stored in one transaction.

A crash before leaves no nonce taken, a crash after an order that is signed next (`account_payouts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.fees import bears_fee
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal, ended
from chalicelib.usecases.base.kill_switch import rests_on
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.attempts import PayoutParts, payment_of
from chalicelib.usecases.payouts.fees import Denied
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.transactions.first_nonce import counter_beside
from chalicelib.usecases.transactions.nonces import allotted
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id


class PayoutOrders:
    def __init__(self, parts: PayoutParts, payer_of: Callable[[Network], ChainPayer]) -> None:
        self._parts, self._store, self._checks, self._payer_of = parts, parts.store, parts.checks, payer_of

    def built(self, network: Network, wallet: Wallet, withdrawal: Withdrawal, order: PaymentOrder | None) -> PaymentOrder | None:
        """Its order with bytes. Those that were thrown away are built anew with its own nonce, which nothing was signed for.

        None where the withdrawal waits, or has failed: the chain would refuse it, or it costs too much. Raises PaymentsStopped,
        Conflict, Unavailable.
        """
        if order is None:
            return self._order(network, wallet, withdrawal)
        if order.unsigned:
            return order
        payment = payment_of(self._store, wallet, withdrawal, order.nonce)
        try:
            # Whatever its recipient does by now: later payments of the wallet wait for this nonce.
            unsigned = self._payer_of(network).prepare(replace(payment, gas="used"))
        except Refused as refused:
            raise Unavailable(f"order {order.id} can not be built anew now: {refused}") from refused
        built = replace(next_version(order), unsigned=unsigned)
        self._store.commit([Save(built)])
        return built

    def _order(self, network: Network, wallet: Wallet, withdrawal: Withdrawal) -> PaymentOrder | None:
        """Allot the next nonce and store the order that uses it, in one transaction. None when the chain would refuse it."""
        payer = self._payer_of(network)
        payment = payment_of(self._store, wallet, withdrawal, 0)

        def prepare(nonce: int) -> str:
            return payer.prepare(replace(payment, nonce=nonce, gas="any" if bears_fee(withdrawal) else "bounded"))

        counter, prepared = counter_beside(self._store, network, payer, wallet.address, prepare)
        payment = replace(payment, nonce=counter.next)
        try:
            unsigned = prepared()
        except InsufficientFunds as error:
            raise Unavailable(f"the hot wallet of {network.id} has too little for now") from error
        except Refused as refused:
            self._checks.refuse(withdrawal, refused)
            return None
        news = News(self._parts.clock.now_ms())
        now = news.at
        catalogue, views = catalogue_views(self._store, withdrawal, self._parts.rates_of, now)
        # Once more, of these very bytes: prices, or what the recipient does, may have changed since it began.
        allowed = self._parts.fees.of_bytes(catalogue, network, payer, withdrawal, payment, unsigned)
        if isinstance(allowed, Denied):
            self._checks.deny(network, withdrawal, allowed)
            return None
        order = PaymentOrder(
            id=order_id(withdrawal),
            network=network.id,
            wallet=wallet.address,
            nonce=counter.next,
            withdrawal_id=withdrawal.id,
            tenant=withdrawal.tenant,
            asset=withdrawal.asset,
            contract=payment.contract,
            recipient=withdrawal.to_address,
            amount=withdrawal.amount,
            unsigned=unsigned,
            created_at=now,
        )
        rests = rests_on(self._store, network.realm)  # a nonce that nobody may use now would hold up moves of the same wallet
        noted = replace(
            allowed.withdrawal, order_id=order.id, pending_reason=None, fee_wait=ended(withdrawal.fee_wait), updated_at=now,
            version=version_after(withdrawal),
        )  # fmt: skip
        reserved = self._parts.fees.reserving(news, views, allowed)
        self._store.commit([Save(order), *allotted(counter, order.id), Save(noted), *rests, *reserved, *news.emit()])
        return order
