"""UTXOs of a hot wallet, free and reserved: the counterpart of `NonceCounter` on account networks.

One record per wallet: its version is what allots UTXOs (money rule 6), so two transactions can not spend the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version

MOST_COINS = 1_800
"""About 190 bytes a coin at the most: what fits in one item of 400 KB, with room. Of more, the smallest are left out."""

MOST_INPUTS = 80
"""Coins that are offered to one transaction: six attempts of it, as text, stay within one item of 400 KB."""
MOST_RATE = 1_000_000
"""Units per 1,000 virtual bytes that nothing is signed above, on any network of coins."""


@dataclass(frozen=True, slots=True)
class HeldCoin:
    """An output of ours that is final. `outpoint` is "<txid>:<n>", `amount` in units, `height` its block's number.

    `reserved_by` names the bundle that spends it. `gone`: a reorganisation took it back while it was reserved; it comes back
    with its block, or goes for good with its reservation.
    """

    outpoint: str
    amount: int
    height: int
    reserved_by: str | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class HeldCoins:
    """`wallet` is the address in its public spelling. `gathering` is the bundle that takes in payments now."""

    network: NetworkId
    wallet: str
    coins: tuple[HeldCoin, ...] = ()
    gathering: str | None = None
    version: int = 0

    @property
    def free(self) -> list[HeldCoin]:
        """The UTXOs that may be spent, the largest first."""
        return sorted((c for c in self.coins if c.reserved_by is None), key=lambda c: (-c.amount, c.outpoint))

    def reserved(self, bundle: str) -> list[HeldCoin]:
        return [coin for coin in self.coins if coin.reserved_by == bundle]

    def next(self) -> HeldCoins:
        """The next version, to be saved."""
        return next_version(self)

    def came(self, coin: HeldCoin) -> HeldCoins:
        """The record with a final UTXO: one that was gone is back, reserved as before."""
        known = next((c for c in self.coins if c.outpoint == coin.outpoint), None)
        if known is not None:
            coin = replace(coin, reserved_by=known.reserved_by)
        return self._with([*(c for c in self.coins if c.outpoint != coin.outpoint), coin])

    def taken_back(self, outpoint: str) -> HeldCoins:
        """The record without a UTXO whose block fell out; a reserved one is kept as gone."""
        kept = [c for c in self.coins if c.outpoint != outpoint or c.reserved_by is not None]
        return self._with(replace(c, gone=True) if c.outpoint == outpoint else c for c in kept)

    def reserve(self, bundle: str, outpoints: Collection[str]) -> HeldCoins:
        """Reserves `outpoints` for `bundle`. Raises ValueError unless each is here and free, or reserved by `bundle` already."""
        able = {c.outpoint for c in self.coins if c.reserved_by in (None, bundle)}
        if missing := sorted(set(outpoints) - able):
            raise ValueError(f"{', '.join(missing[:5])} can not be reserved by {bundle}")
        return self._with(replace(c, reserved_by=bundle) if c.outpoint in outpoints else c for c in self.coins)

    def spent(self, outpoints: Collection[str]) -> HeldCoins:
        """The record without UTXOs that a final transaction of ours spent."""
        return self._with(c for c in self.coins if c.outpoint not in outpoints)

    def unspent(self, bundle: str, coins: Iterable[HeldCoin]) -> HeldCoins:
        """The record with the UTXOs of a transaction of ours, reserved again: its block fell out."""
        back = [replace(coin, reserved_by=bundle) for coin in coins]
        names = {coin.outpoint for coin in back}
        return self._with([*(c for c in self.coins if c.outpoint not in names), *back])

    def released(self, bundle: str) -> HeldCoins:
        """The record with the UTXOs reserved by `bundle` free again; gone ones are gone for good."""
        kept = [c for c in self.coins if c.reserved_by != bundle or not c.gone]
        return self._with(replace(c, reserved_by=None) if c.reserved_by == bundle else c for c in kept)

    def only(self, bundle: str, outpoints: Collection[str]) -> HeldCoins:
        """The record where `bundle` has reserved none but `outpoints`: others are free again, and gone ones gone for good."""
        spare = {c.outpoint for c in self.reserved(bundle) if c.outpoint not in outpoints}
        kept = [c for c in self.coins if c.outpoint not in spare or not c.gone]
        return self._with(replace(c, reserved_by=None) if c.outpoint in spare else c for c in kept)

    def _with(self, coins: Iterable[HeldCoin]) -> HeldCoins:
        """Reserved ones are always kept: only free ones are left out where there are too many."""
        ordered = sorted(coins, key=lambda c: (c.reserved_by is None, -c.amount, c.outpoint))
        return replace(self, coins=tuple(ordered[:MOST_COINS]))


@dataclass(frozen=True, slots=True)
class OwnTransaction:
    """A transaction that this service signed: its outputs at `positions` ("out:<n>") are our own, and credit nobody."""

    network: NetworkId
    txid: str
    positions: tuple[str, ...]
    version: int = 1
