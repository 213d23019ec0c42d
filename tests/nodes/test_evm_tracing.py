"""What contracts send, seen in traces: by both methods that nodes have, and only what really moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from chalicelib.chains import rpc
from chalicelib.chains.evm import tracing
from chalicelib.chains.evm.frames import internal
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.evm.tracing import Tracer
from chalicelib.chains.rpc import JsonRpc, Request, RpcError
from chalicelib.domain.chain import Transfer
from chalicelib.usecases.ports.failures import Unavailable
from infra.local import tokens
from infra.local.nodes import mined
from infra.local.tokens import call_data, deploy
from tests.nodes.conftest import Chain
from tests.nodes.sending import send, send_native

pytestmark = pytest.mark.nodes

GETH, PARITY = ("debug_traceBlockByHash", "debug_traceTransaction"), ("trace_block", "trace_transaction")


class Without(JsonRpc):
    """The real node, which lacks some methods. `refused`: not for every block."""

    def __init__(self, url: str, methods: Sequence[str], code: int = -32601) -> None:
        super().__init__(url)
        self.methods, self.code = methods, code
        self.asked: list[str] = []

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        self.asked.append(method)
        if method in self.methods:
            raise RpcError(self.code, "the method does not exist")
        return super().call(method, params)

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        self.asked += [method for method, _ in requests]
        if any(method in self.methods for method, _ in requests):
            raise RpcError(self.code, "the method does not exist")
        return super().batch(requests)


def readers(chain: Chain) -> dict[str, EvmReader]:
    return {
        "geth's": EvmReader(chain.network, Without(chain.node.url, PARITY)),
        "parity's": EvmReader(chain.network, Without(chain.node.url, GETH)),
    }


def seen(reader: EvmReader, height: int, to: str) -> list[Transfer]:
    found = []
    for block in reader.blocks(height + 1, reader.tip(), ()):
        mine = [t for t in block.transfers if t.recipient == to]
        assert reader.proven(block, mine) == mine
        found += mine
    return found


def test_a_contract_that_forwards_and_one_that_dies(chain: Chain, stranger: str) -> None:
    relay = deploy(chain.rpc, "Relay")
    height = chain.reader.tip()
    forwarded = send(chain.rpc, relay, call_data("forward(address)", stranger), value=7, gas=200_000)
    # PUSH20 stranger, SELFDESTRUCT, as the code that makes a contract: it dies while it is made, and leaves what it was given.
    died = mined(chain.rpc, tokens.send(chain.rpc, None, data="0x73" + stranger[2:] + "ff", value=9, gas=200_000))
    send_native(chain.rpc, stranger, 11)
    for name, reader in readers(chain).items():
        found = seen(reader, height, stranger)
        assert [(t.txid, t.position, t.sender, t.amount) for t in found[:2]] == [
            (forwarded, f"trace:{stranger}:0", relay, 7),
            (died["transactionHash"], f"trace:{stranger}:0", died["contractAddress"].lower(), 9),
        ], name
        assert [(t.position, t.amount) for t in found[2:]] == [("native", 11)], name


# Sends on what it is given to the address in its first word: CALL(gas, word, callvalue); a failure inside does not concern it.
SENDS_ON = "6000600060006000346000355af100"
# The same, and undoes it: REVERT(0, 0) in the end.
UNDOES = "6000600060006000346000355af160006000fd"
# Sends 5 of what it is given on to the address in its first word, with its second word as data.
SENDS_ON_WITH_DATA = "6020356000526000600060206000346000355af100"


def contract(chain: Chain, code: str) -> str:
    """Deploy `code`: CODECOPY it behind these 12 bytes, RETURN it."""
    size = f"{len(code) // 2:02x}"
    made = mined(chain.rpc, tokens.send(chain.rpc, None, data=f"0x60{size}600c60003960{size}6000f3{code}"))
    assert made["status"] == "0x1"
    return str(made["contractAddress"]).lower()


def word(address: str) -> str:
    return address[2:].rjust(64, "0")


def test_what_was_undone_has_not_moved(chain: Chain, stranger: str) -> None:
    """The whole transaction fails; or a call in it does, which paid a stranger, and the transaction succeeds."""
    undoes, outer = contract(chain, UNDOES), contract(chain, SENDS_ON_WITH_DATA)
    height = chain.reader.tip()
    failed = chain.reader.receipt(send(chain.rpc, undoes, "0x" + word(stranger), value=5, gas=200_000))
    inside = chain.reader.receipt(send(chain.rpc, outer, "0x" + word(undoes) + word(stranger), value=5, gas=300_000))
    assert failed is not None and inside is not None
    assert (failed.success, inside.success) == (False, True)
    for reader in readers(chain).values():
        assert seen(reader, height, stranger) == []
    through = contract(chain, SENDS_ON)
    send(chain.rpc, outer, "0x" + word(through) + word(stranger), value=5, gas=300_000)
    for reader in readers(chain).values():
        assert [(t.sender, t.amount) for t in seen(reader, height, stranger)] == [(through, 5)]


def test_a_node_that_can_not_trace_is_read_without_unless_it_must(chain: Chain, stranger: str) -> None:
    relay = deploy(chain.rpc, "Relay")
    height = chain.reader.tip()
    send(chain.rpc, relay, call_data("forward(address)", stranger), value=7, gas=200_000)
    can_not = Without(chain.node.url, GETH + PARITY)
    reader = EvmReader(chain.network, can_not)
    for _ in range(2):
        assert seen(reader, height, stranger) == []
    assert sum(method in GETH + PARITY for method in can_not.asked) == 2, "found out once"
    with pytest.raises(Unavailable, match="must be traced"):
        EvmReader(replace(chain.network, tracing="on"), can_not).blocks(height + 1, height + 1, ())
    off = Without(chain.node.url, ())
    assert seen(EvmReader(replace(chain.network, tracing="off"), off), height, stranger) == []
    assert not set(off.asked) & {*GETH, *PARITY}


def test_one_block_that_can_not_be_traced_stops_nobody(chain: Chain, stranger: str, caplog: pytest.LogCaptureFixture) -> None:
    relay = deploy(chain.rpc, "Relay")
    height = chain.reader.tip()
    for _ in range(3):
        send(chain.rpc, relay, call_data("forward(address)", stranger), value=7, gas=200_000)
    heavy = chain.reader.block_hash(height + 2)

    class Heavy(JsonRpc):
        def batch(self, requests: Sequence[Request]) -> list[Any]:
            if any(method == GETH[0] and params[0] == heavy for method, params in requests):
                raise RpcError(-32000, "execution timeout")
            return super().batch(requests)

    reader = EvmReader(chain.network, Heavy(chain.node.url))
    reader.blocks(height + 1, height + 1, ())
    assert len(seen(reader, height, stranger)) == 2
    assert f"ALARM ethereum: block {height + 2} can not be traced" in caplog.text
    strict = EvmReader(replace(chain.network, tracing="on"), Heavy(chain.node.url))
    strict.blocks(height + 1, height + 1, ())
    with pytest.raises(Unavailable):
        strict.blocks(height + 1, height + 3, ())


def test_a_node_that_traces_too_slowly_holds_up_no_payment(chain: Chain, stranger: str, caplog: pytest.LogCaptureFixture) -> None:
    relay = deploy(chain.rpc, "Relay")
    height = chain.reader.tip()
    for _ in range(3):
        send(chain.rpc, relay, call_data("forward(address)", stranger), value=7, gas=200_000)

    class Slow(Without):
        def batch(self, requests: Sequence[Request]) -> list[Any]:
            answers = super().batch(requests)
            if requests[0][0] in GETH:
                raise Unavailable("the node does not answer in time")
            return answers

    slow = Slow(chain.node.url, ())
    reader = EvmReader(chain.network, slow)
    assert reader.traces is None
    for _ in range(2):
        assert seen(reader, height, stranger) == []
    assert slow.asked.count(GETH[0]) == 2, "one batch of two blocks, and then left in peace"
    assert reader.traces is False, "balances are compared meanwhile"
    assert "ALARM ethereum" in caplog.text
    with pytest.raises(Unavailable, match="in time"):
        EvmReader(replace(chain.network, tracing="on"), slow).blocks(height + 1, height + 1, ())


def test_a_trace_that_a_node_made_up_is_not_proven(chain: Chain, stranger: str) -> None:
    relay = deploy(chain.rpc, "Relay")
    height = chain.reader.tip()
    txid = send(chain.rpc, relay, call_data("forward(address)", stranger), value=7, gas=200_000)
    block = chain.reader.blocks(height + 1, height + 1, ())[0]
    forged = Transfer(txid, f"trace:{stranger}:0", None, relay, stranger, 8)
    second = Transfer(txid, f"trace:{stranger}:1", None, relay, stranger, 7)
    for reader in readers(chain).values():
        assert reader.proven(block, [forged, second]) == []
    assert internal([], block) == []


# Calls itself until the gas is gone: PUSH0 x5, ADDRESS, GAS, CALL.
CALLS_ITSELF = "5f5f5f5f5f305af100"
# Calls nobody, as often as its first word says, with 64 KB of nothing as data: a trace repeats them each time.
CALLS_WITH_MUCH = "5f355b5f5f620100005f5f60995af15060019003806002" + "5700"


def beside(chain: Chain, stranger: str, bad: str, data: str, gas: int) -> tuple[int, str]:
    """One block with a payment by a contract, one that spoils the trace, and a payment; its number, and the bad one's id."""
    relay, spoiler = deploy(chain.rpc, "Relay"), contract(chain, bad)
    chain.rpc.call("evm_setAutomine", [False])
    try:
        forward = call_data("forward(address)", stranger)
        tokens.send(chain.rpc, relay, data=forward, value=7, gas=200_000)
        spoilt = tokens.send(chain.rpc, spoiler, data=data, gas=gas)
        tokens.send(chain.rpc, relay, data=forward, value=8, gas=200_000)
        chain.rpc.call("evm_mine")
    finally:
        chain.rpc.call("evm_setAutomine", [True])
    return int(mined(chain.rpc, spoilt)["blockNumber"], 16), spoilt


