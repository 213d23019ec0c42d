"""Several consolidations of a network at a time, each with inputs of its own, and what all of them may cost in a day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from chalicelib.domain.catalogue.rates import Rate
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.consolidation_fees import ConsolidationFees
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.treasury.consolidation import planning
from chalicelib.usecases.treasury.consolidation.parts import queue_of
from chalicelib.wiring import services
from tests.contract.treasury.coin_treasury import TOTAL, Treasury
from tests.support.bundles import COIN, CONFIRMATIONS, NETWORK, Shop, cut, die, hang


@pytest.fixture(autouse=True)
def full_at_two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nine deposits are four full consolidations, and one deposit that waits for company."""
    monkeypatch.setattr(planning, "MOST_INPUTS", 2)
    yield


def disjoint(moves: list[CoinMove]) -> bool:
    spent = [outpoint for move in moves for outpoint in move.outpoints]
    return len(spent) == len(set(spent))


def settled(treasury: Treasury) -> None:
    """All of them, on the chain and in the ledger."""
    assert {move.state for move in treasury.moves()} <= {"settled", "dropped"}
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    assert {move.mined for move in treasury.moves() if move.state == "settled"} == set(treasury.chain.sent)
    treasury.whole()


def test_full_consolidations_are_under_way_at_the_same_time(treasury: Treasury) -> None:
    treasury.plan()
    moves = treasury.moves()
    assert [len(move.inputs) for move in moves] == [2] * 4 and disjoint(moves) and len(treasury.chain.pool) == 4
    queue = queue_of(services().store, NETWORK)
    assert set(queue.holders) == {move.id for move in moves}
    treasury.whole()
    treasury.plan()
    assert len(treasury.moves()) == 4, "the last one waits for company, or for the end of the others"
    queue = queue_of(services().store, NETWORK)
    assert (queue.waiting, queue.coins) == (TOTAL - _sum(moves), 1)
    treasury.confirm()
    settled(treasury)
    treasury.settle_for(collectThreshold="0")
    treasury.plan()
    assert len(treasury.moves()) == 5 and disjoint(treasury.moves())
    treasury.confirm()
    assert _sum(treasury.moves()) == TOTAL
    settled(treasury)
    treasury.deepen()
    assert treasury.hints() == 0
    treasury.whole()


def _sum(moves: list[CoinMove]) -> int:
    return sum(move.total for move in moves)


