"""Stakes and energy loans on Tron: decided by an operator, signed, followed."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.treasury.moves import MoveKind
    from chalicelib.usecases.transactions.replacements import Stuck
    from chalicelib.usecases.treasury.tron.energy_loans import Loans
    from chalicelib.usecases.treasury.tron.stake_following import StakeFollowing
    from chalicelib.usecases.treasury.tron.stake_signing import StakeSigning
    from chalicelib.usecases.treasury.tron.staking import Staker, Staking
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.custody import CustodyWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.simulated import SimulatedWiring
    from chalicelib.wiring.transactions import TransactionWiring


class StakeWiring:
    def __init__(
        self, parts: Parts, chains: ChainWiring, simulated: SimulatedWiring, custody: CustodyWiring, transactions: TransactionWiring
    ) -> None:
        self._parts, self._chains, self._simulated = parts, chains, simulated
        self._custody, self._transactions = custody, transactions

    @cached_property
    def staking(self) -> Staking:
        from chalicelib.usecases.treasury.tron.staking import Staking

        parts, node = self._parts, partial(self._chains.staking_node, impatient=True)
        return Staking(parts.store, parts.rules, parts.realm_clock, parts.rates, node)

    def staker(self, network: Network) -> Staker:
        """Raises LookupError for a network that is not simulated."""
        from chalicelib.usecases.treasury.tron.staking import Staker

        chain = self._simulated.simulated(network.id)
        return Staker(self._chains.context(network), chain, self._transactions.finality(network))

    def stake_following(self, network: Network) -> StakeFollowing:
        """For a network that is not simulated."""
        from chalicelib.usecases.treasury.tron.stake_following import StakeFollowing

        context, node = self._chains.context(network), self._chains.staking_node(network)
        return StakeFollowing(context, node, self._transactions.renewals, self._transactions.finality(network))

    @cached_property
    def stake_signing(self) -> StakeSigning:
        from chalicelib.usecases.treasury.tron.stake_signing import StakeSigning

        parts, chains, signer = self._parts, self._chains, self._custody.signer
        signing = self._transactions.account_signing(chains.second_readers.accounts)
        return StakeSigning(parts.store, chains.context, signer, chains.staking_node, signing)

    def loans(self, network: Network) -> Loans | None:
        """The loans of the hot wallet's energy; None for a network that has none."""
        if network.family != "tron" or network.simulated:
            return None
        from chalicelib.usecases.treasury.tron.energy_loans import Loans

        clock, delegations = self._parts.clock_of(network.realm), self._chains.delegations(network)
        return Loans(network, self._parts.store, clock, delegations)

    def stuck_loans(self, network: Network) -> dict[MoveKind, Stuck]:
        """The rule when to replace an energy loan; empty for a network that has none."""
        from chalicelib.domain.treasury.moves import LOANS
        from chalicelib.usecases.transactions.replacements import Stuck

        if network.family != "tron" or network.simulated:
            return {}
        context, payer = self._chains.context(network), partial(self._chains.loan_payer, network)
        renewals, finality = self._transactions.renewals, self._transactions.finality(network)
        return {kind: Stuck(context, payer(kind), renewals, finality) for kind in LOANS}
