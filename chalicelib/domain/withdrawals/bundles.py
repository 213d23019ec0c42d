"""Bundles: one transaction that pays several withdrawals at once, on UTXO networks.

A bundle gathers payments, is built (coins reserved, bytes exact), signed, and settled when it is final; its transaction may be
replaced by others of the same outputs that pay more (BIP-125). Every withdrawal in it keeps an order of its own, so that the
ledger and the events know single payments only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.transactions.utxo_attempts import Attempts, Contents, SpentCoin
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.domain.work import Work, time_order

MOST_PAYOUTS = 100
"""Payments of one transaction: about 4 kvB, and orders and withdrawals of all fit in two batch reads."""

BundleState = Literal["gathering", "built", "signed", "settled", "dead"]


@dataclass(frozen=True, slots=True)
class BundledPayout:
    """One payment of a bundle. `recipient` in its public spelling, `amount` in units of the native coin."""

    withdrawal: str
    tenant: TenantId
    recipient: str
    amount: int


@dataclass(frozen=True, slots=True)
class Built:
    """One transaction of a bundle. `unsigned` is what its digests are computed from, as hex; empty once what replaces it is signed.

    `inputs` are the coins that it spends; `change` is the position ("out:<n>") of what comes back to the wallet, of
    `change_amount` units, None where nothing does. `fee` in units, exact; `signed_at` in milliseconds since 1970.
    """

    unsigned: str
    inputs: tuple[HeldCoin, ...]
    change: str | None
    change_amount: int
    fee: int
    vsize: int
    raw: str | None = None
    txid: str | None = None
    signed_at: int = 0

    @property
    def positions(self) -> tuple[str, ...]:
        """Those of its outputs that are our own."""
        return () if self.change is None else (self.change,)

    def change_coin(self, height: int) -> HeldCoin | None:
        """The change output, once it is in block `height`."""
        if self.change is None:
            return None
        return HeldCoin(f"{self.txid}:{self.change.removeprefix('out:')}", self.change_amount, height)


@dataclass(frozen=True, slots=True)
class Bundle(Attempts[Built]):
    """`newest` is the attempt that should be mined, `earlier` those it replaced, oldest first: whichever is in the chain has paid.

    `renew` says that the newest should be replaced, which only the function that signs can do. `mined` is the transaction that
    settled it, in the block `block_number`, `block_hash`. `doubtful_since` is the height at which it was first seen that the
    bundle can not be mined any more. `round` counts how often a reorganisation undid its settlement. Times in milliseconds
    since 1970.
    """

    id: str
    network: NetworkId
    wallet: str
    asset: AssetId
    created_at: int
    updated_at: int
    priority: Priority = "normal"
    payouts: tuple[BundledPayout, ...] = ()
    state: BundleState = "gathering"
    newest: Built | None = None
    earlier: tuple[Built, ...] = ()
    renew: bool = False
    mined: str | None = None
    block_number: int | None = None
    block_hash: str | None = None
    doubtful_since: int | None = None
    round: int = 0
    version: int = 1

    @property
    def total(self) -> int:
        return sum(payout.amount for payout in self.payouts)

    @property
    def coins(self) -> dict[str, HeldCoin]:
        """The UTXOs that any attempt spends, by outpoint."""
        built = (*self.earlier, *((self.newest,) if self.newest else ()))
        return {coin.outpoint: coin for attempt in built for coin in attempt.inputs}

    def share(self, withdrawal: str, fee: int) -> int:
        """A withdrawal's share of `fee` units: equal parts, the first ones one unit more where it does not divide."""
        place = [payout.withdrawal for payout in self.payouts].index(withdrawal)
        part, rest = divmod(fee, len(self.payouts))
        return part + (1 if place < rest else 0)

    def next(self, now: int) -> Bundle:
        """The next version, to be saved."""
        return replace(next_version(self), updated_at=now)

    def settled_attempt(self) -> Built | None:
        """The attempt that settled it. None as well where its record names a transaction that is none of them."""
        return self.mined_as(self.mined) if self.state == "settled" else None

    def spends(self, attempt: Built) -> tuple[SpentCoin, ...]:
        return tuple(SpentCoin(coin.outpoint, self.wallet, coin.amount, coin.height) for coin in attempt.inputs)

    def pays(self, attempt: Built) -> tuple[tuple[str, int], ...]:
        paid = ((payout.recipient, payout.amount) for payout in self.payouts)
        return (*paid, *(() if attempt.change is None else ((self.wallet, attempt.change_amount),)))

    def attempt_of(self, contents: Contents) -> Built:
        change, amount = self.change_among(contents.outputs)
        return Built(contents.unsigned, contents.inputs, change, amount, contents.fee, contents.vsize)

    def change_among(self, outputs: Iterable[tuple[str, int]]) -> tuple[str | None, int]:
        """Position and amount of the change among the outputs (address, units) of a transaction, addresses spelled as ours are.

        Raises ValueError unless the others are exactly the payments of this bundle, and at most one is change, to its wallet.
        """
        due = Counter((payout.recipient, payout.amount) for payout in self.payouts)
        rest: list[tuple[str, str, int]] = []
        for number, (address, amount) in enumerate(outputs):
            if due[address, amount] > 0:
                due[address, amount] -= 1
            else:
                rest.append((f"out:{number}", address, amount))
        if missing := +due:
            raise ValueError(f"{missing.total()} of its payments are missing or differ")
        if len(rest) > 1 or (rest and rest[0][1] != self.wallet):
            raise ValueError("it pays somebody who is not to be paid")
        return (rest[0][0], rest[0][2]) if rest else (None, 0)


def bundle_work(bundle: Bundle) -> Work:
    """Open work: settle a bundle, until no reorganisation reaches its transaction any more."""
    return Work("bundle", bundle.network, time_order(bundle.created_at), bundle.id)
