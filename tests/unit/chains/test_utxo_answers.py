"""What UTXO nodes answer: amounts to the last unit, odd outputs, fee rates within bounds, errors that say no."""

from __future__ import annotations

import os
import random
import struct
from hashlib import sha256
from typing import Any

import orjson
import pytest

from chalicelib.chains import rpc
from chalicelib.chains.answers import Garbled
from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.chains.utxo import refusals
from chalicelib.chains.utxo.answers import MOST_EXACT, units
from chalicelib.chains.utxo.facts import policy_of
from chalicelib.chains.utxo.fees import estimate, rate_for
from chalicelib.chains.utxo.headers import check_block, read_header
from chalicelib.chains.utxo.mempool import UtxoMempool
from chalicelib.chains.utxo.parsing import outputs_of, parse_block
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Header, Reward
from tests.unit.chains.rpc_server import result, says, server

AMOUNTS = 50_000 if os.environ.get("SWEEP") == "full" else 10_000
PARENT, TXID = "cd" * 32, "ef" * 32


def text_of(amount: int) -> bytes:
    """As Core writes it (ValueFromAmount)."""
    return f"{amount // 10**8}.{amount % 10**8:08d}".encode()


def test_amounts_are_exact() -> None:
    source = random.Random("amounts")
    edges = [0, 1, 2, 10**8 - 1, 10**8, 10**8 + 1, 21 * 10**14, 21 * 10**14 - 1, MOST_EXACT - 1, MOST_EXACT - 2]
    powers = [n for k in range(52) for n in (2**k - 1, 2**k, 2**k + 1) if n < MOST_EXACT]
    tried = [*edges, *powers, *(source.randrange(MOST_EXACT) for _ in range(2 * AMOUNTS)), *range(MOST_EXACT - 20_000, MOST_EXACT)]
    tried += [source.randrange(10 ** source.randint(1, 15)) for _ in range(AMOUNTS)]
    read = orjson.loads(b"[" + b",".join(map(text_of, tried)) + b"]")
    assert [units(value) for value in read] == tried
    # The hot path's own spelling of the same.
    outputs = [output(value, n) for n, value in enumerate(read)]
    assert [t.amount for t in outputs_of([transaction(*outputs)])] == [amount for amount in tried if amount]


def test_what_floats_can_not_tell_apart_is_no_amount() -> None:
    # Above 2^26 coins, which litecoin has, two amounts share a float: nothing of that size is guessed at.
    assert orjson.loads(text_of(8_399_999_999_999_999)) == orjson.loads(text_of(8_399_999_999_999_998))
    for wrong in (
        b"33554432.00000000",
        b"83999999.99999999",
        b"33554432",
        b"1e300",
        b"-0.00000001",
        b"-1",
        b"0.000000015",
        b"0.123456789",
    ):
        with pytest.raises(Garbled):
            units(orjson.loads(wrong))
    for nothing in ("1", None, True, [1]):
        with pytest.raises(Garbled):
            units(nothing)
    assert units(50) == 5 * 10**9


def output(value: Any, n: int = 0, **script: Any) -> dict[str, Any]:
    return {"value": value, "n": n, "scriptPubKey": {"type": "witness_v0_keyhash", "address": "bc1qx", **script}}


def transaction(*outputs: dict[str, Any], coinbase: bool = False) -> dict[str, Any]:
    spent = {"coinbase": "00"} if coinbase else {"txid": "00" * 32, "vout": 0}
    return {"txid": TXID, "vin": [spent], "vout": list(outputs)}


def test_only_outputs_of_addresses_count() -> None:
    old = {"type": "scripthash", "addresses": ["3x"]}
    found = outputs_of(
        [
            transaction(output(50.0), coinbase=True),
            transaction(
                output(1.5),
                output(0.0, 1),
                {"value": 0.25, "n": 2, "scriptPubKey": old},
                output(0.1, 3, type="nulldata"),
                # Older nodes name the address of a bare key, and those of a bare multisig.
                {"value": 0.1, "n": 4, "scriptPubKey": {"type": "pubkey", "addresses": ["1x"]}},
                {"value": 0.1, "n": 5, "scriptPubKey": {"type": "multisig", "addresses": ["1x", "1y"]}},
                {"value": 0.1, "n": 6, "scriptPubKey": {"type": "witness_mweb_hogaddr"}},
                {"ismweb": True, "output_id": "00"},
                output(0.00000001, 8),
                output(2, 9),
            ),
        ]
    )
    assert [(t.txid, t.position, t.contract, t.sender, t.recipient, t.amount) for t in found] == [
        (TXID, "out:0", None, "", "bc1qx", 150_000_000),
        (TXID, "out:2", None, "", "3x", 25_000_000),
        (TXID, "out:8", None, "", "bc1qx", 1),
        (TXID, "out:9", None, "", "bc1qx", 200_000_000),
    ]


