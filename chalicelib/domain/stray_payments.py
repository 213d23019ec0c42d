"""Stray payments: transfers to one of our deposit addresses on an unwatched network, or in an unregistered token. EVM networks
share their addresses, so the key to it is ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from chalicelib.domain.ids import NetworkId, Realm, TenantId, network_parts
from chalicelib.domain.work import Work, time_order

StrayStatus = Literal["open", "recorded", "credit", "return"]
"""`open`: nothing was decided; `recorded`: the ordinary scan has a deposit of it; `credit`: handed to the ordinary scan, for the
merchant whose address it came to; `return`: for the operator's merchant, who sends it back. The last two are for ever."""
STATUSES: tuple[str, ...] = get_args(StrayStatus)


@dataclass(frozen=True, slots=True)
class StrayPayment:
    """One transfer to a deposit address, found by the id of the deposit that it is or would be.

    `contract`, `sender` and `address` in their public spelling, `contract` None for the native coin; `units` are the smallest ones.
    `position` as in `domain.chain.Transfer`. `tenant` and `address_id` are the merchant's whose address it is. Times in
    milliseconds since 1970.

    A returned one is the operator's merchant's (`owner`), and is withdrawn to `return_to`. `withdrawal_id` is that withdrawal, None
    while its obligation is open; `detail` says what the obligation waits for.
    """

    id: str
    network: NetworkId
    txid: str
    position: str
    contract: str | None
    sender: str
    address: str
    units: int
    block_number: int
    block_hash: str
    block_time: int
    tenant: TenantId
    address_id: str
    created_at: int
    updated_at: int
    status: StrayStatus = "open"
    decided_by: str | None = None
    decided_at: int | None = None
    owner: TenantId | None = None
    return_to: str | None = None
    withdrawal_id: str | None = None
    detail: str | None = None
    version: int = 1

    @property
    def realm(self) -> Realm:
        return network_parts(self.network)[0]

    @property
    def decided(self) -> bool:
        return self.status in ("credit", "return")


def stray_work(stray: StrayPayment) -> Work:
    """Open work: order the withdrawal that returns it. In the lane of its network."""
    return Work("stray", stray.network, time_order(stray.decided_at or 0), stray.id)
