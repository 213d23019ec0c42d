"""What ends the look at a transaction in flight, and in which order: each answer that says "perhaps" gives no money back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.sightings import Ours
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.accounts.following import Following
from chalicelib.usecases.transactions.finality import Scanned

NETWORK: Network = next(network for network in default_networks("test") if network.slug == "ethereum")
SCANNED = Scanned(100, 100, {})
NEWEST, OLDEST = Attempt("newest bytes", "newest", 2, 2), Attempt("oldest bytes", "oldest", 1, 1)


@dataclass
class Flight:
    others: bool = True
    is_lost: bool = False
    refused: Sequence[str] = ()
    attempts: Sequence[Attempt] = (NEWEST, OLDEST)
    id: str = "record"
    name: str = "order"
    at_stake: tuple[AssetId, int] = (AssetId("test:ethereum:eth"), 5)
    events: list[str] = field(default_factory=list)

    def ours(self) -> Ours:
        return Ours(tuple(attempt.txid for attempt in self.attempts), ())

    def mined(self, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> bool:
        self.events.append(f"mined {attempt.txid}")
        return True

    def lost(self, ours: Ours, scanned: Scanned) -> bool:
        return self.is_lost

    def lose(self, scanned: Scanned) -> None:
        self.events.append("lost")

    def give_up(self) -> None:
        self.events.append("given up")

    def broadcast(self, raw: str) -> None:
        if raw in self.refused:
            raise Refused("not now")
        self.events.append(f"sent {raw}")

    def still_out(self, sent: bool, ours: Ours, scanned: Scanned) -> None:
        self.events.append("still out" if sent else "still out, and no node takes it")


@dataclass
class World:
    """What the store, the blocks and the nodes say."""

    switch: PaymentSwitch | None = None
    receipts: Sequence[str] = ()
    forked: Sequence[str] = ()
    noted: bool = False
    all_deny: bool = True
    decided: bool = False

    def get(self, kind: type, **key: Any) -> PaymentSwitch | None:
        return self.switch

    def receipt(self, txid: str) -> Receipt | None:
        return Receipt(txid, True, 90, "hash", 1) if txid in (*self.receipts, *self.forked) else None

    def in_chain(self, receipt: Receipt, scanned: Scanned) -> bool:
        return receipt.txid not in self.forked

    def met(self, what: str, ours: Ours, scanned: Scanned) -> bool:
        return self.noted

    def denied(self, txids: Sequence[str], asset: AssetId, units: int) -> bool:
        assert list(txids) == ["newest", "oldest"]
        return self.all_deny

    def standing(self, id: str, ours: Ours, scanned: Scanned) -> object | None:
        return object() if self.decided else None


def looked_at(flight: Flight, world: World) -> tuple[bool, list[str]]:
    made: Any = world
    following = Following(NETWORK, made, made, made, made)
    following._given_ups = made
    flight.events.clear()
    return following.look(flight, SCANNED), flight.events


STOPPED, RESTORED = PaymentSwitch("test", stopped=True), PaymentSwitch("test", stopped=True, put_back=1)
GOES_ON = ["sent newest bytes", "still out"]


@pytest.mark.parametrize(
    ("world", "is_lost", "events"),
    [
        (World(receipts=["oldest"], decided=True), True, ["mined oldest"]),
        (World(forked=["newest"], decided=True), True, []),
        (World(noted=True, decided=True), True, []),
        (World(RESTORED, decided=True), True, []),
        (World(decided=True), True, ["lost"]),
        (World(all_deny=False), True, GOES_ON),
        (World(decided=True), False, ["given up"]),
        (World(STOPPED, decided=True), False, ["given up"]),
        (World(STOPPED), False, []),
        (World(), False, GOES_ON),
    ],
    ids=[
        "an earlier attempt is mined", "in a block that fell out", "met in a block", "restored", "lost", "a node denies the loss",
        "given up", "given up while stopped", "stopped", "out",
    ],
)  # fmt: skip
def test_one_answer_after_the_other(world: World, is_lost: bool, events: list[str]) -> None:
    assert looked_at(Flight(is_lost=is_lost), world) == (bool(world.receipts), events)


def test_two_mined_attempts_are_an_alarm(caplog: pytest.LogCaptureFixture) -> None:
    assert looked_at(Flight(), World(receipts=["newest", "oldest"])) == (True, ["mined newest"])
    assert "ALARM" in caplog.text and "newest and oldest are both in the chain for order" in caplog.text


def test_what_stays_ours_is_sent_while_payments_are_stopped() -> None:
    assert looked_at(Flight(others=False), World(STOPPED)) == (False, GOES_ON)
    assert looked_at(Flight(others=False), World(RESTORED)) == (False, [])


def test_the_earlier_bytes_are_sent_where_the_newest_are_refused() -> None:
    flight = Flight(refused=["newest bytes"])
    assert looked_at(flight, World()) == (False, ["sent oldest bytes", "still out"])
    flight.refused = ["newest bytes", "oldest bytes"]
    assert looked_at(flight, World()) == (False, ["still out, and no node takes it"])


def test_what_is_not_signed_is_looked_for_and_not_sent() -> None:
    flight = Flight(attempts=(Attempt("", "newest", 0, 0), OLDEST))
    assert looked_at(flight, World(receipts=["newest"])) == (True, ["mined newest"])
    assert looked_at(flight, World()) == (False, ["sent oldest bytes", "still out"])
