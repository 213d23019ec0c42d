"""`make run NODES=1`: live keys work against real nodes, from the invoice to the money that a withdrawal moves on the chain."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.chains.rpc import JsonRpc
from chalicelib.domain.money import format_units
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.keeper import alive
from infra.local.nodes import mine, mined, send_native, send_token
from infra.local.tokens import call_data
from infra.local.tron.process import Http
from tests.support import asking
from tests.support.running import Running, free_port

pytestmark = pytest.mark.nodes
CHAINS = {"ethereum": 1, "bsc": 56, "polygon": 137, "arbitrum": 42161, "fantom": 250}


@pytest.fixture(scope="module")
def started() -> Iterator[list[Running]]:
    begun: list[Running] = []
    yield begun
    for process in begun:
        process.kill()


@pytest.fixture
def running(started: list[Running], tmp_path_factory: pytest.TempPathFactory) -> Running:
    """One for all tests here, whatever their order; another one for who comes after it was stopped."""
    if not started or started[-1].process.poll() is not None:
        started.append(Running(tmp_path_factory.mktemp("runtime"), free_port(), NODES="1"))
        started[-1].wait_until_up()
    return started[-1]


def ask(running: Running, method: str, path: str, body: Any = None) -> Any:
    return asking.ask(json.loads(running.own.read_text()), method, path, body, "client_live")


def node(running: Running, slug: str) -> JsonRpc:
    return JsonRpc(json.loads(running.own.read_text())["nodes"][slug])


def running_nodes(running: Running) -> list[str]:
    return list(json.loads(running.own.read_text())["nodes"])


def until(question: Callable[[], Any], fits: Callable[[Any], bool], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not fits(answer := question()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    return answer


def test_every_evm_network_has_its_own_node(running: Running) -> None:
    assert {slug: int(node(running, slug).call("eth_chainId"), 16) for slug in CHAINS} == CHAINS


@pytest.mark.parametrize(("network", "prefix"), [("bitcoin", "bcrt1q"), ("litecoin", "rltc1q")])
def test_bitcoin_and_litecoin_have_nodes_that_mine_and_their_addresses(running: Running, network: str, prefix: str) -> None:
    rpc = node(running, network)
    began = rpc.call("getblockcount")
    assert len(rpc.call("generatetoaddress", [2, rpc.call("getnewaddress")])) == 2
    until(lambda: rpc.call("getblockcount"), lambda height: height >= began + 3)
    made = ask(running, "POST", "/addresses", {"network": network})["address"]
    assert made.startswith(prefix)
    assert rpc.call("validateaddress", [made])["isvalid"]
    asked = {"network": network, "address": rpc.call("getnewaddress")}
    assert ask(running, "POST", "/addresses/validate", asked)["type"] == "p2wpkh"


def test_every_hot_wallet_has_coins(running: Running) -> None:
    def without() -> list[tuple[str, str]]:
        wallets = [ask(running, "GET", f"/addresses/hot-wallet/{slug}") for slug in running_nodes(running)]
        return [(held["network"], held["coin"]) for wallet in wallets for held in wallet["balances"] if held["balance"] == "0"]

    # They are confirmed when it serves: the first look at each network finds them.
    assert until(without, lambda missing: not missing) == []


@pytest.mark.parametrize(("coin", "decimals"), [("eth", 18), ("usdt", 6)])
def test_a_payment_comes_in_and_a_withdrawal_goes_out(running: Running, coin: str, decimals: int) -> None:
    rpc = node(running, "ethereum")
    invoice = ask(running, "POST", "/invoices", {"currency": coin, "amount": "3", "network": "ethereum"})
    # EIP-681: a token's payment link names the contract where the native coin's names the recipient.
    contract = invoice["paymentUri"].removeprefix("ethereum:").split("@")[0] if coin == "usdt" else None
    if contract:
        mined(rpc, send_token(rpc, contract, invoice["address"], 3 * 10**decimals))
    else:
        mined(rpc, send_native(rpc, invoice["address"], 3 * 10**decimals))
    until(lambda: ask(running, "GET", f"/invoices?id={invoice['id']}"), lambda seen: seen["status"] == "confirming")
    mine(rpc, 12)
    until(lambda: ask(running, "GET", f"/invoices?id={invoice['id']}"), lambda seen: seen["status"] == "completed")

    stranger = "0x" + os.urandom(20).hex()
    order = {"network": "ethereum", "coin": coin, "address": stranger, "amount": "1.25"}
    withdrawal = ask(running, "POST", "/withdraws", order)["id"]
    shown = f"/withdrawals/{withdrawal}"
    until(lambda: ask(running, "GET", shown)["data"], lambda seen: seen["status"] == "confirming")
    mine(rpc, 12)
    until(lambda: ask(running, "GET", shown)["data"], lambda seen: seen["status"] == "confirmed")
    if contract:
        held = rpc.call("eth_call", [{"to": contract, "data": call_data("balanceOf(address)", stranger)}, "latest"])
    else:
        held = rpc.call("eth_getBalance", [stranger, "latest"])
    assert int(held, 16) == 125 * 10**decimals // 100
    balances = ask(running, "GET", "/balances")["data"]
    (balance,) = [entry for entry in balances if (entry["network"], entry["coin"]) == ("ethereum", coin)]
    assert (balance["available"], balance["frozen"]) == ("1.75", "0")


# Litecoin stands for bitcoin, and USDT, which needs TRX for its fees, for TRX: each journey keeps eight nodes running for seconds.
@pytest.mark.parametrize(
    ("network", "coin"),
    [
        pytest.param("bitcoin", "btc", marks=pytest.mark.sweep),
        ("litecoin", "ltc"),
        pytest.param("tron", "trx", marks=pytest.mark.sweep),
        ("tron", "usdt"),
    ],
)
def test_the_same_on_the_other_networks(running: Running, network: str, coin: str) -> None:
    # On Tron the fee of paying somebody new is worth some USDT, and less than it is not paid out.
    whole, out = ("30", 12_500_000) if network == "tron" else ("3", 1_250_000)
    invoice = ask(running, "POST", "/invoices", {"currency": coin, "amount": whole, "network": network})
    if network == "tron":
        tron = Http(json.loads(running.own.read_text())["nodes"]["tron"])
        tron.call("dev/faucet", {"address": invoice["address"], "coin": coin, "amount": whole})
        stranger = tron_address(os.urandom(64))

        def mine_some() -> None:
            tron.call("dev/mine", {"count": 19})
    else:
        rpc = node(running, network)
        rpc.call("sendtoaddress", [invoice["address"], whole])
        stranger = rpc.call("getnewaddress")

        def mine_some() -> None:
            rpc.call("generatetoaddress", [6, rpc.call("getnewaddress")])

    until(lambda: ask(running, "GET", f"/invoices?id={invoice['id']}"), lambda seen: seen["status"] == "confirming")
    mine_some()
    until(lambda: ask(running, "GET", f"/invoices?id={invoice['id']}"), lambda seen: seen["status"] == "completed")

    order = {"network": network, "coin": coin, "address": stranger, "amount": format_units(out, 6)}
    shown = f"/withdrawals/{ask(running, 'POST', '/withdraws', order)['id']}"
    until(lambda: ask(running, "GET", shown)["data"], lambda seen: seen["status"] == "confirming")
    mine_some()
    paid = until(lambda: ask(running, "GET", shown)["data"], lambda seen: seen["status"] == "confirmed")
    if network == "tron":
        assert tron_holds(tron, stranger, coin) == out
    else:
        outputs = rpc.call("getrawtransaction", [paid["transaction_hash"], True])["vout"]
        assert [out["value"] for out in outputs if stranger in str(out["scriptPubKey"])] == [1.25]


def tron_holds(tron: Http, address: str, coin: str) -> int:
    if coin == "trx":
        return int(tron.call("wallet/getaccount", {"address": address, "visible": True})["balance"])
    asked = {
        "owner_address": address,
        "contract_address": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        "function_selector": "balanceOf(address)",
        "parameter": base58check.decode(address)[1:].rjust(32, b"\0").hex(),
        "visible": True,
    }
    return int(tron.call("wallet/triggerconstantcontract", asked)["constant_result"][0], 16)


def test_ctrl_c_stops_the_nodes_too_and_leaves_nothing(running: Running) -> None:
    rpcs = [node(running, slug) for slug in running_nodes(running)]
    assert len(rpcs) == 8
    code, errors = running.end()
    assert code == 0
    assert "Traceback" not in errors
    for rpc in rpcs:
        with pytest.raises(Unavailable):
            rpc.call("eth_chainId")
    assert list(running.folder.iterdir()) == []


def children(pid: int) -> set[int]:
    """Processes that `pid` started, and those that they started."""
    own = {int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()}
    return own.union(*(children(child) for child in own))


def test_a_second_ctrl_c_ends_a_start_at_once_and_leaves_no_node(tmp_path: Path) -> None:
    running = Running(tmp_path, free_port(), NODES="1")
    deadline, nodes = time.monotonic() + 30, set[int]()
    while len(nodes) < 6:
        assert time.monotonic() < deadline
        nodes = children(running.process.pid)
        time.sleep(0.02)
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGTERM)
    code, errors = running.end()
    assert code in (0, 128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert errors == ""
    while any(alive(node) for node in nodes):
        assert time.monotonic() < deadline + 30
        time.sleep(0.02)
