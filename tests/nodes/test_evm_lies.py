"""A node that lies, lags or garbles: whatever it says, nothing is skipped in silence (money rule 11).

The answers are a real node's, changed in one place on their way to the reader.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.rpc import JsonRpc, Request, RpcError
from chalicelib.usecases.ports.failures import Contradiction, Unavailable
from infra.local import tokens
from infra.local.nodes import mine
from infra.local.tokens import call_data
from tests.nodes.conftest import Chain
from tests.nodes.sending import send_native, send_token

pytestmark = pytest.mark.nodes

Change = Callable[[str, Any], Any]
"""Takes a method and its answer, gives the answer that the reader gets to see."""


class Changed(JsonRpc):
    """The real node, whose answers go through `change`. Every request is noted."""

    def __init__(self, url: str, change: Change) -> None:
        super().__init__(url)
        self._change = change
        self.asked: list[str] = []

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        self.asked.append(method)
        return self._change(method, super().call(method, params))

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        self.asked += [method for method, _ in requests]
        answers = super().batch(requests)
        return [self._change(method, copy.deepcopy(answer)) for (method, _), answer in zip(requests, answers, strict=True)]


def reader(chain: Chain, change: Change) -> tuple[EvmReader, Changed]:
    rpc = Changed(chain.node.url, change)
    return EvmReader(chain.network, rpc), rpc


@pytest.fixture
def height(chain: Chain, stranger: str) -> int:
    """Two blocks after it: a native transfer, and two transfers of USDC."""
    mine(chain.rpc)
    before = chain.reader.tip()
    send_native(chain.rpc, stranger, 5)
    chain.rpc.call("evm_setAutomine", [False])
    tokens.send(chain.rpc, chain.usdc, data=call_data("mint(address,uint256)", stranger, 10), gas=100_000)
    tokens.send(chain.rpc, chain.usdc, data=call_data("mint(address,uint256)", stranger, 11), gas=100_000)
    mine(chain.rpc)
    chain.rpc.call("evm_setAutomine", [True])
    return before


def setting(method: str, name: str, value: Any, *, row: str | None = None) -> Change:
    """Every answer to `method` gets `name` = `value`: itself, its rows, or the rows of its field `row`."""

    def change(asked: str, answer: Any) -> Any:
        if asked != method or answer is None:
            return answer
        rows = answer[row] if row is not None else answer
        for target in rows if isinstance(rows, list) else [rows]:
            if value is KeyError:
                target.pop(name)
            else:
                target[name] = value
        return answer

    return change


OTHER_HASH = "0x" + "5a" * 32
BLOCK_LIES = {
    "another number": setting("eth_getBlockByNumber", "number", "0x1"),
    "no number": setting("eth_getBlockByNumber", "number", None),
    "a hash that is none": setting("eth_getBlockByNumber", "hash", "0x12"),
    "no hash": setting("eth_getBlockByNumber", "hash", KeyError),
    "two branches": setting("eth_getBlockByNumber", "parentHash", OTHER_HASH),
    "no time": setting("eth_getBlockByNumber", "timestamp", "yesterday"),
    "transactions missing": setting("eth_getBlockByNumber", "transactions", None),
    "transactions as hashes": setting("eth_getBlockByNumber", "transactions", [OTHER_HASH]),
    "negative value": setting("eth_getBlockByNumber", "value", "-0x5", row="transactions"),
    "value with blanks": setting("eth_getBlockByNumber", "value", " 0x5", row="transactions"),
    "value of more than there is": setting("eth_getBlockByNumber", "value", hex(10**38), row="transactions"),
    "value missing": setting("eth_getBlockByNumber", "value", KeyError, row="transactions"),
    "recipient too short": setting("eth_getBlockByNumber", "to", "0x12", row="transactions"),
    "sender missing": setting("eth_getBlockByNumber", "from", None, row="transactions"),
    "another block's transaction": setting("eth_getBlockByNumber", "blockHash", OTHER_HASH, row="transactions"),
    "another chain": lambda method, answer: "0x38" if method == "eth_chainId" else answer,
    "a bloom that is none": setting("eth_getBlockByNumber", "logsBloom", "x" * 514),
}
LOG_LIES = {
    "another block's log": setting("eth_getLogs", "blockHash", OTHER_HASH),
    "removed": setting("eth_getLogs", "removed", True),
    "a contract not asked for": setting("eth_getLogs", "address", "0x" + "99" * 20),
    "a topic not asked for": setting("eth_getLogs", "topics", [OTHER_HASH] * 3),
    "topics that are none": setting("eth_getLogs", "topics", None),
    "no topics": setting("eth_getLogs", "topics", []),
    "garbled data": setting("eth_getLogs", "data", "0x1"),
    "data missing": setting("eth_getLogs", "data", KeyError),
    "the same log twice": setting("eth_getLogs", "logIndex", "0x0"),
    "an index that is none": setting("eth_getLogs", "logIndex", None),
    "a transaction that is none": setting("eth_getLogs", "transactionHash", "0x"),
    "no list": lambda method, answer: {} if method == "eth_getLogs" else answer,
    "null": lambda method, answer: None if method == "eth_getLogs" else answer,
}
RECEIPT_LIES = {
    "missing": lambda method, answer: None if method == "eth_getTransactionReceipt" else answer,
    "another block's": setting("eth_getTransactionReceipt", "blockHash", OTHER_HASH),
    "another transaction's": setting("eth_getTransactionReceipt", "transactionHash", OTHER_HASH),
    "no status": setting("eth_getTransactionReceipt", "status", KeyError),
    "no logs": setting("eth_getTransactionReceipt", "logs", None),
    "a log without data": setting("eth_getTransactionReceipt", "data", KeyError, row="logs"),
}
CONTRADICTIONS = {
    "another contract's log": setting("eth_getTransactionReceipt", "address", "0x" + "99" * 20, row="logs"),
    "a log at another place": setting("eth_getTransactionReceipt", "logIndex", "0x77", row="logs"),
    "another amount": setting("eth_getTransactionReceipt", "data", "0x" + "0" * 63 + "1", row="logs"),
    "another event": setting("eth_getTransactionReceipt", "topics", [OTHER_HASH] * 3, row="logs"),
    "logs are gone": setting("eth_getTransactionReceipt", "logs", []),
}


@pytest.mark.parametrize("change", (BLOCK_LIES | LOG_LIES).values(), ids=(BLOCK_LIES | LOG_LIES).keys())
def test_inconsistent_blocks_and_logs_are_not_believed(chain: Chain, height: int, change: Change) -> None:
    honest, _ = reader(chain, lambda _, answer: answer)
    assert [len(block.transfers) for block in honest.blocks(height + 1, height + 2, {chain.usdc})] == [1, 2]
    liar, _ = reader(chain, change)
    with pytest.raises(Unavailable):
        liar.blocks(height + 1, height + 2, {chain.usdc})


@pytest.mark.parametrize("change", RECEIPT_LIES.values(), ids=RECEIPT_LIES.keys())
def test_inconsistent_receipts_prove_and_disprove_nothing(chain: Chain, height: int, change: Change) -> None:
    block = chain.since(height)[1]
    liar, _ = reader(chain, change)
    with pytest.raises(Unavailable):
        liar.proven(block, block.transfers)


def test_a_receipt_of_failure_disproves(chain: Chain, height: int, caplog: pytest.LogCaptureFixture) -> None:
    """It is an alarm where the transaction has a log: what failed has none."""
    block = chain.since(height)[1]
    assert chain.reader.proven(block, block.transfers) == block.transfers != []
    contradicting, _ = reader(chain, setting("eth_getTransactionReceipt", "status", "0x0"))
    assert contradicting.proven(block, block.transfers) == []
    assert "ALARM ethereum" in caplog.text and "is said to have failed" in caplog.text


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_receipts_without_a_log_that_was_told_are_an_alarm(
    chain: Chain, height: int, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    """A receipt of that very block has the same logs. One of the two is wrong, and nobody can say which: nothing is passed over."""
    block = chain.since(height)[1]
    assert chain.reader.proven(block, block.transfers) == block.transfers != []
    contradicting, _ = reader(chain, change)
    with pytest.raises(Contradiction):
        contradicting.proven(block, block.transfers)
    assert "ALARM ethereum" in caplog.text


def test_a_block_missing_before_one_that_is_there(chain: Chain, height: int) -> None:
    def missing(method: str, answer: Any) -> Any:
        return None if method == "eth_getBlockByNumber" and answer["number"] == hex(height + 1) else answer

    liar, _ = reader(chain, missing)
    with pytest.raises(Unavailable, match="before it"):
        liar.blocks(height + 1, height + 2, {chain.usdc})


def test_logs_missing_at_first_are_asked_for_again(chain: Chain, height: int) -> None:
    """Geth #26098: the logs of the newest block were empty for a moment. The bloom tells that they can not be."""
    asked = {"eth_getLogs": 0}

    def empty_at_first(method: str, answer: Any) -> Any:
        if method == "eth_getLogs":
            asked[method] += 1
            return [] if asked[method] <= 2 else answer
        return answer

    lagging, rpc = reader(chain, empty_at_first)
    assert [len(block.transfers) for block in lagging.blocks(height + 1, height + 2, {chain.usdc})] == [1, 2]
    # One request for each of the two blocks, and another only for the one whose bloom has the contract.
    assert rpc.asked.count("eth_getLogs") == 3


