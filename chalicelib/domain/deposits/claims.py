"""Claims: the deposit of each log of a transaction, the same in whatever block a reorganisation puts it."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.deposits.deposits import deposit_id
from chalicelib.domain.ids import NetworkId

_LOG = "log:"


@dataclass(frozen=True, slots=True)
class LogClaim:
    """The claim of every log of one transaction on its deposit, on networks that number logs across the block (EVM).

    A log's number in the block changes with the transactions before its own; its place among its own transaction's logs does not.
    `first` is the number of the transaction's first log in the block where a payment of it was first recorded, and never changes:
    the log at place n is the deposit that was, or would have been, named by `first` + n there. So one record holds the claims of
    all logs of a transaction, two logs never share a deposit, and ids are what they were.
    """

    network: NetworkId
    txid: str
    first: int
    version: int = 1

    def position(self, place: int) -> str:
        """The name of the log at `place`, the same in every block, from 0 on."""
        return f"{_LOG}{self.first + place}"

    def deposit(self, place: int) -> str:
        """The deposit id of the log at `place`."""
        return deposit_id(self.network, self.txid, self.position(place))


def log_number(position: str) -> int | None:
    """The log number in `Transfer.position`, None for other positions."""
    return int(position.removeprefix(_LOG)) if position.startswith(_LOG) else None
