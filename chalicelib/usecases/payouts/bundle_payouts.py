"""Pays withdrawals on UTXO networks: several in one transaction, each step stored before the next begins.

What a crash leaves is always one of these, and `pay` goes on from it:

* pending: nothing was begun. Whatever is open and covered joins the bundle that gathers, one withdrawal per transaction.
* gathering: payments are named, no coin is taken. Coins are reserved and the exact bytes stored in one transaction (money rule 6).
  What the coins do not suffice for any more leaves first, and is between bundles: processing, with an order that names none.
* built: the same bytes are checked and signed; of two workers that sign, one stores its signatures (money rules 5 and 7).
* signed: each payment's coins are booked as in flight, in a transaction of its own; then the same bytes go to the node, as often
  as it takes. A replacement (BIP-125) is built, stored, checked and signed the same way, beside what it replaces.

What happens after the broadcast is decided by `bundle_settlement` for the coins and by `settlement` for each payment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import TenantId
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import FINAL, PaymentOrder, Withdrawal
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.account_payouts import Outcome
from chalicelib.usecases.payouts.bundle_building import BundleBuilding
from chalicelib.usecases.payouts.bundle_gathering import BundleGathering
from chalicelib.usecases.payouts.bundle_members import members
from chalicelib.usecases.payouts.bundle_signing import BundleSigning
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.payouts.fees import PayoutFees
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Conflict, Open, Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.signing import Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.screening.withdrawals import Risk
from chalicelib.usecases.wallets.signers import signing_wallet
from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id, sent_work, stepped

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
        self._store, self._rules, self._clock, self._payer_of = store, rules, clock, payer_of
        self._budgets = budgets
        checks = PayoutChecks(store, rules, clock, risk, rates_of)
        fees = PayoutFees(store, rates_of)
        self._building = BundleBuilding(store, rules, clock, payer_of, reader_of, renewals, fees)
        self._gathering = BundleGathering(store, rules, clock, payer_of, checks, self._building, fees, budgets)
        self._signing = BundleSigning(store, rules, clock, signer, payer_of, checks, renewals, second_of)

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
        if bundle.state == "built":
            bundle = self._signing.sign(network, wallet, bundle)
        if bundle.state != "signed":
            return "done"
        self._book(network, bundle)
        if bundle.renew:
            bundle = self._building.build_replacement(network, wallet, bundle)
        if bundle.newest is not None and bundle.newest.raw is None:
            bundle = self._signing.sign(network, wallet, bundle)
        return self._send(network, bundle)

    def _book(self, network: Network, bundle: Bundle) -> None:
        """processing → broadcasting: from now on each payment can reach the chain at any time, and its coins are in flight."""
        newest = bundle.newest
        if newest is None or newest.txid is None:
            return  # a replacement: everything was booked before the first was sent
        for withdrawal, order in members(self._store, bundle):
            if withdrawal.status != "processing":
                continue
            news = News(self._clock.now_ms())
            _, views = catalogue_views(self._store, withdrawal)
            share = bundle.share(withdrawal.id, newest.fee)
            done = replace(
                order, txid=newest.txid, fee=share, signed_at=newest.signed_at, state="signed", version=order.version + 1
            )
            after = replace(withdrawal, status="broadcasting", txid=newest.txid, fee=share, updated_at=news.at)
            after = stepped(news, views, withdrawal, after)
            place = ledger.wallet(network.id, self._rules.storage_form(network.slug, order.wallet))
            entry = ledger.payment_signed(order.id, news.at, place, Amount(order.asset, order.amount))
            works = (Close(payout_work(withdrawal)), Open(sent_work(withdrawal)))
            self._store.commit([Save(done), Save(after), Post(entry), *works, *news.emit()])

    def _send(self, network: Network, bundle: Bundle) -> Outcome:
        newest = bundle.newest
        if newest is None or newest.raw is None or newest.txid is None:
            raise LookupError(f"{bundle.id} has no signed bytes")
        if stopped(self._store, network.realm):
            return "waiting"  # thrown since it was signed; the poll sends it once payments go on
        try:
            self._payer_of(network).broadcast(newest.raw)
        except Refused as refused:
            # Signed bytes stay valid: whether they can ever be paid, only the chain decides. Sent again by the polls.
            log.warning("%s: the node refused %s for now: %s", network.id, bundle.id, refused)
            return "waiting"
        for withdrawal, order in members(self._store, bundle):
            if withdrawal.status not in ("broadcasting", "confirming"):
                continue
            if withdrawal.status == "confirming" and withdrawal.txid == newest.txid:
                continue
            news = News(self._clock.now_ms())
            _, views = catalogue_views(self._store, withdrawal)
            share = bundle.share(withdrawal.id, newest.fee)
            counted = self._budgets.corrected(withdrawal, share)
            after = replace(counted.withdrawal, status="confirming", txid=newest.txid, fee=share, updated_at=news.at)
            after = stepped(news, views, withdrawal, after)
            changes: list[Change] = [Save(after), *counted.changes]
            if order.txid != newest.txid:
                changes.append(Save(replace(order, txid=newest.txid, fee=share, version=order.version + 1)))
            self._store.commit([*changes, *news.emit()])
        return "done"