def test_no_more_are_under_way_than_each_poll_may_read(treasury: Treasury, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MOST_UNDER_WAY", 3)
    treasury.plan()
    treasury.plan()
    assert len(treasury.moves()) == 3
    treasury.confirm()
    treasury.plan()
    assert len(treasury.moves()) == 4 and disjoint(treasury.moves())
    treasury.confirm()
    settled(treasury)


def test_a_look_ends_with_its_time(treasury: Treasury) -> None:
    treasury.later(6)
    network = services().catalogue("live").networks["litecoin"]
    allowed = iter([True, False])
    services().coin_move_planning(network).look(services().finality(network).scanned(), lambda: next(allowed))
    assert len(treasury.moves()) == 2
    treasury.whole()


def step(shop: Shop) -> None:
    assert isinstance(shop, Treasury)
    shop.step()


# The sweep: `test_coin_moves` has what hangs, and two polls at once are below; both stay.
@pytest.mark.parametrize("how", ["dies", *(pytest.param(how, marks=pytest.mark.sweep) for how in ("hangs", "rival"))])
def test_whatever_happens_at_a_commit_each_coin_moves_once(anew: Callable[[], Treasury], how: str) -> None:
    """While the second or third is planned, and while they are signed: by another poll, or after a death."""
    for at in {"dies": (2, 6), "hangs": (5,), "rival": (2,)}[how]:
        treasury = anew()
        treasury.later(6)
        what = {"dies": die, "hangs": hang, "rival": treasury.step}[how]
        assert cut(treasury, at, what, step, after=how == "hangs"), at
        treasury.plan()
        assert len(treasury.moves()) == 4 and disjoint(treasury.moves()), at
        treasury.sign()
        treasury.confirm()
        settled(treasury)


def test_those_that_fall_out_of_the_chain_are_settled_once_more(treasury: Treasury) -> None:
    treasury.plan()
    treasury.confirm()
    had = treasury.booked(treasury.hot)
    treasury.chain.drop(CONFIRMATIONS)
    treasury.run()
    moves = treasury.moves()
    assert {(move.state, move.round) for move in moves} == {("signed", 1)}
    treasury.whole()
    treasury.plan()
    assert disjoint(treasury.moves()), "what may come back is spent by nobody else"
    treasury.whole()
    treasury.confirm()
    assert treasury.booked(treasury.hot) >= had
    settled(treasury)


def test_one_that_dies_leaves_the_others(treasury: Treasury) -> None:
    """Its coins move again; those of the others do not."""
    treasury.plan()
    stolen = treasury.moves()[1].inputs[0]
    treasury.chain.steal(stolen.outpoint)
    treasury.run()
    treasury.deepen()
    for _ in range(3):
        treasury.run()
    assert [move.state for move in treasury.moves()].count("dead") == 1
    treasury.whole()
    treasury.plan()
    treasury.confirm()
    alive = [move for move in treasury.moves() if move.state != "dead"]
    assert {move.state for move in alive} == {"settled"} and disjoint(alive)
    assert stolen.outpoint not in {outpoint for move in alive for outpoint in move.outpoints}
    assert treasury.booked(treasury.hot) == treasury.chain.balance_of(treasury.hot)
    treasury.whole()


def test_an_older_version_beside_takes_no_coin_twice(treasury: Treasury, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows of one that is under way, and of others that are an operator's to decide on. Once the one it knows is at its end, it
    plans the next one, however small."""
    treasury.settle_for(collectThreshold="0")
    treasury.plan()
    store, queue = services().store, queue_of(services().store, NETWORK)
    known = next(move for move in treasury.moves() if move.id == queue.move)
    assert len(queue.asked) == 3
    # As it writes it: the fields that it knows, which are all.
    store.commit([Save(queue.without(known.id).next())])
    with monkeypatch.context() as older:
        older.setattr(planning, "MOST_INPUTS", 1)
        older.setattr(planning, "MOST_UNDER_WAY", 4)
        treasury.plan_only()
    queue = queue_of(store, NETWORK)
    assert len(treasury.moves()) == 5 and disjoint(treasury.moves()) and len(queue.asked) == 3 and queue.move is not None
    treasury.sign()
    treasury.plan()
    treasury.confirm()
    settled(treasury)
    assert _sum(treasury.moves()) == TOTAL


# What they cost


@pytest.fixture
def poor(anew: Callable[[], Treasury], monkeypatch: pytest.MonkeyPatch) -> Treasury:
    """5 USD a day, of which a consolidation takes 2."""
    fee = anew().plan_only().latest.fee
    treasury = anew()
    monkeypatch.setenv("CONSOLIDATION_BUDGET_USD", "5")
    treasury.reborn()
    treasury.later(24 * 60 - services().clock.now_ms() // 60_000 % (24 * 60))  # a day's budget: it begins
    rate = Rate("ltc", "USD", str(2 * COIN / fee), services().clock.now_ms(), "kraken")
    services().store.commit([Save(rate)])
    return treasury


def dollars() -> int:
    found = services().store.get(ConsolidationFees, network=NETWORK)
    return 0 if found is None else round(found.micros / 1_000_000)


def waits_for_the_budget() -> bool:
    waiting = [each for each in services().store.every(Collection) if each.state == "waiting"]
    used_up = ("fee_share", "the 5 USD a day of CONSOLIDATION_BUDGET_USD are used up")
    return [(each.reason, each.detail) for each in waiting] == [used_up]


def test_what_consolidations_cost_in_a_day_is_bounded(poor: Treasury) -> None:
    poor.plan()
    assert (len(poor.moves()), dollars()) == (2, 4) and waits_for_the_budget()
    poor.whole()
    poor.confirm()
    poor.plan()
    assert len(poor.moves()) == 2 and waits_for_the_budget(), "what is at its end was paid"
    poor.later(24 * 60)
    poor.plan()
    assert (len(poor.moves()), dollars()) == (4, 4) and not waits_for_the_budget()
    poor.confirm()
    settled(poor)


def test_two_polls_at_once_spend_the_budget_once(poor: Treasury) -> None:
    poor.later(6)
    assert cut(poor, 1, poor.step, step)
    assert (len(poor.moves()), dollars()) == (2, 4)
    poor.plan()
    poor.confirm()
    settled(poor)


def test_what_an_operator_approves_is_counted_and_not_refused(poor: Treasury) -> None:
    poor.plan()
    poor.confirm()
    poor.settle_for(approveThreshold="0.1")
    poor.later(6)
    poor.run()
    admin = poor.stack.keys["admin_live"]
    asked = poor.stack.call("GET", "/v1/collections", admin, query={"status": "waits_for_approval"}).json["data"]
    assert len(asked) == 2 and dollars() == 4, "the last deposit waits for company"
    path = f"/v1/collections/{asked[0]['id']}"
    assert poor.stack.call("PUT", path, admin, json={"action": "approve"}).status == 200
    poor.run()
    assert [move.state for move in poor.moves()].count("signed") == 1 and dollars() > 4
    poor.whole()


def test_replacements_keep_within_the_budget(poor: Treasury, caplog: pytest.LogCaptureFixture) -> None:
    poor.plan()
    poor.chain.mine(2, take=False)
    poor.chain.rate *= 5
    for move in poor.moves():
        services().store.commit([Save(replace(move, renew=True, version=move.version + 1))])
    poor.sign()
    assert [len(move.earlier) for move in poor.moves()] == [0, 0] and dollars() == 4
    assert "is stuck, and a replacement would cost" in caplog.text
    poor.later(24 * 60)
    first = poor.moves()[0]
    services().store.commit([Save(replace(first, renew=True, version=first.version + 1))])
    poor.chain.rate = poor.chain.rate * 2 // 5
    poor.sign()
    assert len(poor.moves()[0].earlier) == 1 and 1 <= dollars() <= 5
    poor.whole()
    poor.confirm()
    assert {move.state for move in poor.moves()} == {"settled"}
    poor.whole()
