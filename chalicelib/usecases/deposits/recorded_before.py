"""Whether a movement in a block was recorded from the address's balance before (`usecases/scanning/internal_transfers.py`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.scanning.internal_transfers import BalanceBooking
from chalicelib.usecases.ports.changes import Absent, Beside, Change, Still
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Claim:
    """The condition of a booking from a balance: the address's next booking, and the ledger's `units` and `pending` there."""

    booking: BalanceBooking
    units: int
    pending: int


def not_booked_since(network: Network, asset: AssetId, address: str, wallet: WalletBalance | None) -> Change:
    """The condition of a commit that records coins of `asset` at `address` (storage form), for which there was no booking when
    `wallet` was read with it: that none came in between.

    A booking writes the address's balance in its own transaction, and only the archive removes a balance, LEAST_ARCHIVE_DAYS later.
    So where there is no balance, no booking has come; and as the commit writes the balance anyhow, to say so costs nothing.
    """
    if wallet is None:
        return Beside(network.id, address, asset, unused=True)
    return Absent(BalanceBooking, {"network": network.id, "address": address})


def not_booked_yet(store: Store, network: Network, block: Block, transfer: Transfer) -> list[Change] | None:
    """The condition of a commit that records `transfer`: no booking from a balance came in between. None where a standing
    booking covers the transfer. One or two reads, for native coins on live EVM networks; nothing elsewhere."""
    if network.family != "evm" or network.simulated or transfer.contract is not None:
        return []
    key = {"network": network.id, "address": transfer.recipient}
    booking = store.get(BalanceBooking, **key)
    if booking is None:
        return [Absent(BalanceBooking, key)]
    ids = list(booking.at_or_above(block.number).values())
    wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": id_}) for id_ in ids]
    standing = [found for found in (store.get_many(wanted) if wanted else []) if found and found.status != "orphaned"]
    if not standing:
        return [Still(booking)]
    log.error(
        "ALARM %s: %s moved %d to %s in block %d, which was booked from its balance as %s",
        *(network.id, transfer.txid, transfer.amount, transfer.recipient, block.number, standing[0].id),
    )
    return None