def test_a_bloom_may_be_wrong_the_second_time(chain: Chain, height: int) -> None:
    full = setting("eth_getBlockByNumber", "logsBloom", "0x" + "f" * 512)
    saturated, rpc = reader(chain, full)
    assert [len(block.transfers) for block in saturated.blocks(height + 1, height + 1, {chain.usdc})] == [1]
    assert rpc.asked.count("eth_getLogs") == 2


def test_a_block_that_falls_out_while_its_logs_are_missing(chain: Chain, height: int) -> None:
    """A node that has no logs for a block that is no longer in the chain must not make it look empty."""

    def reorganised(method: str, answer: Any) -> Any:
        if method == "eth_getLogs":
            return []
        if method == "eth_getBlockByNumber" and not isinstance((answer["transactions"] or [{}])[0], dict):
            return answer | {"hash": OTHER_HASH}
        return answer

    forked, _ = reader(chain, reorganised)
    with pytest.raises(Unavailable, match="fell out"):
        forked.blocks(height + 1, height + 2, {chain.usdc})


def test_logs_of_a_block_that_the_node_does_not_know_any_more(chain: Chain, stranger: str) -> None:
    """The fork comes between the blocks and the logs: a real one, in the real node."""
    mine(chain.rpc, 2)
    height = chain.reader.tip()
    send_token(chain.rpc, chain.usdc, stranger, 3)

    class Forking(JsonRpc):
        def batch(self, requests: Sequence[Request]) -> list[Any]:
            if requests[0][0] == "eth_getLogs":
                chain.rpc.call("anvil_reorg", [2, []])
            return super().batch(requests)

    with pytest.raises(Unavailable):
        EvmReader(chain.network, Forking(chain.node.url)).blocks(height + 1, height + 2, {chain.usdc})
    assert [block.transfers for block in chain.since(height)] == [[], []]


