"""Whether a movement that is seen in a block was booked from the address' balance before (`usecases/reconcile.py`)."""

from __future__ import annotations

import logging

from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.reconciliation import POSITION, BalanceBooking
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


def booked_already(store: Store, network: Network, block: Block, transfer: Transfer) -> bool:
    """Whether a booking that stands covers `transfer`, which nobody has recorded yet. One or two reads, on live EVM networks."""
    if network.family != "evm" or network.simulated or transfer.contract is not None or transfer.position.startswith(POSITION):
        return False
    booking = store.get(BalanceBooking, network=network.id, address=transfer.recipient)
    if booking is None or booking.block_number < block.number:
        return False
    deposit = store.get(Deposit, id=booking.deposit)
    if deposit is None or deposit.status == "orphaned":
        return False
    log.error(
        "ALARM %s: %s moved %d to %s in block %d, which was booked from its balance as %s",
        *(network.id, transfer.txid, transfer.amount, transfer.recipient, block.number, booking.deposit),
    )
    return True
