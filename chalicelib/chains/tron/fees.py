"""Fees on Tron: bandwidth and energy, of which an account has some, and TRX burnt for the rest.

Pure: reads answers of the node, asks none. All amounts in sun. Sources: developers.tron.network, "Resource Model"; java-tron,
BandwidthProcessor and ReceiptCapsule (a transaction's bytes are paid from the stake, or from the free ones, or all in TRX).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.chains.answers import Garbled
from chalicelib.chains.tron.values import row, whole

RESULT_BYTES = 64
"""What every transaction pays for its result, beside its own bytes."""
SIGNATURE_BYTES = 68
"""65, with their frame, and the frame of raw_data at its longest."""

MOST_ENERGY = 400_000
"""A transfer of USDT to an address that had none takes 130,000. A token that takes more computes at the wallet's expense."""
MOST_FEE_LIMIT = 200_000_000
"""200 TRX. A node whose prices ask for more is wrong or lies, and could empty a hot wallet (money rule 11)."""
MOST_ACTIVATION = 10_000_000
MOST_BYTE_PRICE = 10_000
"""The same for the price of an account (1.1 TRX in 2026) and of a byte (1,000 sun)."""


@dataclass(frozen=True, slots=True)
class Prices:
    """`byte` and `energy` in sun each; `account` is burnt in any case when a transfer makes an account, and `account_bytes` as well
    where there is no staked bandwidth for it."""

    byte: int
    energy: int
    account: int
    account_bytes: int


@dataclass(frozen=True, slots=True)
class Resources:
    """An account's remaining resources of today: bytes of its stake, free bytes, energy of its stake."""

    staked_bytes: int
    free_bytes: int
    energy: int


NOTHING = Resources(0, 0, 0)


def prices_of(answer: Any) -> Prices:
    """The prices in an answer to wallet/getchainparameters."""
    found = row(answer, "the chain's parameters").get("chainParameter")
    if not isinstance(found, list):
        raise Garbled("the chain's parameters are no list")
    values = {entry.get("key"): entry.get("value") for entry in found if isinstance(entry, dict)}
    for key in ("getTransactionFee", "getEnergyFee"):
        if not values.get(key):
            raise Garbled("the chain's parameters lack a price")
    prices = Prices(
        whole(values["getTransactionFee"], "the price of a byte"),
        whole(values["getEnergyFee"], "the price of energy"),
        whole(values.get("getCreateNewAccountFeeInSystemContract"), "the price of an account"),
        whole(values.get("getCreateAccountFee"), "the price of an account's bytes"),
    )
    if prices.byte > MOST_BYTE_PRICE or prices.account + prices.account_bytes > MOST_ACTIVATION:
        raise Garbled("the node asks for prices that nobody pays")
    return prices


def resources_of(answer: Any) -> Resources:
    """The resources left, from an answer to wallet/getaccountresource."""
    facts = row(answer, "an account's resources")

    def left(limit: str, used: str) -> int:
        return max(0, whole(facts.get(limit), "a limit") - whole(facts.get(used), "a use"))

    return Resources(left("NetLimit", "NetUsed"), left("freeNetLimit", "freeNetUsed"), left("EnergyLimit", "EnergyUsed"))


def bytes_fee(prices: Prices, have: Resources, size: int) -> int:
    """The TRX burnt for `size` bytes: all of them or nothing."""
    return 0 if size <= max(have.staked_bytes, have.free_bytes) else size * prices.byte


def activation_fee(prices: Prices, have: Resources, size: int) -> int:
    """The TRX burnt by a transfer that makes the recipient's account. Free bytes do not pay for it."""
    return prices.account + (0 if size <= have.staked_bytes else prices.account_bytes)


def energy_fee(prices: Prices, have: Resources, energy: int) -> int:
    """The TRX burnt for energy that the stake does not give."""
    return max(0, energy - have.energy) * prices.energy


def with_margin(energy: int) -> int:
    """A fifth more than the node has just used: what a transfer costs moves with who holds what, and with the contract's load
    (developers.tron.network, "Dynamic Energy Model")."""
    return energy + -(-energy // 5)


def fee_limit(prices: Prices, energy: int) -> int:
    """The limit for `energy`: it covers staked energy as well, at its price, although that is not burnt."""
    return energy * prices.energy


def size_of(raw: bytes) -> int:
    """The bytes that a transaction is charged for, once signed."""
    return len(raw) + SIGNATURE_BYTES + RESULT_BYTES


def most_cost(size: int, limit: int, makes_account: bool) -> int:
    """The most that a transaction can cost whatever resources are there, at the prices of 2026: its fee limit, and its bytes or,
    for a transfer of TRX, the recipient's account in place of them."""
    return max(size * 1_000, 1_100_000 if makes_account else 0) + limit
