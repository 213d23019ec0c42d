"""Open withdrawals that may join a bundle: approved, within their merchant's fee budget, and nobody objects to them."""

from __future__ import annotations

import logging

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.ids import AssetId, TenantId, asset_parts
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal, fee_at
from chalicelib.usecases.base.address_forms import same_place
from chalicelib.usecases.payouts.bundle_parts import BundleParts
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.fee_budget import USED_UP, Counted
from chalicelib.usecases.withdrawals.steps import order_id

log = logging.getLogger(__name__)


class Candidates:
    """For one bundle of `wallet`, at most `room` of them in `found`."""

    def __init__(self, parts: BundleParts, network: Network, wallet: Wallet, asset: AssetId, room: int) -> None:
        self._parts, self._network, self._wallet, self._room = parts, network, wallet, room
        quote = parts.store.get(FeeQuote, network=network.id)
        self._quoted = 0 if quote is None else quote.fees.get(asset_parts(asset)[1], 0)
        self.found: list[Withdrawal] = []
        self._seen: set[str] = set()
        self._used_up: set[TenantId] = set()

    def consider(self, withdrawal: Withdrawal | None) -> None:
        """Add it to `found`, if it may join; else note on it what it waits for. Raises Conflict, Unavailable."""
        if withdrawal is None or len(self.found) >= self._room or not self._open(withdrawal):
            return
        self._seen.add(withdrawal.id)
        if self._joins(withdrawal):
            self.found.append(withdrawal)

    def _open(self, withdrawal: Withdrawal) -> bool:
        if withdrawal.id in self._seen:
            return False
        if withdrawal.waits_for_fees and withdrawal.tenant in self._used_up:
            return False  # each in its turn: thousands of them would hold up everybody else's
        # What left its bundle says what it waits for, so that the orders of all who are in one need not be read.
        if withdrawal.status == "pending":
            return True
        return withdrawal.pending_reason is not None and between_bundles(self._parts.store, withdrawal) is not None

    def _joins(self, withdrawal: Withdrawal) -> bool:
        checks, network = self._parts.checks, self._network
        if checks.stopped(network, withdrawal):
            return False
        if not checks.agreed(withdrawal):
            # It must not keep the others of its bundle from being paid.
            log.error("ALARM %s: %s differs from what was approved", network.id, withdrawal.id)
            return False
        if same_place(self._parts.rules, network, withdrawal.to_address, self._wallet.address):
            # It could not be told from change.
            if withdrawal.status == "pending":
                checks.fail(withdrawal, "the address is that of the wallet that pays")
            return False
        return withdrawal.status != "pending" or self._affordable(withdrawal)

    def _affordable(self, withdrawal: Withdrawal) -> bool:
        """Whether it may be paid today: what may not takes no coins away from others."""
        screened = self._parts.checks.screened(self._network, withdrawal)
        if screened is None:
            return False
        alone = fee_at(self._quoted, withdrawal.priority)  # by itself it would cost no less than its share
        if afforded(self._parts, self._network, withdrawal, alone, screened.own) is None:
            self._used_up.add(withdrawal.tenant)
            return False
        return True


def afforded(parts: BundleParts, network: Network, withdrawal: Withdrawal, fee: int, own: bool) -> Counted | None:
    """What counts for a pending one, not stored yet; None where it waits for its merchant's fee budget. Raises Unavailable."""
    counted = parts.budgets.start(network, withdrawal, fee, own)
    if counted.over:
        parts.checks.wait_for_fees(network, withdrawal, USED_UP, own=False)
        return None
    return counted


def between_bundles(store: Store, withdrawal: Withdrawal) -> PaymentOrder | None:
    """The order of a withdrawal that left its bundle and is in no other. Raises Unavailable."""
    order = None if withdrawal.status != "processing" else store.get(PaymentOrder, id=order_id(withdrawal))
    return order if order is not None and order.unbundled else None
