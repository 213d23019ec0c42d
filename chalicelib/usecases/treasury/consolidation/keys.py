"""The keys that sign the UTXOs of a move: a deposit address' own, from the seed, or those of the hot wallet that the move names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from chalicelib.domain.treasury.consolidations import CoinMove, MovedCoin
from chalicelib.usecases.ports.signing import DepositKeys, Signature, Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.signers import signing_wallet

CoinKeys = Callable[[CoinMove], AbstractContextManager[Callable[[MovedCoin, bytes], Signature]]]
"""Opens the keys of a move's inputs for the length of a `with` block: what signs 32 bytes for a coin."""


def deposits_keys(keys: DepositKeys) -> CoinKeys:
    """For consolidations. The seed is open while one transaction is signed."""

    @contextmanager
    def opened(move: CoinMove) -> Iterator[Callable[[MovedCoin, bytes], Signature]]:
        with keys.opened() as seed:

            def sign(coin: MovedCoin, digest: bytes) -> Signature:
                if coin.path is None:
                    raise LookupError(f"{coin.outpoint} of {move.id} is at no deposit address")
                return seed.sign_as(move.network, coin.address, coin.path, digest)

            yield sign

    return opened


def wallets_keys(store: Store, signer: Signer) -> CoinKeys:
    """For what hot wallets have, of now or replaced."""

    @contextmanager
    def opened(move: CoinMove) -> Iterator[Callable[[MovedCoin, bytes], Signature]]:
        wallet = signing_wallet(store, move.network, move.wallet)
        if wallet is None:
            raise LookupError(f"{move.id} spends coins of {move.wallet}, which is no hot wallet of ours")
        yield lambda coin, digest: signer.sign(wallet, digest)

    return opened
