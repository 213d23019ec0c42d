"""The guards of a signature, a replacement and a send on account networks, each on its own, whatever the kind is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.transactions.outgoing import FORGOTTEN, Attempt
from chalicelib.usecases.base.kill_switch import PaymentsStopped
from chalicelib.usecases.ports.accounts import FeeEstimate, Opened, Payment
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import quoted
from tests.support.account_engine import OTHERS, OURS, Kind, Record, World, account_engine

SIGNED = Record(raw="signed bytes", txid="newest", earlier=(Attempt("signed before", "oldest", 1, 1),))
STOPPED = World(PaymentSwitch("test", stopped=True))
RESTORED = World(PaymentSwitch("test", stopped=True, put_back=1))


def test_bytes_are_proved_before_a_key_is_asked_and_stored_on_the_conditions_that_were_read() -> None:
    kind = Kind()
    done = account_engine(World()).first(kind, Record())
    assert (done.raw, done.txid) == ("signed bytes", "id")
    assert kind.events == ["proved", "signed bytes", "stored"]
    assert len(kind.stored) == 2, "the switch, and what the proof rests on"


@pytest.mark.parametrize("record", [SIGNED, replace(SIGNED, earlier=()), replace(SIGNED, raw=None, txid=None)])
def test_a_record_that_was_signed_is_never_signed_as_if_it_was_not(record: Record, caplog: pytest.LogCaptureFixture) -> None:
    """Its state was altered: a first attempt asks nobody whether the others can be mined."""
    kind = Kind()
    with pytest.raises(OrderMismatch, match="was signed before"):
        account_engine(World()).first(kind, record)
    assert kind.events == [] and "ALARM test:ethereum: kind record was signed before" in caplog.text


@pytest.mark.parametrize("posted", ["sign:{}", "{}"])
def test_a_record_that_looks_unsigned_and_was_signed_is_not_signed(posted: str) -> None:
    """By the posting of its first signature, or by the row that stakes have in its place."""
    kind = Kind()
    with pytest.raises(OrderMismatch, match="was signed before"):
        account_engine(World(posted=[posted.format(Record().id)])).first(kind, Record())
    assert kind.events == []


def test_a_replacement_goes_the_same_way() -> None:
    kind = Kind()
    done = account_engine(World()).again(kind, SIGNED)
    assert done is not None and done.raw == "signed other bytes"
    assert kind.events == ["proved", "signed other bytes", "stored"] and len(kind.stored) == 2


@pytest.mark.parametrize(("quote", "signed"), [(0, False), (1, True), (30, True), (None, True)])
def test_first_bytes_may_cost_some_times_of_what_equal_ones_do_now(
    quote: int | None, signed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """They cost 3, and may cost ten times the quote. Where fees have risen since they were built, they go on."""
    kind = Kind(quote=quote)
    if signed:
        assert account_engine(World()).first(kind, Record()).raw == "signed bytes"
        return
    with pytest.raises(OrderMismatch, match="may cost 3") as refused:
        account_engine(World()).first(kind, Record())
    assert refused.value.bytes_only and kind.events == ["proved", "cured"]
    assert "ALARM test:ethereum: kind record may cost 3, and 0 is the most by the fees of now" in caplog.text


class Priced:
    """A payer that knows what a transfer costs now, or why it can not be."""

    def __init__(self, told: FeeEstimate | Exception) -> None:
        self.told, self.asked = told, list[Payment]()

    def cost(self, payment: Payment) -> FeeEstimate:
        self.asked.append(payment)
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.mark.parametrize(
    ("told", "most"), [(FeeEstimate(7), 7), (FeeEstimate(0, stated=9), 9), (Refused("it takes nothing"), None)]
)
def test_a_quote_needs_neither_the_amount_nor_a_recipient_that_takes_it(told: FeeEstimate | Exception, most: int | None) -> None:
    payer: Any = Priced(told)
    assert quoted(payer, Payment("wallet", "recipient", None, 5, 7)) == most
    assert payer.asked == [Payment("wallet", "recipient", None, 1, 7, gas="used")]


def test_a_wallet_without_any_of_the_coin_is_waited_for() -> None:
    payer: Any = Priced(InsufficientFunds("nothing"))
    with pytest.raises(Unavailable, match="has nothing of its coin"):
        quoted(payer, Payment("wallet", "recipient", None, 5, 7))


def test_an_order_that_differs_is_cured_and_not_signed() -> None:
    kind = Kind(mismatch=OrderMismatch("it differs"))
    with pytest.raises(OrderMismatch, match="it differs"):
        account_engine(World()).first(kind, Record())
    assert kind.events == ["proved", "cured"]


@pytest.mark.parametrize(
    ("others", "world", "goes"),
    [(OTHERS, STOPPED, False), (OTHERS, RESTORED, False), (OURS, STOPPED, True), (OURS, RESTORED, False)],
    ids=["payment, stopped", "payment, restored", "move, stopped", "move, restored"],
)
def test_the_switches_stop_signature_replacement_and_send(others: bool, world: World, goes: bool) -> None:
    steps: list[Callable[[AccountSigning, Kind], object]] = [
        lambda made, kind: made.first(kind, Record()),
        lambda made, kind: made.again(kind, SIGNED),
    ]
    for step in steps:
        kind = Kind(others)
        if goes:
            assert step(account_engine(world), kind) is not None
        else:
            with pytest.raises(PaymentsStopped):
                step(account_engine(world), kind)
        assert bool(kind.events) == goes
    kind = Kind(others)
    assert account_engine(world).send(kind, SIGNED) == goes == bool(kind.events)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Kind(opens=Opened("other bytes", "newest", "wallet")), "bytes that were signed"),
        (Kind(opens=Opened("bytes", "another", "wallet")), "id of what was signed"),
        (Kind(opens=Opened("bytes", "newest", "thief")), "who signed"),
        (Kind(wrong=["amount"]), "amount"),
    ],
    ids=["bytes", "id", "signer", "record"],
)
def test_what_differs_from_what_was_signed_is_an_alarm_and_not_replaced(kind: Kind, named: str) -> None:
    kind.events.clear()
    with pytest.raises(OrderMismatch, match=named):
        account_engine(World()).again(kind, SIGNED)
    assert kind.events == [f"alarm: {named}"]


@pytest.mark.parametrize(
    ("kind", "world", "record", "most"),
    [
        (Kind(), World(), replace(SIGNED, raw=None), 5),
        (Kind(), World(), replace(SIGNED, txid=None), 5),
        (Kind(), World(), SIGNED, 1),
        (Kind(renews=False), World(), SIGNED, 5),
        (Kind(), World(mined=["newest"]), SIGNED, 5),
        (Kind(), World(mined=["oldest"]), SIGNED, 5),
        (Kind(takes=False), World(), SIGNED, 5),
        (Kind(costs=False), World(), SIGNED, 5),
    ],
    ids=["not signed", "no id", "too often", "a node objects", "mined", "an earlier one is mined", "refused", "too dear"],
)
def test_each_guard_alone_forbids_a_replacement(kind: Kind, world: World, record: Record, most: int) -> None:
    kind.events.clear()
    assert account_engine(world, most=most).again(kind, record) is None
    assert kind.events == []


def test_what_a_node_refuses_is_left_to_the_poll() -> None:
    kind = Kind(refuses=True)
    assert account_engine(World()).send(kind, SIGNED) is False
    assert account_engine(World()).send(Kind(), SIGNED) is True


@pytest.mark.parametrize("record", [Record(), replace(SIGNED, raw=FORGOTTEN)], ids=["unsigned", "forgotten"])
def test_what_has_no_bytes_is_not_sent(record: Record) -> None:
    kind = Kind()
    assert account_engine(World()).send(kind, record) is False and kind.events == []
