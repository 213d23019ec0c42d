"""Internal transfers found by balance: an address' on-chain balance against the ledger, for nodes without tracing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.versions import next_version

POSITION = "balance:"
"""The beginning of the position of a deposit that was recorded from a balance; the block's number follows, then the address."""


@dataclass(frozen=True, slots=True)
class BalanceBooking:
    """The last difference recorded for an address (storage form), as of a final block. Stored together with its deposit.

    `deposit` is that deposit's id. `earlier` has those of former bookings by the numbers of their blocks, as far down as a
    reorganisation may reach, and one more: what stands when later ones have fallen out of the chain.
    """

    network: NetworkId
    address: str
    block_number: int
    deposit: str
    earlier: dict[str, str] = field(default_factory=dict)
    version: int = 1

    def followed_by(self, block_number: int, deposit: str, standing: Collection[str], depth: int) -> BalanceBooking:
        """The record after a further difference. `standing`: the deposits that have not fallen out of the chain. `depth`: how
        deep a reorganisation is followed, in blocks."""
        known = {number: id_ for number, id_ in self.at_or_above(0).items() if id_ in standing}
        safe = [number for number in known if number < block_number - depth]
        earlier = {str(number): id_ for number, id_ in known.items() if number not in safe or number == max(safe)}
        earlier.pop(str(block_number), None)
        return replace(next_version(self), block_number=block_number, deposit=deposit, earlier=earlier)

    def at_or_above(self, block_number: int) -> dict[int, str]:
        """The deposits recorded as of this block or a later one, by block."""
        known = {int(number): id_ for number, id_ in self.earlier.items()} | {self.block_number: self.deposit}
        return {number: id_ for number, id_ in known.items() if number >= block_number}


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Progress of the round through a network's open invoices: order and id of the last one's open work; empty at the start.

    `turn_…`: the same of the round robin over merchants (`usecases/scanning/open_invoices.py`).
    """

    network: NetworkId
    order: str = ""
    id: str = ""
    turn_order: str = ""
    turn_id: str = ""
    version: int = 1


@dataclass(frozen=True, slots=True)
class ReconcileRound:
    """Progress of the round through all watched addresses of a network: `after` is a place in the table, empty at its start.

    `began_at` is when this round began, `took` how long the last whole one took, both in milliseconds; `found` counts the addresses
    that this round has compared.
    """

    network: NetworkId
    began_at: int
    after: str = ""
    found: int = 0
    took: int = 0
    version: int = 1


def position_of(block_number: int, address: str) -> str:
    return f"{POSITION}{block_number}:{address}"
