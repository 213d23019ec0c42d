"""Paying withdrawals: pending → processing → broadcasting, step by step, each step stored before the next begins.

Of networks of accounts, that is: those of coins pay several withdrawals in one transaction (`bundle_payouts`).

What a crash leaves is always one of these, and `pay` goes on from it:

* pending: nothing was started. The grey list is asked once more; where the address has come to it, the operator decides first.
* processing, no order: nothing was allotted. The next nonce and the order are taken in one transaction (money rule 6).
* an order without signed bytes: the same unsigned bytes are signed; of two workers that sign, one stores its signature.
* signed bytes stored (broadcasting): they alone are ever sent, as often as it takes (money rule 5).
* an order to renew: no block takes its newest bytes, and `settlement` asked for others with the same nonce. Both are kept, and
  whichever the chain takes has paid. What is signed and not stored is never sent.

An order's id follows from its withdrawal, so a withdrawal has one order for ever: once signed it is never payable again.
What happens after the broadcast is decided by `settlement`. How it is signed and replaced, and why that pays once, says
`transactions.accounts.signing`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Protocol

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import TenantId, network_parts
from chalicelib.domain.withdrawals.withdrawals import FINAL, PaymentOrder, Withdrawal
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.payouts.attempts import PayoutAttempts, PayoutParts
from chalicelib.usecases.payouts.beginning import PayoutBeginning
from chalicelib.usecases.payouts.orders import PayoutOrders
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.rivals import outbid
from chalicelib.usecases.wallets.signers import signing_wallet
from chalicelib.usecases.wallets.utxos import pays_from_coins
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id, stepped

log = logging.getLogger(__name__)

Outcome = Literal["done", "waiting"]


class FromCoins(Protocol):
    """How withdrawals are paid on networks of coins: `bundle_payouts`."""

    def advance(self, network: Network, tenant: TenantId, withdrawal_id: str) -> Outcome: ...


class Payouts:
    """Needs the signer: only the payout function has one."""

    def __init__(
        self,
        parts: PayoutParts,
        payer_of: Callable[[Network], ChainPayer],
        reader_of: Callable[[Network], ChainReader],
        from_coins: FromCoins,
        signing: AccountSigning,
    ) -> None:
        self._parts, self._store, self._checks = parts, parts.store, parts.checks
        self._payer_of, self._from_coins, self._signing = payer_of, from_coins, signing
        self._beginning, self._orders = PayoutBeginning(parts, payer_of, reader_of), PayoutOrders(parts, payer_of)

    def pay(self, tenant: TenantId, withdrawal_id: str, slot: int = 0, *, handed: bool = False) -> Outcome:
        """Bring a withdrawal as far as its broadcast. Safe to call at any time, twice, at once. `slot`: of the hot wallet that
        pays where it is not started yet; `handed`: another one has handed it over.

        "done" means that nothing is left for this function; "waiting" that approval or liquidity is missing, or that the node
        refused for now. Raises Unavailable, OrderMismatch, Conflict: to be called again later.
        """
        return until_settled(lambda: self._advance(tenant, withdrawal_id, slot, handed))

    def _advance(self, tenant: TenantId, withdrawal_id: str, slot: int, handed: bool) -> Outcome:
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if withdrawal is None or withdrawal.status in FINAL:
            return "done"
        demand_known(withdrawal)
        network = catalogue_views(self._store, withdrawal)[0].networks[network_parts(withdrawal.network)[1]]
        if stopped(self._store, network.realm):
            self._checks.halt(network, withdrawal)
            return "waiting"
        if pays_from_coins(network):
            return self._from_coins.advance(network, tenant, withdrawal_id)
        if withdrawal.status != "pending":
            return self._go_on(network, withdrawal)
        begun = self._beginning.begin(network, withdrawal, slot, handed=handed)
        if begun is None:
            return "waiting"
        return "done" if begun.status in FINAL else self._go_on(network, begun)

    def _go_on(self, network: Network, withdrawal: Withdrawal) -> Outcome:
        """With one that was started: build its order, sign it, send it."""
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        demand_known(order)
        if withdrawal.status == "confirming" and (order is None or not order.renew):
            return "done"
        wallet = self._begun_with(network, withdrawal, order)
        attempts = PayoutAttempts(self._parts, network, self._payer_of(network), wallet, withdrawal)
        if order is not None and order.renew:
            return self._broadcast(attempts) if self._renew(attempts, order) else "waiting"
        if withdrawal.status == "processing":
            built = self._orders.built(network, wallet, withdrawal, order)
            if built is None:
                return "done"
            self._sign(attempts, built)
        return self._broadcast(attempts)

    def _begun_with(self, network: Network, withdrawal: Withdrawal, order: PaymentOrder | None) -> Wallet:
        """The wallet that it was started with, which may have been replaced since."""
        if order is not None and order.wallet != withdrawal.from_address:
            log.error("ALARM %s: order %s differs from what was approved in wallet", network.id, order.id)
            raise OrderMismatch(f"order {order.id} names another wallet than the withdrawal was begun with")
        paid_from = withdrawal.from_address
        wallet = signing_wallet(self._store, network.id, paid_from)
        if wallet is None:
            log.error("ALARM %s: the wallet %s that payment %s was begun with is not here", network.id, paid_from, withdrawal.id)
            raise Unavailable(f"the hot wallet of {network.id} is gone while a payment is under way")
        return wallet

    def _sign(self, attempts: PayoutAttempts, order: PaymentOrder) -> None:
        """The withdrawal of `attempts` is broadcasting by then."""
        before = attempts.withdrawal
        current = self._store.get(Withdrawal, tenant=before.tenant, id=before.id)
        if current is None or current.status != "processing":
            raise Unavailable("the withdrawal moved on while it was being signed")
        attempts.withdrawal = current
        self._signing.first(attempts, order)

    def _renew(self, attempts: PayoutAttempts, order: PaymentOrder) -> bool:
        """Whether a replacement of the newest bytes, which no block takes, is signed and stored."""
        if attempts.withdrawal.status not in ("broadcasting", "confirming") or order.newest is None:
            return False
        return not outbid(self._store, order) and self._signing.again(attempts, order) is not None

    def _broadcast(self, attempts: PayoutAttempts) -> Outcome:
        withdrawal = attempts.withdrawal
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        if order is None or order.newest is None:
            raise Unavailable("the signed bytes are not readable yet")
        if not self._signing.send(attempts, order):
            return "waiting"  # the poll sends it, once payments go on or the node takes it
        if withdrawal.status == "confirming":
            return "done"
        news = News(self._parts.clock.now_ms())
        _, views = catalogue_views(self._store, withdrawal)
        after = stepped(news, views, withdrawal, replace(withdrawal, status="confirming", updated_at=news.at))
        self._store.commit([Save(after), *news.emit()])
        return "done"
