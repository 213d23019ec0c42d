"""The filler over an open payment on anvil: the node takes it in the payment's place, and the payment is given back, or paid."""

from __future__ import annotations

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.nodes import mine
from tests.nodes.renewing import QUARTER, REORG_DEPTH, STUCK_MS, block_at, known, order_of, replaced, shown, withdraw
from tests.nodes.shops import ETHER, OUT, Shop

pytestmark = pytest.mark.nodes

FINAL = 10


def arbitrum() -> Network:
    return services().catalogue("live").networks["arbitrum"]


def put_over(shop: Shop, withdrawal: str) -> Move:
    """Plan the filler, and let it be signed and sent."""
    network = arbitrum()
    with in_realm("live"):
        services().node_votes(network).know()
        planned = services().filling_over(network).plan(withdrawal, "arn:aws:iam::0:user/op", "no block takes it")
    shop.run()
    filler = filler_over()
    assert (filler.id, filler.state, filler.nonce) == (planned.id, "signed", order_of(withdrawal).nonce)
    return filler


def filler_over() -> Move:
    (found,) = (move for move in services().store.every(Move) if move.kind == "filler")
    return found


def out_is(shop: Shop, order: PaymentOrder, filler: Move) -> None:
    """The node has the filler, and no attempt of the payment."""
    assert known(shop, filler.txid)
    assert [txid for txid in order.txids if known(shop, txid)] == []


def bounced(shop: Shop) -> int:
    return sum(entry.kind == "withdrawal_bounced" for entry in services().store.every(JournalEntry))


@pytest.mark.parametrize("attempts", [pytest.param(1, marks=pytest.mark.sweep), 2])
def test_the_node_takes_it_and_the_payment_is_given_back_deep_down(
    slow: Shop, caplog: pytest.LogCaptureFixture, attempts: int
) -> None:
    before = slow.on_chain(OUT)[0]
    withdrawal, behind_it = withdraw(slow), withdraw(slow)
    if attempts == 2:
        block_at(slow, 60)
        slow.run()
        replaced(slow, withdrawal)
    order = order_of(withdrawal)
    assert known(slow, order.txid)
    filler = put_over(slow, withdrawal)
    out_is(slow, order, filler)
    block_at(slow, 5)
    slow.run()
    assert slow.node.rpc.call("eth_getTransactionReceipt", [filler.txid])["status"] == "0x1"
    # Somebody sends the payment's signed bytes again: no block can take them any more.
    with pytest.raises(Refused, match="nonce too low"):
        services().payer(arbitrum()).broadcast(str(order.raw))
    mine(slow.node.rpc, FINAL)
    services().clock.shift_ms += STUCK_MS
    slow.run()
    assert (filler_over().state, shown(slow, withdrawal)[0], shown(slow, behind_it)[0]) == ("settled", "confirming", "confirmed")
    assert slow.available()["eth"] == "0.5"
    # Nothing is given back while a reorganisation that is followed reaches its block.
    met = int(slow.node.rpc.call("eth_getTransactionReceipt", [filler.txid])["blockNumber"], 16)
    mine(slow.node.rpc, REORG_DEPTH - 1 - (int(slow.node.rpc.call("eth_blockNumber", []), 16) - met))
    services().clock.shift_ms += STUCK_MS
    slow.run()
    assert (shown(slow, withdrawal)[0], slow.available()["eth"], bounced(slow)) == ("confirming", "0.5", 0)
    mine(slow.node.rpc)
    slow.run()
    assert (shown(slow, withdrawal)[0], slow.available()["eth"], bounced(slow)) == ("failed", "0.75", 1)
    assert slow.on_chain(OUT)[0] == before + QUARTER
    assert f"our own {filler.id}" in caplog.text
    assert "somebody has the key" not in caplog.text


def test_the_payment_comes_back_in_a_new_branch_and_has_paid(slow: Shop) -> None:
    """The filler falls out before it is deep, and a block has the payment: it was never given back."""
    rpc, before = slow.node.rpc, slow.on_chain(OUT)[0]
    withdrawal = withdraw(slow)
    order = order_of(withdrawal)
    filler = put_over(slow, withdrawal)
    out_is(slow, order, filler)
    block_at(slow, 5)
    mine(rpc, REORG_DEPTH // 2)
    services().clock.shift_ms += STUCK_MS
    slow.run()
    assert (filler_over().state, shown(slow, withdrawal)[0], bounced(slow)) == ("settled", "confirming", 0)
    rpc.call("anvil_reorg", [REORG_DEPTH // 2 + 3, [[order.raw, 0]]])
    mine(rpc, 2 * REORG_DEPTH)
    for _ in range(3):
        services().clock.shift_ms += STUCK_MS
        slow.run()
    assert (shown(slow, withdrawal)[0], slow.available()["eth"]) == ("confirmed", "0.75")
    assert (filler_over().state, bounced(slow)) == ("failed", 0)
    assert slow.on_chain(OUT)[0] == before + ETHER // 4
    assert audit(services().store) == []
