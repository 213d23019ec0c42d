"""The guards of a signature and of a send on UTXO networks, each on its own, for each kind of record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.usecases.base.kill_switch import PaymentsStopped
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.coins import Output, Unspent
from chalicelib.usecases.transactions.errors import OrderMismatch, ReadersDiffer
from chalicelib.usecases.transactions.utxo.kinds import Grounds
from chalicelib.usecases.transactions.utxo.orders import coin_order
from tests.support.utxo_engine import (
    COINS,
    CONDITION,
    KINDS,
    OTHERS,
    Asked,
    World,
    advanced,
    attempt,
    built,
    in_flight,
    outputs,
    plan,
    replacing,
    signed,
)

BOTH = pytest.mark.parametrize("kind", list(KINDS))
Altered = Callable[[Any, World, Asked], Any]
"""A record that a test altered, or of which it altered what the others say."""


def newest(**values: Any) -> Altered:
    return lambda record, world, asked: replace(record, newest=replace(record.newest, **values))


def first(**values: Any) -> Altered:
    """Of the attempt that is to be replaced."""
    return lambda record, world, asked: replace(record, earlier=(replace(record.earlier[0], **values), *record.earlier[1:]))


def bytes_do(**values: Any) -> Altered:
    def altered(record: Any, world: World, asked: Asked) -> Any:
        name = record.newest.unsigned
        world.does[name] = replace(world.does[name], **values)
        return record

    return altered


def bytes_are(made: Callable[..., Any]) -> Altered:
    """Bytes and record agree on what `made` makes of it."""

    def altered(record: Any, world: World, asked: Asked) -> Any:
        after = made(record)
        found = after.newest
        coins = [coin for coin in (*COINS, *OTHERS) if coin.outpoint in {spent.outpoint for spent in after.spends(found)}]
        world.does[found.unsigned] = plan(found.unsigned, found.fee, coins, vsize=found.vsize)
        return after

    return altered


def costs(fee: int, vsize: int = 20) -> Altered:
    return bytes_are(lambda record: replace(record, newest=attempt(record, record.newest.unsigned, fee, vsize=vsize)))


def kind_says(**values: Any) -> Altered:
    def altered(record: Any, world: World, asked: Asked) -> Any:
        for name, value in values.items():
            setattr(asked, name, value)
        return record

    return altered


def signed_bytes_did(**values: Any) -> Altered:
    def altered(record: Any, world: World, asked: Asked) -> Any:
        world.did["raw first"] = replace(world.did["raw first"], **values)
        return record

    return altered


def signed_by_others(record: Any, world: World, asked: Asked) -> Any:
    world.did.clear()
    return record


def refused(record: Any, altered: Altered, named: str, most: int = 5) -> list[str]:
    """What happened beside the alarm: no key is asked. Stored is at most that an altered replacement is taken away."""
    world = World()
    asked = Asked(world)
    given = altered(record, world, asked)
    with pytest.raises(OrderMismatch, match="differs from what was approved") as raised:
        advanced(world, asked, given, most)
    alarms = [event for event in world.events if event.startswith("alarm")]
    assert len(alarms) == 1 and named in alarms[0] and named in str(raised.value)
    rest = [event for event in world.events if event not in (*alarms, "booked")]
    assert not [event for event in rest if event.startswith(("key", "sent"))]
    if "stored" in rest:
        ((change,),) = world.commits
        assert isinstance(change, Save) and change.record.renew
        assert (change.record.newest, change.record.earlier) == (given.earlier[-1], given.earlier[:-1])
    return rest


@BOTH
def test_what_is_stored_is_booked_and_what_is_booked_is_sent(kind: str) -> None:
    world = World()
    step, after = advanced(world, Asked(world), built(kind))
    assert (step, after.state, after.latest.raw, after.latest.txid) == ("sent", "signed", "raw first", "id first")
    assert world.events == ["key of a", "key of b", "stored", "booked", "sent raw first"]
    ours = Save(OwnTransaction(after.network, "id first", after.latest.positions))
    assert world.commits == [[Save(after), ours, Save(FirstSignature("record", "id first", 5)), CONDITION]]
    assert after.latest.positions == (("out:1",) if kind == "bundle" else ("out:0", "out:1"))


@BOTH
def test_a_replacement_is_signed_beside_what_it_replaces(kind: str) -> None:
    world, record = World(), replacing(kind)
    step, after = advanced(world, Asked(world), record)
    kept = tuple(replace(each, unsigned="") for each in record.earlier)
    assert (step, after.latest.raw, after.earlier) == ("sent", "raw second", kept)
    assert world.events == ["booked", "key of a", "key of b", "stored", "sent raw second"]
    ours = Save(OwnTransaction(after.network, "id second", after.latest.positions))
    assert world.commits == [[Save(after), ours, CONDITION]]


@BOTH
@pytest.mark.parametrize(
    ("altered", "named"),
    [
        (newest(unsigned="nobody's"), "bytes"),
        (bytes_do(outputs=plan("first", 1_000, payee="thief").outputs), "bytes"),
        (kind_says(known=COINS[:1]), "other coins than its own"),
        (kind_says(known=[replace(coin, amount=60_000) for coin in COINS]), "coins of other amounts"),
        (newest(fee=999), "what was built"),
        (newest(vsize=21), "what was built"),
        (costs(0), "fee's bounds"),
        (costs(20_001), "fee's bounds"),
        (kind_says(grounds_are=Grounds([], dear=["fee's share"])), "fee's share"),
    ],
    ids=["bytes", "payee", "reserved", "amounts", "fee", "size", "no fee", "too dear", "dear to its kind"],
)  # fmt: skip
def test_each_difference_of_the_bytes_alone_has_them_built_anew(kind: str, altered: Altered, named: str) -> None:
    assert refused(built(kind), altered, named) == ["built anew without []"]


@BOTH
def test_bytes_that_spend_other_coins_of_ours_are_built_anew(kind: str) -> None:
    """A move has the same coins in each attempt; a bundle says with each which they are."""
    others = bytes_do(inputs=tuple(coin.outpoint for coin in OTHERS))
    assert refused(built(kind), others, "other coins" if kind == "move" else "what was built") == ["built anew without []"]


@BOTH
def test_what_differs_in_the_order_is_not_built_anew(kind: str) -> None:
    assert refused(built(kind), kind_says(grounds_are=Grounds([], ["recipient"])), "recipient") == []
    leaving = kind_says(grounds_are=Grounds([], ["wd: amount"], leaving=["wd"]))
    assert refused(built(kind), leaving, "wd: amount") == ["built anew without ['wd']"]


@BOTH
def test_only_where_the_bytes_alone_differ_they_can_be_built_anew(kind: str) -> None:
    for grounds, alone in ((Grounds([], dear=["fee"]), True), (Grounds([], ["recipient"], dear=["fee"]), False)):
        world = World()
        with pytest.raises(OrderMismatch) as raised:
            advanced(world, Asked(world, grounds), built(kind))
        assert raised.value.bytes_only is alone


@BOTH
@pytest.mark.parametrize(
    ("record", "named"),
    [
        (lambda kind: replace(replacing(kind), state="built"), "what it replaces"),
        (lambda kind: replace(built(kind), state="signed"), "what it replaces"),
        (lambda kind: replace(in_flight(kind), state="built"), "what was signed already"),
        (lambda kind: newest(raw="raw first")(built(kind), World(), None), "what was signed already"),
        (lambda kind: newest(txid="id first")(built(kind), World(), None), "what was signed already"),
        (lambda kind: newest(txid="id second")(replacing(kind), World(), None), "what was signed already"),
    ],
    ids=["replaces, as if built", "first, as if signed", "signed", "bytes without an id", "an id", "an id of a replacement"],
)
def test_what_may_have_been_signed_is_neither_signed_nor_built_anew(kind: str, record: Any, named: str) -> None:
    assert refused(record(kind), lambda altered, *_: altered, named) == []
    leaving = kind_says(grounds_are=Grounds([], ["wd: amount"], leaving=["wd"]))
    assert refused(record(kind), leaving, named) == []


def was_signed(record: Any, world: World, asked: Asked) -> Any:
    world.first_signature = True
    return record


@BOTH
def test_a_record_that_looks_unsigned_and_was_signed_is_neither_signed_nor_built_anew(kind: str) -> None:
    assert refused(built(kind), was_signed, "what was signed before") == []
    world = World(first_signature=True)
    assert advanced(world, Asked(world), replacing(kind))[0] == "sent", "a replacement stands beside its first"


@BOTH
@pytest.mark.parametrize(
    ("altered", "named"),
    [
        (signed_by_others, "what was signed"),
        (first(raw="nobody's"), "what was signed"),
        (first(txid="id other"), "what was signed"),
        (signed_bytes_did(inputs=tuple(coin.outpoint for coin in OTHERS)), "what was signed"),
        (signed_bytes_did(outputs=plan("first", 1_000, payee="thief").outputs), "whom the signed bytes pay"),
        (first(fee=1_500), "the fee of what was signed"),
        (bytes_do(outputs=plan("second", 2_000, payee="thief").outputs), "bytes"),
        (newest(fee=2_001), "what was built"),
        (costs(1_000), "fee's bounds"),
        (costs(10_001), "fee's bounds"),
        (costs(2_000, vsize=1), "fee's bounds"),
        (kind_says(grounds_are=Grounds([], ["the reservation of what was signed"])), "the reservation of what was signed"),
        (kind_says(grounds_are=Grounds([], dear=["fee's share"])), "fee's share"),
        (kind_says(grounds_are=Grounds([], ["wd: amount"], leaving=["wd"])), "wd: amount"),
    ],
    ids=[
        "keys", "signed bytes", "id", "signed inputs", "signed payee", "signed fee", "payee", "fee", "no more than before",
        "ten times the first", "a fee rate of nobody", "reservation", "dear to its kind", "a member",
    ],
)  # fmt: skip
def test_each_difference_alone_forbids_a_replacement(kind: str, altered: Altered, named: str) -> None:
    alone = named in ("bytes", "what was built", "fee's bounds", "fee's share")
    assert refused(replacing(kind), altered, named) == (["stored"] if alone else []), "only altered bytes are taken away"


@BOTH
def test_a_replacement_whose_attempt_has_no_bytes_any_more_stands(kind: str) -> None:
    assert refused(first(unsigned="")(replacing(kind), World(), None), newest(fee=2_001), "what was built") == []


def test_a_replacement_spends_all_that_the_first_spends() -> None:
    """Of a bundle: a move has the same coins in each attempt."""

    def spends(*coins: Any) -> Altered:
        return bytes_are(lambda record: replace(record, newest=attempt(record, "second", 2_000, coins)))

    for coins in (OTHERS, (COINS[0], OTHERS[0])):
        assert refused(replacing("bundle"), spends(*coins), "the inputs of what it replaces") == ["stored"]
    world = World()
    more = spends(*COINS, replace(OTHERS[0], amount=0))(replacing("bundle"), world, Asked(world))
    world.does["second"] = plan("second", 2_000, (*COINS, OTHERS[0]))
    assert advanced(world, Asked(world, known=[*COINS, replace(OTHERS[0], amount=0)]), more)[0] == "sent"


@BOTH
def test_what_was_replaced_too_often_is_not_signed_again(kind: str) -> None:
    record = replacing(kind, 9_000)
    many = tuple(signed(attempt(record, f"old {n}", 1_000 + n)) for n in range(1, 3))
    record, altered = replace(record, earlier=(*record.earlier, *many)), costs(9_000)
    assert refused(record, altered, "number of replacements", most=2) == []
    world = World()
    asked = Asked(world)
    assert advanced(world, asked, altered(record, world, asked), most=3)[0] == "sent"


@BOTH
def test_the_last_fee_is_what_a_replacement_raises_and_the_first_what_it_is_measured_by(kind: str) -> None:
    record = replacing(kind)
    record = replace(record, earlier=(*record.earlier, signed(attempt(record, "old", 3_000))))
    for fee in (3_000, 10_001):
        assert refused(record, costs(fee), "fee's bounds") == []
    world = World()
    asked = Asked(world)
    assert advanced(world, asked, costs(10_000)(record, world, asked))[0] == "sent"


def test_an_order_has_the_coins_that_the_bytes_spend() -> None:
    """The second reader is never asked about others."""
    ports: Any = World()
    paid = [Output(*each) for each in outputs(1_000)]
    each = [Unspent(coin.outpoint, "hot", coin.amount, 7) for coin in (*COINS, *OTHERS)]
    assert [coin.outpoint for coin in coin_order(ports, "first", each[1::-1], paid).inputs] == [coin.outpoint for coin in COINS]
    for others in (each[:1], each[:3], each[2:], [each[0], each[2]]):
        with pytest.raises(OrderMismatch, match="other coins"):
            coin_order(ports, "first", others, paid)
    ports.does["first"] = plan("first", 1_000, (*COINS, COINS[0]))
    with pytest.raises(OrderMismatch, match="other coins"):
        coin_order(ports, "first", each[:2], paid)


@BOTH
@pytest.mark.parametrize("record", [built, replacing])
def test_no_key_is_asked_where_both_readers_do_not_make_the_same_digests(kind: str, record: Any) -> None:
    world = World(other_digest=b"other")
    with pytest.raises(ReadersDiffer, match="digests"):
        advanced(world, Asked(world), record(kind))
    assert world.events in ([], ["booked"])
    world = World(dropped_digests=1)
    with pytest.raises(OrderMismatch, match="2 inputs and 1 digests"):
        advanced(world, Asked(world), record(kind))
    assert world.events in ([], ["booked"])


@BOTH
@pytest.mark.parametrize("record", [built, replacing])
def test_what_both_readers_do_not_read_alike_is_neither_stored_nor_sent(kind: str, record: Any) -> None:
    world = World(misread={"paid": "thief"})
    with pytest.raises(ReadersDiffer, match="paid"):
        advanced(world, Asked(world), record(kind))
    assert [event for event in world.events if event != "booked"] == ["key of a", "key of b"]


@BOTH
@pytest.mark.parametrize("record", [built, replacing])
def test_its_kind_s_switch_stops_a_signature(kind: str, record: Any) -> None:
    world = World()
    with pytest.raises(PaymentsStopped):
        advanced(world, Asked(world, PaymentsStopped("stopped")), record(kind))
    assert world.events in ([], ["booked"])


@BOTH
def test_what_is_not_stored_or_not_booked_is_not_sent(kind: str) -> None:
    world = World(conflicts=True)
    with pytest.raises(Conflict):
        advanced(world, Asked(world), built(kind))
    assert world.events == ["key of a", "key of b"]
    for record, renew in ((built(kind), False), (in_flight(kind), False), (in_flight(kind), True)):
        world = World()
        with pytest.raises(Conflict):
            advanced(world, Asked(world, books=False), replace(record, renew=renew))
        assert not [event for event in world.events if event.startswith(("sent", "built at", "booked"))]


@BOTH
def test_its_kind_s_switch_stops_a_send(kind: str) -> None:
    for record in (built(kind), in_flight(kind), replacing(kind)):
        world = World()
        step, after = advanced(world, Asked(world, is_halted=True), record)
        assert (step, after.state) == ("waiting", "signed")
        assert not [event for event in world.events if event.startswith("sent")]


@BOTH
def test_what_a_node_refuses_waits_for_the_poll(kind: str) -> None:
    world = World(refuses=True)
    assert advanced(world, Asked(world), in_flight(kind)) == ("waiting", in_flight(kind))


@BOTH
def test_signed_bytes_are_sent_again_and_never_signed_again(kind: str) -> None:
    world = World()
    assert advanced(world, Asked(world), in_flight(kind)) == ("sent", in_flight(kind))
    assert world.events == ["booked", "sent raw first"]
    world = World()
    with pytest.raises(LookupError, match="no signed bytes"):
        advanced(world, Asked(world), newest(txid=None)(in_flight(kind), world, None))
    assert world.events == ["booked"]


@BOTH
@pytest.mark.parametrize("state", ["settled", "dead"])
def test_nothing_is_signed_or_sent_of_what_is_over(kind: str, state: str) -> None:
    world, record = World(), replace(in_flight(kind), state=state, renew=True)
    assert advanced(world, Asked(world), record) == ("over", record)
    assert world.events == []
