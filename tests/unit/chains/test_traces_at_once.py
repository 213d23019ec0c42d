"""Traces that are fetched in several requests at the same time, and nodes that are asked together: the same answers, checked as
before, and sooner. Whatever one of the requests meets, no block loses a transfer that it would have had alone."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from chalicelib.chains import rpc as rpc_module
from chalicelib.chains.evm import tracing
from chalicelib.chains.evm.logs import LogReader
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.evm.tracing import Tracer
from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.rpc import JsonRpc, Limited, Request, RpcError
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Block, Transfer
from chalicelib.usecases.ports.failures import Unanswered, Unavailable
from tests.support.heavy_node import served
from tests.support.traced_blocks import PAID, TracedBlocks
from tests.unit.chains.rpc_server import Answer, server

NETWORK = next(network for network in default_networks("live") if network.slug == "ethereum")
WHOLE = "debug_traceBlockByHash"


@dataclass
class Watched:
    """The answers of a node, with how many requests were under way at the same time, and how many blocks each traced. `refuse`
    says what a request that traces these blocks meets."""

    blocks: TracedBlocks
    seconds: float = 0.0
    traced: list[int] = field(default_factory=list)
    most: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refuse(self, names: Sequence[str], at_once: int) -> Exception | None:
        return None

    def batch(self, real: JsonRpc, requests: Sequence[Request]) -> list[Any]:
        names = [params[0] for method, params in requests if method in (WHOLE, "trace_block")]
        if not names:
            return JsonRpc.batch(real, requests)
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.traced.append(len(names))
            refused = self.refuse(names, self._now)
        try:
            time.sleep(self.seconds)
            if refused is not None:
                raise refused
            return JsonRpc.batch(real, requests)
        finally:
            with self._lock:
                self._now -= 1


@contextmanager
def reading(watched: Watched, mode: str = "auto") -> Iterator[EvmReader]:
    class Node(JsonRpc):
        def batch(self, requests: Sequence[Request]) -> list[Any]:
            return watched.batch(self, requests)

    with served(watched.blocks.told) as url:
        node = Node(url)
        logs = LogReader("ethereum", node, audited=0.0)
        yield EvmReader(replace(NETWORK, tracing=mode), node, logs)  # type: ignore[arg-type]


def paid(blocks: Sequence[Block]) -> dict[int, list[int]]:
    return {block.number: [t.amount for t in block.transfers if t.recipient == PAID] for block in blocks}


def all_paid(blocks: TracedBlocks) -> dict[int, list[int]]:
    return {number: blocks.paid(number) for number in range(1, blocks.blocks + 1)}


@pytest.mark.parametrize("kind", ["geth", "parity"])
def test_requests_go_out_at_once_and_have_so_many_transactions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "TOGETHER", 12)
    watched = Watched(TracedBlocks(40, 4, kind=kind), seconds=0.02)
    with reading(watched) as reader:
        assert paid(reader.blocks(1, 40, ())) == all_paid(watched.blocks)
    asked = watched.traced[1:] if kind == "geth" else watched.traced[2:]
    assert max(asked) == 3 and sum(asked) == 38, "twelve transactions are three blocks; the first request had two"
    assert 2 <= watched.most <= rpc_module.AT_ONCE


def test_a_block_with_more_transactions_is_a_request_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "TOGETHER", 3)
    watched = Watched(TracedBlocks(9, 4))
    with reading(watched) as reader:
        assert paid(reader.blocks(1, 9, ())) == all_paid(watched.blocks)
    assert watched.traced[1:] == [1] * 7


def test_a_node_that_allows_one_request_at_a_time_is_asked_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's limit is no reason to leave traces out, nor to leave the node in peace for ten minutes."""
    monkeypatch.setattr(tracing, "TOGETHER", 4)

    class Narrow(Watched):
        def refuse(self, names: Sequence[str], at_once: int) -> Exception | None:
            return Limited("the node's limit is reached") if at_once > 1 else None

    for mode in ("auto", "on"):
        watched = Narrow(TracedBlocks(20, 4), seconds=0.01)
        with reading(watched, mode) as reader:
            assert paid(reader.blocks(1, 20, ())) == all_paid(watched.blocks)
            assert reader.traces is True
        assert watched.most > 1


