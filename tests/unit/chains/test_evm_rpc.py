"""The transport against a server that misbehaves on purpose, over real sockets."""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import logging
import socket
import threading
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.chains import rpc
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.providers import Health, Node, Providers
from chalicelib.chains.rpc import JsonRpc, RpcError, TooMuch, redacted, secrets_of
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.usecases.ports.failures import Unavailable
from tests.unit.chains.rpc_server import SECRET, Answer, result, says, server

ETHEREUM = next(network for network in default_networks("live") if network.slug == "ethereum")


def error(code: int, message: str) -> Any:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


def echo(asked: Any) -> Answer:
    """Answers a request with its own parameters."""
    if isinstance(asked, list):
        return says([result(request, request["params"]) for request in asked])
    return says(result(asked, asked["params"]))


def test_call_and_batch() -> None:
    with server(echo) as node:
        rpc = JsonRpc(node.url)
        assert rpc.call("eth_getBalance", ["0xab", "latest"]) == ["0xab", "latest"]
        assert rpc.batch([("eth_getBlockByNumber", [hex(n), True]) for n in range(3)]) == [[hex(n), True] for n in range(3)]
        assert rpc.batch([]) == []
        assert node.asked[0] == {"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance", "params": ["0xab", "latest"]}
        assert len(node.asked) == 2
        assert node.connections == 1


def test_answers_in_another_order_are_put_right() -> None:
    with server(lambda asked: says([result(request, request["params"][0]) for request in reversed(asked)])) as node:
        assert JsonRpc(node.url).batch([("eth_call", [n]) for n in range(5)]) == [0, 1, 2, 3, 4]


def test_large_batches_are_split() -> None:
    with server(echo) as node:
        assert JsonRpc(node.url, batch_size=10).batch([("eth_call", [n]) for n in range(25)]) == [[n] for n in range(25)]
        assert [len(batch) for batch in node.asked] == [10, 10, 5]


@pytest.mark.parametrize("refusal", [says(error(-32600, "batch too large")), Answer(b"", 413)], ids=["error", "413"])
def test_batches_that_the_node_finds_too_large_are_halved(refusal: Answer) -> None:
    with server(lambda asked: refusal if len(asked) > 3 else echo(asked)) as node:
        assert JsonRpc(node.url).batch([("eth_call", [n]) for n in range(10)]) == [[n] for n in range(10)]
        assert [len(batch) for batch in node.asked] == [10, 5, 2, 3, 5, 2, 3]


def test_a_node_that_takes_no_batches_at_all() -> None:
    with (
        server(lambda _: says(error(-32600, "batches are not supported"))) as node,
        pytest.raises(Unavailable, match="not supported"),
    ):
        JsonRpc(node.url).batch([("eth_call", [n]) for n in range(4)])


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b""), Answer(b"<html>"), Answer(b"[]"), Answer(b"null"), Answer(b'"0x1"'), Answer(b"{}"), Answer(b'{"id":1}'),
        Answer(b'{"id":1,"error":{}}'), Answer(b'{"id":1,"error":"no"}'), Answer(b'{"id":7,"result":"0x1"}'), Answer(b"\xff\xfe"),
        Answer(b'{"id":1,"result":"0x1"', 200), Answer(b"x", 500), Answer(b"{}", 500), Answer(b'{"id":1,"result":"0x1"}', 502),
        Answer(b'{"id":1,"result":"0x1"}', 429), Answer(b'{"id":1,"error":{"code":-32005,"message":"slow down"}}', 429),
        Answer(b'{"id":1,"error":{"code":-32005,"message":"limit exceeded"}}', 200),
        Answer(b"", 401), Answer(b"", 403), Answer(b"", 204),
        Answer(b'{"id":1,"error":{"code":-1,"message":"no"}}', 503), Answer(b"", 307, headers="Location: /elsewhere\r\n"),
    ],
)  # fmt: skip
def test_garbage_is_unavailable(answer: Answer) -> None:
    with server(lambda _: answer) as node:
        rpc = JsonRpc(node.url)
        with pytest.raises(Unavailable) as caught:
            rpc.call("eth_call", [])
        assert SECRET not in str(caught.value)
        assert len(node.asked) == 1
        with pytest.raises(Unavailable):
            rpc.batch([("eth_call", [])])


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_batch_with_an_answer_missing_or_twice(missing: int) -> None:
    for spoil in (
        lambda rows: rows.pop(missing),
        lambda rows: rows.append(rows[missing]),
        lambda rows: rows.__setitem__(missing, rows[missing - 1]),
    ):

        def reply(asked: Any, spoil: Callable[[list[Any]], object] = spoil) -> Answer:
            rows = [result(request) for request in asked]
            spoil(rows)
            return says(rows)

        with server(reply) as node, pytest.raises(Unavailable):
            JsonRpc(node.url).batch([("eth_call", [])] * 3)


