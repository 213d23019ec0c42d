"""Energy of a transfer on Tron: delegated from a stake, waited for, or paid by burning coins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.work import Work, time_order

_COIN = 1_000_000
"""Stakes count in whole TRX."""
LOAN_BYTES = 300
"""What a delegation, or its return, is charged for: 281 with its signature and result."""
PATIENCE_MS = 24 * 3_600_000
"""Used energy is all there again after a day: who has waited that long in vain never had enough."""
OVERDUE_MS = 6 * 3_600_000
"""A loan that nobody has used by then is taken back."""

TO_ACTIVATE = 100_000
"""Coins that are sent to an address so that it is an account."""

Way = Literal["lend", "activate", "wait", "burn"]
"""`activate`: send it a few coins first, and lend then."""


@dataclass(frozen=True, slots=True)
class Lendable:
    """The energy that can be delegated, its price, and the price of burning. Stakes and prices in units of the native coin.

    `stake`: of the wallet, free today; `whole`: all that it has staked for this, in use and lent too. A stake of `of` gives
    `per_unit` of the resource a day. `active`: whether the receiver exists on the chain: to one that does not nothing can be lent,
    and it can send nothing. `price`: of a unit of energy that is burnt for; `byte`: of a byte that no bandwidth pays.
    """

    stake: int
    per_unit: int
    of: int
    active: bool
    whole: int = 0
    price: int = 0
    byte: int = 0

    def for_(self, amount: int) -> int:
        """The stake that gives `amount` of the resource, in whole coins, as the chain counts them."""
        return max(1, -(-amount * self.of // (self.per_unit * _COIN))) * _COIN

    def covers(self, amount: int) -> bool:
        return self.for_(amount) <= self.stake

    @property
    def costs(self) -> int:
        """The most that lending and taking back burn: the bytes of two transactions."""
        return 2 * LOAN_BYTES * self.byte


def way(there: Lendable, energy: int, waited_ms: int) -> Way:
    """The way in which a transfer gets `energy` beyond its sender's, `waited_ms` after it was first wanted.

    Delegation from a free stake costs only two small transactions. Where the stake is not free now and will be within a day,
    waiting costs nothing. Coins are burnt only where that is cheaper than both, or there is no such stake.
    """
    burnt = energy * there.price
    if energy <= 0 or burnt <= there.costs + (0 if there.active else TO_ACTIVATE):
        return "burn"
    if there.covers(energy):
        return "lend" if there.active else "activate"
    if there.for_(energy) <= there.whole and waited_ms < PATIENCE_MS:
        return "wait"
    return "burn"


def loan_work(move: Move) -> Work:
    """Open work: take back the energy that `move` delegates. In the lane of its network."""
    return Work("loan", move.network, time_order(move.created_at), move.id)
