"""Network fees of withdrawals: who bears them, and the reserved share. Pure.

A fee is paid in units of the network's native coin. Where the merchant bears it, units of the withdrawn coin are reserved for it
(`Withdrawal.charge`) at a rate that is kept as an exact fraction, and the rest of them is given back when the chain has told the
real fee.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from chalicelib.domain.withdrawals.withdrawals import Withdrawal

MOST_TIMES_PLAIN = 3
"""A payment may take so many times the gas of a plain one (to an address without code) where nobody pays for more: what wallets
that are contracts do when they are paid takes less than a plain payment again."""
SAME_COIN = "1"
"""The rate of a fee that is paid in the withdrawn coin itself."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The reservation for one payment beside its amount, in units of the withdrawn coin: `fixed` of them are debited whole.
    `rate` is the number of these units for one unit of fee; None where nothing is reserved."""

    units: int = 0
    fixed: int = 0
    rate: str | None = None


def rate_text(native_usd: Decimal, native_decimals: int, coin_usd: Decimal, coin_decimals: int) -> str:
    """Units of a coin for one unit of the native coin, as an exact fraction. Raises ZeroDivisionError for a coin worth nothing."""
    return str(Fraction(native_usd) * 10**coin_decimals / (Fraction(coin_usd) * 10**native_decimals))


def in_coin(fee: int, rate: str) -> int:
    """The value of `fee` units of the native coin in units of the withdrawn coin, rounded up."""
    return -(-fee * Fraction(rate) // 1)


def debit_of(withdrawal: Withdrawal, fee: int, paid: bool) -> int:
    """The part of `charge` that the merchant is debited once the network has taken `fee`: never more than was reserved.

    `charge_fixed` is debited only where the payment was made (`paid`). What was reserved without a rate (before rates were kept)
    is debited whole, as it was announced then.
    """
    if withdrawal.charge_rate is None:
        return withdrawal.charge if paid or fee else 0
    fixed = withdrawal.charge_fixed if paid else 0
    return min(withdrawal.charge, fixed + in_coin(fee, withdrawal.charge_rate))


def bears_fee(withdrawal: Withdrawal) -> bool:
    """Whether the merchant bears the fee, as far as it is reserved."""
    return withdrawal.charge_rate is not None or withdrawal.charge > 0


def covers(withdrawal: Withdrawal) -> int | None:
    """The largest fee, in units of the native coin, that the reservation pays for; None: the reservation itself is the price."""
    if withdrawal.charge_rate is None:
        return None if withdrawal.charge else 0
    rate = Fraction(withdrawal.charge_rate)
    return 0 if not rate else int(max(0, withdrawal.charge - withdrawal.charge_fixed) / rate)


def operators_part(withdrawal: Withdrawal, fee: int) -> int:
    """The operator's part of `fee` (units of the native coin): the excess over the reservation."""
    covered = covers(withdrawal)
    return 0 if covered is None else max(0, fee - covered)
