"""Several nodes, one of which lies about what became of a payment: no merchant gets back what is paid, and nobody is paid twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chalicelib.chains.providers import Health
from chalicelib.chains.several import Seen, SeveralReaders
from chalicelib.domain.chain import Receipt
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, ETHER, Node, Shop, bent_node, open_shop
from tests.support.stack import Stack

Saying = Callable[[str, Receipt | None], Receipt | None]


@dataclass
class Liar:
    """A reader: the real node until `ahead` or `says` is set. Blocks above the real tip are made up."""

    real: Any
    ahead: int = 0
    says: Saying | None = None
    gone: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def tip(self) -> int:
        if self.gone:
            raise Unavailable("gone")
        return int(self.real.tip()) + self.ahead

    def block_hash(self, number: int) -> str | None:
        found: str | None = self.real.block_hash(number)
        return found if found is not None or not self.ahead else f"0x{number:064x}"

    def receipt(self, txid: str) -> Receipt | None:
        if self.gone:
            raise Unavailable("gone")
        real: Receipt | None = self.real.receipt(txid)
        return real if self.says is None else self.says(txid, real)


@dataclass
class Nodes:
    real: Any
    all: list[Liar]

    @property
    def liar(self) -> Liar:
        return self.all[-1]


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        opened.credit("5")
        yield opened


def behind(shop: Shop, patch: pytest.MonkeyPatch, count: int, agreement: int | None = 1_000) -> Nodes:
    """Let the shop's network be read through `count` nodes."""
    wired = services()
    network = replace(shop.realm_network(), agreement_usd=agreement)
    real, old = wired.reader(network), wired.reader
    nodes = Nodes(real, [Liar(real) for _ in range(count)])
    seen: list[Any] = [Seen(node, Health(n)) for n, node in enumerate(nodes.all, start=1)]  # type: ignore[arg-type]
    reader: Any = SeveralReaders(network, seen) if count > 1 else nodes.liar
    patch.setattr(wired, "reader", lambda asked: reader if asked.id == network.id else old(asked))
    judge = wired.verdicts
    patch.setattr(wired, "verdicts", lambda asked: judge(network if asked.id == network.id else asked))
    return nodes


def failing(nodes: Nodes) -> Saying:
    """Failed, in a block that was scanned and is as deep as is asked for."""

    def says(txid: str, real: Receipt | None) -> Receipt | None:
        number = nodes.real.tip() - CONFIRMATIONS if real is None else real.block_number
        return Receipt(txid, False, number, nodes.real.block_hash(number), 0)

    return says


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
