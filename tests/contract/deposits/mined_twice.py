"""A payment that a reorganisation puts into another block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from chalicelib.domain.chain import Cursor, Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, Node, Shop, with_also

Path = Literal["seen", "credited", "unnoticed"]
"""What the scan had done before the reorganisation: passed the block, credited it, or died before it passed it."""
TXID = "0x" + "ab" * 32
PAYER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own examples
NOTHING = {"available": "0", "frozen": "0", "pending": "0"}
THOUSAND = 1000 * 10**6


@dataclass
class Twice:
    """One movement that the chain tells twice, each time in another block."""

    shop: Shop
    node: Node
    path: Path

    def log(self, to: str, units: int = THOUSAND, coin: str = "usdt", sender: str = PAYER) -> Transfer:
        contract = self.shop.coin(coin).contract
        assert contract is not None
        return Transfer(TXID, "log:0", contract.lower(), sender.lower(), to.lower(), units)

    def first(self, transfer: Transfer) -> None:
        self.shop.mine(1)
        self.height = self.tip()
        self.hold(transfer)
        if self.path == "unnoticed":
            scanner = services().scanner(self.shop.realm_network())
            scanner.recorder.record(self.node.blocks(self.height, self.height, {}), self.epoch())
            return
        self.shop.turn()
        if self.path == "credited":
            self.confirm()

    def again(self, transfer: Transfer) -> None:
        """The blocks from the first one on are replaced."""
        depth = self.tip() - self.height + 1
        self.shop.reorg(depth)
        self.node.mend()
        self.hold(transfer)
        self.shop.turn()

    def confirm(self) -> None:
        self.shop.mine(CONFIRMATIONS)
        self.shop.turn()

    def hold(self, transfer: Transfer) -> None:
        (block,) = self.node._real.blocks(self.height, self.height, {})
        with_also(self.node, [transfer], block.hash)

    def tip(self) -> int:
        return int(self.node._real.tip())

    def epoch(self) -> int:
        found = services().store.get(Cursor, network=self.shop.realm_network().id)
        assert found is not None
        return found.epoch

    @property
    def id(self) -> str:
        return deposit_id(self.shop.realm_network().id, TXID, "log:0")

    def record(self) -> Deposit:
        found = services().store.get(Deposit, id=self.id)
        assert found is not None
        return found

    def shown(self, invoice: dict[str, Any]) -> list[tuple[str, int, bool]]:
        """The payments of an invoice."""
        (found,) = (i for i in services().store.every(Invoice) if i.id == invoice["id"])
        return [(p.deposit, p.amount, p.confirmed) for p in found.payments]

    def told(self, shop: Shop) -> list[str]:
        """What this merchant was told of the payment, in order."""
        events = shop.get("/v1/events", objectId=self.id)["data"]
        return [e["event"] for e in sorted(events, key=lambda e: int(e["sequence"]))]

    @property
    def purse(self) -> str:
        """Where money of the payment is after `first`, and after `again`: there the branch is as long as what it replaces."""
        return "available" if self.path == "credited" else "pending"

    def before(self) -> list[str]:
        """What was told before the reorganisation."""
        return ["transaction.detected", *(["transaction.confirmed"] if self.path == "credited" else [])]