def test_an_amount_beyond_what_can_be_read_is_left_out_with_an_alarm(caplog: pytest.LogCaptureFixture) -> None:
    assert [t.amount for t in outputs_of([transaction(output(40_000_000.5), output(0.5), output(40_000_000))])] == [50_000_000]
    assert caplog.text.count("ALARM") == 2


@pytest.mark.parametrize(
    "broken",
    [
        transaction({"n": 0, "scriptPubKey": {}}),
        transaction({"value": 1.0, "n": 0}),
        transaction(output(-1.0)),
        transaction(output("1.0")),
        transaction(output(0.000000001)),
        transaction({"value": 1.0, "n": 0, "scriptPubKey": {"type": "pubkeyhash"}}),
        {"vin": [{}], "vout": []},
        {"txid": TXID, "vin": [], "vout": []},
        TXID,
        None,
    ],
)
def test_garbled_transactions_are_no_transactions(broken: Any) -> None:
    with pytest.raises(Garbled):
        outputs_of([broken])


def hashed(block: dict[str, Any]) -> dict[str, Any]:
    """`block` with the root and the hash that belong to it (Bitcoin's reference, "Block Headers")."""
    row = [bytes.fromhex(tx["txid"])[::-1] for tx in block["tx"]]
    while len(row) > 1:
        row += row[-1:] if len(row) % 2 else []
        row = [sha256(sha256(a + b).digest()).digest() for a, b in zip(row[::2], row[1::2], strict=True)]
    header = struct.pack("<i", block["version"]) + bytes.fromhex(block["previousblockhash"])[::-1] + row[0]
    header += struct.pack("<I", block["time"]) + bytes.fromhex(block["bits"])[::-1] + struct.pack("<I", block["nonce"])
    return {**block, "merkleroot": row[0][::-1].hex(), "hash": sha256(sha256(header).digest()).digest()[::-1].hex()}


def block(**changes: Any) -> dict[str, Any]:
    made = hashed(_plain_block())
    return {**made, **changes}


def _plain_block() -> dict[str, Any]:
    return {
        "height": 7, "version": 536870912, "bits": "1d00ffff", "nonce": 12345, "confirmations": 1, "previousblockhash": PARENT,
        "time": 1_700_000_000, "nTx": 2,
        "tx": [{**transaction(output(50.0), coinbase=True), "txid": "01" * 32}, transaction(output(0.5))],
    }  # fmt: skip


def test_blocks() -> None:
    whole = block()
    name = whole["hash"]
    read = parse_block(whole, 7, name)
    assert (read.number, read.hash, read.parent_hash, read.time) == (7, name, PARENT, 1_700_000_000_000)
    assert [t.amount for t in read.transfers] == [50_000_000]
    assert read.rewards == [Reward("coinbase " + "01" * 32, "bc1qx", 50 * 10**8)]
    wrong = [
        {"hash": PARENT}, {"height": 8}, {"confirmations": -1}, {"previousblockhash": None}, {"time": None}, {"nTx": 3},
        {"tx": []}, {"tx": None}, {"tx": [TXID, TXID]}, {"tx": whole["tx"][:1], "nTx": 1}, {"tx": whole["tx"][::-1]},
        {"tx": [*whole["tx"], whole["tx"][1]], "nTx": 3}, {"bits": "1d00fffe"}, {"bits": None}, {"nonce": 1}, {"nonce": -1},
        {"version": None}, {"merkleroot": TXID}, {"merkleroot": "x"}, {"time": 1}, {"bits": "1d00ffff00"},
    ]  # fmt: skip
    for change in wrong:
        try:
            parse_block(block(**change), 7, name)
        except Garbled:
            continue
        pytest.fail(str(change))
    with pytest.raises(Garbled):
        parse_block(None, 7, name)


def test_a_block_that_others_know() -> None:
    """Bitcoin's block 170 (blockchain explorers; the first payment ever made): its ids, root, and hash."""
    coinbase = "b1fea52486ce0c62bb442b530a3f0132b826c74e473d1f2c220bfa78111c5082"
    payment = "f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16"
    told = {
        "hash": "00000000d1145790a8694403d4063f323d499e655c83426834d4ce2f8dd4a2ee",
        "previousblockhash": "000000002a22cfee1f2c846adbd12b3e183d4f97683f85dad08a79780a84bd55",
        "merkleroot": "7dac2c5666815c17a3b36427de37bb9d2e2c5ccec3f8633eb91a4205cb4c10ff",
        "version": 1, "time": 1231731025, "bits": "1d00ffff", "nonce": 1889418792,
    }  # fmt: skip
    check_block(told, [coinbase, payment])
    for txids in ([coinbase], [payment, coinbase], [coinbase, payment, payment], []):
        with pytest.raises(Garbled):
            check_block(told, txids)


