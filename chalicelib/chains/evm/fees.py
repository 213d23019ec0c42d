"""Gas prices of now, and their limits. Pure: reads answers of the node, asks none.

All prices in wei per gas, all fees in wei.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from chalicelib.domain.withdrawals.withdrawals import Priority

MULTIPLIERS: dict[Priority, Fraction] = {
    "low": Fraction(4, 5),
    "normal": Fraction(1),
    "high": Fraction(3, 2),
    "urgent": Fraction(2),
}
"""The published fee multipliers. They go on the tip: the base fee is the same for everybody."""

_GWEI = 10**9
_LEAST_TIP = {"polygon": 30 * _GWEI, "bsc": _GWEI // 10}
"""Below these the networks' nodes drop a transaction, so that a low priority would never be mined, however long it waits."""

_HIGHEST_FEE = {
    "ethereum": 10**18 // 2,
    "arbitrum": 10**18 // 10,
    "bsc": 10**18 // 2,
    "polygon": 300 * 10**18,
    "fantom": 300 * 10**18,
}
"""No transfer costs this much. A node that asks for more is wrong or lies, and could empty a hot wallet (money rule 11)."""

PLAIN_GAS = 21_000
"""What a transfer to an address without code takes on a chain that has no parent (Yellow Paper, appendix G: G_transaction).
No transaction takes less, on any network."""

_MOST_GAS = 150_000
_MOST_TOKEN_GAS = 400_000
_ROLLUP = {"arbitrum": 10}
"""A recipient that is a contract, and a token, may compute at the wallet's expense: no more than this much gas. On a rollup
the estimate has the parent chain's data in it (docs.arbitrum.io: gas estimation), so it may be some times that."""


@dataclass(frozen=True, slots=True)
class Fees:
    """`tip` is None on a chain without a base fee; `max_fee` is the gas price there."""

    max_fee: int
    tip: int | None

    def as_asked(self) -> dict[str, str]:
        """As eth_call takes them, in hex."""
        if self.tip is None:
            return {"gasPrice": hex(self.max_fee)}
        return {"maxFeePerGas": hex(self.max_fee), "maxPriorityFeePerGas": hex(self.tip)}


def fees_for(slug: str, priority: Priority, base_fee: int | None, suggested: int) -> Fees:
    """Fees of a transaction sent now. `suggested` is the node's tip (EIP-1559), or its gas price where `base_fee` is None.

    Twice the base fee leaves room for six full blocks in a row, each of which raises it by an eighth (EIP-1559).
    """
    price = max(-(-suggested * MULTIPLIERS[priority] // 1), _LEAST_TIP.get(slug, 0))
    if base_fee is None:
        return Fees(max_fee=price, tip=None)
    return Fees(max_fee=2 * base_fee + price, tip=price)


def replacing(old: Fees, now: Fees) -> Fees:
    """The fees of a replacement of a transaction that pays `old`; `now` is the fee of a new one.

    Geth and most others want a tenth more of both prices (txpool.pricebump), some an eighth: an eighth more, and at least one wei.
    The kind stays: a legacy transaction is replaced by a legacy one.
    """
    highest = max(_raised(old.max_fee), now.max_fee)
    return Fees(highest, None if old.tip is None else min(highest, max(_raised(old.tip), now.tip or 0)))


def _raised(price: int) -> int:
    return max(-(-price * 9 // 8), price + 1)


def gas_limit(estimate: int, least: int | None, most: int) -> int:
    """The gas limit for an estimate: a fifth more, because what a token's transfer costs moves with who holds what.

    A plain transfer costs 21,000 exactly. `least` is the network's setting `gas_limit`, a floor;
    beyond `most`, what a payment may be given, it has no effect. An estimate beyond that has: the caller refuses it.
    """
    wanted = estimate if estimate == PLAIN_GAS else estimate + -(-estimate // 5)
    return max(wanted, min(least or 0, most))


def most_gas(slug: str, token: bool) -> int:
    """The most gas that a payment may be given on this network."""
    return (_MOST_TOKEN_GAS if token else _MOST_GAS) * _ROLLUP.get(slug, 1)


def is_rollup(slug: str) -> bool:
    """Whether gas includes the cost of data on the parent chain, so that a plain transfer takes another amount each time."""
    return slug in _ROLLUP


def credible(slug: str, fee: int) -> bool:
    """Whether a transfer on this network can cost `fee`."""
    return fee <= _HIGHEST_FEE.get(slug, 10**18)
