"""Several nodes behind one interface: order, cool-down, whose word counts. Time is told by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import COOL_DOWN, MOST_COOL_DOWN, Health, Node, Providers
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.rpc import RpcError, TooMuch
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Block, Header, Transfer
from chalicelib.usecases.ports.failures import Contradiction, Unavailable

NETWORK = next(network for network in default_networks("live") if network.slug == "ethereum")


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A node that says what it is told to. `takes` seconds pass with each request."""

    def __init__(self, time: Time, says: Any = "0x1", takes: float = 0.0) -> None:
        self.time, self.says, self.takes = time, says, takes
        self.asked: list[str] = []

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        self.asked.append(method)
        self.time.now += self.takes
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def batch(self, requests: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        return [self.call(method) for method, _ in requests]


def providers(time: Time, *scripted: Scripted) -> Providers:
    return Providers([Node(node, Health(n, time)) for n, node in enumerate(scripted, start=1)])


def test_the_first_answers_while_it_is_well() -> None:
    time = Time()
    first, second = Scripted(time, "a"), Scripted(time, "b")
    both = providers(time, first, second)
    assert [both.call("eth_chainId") for _ in range(3)] == ["a"] * 3
    assert both.batch([("eth_chainId", []), ("eth_blockNumber", [])]) == ["a", "a"]
    assert second.asked == []


def test_one_that_fails_is_left_alone_longer_each_time() -> None:
    time = Time()
    first, second = Scripted(time, Unavailable("gone")), Scripted(time, "b")
    both = providers(time, first, second)
    for failures in range(1, 8):
        assert both.call("eth_chainId") == both.call("eth_chainId") == "b"
        assert len(first.asked) == failures
        time.now += min(MOST_COOL_DOWN, COOL_DOWN * 2 ** (failures - 1)) + 1
    first.says = "a"
    assert both.call("eth_chainId") == "a"


def test_one_that_hangs_is_left_alone_in_proportion() -> None:
    time = Time()
    first, second = Scripted(time, Unavailable("no answer in time"), takes=8.0), Scripted(time, "b")
    both = providers(time, first, second)
    both.call("eth_chainId")
    time.now += 63
    both.call("eth_chainId")
    assert len(first.asked) == 1
    time.now += 1.5
    both.call("eth_chainId")
    assert len(first.asked) == 2


def test_where_all_are_left_alone_they_are_asked_all_the_same() -> None:
    time = Time()
    first, second = Scripted(time, Unavailable("gone")), Scripted(time, Unavailable("gone, too"))
    both = providers(time, first, second)
    for _ in range(2):
        with pytest.raises(Unavailable):
            both.call("eth_chainId")
    second.says = "b"
    assert both.call("eth_chainId") == "b"


REFUSALS = {
    "of the request": (RpcError(3, "execution reverted"), False),
    "of what it says": (RpcError(-32000, "insufficient funds for gas * price + value"), False),
    "of a bad parameter": (RpcError(-32602, "invalid argument 0"), False),
    "no such method": (RpcError(-32601, "the method trace_block does not exist/is not available"), True),
    "no such method, in words": (RpcError(-32000, "Unsupported method: debug_traceBlockByHash"), True),
    "an old state": (RpcError(-32000, "missing trie node 3f2a (path )"), True),
    "an unknown block": (RpcError(-32000, "header not found"), True),
    "Core's unknown block": (RpcError(-5, "Block not found"), True),
    "Core at its start": (RpcError(-28, "Loading block index…"), True),
    "too large an answer": (TooMuch("query returned more than 10000 results"), True),
}


@pytest.mark.parametrize(("refusal", "asks_another"), REFUSALS.values(), ids=REFUSALS.keys())
def test_which_refusals_mean_ask_another(refusal: Exception, asks_another: bool) -> None:
    time = Time()
    first, second = Scripted(time, refusal), Scripted(time, "b")
    both = providers(time, first, second)
    if asks_another:
        assert both.call("eth_call") == "b"
        second.says = Unavailable("gone")
    with pytest.raises(type(refusal)) as raised:
        both.call("eth_call")
    assert raised.value is refusal
    first.says = "a"
    assert both.call("eth_call") == "a", "who refuses is well"


def test_a_payment_goes_to_all_and_one_that_takes_it_is_enough() -> None:
    time = Time()
    nodes = [Scripted(time, Unavailable("gone")), Scripted(time, "0xtx"), Scripted(time, RpcError(-32000, "already known"))]
    assert providers(time, *nodes).call("eth_sendRawTransaction", ["0x02"]) == "0xtx"
    assert [len(node.asked) for node in nodes] == [1, 1, 1]


def test_a_payment_goes_to_all_nodes_at_the_same_time() -> None:
    """One that hangs does not keep it from the others."""
    meet = threading.Barrier(2, timeout=10)

    class Meeting(Scripted):
        def call(self, method: str, params: Sequence[Any] = ()) -> Any:
            meet.wait()
            return super().call(method, params)

    time = Time()
    slow, quick = Meeting(time, Unavailable("no answer in time")), Meeting(time, "0xtx")
    assert providers(time, slow, quick).call("eth_sendRawTransaction", ["0x02"]) == "0xtx"
    assert [len(node.asked) for node in (slow, quick)] == [1, 1]


def test_a_node_that_rests_is_handed_a_payment_only_where_no_other_answers() -> None:
    time = Time()
    rests, well = Scripted(time, Unavailable("gone")), Scripted(time, "0xtx")
    both = providers(time, rests, well)
    both.call("eth_chainId")
    rests.says = "0xtx"
    assert both.call("eth_sendRawTransaction", ["0x02"]) == "0xtx"
    assert rests.asked == ["eth_chainId"]
    well.says = Unavailable("gone, too")
    assert both.call("eth_sendRawTransaction", ["0x02"]) == "0xtx"
    assert rests.asked == ["eth_chainId", "eth_sendRawTransaction"]


def test_a_node_that_hangs_rests_long_though_another_request_failed_at_once() -> None:
    """Else one quick refusal beside each hanging request would buy it a rest of 15 seconds, and the run half a minute less."""
    time = Time()
    health = Health(1, time)

    def refused() -> None:
        time.now += 1
        raise Unavailable("the node answers HTTP 500")

    def hangs() -> None:
        with suppress(Unavailable):
            health.watched(refused)  # begun later, and over sooner
        time.now += 29
        raise Unavailable("the node can not be reached")

    with suppress(Unavailable):
        health.watched(hangs)
    assert (health.failures, health.rests_for) == (1, 240)


def test_requests_that_are_under_way_together_fail_once() -> None:
    """Each failure doubles the cool-down, and one break of the line is not as many as there were requests."""
    time = Time()
    health, begun, broken = Health(1, time), threading.Barrier(3, timeout=10), threading.Event()

    def breaks() -> None:
        if not broken.is_set():
            begun.wait()
            broken.wait(10)
        raise Unavailable("the connection broke")

    def request() -> None:
        with suppress(Unavailable):
            health.watched(breaks)

    threads = [threading.Thread(target=request) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait()
    time.now += 1
    broken.set()
    for thread in threads:
        thread.join()
    assert health.failures == 1
    request()
    assert health.failures == 2


def test_a_payment_that_nobody_takes_is_refused_in_the_words_of_who_answered() -> None:
    time = Time()
    nodes = [Scripted(time, Unavailable("gone")), Scripted(time, RpcError(-32000, "nonce too low"))]
    with pytest.raises(RpcError, match="nonce too low"):
        providers(time, *nodes).call("eth_sendRawTransaction", ["0x02"])
    refused = {"result": False, "code": "DUP_TRANSACTION_ERROR", "message": ""}
    taken = {"result": True, "txid": "ab"}
    assert providers(time, Scripted(time, refused), Scripted(time, taken)).call("wallet/broadcasttransaction", {}) == taken
    assert providers(time, Scripted(time, refused)).call("wallet/broadcasttransaction", {}) == refused


def test_null_is_no_word_that_a_payment_was_taken() -> None:
    """Else a node in front that answers it would have every payment sent again, though the others took it."""
    time = Time()
    assert providers(time, Scripted(time, None), Scripted(time, "0xab")).call("eth_sendRawTransaction", ["0x02"]) == "0xab"
    with pytest.raises(RpcError, match="nonce too low"):
        refuses = Scripted(time, RpcError(-32000, "nonce too low"))
        providers(time, Scripted(time, None), refuses).call("eth_sendRawTransaction", ["0x02"])
    with pytest.raises(Unavailable, match="no node answers"):
        providers(time, Scripted(time, None)).call("eth_sendRawTransaction", ["0x02"])


def transfer(n: int) -> Transfer:
    return Transfer(f"0x{n:064x}", "native", None, "0xa", "0xb", n)


def block(number: int, *numbers: int, branch: str = "") -> Block:
    return Block(number, f"{number}{branch}", f"{number - 1}{branch}", number * 1000, [transfer(n) for n in numbers])


class Chain:
    """A reader of one node's chain, which proves what it tells and, besides, `proves`."""

    def __init__(self, *blocks: Block, proves: tuple[int, ...] = (), contradicts: bool = False) -> None:
        self.chain = {b.number: b for b in blocks}
        self.proves, self.contradicts = proves, contradicts
        self.asked: list[str] = []
        self.trouble: Exception | None = None

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.trouble is not None:
            raise self.trouble

    def tip(self) -> int:
        self._ask("tip")
        return max(self.chain)

    def blocks(self, first: int, last: int, contracts: Any) -> list[Block]:
        self._ask("blocks")
        return [self.chain[n] for n in range(first, last + 1) if n in self.chain]

    def headers(self, first: int, last: int) -> list[Header]:
        self._ask("headers")
        told = [self.chain[n] for n in range(first, last + 1) if n in self.chain]
        return [Header(b.number, b.hash, b.parent_hash, b.time) for b in told]

    def block_hash(self, number: int) -> str | None:
        self._ask("hash")
        found = self.chain.get(number)
        return None if found is None else found.hash

    def proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        self._ask("proven")
        there = {*self.chain[block.number].transfers, *map(transfer, self.proves)}
        if self.contradicts and not set(transfers) <= there:
            raise Contradiction("not so")
        return [t for t in transfers if t in there]

    def receipt(self, txid: str) -> None:
        self._ask("receipt")

    def balance(self, address: str, contract: str | None = None) -> int:
        self._ask("balance")
        return 5


def several(time: Time, *chains: Chain, compared: bool = False) -> QuorumReader:
    seen: list[Any] = [NodeReader(chain, Health(n, time)) for n, chain in enumerate(chains, start=1)]  # type: ignore[arg-type]
    return QuorumReader(NETWORK, seen, lambda: 0.0 if compared else 1.0)


def test_a_poll_keeps_to_the_node_that_told_the_tip() -> None:
    time = Time()
    long, longer = Chain(*map(block, range(10))), Chain(*map(block, range(12)))
    reader = several(time, long, longer)
    assert reader.tip() == 11, "a fresh process knows of no cursor: only the highest is surely not behind it"
    reader.blocks(5, 11, ())
    assert reader.block_hash(11) == "11"
    assert (long.asked, longer.asked) == (["tip"], ["tip", "blocks", "hash"])
    # Behind what was read already is no node for this poll, near as it may be.
    longer.trouble = Unavailable("gone")
    assert reader.tip() == 9
    assert reader.blocks(8, 9, ()) == [block(8), block(9)]


def test_a_node_a_little_ahead_does_not_draw_the_poll_away() -> None:
    time = Time()
    first, second = Chain(*map(block, range(10))), Chain(*map(block, range(10)))
    reader = several(time, first, second)
    assert reader.tip() == 9
    second.chain |= {n: block(n) for n in (10, 11)}
    assert reader.tip() == 9
    second.chain |= {n: block(n) for n in (12, 13)}
    assert reader.tip() == 13, "more than 15 seconds of blocks"


def test_fewer_blocks_than_asked_for_are_believed_when_nobody_has_more() -> None:
    time = Time()
    reader = several(time, Chain(*map(block, range(5))), Chain(*map(block, range(8))))
    assert [b.number for b in reader.blocks(3, 9, ())] == [3, 4, 5, 6, 7]
    assert [h.number for h in reader.headers(3, 9)] == [3, 4, 5, 6, 7]
    assert reader.block_hash(6) == "6"
    assert reader.block_hash(9) is None


def test_what_one_leaves_out_the_other_adds_and_who_left_it_out_rests() -> None:
    time = Time()
    omits, honest = Chain(block(1, 7), proves=(8,)), Chain(block(1, 7, 8))
    reader = several(time, omits, honest, compared=True)
    assert reader.blocks(1, 1, ()) == [block(1, 7, 8)]
    omits.asked.clear()
    reader.blocks(1, 1, ())
    assert omits.asked == []


def test_blocks_of_two_branches_are_not_mixed() -> None:
    time = Time()
    reader = several(time, Chain(block(1, 7)), Chain(block(1, 9, branch="x")), compared=True)
    assert reader.blocks(1, 1, ()) == [block(1, 7)]


def test_two_that_contradict_each_other_prove_nothing_and_a_third_decides() -> None:
    time = Time()
    yes, no, liar = Chain(block(1, 7)), Chain(block(1)), Chain(block(1), contradicts=True)
    with pytest.raises(Unavailable, match="contradict"):
        several(time, no, yes).proven(block(1), [transfer(7)])
    with pytest.raises(Unavailable, match="contradict"):
        several(time, liar, yes).proven(block(1), [transfer(7)])
    assert several(time, no, yes, Chain(block(1, 7))).proven(block(1), [transfer(7)]) == [transfer(7)]
    assert several(time, no, yes, Chain(block(1))).proven(block(1), [transfer(7)]) == []
    assert several(time, no, Chain(block(1))).proven(block(1), [transfer(7)]) == []


@pytest.mark.parametrize(
    ("first", "second", "agreed"),
    [
        (Chain(block(1, 7)), Chain(block(1, 7)), True),
        (Chain(block(1, 7)), Chain(block(1)), False),
        (Chain(block(1, 7)), Chain(block(1, 7, branch="x")), False),
        (Chain(block(1, 7)), Chain(block(0)), False),
        (Chain(block(1, 7)), Chain(block(1, 8), contradicts=True), False),
    ],
    ids=["same", "not proven", "another block", "not so far yet", "another amount"],
)
def test_agreement_is_of_two(first: Chain, second: Chain, agreed: bool) -> None:
    assert several(Time(), first, second).agreed(block(1), [transfer(7)]) is agreed
    assert several(Time(), first, second, Chain(block(1, 7))).agreed(block(1), [transfer(7)]) is True, "two of three"


def test_everybody_gone_is_unavailable() -> None:
    gone = [Chain(block(1)), Chain(block(1))]
    for chain in gone:
        chain.trouble = Unavailable("gone")
    reader = several(Time(), *gone)
    asks: list[Callable[[], Any]] = [
        reader.tip, lambda: reader.blocks(1, 1, ()), lambda: reader.block_hash(1), lambda: reader.proven(block(1), [transfer(7)]),
        lambda: reader.receipt("0x"), lambda: reader.balance("0xa"),
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(Unavailable, match="gone"):
            ask()
    assert reader.agreed(block(1), []) is False
