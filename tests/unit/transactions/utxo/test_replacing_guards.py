"""The guards under which a stuck UTXO transaction gets another attempt, each on its own, for each kind of record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.treasury.hot_utxos import MOST_RATE
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.transactions.errors import OrderMismatch
from tests.support.utxo_engine import COINS, KINDS, TAKEN, Asked, World, advanced, attempt, in_flight, plan, replacing, signed

BOTH = pytest.mark.parametrize("kind", list(KINDS))


def stuck(kind: str) -> Any:
    return in_flight(kind, renew=True)


@BOTH
def test_a_stuck_attempt_is_replaced_and_kept(kind: str) -> None:
    world, record = World(rate=2 * MOST_RATE), stuck(kind)
    step, after = advanced(world, Asked(world), record)
    built_at = f"built at {MOST_RATE} from first to home"
    assert world.events == ["booked", built_at, "stored", "key of a", "key of b", "stored", "sent raw second"]
    saved, taken = world.commits[0]
    assert isinstance(saved, Save) and saved.record.latest.raw is None and not saved.record.renew and taken == TAKEN
    assert (step, after.latest.raw, after.renew) == ("sent", "raw second", False)
    assert saved.record.earlier == (record.latest,), "whole: another one may have to be built of it"
    assert after.earlier == (replace(record.latest, unsigned=""),)


@BOTH
@pytest.mark.parametrize(
    ("world", "said", "most", "made"),
    [
        (World(), {}, 0, False),
        (World(mined=["id first"]), {}, 5, False),
        (World(no_replacement=True), {}, 5, False),
        (World(does={"second": plan("second", 1_000)}), {}, 5, True),
        (World(does={"second": plan("second", 10_001)}), {}, 5, True),
        (World(), {"is_affordable": False}, 5, True),
    ],
    ids=["too often", "mined", "no replacement", "no more than before", "ten times the first", "not worth it"],
)
def test_each_guard_alone_leaves_the_same_bytes(kind: str, world: World, said: dict[str, Any], most: int, made: bool) -> None:
    world = replace(world, events=[], commits=[])
    step, after = advanced(world, Asked(world, **said), stuck(kind), most)
    assert (step, after.latest, after.earlier, after.renew) == ("sent", stuck(kind).latest, (), False)
    assert world.events == ["booked", *(["built at 10 from first to home"] if made else []), "stored", "sent raw first"]
    assert world.commits == [[Save(after)]]


@BOTH
def test_nothing_is_replaced_where_an_earlier_attempt_is_mined(kind: str) -> None:
    record = replacing(kind)
    world = World(mined=["id first"])
    step, after = advanced(world, Asked(world), replace(record, newest=signed(record.newest), renew=True))
    assert (step, after.earlier) == ("sent", record.earlier)
    assert world.events == ["booked", "stored", "sent raw second"]


@BOTH
def test_every_attempt_that_was_signed_is_kept(kind: str) -> None:
    record, world = replacing(kind), World()
    third = signed(attempt(record, "other", 1_500))
    world.did["raw other"] = plan("other", 1_500)
    _, after = advanced(world, Asked(world), replace(record, newest=third, renew=True))
    kept = tuple(replace(each, unsigned="") for each in (*record.earlier, third))
    assert (after.txids, after.earlier) == (("id second", "id other", "id first"), kept)


@BOTH
def test_an_attempt_that_is_not_signed_is_signed_and_not_replaced(kind: str) -> None:
    world, record = World(), replace(replacing(kind), renew=True)
    _, after = advanced(world, Asked(world), record)
    assert (after.latest.raw, after.txids) == ("raw second", ("id second", "id first"))
    assert world.events == ["booked", "key of a", "key of b", "stored", "sent raw second"]


def _forget(world: World, asked: Asked) -> None:
    world.did.clear()


def _other_payee(world: World, asked: Asked) -> None:
    world.did["raw first"] = plan("first", 1_000, payee="thief")


def _other_reservation(world: World, asked: Asked) -> None:
    asked.unlike = ["the reservation of what was signed"]


@BOTH
@pytest.mark.parametrize(
    ("altered", "newest", "named"),
    [
        (_forget, {}, "what was signed"),
        (None, {"raw": "raw of a thief"}, "what was signed"),
        (None, {"txid": "id of another"}, "what was signed"),
        (_other_payee, {}, "whom the signed bytes pay"),
        (None, {"fee": 1_500}, "the fee of what was signed"),
        (_other_reservation, {}, "the reservation of what was signed"),
    ],
    ids=["keys", "bytes", "id", "payee", "fee", "reservation"],
)
def test_what_was_not_signed_so_is_an_alarm_and_no_coin_is_taken_for_it(
    kind: str, altered: Callable[[World, Asked], None] | None, newest: dict[str, Any], named: str
) -> None:
    world = World()
    asked, record = Asked(world), stuck(kind)
    if altered is not None:
        altered(world, asked)
    with pytest.raises(OrderMismatch, match=f"differs from what was signed in {named}$"):
        advanced(world, asked, replace(record, newest=replace(record.newest, **newest)))
    assert world.events == ["booked", f"forged: {named}"] and world.commits == []


@BOTH
def test_a_replacement_takes_no_coins_that_are_not_ours(kind: str) -> None:
    world = World()
    with pytest.raises(OrderMismatch, match="other coins than its own"):
        advanced(world, Asked(world, known=COINS[:1]), stuck(kind))
    assert world.commits == [] and not [event for event in world.events if event.startswith(("key", "sent"))]
