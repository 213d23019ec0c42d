"""Each realm has time of its own in a poll: neither a live network that is slow nor a crowd of the sandbox takes all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import Realm
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from chalicelib.workers import deadlines, poll
from chalicelib.workers.deadlines import Deadline
from tests.support.stack import Stack

OWN = poll.SECONDS * poll.LEAST
STEPS = ("credit", "follow", "rescan")


class Hands:
    """A clock that stands still until somebody takes time."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class Steps:
    """Both realms' steps, each of which takes all of its time, or `late` seconds more where it is the greedy realm's."""

    def __init__(self, hands: Hands, greedy: Realm | None, late: float, patch: pytest.MonkeyPatch) -> None:
        self.hands, self.greedy, self.late = hands, greedy, late
        self.left: dict[tuple[Realm, str], float] = {}
        for name in ("credit", "follow"):
            patch.setattr(poll.Poll, name, lambda one, deadline, name=name: self.take(one.network, name, deadline))
        patch.setattr(poll, "_rescan", lambda network, deadline: self.take(network, "rescan", deadline))

    def take(self, network: Network, step: str, deadline: Deadline) -> None:
        self.left[network.realm, step] = deadline.until - self.hands.now
        if network.realm == self.greedy:
            self.hands.now = max(self.hands.now, deadline.until) + self.late
        else:
            self.hands.now += 0.5


@pytest.fixture
def hands(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hands]:
    """Both realms have an active ethereum."""
    store = services().store
    live = store.get(Network, id="live:ethereum")
    assert live is not None
    store.commit([Save(replace(live, status="active", rpc_url="https://node.example", version=live.version + 1))])
    store.catalogue("live", fresh=True)
    standing = Hands()
    monkeypatch.setattr(deadlines, "time", standing)
    yield standing


@pytest.mark.parametrize("late", [0, 10])
@pytest.mark.parametrize("greedy", ["live", "test"])
def test_a_realm_that_takes_all_it_can_leaves_the_other_its_own(
    hands: Hands, monkeypatch: pytest.MonkeyPatch, greedy: Realm, late: float
) -> None:
    """A rescan of the live network that never ends left the sandbox's none; a node that answers late left it no scan either."""
    steps = Steps(hands, greedy, late, monkeypatch)
    poll.poll("ethereum")
    other: Realm = "test" if greedy == "live" else "live"
    own = {"credit": OWN, "follow": OWN, "rescan": OWN / 2}
    assert {step: steps.left[other, step] >= own[step] - 0.001 for step in STEPS} == dict.fromkeys(STEPS, True)
    assert {step: steps.left[greedy, step] >= own[step] - 0.001 for step in STEPS} == dict.fromkeys(STEPS, True)


def test_a_run_ends_within_its_function(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every step of both realms takes all that it may."""
    steps = Steps(hands, None, 0, monkeypatch)
    monkeypatch.setattr(steps, "take", lambda network, step, deadline: setattr(hands, "now", max(hands.now, deadline.until)))
    begun = hands.now
    poll.poll("ethereum")
    assert hands.now - begun <= poll.SECONDS + 2 * OWN


def test_the_other_realm_has_all_that_one_does_not_need(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(hands, None, 0, monkeypatch)
    poll.poll("ethereum")
    assert steps.left["test", "rescan"] > poll.SECONDS * 0.8


def test_one_realms_failure_takes_nothing_from_the_other(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(hands, None, 0, monkeypatch)
    taken = steps.take

    def broken(network: Network, step: str, deadline: Deadline) -> None:
        if network.realm == "live":
            raise ZeroDivisionError
        taken(network, step, deadline)

    monkeypatch.setattr(steps, "take", broken)
    with pytest.raises(Failures):
        poll.poll("ethereum")
    assert [step for realm, step in steps.left if realm == "test"] == list(STEPS)


def test_the_sandbox_is_scanned_while_a_live_node_keeps_silent(hands: Hands, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the real scan of the sandbox: the live realm's steps took 20 seconds more than they may."""
    credit, network = poll.Poll.credit, services().catalogue("test").networks["ethereum"]

    def slow(one: poll.Poll, deadline: Deadline) -> None:
        if one.network.realm == "live":
            hands.now = deadline.until + 20
        else:
            assert deadline()
            credit(one, deadline)

    monkeypatch.setattr(poll.Poll, "credit", slow)
    monkeypatch.setattr(poll.Poll, "follow", lambda one, deadline: None)
    monkeypatch.setattr(poll, "_rescan", lambda network, deadline: None)
    services().simulated(network.id).mine(120)
    poll.poll("ethereum")
    cursor = services().store.get(Cursor, network=network.id)
    assert cursor is not None
    assert cursor.number == services().simulated(network.id).tip()
