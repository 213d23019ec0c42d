"""Blocks as full as gas, energy and size allow: a reader gives as many as it can hold, and whoever asks again gets the rest.

Memory is measured in a process of its own (`heavy_reading`), with the libraries of a poll, against a node over real sockets.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from chalicelib.chains import held, rpc
from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm import reader as evm_reader
from chalicelib.chains.evm.logs import LogReader
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health, Heard
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.rows import Rows
from chalicelib.chains.rpc import JsonRpc, TooMuchTogether
from chalicelib.chains.tron import reader as tron_reader
from chalicelib.chains.tron.http import TronHttp
from chalicelib.chains.tron.reader import TronReader
from chalicelib.chains.utxo import reader as utxo_reader
from chalicelib.chains.utxo.reader import UtxoReader
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.recovery.addresses import Restore
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader, every_block
from chalicelib.usecases.recovery import addresses as restoring
from chalicelib.usecases.recovery.addresses import AddressRecovery
from tests.support.heavy_coins import TRC20, TronBlocks, UtxoBlocks
from tests.support.heavy_node import OURS, TOKEN, EvmBlocks, read_apart, served
from tests.support.traced_blocks import TracedBlocks

MOST_MB = 300
NETWORKS: dict[str, Network] = {network.slug: network for network in default_networks("live")}
UNTRACED = replace(NETWORKS["ethereum"], tracing="off")

HEAVY: dict[str, tuple[str, int, Callable[[], Any]]] = {
    "30 blocks of 9,000 transfers of nothing": ("evm", 30, lambda: EvmBlocks(30, logs=9_000)),
    "one block of 42,000 transfers": ("evm", 1, lambda: EvmBlocks(1, logs=42_000, units=1)),
    "50 blocks of 6,600 payments": ("evm", 50, lambda: EvmBlocks(50, transactions=6_600)),
    "a deposit beside 180,000 logs of its transaction": ("evm", 1, lambda: EvmBlocks(1, ours=1, bare=180_000)),
    "30 deposits, each beside 9,000 logs": ("evm", 1, lambda: EvmBlocks(1, ours=30, bare=9_000)),
    "16 blocks with 6 MB of traces, of two nodes": ("two", 16, lambda: TracedBlocks(16, 200, padding=15_000)),
    "5 blocks of 110,000 outputs": ("utxo", 5, lambda: UtxoBlocks(5, bare=110_000)),
    "50 blocks of 9,000 transfers on tron": ("tron", 50, lambda: TronBlocks(50, logs=9_000, units=1)),
}
LONG = (
    "50 blocks of 6,600 payments", "30 blocks of 9,000 transfers of nothing", "50 blocks of 9,000 transfers on tron",
    "16 blocks with 6 MB of traces, of two nodes", "30 deposits, each beside 9,000 logs", "one block of 42,000 transfers",
)  # fmt: skip
"""Many blocks are asked for like the five of outputs, 30 receipts like the one of 180,000 logs, and a block's logs are read in
parts like those: a check has time for these."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.sweep] * (name in LONG)) for name in HEAVY])
def test_what_is_held_at_once_fits_into_a_function(name: str) -> None:
    family, last, made = HEAVY[name]
    blocks = made()
    with served(blocks.told) as url:
        told = read_apart("heavy_reading", family, url, "1", str(last))
    assert (told["read"], told["proven"]) == (last, getattr(blocks, "ours", 0))
    assert told["peak"] < MOST_MB, told


def evm(url: str) -> EvmReader:
    transport = JsonRpc(url)
    return EvmReader(UNTRACED, transport, LogReader("ethereum", transport, audited=0.0))


READERS: dict[str, tuple[Callable[[int], Any], Callable[[str], ChainReader], tuple[str, ...]]] = {
    "evm": (lambda blocks: EvmBlocks(blocks, transactions=3, logs=7, units=1), evm, (TOKEN,)),
    "utxo": (lambda blocks: UtxoBlocks(blocks, paid=9, spent=4), lambda url: UtxoReader(NETWORKS["bitcoin"], JsonRpc(url)), ()),
    "tron": (lambda blocks: TronBlocks(blocks, 12, 1), lambda url: TronReader(NETWORKS["tron"], TronHttp(url), None), (TRC20,)),
}  # fmt: skip
"""Thirteen rows a block, by family."""


def narrow(patch: pytest.MonkeyPatch, rows: int) -> None:
    for module in (held, evm_reader, utxo_reader, tron_reader):
        patch.setattr(module, "MOST_ROWS", rows)


