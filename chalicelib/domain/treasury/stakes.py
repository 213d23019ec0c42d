"""Stakes: TRX that the operator stakes out of the hot wallet, for bandwidth or energy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.transactions.outgoing import FORGOTTEN, Attempt, Outgoing
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Command, Work, time_order

Resource = Literal["BANDWIDTH", "ENERGY"]


@dataclass(frozen=True, slots=True)
class Stake(Outgoing):
    """`tenant` is the merchant whose key ordered it; the coins are the operator's. `amount` in units of `asset`, times in
    milliseconds since 1970. `reason` says why the chain refused it.

    On a real network `unsigned` is the exact bytes whose digest is signed, as hex, `hash` their id, `raw` the signed ones, set
    before the first broadcast. `earlier` are attempts that expired: no block will ever have them, and yet they are looked for.
    `renew` says that the newest has expired too, and should be replaced, which only the function that signs can do. `fee`: what the
    chain burnt, in units. `touched_at`: when its signature was last asked for. `mined`: which of its transactions is
    final, and in which block; `round` counts how often such a block fell out of the chain.
    """

    id: str
    tenant: TenantId
    network: NetworkId
    asset: AssetId
    wallet: str
    amount: int
    resource: Resource
    created_at: int
    status: Literal["pending", "confirmed", "failed"] = "pending"
    reason: str | None = None
    version: int = 1
    unsigned: str | None = None
    hash: str | None = None
    raw: str | None = None
    earlier: tuple[Attempt, ...] = ()
    renew: bool = False
    fee: int = 0
    touched_at: int = 0
    mined: str | None = None
    block_number: int | None = None
    block_hash: str | None = None
    round: int = 0
    confirmed_at: int | None = None

    @property
    def txid(self) -> str:
        """The hash of the final transaction, else of the newest. On a simulated chain it is known before it is mined, so that
        ordering twice is ordering once."""
        return self.mined or self.hash or hashlib.sha256(f"stake|{self.network}|{self.id}".encode()).hexdigest()

    @property
    def newest(self) -> Attempt | None:
        """Its fee is 0: the bytes bound none."""
        return Attempt.stored(self.raw, self.hash, 0, self.touched_at)

    @property
    def expected(self) -> tuple[Attempt, ...]:
        """`attempts`, with the one that is to be signed: its id is known before, and a restore may have forgotten that it was."""
        newest = self.newest or Attempt(FORGOTTEN, self.txid, 0, self.touched_at)
        return (newest, *reversed(self.earlier))

    def rebuilt(self, unsigned: str, txid: str) -> Stake:
        """This one, not stored yet, with other bytes to be signed, which get the id `txid`."""
        return replace(self, unsigned=unsigned, hash=txid, raw=None, earlier=self.replaced, renew=False)

    def signed_as(self, attempt: Attempt) -> Stake:
        return replace(
            next_version(self), raw=attempt.raw, hash=attempt.txid, touched_at=attempt.at, earlier=self.replaced, renew=False
        )


def stake_work(stake: Stake) -> Work:
    """Open work: settle a stake. In the lane of its network."""
    return Work("stake", stake.network, time_order(stake.created_at), stake.id)


def staked_work(stake: Stake) -> Work:
    """Open work: watch the block that made a stake final until no reorganisation reaches it. Found by height."""
    return Work("staked", stake.network, f"{stake.block_number or 0:015d}", f"{stake.id}|{stake.block_hash}")


def stake_command(stake: Stake) -> Command:
    """A command for its signature. In the group of the wallet that pays, as payments are."""
    return Command("payouts", f"{stake.network}", {"stake": stake.id, "network": stake.network})
