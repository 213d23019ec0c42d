"""Moves between our wallets on account networks: collection, cold storage, rotation, fillers."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.treasury.moves import MoveKind
    from chalicelib.usecases.ports.accounts import ChainPayer
    from chalicelib.usecases.ports.signing import DepositKeys, Signer
    from chalicelib.usecases.treasury.cold_storage_accounts import Distributor
    from chalicelib.usecases.treasury.collection.decisions import CollectDecisions
    from chalicelib.usecases.treasury.collection.fees import MoveFees
    from chalicelib.usecases.treasury.collection.run import CollectRun
    from chalicelib.usecases.treasury.draining import Drains
    from chalicelib.usecases.treasury.filling_over import FillingOver
    from chalicelib.usecases.treasury.hot_floor import HotFloor
    from chalicelib.usecases.treasury.moves.following import MoveFollowing
    from chalicelib.usecases.treasury.moves.signing import MoveSigning
    from chalicelib.usecases.treasury.slots import SlotMoves
    from chalicelib.usecases.treasury.unsigned_moves import UnsignedMoves
    from chalicelib.wiring.chains import ChainWiring
    from chalicelib.wiring.coin_moves import CoinMoveWiring
    from chalicelib.wiring.custody import CustodyWiring
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.stakes import StakeWiring
    from chalicelib.wiring.transactions import TransactionWiring


class MoveWiring:
    def __init__(
        self,
        parts: Parts,
        chains: ChainWiring,
        custody: CustodyWiring,
        transactions: TransactionWiring,
        stakes: StakeWiring,
        coin_moves: CoinMoveWiring,
    ) -> None:
        self._parts, self._chains, self._custody, self._transactions = parts, chains, custody, transactions
        self._stakes, self._coin_moves = stakes, coin_moves

    def moves(self, network: Network) -> MoveFollowing:
        """For account networks."""
        from chalicelib.domain.treasury.moves import LOANS
        from chalicelib.usecases.treasury.moves.booking import MoveBooking
        from chalicelib.usecases.treasury.moves.following import MoveFollowing
        from chalicelib.usecases.treasury.moves.replacement_room import ReplacementRoom
        from chalicelib.usecases.treasury.topups import TopUps

        chains, outgoing = self._chains, self._transactions
        context, payer = chains.context(network), chains.payer(network)

        def payer_of(kind: MoveKind) -> ChainPayer:
            return chains.loan_payer(network, kind) if kind in LOANS else payer

        finality, stuck = outgoing.finality(network), outgoing.stuck(network)
        booking = MoveBooking(context, finality, payer_of)
        room = ReplacementRoom(context, payer, stuck, TopUps(self.move_fees(network)))
        return MoveFollowing(context, payer, finality, stuck, booking, room, self._stakes.stuck_loans(network))

    def move_fees(self, network: Network) -> MoveFees:
        """For account networks."""
        from chalicelib.usecases.treasury.collection.fees import MoveFees

        parts, chains = self._parts, self._chains
        payer, reader = partial(chains.payer, network), partial(chains.reader, network)
        clock, percent = parts.clock_of(network.realm), parts.settings.collect_fee_percent
        return MoveFees(network, parts.store, parts.rules, clock, payer, reader, parts.rates, percent)

    def collecting(self, network: Network) -> CollectRun:
        """For account networks."""
        from chalicelib.usecases.treasury.collection.planning import CollectPlanning
        from chalicelib.usecases.treasury.collection.run import CollectRun
        from chalicelib.usecases.treasury.collection.steps import CollectSteps

        context, fees = self._chains.context(network), self.move_fees(network)
        steps = CollectSteps(context, fees, self._stakes.loans(network))
        return CollectRun(context, CollectPlanning(context, fees), steps, fees)

    @cached_property
    def collect_decisions(self) -> CollectDecisions:
        from chalicelib.usecases.treasury.collection.decisions import CollectDecisions

        return CollectDecisions(self._parts.store, self._parts.rules, self._parts.realm_clock)

    def hot_floor(self, network: Network) -> HotFloor:
        from chalicelib.usecases.treasury.hot_floor import HotFloor

        return HotFloor(self._chains.context(network), self._parts.rates)

    def distributor(self, network: Network) -> Distributor:
        """For account networks."""
        from chalicelib.usecases.treasury.cold_storage_accounts import Distributor

        return Distributor(self._chains.context(network), self.move_fees(network))

    def slot_moves(self, network: Network) -> SlotMoves:
        """For account networks."""
        from chalicelib.usecases.treasury.consolidation.budget import ConsolidationBudget
        from chalicelib.usecases.treasury.slots import SlotMoves

        parts = self._parts
        budget = ConsolidationBudget(parts.store, parts.rates, parts.settings.consolidation_budget_usd)
        return SlotMoves(self._chains.context(network), self.move_fees(network), budget)

    def drains(self, network: Network) -> Drains:
        """For networks of both kinds."""
        from chalicelib.usecases.treasury.draining import Drains

        fees, coins_pay = partial(self.move_fees, network), lambda wallet: self._coin_moves.cold_coins(network).worth(wallet)
        return Drains(self._chains.context(network), self._parts.rates, fees, coins_pay)

    def filling_over(self, network: Network) -> FillingOver:
        """For an operator's transaction on the nonce of an open payment."""
        from chalicelib.usecases.treasury.filling_over import FillingOver

        context, payer = self._chains.context(network), self._chains.payer(network)
        losses, finality = self._transactions.losses(network), self._transactions.finality(network)
        return FillingOver(context, payer, losses, finality)

    def unsigned_moves(self, network: Network) -> UnsignedMoves:
        """For an operator's decision about a move or a coin move that was never signed."""
        from chalicelib.usecases.treasury.unsigned_moves import UnsignedMoves
        from chalicelib.usecases.wallets.utxos import pays_from_coins

        spends = pays_from_coins(network)
        payer = None if spends else self._chains.payer(network)
        coins = self._chains.coin_payer(network) if spends else None
        return UnsignedMoves(self._chains.context(network), payer, coins)

    @cached_property
    def wallet_moves(self) -> MoveSigning:
        """Moves out of service wallets: for the function that has their keys."""
        return self._signing(self._custody.signer, None, self._chains.loan_payer)

    @cached_property
    def deposit_moves(self) -> MoveSigning:
        """Moves out of deposit addresses: for the function that may open the seed."""
        return self._signing(None, self._custody.deposit_keys, None)

    def _signing(
        self, wallets: Signer | None, deposits: DepositKeys | None, loans_of: Callable[[Network, MoveKind], ChainPayer] | None
    ) -> MoveSigning:
        from chalicelib.usecases.treasury.moves.attempts import MoveParts
        from chalicelib.usecases.treasury.moves.checks import MoveChecks
        from chalicelib.usecases.treasury.moves.cures import MoveCures
        from chalicelib.usecases.treasury.moves.signing import MoveSigning

        parts, chains, outgoing = self._parts, self._chains, self._transactions
        store, rules, clock = parts.store, parts.rules, parts.realm_clock
        checks, cures = MoveChecks(store, rules), MoveCures(store, rules, clock)
        shared = MoveParts(store, rules, clock, outgoing.renewals, checks, cures, wallets, deposits)
        signing = outgoing.account_signing(chains.second_readers.accounts)
        return MoveSigning(shared, chains.payer, chains.reader, signing, loans_of)
