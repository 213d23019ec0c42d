"""The fee bound of a replacement on account networks (money rule 14): checked before it is signed.

Replacements of bundles are bounded where they are built (`bundle_building`) and where they are signed (`bundle_signing`).
"""

from __future__ import annotations

import logging

from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.payouts.fees import Allowed, PayoutFees
from chalicelib.usecases.ports.accounts import ChainPayer, Explained
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.first_nonce import counter_of
from chalicelib.usecases.transactions.replacement_bounds import affordable, worn_out

log = logging.getLogger(__name__)


class ReplacementFees:
    """Reads and checks; stores nothing by itself."""

    def __init__(self, store: Store, rules: AddressRules, fees: PayoutFees, renewals: RenewalRules) -> None:
        self._store, self._rules, self.fees, self._renewals = store, rules, fees, renewals

    def worn_out(self, network: Network, order: PaymentOrder) -> bool:
        """Whether the order was replaced as often as it may be; with an alarm."""
        return worn_out(network, self._renewals, order)

    def allowed(
        self, catalogue: Catalogue, network: Network, payer: ChainPayer, before: Withdrawal, order: PaymentOrder, does: Explained
    ) -> Allowed | None:
        """Whether a replacement may cost what it `does`; None, with an alarm, where the newest attempt is sent on instead.

        Where later payments of the wallet wait for its nonce, it may cost more than it is worth: that is in the operator's interest
        then, and its gas stays bounded, its fee by the rules of replacements. Raises OrderMismatch where the first attempt's bytes
        are not what was signed, Unavailable.
        """
        if not affordable(payer, self._rules, network, self._renewals, order, does, order.wallet):
            log.warning("ALARM %s: %s is stuck, and a replacement would cost %d", network.id, order.id, does.fee)
            return None
        allowed = self.fees.check(catalogue, network, before, does.fee, replaces=True)
        if isinstance(allowed, Allowed):
            return allowed
        following = None if does.nonce is None else counter_of(self._store, network, payer, order.wallet).next
        if following is None or following == order.nonce + 1:
            log.warning("ALARM %s: %s is stuck and is not replaced for %d: %s", network.id, order.id, does.fee, allowed.why)
            return None
        log.warning(
            "ALARM %s: %s is replaced for %d, since others wait for its nonce: %s", network.id, order.id, does.fee, allowed.why
        )
        return Allowed(before)