@pytest.mark.parametrize("mode", ["auto", "on"])
@pytest.mark.parametrize("flat", [True, False])
def test_calls_nested_too_deep_spoil_no_trace_but_their_own(
    chain: Chain, stranger: str, caplog: pytest.LogCaptureFixture, mode: str, flat: bool
) -> None:
    """More than 1,024 calls in calls: one transaction of 32 million gas. A flat trace can be read, where the node has one."""
    chain.rpc.call("evm_setBlockGasLimit", [hex(60_000_000)])
    height, spoilt = beside(chain, stranger, CALLS_ITSELF, "0x", 32_000_000)
    node = Without(chain.node.url, () if flat else ("trace_block", "trace_transaction"))
    reader = EvmReader(replace(chain.network, tracing=mode), node)
    for _ in range(2):
        assert [t.amount for t in seen(reader, height - 1, stranger)] == [7, 8]
    assert reader.traces is True, "the node is not at fault"
    assert (f"ALARM ethereum: block {height} can not be traced, and was read without {spoilt}" in caplog.text) is not flat


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_trace_larger_than_the_function_spoils_no_trace_but_its_own(
    chain: Chain, stranger: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(rpc, "MOST_TRACED", 100_000)
    height, spoilt = beside(chain, stranger, CALLS_WITH_MUCH, "0x" + f"{2:064x}", 3_000_000)
    for name, lacking in (("geth's", PARITY), ("parity's", GETH)):
        caplog.clear()
        reader = EvmReader(replace(chain.network, tracing=mode), Without(chain.node.url, lacking))
        for _ in range(2):
            assert [t.amount for t in seen(reader, height - 1, stranger)] == [7, 8], name
        assert reader.traces is True
        assert f"ALARM ethereum: block {height} can not be traced, and was read without {spoilt}" in caplog.text


def test_no_time_for_all_transactions_of_a_spoilt_block(
    chain: Chain, stranger: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What must be traced is gone on with; else the rest is left out, and said."""
    monkeypatch.setattr(rpc, "MOST_TRACED", 100_000)
    monkeypatch.setattr(tracing, "TRANSACTIONS_AT_ONCE", 1)
    height, _ = beside(chain, stranger, CALLS_WITH_MUCH, "0x" + f"{2:064x}", 3_000_000)
    block = replace(chain.reader.blocks(height, height, ())[0], transfers=[])
    running = {block.hash: tracing.that_run(chain.rpc.call("eth_getBlockByNumber", [hex(height), True]))}
    for must in (False, True):
        # Each look at this clock is 20 seconds later.
        tracer = Tracer("ethereum", chain.rpc, must=must, clock=partial(next, count(0.0, 20.0)))
        found = replace(block, transfers=[])
        for left in (2, 1) if must else ():
            with pytest.raises(Unavailable, match=f"{left} are left"):
                tracer.add([found], running)
        tracer.add([found], running)
        assert [t.amount for t in found.transfers if t.recipient == stranger] == ([7, 8] if must else [7])
    assert f"ALARM ethereum: block {height} can not be traced, and was read without: no time" in caplog.text
