"""What collections wait for, what parks them, and what an operator can do about it; floors and ceilings. On books in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest

from chalicelib.domain.catalogue.rates import Rates
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.treasury.collections import MOST_TOPUPS, MOST_TRIES, Distribution, ParkReason, WaitReason
from chalicelib.domain.treasury.energy_loans import TO_ACTIVATE, Lendable
from chalicelib.domain.withdrawals.payout_line import payout_work, ready_order
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Conflict, Delete, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.treasury.collection.decisions import CollectDecisions
from chalicelib.usecases.treasury.collection.planning import CollectPlanning
from tests.support.collecting import COLD, ETHER, FEE, HOT, MERCHANT, NETWORK, USDT, USER, Stake, Treasury

Cause = Callable[[Treasury], Callable[[Treasury], object]]
"""Brings a collection to where it stands; what is answered takes the cause away."""


def due(world: Treasury) -> None:
    """It is looked at when that is next due."""
    world.poll(max(0, (world.last.look_at - world.clock.now) // 1000) + 1)


def begun(world: Treasury) -> None:
    world.deposit(500 * USDT)
    world.poll()


def nothing(world: Treasury) -> None:
    return None


# Parked


def held(world: Treasury) -> Callable[[Treasury], object]:
    world.deposit(500 * USDT, held=500 * USDT)
    world.poll()
    return lambda w: w.put(USER, "usdt", 500 * USDT)


def grey_listed(world: Treasury) -> Callable[[Treasury], object]:
    entry = world.grey_list()
    begun(world)
    key = {"realm": entry.realm, "network": entry.network, "address": entry.address}
    return lambda w: w.store.commit([Delete(type(entry), key)])


def refused(world: Treasury) -> Callable[[Treasury], object]:
    world.chain.refuses = "frozen"
    begun(world)
    return lambda w: setattr(w.chain, "refuses", "")


def reverted(world: Treasury) -> Callable[[Treasury], object]:
    begun(world)
    world.go_on("topup")
    world.ends("failed")
    world.poll()
    return nothing


def failed(world: Treasury) -> Callable[[Treasury], object]:
    """Top-ups that came to nothing, of either kind; each is waited for longer than the one before."""
    begun(world)
    pauses = []
    for n in range(1, MOST_TRIES):
        world.ends("failed" if n % 2 else "dropped")
        world.poll()
        assert (world.state, world.last.tries) == (("waiting", "failed"), n)
        pauses.append(world.last.look_at - world.clock.now)
        due(world)
        assert world.state == ("topup_sent", None)
    assert pauses == [60_000, 120_000, 240_000, 480_000]
    world.ends("dropped")
    world.poll()
    return nothing


def topups(world: Treasury) -> Callable[[Treasury], object]:
    """The fee rises faster than it can be sent."""
    begun(world)
    for _ in range(MOST_TOPUPS):
        world.chain.fee *= 2
        world.go_on("topup")
    assert len(world.last.topups) == MOST_TOPUPS
    return nothing


PARKED: dict[str, Cause] = {
    "held": held, "grey_listed": grey_listed, "refused": refused, "reverted": reverted, "failed": failed, "topups": topups,
}  # fmt: skip
assert set(PARKED) == set(get_args(ParkReason))


@pytest.mark.parametrize("reason", PARKED)
def test_what_is_parked_goes_on_when_an_operator_says_so(reason: str, caplog: pytest.LogCaptureFixture) -> None:
    world = Treasury()
    cure = PARKED[reason](world)
    assert world.state == ("parked", reason)
    assert caplog.text.count("is parked") == 1
    before = world.last
    world.poll(1_000_000)
    world.deposit(10 * USDT, held=500 * USDT if reason == "held" else 0)
    world.poll()
    assert world.last == replace(before, again=True, version=before.version + 1)
    cure(world)
    again = world.decide("retry")
    assert (again.state, again.tries, again.topups_since) == ("planned", 0, 0)
    world.poll()
    world.go_on(*["topup"] * (world.state[0] == "topup_sent"), "sweep")
    assert world.state[0] == "swept" and world.there(USER, "usdt") == 0
    assert len({*world.last.topups, *world.last.sweeps}) == len(world.moves("topup")) + len(world.moves("sweep"))


@pytest.mark.parametrize("reason", PARKED)
def test_what_is_parked_can_be_refused_and_the_next_deposit_asks_again(reason: str) -> None:
    world = Treasury()
    cure = PARKED[reason](world)
    assert world.decide("reject", "not ours").state == "rejected"
    world.poll(1_000_000)
    assert len(world.all) == 1 and all(move.at_rest for move in world.moves("sweep"))
    cure(world)
    world.deposit(100 * USDT)
    world.poll()
    world.go_on(*["topup"] * (world.state[0] == "topup_sent"), "sweep")
    assert [c.state for c in world.all] == ["rejected", "swept"] and world.there(USER, "usdt") == 0


def test_a_sweep_that_is_planned_only_is_taken_back_when_its_collection_is_parked() -> None:
    """Its fee rose before it was signed, and top-ups do not keep up: else it would be signed once the fee falls."""
    world = Treasury()
    begun(world)
    world.go_on("topup")
    (sweep,) = world.moves("sweep")
    for _ in range(MOST_TOPUPS):
        world.store.records[world.store._key_of(sweep)] = replace(sweep, reason="too little for the fee")
        world.chain.fee *= 2
        world.poll()
        move = next(m for m in world.moves("topup") if not m.at_rest)
        world.settle(move)
        world.poll(61)
    world.chain.fee *= 2
    world.poll(61)
    assert world.state == ("parked", "topups")
    assert [m.state for m in world.moves("sweep")] == ["dropped"]
    world.decide("retry")
    world.poll()
    world.go_on("topup", "sweep")
    assert (world.state[0], len(world.last.sweeps), len(world.last.topups)) == ("swept", 2, 5)


def test_loans_that_were_of_use_are_no_top_ups_too_many() -> None:
    """An address is activated and lent energy to; its sweep fails, time and again."""
    world = Treasury()
    world.stake = Stake(Lendable(10**12, 10**9, 10**6, active=False, whole=10**12, price=GWEI_PRICE))
    begun(world)
    assert [m.amount for m in world.moves("topup")] == [TO_ACTIVATE]
    world.stake.there = replace(world.stake.there, active=True)
    world.go_on("topup", "delegation")
    for n in range(1, MOST_TRIES):
        world.ends("dropped")
        world.poll()
        assert (world.state, world.last.tries) == (("waiting", "failed"), n)
        due(world)
        world.go_on("delegation")
    assert world.state == ("sweep_sent", None) and len(world.last.topups) == 1 + MOST_TRIES
    world.go_on("sweep")
    assert world.state[0] == "swept"


def test_loans_that_are_of_no_use_have_an_end() -> None:
    """Somebody else uses the energy up, each time."""
    world = Treasury()
    world.stake = Stake(Lendable(10**12, 10**9, 10**6, active=True, whole=10**12, price=GWEI_PRICE))
    begun(world)
    for _ in range(MOST_TOPUPS):
        world.ends("settled")
        world.chain.lent = False
        world.poll(61)
    assert world.state == ("parked", "topups") and world.moves("sweep") == []


# Waiting


def fee_share(world: Treasury) -> Callable[[Treasury], object]:
    world.chain.fee = 200 * FEE
    begun(world)
    return lambda w: setattr(w.chain, "fee", FEE)


def no_rate(world: Treasury) -> Callable[[Treasury], object]:
    known, world.rates = world.rates, Rates()
    begun(world)
    return lambda w: setattr(w, "rates", known)


def liquidity(world: Treasury) -> Callable[[Treasury], object]:
    world.settle_for("eth", hotFloor="100")
    begun(world)
    return lambda w: w.settle_for("eth", hotFloor="99")


def no_wallet(world: Treasury) -> Callable[[Treasury], object]:
    wallet = world.store.records.pop(world.hot_key)
    begun(world)
    return lambda w: w.store.records.update({w.hot_key: wallet})


def other_coin(world: Treasury) -> Callable[[Treasury], object]:
    """Native coins are on their way from there: they can not pay for the token any more."""
    world.settle_for("eth", collectThreshold="0")
    world.deposit(ETHER, "eth")
    world.poll()
    begun(world)
    return lambda w: w.ends("settled")


def energy(world: Treasury) -> Callable[[Treasury], object]:
    lendable = Lendable(10**12, 10**9, 10**6, active=True, whole=10**12, price=GWEI_PRICE)
    world.stake = Stake(replace(lendable, stake=0))
    begun(world)
    return lambda w: setattr(w.stake, "there", lendable)


def sweep_dropped(world: Treasury) -> Callable[[Treasury], object]:
    begun(world)
    world.go_on("topup")
    world.ends("dropped")
    world.poll()
    return nothing


GWEI_PRICE = 10**9
WAITING: dict[str, Cause] = {
    "fee_share": fee_share, "no_rate": no_rate, "liquidity": liquidity, "no_wallet": no_wallet, "other_coin": other_coin,
    "energy": energy, "failed": sweep_dropped,
}  # fmt: skip
assert set(WAITING) == set(get_args(WaitReason)) - {"threshold", "approvals"}  # those two are of networks of coins


@pytest.mark.parametrize("reason", WAITING)
@pytest.mark.parametrize("asked", [False, True])
def test_what_waits_says_for_what_and_goes_on_once_that_is_there(reason: str, asked: bool) -> None:
    world = Treasury()
    cure = WAITING[reason](world)
    token = next(c for c in world.all if c.coin == "usdt")
    assert (token.state, token.reason) == ("waiting", reason)
    assert token.look_at == world.clock.now + 60_000
    if reason not in ("failed", "other_coin"):
        due(world)
        assert (world.state, world.last.look_at) == (("waiting", reason), world.clock.now + 120_000)
    cure(world)
    if asked:
        world.decide("retry")
        world.poll()
    else:
        due(world)
    for _ in range(3):
        for move in [m for kind in ("topup", "delegation", "sweep") for m in world.moves(kind) if not m.at_rest]:
            world.settle(move)
        world.poll(61)
    assert {c.state for c in world.all} == {"swept"} and world.there(USER, "usdt") == 0


def test_below_the_threshold_the_next_deposit_asks_again_and_what_is_too_small_stays() -> None:
    world = Treasury(collectThreshold="1000", minDepositAmount="5", useUsdLimits=True)
    world.deposit(999_990_000)
    world.poll()
    world.deposit(4_990_000, small=4_990_000)
    world.poll()
    assert world.all == [] and {w.kind for w in world.store.work} == set()
    world.deposit(5_000_000, small=4_990_000)
    world.poll()
    assert world.last.amount == 1_004_990_000
    world.go_on("topup", "sweep")
    assert (world.last.arrived, world.there(USER, "usdt")) == (1_004_990_000, 4_990_000)


def test_released_money_goes_on_by_itself() -> None:
    world = Treasury()
    held(world)
    world.put(USER, "usdt", 0)
    world.deposit(500 * USDT)  # the hint that a release leaves
    world.poll()
    assert world.state == ("topup_sent", None)


def test_both_coins_of_an_address_are_swept_and_tokens_go_first() -> None:
    world = Treasury()
    world.settle_for("eth", collectThreshold="0")
    world.deposit(ETHER, "eth")
    begun(world)
    assert {c.coin: (c.state, c.reason) for c in world.all} == {"usdt": ("sweep_sent", None), "eth": ("waiting", "other_coin")}
    world.go_on("sweep", "sweep")
    assert {c.state for c in world.all} == {"swept"} and world.moves("topup") == []
    assert world.there(USER, "usdt") == world.there(USER, "eth") == 0


def test_a_hint_that_another_run_has_closed_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Treasury()
    world.deposit(500 * USDT)
    (hint,) = (work for work in world.store.work if work.kind == "collectable")
    world.poll()
    commits: list[object] = []
    commit = type(world.store).commit
    monkeypatch.setattr(type(world.store), "commit", lambda self, changes: (commits.append(1), commit(self, changes))[1])
    with pytest.raises(Conflict):
        CollectPlanning(world.context, world._fees).plan(hint)
    assert len(commits) == 1 and len(world.all) == 1


# Decisions


def test_no_more_is_sent_than_was_approved_and_the_rest_asks_for_itself() -> None:
    world = Treasury(approveThreshold="1000")
    world.deposit(1_001 * USDT)
    world.poll()
    assert world.state == ("waits_for_approval", None)
    world.deposit(200 * USDT)
    world.decide("approve")
    world.poll()
    world.go_on("topup", "sweep")
    world.poll()
    assert [(c.state, c.amount) for c in world.all] == [("swept", 1_001 * USDT), ("topup_sent", 200 * USDT)]
    world.go_on("topup", "sweep")
    world.deposit(2_000 * USDT)
    world.poll()
    world.decide("reject", "no")
    world.poll(1_000_000)
    assert (len(world.all), world.last.state) == (3, "rejected")
    # A higher threshold lets the next one pass, and takes all there is.
    world.settle_for("usdt", approveThreshold="5000")
    world.deposit(USDT)
    world.poll()
    assert (world.state, world.last.amount) == (("topup_sent", None), 2_001 * USDT)


def test_a_decision_fits_the_state_and_the_realm() -> None:
    world = Treasury(approveThreshold="1000")
    world.deposit(1_001 * USDT)
    world.poll()
    decisions = CollectDecisions(world.store, world.rules, world.clock)
    for action in ("approve", "reject", "retry"):
        with pytest.raises(NotFound):
            decisions.decide("live", world.last.id, action, None, "key_2")  # type: ignore[arg-type]
    with pytest.raises(BusinessRule, match="waits_for_approval: retry is for one that is parked or waiting"):
        world.decide("retry")
    approved = world.decide("approve", "looked at")
    assert (approved.approved, approved.note, approved.decided_by) == (1_001 * USDT, "looked at", "key_1")
    for state, actions in (("planned", ("approve", "reject", "retry")), ("swept", ("approve", "reject", "retry"))):
        assert world.last.state == state
        for action in actions:
            with pytest.raises(BusinessRule, match=f"is {state}: {action}"):
                world.decide(action)  # type: ignore[arg-type]
        world.poll()
        if state == "planned":
            world.go_on("topup", "sweep")


@pytest.mark.parametrize(("first", "second"), [("approve", "approve"), ("approve", "reject"), ("reject", "approve")])
def test_of_two_decisions_at_once_the_first_counts(first: str, second: str) -> None:
    world = Treasury(approveThreshold="1")
    begun(world)
    world.store.before_commit = lambda: world.decide(first, by="key_first")  # type: ignore[arg-type]
    with pytest.raises(BusinessRule):
        world.decide(second, by="key_second")  # type: ignore[arg-type]
    assert (world.last.state, world.last.decided_by) == ("planned" if first == "approve" else "rejected", "key_first")
    world.poll()


def test_two_retries_at_once_are_one() -> None:
    world = Treasury()
    refused(world)
    world.chain.refuses = ""
    world.store.before_commit = lambda: world.decide("retry")
    with pytest.raises(BusinessRule, match="is planned: retry"):
        world.decide("retry")
    world.poll()
    world.go_on("topup", "sweep")
    assert world.state[0] == "swept"


# Floor and ceiling


def alarms(caplog: pytest.LogCaptureFixture) -> int:
    return len([r for r in caplog.records if r.levelno == logging.ERROR and "less than its floor" in r.getMessage()])


def test_each_fall_below_the_floor_is_an_alarm_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    world = Treasury()
    for units, floor, said in (
        (100, "100", 0), (99, "100", 1), (98, "100", 1), (101, "100", 1), (99, "100", 2), (99, "0", 2), (99, "100", 3),
    ):  # fmt: skip
        world.settle_for("eth", hotFloor=floor)
        world.put(HOT, "eth", units * ETHER)
        world.floor()
        assert alarms(caplog) == said, (units, floor)


def test_an_alarm_is_not_lost_with_who_dies_of_it(caplog: pytest.LogCaptureFixture) -> None:
    world = Treasury()
    world.settle_for("eth", hotFloor="101")

    def dies() -> None:
        raise Unavailable("gone")

    world.store.before_commit = dies
    with pytest.raises(Unavailable):
        world.floor()
    assert alarms(caplog) == 1
    world.floor(), world.floor()
    assert alarms(caplog) == 2


def test_what_a_service_wallet_waits_for_is_said_as_long_as_it_waits() -> None:
    world = Treasury()
    world.settle_for("eth", hotCeiling="90")

    def said() -> str | None:
        (record,) = world.store.all(Distribution)
        return str(record.reason).partition(":")[0]

    world.distribute()
    assert said() == "no_wallet"
    world.wallet("cold", COLD)
    world.chain.fee = ETHER
    world.distribute()
    commits = world.store.commits
    world.distribute()
    assert said() == "fee_share" and world.store.commits == commits
    world.put(HOT, "eth", 90 * ETHER)
    world.distribute()
    assert said() == "None"
    world.put(HOT, "eth", 100 * ETHER)
    world.settle_for("eth", useUsdLimits=True)
    known, world.rates = world.rates, Rates()
    world.distribute()
    assert said() == "no_rate"
    world.rates, world.chain.fee = known, FEE
    world.settle_for("eth", useUsdLimits=False)
    world.distribute()
    assert said() == "None" and [m.amount for m in world.moves("cold")] == [10 * ETHER - FEE]


COLLECTOR = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example


def test_a_top_up_of_the_collector_leaves_the_hot_wallets_floor() -> None:
    world = Treasury()
    world.wallet("collector", COLLECTOR), world.wallet("cold", COLD)
    world.settle_for("usdt", collectThreshold="0", collectPercentageHot="50")
    world.put(COLLECTOR, "usdt", 40 * 10**6)
    world.settle_for("eth", hotFloor="100")
    world.distribute()
    (record,) = world.store.all(Distribution)
    assert world.moves("topup") == [] and str(record.reason).startswith("liquidity")
    world.settle_for("eth", hotFloor="99")
    world.distribute()
    (topup,) = world.moves("topup")
    assert (topup.source, topup.recipient) == (HOT, COLLECTOR)


def test_three_hundred_open_withdrawals_do_not_stop_what_goes_to_the_cold_wallet() -> None:
    """They are added up, however many there are, and what they need stays."""
    world = Treasury()
    world.settle_for("eth", hotCeiling="90")
    world.wallet("cold", COLD)
    asset = world.store.coins["eth"].asset
    for n in range(700):
        made = Withdrawal(f"wd_{n:03d}", MERCHANT, NETWORK, asset, ETHER // 100, USER, asset, n, n)
        opened = replace(made, line=ready_order(MERCHANT, n)) if n % 2 else made  # and such as were opened before there was a line
        world.store.commit([Save(opened), Open(payout_work(opened))])
    world.distribute()
    (move,) = world.moves("cold")
    assert move.amount == 10 * ETHER - FEE
    world.settle(move)
    world.distribute()
    world.settle_for("eth", hotCeiling="1")
    world.distribute()
    assert sorted(m.amount for m in world.moves("cold")) == [10 * ETHER - FEE, 83 * ETHER - FEE]
