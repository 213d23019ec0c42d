"""Staking TRX on Tron (Stake 2.0): FreezeBalanceV2, built and encoded here, signed elsewhere.

No Tron library is imported here. Source: TIP-467; developers.tron.network, "Stake 2.0".
"""

from __future__ import annotations

from typing import ClassVar

from chalicelib.chains.tron import transactions
from chalicelib.chains.tron.system_contract import SystemContract
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.usecases.ports.staking import ExplainedStake


class TronStaking(SystemContract):
    """Implements `usecases.ports.staking.StakingNode`."""

    kinds: ClassVar[tuple[transactions.Kind, ...]] = ("FreezeBalanceV2Contract",)
    name = "stake"

    def prepare(self, wallet: str, amount: int, resource: Resource, sequence: int) -> str:
        """The unsigned transaction (raw_data, as hex) that freezes `amount` sun. `sequence` makes equal ones differ.

        Raises InsufficientFunds, Unavailable.
        """

        def build() -> str:
            reference = self._sending.reference(sequence)
            unsigned = transactions.Unsigned("FreezeBalanceV2Contract", wallet, amount, reference, resource=resource)
            return self._paid(wallet, unsigned.encode(), amount)

        return self._sending.sure(build)

    def explain(self, unsigned: str) -> ExplainedStake:
        """Decode `unsigned`. Raises ValueError for anything but a stake as this module builds it."""
        decoded = self._decoded(unsigned)
        if decoded.resource is None:
            raise ValueError("the transaction is no stake")
        return ExplainedStake(decoded.owner, decoded.amount, decoded.resource, decoded.txid)
