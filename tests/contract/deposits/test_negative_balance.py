"""A payment that falls out of the chain after it was paid out: the merchant owes it, visibly, until it is mined again."""

from __future__ import annotations

import pytest

from tests.contract.deposits.mined_twice import NOTHING, Twice
from tests.support.shop import CONFIRMATIONS, bent_node, open_shop
from tests.support.stack import Stack


def test_spent_then_gone_then_mined_again(stack: Stack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with open_shop(stack) as shop:
        chain = Twice(shop, bent_node(shop, monkeypatch), "credited")
        invoice = shop.invoice("1000", "usdt")
        paid = chain.log(invoice["address"])
        chain.first(paid)
        spent = shop.withdraw("800", "usdt")
        shop.turn()
        shop.mine(CONFIRMATIONS)
        shop.turn()
        assert (shop.withdrawal(spent)["status"], shop.available("usdt")) == ("confirmed", "200")
        waiting = shop.withdraw("50", "usdt")
        # Everything from the payment's block on falls out; what we paid is sent again and is mined on the new branch.
        depth = chain.tip() - chain.height + 1
        shop.reorg(depth)
        chain.node.mend()
        shop.turn()
        shop.mine(CONFIRMATIONS)
        shop.turn()
        assert (shop.withdrawal(spent)["status"], shop.status(invoice)) == ("confirmed", "pending")
        assert shop.available("usdt") == "-850"
        assert "fell out of the chain and is spent: -" in caplog.text
        refused = shop.ask("20", "usdt")
        assert (refused.status, refused.json["error"]["code"]) == (400, "INSUFFICIENT_BALANCE")
        assert shop.withdrawal(waiting)["status"] == "pending"
        # Mined again: credited once, and what waited goes on by itself.
        shop.mine(1)
        chain.height = chain.tip()
        chain.hold(paid)
        shop.turn()
        chain.confirm()
        assert (shop.status(invoice), shop.available("usdt")) == ("completed", "150")
        for _ in range(3):
            shop.nudge(130)
            shop.mine(CONFIRMATIONS)
            shop.turn()
        assert shop.withdrawal(waiting)["status"] == "confirmed"
        assert shop.balance("usdt") == {**NOTHING, "available": "150"}
