"""The guards of a signature, a replacement and a send on account networks, each on its own, whatever the kind is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.ids import AssetId
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.transactions.outgoing import FORGOTTEN, Attempt, Outgoing
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.usecases.base.kill_switch import PaymentsStopped
from chalicelib.usecases.ports.accounts import FeeEstimate, Opened, Payment
from chalicelib.usecases.ports.changes import Change, Still
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.transactions.accounts.signing import AccountSigning, Proved
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import quoted

NETWORK: Network = next(network for network in default_networks("test") if network.slug == "ethereum")
OTHERS, OURS = True, False
ETH, ORDERED = AssetId("test:ethereum:eth"), Opened("bytes", "newest", "wallet")


@dataclass(frozen=True)
class Record(Outgoing):
    id: str = "record"
    asset: AssetId = ETH
    amount: int = 5
    unsigned: str | None = "bytes"
    raw: str | None = None
    txid: str | None = None
    earlier: tuple[Attempt, ...] = ()

    @property
    def newest(self) -> Attempt | None:
        return Attempt.stored(self.raw, self.txid, 2, 2)

    def signed_as(self, attempt: Attempt) -> Record:
        return replace(self, raw=attempt.raw, txid=attempt.txid, earlier=self.replaced)


SIGNED = Record(raw="signed bytes", txid="newest", earlier=(Attempt("signed before", "oldest", 1, 1),))


@dataclass
class Kind:
    """Payer, signer and kind in one, all of which agree; a test has one of them disagree."""

    others: bool = OTHERS
    network: Network = NETWORK
    name: str = "kind record"
    opens: Opened = ORDERED
    wrong: Sequence[str] = ()
    mismatch: OrderMismatch | None = None
    renews: bool = True
    takes: bool = True
    refuses: bool = False
    costs: bool = True
    quote: int | None = 1
    events: list[str] = field(default_factory=list)

    @property
    def payer(self) -> Kind:
        return self

    def facts(self, record: Record) -> Order:
        return Order("payment", "wallet", "recipient", None, record.amount, 7, 0, record.unsigned or "")

    def proved(self, record: Record) -> Proved:
        self.events.append("proved")
        if self.mismatch is not None:
            raise self.mismatch
        return Proved(3, [Still(PaymentSwitch("test", version=9))])

    def quoted(self, record: Record) -> int | None:
        return self.quote

    def cure(self, record: Record, mismatch: OrderMismatch) -> None:
        self.events.append("cured")

    def altered(self, before: Record) -> list[str]:
        return list(self.wrong)

    def differs(self, before: Record, named: str) -> None:
        self.events.append(f"alarm: {named}")

    def renewed(self, before: Record) -> Record | None:
        return replace(before, unsigned="other bytes") if self.takes else None

    def proved_again(self, before: Record, wanted: Record) -> Proved | None:
        return self.proved(wanted) if self.costs else None

    def signature(self, record: Record, digest: bytes) -> Signature:
        self.events.append(f"signed {digest.decode()}")
        return Signature(1, 1, 0)

    def store(self, record: Record, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Record:
        self.events.append(f"stored, resting on {len(rests_on)}")
        return record.signed_as(Attempt(signed.raw, signed.txid, proved.fee, 3))

    def store_again(self, before: Record, wanted: Record, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Record:
        return self.store(wanted, signed, proved, rests_on)

    def digest(self, unsigned: str) -> bytes:
        return unsigned.encode()

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        return Signed(f"signed {unsigned}", "id")

    def opened(self, raw: str) -> Opened:
        return self.opens

    def broadcast(self, raw: str) -> None:
        if self.refuses:
            raise Refused("not now")
        self.events.append(f"sent {raw}")

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        return self.renews

    def lifetime(self, raw: str, txid: str) -> None:
        return None


@dataclass
class World:
    """The store's switch, the address rules and the node."""

    switch: PaymentSwitch | None = None
    mined: Sequence[str] = ()
    posted: Sequence[str] = ()

    def get_many(self, wanted: Sequence[tuple[type[Any], dict[str, str]]]) -> list[object | None]:
        return [object() if key.get("id") in self.posted or key.get("owner") in self.posted else None for _, key in wanted]

    def get(self, kind: type, **key: Any) -> PaymentSwitch | None:
        assert kind is PaymentSwitch and key == {"realm": "test"}
        return self.switch

    def storage_form(self, slug: str, address: str) -> str:
        return address

    def receipt(self, txid: str) -> object | None:
        return object() if txid in self.mined else None


