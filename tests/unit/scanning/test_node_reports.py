"""What a poll reports of a network's nodes: seldom, without secrets, and without the words of a node."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.chains.answers import Garbled
from chalicelib.chains.providers import Health, Heard
from chalicelib.chains.rpc import RpcError, TooMuch
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.scanning.node_reports import NetworkReport
from chalicelib.usecases.ports.failures import Unanswered, Unavailable
from chalicelib.usecases.scanning.node_reports import AT_LEAST_MS, NodeReports
from tests.support.memory_store import MemoryStore

NETWORK = next(network for network in default_networks("live") if network.slug == "bsc")
SECRET = "c0ffee-secret-key"


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def seconds(self) -> float:
        return self.ms / 1000


class Wire:
    """A node that fails as it is told, and takes a quarter of a second."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.failure = clock, None

    def call(self, method: str, params: Any = ()) -> Any:
        self.clock.ms += 250
        if self.failure is not None:
            raise self.failure
        return 7


class World:
    def __init__(self, nodes: int = 2) -> None:
        self.store, self.clock = MemoryStore(), Clock()
        self.healths = [Health(n, self.clock.seconds, f"node-{n}") for n in range(1, nodes + 1)]
        self.wires = [Wire(self.clock) for _ in self.healths]
        self.nodes: list[Any] = [Heard(wire, health) for wire, health in zip(self.wires, self.healths, strict=True)]  # type: ignore[arg-type]
        self.reports = NodeReports(NETWORK, self, self.store, self.clock, self.healths)  # type: ignore[arg-type]
        self.height: int | None = 90

    def tip(self) -> int:
        if self.height is None:
            raise Unavailable("no node answers")
        return self.height

    def ask(self, number: int, failure: Exception | None = None) -> None:
        self.wires[number].failure = failure
        try:
            self.healths[number].watched(lambda: self.nodes[number].call("eth_blockNumber"))
        except Exception as error:  # noqa: BLE001 - it is the one that was put there
            assert error is failure

    def note(self, tip: int | None = 100) -> NetworkReport | None:
        return self.reports.note(tip)

    def stored(self) -> NetworkReport:
        found = self.store.get(NetworkReport, network=NETWORK.id)
        assert found is not None
        return found


def test_the_nodes_of_a_poll_are_told_with_their_heights_and_times() -> None:
    world = World()
    world.healths[0].tip = 101
    world.ask(0)
    world.ask(0)
    report = world.note()
    assert report == world.stored()
    assert (report.tip, [node.state for node in report.nodes]) == (100, ["well", "unasked"])
    assert (report.nodes[0].height, report.nodes[0].latency_ms, report.nodes[0].trouble) == (101, 250, None)
    assert (report.nodes[1].height, report.nodes[1].asked_at) == (None, None)


def test_a_single_node_has_the_height_that_the_poll_read() -> None:
    world = World(1)
    world.ask(0)
    report = world.note()
    assert report is not None
    assert report.nodes[0].height == 100


@pytest.mark.parametrize(
    ("failure", "state", "words"),
    [
        (Unanswered("the node answers HTTP 502"), "silent", "the node answers HTTP 502"),
        (Unanswered(f"the node's limit is reached: buy more of {SECRET} (code 429)"), "silent", "the node's limit is reached"),
        (Unavailable(f"the node refuses eth_call: {SECRET}"), "resting", "the node refuses eth_call"),
        (Garbled("a block is no object"), "failing", "a block is no object"),
        (RpcError(-32000, f"no such block for {SECRET}"), "well", None),
        (TooMuch(f"the node refuses eth_getLogs: {SECRET}"), "well", None),
    ],
    ids=["status", "limit", "refusal", "nonsense", "error", "too much"],
)
def test_a_failure_is_told_without_the_words_of_the_node(failure: Exception, state: str, words: str | None) -> None:
    world = World()
    world.ask(1, failure)
    report = world.note()
    assert report is not None
    assert (report.nodes[1].state, report.nodes[1].trouble) == (state, words)
    assert SECRET not in repr(report)


def test_it_is_written_once_a_minute_at_most_and_tells_of_the_time_since() -> None:
    world = World()
    world.ask(0)
    first = world.note()
    world.ask(0, Unanswered("the node answers HTTP 500"))
    world.clock.ms = first.at + AT_LEAST_MS - 1 if first else 0
    assert world.note() is None
    assert world.stored() == first
    world.clock.ms += 2
    world.ask(0)
    again = world.note(105)
    assert again is not None
    assert (again.version, again.tip, again.nodes[0].state, again.nodes[0].trouble) == (
        2, 105, "failing", "the node answers HTTP 500",
    )  # fmt: skip
    world.clock.ms += AT_LEAST_MS
    quiet = world.note()
    assert quiet is not None
    # Nobody asked it: what was known of it stays, with its time.
    assert (quiet.nodes[0].height, quiet.nodes[0].asked_at) == (again.nodes[0].height, again.at)
    assert quiet.nodes[0].state in ("unasked", "resting")


def test_a_halted_network_s_height_is_asked_for_and_may_be_unknown() -> None:
    world = World()
    report = world.note(None)
    assert report is not None
    assert report.tip == 90
    world.height, world.clock.ms = None, world.clock.ms + AT_LEAST_MS
    report = world.note(None)
    assert report is not None
    assert report.tip is None


def test_a_clock_that_was_ahead_holds_nothing_up() -> None:
    world = World()
    first = world.note()
    assert first is not None
    world.clock.ms -= 3_600_000
    again = world.note()
    assert again is not None
    assert (again.at, again.version) == (world.clock.ms, 2)
