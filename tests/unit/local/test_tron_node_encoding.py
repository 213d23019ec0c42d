"""The Tron test node's own protobuf, hashes and signatures, against real transactions and blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.tron.chain import merkle_root
from infra.local.tron.execution import RESULT_BYTES
from infra.local.tron.messages import CODEC, Signed, from_json, sha256, to_json
from infra.local.tron.protobuf import Malformed, encode_varint, read_varint
from infra.local.tron.signatures import BadSignature, check_signatures, signer
from tests.support.tron_vectors import BLOCK, EMPTY_BLOCK, VECTORS, Vector

by_source = pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.kind)


def signed(vector: Vector) -> Signed:
    signatures = (bytes.fromhex(vector.signature),) if vector.signature else ()
    return Signed(CODEC.decode("raw", bytes.fromhex(vector.raw)), signatures)


@by_source
def test_real_transactions_decode_and_encode(vector: Vector) -> None:
    transaction = signed(vector)
    assert transaction.raw_bytes.hex() == vector.raw
    assert transaction.txid.hex() == vector.txid
    assert transaction.contract["type"] == vector.kind
    assert to_json(vector.kind, transaction.contract["parameter"]["value"], visible=False) == vector.value


@by_source
@pytest.mark.parametrize("visible", [False, True])
def test_json_of_real_transactions_encodes_to_the_same_bytes(vector: Vector, visible: bool) -> None:
    transaction = signed(vector)
    again = from_json("raw", to_json("raw", transaction.raw, visible), visible)
    assert Signed(again).raw_bytes.hex() == vector.raw


@pytest.mark.parametrize("vector", [v for v in VECTORS if v.signature], ids=lambda v: v.kind)
def test_real_signatures_are_their_owners(vector: Vector) -> None:
    transaction = signed(vector)
    assert signer(transaction.txid, transaction.signatures[0]).hex() == vector.value["owner_address"]
    check_signatures(transaction)


def test_bandwidth_of_a_real_transfer() -> None:
    # TronGrid says net_usage 268 of it.
    assert len(signed(VECTORS[1]).encoded()) + RESULT_BYTES == 268


def test_a_real_block_is_spelt_the_same() -> None:
    leaves, ids = [], []
    for txid, raw, signature in BLOCK["transactions"]:
        transaction = Signed(CODEC.decode("raw", bytes.fromhex(raw)), (bytes.fromhex(signature),))
        ids.append(transaction.txid.hex() == txid)
        check_signatures(transaction)
        leaves.append(sha256(transaction.encoded("SUCCESS")))
    assert all(ids) and len(ids) == 5
    assert merkle_root(leaves).hex() == BLOCK["header"]["txTrieRoot"]
    # The last one names the parent as its reference block.
    parent = bytes.fromhex(BLOCK["header"]["parentHash"])
    last = CODEC.decode("raw", bytes.fromhex(BLOCK["transactions"][-1][1]))
    assert (last["ref_block_bytes"], last["ref_block_hash"]) == (parent[6:8], parent[8:16])


@pytest.mark.parametrize("block", [BLOCK, EMPTY_BLOCK], ids=["full", "empty"])
def test_ids_and_signatures_of_real_blocks(block: dict) -> None:
    header = from_json("BlockHeader", block["header"], visible=False)
    digest = sha256(CODEC.encode("BlockHeader", header))
    assert (header["number"].to_bytes(8) + digest[8:]).hex() == block["blockID"]
    assert signer(digest, bytes.fromhex(block["witness_signature"])) == header["witness_address"]


def test_no_transactions_have_a_root_of_zeros() -> None:
    assert merkle_root([]).hex() == EMPTY_BLOCK["header"]["txTrieRoot"]


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers_survive(number: int) -> None:
    spelt = encode_varint(number)
    assert read_varint(spelt, 0) == (number, len(spelt))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("0a", "ends within"),
        ("0a05aa", "longer than"),
        ("0a02aabb0a02aabb", "canonical"),
        ("1000", "no field 2"),
        ("08ff", "ends within"),
        ("08" + "ff" * 10, "ten bytes"),
        ("0d00000000", "wire type"),
        ("0801", "wrong wire type"),
        ("4000", "canonical"),
        ("70010a021234", "canonical"),
        ("5a020863", "ContractType has no 99"),
    ],
    ids=lambda part: part[:24],
)
def test_other_bytes_are_refused(data: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        CODEC.decode("raw", bytes.fromhex(data))


@pytest.mark.parametrize(
    "shown",
    [
        {"amount": "1"},
        {"amount": 1.5},
        {"amount": True},
        {"amount": 1 << 63},
        {"to_address": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
        {"to_address": "41zz"},
        {"to_addres": "41"},
        [],
    ],
    ids=str,
)
def test_other_json_is_refused(shown: object) -> None:
    with pytest.raises(Malformed):
        from_json("TransferContract", shown, visible=False)


def test_signatures_that_are_none() -> None:
    transaction = signed(VECTORS[1])
    good = transaction.signatures[0]
    for bad in (good[:64] + b"\x05", bytes(65), b"\xff" * 64 + b"\0"):
        with pytest.raises(BadSignature):
            check_signatures(Signed(transaction.raw, (bad,)))
    # The same signature with v counted from 27, as Ethereum does: java-tron takes both.
    check_signatures(Signed(transaction.raw, (good[:64] + bytes([good[64] + 27]),)))
    for many in ((), (good, good)):
        with pytest.raises(BadSignature):
            check_signatures(Signed(transaction.raw, many))
