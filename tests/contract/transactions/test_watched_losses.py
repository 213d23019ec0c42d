"""What is lost by a sighting is watched on, as what an operator gives up: mined after all, the ledger records it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.usecases.payouts.booking import PayoutBooking
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions.finality import Finality
from chalicelib.wiring import services
from tests.support.alarms import raised
from tests.support.cuts import Died
from tests.support.met import met_elsewhere
from tests.support.shop import Shop, decide, open_shop
from tests.support.stack import Stack
from tests.support.treasury import move_of, paid_address, plan, same

REORG_DEPTH = 64


@pytest.fixture
def shop(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Every node denies what is out: in the sandbox they know what sticks."""
    with open_shop(stack, ("1", "eth")) as opened:
        monkeypatch.setattr(Finality, "denied", lambda *_: True)
        yield opened


def watch_of(id: str) -> GivenUp:
    found = services().store.get(GivenUp, id=id)
    assert found is not None
    return found


def mined_after_all(shop: Shop, txid: str | None) -> None:
    shop.chain().settle(str(txid), "confirm")
    for _ in range(2):
        shop.mine()
        shop.turn()


def used_elsewhere(shop: Shop, monkeypatch: pytest.MonkeyPatch, address: str, nonce: int) -> None:
    """A block has another transaction with this nonce, and the node counts it."""
    met_elsewhere(shop.realm_network(), address, nonce)
    monkeypatch.setattr(SandboxPayer, "told_nonces", lambda *_: (nonce + 1,))


def test_a_sighting_that_no_node_counts_gives_nothing_back(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Who may write a row has written it: the payment is in the pool, and is mined later."""
    withdrawal = shop.withdraw("0.25")
    decide(shop, withdrawal, "stick")
    shop.turn()
    order = shop.order(withdrawal)
    met_elsewhere(shop.realm_network(), order.wallet, order.nonce)
    shop.mine(REORG_DEPTH)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirming", "0.75")
    assert any(f"{order.id} is lost by what was scanned, and a node has no transaction" in line for line in raised(caplog))
    mined_after_all(shop, order.txid)
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirmed", "0.75")
    assert audit(services().store) == []


def test_a_lost_payment_is_watched_and_was_paid_where_it_is_mined_after_all(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    withdrawal = shop.withdraw("0.25")
    decide(shop, withdrawal, "stick")
    shop.turn()
    order = shop.order(withdrawal)
    used_elsewhere(shop, monkeypatch, order.wallet, 0)
    shop.mine(REORG_DEPTH)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("failed", "1")
    watch = watch_of(withdrawal)
    assert (watch.state, watch.kind, watch.txids) == ("open", "payout", order.txids)
    assert audit(services().store) == []
    mined_after_all(shop, order.txid)
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirmed", "0.75")
    assert f"{withdrawal} was given up by the service" in caplog.text
    assert watch_of(withdrawal).state == "mined" and audit(services().store) == []


def test_a_lost_move_is_watched(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    address = paid_address(shop, "1", "eth")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "0.5")
    shop.chain().plan(sweep, "stick")
    shop.turn()
    move = move_of(shop, sweep)
    used_elsewhere(shop, monkeypatch, move.source, move.nonce or 0)
    shop.mine(REORG_DEPTH)
    shop.turn()
    lost = move_of(shop, sweep)
    assert (lost.state, watch_of(sweep).state, watch_of(sweep).kind) == ("failed", "open", "move")
    mined_after_all(shop, move.txid)
    assert (move_of(shop, sweep).state, watch_of(sweep).state) == ("settled", "mined")
    same(shop, address.address, "eth")
    assert audit(services().store) == []


def test_who_dies_between_the_watch_and_the_loss_gives_nothing_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch is no operator's decision: where the loss is none any more, the payment goes on."""
    withdrawal = shop.withdraw("0.25")
    decide(shop, withdrawal, "stick")
    shop.turn()
    order, store = shop.order(withdrawal), services().store

    def die(*_: object) -> None:
        raise Died("after the watch")

    used_elsewhere(shop, monkeypatch, order.wallet, 0)
    shop.mine(REORG_DEPTH)
    with monkeypatch.context() as patch:
        patch.setattr("chalicelib.usecases.payouts.booking.bounced", die)
        with pytest.raises(Died):
            shop.turn()
    watch = watch_of(withdrawal)
    assert (watch.state, shop.order(withdrawal).state) == ("open", "signed")
    with monkeypatch.context() as patch:
        patch.setattr(PayoutBooking, "lose", lambda *_: None)
        patch.setattr(Finality, "untold", lambda *_: True)
        patch.setattr("chalicelib.usecases.transactions.losses.Losses.lost", lambda *_: False)
        shop.turn()
        assert shop.withdrawal(withdrawal)["status"] == "confirming"
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("failed", "1")
    assert watch_of(withdrawal) == watch and audit(store) == []
