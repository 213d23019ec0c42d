"""Pays withdrawals on UTXO networks: several in one transaction, each step stored before the next begins.

What a crash leaves is always one of these, and `pay` goes on from it:

* pending: nothing was begun. Whatever is open and covered joins the bundle that gathers, one withdrawal per transaction.
* gathering: payments are named, no coin is taken. Coins are reserved and the exact bytes stored in one transaction (money rule 6).
  What the coins do not suffice for any more leaves first, and is between bundles: processing, with an order that names none.
* built, signed, replaced: as `transactions.utxo.engine` says. Each payment's money is put in flight in a transaction of its own
  before anything is sent, and told of in one of its own after that.

What happens after the broadcast is decided by `bundle_settlement` for the coins and by `settlement` for each payment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import TenantId
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import FINAL, PaymentOrder, Withdrawal
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.payouts.account_payouts import Outcome
from chalicelib.usecases.payouts.bundle_booking import SentBundle
from chalicelib.usecases.payouts.bundle_building import BundleBuilding
from chalicelib.usecases.payouts.bundle_gathering import BundleGathering
from chalicelib.usecases.payouts.bundle_replacing import ReplacedBundle
from chalicelib.usecases.payouts.bundle_signing import SignedBundle
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.payouts.fees import PayoutFees
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.signing import Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.withdrawals import Risk
from chalicelib.usecases.transactions.utxo.engine import Kind, UtxoEngine
from chalicelib.usecases.wallets.signers import signing_wallet
from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets
from chalicelib.usecases.withdrawals.steps import order_id

log = logging.getLogger(__name__)


class BundlePayouts:
    """Needs the signer: only the payout function has one."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        signer: Signer,
        payer_of: Callable[[Network], CoinPayer],
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
        risk: Risk,
        rates_of: RatesOf,
        budgets: FeeBudgets,
        second_of: Callable[[Network], SecondReader[CoinOrder]],
    ) -> None:
        self._store, self._rules, self._clock, self._signer, self._budgets = store, rules, clock, signer, budgets
        self._checks = checks = PayoutChecks(store, rules, clock, risk, rates_of)
        fees = PayoutFees(store, rates_of)
        self._building = BundleBuilding(store, rules, clock, payer_of, fees)
        self._gathering = BundleGathering(store, rules, clock, payer_of, checks, self._building, fees, budgets)
        self._engine = UtxoEngine(store, rules, clock, payer_of, reader_of, renewals, second_of)

    def advance(self, network: Network, tenant: TenantId, withdrawal_id: str) -> Outcome:
        """Bring a withdrawal, and whatever can be paid with it, as far as the broadcast: one try of `Payouts.pay`."""
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if withdrawal is None or withdrawal.status in FINAL:
            return "done"
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        if withdrawal.status == "pending" or (order is not None and order.unbundled):
            hot = wallet_of(self._store, network.id, "hot")
            full = self._gathering.gather(network, hot, withdrawal)
            if full is not None and hot is not None:
                self._finish(network, hot, full)
                raise Conflict(None)
            withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
            if withdrawal is None or withdrawal.status in FINAL:
                return "done"
            if withdrawal.status == "pending":
                return "waiting"
            order = self._store.get(PaymentOrder, id=order_id(withdrawal))
            if order is not None and order.unbundled:
                return "waiting"
        bundle = None if order is None or order.bundle is None else self._store.get(Bundle, id=order.bundle)
        # The wallet that it was begun with, which may have been replaced since.
        wallet = None if bundle is None else signing_wallet(self._store, network.id, bundle.wallet)
        if bundle is None or wallet is None:
            if self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id) != withdrawal:
                raise Conflict(None)  # it was taken out of its bundle, or ended, between two of these reads
            raise LookupError(f"{withdrawal.id} is {withdrawal.status}, and its bundle or the wallet that pays it is gone")
        if bundle.state == "gathering":
            bundle = self._building.seal(network, wallet, bundle)
        outcome = self._finish(network, wallet, bundle)
        return outcome if any(payout.withdrawal == withdrawal.id for payout in bundle.payouts) else "waiting"

    def _finish(self, network: Network, wallet: Wallet, bundle: Bundle) -> Outcome:
        """Everything that is left to do for a bundle here."""
        if bundle.state == "gathering":
            bundle = self._building.seal(network, wallet, bundle)
        if not bundle.payouts:
            return "waiting"
        sent = SentBundle(self._store, self._rules, self._clock, self._budgets, network)
        signed = SignedBundle(self._store, self._rules, self._clock, self._signer, self._checks, network, wallet)
        replaced = ReplacedBundle(self._store, self._building, network, wallet)
        step, bundle = self._engine.advance(Kind(signed, replaced, sent), bundle)
        if step == "sent":
            sent.tell(bundle)
        return "waiting" if step == "waiting" else "done"