def test_a_limit_of_the_node_is_told_from_other_silence() -> None:
    """By the HTTP status, and by the code that EIP-1474 has for it."""
    for told in (Answer(b"{}", 429), Answer(b'[{"id":0,"error":{"code":-32005,"message":"slow down"}}]')):
        with server(lambda asked, told=told: told) as node, pytest.raises(Limited):  # type: ignore[misc]
            JsonRpc(node.url).batch([("eth_chainId", [])])


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_traces_that_are_too_large_together_are_asked_for_alone(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All answers under way have the room of one batch: else eight of them were eight times as much memory."""
    watched = Watched(TracedBlocks(24, 4, padding=2_000), seconds=0.005)
    monkeypatch.setattr(tracing, "TOGETHER", 4)
    monkeypatch.setattr(rpc_module, "MOST_TOGETHER", 45_000)
    held: list[int] = []
    take = rpc_module._Room.take

    def noted(room: Any, size: int) -> None:
        take(room, size)
        held.append(45_000 - room._left)

    monkeypatch.setattr(rpc_module._Room, "take", noted)
    with reading(watched, mode) as reader:
        assert paid(reader.blocks(1, 24, ())) == all_paid(watched.blocks)
        assert reader.traces is True
    assert watched.most > 1 and sum(watched.traced) > 24, "some had to be asked for again"
    assert max(held) <= 45_000


def test_a_slow_node_is_asked_half_as_many_at_once_and_a_quick_one_twice() -> None:
    tracer = Tracer("ethereum", JsonRpc("http://127.0.0.1:1"))
    assert [tracer._paced(tracing.SOON - 0.1)] == [2]
    for took, wanted in ((0.1, 2), (0.1, 4), (0.1, 8), (0.1, 8), (2.0, 8), (3.1, 4), (9.0, 2), (9.0, 1), (9.0, 1), (0.5, 2)):
        tracer._at_once = tracer._paced(took)
        assert tracer._at_once == wanted, took


def ninth(blocks: TracedBlocks) -> str:
    return str(orjson.loads(blocks.told("eth_getBlockByNumber", ["0x9", False]))["hash"])


def lost(error: Exception, seconds: float = 0.01) -> Watched:
    blocks = TracedBlocks(40, 4)
    name = ninth(blocks)

    class Losing(Watched):
        def refuse(self, names: Sequence[str], at_once: int) -> Exception | None:
            return error if name in names else None

    return Losing(blocks, seconds)


def test_a_request_without_an_answer_lets_the_node_rest(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """What the others of the same time told counts, what was not asked yet is read without, and balances are compared meanwhile."""
    monkeypatch.setattr(tracing, "TOGETHER", 4)
    silent = Unanswered("the node does not answer in time")
    watched = lost(silent)
    with reading(watched) as reader:
        found = paid(reader.blocks(1, 40, ()))
        assert reader.traces is False
        assert len(found) == 40 and found[9] == [] and found[40] == []
        told = [number for number, units in found.items() if units]
        assert all(found[number] == watched.blocks.paid(number) for number in told)
        assert {1, 2, 3, 4, 5, 6, 7, 8} <= {*told}
        asked = len(watched.traced)
        assert paid(reader.blocks(1, 3, ())) == {1: [], 2: [], 3: []} and len(watched.traced) == asked
    assert "ALARM ethereum: block 9 is not traced in time" in caplog.text
    with reading(lost(silent), "on") as strict, pytest.raises(Unavailable, match="in time"):
        strict.blocks(1, 40, ())


def test_a_block_that_is_refused_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(tracing, "TOGETHER", 12)
    refused = RpcError(-32000, "execution timeout")
    watched = lost(refused)
    with reading(watched) as reader:
        assert paid(reader.blocks(1, 40, ())) == all_paid(watched.blocks) | {9: []}
        assert reader.traces is True
    assert "ALARM ethereum: block 9 can not be traced" in caplog.text
    with reading(lost(refused), "on") as strict, pytest.raises(Unavailable, match="does not trace block 9"):
        strict.blocks(1, 40, ())


def test_traces_of_payments_are_proven_together() -> None:
    watched = Watched(TracedBlocks(3, 30))
    asked: Counter[str] = Counter()
    told = watched.blocks.told

    def counted(method: str, params: Any) -> bytes:
        asked[method] += 1
        return told(method, params)

    with served(counted) as url:
        node = JsonRpc(url)
        reader = EvmReader(NETWORK, node, LogReader("ethereum", node, audited=0.0))
        block = reader.blocks(2, 2, ())[0]
        mine = [t for t in block.transfers if t.recipient == PAID]
        forged = mine[7]._replace(amount=1)
        assert Tracer("ethereum", node).proven(block, [mine[0]]) == {mine[0]}
        assert asked["debug_traceTransaction"] == 1
        assert reader._tracer is not None
        assert reader._tracer.proven(block, [*mine, forged]) == {*mine}
    assert asked["debug_traceTransaction"] == 31


# ---- Nodes ------------------------------------------------------------------------------------------------------------------


class Meeting:
    """A reader whose every answer waits until the other node is asked as well. Whoever asks one after the other meets nobody."""

    traces = True

    def __init__(self, barrier: threading.Barrier | None, chain: Sequence[Block], fails: bool = False) -> None:
        self._barrier, self._chain, self._fails = barrier, list(chain), fails
        self.asked: Counter[str] = Counter()

    def _met(self, name: str) -> None:
        self.asked[name] += 1
        if self._barrier is not None:
            self._barrier.wait(10)
        if self._fails:
            raise Unavailable("the node is down")

    def tip(self) -> int:
        self._met("tip")
        return self._chain[-1].number

    def blocks(self, first: int, last: int, contracts: Any) -> list[Block]:
        self._met("blocks")
        return [replace(block) for block in self._chain if first <= block.number <= last]

    def block_hash(self, number: int) -> str:
        self._met("block_hash")
        return self._chain[number].hash

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        self._met("proven")
        return [t for t in transfers if t in self._chain[block.number].transfers]

    def balances_at(self, addresses: Sequence[str], number: int, block_hash: str, contract: str | None = None) -> list[int]:
        self._met("balances_at")
        return [5 for _ in addresses]

    def nonces(self, addresses: Sequence[str]) -> list[int]:
        self._met("nonces")
        return [7 for _ in addresses]


PAYMENT = Transfer("0xt1", "native", None, "0xs", "0xr", 5)
CHAIN = [Block(n, f"h{n}", f"h{n - 1}", n, [PAYMENT] if n == 3 else []) for n in range(6)]


def several(*readers: Any, family: str = "evm") -> QuorumReader:
    network: Any = SimpleNamespace(id="live:ethereum", block_time=12, agreement_usd=1, family=family)
    return QuorumReader(network, [NodeReader(reader, Health(n)) for n, reader in enumerate(readers, 1)])


def test_two_nodes_are_asked_at_the_same_time() -> None:
    barrier = threading.Barrier(2)
    first, second = Meeting(barrier, CHAIN), Meeting(barrier, CHAIN)
    reader = several(first, second)
    assert reader.tip() == 5
    assert reader.blocks(1, 5, ()) == CHAIN[1:]
    assert reader.balances_at(["0x1"], 3, "h3") == [5]
    assert reader.nonces(["0x1"]) == [7]
    assert first.asked == second.asked == {"tip": 1, "blocks": 1, "balances_at": 1, "nonces": 1}


def test_two_nodes_vouch_for_a_block_at_the_same_time() -> None:
    """Each question of the first meets the same question of the second."""
    barrier = threading.Barrier(2)
    reader = several(Meeting(barrier, CHAIN), Meeting(barrier, CHAIN))
    assert reader.agreed(CHAIN[3], [PAYMENT])


def test_one_that_says_otherwise_does_not_vouch(caplog: pytest.LogCaptureFixture) -> None:
    forked = [replace(block, hash=f"x{block.number}") for block in CHAIN]
    without = [replace(block, transfers=[]) for block in CHAIN]
    for other in (forked, without):
        caplog.clear()
        assert not several(Meeting(None, CHAIN), Meeting(None, other)).agreed(CHAIN[3], [PAYMENT])
        assert "node 2 says otherwise of block 3" in caplog.text
        assert several(Meeting(None, CHAIN), Meeting(None, other), Meeting(None, CHAIN)).agreed(CHAIN[3], [PAYMENT])


def test_what_only_the_second_tells_is_kept_though_it_was_asked_ahead(caplog: pytest.LogCaptureFixture) -> None:
    without = [replace(block, transfers=[]) for block in CHAIN]
    found = several(Meeting(None, without), Meeting(None, CHAIN)).blocks(1, 5, ())
    assert [block.transfers for block in found if block.number == 3] == [[PAYMENT]]
    assert "ALARM live:ethereum: of block 3" in caplog.text


def test_a_first_node_that_fails_leaves_the_second_as_teller_and_a_third_to_compare() -> None:
    readers = Meeting(None, CHAIN, fails=True), Meeting(None, CHAIN), Meeting(None, CHAIN)
    assert several(*readers).blocks(1, 5, ()) == CHAIN[1:]
    assert [reader.asked["blocks"] for reader in readers] == [1, 1, 1]


def test_a_second_node_that_fails_is_replaced_by_a_third(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    without = [replace(block, transfers=[]) for block in CHAIN]
    readers = Meeting(None, without), Meeting(None, CHAIN, fails=True), Meeting(None, CHAIN)
    found = several(*readers).blocks(1, 5, ())
    assert [block.transfers for block in found if block.number == 3] == [[PAYMENT]]
    assert [reader.asked["blocks"] for reader in readers] == [1, 1, 1]
    with pytest.raises(Unavailable):
        several(*(Meeting(None, CHAIN, fails=True) for _ in range(2))).blocks(1, 5, ())


def test_blocks_of_coins_are_read_one_node_after_the_other() -> None:
    """Each may have a hundred thousand outputs: two at the same time do not fit."""
    busy = threading.Lock()

    class Alone(Meeting):
        def _blocks(self, first: int, last: int, contracts: Any) -> list[Block]:
            assert busy.acquire(blocking=False)
            time.sleep(0.02)
            busy.release()
            return super()._blocks(first, last, contracts)

    readers = Alone(None, CHAIN), Alone(None, CHAIN)
    assert several(*readers, family="utxo").blocks(1, 5, ()) == CHAIN[1:]
    assert [reader.asked["blocks"] for reader in readers] == [1, 1]
