"""Paying withdrawals: pending → processing → broadcasting, step by step, each step stored before the next begins.

Of networks of accounts, that is: those of coins pay several withdrawals in one transaction (`bundle_payouts`).

What a crash leaves is always one of these, and `pay` goes on from it:

* pending: nothing was begun. The grey list is asked once more; where the address has come to it, the operator decides first.
* processing, no order: nothing was allotted. The next nonce and the order are taken in one transaction (money rule 6).
* an order without signed bytes: the same unsigned bytes are signed; of two workers that sign, one stores its signature.
* signed bytes stored (broadcasting): they alone are ever sent, as often as it takes (money rule 5).
* an order to renew: no block takes its newest bytes, and `settlement` asked for others with the same nonce. Both are kept, and
  whichever the chain takes has paid. What is signed and not stored is never sent.

An order's id follows from its withdrawal, so a withdrawal has one order for ever: once signed it is never payable again.
What happens after the broadcast is decided by `settlement`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Protocol

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ids import TenantId, network_parts
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.fees import bears_fee
from chalicelib.domain.withdrawals.withdrawals import FINAL, NonceUse, PaymentOrder, Withdrawal, ended
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.kill_switch import rests_on, stopped
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.payouts.attempts import PayoutAttempts, PayoutParts, coin_of, payment_of
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.payouts.fees import Denied, PayoutFees, estimated
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.signing import Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.withdrawals import Risk
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.first_nonce import counter_of
from chalicelib.usecases.transactions.rivals import outbid
from chalicelib.usecases.wallets.signers import signing_wallet
from chalicelib.usecases.wallets.utxos import pays_from_coins
from chalicelib.usecases.withdrawals.fee_budget import USED_UP, FeeBudgets
from chalicelib.usecases.withdrawals.steps import (
    catalogue_views,
    order_id,
    stepped,
)

log = logging.getLogger(__name__)

Outcome = Literal["done", "waiting"]


class FromCoins(Protocol):
    """How withdrawals are paid on networks of coins: `bundle_payouts`."""

    def advance(self, network: Network, tenant: TenantId, withdrawal_id: str) -> Outcome: ...


class Payouts:
    """Needs the signer: only the payout function has one."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        signer: Signer,
        payer_of: Callable[[Network], ChainPayer],
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
        from_coins: FromCoins,
        risk: Risk,
        rates_of: RatesOf,
        budgets: FeeBudgets,
        signing: AccountSigning,
    ) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._budgets = budgets
        self._payer_of, self._reader_of = payer_of, reader_of
        self._checks, self._fees = PayoutChecks(store, rules, clock, risk, rates_of), PayoutFees(store, rates_of)
        self._parts = PayoutParts(store, rules, clock, signer, self._checks, self._fees, budgets, rates_of, renewals)
        self._rates_of, self._from_coins, self._signing = rates_of, from_coins, signing

    def pay(self, tenant: TenantId, withdrawal_id: str) -> Outcome:
        """Bring a withdrawal as far as its broadcast. Safe to call at any time, twice, at once.

        "done" means that nothing is left for this function; "waiting" that approval or liquidity is missing, or that the node
        refused for now. Raises Unavailable, OrderMismatch, Conflict: to be called again later.
        """
        return until_settled(lambda: self._advance(tenant, withdrawal_id))

    def _advance(self, tenant: TenantId, withdrawal_id: str) -> Outcome:
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if withdrawal is None or withdrawal.status in FINAL:
            return "done"
        network = catalogue_views(self._store, withdrawal)[0].networks[network_parts(withdrawal.network)[1]]
        if stopped(self._store, network.realm):
            self._checks.halt(network, withdrawal)
            return "waiting"
        if pays_from_coins(network):
            return self._from_coins.advance(network, tenant, withdrawal_id)
        if withdrawal.status == "pending":
            started = self._start(network, withdrawal)
            if started is None or started.status in FINAL:
                return "done" if started is not None else "waiting"
            withdrawal = started
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        if withdrawal.status == "confirming" and (order is None or not order.renew):
            return "done"
        wallet = self._begun_with(network, withdrawal, order)
        if order is not None and order.renew:
            attempts = self._attempts(network, wallet, withdrawal)
            return self._broadcast(attempts) if self._renew(attempts, order) else "waiting"
        if withdrawal.status == "processing":
            built = self._built(network, wallet, withdrawal, order)
            if built is None:
                return "done"
            return self._broadcast(self._sign(network, wallet, withdrawal, built))
        return self._broadcast(self._attempts(network, wallet, withdrawal))

    def _begun_with(self, network: Network, withdrawal: Withdrawal, order: PaymentOrder | None) -> Wallet:
        """The wallet that it was begun with, which may have been replaced since."""
        if order is not None and order.wallet != withdrawal.from_address:
            log.error("ALARM %s: order %s differs from what was approved in wallet", network.id, order.id)
            raise OrderMismatch(f"order {order.id} names another wallet than the withdrawal was begun with")
        paid_from = withdrawal.from_address
        wallet = signing_wallet(self._store, network.id, paid_from)
        if wallet is None:
            log.error("ALARM %s: the wallet %s that payment %s was begun with is not here", network.id, paid_from, withdrawal.id)
            raise Unavailable(f"the hot wallet of {network.id} is gone while a payment is under way")
        return wallet

    def _wallet(self, network: Network) -> Wallet | None:
        return wallet_of(self._store, network.id, "hot")

    def _start(self, network: Network, before: Withdrawal) -> Withdrawal | None:
        """pending → processing where nothing stands in the way; None while something does, and the record says what."""
        if self._checks.stopped(network, before):
            return None
        judged = self._checks.judged(network, before)
        if judged is None:
            return None
        wallet = self._wallet(network)
        if wallet is None or not self._covered(network, wallet, before):
            self._checks.wait_for_liquidity(network, before)
            return None
        payment = payment_of(self._store, wallet, before, self._next_nonce(network, wallet))
        try:
            estimate, bound, short = estimated(self._payer_of(network), payment)
        except InsufficientFunds:
            self._checks.wait_for_liquidity(network, before)
            return None
        except Refused as refused:
            return self._checks.refuse(before, refused)
        news = News(self._clock.now_ms())
        catalogue, views = catalogue_views(self._store, before, self._rates_of, news.at)
        allowed = self._fees.judge(catalogue, network, before, estimate.fee, gas=estimate.gas, bound=bound)
        if isinstance(allowed, Denied):
            return self._checks.deny(network, before, allowed)
        if short:
            self._checks.wait_for_liquidity(network, before)
            return None
        counted = self._budgets.begun(network, allowed.withdrawal, estimate.fee, judged.own)
        if counted.over:
            return self._checks.wait_for_fees(network, before, USED_UP, own=False)
        after = replace(
            counted.withdrawal, status="processing", pending_reason=None, from_address=wallet.address, fee=estimate.fee,
            updated_at=news.at, risk=judged.assessment or before.risk, fee_wait=ended(before.fee_wait),
        )  # fmt: skip
        after = stepped(news, views, before, after)
        reserved = self._fees.reserving(news, views, allowed)
        # Nothing new begins with a wallet that was replaced: whoever drains it has to know what it still has to pay.
        self._store.commit([Save(after), Still(wallet), *judged.noted, *reserved, *counted.changes, *news.emit()])
        return after

    def _covered(self, network: Network, wallet: Wallet, withdrawal: Withdrawal) -> bool:
        """Whether the hot wallet has the amount and the fee, by the ledger (which knows what is signed and not yet mined) and
        by the chain, and keeps its floors: that of the coin, and that of the native coin, which the fee is paid in."""
        coin = coin_of(self._store, withdrawal)
        native = catalogue_views(self._store, withdrawal)[0].native(network.slug)
        floor, floor_of_fees = self._checks.floor(coin), self._checks.floor(native)
        if floor is None or floor_of_fees is None:
            return False
        booked = self._booked(network, wallet, coin)
        quote = self._store.get(FeeQuote, network=network.id)
        fee = max(1, quote.fees.get(coin.slug, 0)) if quote is not None else 1
        needed = withdrawal.amount + (fee if coin.contract is None else 0)
        if booked < needed + floor:
            return False
        if coin.contract is not None and floor_of_fees and self._booked(network, wallet, native) < fee + floor_of_fees:
            return False
        reader = self._reader_of(network)
        if reader.balance(wallet.address, coin.contract) < needed:
            return False
        return coin.contract is None or reader.balance(wallet.address) >= fee

    def _booked(self, network: Network, wallet: Wallet, coin: Coin) -> int:
        place = self._rules.storage_form(network.slug, wallet.address)
        found = self._store.get(WalletBalance, network=network.id, address=place, asset=coin.asset)
        return 0 if found is None else found.units

    def _next_nonce(self, network: Network, wallet: Wallet) -> int:
        return counter_of(self._store, network, self._payer_of(network), wallet.address).next

    def _order(self, network: Network, wallet: Wallet, withdrawal: Withdrawal) -> PaymentOrder | None:
        """Allot the next nonce and store the order that uses it, in one transaction. None when the chain would refuse it."""
        payer = self._payer_of(network)
        counter = counter_of(self._store, network, payer, wallet.address)
        payment = payment_of(self._store, wallet, withdrawal, counter.next)
        try:
            unsigned = payer.prepare(replace(payment, gas="any" if bears_fee(withdrawal) else "bounded"))
        except InsufficientFunds as error:
            raise Unavailable(f"the hot wallet of {network.id} has too little for now") from error
        except Refused as refused:
            self._checks.refuse(withdrawal, refused)
            return None
        news = News(self._clock.now_ms())
        now = news.at
        catalogue, views = catalogue_views(self._store, withdrawal, self._rates_of, now)
        # Once more, of these very bytes: prices, or what the recipient does, may have changed since it began.
        allowed = self._fees.of_bytes(catalogue, network, payer, withdrawal, payment, unsigned)
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
        taken = replace(next_version(counter), next=counter.next + 1)
        noted = replace(
            allowed.withdrawal, order_id=order.id, pending_reason=None, fee_wait=ended(withdrawal.fee_wait), updated_at=now,
            version=version_after(withdrawal),
        )  # fmt: skip
        use = NonceUse(order.id, network.id, wallet.address, order.nonce)
        reserved = self._fees.reserving(news, views, allowed)
        self._store.commit([Save(order), Save(taken), Save(use), Save(noted), *rests, *reserved, *news.emit()])
        return order

    def _built(self, network: Network, wallet: Wallet, withdrawal: Withdrawal, order: PaymentOrder | None) -> PaymentOrder | None:
        """Its order with bytes. Those that were thrown away are built anew with its own nonce, which nothing was signed for."""
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

    def _sign(self, network: Network, wallet: Wallet, withdrawal: Withdrawal, order: PaymentOrder) -> PayoutAttempts:
        """The signed attempt of a withdrawal that is broadcasting by then."""
        current = self._store.get(Withdrawal, tenant=withdrawal.tenant, id=withdrawal.id)
        if current is None or current.status != "processing":
            raise Unavailable("the withdrawal moved on while it was being signed")
        attempts = self._attempts(network, wallet, current)
        self._signing.first(attempts, order)
        return attempts

    def _renew(self, attempts: PayoutAttempts, order: PaymentOrder) -> bool:
        """Whether a replacement of the newest bytes, which no block takes, is signed and stored."""
        if attempts.withdrawal.status not in ("broadcasting", "confirming") or order.txid is None:
            return False
        return not outbid(self._store, order) and self._signing.again(attempts, order) is not None

    def _attempts(self, network: Network, wallet: Wallet, withdrawal: Withdrawal) -> PayoutAttempts:
        return PayoutAttempts(self._parts, network, self._payer_of(network), wallet, withdrawal)

    def _broadcast(self, attempts: PayoutAttempts) -> Outcome:
        withdrawal = attempts.withdrawal
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        if order is None or order.raw is None:
            raise Unavailable("the signed bytes are not readable yet")
        if not self._signing.send(attempts, order.raw):
            return "waiting"  # the poll sends it, once payments go on or the node takes it
        if withdrawal.status == "confirming":
            return "done"
        news = News(self._clock.now_ms())
        _, views = catalogue_views(self._store, withdrawal)
        after = stepped(news, views, withdrawal, replace(withdrawal, status="confirming", updated_at=news.at))
        self._store.commit([Save(after), *news.emit()])
        return "done"
