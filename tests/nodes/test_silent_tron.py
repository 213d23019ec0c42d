"""Tron with a node that has fallen silent: an expired transaction is made anew where little is at stake, and waits where much is.

No nonce keeps a second payment out of the chain. What the scanned blocks prove, and every node with a vote says, settles what is
worth less than agreementUsd; the rest waits until the silent one answers or the operator takes it out (money rule 13).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import forget, services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.tron.process import TronNode
from tests.nodes.tron_shops import TRON, Shop
from tests.support.node_proxy import NodeProxy
from tests.support.stack import first_stack
from tests.support.treasury import address_of, plan_units
from tests.support.tron_chain import SOLID, TRX, stranger

pytestmark = pytest.mark.nodes

MINUTES = 30
WORTH = 25
"""TRX that each transaction here moves: 3.75 dollars at the fixed rate."""


class Silent(Shop):
    invoice = ""
    """Two nodes, of which the second is about to fall silent; a deposit address with some TRX."""

    def __init__(self, shop: Shop, proxy: NodeProxy) -> None:
        super().__init__(shop.stack, shop.node)
        self.proxy = proxy

    def agree(self, usd: int) -> None:
        both = [self.node.url, self.proxy.url]
        self.call("PUT", "/v1/networks", self.admin, json={"network": "tron", "rpcUrls": both, "agreementUsd": usd})

    def silence(self) -> None:
        """The second node answers no more, for longer than it keeps its vote."""
        self.proxy.fault.drop = True
        self.turn()
        for _ in range(2):
            services().clock.shift_ms += MINUTES * 60_000 // 2 + 1_000
            self.turn()

    def turn(self) -> None:
        self.stack.drain(only=("poll_tron", "relay", "payout", "collect", "housekeeping"), failures="count", rounds=3, hurry=True)

    def attempts(self, kind: str) -> int:
        """How often the transaction of that kind was signed."""
        (found,) = services().store.every({"payout": PaymentOrder, "move": Move, "stake": Stake}[kind])
        return len(found.txids)

    def begin(self, kind: str) -> str:
        """Sign a transaction that no block takes, and that has expired; whom it pays."""
        self.node.call("dev/drop", count=2)  # it is handed to both
        to = stranger()
        if kind == "payout":
            body = {"network": "tron", "coin": "trx", "address": to, "amount": str(WORTH)}
            self.call("POST", "/v1/withdraws", json=body)
        elif kind == "move":
            to = self.hot()
            coin = services().catalogue("live").coins["tron", "trx"]
            plan_units(coin, "sweep", address_of(self.invoice), to, WORTH * TRX)
        else:
            to = self.hot()
            self.stake(str(WORTH))
        assert self.stack.drain(only=("relay", "payout", "collect")).settled
        assert self.attempts(kind) == 1
        self.expire()
        return to

    def deepen(self) -> None:
        """Every block that could have had it is deeper than reorganisations are followed."""
        for _ in range(3):
            self.node.mine(SOLID)
            self.turn()


@pytest.fixture
def shop(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    monkeypatch.setenv("RATES_PROVIDERS", "fixed")
    forget()
    with TronNode() as node, NodeProxy(node.url) as proxy:
        made = Silent(Shop(first_stack(aws, {"tron": NodeInfo(node.url)}), node), proxy)
        made.run()
        node.faucet(made.hot(), 1_000)
        made.confirm()
        invoice = made.call("POST", "/v1/invoices", json={"currency": "trx", "amount": "75", "network": "tron"})
        made.invoice = invoice["address"]
        node.faucet(made.invoice, 75)
        made.confirm()
        yield made
        assert audit(services().store) == []
        forget()


@pytest.mark.parametrize("kind", ["payout", *(pytest.param(kind, marks=pytest.mark.sweep) for kind in ("move", "stake"))])
def test_below_agreement_the_blocks_settle_it(shop: Silent, kind: str) -> None:
    shop.agree(1_000)
    to = shop.begin(kind)
    before = shop.on_chain(to)
    shop.silence()
    shop.deepen()
    assert shop.attempts(kind) == 2
    shop.confirm()
    assert shop.on_chain(to) == before + {"payout": WORTH, "move": WORTH, "stake": -WORTH}[kind] * TRX


@pytest.mark.parametrize("kind", ["payout", pytest.param("stake", marks=pytest.mark.sweep)])
def test_above_it_waits_until_the_silent_node_answers(shop: Silent, kind: str) -> None:
    shop.agree(1)
    shop.begin(kind)
    shop.silence()
    shop.deepen()
    assert shop.attempts(kind) == 1, "the one that is left may be the one that lies"
    shop.proxy.heal()
    shop.proxy.fault.drop = False
    for _ in range(3):
        shop.turn()
        services().clock.shift_ms += 61_000
    assert shop.attempts(kind) == 2


# The sweep: unit/transactions/test_node_votes.py keeps a node its vote for half an hour, and stays.
@pytest.mark.sweep
def test_a_node_that_is_silent_for_less_is_waited_for(shop: Silent) -> None:
    """It has its vote still, however little is at stake."""
    shop.agree(1_000)
    shop.begin("payout")
    shop.proxy.fault.drop = True
    shop.deepen()
    assert shop.attempts("payout") == 1
    assert TRON in {order.network for order in services().store.every(PaymentOrder)}
