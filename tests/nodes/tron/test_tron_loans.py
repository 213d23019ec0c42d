"""A deposit of USDT is collected on energy that the hot wallet's stake lends: through the whole stack, on the strict Tron node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import RetiredWallet, Role
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.moves import Move, MoveKind, Origin, move_id, move_work, operators
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import Payment
from chalicelib.usecases.ports.changes import Close, Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions.errors import OrderMismatch, ReadersDiffer
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.usecases.wallets.service_wallets import Listed
from chalicelib.wiring import forget, services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.tron.process import TronNode
from tests.nodes.tron_shops import CONFIRMATIONS, TRON, Shop
from tests.support.shop import Kms
from tests.support.stack import first_stack
from tests.support.tron_chain import TRX, USDT, stranger
from tests.support.tron_second_reader import FAULTS, disagree

pytestmark = pytest.mark.nodes

WALLETS = "/v1/addresses/service-wallets"


@pytest.fixture(scope="module")
def started(running_aws: LocalAws) -> Iterator[Shop]:
    """A hot wallet whose stake gives energy for one transfer of USDT a day, and no more than one."""
    with running_aws.active(), TronNode() as node:
        made = Shop(first_stack(running_aws, {"tron": NodeInfo(node.url, {"usdt": USDT})}), node)
        made.run("collect")
        node.faucet(made.hot(), 12_000)
        node.faucet(made.hot(), 10, "USDT")
        made.confirm()
        made.stake("9000")
        made.run("collect")
        made.confirm()
        made.call("PUT", "/v1/coins", made.admin, json={"coin": "usdt", "network": "tron", "collectThreshold": "1"})
        yield made
        forget()


def go_on(shop: Shop, until: Callable[[], bool], times: int = 8) -> None:
    """Blocks and time pass, and what is due is done, until it is so."""
    for _ in range(times):
        if until():
            return
        shop.node.mine(CONFIRMATIONS)
        services().clock.shift_ms += 61_000
        shop.run("collect")
    raise AssertionError([(m.kind, m.state, m.reason) for m in services().store.every(Move)])


def lent_now() -> bool:
    return any(work.kind == "loan" for work in services().store.every_work())


def of(address: str) -> Collection | None:
    return next((c for c in services().store.every(Collection) if c.address == address), None)


def moves(kind: str) -> list[Move]:
    return sorted((m for m in services().store.every(Move) if m.kind == kind), key=lambda m: m.created_at)


def paid(shop: Shop, usdt: int = 50) -> str:
    made = shop.call("POST", "/v1/addresses", json={"network": "tron"})["address"]
    shop.node.faucet(made, usdt, "USDT")
    return str(made)


def account(shop: Shop, address: str) -> Any:
    return shop.node.call("wallet/getaccount", address=address, visible=True)


def test_a_sweep_on_lent_energy_and_the_next_one_waits_for_it(shop: Shop) -> None:
    address = paid(shop)
    before = shop.on_chain(shop.hot(), USDT)
    go_on(shop, lambda: bool(moves("undelegation")) and not lent_now())
    (loan,), (sweep,), (back,) = moves("delegation"), moves("sweep"), moves("undelegation")
    assert [each.state for each in (loan, sweep, back)] == ["settled"] * 3
    assert (loan.recipient, loan.source, loan.amount) == (address, shop.hot(), back.amount)
    assert sweep.fee == 0  # not one sun was burnt for it
    assert shop.on_chain(shop.hot(), USDT) == before + 50 * 10**6
    # The address had no account: it got a tenth of a TRX, and has it still.
    (topup,) = moves("topup")
    assert topup.amount == shop.on_chain(address) == TRX // 10
    assert shop.frozen("ENERGY") == 9_000 * TRX
    assert "acquired_delegated_frozenV2_balance_for_energy" not in account(shop, address)["account_resource"]
    (one,) = services().store.every(Collection)
    assert (one.state, one.topups) == ("swept", (topup.id, loan.id))
    assert not [work for work in services().store.every_work() if work.kind in ("loan", "collection")]

    second = paid(shop)
    go_on(shop, lambda: (found := of(second)) is not None and found.state == "waiting")
    waits = of(second)
    assert waits is not None and waits.reason == "energy"
    shop.node.call("dev/time", shift_seconds=86_400)
    services().clock.shift_ms += 86_400_000
    go_on(shop, lambda: len(moves("delegation")) == 2 and moves("delegation")[1].state == "signed")
    assert moves("delegation")[1].recipient == second


def test_a_loan_that_is_none_is_not_signed(shop: Shop) -> None:
    """Whoever can write moves can neither lend to a stranger nor have a payment signed as a loan."""
    ours = shop.call("POST", "/v1/addresses", json={"network": "tron"})["address"]
    shop.node.faucet(ours, 1)
    loans, store = services().loans(services().catalogue("live").networks["tron"]), services().store
    assert loans is not None
    news = News(services().clock_of("live").now_ms())
    native = services().catalogue("live").native("tron").asset
    move = Move.loan(Origin(TRON, "nobody", 1, news.at), native, shop.hot(), stranger(), TRX)
    store.commit(planned(news, move))
    services().wallet_moves.advance(TRON, move.id)
    dropped = store.get(Move, network=TRON, id=move.id)
    assert dropped is not None and dropped.state == "dropped"

    fine = replace(move, id=move_id("somebody", "delegation", 1), recipient=ours, owner="somebody")
    network = services().catalogue("live").networks["tron"]
    payment = services().payer(network).prepare(Payment(shop.hot(), ours, None, TRX, 0))
    store.commit(planned(news, replace(fine, state="built", nonce=0, unsigned=payment)))
    with pytest.raises(OrderMismatch, match="no plain"):
        services().wallet_moves.advance(TRON, fine.id)
    left = store.get(Move, network=TRON, id=fine.id)
    assert left is not None and left.raw is None
    ended = replace(left, state="dropped", nonce=None, unsigned=None, version=left.version + 1)
    store.commit([Save(ended), Close(move_work(left))])


def test_a_loan_and_its_return_that_two_readers_read_differently_are_not_sent(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ours, store = shop.call("POST", "/v1/addresses", json={"network": "tron"})["address"], services().store
    shop.node.faucet(ours, 1)
    node = services().delegations(services().catalogue("live").networks["tron"])
    kinds: tuple[MoveKind, ...] = ("delegation", "undelegation")
    for kind, there in zip(kinds, (TRX, 0), strict=True):
        news = News(services().clock_of("live").now_ms())
        origin, native = Origin(TRON, "two readers", 1, news.at), services().catalogue("live").native("tron").asset
        loan = Move.loan(origin, native, shop.hot(), ours, TRX)
        move = loan if kind == "delegation" else Move.loan_return(origin, loan)
        store.commit(planned(news, move))
        for fault in FAULTS:
            caplog.clear()
            with monkeypatch.context() as patch:
                kms, asked = Kms(patch), disagree(patch, fault)
                with in_realm("live"), pytest.raises(ReadersDiffer):
                    services().wallet_moves.advance(TRON, move.id)
                assert kms.calls["Sign"] == (0 if fault == "digest" else 1)
            (order,) = asked
            assert (order.kind, order.sender, order.recipient, order.amount) == (kind, shop.hot(), ours, TRX)
            assert "ALARM live:tron: two readers differ about" in caplog.text
            left = store.get(Move, network=TRON, id=move.id)
            assert left is not None and (left.state, left.raw) == ("built", None)
        assert node.lent(shop.hot(), ours, "ENERGY") == TRX - there
        services().wallet_moves.advance(TRON, move.id)
        shop.confirm()
        assert node.lent(shop.hot(), ours, "ENERGY") == there


@pytest.mark.sweep
def test_wallets_are_replaced_while_a_stake_is_lent(started: Shop) -> None:
    """Last here: the stake stays where it is. What is lent comes back before the old hot wallet is drained; an old collector has no
    energy, and gets what the transfer of its tokens burns there."""
    shop = started
    go_on(shop, lambda: not lent_now())
    shop.node.call("dev/time", shift_seconds=86_400)
    services().clock.shift_ms += 86_400_000
    known, old = len(moves("delegation")), shop.hot()
    address = paid(shop)
    go_on(shop, lambda: len(moves("delegation")) > known and moves("delegation")[-1].state == "signed")
    assert lent_now() and moves("delegation")[-1].recipient == address
    made = {"network": "tron", "type": "collector"}
    collector = shop.call("POST", WALLETS, shop.admin, json=made)["address"]
    network = services().catalogue("live").networks["tron"]
    roles: tuple[Role, ...] = ("hot", "collector")
    for role in roles:
        with in_realm("live"):
            services().wallets.registering(Listed(operators("live")), network, role, by="a test", replace="must").run()
    shop.node.faucet(collector, 70, "USDT")
    shop.confirm()
    assert lent_now()
    shop.node.call("dev/time", shift_seconds=7 * 3600)  # overdue, should no sweep come
    services().clock.shift_ms += 7 * 3_600_000

    def drained() -> bool:
        retired = list(services().store.every(RetiredWallet))
        assert not lent_now() or all(w.drained_at is None for w in retired if w.address == old)
        return all(w.drained_at is not None for w in retired)

    go_on(shop, drained, 18)
    assert not lent_now() and shop.on_chain(collector, USDT) == shop.on_chain(old, USDT) == 0
    (topup,) = (m for m in moves("topup") if m.recipient == collector)
    assert topup.amount > 10 * TRX, "what it burns without energy, not what the hot wallet would have burnt"
    assert audit(services().store) == []