def test_errors_of_the_node_are_told_with_code_and_words() -> None:
    with server(
        lambda asked: says({"id": 1, "error": {"code": 3, "message": "execution reverted: no", "data": "0x08c379a0"}})
    ) as node:
        with pytest.raises(RpcError) as caught:
            JsonRpc(node.url).call("eth_call", [])
        assert (caught.value.code, caught.value.message, caught.value.data) == (3, "execution reverted: no", "0x08c379a0")


@pytest.mark.parametrize("status", [400, 404, 500])
def test_bitcoins_node_answers_errors_with_http_errors(status: int) -> None:
    answer = says({"result": None, "error": {"code": -5, "message": "No such block"}, "id": 1}, status)
    with server(lambda _: answer) as node, pytest.raises(RpcError, match="No such block"):
        JsonRpc(node.url).call("getblock", [])


def test_one_error_in_a_batch_is_raised() -> None:
    def reply(asked: Any) -> Answer:
        rows = [result(request) for request in asked]
        return says([rows[0], {"id": 1, "error": {"code": -32000, "message": "unknown block"}}, rows[2]])

    with server(reply) as node, pytest.raises(RpcError, match="unknown block"):
        JsonRpc(node.url).batch([("eth_getLogs", [])] * 3)


def dropping(times: int) -> Callable[[Any], Answer]:
    """Reads a request and closes without an answer, so many times; then answers."""
    left = [times]

    def reply(asked: Any) -> Answer:
        if left[0]:
            left[0] -= 1
            return Answer(b"", nothing=True)
        return echo(asked)

    return reply


def test_reads_are_sent_once_more_when_the_connection_breaks() -> None:
    with server(dropping(1)) as node:
        assert JsonRpc(node.url).call("eth_getBalance", [1]) == [1]
        assert len(node.asked) == 2
    with server(dropping(1)) as node:
        assert JsonRpc(node.url).batch([("eth_getLogs", [1]), ("eth_blockNumber", [])]) == [[1], []]
    with server(dropping(2)) as node, pytest.raises(Unavailable):
        JsonRpc(node.url).call("eth_getBalance", [1])


@pytest.mark.parametrize(
    "method", ["eth_sendRawTransaction", "eth_sendTransaction", "sendrawtransaction", "evm_mine", "eth_callMany"]
)
def test_nothing_else_is_sent_twice(method: str) -> None:
    with server(dropping(1)) as node:
        rpc = JsonRpc(node.url)
        with pytest.raises(Unavailable):
            rpc.call(method, ["0xab"])
        with pytest.raises(Unavailable):
            JsonRpc(f"http://127.0.0.1:{_closed_port()}").call(method, [])
        assert len(node.asked) == 1


def test_a_server_that_closes_idle_connections() -> None:
    with server(lambda asked: Answer(json.dumps(result(asked)).encode(), close=True)) as node:
        rpc = JsonRpc(node.url)
        assert [rpc.call("eth_chainId") for _ in range(5)] == ["0x1"] * 5