STOPPED = World(PaymentSwitch("test", stopped=True))
RESTORED = World(PaymentSwitch("test", stopped=True, put_back=1))


def engine(world: World, most: int = 5) -> AccountSigning:
    made: Any = world
    return AccountSigning(made, made, made, lambda _: made, RenewalRules(most=most), lambda *_: True, lambda _: None)


def test_bytes_are_proved_before_a_key_is_asked_and_stored_on_the_conditions_that_were_read() -> None:
    kind = Kind()
    done = engine(World()).first(kind, Record())
    assert (done.raw, done.txid) == ("signed bytes", "id")
    assert kind.events == ["proved", "signed bytes", "stored, resting on 2"], "the switch, and what the proof rests on"


@pytest.mark.parametrize("record", [SIGNED, replace(SIGNED, earlier=()), replace(SIGNED, raw=None, txid=None)])
def test_a_record_that_was_signed_is_never_signed_as_if_it_was_not(record: Record, caplog: pytest.LogCaptureFixture) -> None:
    """Its state was altered: a first attempt asks nobody whether the others can be mined."""
    kind = Kind()
    with pytest.raises(OrderMismatch, match="was signed before"):
        engine(World()).first(kind, record)
    assert kind.events == [] and "ALARM test:ethereum: kind record was signed before" in caplog.text


@pytest.mark.parametrize("posted", ["sign:{}", "{}"])
def test_a_record_that_looks_unsigned_and_was_signed_is_not_signed(posted: str) -> None:
    """By the posting of its first signature, or by the row that stakes have in its place."""
    kind = Kind()
    with pytest.raises(OrderMismatch, match="was signed before"):
        engine(World(posted=[posted.format(Record().id)])).first(kind, Record())
    assert kind.events == []


def test_a_replacement_goes_the_same_way() -> None:
    kind = Kind()
    done = engine(World()).again(kind, SIGNED)
    assert done is not None and done.raw == "signed other bytes"
    assert kind.events == ["proved", "signed other bytes", "stored, resting on 2"]


@pytest.mark.parametrize(("quote", "signed"), [(0, False), (1, True), (30, True), (None, True)])
def test_first_bytes_may_cost_some_times_of_what_equal_ones_do_now(
    quote: int | None, signed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """They cost 3, and may cost ten times the quote. Where fees have risen since they were built, they go on."""
    kind = Kind(quote=quote)
    if signed:
        assert engine(World()).first(kind, Record()).raw == "signed bytes"
        return
    with pytest.raises(OrderMismatch, match="may cost 3") as refused:
        engine(World()).first(kind, Record())
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
        engine(World()).first(kind, Record())
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
            assert step(engine(world), kind) is not None
        else:
            with pytest.raises(PaymentsStopped):
                step(engine(world), kind)
        assert bool(kind.events) == goes
    kind = Kind(others)
    assert engine(world).send(kind, SIGNED) == goes == bool(kind.events)


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
        engine(World()).again(kind, SIGNED)
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
    assert engine(world, most).again(kind, record) is None
    assert kind.events == []


def test_what_a_node_refuses_is_left_to_the_poll() -> None:
    kind = Kind(refuses=True)
    assert engine(World()).send(kind, SIGNED) is False
    assert engine(World()).send(Kind(), SIGNED) is True


@pytest.mark.parametrize("record", [Record(), replace(SIGNED, raw=FORGOTTEN)], ids=["unsigned", "forgotten"])
def test_what_has_no_bytes_is_not_sent(record: Record) -> None:
    kind = Kind()
    assert engine(World()).send(kind, record) is False and kind.events == []
