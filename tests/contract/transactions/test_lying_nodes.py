"""Several nodes, one of which lies about what became of a payment: no merchant gets back what is paid, and nobody is paid twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib.domain.chain import Receipt
from tests.support.lying_nodes import behind, failing
from tests.support.shop import ETHER, Node, Shop, bent_node, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("5", "eth")) as opened:
        yield opened


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_node_ahead_of_all_does_not_give_a_payment_back(shop: Shop, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """It names a tip, makes the blocks up, and says that the payment failed in one of them."""
    nodes = behind(shop, monkeypatch, count)
    withdrawal = shop.withdraw("5")
    shop.turn()
    nodes.liar.ahead = 40
    nodes.liar.says = lambda txid, _: Receipt(txid, False, nodes.real.tip() + 5, f"0x{nodes.real.tip() + 5:064x}", 0)
    shop.turn(failures="count")
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirming", "0")
    nodes.liar.ahead, nodes.liar.says = 0, None
    shop.mine()
    shop.turn(failures="count")
    assert (shop.withdrawal(withdrawal)["status"], shop.available(), shop.paid()) == ("confirmed", "0", 5 * ETHER)
    assert shop.journal("withdrawal_bounced") == []


@pytest.mark.parametrize("agreement", [None, 0, 1_000_000])
@pytest.mark.parametrize("place", [0, 2])
def test_two_that_say_paid_are_believed_against_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, agreement: int | None, place: int
) -> None:
    nodes = behind(shop, monkeypatch, 3, agreement)
    withdrawal = shop.withdraw("5")
    shop.turn()
    nodes.all[place].says = failing(nodes)
    shop.mine()
    shop.turn(failures="count")
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirmed", "0")


def test_of_two_that_contradict_each_other_neither_is_believed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = behind(shop, monkeypatch, 2)
    withdrawal = shop.withdraw("5")
    shop.turn()
    nodes.all[0].says = failing(nodes)
    shop.mine()
    shop.turn(failures="count")
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirming", "0")
    assert "is not settled: 2 of 2 nodes answer" in caplog.text
    nodes.all[0].says = None
    shop.turn(failures="count")
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"


@pytest.mark.parametrize(
    ("count", "away", "status"), [(2, 0, "failed"), (2, 1, "confirming"), (3, 1, "failed"), (3, 2, "confirming")]
)
def test_a_real_failure_is_told_by_more_than_half(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, count: int, away: int, status: str
) -> None:
    nodes = behind(shop, monkeypatch, count)
    withdrawal = shop.withdraw("5")
    decided = shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "fail"})
    assert decided.status == 200, decided.body
    for node in nodes.all[:away]:
        node.gone = True
    shop.turn(failures="count")
    shop.mine()
    shop.turn(failures="count")
    assert shop.withdrawal(withdrawal)["status"] == status
    for node in nodes.all:
        node.gone = False
    shop.turn(failures="count")
    assert (shop.withdrawal(withdrawal)["status"], shop.available(), shop.paid()) == ("failed", "5", 0)


@pytest.mark.parametrize(("agreement", "status"), [(None, "confirmed"), (1_000_000, "confirmed"), (100, "confirming")])
def test_above_agreement_one_node_does_not_settle(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, agreement: int | None, status: str
) -> None:
    nodes = behind(shop, monkeypatch, 2, agreement)
    withdrawal = shop.withdraw("5")
    shop.turn()
    nodes.all[1].gone = True
    shop.mine()
    shop.turn(failures="count")
    assert shop.withdrawal(withdrawal)["status"] == status
    nodes.all[1].gone = False
    shop.turn(failures="count")
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"


def test_a_token_whose_log_one_node_leaves_out_was_paid(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.credit("50", "usdt")
    nodes = behind(shop, monkeypatch, 3)
    withdrawal = shop.withdraw("50", "usdt")
    shop.turn()
    nodes.all[0].says = lambda _, real: None if real is None else replace(real, moved=())
    shop.mine()
    shop.turn(failures="count")
    assert (shop.withdrawal(withdrawal)["status"], shop.available("usdt")) == ("confirmed", "0")


def test_a_receipt_in_another_block_than_was_scanned_settles_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One node, which tells another hash for the block of a payment, and stands by it."""
    withdrawal = shop.withdraw("5")
    shop.turn()
    shop.mine()
    shop.stack.drain(only=("relay",))
    node: Node = bent_node(shop, monkeypatch)
    tip = node.tip()
    node.bend(
        receipt=lambda real, txid: None if real is None else Receipt(txid, False, tip - 20, "0xother", 0),
        block_hash=lambda real, number: "0xother" if number == tip - 20 else real,
    )
    shop.turn(failures="count")
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirming", "0")
    assert "is said to be in another block than was scanned" in caplog.text
    node.mend()
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
