"""bitcoin's and litecoin's node do what the tests of this service rely on, and what Bitcoin Core's interface promises."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chalicelib.chains.addresses import parse
from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.keeper import alive
from infra.local.nodes import Bcoin, Litecoin, NodeMissing, UtxoNode, find_bcoin, find_litecoind
from infra.local.utxo import units_of

pytestmark = pytest.mark.nodes


def paid(node: UtxoNode, block: str) -> dict[str, int]:
    """What a block's outputs pay, by address."""
    found: dict[str, int] = {}
    for tx in node.rpc.call("getblock", [block, 2])["tx"]:
        for out in tx["vout"]:
            script = out["scriptPubKey"]
            for address in [script["address"]] if "address" in script else script.get("addresses", []):
                found[address] = found.get(address, 0) + units_of(out["value"])
    return found


def refusal(node: UtxoNode, raw: str) -> int:
    with pytest.raises(RpcError) as refused:
        node.rpc.call("sendrawtransaction", [raw])
    return refused.value.code


def test_it_wants_its_password_and_listens_on_this_machine_only(utxo_node: UtxoNode) -> None:
    assert "@127.0.0.1:" in utxo_node.url
    for wrong in (utxo_node.url.replace("@", "x@"), utxo_node.url.replace(utxo_node.url.split("//")[1].split("@")[0] + "@", "")):
        with pytest.raises(Unavailable):
            JsonRpc(wrong).call("getblockcount")


def test_addresses_are_spelled_as_on_every_regtest(utxo_node: UtxoNode) -> None:
    address = utxo_node.new_address()
    assert parse(utxo_node.slug, address, "regtest") == ("p2wpkh", address)
    genesis = utxo_node.rpc.call("getblockhash", [0])
    if utxo_node.slug == "bitcoin":  # Bitcoin Core, chainparams.cpp
        assert genesis == "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"


def test_litecoin_writes_all_kinds_of_addresses_as_we_read_them(litecoin: Litecoin) -> None:
    kinds = {"legacy": "p2pkh", "p2sh-segwit": "p2sh", "bech32": "p2wpkh"}
    for asked, kind in kinds.items():
        address = litecoin.rpc.call("getnewaddress", ["", asked])
        assert parse("litecoin", address, "regtest") == (kind, address)


def test_a_payment_waits_in_the_mempool_and_is_in_the_next_block(utxo_node: UtxoNode) -> None:
    address = utxo_node.new_address()
    txid = utxo_node.send(address, 12_345_678)
    assert txid in utxo_node.mempool()
    seen = utxo_node.rpc.call("getrawtransaction", [txid, True])
    assert "blockhash" not in seen
    assert {"txid", "vout"} <= set(seen["vin"][0])
    place = next(out["n"] for out in seen["vout"] if units_of(out["value"]) == 12_345_678)
    assert utxo_node.rpc.call("gettxout", [txid, place, False]) is None
    assert units_of(utxo_node.rpc.call("gettxout", [txid, place, True])["value"]) == 12_345_678

    (block,) = utxo_node.mine()
    assert paid(utxo_node, block)[address] == 12_345_678
    assert utxo_node.mempool() == []
    shown = utxo_node.rpc.call("getblock", [block, 1])
    assert txid in shown["tx"]
    assert shown["previousblockhash"] == utxo_node.rpc.call("getblockhash", [shown["height"] - 1])
    assert utxo_node.rpc.call("gettxout", [txid, place])["confirmations"] == 1
    entry = seen["vin"][0]
    assert utxo_node.rpc.call("gettxout", [entry["txid"], entry["vout"]]) is None
    assert utxo_node.rpc.call("getrawtransaction", [txid, True])["blockhash"] == block
    assert utxo_node.rpc.call("getrawtransaction", [txid]) == utxo_node.rpc.call("getblock", [block, 2])["tx"][-1]["hex"]


def test_what_is_not_there_is_said_with_cores_codes(utxo_node: UtxoNode) -> None:
    nowhere = os.urandom(32).hex()
    for method, params, code in (
        ("getblock", [nowhere, 2], -5),
        ("getblockheader", [nowhere], -5),
        ("getrawtransaction", [nowhere, True], -5),
        ("getmempoolentry", [nowhere], -5),
        ("getblockhash", [utxo_node.height + 1], -8),
        ("sendrawtransaction", ["00"], -22),
        ("thereisnosuchcall", [], -32601),
    ):
        with pytest.raises(RpcError) as refused:
            utxo_node.rpc.call(method, params)
        assert refused.value.code == code, method
    assert utxo_node.rpc.call("gettxout", [nowhere, 0]) is None
    estimate = utxo_node.rpc.call("estimatesmartfee", [2])
    assert ("errors" in estimate) != ("feerate" in estimate)  # it learns from the payments of other tests


def test_spending_twice_is_refused(utxo_node: UtxoNode) -> None:
    txid = utxo_node.send(utxo_node.new_address(), 500_000)
    # As much fee as the first: on no node a replacement.
    again = utxo_node.conflict(txid, fee_factor=1)
    assert refusal(utxo_node, again) == -26
    assert utxo_node.rpc.call("sendrawtransaction", [utxo_node.raw(txid)]) == txid  # what waits already may be sent again
    utxo_node.mine()
    assert refusal(utxo_node, again) == -25
    assert refusal(utxo_node, utxo_node.raw(txid)) == -27


