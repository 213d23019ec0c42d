"""What the hot wallet keeps when a top-up is planned, and that each of the five that plan one asks for it. On books in memory.

Of the five, the wallets that are drained are in `tests/contract/treasury/test_wallet_rotation.py`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.treasury.collections import Distribution, topup_units
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.failures import InsufficientFunds
from chalicelib.usecases.treasury.moves.planning import planned
from chalicelib.usecases.treasury.moves.replacement_room import MOST_TOPUPS, ReplacementRoom
from chalicelib.usecases.treasury.nonce_gaps import NonceFilling
from chalicelib.usecases.treasury.topups import PayerShort
from tests.support.collecting import COLD, ETHER, FEE, HOT, NETWORK, USDT, USER, Treasury

COLLECTOR = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own examples
NEXT_HOT = "0x27b1fdb04752bbc536007a920d24acb045561c26"
NATIVE = f"{NETWORK}:eth"


def origin(number: int = 1) -> Origin:
    return Origin(NETWORK, "owner", number, 0)


def hot(world: Treasury) -> Wallet:
    found = world.store.get(Wallet, network=NETWORK, role="hot")
    assert isinstance(found, Wallet)
    return found


# The rule


def test_a_top_up_leaves_its_own_fee_and_no_unit_less() -> None:
    world = Treasury()
    planned_ = world.topups.plan(origin(), hot(world), USER, 100 * ETHER - FEE)
    move = planned_.move
    assert (move.kind, move.source, move.recipient, move.amount) == ("topup", HOT, USER, 100 * ETHER - FEE)
    with pytest.raises(PayerShort):
        world.topups.plan(origin(), hot(world), USER, 100 * ETHER - FEE + 1)


def test_what_moves_that_are_not_signed_will_take_is_not_counted_again() -> None:
    world = Treasury()
    news = News(0)
    world.store.commit(world.topups.plan(origin(), hot(world), USER, 60 * ETHER).changes(news))
    with pytest.raises(PayerShort) as short:
        world.topups.plan(origin(2), hot(world), USER, 60 * ETHER)
    assert (short.value.free, short.value.units) == (40 * ETHER, 60 * ETHER)


def test_only_what_ledger_and_chain_both_have_is_there() -> None:
    world = Treasury()
    world.chain.has[HOT] = ETHER
    with pytest.raises(PayerShort):
        world.topups.plan(origin(), hot(world), USER, ETHER)
    world.chain.has[HOT] = 1000 * ETHER
    with pytest.raises(PayerShort):
        world.topups.plan(origin(), hot(world), USER, 100 * ETHER)


def test_what_is_new_leaves_the_floor_and_what_has_its_nonce_may_go_below() -> None:
    world = Treasury()
    world.settle_for("eth", hotFloor="99")
    assert world.topups.plan(origin(), hot(world), USER, ETHER - FEE)
    with pytest.raises(PayerShort):
        world.topups.plan(origin(), hot(world), USER, ETHER)
    assert world.topups.plan(origin(), hot(world), USER, ETHER, begun=True)
    with pytest.raises(PayerShort):
        world.topups.plan(origin(), hot(world), USER, 100 * ETHER, begun=True)


def test_a_node_that_says_too_little_is_there_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Treasury()

    def too_little(payment: Any) -> None:
        raise InsufficientFunds("too little")

    monkeypatch.setattr(world.chain, "cost", too_little)
    with pytest.raises(PayerShort):
        world.topups.plan(origin(), hot(world), USER, 1)


def test_a_wallet_that_was_replaced_meanwhile_gives_nothing() -> None:
    world = Treasury()
    changes = world.topups.plan(origin(), hot(world), USER, ETHER).changes(News(0))
    world.store.commit([Save(replace(hot(world), address=NEXT_HOT, version=2))])
    with pytest.raises(Conflict):
        world.store.commit(changes)
    assert world.moves("topup") == []


# Those that plan one


def test_a_collection_waits_for_what_the_chain_does_not_have() -> None:
    world = Treasury()
    world.chain.has[HOT] = 0
    world.deposit(500 * USDT)
    world.poll()
    assert (world.last.state, world.last.reason, world.moves("topup")) == ("waiting", "liquidity", [])
    del world.chain.has[HOT]
    world.poll(3_600)
    assert world.last.state == "topup_sent"


def test_a_collection_is_topped_up_by_the_wallet_that_is_the_hot_one_when_it_is_stored() -> None:
    world = Treasury()
    world.put(NEXT_HOT, "eth", ETHER)
    store, commit, before = world.store, world.store.commit, hot(world)

    def rotated(changes: Any) -> None:
        if any(isinstance(change, Save) and isinstance(change.record, Move) for change in changes) and hot(world) == before:
            commit([Save(replace(before, address=NEXT_HOT, version=2))])
        commit(changes)

    store.commit = rotated
    world.deposit(500 * USDT)
    world.poll()
    (topup,) = world.moves("topup")
    assert topup.source == NEXT_HOT


def test_the_collector_waits_for_what_the_chain_does_not_have() -> None:
    world = Treasury()
    world.wallet("collector", COLLECTOR), world.wallet("cold", COLD)
    world.settle_for("usdt", collectThreshold="0", collectPercentageHot="50")
    world.put(COLLECTOR, "usdt", 40 * USDT)
    world.chain.has[HOT] = 0
    world.distribute()
    (record,) = world.store.all(Distribution)
    assert world.moves("topup") == [] and str(record.reason).startswith("liquidity")
    del world.chain.has[HOT]
    world.distribute()
    assert [(move.source, move.recipient) for move in world.moves("topup")] == [(HOT, COLLECTOR)]


class Stuck:
    """A native sweep whose replacement costs `fee` and lacks it."""

    def __init__(self, world: Treasury) -> None:
        self.world = world
        sweep = Move.sweep(origin(), world.store.coins["eth"], USER, "m/7", HOT, ETHER)
        self.move = replace(sweep, state="signed", nonce=0, unsigned="00", raw="00", txid="0x1", fee=FEE)
        world.store.commit([Save(self.move)])
        world.put(USER, "eth", 0)  # it is in flight: the chain has it there still
        world.chain.has[USER] = ETHER + FEE
        self.affords = True

    def made(self) -> list[Move] | None:
        world, news = self.world, News(0)
        context = NetworkContext(world.network, world.chain, world.store, world.rules, world.clock)
        payer: Any = SimpleNamespace(renew=self._renew, cost=world.chain.cost)
        stuck: Any = SimpleNamespace(affordable=lambda move, fee: self.affords)
        changes = ReplacementRoom(context, payer, stuck, world.topups).made(self.move, news)
        if changes:
            world.store.commit([*changes, *news.emit()])
        return None if changes is None else [change.record for change in changes if isinstance(change, Save)]

    def _renew(self, unsigned: str, priority: str, sender: str) -> str:
        raise InsufficientFunds("it sends everything")


def test_a_replacement_is_given_room_below_the_floor() -> None:
    world = Treasury()
    world.settle_for("eth", hotFloor="100")
    stuck = Stuck(world)
    made = stuck.made()
    assert made is not None
    (topup,) = made
    assert (topup.source, topup.recipient, topup.owner) == (HOT, USER, stuck.move.id)
    assert topup.amount == topup_units(-(-FEE * 9 // 8), FEE)
    assert stuck.made() == []  # the first one is under way


def test_room_that_the_hot_wallet_can_not_give_is_an_alarm_and_comes_later(caplog: pytest.LogCaptureFixture) -> None:
    world = Treasury()
    stuck = Stuck(world)
    world.chain.has[HOT] = FEE
    with caplog.at_level(logging.WARNING):
        assert stuck.made() == []
    assert f"ALARM {NETWORK}: move {stuck.move.id} is stuck" in caplog.text
    world.chain.has[HOT] = ETHER
    assert len(stuck.made() or []) == 1


def test_room_is_given_so_often_and_within_the_bound_of_fees(caplog: pytest.LogCaptureFixture) -> None:
    world = Treasury()
    stuck = Stuck(world)
    stuck.affords = False
    assert stuck.made() == []
    stuck.affords = True
    for _ in range(MOST_TOPUPS):
        (made,) = stuck.made() or []
        world.store.commit([Save(replace(made, state="settled", version=2))])
    assert stuck.made() == [] and len(world.moves("topup")) == MOST_TOPUPS
    assert caplog.text.count("is stuck, and a fee of") == 2


def test_where_the_chain_has_enough_for_it_the_signing_step_is_asked() -> None:
    """A record that says less than its transaction costs would else wait for ever, and nobody be told."""
    stuck = Stuck(Treasury())
    stuck.world.chain.has[USER] = ETHER + 100 * FEE
    assert stuck.made() is None


def filling(world: Treasury) -> NonceFilling:
    """Of USER, of which nonces 0 and 1 are missing."""
    counter = NonceCounter(NETWORK, USER, 2)
    world.store.commit([Save(counter), Save(FeeQuote(NETWORK, {"eth": FEE, "usdt": FEE}, 0))])
    payer: Any = SimpleNamespace(cost=world.chain.cost, told_nonces=lambda address: (0,), next_nonce=lambda address: 0)
    return NonceFilling(world.context, payer, world.topups)


def test_fillers_are_not_made_while_the_hot_wallet_can_not_pay_their_fees() -> None:
    world = Treasury()
    fill = filling(world)
    world.chain.has[HOT] = FEE
    with pytest.raises(PayerShort, match="the wallet that pays top-ups has"):
        fill.fill(USER)
    assert world.moves("filler") == world.moves("topup") == []
    world.chain.has[HOT] = ETHER
    assert fill.fill(USER) == ([0, 1], 0)
    assert (len(world.moves("filler")), len(world.moves("topup"))) == (2, 1)


@pytest.mark.parametrize("waits", [True, False])
def test_fillers_take_of_the_floor_for_what_waits_behind_them_alone(waits: bool) -> None:
    world = Treasury()
    fill = filling(world)
    world.settle_for("eth", hotFloor="100")
    if waits:
        sweep = Move.sweep(origin(), world.store.coins["usdt"], USER, "m/7", HOT, 1)
        world.store.commit([*planned(News(0), replace(sweep, state="signed", nonce=2))])
        assert fill.fill(USER) == ([0, 1], 0)
    else:
        with pytest.raises(PayerShort):
            fill.fill(USER)


def test_fillers_whose_top_up_is_planned_are_made_when_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command died between the two: the planned top-up is not counted against itself."""
    world = Treasury()
    fill = filling(world)
    world.put(HOT, "eth", 4 * FEE)
    with monkeypatch.context() as patch:
        patch.setattr(Move, "fill", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fill.fill(USER)
    assert len(world.moves("topup")) == 1
    assert fill.fill(USER) == ([0, 1], 0)
    assert len(world.moves("topup")) == 1
