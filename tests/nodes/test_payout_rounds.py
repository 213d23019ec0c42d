"""How often a payout waits for the node: each wait is a round trip, and a hot wallet's payouts stand in line for all of them
(docs/scale.md, "First bottlenecks")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from secrets import token_hex

import pytest

from chalicelib import wiring
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.nodes import mine
from tests.bench.limits import NODE_ROUNDS, TOKEN_ROUNDS, TOPUP_ROUNDS
from tests.nodes.rounds import Rounds, counted, fewest
from tests.nodes.sending import send_native, send_token
from tests.nodes.shops import CONFIRMATIONS, ETHER, Shop

pytestmark = pytest.mark.nodes


def paid(shop: Shop, monkeypatch: pytest.MonkeyPatch, coin: str, amount: str) -> Rounds:
    """Pays out, from the command in its queue to the broadcast; what it asked of the node."""
    made = shop.post("/v1/withdraws", network="arbitrum", coin=coin, address="0x" + token_hex(20), amount=amount)
    shop.stack.drain(only=("relay",))
    with counted(monkeypatch) as rounds:
        shop.stack.drain(only=("payout",))
    assert shop.get(f"/v1/withdrawals/{made['id']}")["data"]["status"] == "confirming"
    return rounds


@contextmanager
def two_nodes(shop: Shop) -> Iterator[None]:
    """The node under two names, for a process that begins."""
    node = shop.node.url

    def configured(*urls: str) -> None:
        body = {"network": "arbitrum", "rpcUrls": list(urls)}
        assert shop.stack.call("PUT", "/v1/networks", shop.stack.keys["admin_live"], body).status == 200
        wiring.forget()

    configured(node, node.replace("127.0.0.1", "localhost"))
    try:
        yield
    finally:
        configured(node)


def test_a_payout_waits_a_few_times_for_the_node(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """To addresses that nobody has used, which tokens take most gas for. Each fact is asked as often as before: when a payout
    begins, when its bytes are built, and right before they are signed."""
    ether = shop.post("/v1/invoices", currency="eth", amount="1", network="arbitrum")
    token = shop.post("/v1/invoices", currency="usdt", amount="30", network="arbitrum")
    send_native(shop.node.rpc, ether["address"], ETHER)
    send_token(shop.node.rpc, shop.usdt, token["address"], 30_000_000)
    shop.confirm()
    paid(shop, monkeypatch, "eth", "0.1")  # the wallet's first nonce is asked of every node before anything else
    native = fewest(partial(paid, shop, monkeypatch, "eth", "0.11"), len(NODE_ROUNDS))
    tokens = fewest(partial(paid, shop, monkeypatch, "usdt", "5"), TOKEN_ROUNDS)
    assert (native.serial, tokens.serial) == (len(NODE_ROUNDS), TOKEN_ROUNDS)
    assert len(native.asked) == sum(NODE_ROUNDS)
    facts = {"eth_chainId": 3, "eth_getBlockByNumber": 3, "eth_maxPriorityFeePerGas": 3, "eth_getTransactionCount": 2}
    sent = {"eth_sendRawTransaction": 1, "eth_getBalance": 4, "eth_getCode": 4}
    assert native.methods == {**facts, **sent, "eth_estimateGas": 3}
    # Of a token each of the two plans calls twice, without a price and with one; five estimates are of a plain payment.
    assert tokens.methods == {**facts, **sent, "eth_estimateGas": 3 + 5, "eth_call": 1 + 4}
    with two_nodes(shop):
        native = fewest(partial(paid, shop, monkeypatch, "eth", "0.12"), len(NODE_ROUNDS))
    assert native.serial == len(NODE_ROUNDS)
    assert native.methods == {**facts, **sent, "eth_estimateGas": 3, "eth_sendRawTransaction": 2}
    shop.confirm()
    assert audit(services().store) == []


def topped_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    """A token's deposit gets the fee that its address lacks; what the move asked of the node, from its command to the broadcast."""
    address = shop.post("/v1/invoices", currency="usdt", amount="30", network="arbitrum")["address"]
    send_token(shop.node.rpc, shop.usdt, address, 30_000_000)
    mine(shop.node.rpc, CONFIRMATIONS)
    shop.stack.drain(only=("poll_arbitrum", "relay"), hurry=True)
    with counted(monkeypatch) as rounds:
        shop.stack.drain(only=("payout",))
    (move,) = [each for each in services().store.every(Move) if each.recipient == address]
    assert (move.kind, move.state) == ("topup", "signed")
    return rounds


def test_a_top_up_waits_for_the_node_as_often_as_the_model_says(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"coin": "usdt", "network": "arbitrum", "collectThreshold": 10}
    assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_live"], json=settings).status == 200
    topped_up(shop, monkeypatch)  # the wallet's first nonce is asked of every node before anything else
    found = fewest(partial(topped_up, shop, monkeypatch), len(TOPUP_ROUNDS))
    assert (found.serial, len(found.asked)) == (len(TOPUP_ROUNDS), sum(TOPUP_ROUNDS))
