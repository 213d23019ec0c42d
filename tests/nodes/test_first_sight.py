"""Payments at first sight on Litecoin Core: waiting, replaced, double-spent, mined, and mined again after a reorganisation.

`make sweep` tries what needs no wallet of the node's own on bcoin, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import network_id
from chalicelib.usecases.ports.failures import Halted
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Litecoin, UtxoNode
from tests.support.stack import Stack, first_stack

pytestmark = pytest.mark.nodes

COIN = 10**8
# The sweep: bcoin tells of its mempool and its blocks as Litecoin Core does, which stays.
ON_EITHER = pytest.mark.parametrize("utxo_node", [pytest.param("bitcoin", marks=pytest.mark.sweep), "litecoin"], indirect=True)
CONFIRMATIONS = 6


class Shop:
    """A live merchant on litecoin or bitcoin."""

    def __init__(self, stack: Stack, node: Any, slug: str = "litecoin") -> None:
        self.stack, self.node, self.key = stack, node, stack.keys["client_live"]
        self.slug, self.coin = slug, {"litecoin": "ltc", "bitcoin": "btc"}[slug]
        self.network = services().catalogue("live").networks[slug]

    def look(self) -> None:
        self.stack.drain(only=(f"poll_{self.slug}", "scan_range", "relay"), rounds=1)

    def wait(self, seconds: int) -> None:
        services().clock.shift_ms += seconds * 1000

    def invoice(self, amount: str = "1") -> dict[str, Any]:
        body = {"currency": self.coin, "amount": amount, "network": self.slug}
        made = self.stack.call("POST", "/v1/invoices", self.key, json=body)
        assert made.status == 201, made.body
        return dict(made.json)

    def status(self, invoice: dict[str, Any]) -> str:
        return str(self.stack.call("GET", "/v1/invoices", self.key, query={"id": invoice["id"]}).json["status"])

    def balance(self) -> tuple[str, str]:
        """Available and pending."""
        found = self.stack.call("GET", "/v1/balances", self.key).json["data"]
        return next(((b["available"], b["pending"]) for b in found if b["coin"] == self.coin), ("0", "0"))

    def deposits(self, address: str) -> list[Deposit]:
        return sorted((d for d in services().store.every(Deposit) if d.address == address), key=lambda d: d.created_at)


@contextmanager
def opened(aws: LocalAws, node: UtxoNode, slug: str) -> Iterator[Shop]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIVE_CHAINS", f"{slug}=regtest")
        wiring.forget()
        made = Shop(first_stack(aws, {slug: NodeInfo(node.url)}), node, slug)
        made.look()
        yield made
        assert audit(services().store) == []
    wiring.forget()


@pytest.fixture
def shop(aws: LocalAws, litecoin: Litecoin) -> Iterator[Shop]:
    with opened(aws, litecoin, "litecoin") as made:
        yield made


@pytest.fixture
def either(aws: LocalAws, utxo_node: UtxoNode) -> Iterator[Shop]:
    """On each of the two nodes."""
    with opened(aws, utxo_node, "litecoin" if isinstance(utxo_node, Litecoin) else "bitcoin") as made:
        yield made


def test_waiting_mined_reorganised_and_mined_again(shop: Shop) -> None:
    invoice = shop.invoice()
    txid = shop.node.send(invoice["address"], COIN)
    shop.look()
    (seen,) = shop.deposits(invoice["address"])
    assert (seen.txid, seen.status, seen.block_number) == (txid, "pending", None)
    assert (shop.status(invoice), shop.balance()) == ("confirming", ("0", "1"))
    shop.node.mine(1)
    shop.look()
    (mined,) = shop.deposits(invoice["address"])
    assert (mined.id, mined.status, mined.block_number is not None) == (seen.id, "pending", True)
    shop.node.mine(CONFIRMATIONS - 1)
    shop.look()
    assert (shop.status(invoice), shop.balance()) == ("completed", ("1", "0"))
    shop.node.reorg(CONFIRMATIONS)
    shop.look()
    shop.look()
    assert shop.balance()[0] == "0"
    shop.node.mine(CONFIRMATIONS)
    shop.look()
    assert (shop.status(invoice), shop.balance()) == ("completed", ("1", "0"))
    events = shop.stack.call("GET", "/v1/events", shop.key, query={"objectId": seen.id}).json["data"]
    told = [e["event"].removeprefix("transaction.") for e in sorted(events, key=lambda e: int(e["sequence"]))]
    assert told == ["detected", "confirmed", "orphaned", "detected", "confirmed"]


def test_replaced_by_a_higher_fee(shop: Shop) -> None:
    """The wallet of Litecoin Core bumps its fee (BIP-125): the next look ends the old one; what is mined is credited."""
    invoice = shop.invoice()
    old = shop.node.rpc.call("sendtoaddress", [invoice["address"], 1, "", "", False, True])
    shop.look()
    assert [d.flags for d in shop.deposits(invoice["address"])] == [("replaceable",)]
    new = shop.node.rpc.call("bumpfee", [old])["txid"]
    shop.look()
    assert {d.txid: d.status for d in shop.deposits(invoice["address"])} == {old: "orphaned", new: "pending"}
    shop.node.mine(CONFIRMATIONS)
    shop.look()
    assert (shop.status(invoice), shop.balance()) == ("completed", ("1", "0"))


@ON_EITHER
def test_double_spent(either: Shop) -> None:
    """What it spent is spent by another transaction, which pays nobody here and is mined."""
    invoice = either.invoice()
    txid = either.node.send(invoice["address"], COIN)
    either.look()
    assert either.status(invoice) == "confirming"
    either.node.mine_block([either.node.conflict(txid)])
    either.node.mine(CONFIRMATIONS)
    either.look()
    assert [d.status for d in either.deposits(invoice["address"])] == ["orphaned"]
    assert (either.status(invoice), either.balance()) == ("pending", ("0", "0"))


def test_deeper_than_is_followed(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """More blocks fall out than the cursor remembers: crediting stops, loudly, until an operator looks. Then the books say what the
    chain says: nodes keep nothing waiting that so deep a block held."""
    invoice = shop.invoice()
    raw = shop.node.raw(shop.node.send(invoice["address"], COIN))
    shop.node.mine(shop.network.reorg_depth + 2)
    shop.look()
    assert shop.balance() == ("1", "0")
    shop.node.reorg(shop.network.reorg_depth + 2)
    shop.node.mine(2)
    with pytest.raises(ExceptionGroup) as failed:
        shop.look()
    assert failed.group_contains(Halted)
    assert "ALARM live:litecoin: the chain changed deeper" in caplog.text
    cursor = services().store.get(Cursor, network=network_id("live", "litecoin"))
    assert cursor is not None and cursor.halted is not None
    services().scanner(shop.network).resume(None)
    shop.look()
    assert shop.balance() == ("0", "0")
    shop.node.rpc.call("sendrawtransaction", [raw])
    shop.node.mine(CONFIRMATIONS)
    shop.look()
    assert (shop.balance(), shop.status(invoice)) == (("1", "0"), "completed")
    assert len(shop.deposits(invoice["address"])) == 1


@ON_EITHER
def test_what_is_mined_to_an_address_of_ours_is_told_and_not_credited(either: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """It can not be spent for 100 blocks. Nobody who waits for it sees anything: so the operator is told."""
    invoice = either.invoice()
    (block,) = either.node.rpc.call("generatetoaddress", [1, invoice["address"]])
    coinbase = either.node.rpc.call("getblock", [block, 1])["tx"][0]
    either.look()
    told = [record.getMessage() for record in caplog.records]
    (line,) = [each for each in told if each.startswith("ALARM") and invoice["address"] in each]
    assert (f"live:{either.slug}" in line, coinbase in line) == (True, True)
    assert (either.deposits(invoice["address"]), either.status(invoice), either.balance()) == ([], "pending", ("0", "0"))
    txid = either.node.send(invoice["address"], COIN)
    either.node.mine(CONFIRMATIONS)
    either.look()
    assert ([d.txid for d in either.deposits(invoice["address"])], either.balance()) == ([txid], ("1", "0"))