def test_checksummed_spelling_is_the_same_address(chain: Chain, height: int) -> None:
    def shouting(method: str, answer: Any) -> Any:
        if method == "eth_getLogs":
            return [log | {"address": "0x" + log["address"][2:].upper()} for log in answer]
        if method == "eth_getBlockByNumber":
            for row in answer["transactions"]:
                row.update({name: "0x" + row[name][2:].upper() for name in ("to", "hash")})
        return answer

    spelled, _ = reader(chain, shouting)
    assert spelled.blocks(height + 1, height + 2, {chain.usdc}) == chain.reader.blocks(height + 1, height + 2, {chain.usdc})


def test_error_answers_of_every_method_are_unavailable(chain: Chain) -> None:
    class Refusing(JsonRpc):
        def call(self, method: str, params: Sequence[Any] = ()) -> Any:
            raise RpcError(-32601, "the method does not exist")

        def batch(self, requests: Sequence[Request]) -> list[Any]:
            raise RpcError(-32601, "the method does not exist")

    block = chain.reader.blocks(1, 1, ())[0]
    refusing = EvmReader(chain.network, Refusing(chain.node.url))
    transfers = [t for b in chain.reader.blocks(0, chain.reader.tip(), {chain.usdc}) for t in b.transfers][:1]
    for ask in (
        refusing.tip,
        lambda: refusing.blocks(0, 1, ()),
        lambda: refusing.block_hash(0),
        lambda: refusing.proven(block, transfers),
        lambda: refusing.receipt(OTHER_HASH),
        lambda: refusing.balance(chain.dev),
    ):
        with pytest.raises(Unavailable, match="does not exist"):
            ask()


@pytest.mark.parametrize("answer", [None, "", "latest", "0x", 5, -1, {}])
def test_tip_that_is_no_number(chain: Chain, answer: Any) -> None:
    liar, _ = reader(chain, lambda _, __: answer)
    with pytest.raises(Unavailable):
        liar.tip()
