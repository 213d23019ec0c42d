"""What moves coins between our own places on networks of coins: planned and followed by the polls, signed by two functions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from chalicelib.wiring.chains import ChainServices

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.treasury.consolidations import CoinMoveKind
    from chalicelib.usecases.ports.signing import DepositKeys
    from chalicelib.usecases.treasury.cold_storage_utxo import ColdCoins
    from chalicelib.usecases.treasury.consolidation.following import CoinMoveFollowing
    from chalicelib.usecases.treasury.consolidation.keys import CoinKeys
    from chalicelib.usecases.treasury.consolidation.planning import CoinMovePlanning
    from chalicelib.usecases.treasury.consolidation.signing import CoinMoveSigning


class CoinMoveServices(ChainServices):
    """The part of `Services` for coin moves. All of it for networks of coins alone."""

    def coin_moves(self, network: Network) -> CoinMoveFollowing:
        """What becomes of the coin moves of a network. For one poll."""
        from chalicelib.usecases.treasury.consolidation.following import CoinMoveFollowing

        reader, payer, clock = self.reader(network), self.coin_payer(network), self.clock_of(network.realm)
        verdicts = self.verdicts(network)
        return CoinMoveFollowing(network, reader, payer, self.store, self.rules, clock, self.renewals, verdicts)

    def coin_move_planning(self, network: Network) -> CoinMovePlanning:
        from chalicelib.usecases.treasury.consolidation.planning import CoinMovePlanning

        reader, payer, clock = self.reader(network), self.coin_payer(network), self.clock_of(network.realm)
        percent = self.settings.collect_fee_percent
        return CoinMovePlanning(network, reader, payer, self.store, self.rules, clock, self.rates, percent)

    def cold_coins(self, network: Network) -> ColdCoins:
        """What leaves the network's hot wallets for other wallets of ours."""
        from chalicelib.usecases.treasury.cold_storage_utxo import ColdCoins

        payer, clock = self.coin_payer(network), self.clock_of(network.realm)
        percent, times = self.settings.collect_fee_percent, self.renewals.times
        return ColdCoins(network, payer, self.store, self.rules, clock, self.rates, percent, times)

    @cached_property
    def wallet_coin_moves(self) -> CoinMoveSigning:
        """Moves of hot wallets' coins: for the function that has their keys."""
        from chalicelib.usecases.treasury.consolidation.keys import wallets_keys

        return self._coin_move_signing(wallets_keys(self.store, self.signer), ("cold", "drain"))

    @cached_property
    def deposit_coin_moves(self) -> CoinMoveSigning:
        """Moves of deposits' coins: for the function that may open the seed."""
        from chalicelib.usecases.treasury.consolidation.keys import deposits_keys

        return self._coin_move_signing(deposits_keys(self.deposit_keys), ("consolidation",))

    def _coin_move_signing(self, keys: CoinKeys, kinds: tuple[CoinMoveKind, ...]) -> CoinMoveSigning:
        from chalicelib.usecases.treasury.consolidation.signing import CoinMoveSigning

        rules, clock, percent = self.rules, self.realm_clock, self.settings.collect_fee_percent
        payer_of, reader_of = self.coin_payer, self.reader
        return CoinMoveSigning(self.store, rules, clock, keys, kinds, payer_of, reader_of, self.renewals, percent)

    @cached_property
    def deposit_keys(self) -> DepositKeys:
        from chalicelib.custody.derived import SeedKeys
        from chalicelib.custody.records import EncryptedSeed

        return SeedKeys(self._client("kms"), self.settings, lambda seed_id: self.store.get(EncryptedSeed, id=seed_id))