def test_a_header_that_others_know() -> None:
    """Bitcoin's first block (its 80 bytes are in every node's source)."""
    name = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"
    root = "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a"
    raw = "01000000" + "0" * 64 + root + "29ab5f49" + "ffff001d" + "1dac2b7c"
    assert read_header(raw, 0, name) == Header(0, name, "0" * 64, 1231006505000)
    for wrong in (raw.replace("29ab", "2aab"), raw[:-2], raw + "00", "", None, 7, {"hash": name}, "xx" * 80):
        with pytest.raises(Garbled):
            read_header(wrong, 0, name)


def test_fee_rates_follow_the_node_within_bounds() -> None:
    policy, pool = policy_of("live:bitcoin"), {"mempoolminfee": 0.00001, "minrelaytxfee": 0.00001}

    def at(priority: Any, normal: Any, own: Any = None, pool: Any = pool) -> int:
        return rate_for(policy, priority, {"feerate": normal}, {"feerate": own} if own else {"errors": ["no"]}, pool)

    # The published multiples, unless the node says that its own target costs more.
    assert [at(priority, 0.0002) for priority in ("low", "normal", "high", "urgent")] == [16_000, 20_000, 30_000, 40_000]
    assert [at("urgent", 0.0002, 0.0009), at("low", 0.0002, 0.00018)] == [90_000, 18_000]
    # Not below what is relayed, not above what is believed; and a guess where the node has none.
    assert [at("low", 0.000001), at("low", 0.00001, None, {"mempoolminfee": 0.00005}), at("low", 0.00001, None, {})] == [
        1_000,
        5_000,
        1_000,
    ]
    assert [at("urgent", 1.0), at("normal", 0.0001, 5), at("low", 0.0001, None, {"mempoolminfee": 1000})] == [1_000_000] * 3
    for unknown in (
        {"errors": ["Insufficient data or no feerate found"], "blocks": 2},
        {"feerate": -1},
        {"fee": -1, "blocks": 6},
        {},
    ):
        assert estimate(unknown) is None
        assert rate_for(policy, "normal", unknown, unknown, pool) == policy.unknown
    assert estimate({"fee": 0.0001, "blocks": 6}) == 10_000
    for wrong in ({"feerate": "1"}, {"feerate": 10**12}, None, []):
        with pytest.raises(Garbled):
            estimate(wrong)


@pytest.mark.parametrize(
    ("code", "message", "taken", "known"),
    [
        # src/validation.cpp and src/rpc/rawtransaction.cpp of Bitcoin Core.
        (-25, "bad-txns-inputs-missingorspent", False, False),
        (-25, "Missing inputs", False, False),
        (-26, "txn-mempool-conflict", False, False),
        (-26, "insufficient fee, rejecting replacement ab, not enough additional fees to relay; 0.00 < 0.00000141", False, False),
        (-26, "min relay fee not met, 100 < 141", False, False),
        (-26, "dust", False, False),
        (-27, "Transaction already in block chain", True, True),
        (-27, "Transaction outputs already in utxo set", True, True),
        (-26, "txn-already-known", True, True),
        (-26, "txn-already-in-mempool", True, True),
        (-28, "Loading block index...", True, False),
        (-1, "something else", True, False),
    ],
)
def test_what_nodes_say_to_a_transaction(code: int, message: str, taken: bool, known: bool) -> None:
    error = RpcError(code, message)
    assert refusals.known_already(error) is known
    assert (refusals.not_taken(error) and not known) is not taken


def test_a_node_without_an_index_does_not_know_what_is_not_there() -> None:
    # src/rpc/rawtransaction.cpp
    unindexed = RpcError(
        -5, "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries."
    )
    indexing = RpcError(-5, "No such mempool transaction. Blockchain transactions are still in the process of being indexed.")
    gone = RpcError(-5, "No such mempool or blockchain transaction. Use gettransaction for wallet transactions.")
    assert [refusals.no_such_transaction(error) for error in (unindexed, indexing, gone)] == [False, False, True]
    assert all(refusals.no_such_transaction(error, indexed=False) for error in (unindexed, indexing, gone))
    assert not refusals.no_such_transaction(RpcError(-28, "Loading"))
    assert refusals.no_such_height(RpcError(-8, "Block height out of range"))
    assert not refusals.no_such_height(RpcError(-28, "Loading"))


def test_a_waiting_transaction_too_large_to_be_read_is_left_to_its_block(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others of its batch are read, in smaller ones."""
    monkeypatch.setattr(rpc, "MOST_TRACED", 1_000)
    ids = [f"{n:064x}" for n in range(5)]

    def transaction(asked: Any) -> Any:
        txid = asked["params"][0]
        return result(
            asked,
            {
                "txid": txid,
                "vin": [{"txid": ids[0], "vout": 0, "sequence": 1}],
                "vout": [],
                "hex": "00" * (600 if txid == ids[3] else 1),
            },
        )

    with server(lambda asked: says([transaction(each) for each in asked])) as serving:
        mempool = UtxoMempool(next(n for n in default_networks("live") if n.slug == "bitcoin"), JsonRpc(serving.url))
        assert [found.txid for found in mempool.transactions(ids)] == [*ids[:3], ids[4]]
    assert "is not read" in caplog.text
