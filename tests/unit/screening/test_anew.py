"""A payment that the chain tells otherwise in another block."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.usecases.screening.deposits import anew

KNOWN = Deposit(
    id="tx_1", network=NetworkId("live:ethereum"), asset=AssetId("live:ethereum:usdt"), tenant=TenantId("m:live"), txid="0x1",
    position="log:5", sender="0xs", address="0xa", amount=5, block_number=1, block_hash="0xh", block_time=1, created_at=1,
    status="orphaned", archives=("object",), round=1, version=7,
)  # fmt: skip


def test_what_was_archived_of_it_is_still_named() -> None:
    """The object has the posting of its first credit, which the audit proves."""
    found = anew(KNOWN, replace(KNOWN, amount=6, status="pending", archives=None, round=0, version=1))
    assert (found.archives, found.amount, found.status, found.round, found.version) == (("object",), 6, "pending", 1, 8)