@pytest.mark.parametrize("family", READERS)
def test_a_reader_gives_a_prefix_of_what_it_can_not_hold(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, reader_over, contracts = READERS[family]
    with served(made(20).told) as url:
        whole = reader_over(url).blocks(1, 20, contracts)
        assert len(whole) == 20
        for rows, at_once in ((0, 1), (12, 1), (13, 2), (40, 4)):
            narrow(monkeypatch, rows)
            reader = reader_over(url)
            first = reader.blocks(1, 20, contracts)
            assert first == whole[: len(first)]
            assert at_once <= len(first) <= at_once + 10, "no more than a part beyond"
            assert list(every_block(reader, 1, 20, contracts)) == whole


@pytest.mark.parametrize("family", READERS)
def test_answers_that_are_too_large_together_are_asked_for_in_parts(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, reader_over, contracts = READERS[family]
    with served(made(20).told) as url:
        whole = reader_over(url).blocks(1, 20, contracts)
        headers = reader_over(url).headers(1, 20) if family == "evm" else []
        for most in (40_000, 9_000, 3_000):
            for module in ("chalicelib.chains.rpc", "chalicelib.chains.tron.http"):
                monkeypatch.setattr(f"{module}.MOST_TOGETHER", most)
            reader = reader_over(url)
            assert reader.blocks(1, 20, contracts) == whole
            if family == "evm":
                assert reader.headers(1, 20) == headers


def test_a_prefix_is_no_reason_to_ask_another_node_and_is_compared_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second node holds fewer blocks at once than the first, and leaves out what the first tells."""
    blocks = EvmBlocks(20, transactions=3, logs=7, units=1)
    fewer = EvmBlocks(20, transactions=3, logs=6, units=1)
    asked = 0

    def counted(method: str, params: Any) -> bytes:
        nonlocal asked
        asked += method == "eth_getLogs"
        return fewer.told(method, params)

    narrow(monkeypatch, 60)
    with served(blocks.told) as url, served(counted) as other:
        second = evm(other)
        several = QuorumReader(UNTRACED, [NodeReader(evm(url), Health(1)), NodeReader(second, Health(2))], lambda: 1.0)
        found = several.blocks(1, 20, {TOKEN})
        assert (len(found), asked) == (5, 0)
        monkeypatch.setattr(
            second, "blocks", lambda first, last, contracts: EvmReader.blocks(second, first, min(last, first + 1), contracts)
        )
        agreed = QuorumReader(
            replace(UNTRACED, agreement_usd=1), [NodeReader(evm(url), Health(1)), NodeReader(second, Health(2))], lambda: 1.0
        )
        assert agreed.blocks(1, 20, {TOKEN}) == found
    told = [record.message for record in caplog.records if "tells" in record.message]
    assert [line.split(",")[0] for line in told] == [f"ALARM {UNTRACED.id}: of block {block.number}" for block in found]


def test_every_block_across_prefixes() -> None:
    chain = [Block(n, f"h{n}", f"h{n - 1}", n) for n in range(10)]

    class Held:
        def blocks(self, first: int, last: int, contracts: Any) -> list[Block]:
            return chain[first : min(last, first + 2) + 1]

    reader: Any = Held()
    assert list(every_block(reader, 1, 8, ())) == chain[1:9]
    assert list(every_block(reader, 7, 20, ())) == chain[7:]
    assert list(every_block(reader, 5, 4, ())) == []
    chain[4] = replace(chain[4], parent_hash="another")
    with pytest.raises(Unavailable, match="changed"):
        list(every_block(reader, 1, 8, ()))


def test_rows_read_in_parts_are_what_the_whole_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chalicelib.chains.rows._AT_ONCE", 300)
    play = random.Random(3)
    for count in (0, 1, 2, 5, 80):
        rows = [{"n": n, "topics": ["0x" + "ab" * play.randrange(9)] * play.randrange(4)} for n in range(count)]
        for under in (None, "logs"):
            told = {"jsonrpc": "2.0", "id": 1, "result": rows if under is None else {"a": "b", "logs": rows, "z": [1, 2]}}
            for body in (orjson.dumps(told), orjson.dumps(told, option=orjson.OPT_INDENT_2)):
                seen: list[int] = []
                read = Rows(lambda some, seen=seen: seen.append(len(some)) or [row["n"] for row in some], under)  # type: ignore[misc]
                at = 0
                while at < len(body):
                    at, start = at + play.randrange(1, 90), at
                    read.feed(body[start:at])
                wanted: Any = [*range(count)] if under is None else {"a": "b", "logs": [*range(count)], "z": [1, 2]}
                assert read.answer() == {**told, "result": wanted}
                assert sum(seen) == count
            if count == 80:
                assert max(seen) == 80, "an answer in another spelling is read as one"


NO_ROWS = (
    b"",
    b"[",
    b'{"result":[{]}',
    b'{"result":[{},{}',
    b'{"result":[{},{}]',
    b'{"result":[{"a":"x},{"}x]}',
    b'{"y":{"result":[{}]},"result":5}',
)


@pytest.mark.parametrize("body", NO_ROWS)
def test_rows_that_are_no_json_are_no_answer(body: bytes) -> None:
    with served(lambda method, params: b"null") as url:
        node = JsonRpc(url)
        node._pool.request = lambda *_, **__: Body(body)  # type: ignore[assignment, method-assign]
        with pytest.raises(Unavailable, match="not JSON"):
            node.rows("eth_getLogs", [], list)


class Body:
    status = 200

    def __init__(self, body: bytes) -> None:
        self._left = [body, b""]

    def read1(self, _: int) -> bytes:
        return self._left.pop(0)

    def close(self) -> None: ...

    release_conn = close


def test_what_is_wrong_with_a_row_is_the_nodes_fault() -> None:
    """And it has answered: its vote does not depend on what it says."""

    def refuse(rows: list[Any]) -> list[Any]:
        raise Garbled("a log lacks a field")

    with served(EvmBlocks(1, logs=3).told) as url:
        health = Health(1)
        with pytest.raises(Garbled):
            Heard(JsonRpc(url), health).rows(
                "eth_getLogs", [{"blockHash": EvmReader(UNTRACED, JsonRpc(url)).block_hash(1)}], refuse
            )
        assert health.answered


def test_a_batch_is_held_to_its_sum_however_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MOST_TOGETHER", 3_000)
    with served(lambda method, params: b'"%b"' % (b"x" * 900)) as url:
        node = JsonRpc(url, batch_size=1)
        assert len(node.batch([("eth_call", [])] * 3)) == 3
        with pytest.raises(TooMuchTogether):
            node.batch([("eth_call", [])] * 4)


def test_logs_that_a_node_refuses_are_read_of_each_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers give 10,000 logs at most, and some no receipts of blocks; what does not fit together is read one by one."""
    blocks = EvmBlocks(2, transactions=4, logs=50, units=1, ours=2, bare=20)

    def told(method: str, params: Any) -> bytes:
        if method == "eth_getLogs":
            raise OverflowError
        return blocks.told(method, params)

    with served(blocks.told) as url, served(told) as refusing:
        whole = evm(url).blocks(1, 2, {TOKEN})
        assert [len([t for t in block.transfers if t.contract]) for block in whole] == [52, 52]
        for most in (rpc.MOST_TOGETHER, 5_000):
            monkeypatch.setattr(rpc, "MOST_TOGETHER", most)
            reader = evm(refusing)
            assert reader.blocks(1, 2, {TOKEN}) == whole
            mine = [t for t in whole[0].transfers if t.recipient == OURS]
            assert reader.proven(whole[0], mine) == mine
            assert reader.first_logs(whole[0], [t.txid for t in mine]) == {mine[0].txid: 0, mine[1].txid: 71}


def test_a_search_through_blocks_goes_on_behind_a_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a restore, on a network whose nodes know no addresses."""
    ours = {f"place {n}": (n, f"place {n}", "") for n in range(12)}
    chain = [Block(n, f"h{n}", f"h{n - 1}", n, [Transfer(f"t{n}", "out:0", None, "", f"place {n}", 1)]) for n in range(12)]
    found: list[str] = []

    class Held:
        def blocks(self, first: int, last: int, contracts: Any) -> list[Block]:
            return chain[first : last + 1][:5]

    reader: Any = Held()
    nothing: Any = None
    search = AddressRecovery(NetworkContext(NETWORKS["bitcoin"], reader, nothing, nothing, nothing), nothing, nothing)
    monkeypatch.setattr(search, "_up_to", lambda end: ours)
    monkeypatch.setattr(search, "_keep", lambda hits, _: found.extend(hits) or len(hits))
    monkeypatch.setattr(restoring, "batch_blocks", lambda _: 50)
    restore = Restore(NETWORKS["bitcoin"].id, 20, 0, 0, from_block=0, next_block=0, to_block=11)
    for reached in (5, 10, 12):
        restore = search._blocks(restore)
        assert restore.next_block == reached
    assert (sorted(found), restore.found, restore.highest) == (sorted(ours), 12, 11)
