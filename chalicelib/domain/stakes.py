"""TRX that the operator stakes out of the hot wallet, for bandwidth or energy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Work, time_order

Resource = Literal["BANDWIDTH", "ENERGY"]


@dataclass(frozen=True, slots=True)
class Stake:
    """`amount` in units, times in milliseconds since 1970. `reason` says why the chain refused it."""

    id: str
    network: NetworkId
    wallet: str
    amount: int
    resource: Resource
    created_at: int
    status: Literal["pending", "confirmed", "failed"] = "pending"
    reason: str | None = None
    version: int = 1

    @property
    def txid(self) -> str:
        """Its hash on a simulated chain: known before it is there, so that ordering it twice is ordering it once."""
        return hashlib.sha256(f"stake|{self.network}|{self.id}".encode()).hexdigest()


def stake_work(stake: Stake) -> Work:
    """The obligation to bring a stake to its end, in the lane of its network."""
    return Work("stake", stake.network, time_order(stake.created_at), stake.id)
