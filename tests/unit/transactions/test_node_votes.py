"""Which nodes have a vote: silence alone takes it, half an hour of it, and the first answer gives it back. Stored seldom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health, Heard, electorate
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.rpc import NotServed, RpcError, TooMuch
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.transactions.node_silence import Contact, NodeSilence
from chalicelib.usecases.ports.failures import Contradiction, Unanswered, Unavailable
from chalicelib.usecases.transactions.node_votes import NodeVotes
from tests.support.memory_store import MemoryStore

NETWORK = next(network for network in default_networks("live") if network.slug == "bsc")
MINUTE = 60_000


class World:
    """Two nodes, polls of several processes, and the time, which no process has of its own."""

    def __init__(self) -> None:
        self.store, self.now, self.away = MemoryStore(), 1_000_000, [False, False]
        self.writes = 0
        commit = self.store.commit

        def counted(changes: Sequence[Any]) -> None:
            self.writes += 1
            commit(changes)

        self.store.commit = counted  # type: ignore[method-assign]

    def now_ms(self) -> int:
        return self.now

    def process(self) -> QuorumReader:
        """What a fresh function has: it remembers nothing."""
        healths = [Health(n + 1, self.seconds, name=f"node{n}") for n in range(2)]
        nodes = [Heard(Asked(self, n), health) for n, health in enumerate(healths)]
        return QuorumReader(NETWORK, [NodeReader(Reader(node), health) for node, health in zip(nodes, healths, strict=True)])  # type: ignore[arg-type]

    def seconds(self) -> float:
        return self.now / 1000

    def votes(self, reader: Any) -> NodeVotes:
        return NodeVotes(NETWORK, reader, self.store, self, 30)  # type: ignore[arg-type]

    def poll(self, reader: QuorumReader | None = None) -> QuorumReader:
        reader = reader or self.process()
        self.votes(reader).look()
        return reader

    @property
    def since(self) -> dict[str, int]:
        found = self.store.get(NodeSilence, network=NETWORK.id)
        return {} if found is None else found.since


class Asked:
    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        if self.world.away[self.number]:
            raise Unanswered("the node can not be reached")
        return 7

    def batch(self, requests: Any) -> Any:
        return [self.call(method) for method, _ in requests]


class Reader:
    def __init__(self, node: Heard) -> None:
        self.node = node

    def tip(self) -> int:
        return int(self.node.call("eth_blockNumber"))

    def receipt(self, txid: str) -> None:
        self.node.call("eth_getTransactionReceipt")

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        """Of nothing, without asking the node."""
        return list(transfers)


def test_nothing_is_written_while_all_answer() -> None:
    world = World()
    for _ in range(5):
        assert world.poll().voteless == 0
        world.now += MINUTE
    assert (world.writes, world.since) == (0, {})


@pytest.mark.parametrize("warm", [False, True])
def test_half_an_hour_of_silence_takes_the_vote_and_is_two_writes(warm: bool, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    kept = world.process() if warm else None
    world.away[1] = True
    began = world.now
    for minute in range(30):
        assert world.poll(kept).voteless == 0, minute
        world.now += MINUTE
    assert "has not answered" not in caplog.text
    reader = world.poll(kept)
    assert (reader.voteless, world.since, world.writes) == (1, {"node1": began}, 1)
    assert "ALARM live:bsc: node 2 has not answered for 30 minutes and has no vote" in caplog.text
    world.away[1] = False
    world.now += 20 * MINUTE
    reader = world.poll(kept)
    assert (reader.voteless, [health.has_vote for health in reader.healths]) == (0, [True, True])
    assert (world.since, world.writes) == ({}, 2)


def test_a_node_that_answers_between_two_polls_begins_anew() -> None:
    """The half hour is of silence: an answer to anything, also in a poll that wrote nothing of it yet, ends it."""
    world = World()
    world.away[1] = True
    world.poll()
    world.now += 29 * MINUTE
    world.away[1] = False
    reader = world.process()
    assert list(reader.testimonies("0x1")) == [None, None]
    world.away[1] = True
    assert world.poll(reader).voteless == 0
    world.now += 2 * MINUTE
    assert world.poll().voteless == 0
    world.now += 30 * MINUTE
    assert world.poll().voteless == 1


def test_a_node_that_fails_behind_the_look_is_noted_by_the_next_one_though_it_is_left_alone() -> None:
    world = World()
    reader = world.poll()
    assert list(reader.testimonies("0x1")) == [None, None]
    world.away[1] = True
    assert list(reader.testimonies("0x1")) == [None]
    assert reader.healths[1].rests_for > 0
    world.poll(reader)
    assert (world.since, world.writes) == ({"node1": world.now}, 1)
    for _ in range(3):
        world.poll(reader)
    assert world.writes == 1


def test_one_call_that_fails_is_no_silence_and_no_write() -> None:
    """A method that the provider does not serve, once a poll, and the last that it is asked."""
    world = World()
    reader = world.process()
    for _ in range(5):
        world.poll(reader)
        world.away[1] = True
        list(reader.testimonies("0x1"))
        world.away[1] = False
        world.now += MINUTE
    assert (world.writes, world.since) == (0, {})


def test_what_is_known_without_asking_the_node_is_no_answer_of_it() -> None:
    world = World()
    world.away[1] = True
    reader = world.poll()
    block = Block(1, "0xb", "0xa", 0)
    for minute in range(30):
        for seen in reader.healths:
            seen.watched(lambda: Reader(Heard(Asked(world, 1), Health(1))).proven(block, []))
        assert world.poll(reader).voteless == 0, minute
        world.now += MINUTE
    assert world.poll(reader).voteless == 1


def test_one_without_a_vote_has_it_back_with_its_first_word() -> None:
    world = World()
    world.away[1] = True
    world.poll()
    world.now += 31 * MINUTE
    reader = world.poll()
    assert (reader.voteless, list(reader.testimonies("0x1"))) == (1, [None])
    world.away[1] = False
    assert (reader.healths[1].rests_for > 0, list(reader.testimonies("0x1"))) == (True, [None])
    world.poll(reader)
    assert (reader.voteless, list(reader.testimonies("0x1")), world.since) == (0, [None, None], {})


def test_where_nobody_answers_all_lose_their_votes_and_nobody_decides() -> None:
    world = World()
    world.away = [True, True]
    for _ in range(2):
        with pytest.raises(Unavailable):
            world.poll()
        world.now += 30 * MINUTE
    reader = world.process()
    with pytest.raises(Unavailable):
        world.poll(reader)
    assert reader.voteless == 2
    with pytest.raises(Unavailable):
        list(reader.testimonies("0x1"))


def test_a_node_that_is_not_configured_any_more_is_forgotten() -> None:
    before = NodeSilence(NETWORK.id, {"gone": 5, "here": 6})
    assert before.after([Contact("here", None), Contact("new", True)], 100) == {"here": 6}
    assert before.after([Contact("here", False), Contact("new", False)], 100) == {"here": 6, "new": 100}
    assert before.after([Contact("here", True)], 100) == {}


def test_another_function_takes_votes_as_they_are_stored() -> None:
    world = World()
    world.away[1] = True
    world.poll()
    world.now += 30 * MINUTE
    reader = world.process()
    world.votes(reader).know()
    assert reader.voteless == 0  # nobody has asked it here: it may well answer
    assert list(reader.testimonies("0x1")) == [None]
    assert (reader.voteless, world.writes) == (1, 1)


def test_two_polls_at_once_write_it_once() -> None:
    world = World()
    world.away[1] = True
    first, second = world.process(), world.process()
    world.poll(first)
    began = world.now
    world.now += 1
    world.poll(second)
    assert (world.since, world.writes) == ({"node1": began}, 1)


@pytest.mark.parametrize(
    ("error", "answered"),
    [
        (Unanswered("the node can not be reached"), False),
        (NotServed("the node answers HTTP 403"), False),
        (RpcError(-32000, "no"), True),
        (TooMuch("too much"), True),
        (Unavailable("the node's answer is not JSON"), True),
        (Contradiction("it says otherwise"), True),
        (None, True),
    ],
)
def test_whatever_a_node_says_is_an_answer(error: Exception | None, answered: bool) -> None:
    class Says:
        def call(self, method: str, params: Any = ()) -> Any:
            if error is not None:
                raise error

        def batch(self, requests: Any) -> Any:
            return self.call("batch")

    asks: list[Callable[[Heard], Any]] = [lambda node: node.call("eth_chainId"), lambda node: node.batch([])]
    for ask in asks:
        health = Health(1)
        node = Heard(Says(), health)
        assert health.taken() is None
        try:
            ask(node)
        except Exception as raised:  # noqa: BLE001 - whatever it is, it is passed on as it was
            assert raised is error
        assert (health.taken(), health.silent, health.taken()) == (answered, not answered, None)


def test_only_those_with_a_vote_are_waited_for_before_a_loss() -> None:
    class Silent:
        def call(self, method: str, params: Any = ()) -> Any:
            raise Unanswered("gone")

        def batch(self, requests: Any) -> Any:
            raise Unanswered("gone")

    healths = [Health(1), Health(2)]
    nodes = [Heard(Silent(), health) for health in healths]
    for node in nodes:
        with pytest.raises(Unavailable):
            node.call("eth_chainId")
    assert electorate(nodes) == nodes
    healths[1].has_vote = False
    assert electorate(nodes) == nodes[:1]
    healths[0].has_vote = False
    assert electorate(nodes) == nodes  # where nobody has a vote, everybody's word is waited for
