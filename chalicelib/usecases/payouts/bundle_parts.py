"""Ports and rules that the steps of a bundle share: the wiring makes them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.usecases.payouts.fees import PayoutFees
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.signing import Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.fee_budget import FeeBudgets


@dataclass(frozen=True, slots=True)
class BundleParts:
    """Has the signer: only the payout function has these."""

    store: Store
    rules: AddressRules
    clock: Clock
    signer: Signer
    payer_of: Callable[[Network], CoinPayer]
    checks: PayoutChecks
    fees: PayoutFees
    budgets: FeeBudgets