def test_nobody_there() -> None:
    url = f"http://user:{SECRET}@127.0.0.1:{_closed_port()}/v3/{SECRET}"
    with pytest.raises(Unavailable) as caught:
        JsonRpc(url).call("eth_chainId")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_node_that_does_not_answer_in_time() -> None:
    waiting = threading.Event()

    def hang(asked: Any) -> Answer:
        waiting.wait(5)
        return echo(asked)

    with server(hang) as node:
        with pytest.raises(Unavailable, match="Timeout"):
            JsonRpc(node.url, timeout=0.1).call("eth_chainId")
        waiting.set()


def test_a_node_that_repeats_our_secret_is_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    words = f"project {SECRET} is over its plan, password hunter2hunter2"
    with (
        server(lambda asked: says({"id": 1, "error": {"code": -32000, "message": words}})) as node,
        caplog.at_level(logging.DEBUG, "chalicelib"),
    ):
        rpc = JsonRpc(node.url.replace("//", "//someuser:hunter2hunter2@"))
        with pytest.raises(RpcError) as caught:
            rpc.call("eth_chainId")
        assert caught.value.message == "project *** is over its plan, password ***"
        assert SECRET not in repr(rpc) + caplog.text


@pytest.mark.parametrize(
    ("url", "words", "quoted"),
    [
        ("http://u:pw@n.example/?k=ab1", "user u, password pw, key=ab1", "user ***, password ***, key=***"),
        ("http://node:geth@n.example", "geth at node:geth says no", "*** at ***:*** says no"),
        ("http://n.example/?key=a%2Fb1", "key a/b1 or a%2Fb1 is over its plan", "key *** or *** is over its plan"),
        ("http://n.example/?a", "a revert, always failing", "*** revert, always failing"),
        ("http://n.example/rpc/v1", "execution reverted at v1 of rpc", "execution reverted at v1 of rpc"),
    ],
)
def test_secrets_are_cut_out_however_short(url: str, words: str, quoted: str) -> None:
    assert redacted(words, secrets_of(url)) == quoted


def test_user_and_password_become_a_header() -> None:
    with server(echo) as node:
        JsonRpc(node.url.replace("//", "//us%40er:pass%2Fword@")).call("getblockcount")
        assert b"authorization: Basic " + base64.b64encode(b"us@er:pass/word") in node.heads[0].replace(
            b"Authorization", b"authorization"
        )


@pytest.mark.parametrize("url", ["", "ftp://host/x", "127.0.0.1:8545", "http://", "ws://host"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        JsonRpc(url)


def test_import_brings_no_chain_library() -> None:
    import subprocess
    import sys

    program = (
        "import sys, chalicelib.chains.rpc, chalicelib.chains.evm.reader, chalicelib.chains.evm.payer\n"
        "heavy = ('web3', 'eth_account', 'eth_utils', 'rlp', 'tronpy', 'bitcoinlib', 'boto3', 'pydantic')\n"
        "print([module for module in heavy if module in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_batch_size_that_was_refused_is_remembered_and_grows_again() -> None:
    sizes: list[int] = []

    def reply(asked: Any) -> Answer:
        sizes.append(len(asked))
        return says(None, 413) if len(asked) > 4 else echo(asked)

    with server(reply) as node:
        rpc = JsonRpc(node.url, batch_size=16)
        requests = [("eth_call", [n]) for n in range(16)]
        assert rpc.batch(requests) == [[n] for n in range(16)]
        sizes.clear()
        assert rpc.batch(requests) == [[n] for n in range(16)]
        assert sizes == [4, 4, 4, 4]
        for _ in range(10):
            rpc.batch(requests)
        assert 8 in sizes


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-32005, "query returned more than 10000 results"),
        (-32000, "query returned more than 10000 results. Try with this block range [0x1, 0x2]"),
        (-32602, "Log response size exceeded."),
        (-32614, "eth_getLogs is limited to a 10,000 block range"),
        (-32003, "response too large"),
    ],
)
def test_too_large_an_answer_is_told_from_a_limited_rate(code: int, words: str) -> None:
    with server(lambda asked: says(error(code, words) | {"id": asked["id"]})) as node, pytest.raises(TooMuch):
        JsonRpc(node.url).call("eth_getLogs", [{}])
    slow = error(-32005, "daily request count exceeded, request rate limited")
    with server(lambda asked: says(slow | {"id": asked["id"]})) as node, pytest.raises(Unavailable) as raised:
        JsonRpc(node.url).call("eth_getLogs", [{}])
    assert not isinstance(raised.value, TooMuch)


