"""What was found by comparing an address' balance on the chain with the ledger, where nobody can trace what contracts send."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import NetworkId

POSITION = "balance:"
"""How the position of a deposit begins that was booked from a balance; the block's number follows, then the address."""


@dataclass(frozen=True, slots=True)
class BalanceBooking:
    """The last difference that was booked for an address (storage form), as of a final block: found before the deposit is stored.

    `deposit` is that deposit's id; `amount` in units, `block_time` in milliseconds since 1970.
    """

    network: NetworkId
    address: str
    block_number: int
    block_hash: str
    block_time: int
    amount: int
    deposit: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class Reconciled:
    """How far the open invoices of a network were looked at: order and id of the last one's open work; empty at the start."""

    network: NetworkId
    order: str = ""
    id: str = ""
    version: int = 1


def position_of(block_number: int, address: str) -> str:
    return f"{POSITION}{block_number}:{address}"
