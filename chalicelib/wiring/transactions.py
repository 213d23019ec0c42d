"""Outgoing transactions: finality, node votes, losses, replacements, decisions to give up."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.transactions.replacements import RenewalRules
    from chalicelib.usecases.ports.second_reader import CoinOrder, Order, SecondReader
    from chalicelib.usecases.transactions.accounts.signing import AccountSigning
    from chalicelib.usecases.transactions.chain_cache import Answers
    from chalicelib.usecases.transactions.expiry_votes import Hearings
    from chalicelib.usecases.transactions.finality import Finality
    from chalicelib.usecases.transactions.give_up import GivingUp
    from chalicelib.usecases.transactions.given_up_watching import GivenUpWatching
    from chalicelib.usecases.transactions.losses import Losses
    from chalicelib.usecases.transactions.node_votes import NodeVotes
    from chalicelib.usecases.transactions.replacements import Stuck
    from chalicelib.usecases.transactions.utxo.engine import UtxoEngine
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.parts import Parts


class TransactionWiring:
    def __init__(self, parts: Parts, chains: ChainWiring) -> None:
        self._parts, self._chains = parts, chains

    @property
    def renewals(self) -> RenewalRules:
        from chalicelib.domain.transactions.replacements import RenewalRules

        settings = self._parts.settings
        return RenewalRules(settings.renewal_seconds, settings.renewals_most, times=settings.renewal_fee_times)

    def stuck(self, network: Network) -> Stuck:
        """The rule when to replace a transaction of ours. For account networks, and for one poll."""
        from chalicelib.usecases.transactions.replacements import Stuck

        context, payer = self._chains.context(network), self._chains.payer(network)
        return Stuck(context, payer, self.renewals, self.finality(network))

    def finality(self, network: Network) -> Finality:
        from chalicelib.usecases.transactions.finality import Finality

        return Finality(self._chains.context(network), self._parts.rates)

    def node_votes(self, network: Network) -> NodeVotes:
        """The nodes of a network that have a vote. On the machines' clock, as the nodes are."""
        from chalicelib.usecases.transactions.node_votes import NodeVotes

        parts, silence = self._parts, self._parts.settings.node_silence_minutes
        return NodeVotes(network, self._chains.reader(network), parts.store, parts.clock, silence)

    @cached_property
    def hearings(self) -> Hearings:
        from chalicelib.usecases.transactions.expiry_votes import Hearings

        return Hearings(self.node_votes, self.finality)

    def account_signing(self, second_of: Callable[[Network], SecondReader[Order] | None]) -> AccountSigning:
        """For a function that has keys: it alone may ask for second readers."""
        from chalicelib.usecases.transactions.accounts.signing import AccountSigning

        parts, reader_of, every_node = self._parts, self._chains.reader, self.hearings.every_node
        return AccountSigning(parts.store, parts.rules, parts.realm_clock, reader_of, self.renewals, every_node, second_of)

    def utxo_engine(self, second_of: Callable[[Network], SecondReader[CoinOrder]]) -> UtxoEngine:
        """The same, for UTXO networks."""
        from chalicelib.usecases.transactions.utxo.engine import UtxoEngine

        parts, chains = self._parts, self._chains
        clock, payer_of, reader_of = parts.realm_clock, chains.coin_payer, chains.reader
        return UtxoEngine(parts.store, parts.rules, clock, payer_of, reader_of, self.renewals, second_of)

    def losses(self, network: Network) -> Losses:
        """The sightings of our transactions in blocks, for one poll or one signature."""
        from chalicelib.usecases.transactions.losses import Losses

        return Losses(network, self._chains.reader(network), self._parts.store)

    def giving_up(self, network: Network) -> GivingUp:
        """An operator's decision about a transaction of ours."""
        from chalicelib.usecases.transactions.give_up import GivingUp
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        coins = self._chains.coin_payer(network) if pays_from_coins(network) else None
        return GivingUp(self._chains.context(network), self.losses(network), self.finality(network), coins)

    def given_up_watching(self, network: Network) -> GivenUpWatching:
        from chalicelib.usecases.transactions.given_up_watching import GivenUpWatching
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        counts = not pays_from_coins(network) and (network.simulated or network.family != "tron")
        payer = self._chains.payer(network) if counts else None
        losses, finality = self.losses(network), self.finality(network)
        return GivenUpWatching(self._chains.context(network), losses, finality, self._parts.rates, payer)

    def answers(self, network: Network) -> Answers:
        """The cache of nodes' answers, for use cases that follow the same transactions in one run."""
        from chalicelib.usecases.transactions.chain_cache import Answers

        return Answers(self._chains.reader(network))
