"""Pays withdrawals on UTXO networks: several in one transaction, each step stored before the next begins.

What a crash leaves is always one of these, and `pay` goes on from it:

* pending: nothing was started. Whatever is open and covered joins the bundle that gathers, one withdrawal per transaction.
* gathering: payments are named, no coin is taken. Coins are reserved and the exact bytes stored in one transaction (money rule 6).
  What the coins do not suffice for any more leaves first, and is between bundles: processing, with an order that names none.
* built, signed, replaced: as `transactions.utxo.engine` says. Each payment's money is put in flight in a transaction of its own
  before anything is sent, and told of in one of its own after that.

What happens after the broadcast is decided by `bundle_settlement` for the coins and by `settlement` for each payment.
"""

from __future__ import annotations

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import TenantId
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import FINAL, PaymentOrder, Withdrawal
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.payouts.account_payouts import Outcome
from chalicelib.usecases.payouts.bundle_booking import SentBundle
from chalicelib.usecases.payouts.bundle_building import BundleBuilding
from chalicelib.usecases.payouts.bundle_gathering import BundleGathering
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.payouts.bundle_replacing import ReplacedBundle
from chalicelib.usecases.payouts.bundle_signing import SignedBundle
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.transactions.utxo.engine import Kind, UtxoEngine
from chalicelib.usecases.wallets.signers import signing_wallet
from chalicelib.usecases.withdrawals.steps import order_id


class BundlePayouts:
    """Needs the signer: only the payout function has one."""

    def __init__(self, parts: BundleParts, engine: UtxoEngine) -> None:
        self._parts, self._store, self._engine = parts, parts.store, engine
        self._building = BundleBuilding(parts)
        self._gathering = BundleGathering(parts, self._building)

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
        demand_known(withdrawal, order, bundle)
        # The wallet that it was started with, which may have been replaced since.
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
        sent = SentBundle(self._parts, network)
        signed = SignedBundle(self._parts, network, wallet)
        replaced = ReplacedBundle(self._store, self._building, network, wallet)
        step, bundle = self._engine.advance(Kind(signed, replaced, sent), bundle)
        if step == "sent":
            sent.tell(bundle)
        return "waiting" if step == "waiting" else "done"