def test_too_little_fee_and_a_wrong_signature_are_refused(utxo_node: UtxoNode) -> None:
    address = utxo_node.new_address()
    txid = utxo_node.send(address, 500_000)
    place = next(out["n"] for out in utxo_node.rpc.call("getrawtransaction", [txid, True])["vout"] if out["value"] == 0.005)
    assert refusal(utxo_node, utxo_node.signed([(txid, place)], {address: 499_999})) == -26
    raw = bytearray.fromhex(utxo_node.signed([(txid, place)], {address: 400_000}))
    raw[-60] ^= 1  # in the signature, which is near the end
    assert refusal(utxo_node, bytes(raw).hex()) == -26
    raw[-60] ^= 1
    utxo_node.rpc.call("sendrawtransaction", [bytes(raw).hex()])


def test_litecoin_replaces_by_fee(litecoin: Litecoin) -> None:
    address = litecoin.new_address()
    first = litecoin.send(address, 700_000)
    second = litecoin.bump_fee(first)
    assert first not in litecoin.mempool()
    third = litecoin.rpc.call("sendrawtransaction", [litecoin.conflict(second, fee_factor=20)])
    assert second not in litecoin.mempool()
    (block,) = litecoin.mine()
    assert third in litecoin.rpc.call("getblock", [block])["tx"]
    assert address not in paid(litecoin, block)


def test_litecoin_says_beforehand_what_it_would_accept_and_bitcoin_does_not(litecoin: Litecoin, bitcoin: Bcoin) -> None:
    txid = litecoin.send(litecoin.new_address(), 700_000)
    (verdict,) = litecoin.rpc.call("testmempoolaccept", [[litecoin.conflict(txid, fee_factor=1)]])
    assert not verdict["allowed"]
    with pytest.raises(RpcError, match="Method not found"):
        bitcoin.rpc.call("testmempoolaccept", [[]])


def test_bitcoin_throws_out_when_asked(bitcoin: Bcoin) -> None:
    txid = bitcoin.send(bitcoin.new_address(), 700_000)
    raw = bitcoin.raw(txid)
    bitcoin.evict(txid)
    assert txid not in bitcoin.mempool()
    assert bitcoin.rpc.call("sendrawtransaction", [raw]) == txid


def test_a_reorganisation_sends_payments_back_to_the_mempool(utxo_node: UtxoNode) -> None:
    address = utxo_node.new_address()
    txid = utxo_node.send(address, 900_000)
    old = utxo_node.mine(3)
    height = utxo_node.height
    new = utxo_node.reorg(3)
    assert utxo_node.height == height + 1
    assert len(new) == 4
    assert txid in utxo_node.mempool()
    # The stale block is known still, and says so.
    assert utxo_node.rpc.call("getblockheader", [old[0]])["confirmations"] == -1
    assert utxo_node.rpc.call("getblock", [old[0], 2])["confirmations"] == -1
    assert utxo_node.rpc.call("getblockhash", [height - 2]) == new[0]
    (block,) = utxo_node.mine()
    assert paid(utxo_node, block)[address] == 900_000


def test_a_reorganisation_may_mine_payments_again(utxo_node: UtxoNode) -> None:
    address = utxo_node.new_address()
    txid = utxo_node.send(address, 900_000)
    (old,) = utxo_node.mine()
    first, second = utxo_node.reorg(1, remine=True)
    assert first != old
    assert txid in utxo_node.rpc.call("getblock", [first])["tx"]
    assert len(utxo_node.rpc.call("getblock", [second])["tx"]) == 1
    assert utxo_node.mempool() == []


def test_a_reorganisation_may_bring_another_payment_instead(utxo_node: UtxoNode) -> None:
    address = utxo_node.new_address()
    txid = utxo_node.send(address, 900_000)
    instead = utxo_node.conflict(txid)
    utxo_node.mine()
    first, _ = utxo_node.reorg(1, instead=[instead])
    assert utxo_node.mempool() == []
    assert address not in paid(utxo_node, first)
    assert refusal(utxo_node, instead) == -27
    # Core's index remembers what was in stale blocks: whoever asks for the transaction has to look at the confirmations.
    assert utxo_node.rpc.call("getrawtransaction", [txid, True])["confirmations"] == 0


# The sweep: one keeper ends both, and Litecoin Core, which has data in a folder, stays.
@pytest.mark.parametrize("name", [pytest.param("Bcoin", marks=pytest.mark.sweep), "Litecoin"])
def test_a_node_ends_with_whoever_started_it_and_takes_its_data_along(name: str) -> None:
    program = f"import time; from infra.local.nodes import {name} as N; n = N(); print(n.pid, n._data, flush=True); time.sleep(60)"
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid, data = starter.stdout.readline().split()
    starter.kill()
    starter.wait()
    deadline = time.monotonic() + 20
    while alive(int(pid)) or (data != "None" and Path(data).exists()):
        assert time.monotonic() < deadline, "it runs still"
        time.sleep(0.01)


def test_a_program_that_is_named_and_not_there_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LITECOIND", str(tmp_path / "litecoind"))
    monkeypatch.setenv("BCOIN", str(tmp_path))
    with pytest.raises(NodeMissing, match="LITECOIND"):
        find_litecoind()
    with pytest.raises(NodeMissing, match="BCOIN"):
        find_bcoin()


def test_a_machine_without_npm_and_apt_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LITECOIND", raising=False)
    monkeypatch.delenv("BCOIN", raising=False)
    monkeypatch.setattr("infra.local.keeper.find_spec", lambda _: None)
    monkeypatch.setattr("infra.local.litecoin._DEBIANS", tmp_path / "usr" / "lib" / "litecoin" / "litecoind")
    with pytest.raises(NodeMissing, match="npm"):
        find_bcoin(tmp_path)
    with pytest.raises(NodeMissing, match=r"LITECOIND"):
        find_litecoind(tmp_path)
