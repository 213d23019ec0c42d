"""A deposit: one movement on a chain to an address of ours, and what has become of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId, derived_id

DepositStatus = Literal["pending", "confirmed", "orphaned"]


def deposit_id(network: NetworkId, txid: str, position: str) -> str:
    """The one id of a movement on a chain (money rule 2). `position` is that of `domain.chain.Transfer`."""
    return derived_id("tx", network, txid, position)


@dataclass(frozen=True, slots=True)
class Deposit:
    """`amount` in units, times in milliseconds since 1970. `tenant` is None for the operator's own wallets.

    `round` counts how often it fell out of the chain: crediting again after that is a new journal entry.
    """

    id: str
    network: NetworkId
    asset: AssetId
    tenant: TenantId | None
    txid: str
    position: str
    sender: str
    address: str
    amount: int
    block_number: int
    block_hash: str
    block_time: int
    created_at: int
    status: DepositStatus = "pending"
    address_id: str | None = None
    invoice_id: str | None = None
    late: bool = False
    flags: tuple[str, ...] = ()
    confirmed_at: int | None = None
    round: int = 0
    emitted: int = 0
    version: int = 1
