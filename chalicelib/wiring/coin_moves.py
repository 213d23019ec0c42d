"""Coin moves on UTXO networks: planned and followed by the polls, signed by two functions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.treasury.consolidations import CoinMoveKind
    from chalicelib.usecases.treasury.cold_storage_utxo import ColdCoins
    from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget
    from chalicelib.usecases.treasury.consolidation.following import CoinMoveFollowing
    from chalicelib.usecases.treasury.consolidation.keys import CoinKeys
    from chalicelib.usecases.treasury.consolidation.planning import CoinMovePlanning
    from chalicelib.usecases.treasury.consolidation.signing import CoinMoveSigning
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.custody import CustodyWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.transactions import TransactionWiring


class CoinMoveWiring:
    """Everything here is for UTXO networks alone."""

    def __init__(self, parts: Parts, chains: ChainWiring, custody: CustodyWiring, transactions: TransactionWiring) -> None:
        self._parts, self._chains, self._custody, self._transactions = parts, chains, custody, transactions

    @cached_property
    def _budget(self) -> ConsolidationBudget:
        from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget

        parts = self._parts
        return ConsolidationBudget(parts.store, parts.rates, parts.settings.consolidation_budget_usd)

    def coin_moves(self, network: Network) -> CoinMoveFollowing:
        """The following of a network's coin moves. For one poll."""
        from chalicelib.usecases.treasury.consolidation.following import CoinMoveFollowing

        context, payer = self._chains.context(network), self._chains.coin_payer(network)
        renewals, finality = self._transactions.renewals, self._transactions.finality(network)
        return CoinMoveFollowing(context, payer, renewals, finality, self._budget)

    def coin_move_planning(self, network: Network) -> CoinMovePlanning:
        from chalicelib.usecases.treasury.consolidation.planning import CoinMovePlanning

        parts, context, payer = self._parts, self._chains.context(network), self._chains.coin_payer(network)
        return CoinMovePlanning(context, payer, parts.rates, parts.settings.collect_fee_percent, self._budget)

    def cold_coins(self, network: Network) -> ColdCoins:
        """Moves out of the network's hot wallets into other wallets of ours."""
        from chalicelib.usecases.treasury.cold_storage_utxo import ColdCoins

        parts, context, payer = self._parts, self._chains.context(network), self._chains.coin_payer(network)
        percent, times = parts.settings.collect_fee_percent, self._transactions.renewals.times
        return ColdCoins(context, payer, parts.rates, percent, times)

    @cached_property
    def wallet_coin_moves(self) -> CoinMoveSigning:
        """Moves of hot wallets' UTXOs: for the function that has their keys."""
        from chalicelib.usecases.treasury.consolidation.keys import wallets_keys

        return self._signing(wallets_keys(self._parts.store, self._custody.signer), ("cold", "drain"))

    @cached_property
    def deposit_coin_moves(self) -> CoinMoveSigning:
        """Moves of deposits' UTXOs: for the function that may open the seed."""
        from chalicelib.usecases.treasury.consolidation.keys import deposits_keys

        return self._signing(deposits_keys(self._custody.deposit_keys), ("consolidation",))

    def _signing(self, keys: CoinKeys, kinds: tuple[CoinMoveKind, ...]) -> CoinMoveSigning:
        from chalicelib.usecases.treasury.consolidation.guards import FeeShare
        from chalicelib.usecases.treasury.consolidation.signing import CoinMoveSigning

        parts, renewals = self._parts, self._transactions.renewals
        share = FeeShare(self._chains.coin_payer, renewals, parts.settings.collect_fee_percent, self._budget)
        engine = self._transactions.utxo_engine(self._chains.second_readers.coins)
        return CoinMoveSigning(parts.store, parts.rules, parts.realm_clock, keys, kinds, share, engine)
