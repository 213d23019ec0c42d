"""A shop with the operator, who sets minimum deposits and releases what is held back."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import Book, operator
from chalicelib.domain.money import parse_units
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.shop import Shop
from tests.support.stack import Response


class Till(Shop):
    """A shop, and the operator who sets the minimum and releases."""

    def operate(self, method: str, path: str, **body: Any) -> Response:
        return self.stack.call(method, path, self.stack.keys["admin_test"], json=body or None)

    def settle_for(self, coin: str = "usdt", **settings: Any) -> None:
        answer = self.operate("PUT", "/v1/coins", coin=coin, network=self.network, **settings)
        assert answer.status == 200, answer.body

    def minimum(self, amount: Any = 5, coin: str = "usdt") -> None:
        self.settle_for(coin, minDepositAmount=amount)

    def address(self) -> str:
        return str(self.post("/v1/addresses", {"network": self.network}).json["address"])

    def paid_by(self, sender: str, address: str, amount: str, coin: str = "usdt") -> None:
        found = self.coin(coin)
        services().sandbox.deposit(found.network, address, found, parse_units(amount, found.decimals), sender)

    def seen(self) -> None:
        """In a block, and not confirmed."""
        self.mine(1)
        self.turn()

    def settle(self) -> None:
        self.mine()
        self.turn()

    def deposit(self, address: str) -> Any:
        """The one payment to the address, as its merchant is shown it."""
        (only,) = self.get("/v1/transactions", address=address)["data"]
        return only

    def flags(self, address: str) -> list[list[str]]:
        return [each["flags"] for each in self.get("/v1/transactions", address=address)["data"]]

    def release(self, address: str) -> Response:
        return self.operate("POST", f"/v1/transactions/{self.deposit(address)['id']}/release")

    def of(self, invoice: dict[str, Any]) -> Invoice:
        (found,) = (each for each in services().store.every(Invoice) if each.id == invoice["id"])
        return found

    def operators(self, coin: str = "usdt") -> int:
        """What the ledger says that is the operator's, beside what it had when its wallets were funded."""
        asset = self.coin(coin).asset
        ours = [e for kind in ("deposit_credited", "deposit_reversed", "deposit_admitted") for e in self.journal(kind)]
        mine = [e for e in ours if _is_a_merchants(e.ref["deposit"])]
        return sum(e.deltas(Book.WHOSE).get((operator("test"), asset), 0) for e in mine)

    def whole(self) -> None:
        assert audit(services().store) == []


def _is_a_merchants(deposit_id: str) -> bool:
    found = services().store.get(Deposit, id=deposit_id)
    return found is not None and found.tenant is not None