def test_an_answer_that_trickles_has_an_end() -> None:
    released = threading.Event()

    def trickle(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not released.wait(0.05):
            client.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                with contextlib.suppress(OSError):
                    trickle(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(Unavailable, match="in time"):
            JsonRpc(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.15).call("eth_chainId")
        released.set()
        thread.join(5)


def test_an_answer_is_read_no_further_than_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is asked in halves until its answers fit; of traces less is read."""
    monkeypatch.setattr(rpc, "MOST_BYTES", 4_000)
    monkeypatch.setattr(rpc, "MOST_TRACED", 1_000)
    for method, fits in (("eth_getBlockByNumber", 3), ("trace_block", 0)):

        def reply(asked: Any) -> Answer:
            return says([result(each, "x" * 1_000) for each in asked] if isinstance(asked, list) else result(asked, "x" * 5_000))

        with server(reply) as serving:
            node = JsonRpc(serving.url)
            if fits:
                assert node.batch([(method, [n]) for n in range(8)]) == ["x" * 1_000] * 8
                assert [len(asked) for asked in serving.asked] == [8, 4, 2, 2, 4, 2, 2]
            else:
                with pytest.raises(TooMuch, match="larger"):
                    node.batch([(method, [n]) for n in range(8)])
            with pytest.raises(TooMuch, match="larger"):
                node.call(method)


def test_an_answer_that_nests_too_deep_is_too_much_and_no_garbage() -> None:
    deep = Answer(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 2_000 + b"]" * 2_000 + b"}")
    with server(lambda asked: deep) as serving, pytest.raises(TooMuch, match="nests"):
        JsonRpc(serving.url).call("debug_traceTransaction")


def test_nothing_is_sent_where_no_node_may_be() -> None:
    places: list[str] = []

    def allowed(address: str) -> bool:
        places.append(address)
        return False

    with server(echo) as node:
        with pytest.raises(Unavailable, match="no node may be"):
            JsonRpc(node.url.replace("127.0.0.1", "localhost"), place_allowed=allowed).call("eth_chainId")
        assert (node.asked, node.heads) == ([], [])
        assert JsonRpc(node.url, place_allowed=lambda address: address == "127.0.0.1").call("eth_chainId", [1]) == [1]
    assert places == ["127.0.0.1"]


def _of_providers(urls: Sequence[str]) -> Callable[[], object]:
    nodes = Providers([Node(JsonRpc(url), Health(number)) for number, url in enumerate(urls)])
    return lambda: nodes.call("eth_blockNumber")


def _spread(urls: Sequence[str]) -> Callable[[], object]:
    nodes = Providers([Node(JsonRpc(url), Health(number)) for number, url in enumerate(urls)])
    return lambda: nodes.call("eth_sendRawTransaction", ["0x"])


def _of_each(urls: Sequence[str]) -> Callable[[], object]:
    payer = EvmPayer(ETHEREUM, JsonRpc(urls[0]), [JsonRpc(url) for url in urls])
    return lambda: payer.told_nonces("0x" + "11" * 20)


@pytest.mark.parametrize("asking", [_of_providers, _spread, _of_each])
def test_large_answers_that_are_none_do_not_add_up(
    asking: Callable[[Sequence[str]], Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though `app.py` lets searches for garbage be far apart: a node's nonsense must not fill a function's memory."""
    monkeypatch.setattr(rpc, "SEARCH_AFTER", 8 << 20)
    nonsense = Answer(b"x" * (2 << 20))
    with server(lambda _: nonsense) as node:
        ask = asking([node.url, node.url])
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(10):
                with contextlib.suppress(Unavailable):
                    ask()
            assert tracemalloc.get_traced_memory()[0] < 16 << 20  # of 40
        finally:
            tracemalloc.stop()
            gc.enable()
