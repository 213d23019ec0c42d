"""Tron transactions: published and mined ones to the byte, and random ones against tronpy's encoder: `SWEEP=full` has thousands."""

from __future__ import annotations

import os
import random
from hashlib import sha256
from typing import Any

import pytest
from coincurve import PrivateKey
from eth_keys.datatypes import PublicKey
from eth_keys.datatypes import Signature as EthSignature
from tronpy.keys import PrivateKey as TronKey

from chalicelib.chains.answers import Garbled
from chalicelib.chains.tron import protobuf
from chalicelib.chains.tron.payer import TronPayer
from chalicelib.chains.tron.second_reader import built_by_tronpy
from chalicelib.chains.tron.transactions import (
    Reference,
    Unsigned,
    assemble,
    decode,
    disassemble,
    native_transfers,
    opened,
    reference_to,
)
from chalicelib.chains.tron.values import address, hex_address, raw_address
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from chalicelib.usecases.ports.accounts import Opened
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.ports.signing import Signature
from tests.support.tron_published import FREEZE, MINED, NOT_OURS, SIGNED_CALL, USDT_CALL

USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"


RANDOM = random.Random(4)
CASES = 1_000 if os.environ.get("SWEEP") == "full" else 200


def signature_of(text: str) -> Signature:
    raw = bytes.fromhex(text)
    return Signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:64]), raw[64])


def facts(unsigned: Unsigned) -> tuple[str, str, str | None, int, int]:
    contract = None if unsigned.contract is None else hex_address(unsigned.contract)
    return (hex_address(unsigned.owner), hex_address(unsigned.recipient or ""), contract, unsigned.amount, unsigned.fee_limit)


def some_address() -> str:
    return base58check.encode(b"\x41" + RANDOM.randbytes(20))


def some_reference() -> Reference:
    time = RANDOM.randrange(1, 2 ** RANDOM.choice((8, 32, 41, 43)))
    return Reference(RANDOM.randbytes(2), RANDOM.randbytes(8), time, RANDOM.randrange(1, time + 1))


def some_transfer(owner: str | None = None) -> Unsigned:
    if RANDOM.random() < 0.5:
        amount = RANDOM.randrange(1, 2 ** RANDOM.choice((7, 8, 32, 63)))
        return Unsigned("TransferContract", owner or some_address(), amount, some_reference(), some_address())
    return Unsigned(
        "TriggerSmartContract", owner or some_address(), RANDOM.randrange(1, 2 ** RANDOM.choice((8, 64, 256))), some_reference(),
        some_address(), some_address(), fee_limit=RANDOM.randrange(1, 2**37),
    )  # fmt: skip


def by_tronpy(wanted: Unsigned) -> Any:
    ref = wanted.reference
    terms = {
        "raw.ref_block_bytes": ref.block_bytes.hex(), "raw.ref_block_hash": ref.block_hash.hex(), "raw.expiration": ref.expiration,
        "raw.timestamp": ref.timestamp, "raw.fee_limit": wanted.fee_limit,
    }  # fmt: skip
    order = Order("payment", wanted.owner, wanted.recipient or "", wanted.contract, wanted.amount, None, wanted.fee_limit, "")
    return built_by_tronpy(order, terms)


@pytest.mark.parametrize(("txid", "raw", "signature", "does"), MINED)
def test_mined_transfers(txid, raw, signature, does):
    decoded = decode(bytes.fromhex(raw))
    assert facts(decoded) == does
    assert decoded.txid == txid
    signed = assemble(decoded.encode(), signature_of(signature))
    assert signed.txid == txid
    assert disassemble(signed.raw) == (decoded, bytes.fromhex(signature))
    assert native_transfers(bytes.fromhex(raw)) == [(decoded.owner, decoded.recipient, decoded.amount)]


def test_a_published_call():
    raw, signature, does = SIGNED_CALL
    decoded = decode(bytes.fromhex(raw))
    assert facts(decoded) == does
    assert disassemble(assemble(decoded.encode(), signature_of(signature)).raw)[1].hex() == signature
    assert native_transfers(bytes.fromhex(raw)) == []


def test_trongrids_usdt_transfer():
    txid, raw = USDT_CALL
    decoded = decode(bytes.fromhex(raw))
    assert (decoded.txid, decoded.contract, decoded.amount, decoded.fee_limit) == (txid, USDT, 1_234_567, 100_000_000)


def test_a_mined_stake():
    txid, raw = FREEZE
    decoded = decode(bytes.fromhex(raw))
    assert (decoded.kind, decoded.txid, decoded.resource) == ("FreezeBalanceV2Contract", txid, "ENERGY")
    assert (hex_address(decoded.owner), decoded.amount) == ("41ba9406e2290365a47277de962130fc0f2927421e", 3_500_000_000)
    payer = TronPayer(next(n for n in default_networks("live") if n.slug == "tron"), None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stake"):
        payer.explain(raw)


@pytest.mark.parametrize("raw", NOT_OURS)
def test_what_others_encode_in_another_way_is_not_signed(raw):
    with pytest.raises(ValueError):
        decode(bytes.fromhex(raw))


def test_random_transfers_have_the_ids_that_tronpy_gives_them():
    for _ in range(3 * CASES):
        wanted = some_transfer()
        assert by_tronpy(wanted).txid == wanted.txid, wanted
        assert decode(wanted.encode()) == wanted


def test_the_json_for_the_node_is_what_tronpy_sends():
    for _ in range(200):
        wanted = some_transfer()
        ours, theirs = wanted.json(), by_tronpy(wanted).to_json()
        value = theirs["raw_data"]["contract"][0]["parameter"]["value"]
        for name in ("call_value", "call_token_value", "token_id"):
            value.pop(name, None)
        assert (ours["txID"], ours["raw_data"]) == (theirs["txID"], theirs["raw_data"])


def test_signatures_are_by_the_owners_key_and_nobody_elses():
    for _ in range(CASES):
        key = PrivateKey(RANDOM.randbytes(32))
        point = key.public_key.format(compressed=False)[1:]
        unsigned = some_transfer(tron_address(point))
        digest = bytes.fromhex(unsigned.txid)
        made = sign_with(key, digest)
        signed = assemble(unsigned.encode(), made)
        _, kept = disassemble(signed.raw)
        assert opened(signed.raw) == Opened(unsigned.encode().hex(), signed.txid, unsigned.owner)
        assert kept.hex() == TronKey(key.secret).sign_msg_hash(digest).hex()
        recovered: PublicKey = EthSignature(kept).recover_public_key_from_msg_hash(digest)
        assert recovered.to_bytes() == point
        assert sha256(unsigned.encode()).hexdigest() == signed.txid
        with pytest.raises(ValueError, match="not by the key"):
            assemble(some_transfer().encode(), made)


def test_signatures_out_of_range_are_refused():
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    for wrong in (
        Signature(0, 1, 0),
        Signature(1, 0, 0),
        Signature(order, 1, 0),
        Signature(1, order // 2 + 1, 0),
        Signature(1, 1, 2),
    ):
        with pytest.raises(ValueError, match="out of range"):
            assemble(some_transfer().encode(), wrong)


def test_one_changed_byte_is_another_transaction_or_none():
    """Nothing is decoded that is not encoded again to the very same bytes."""
    for _ in range(300):
        raw = bytearray(some_transfer().encode())
        at = RANDOM.randrange(len(raw))
        raw[at] ^= 1 << RANDOM.randrange(8)
        try:
            assert decode(bytes(raw)).encode() == raw
        except ValueError:
            continue


def added(raw: bytes, *more: tuple[int, int | bytes]) -> bytes:
    return raw + protobuf.message(*more)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: added(raw, (10, b"memo")),
        lambda raw: added(raw, (11, b"\x08\x01")),
        lambda raw: added(raw, (18, 1_000_000)),
        lambda raw: added(raw, (9, b"auth")),
        lambda raw: raw[:-1],
        lambda raw: b"",
        lambda raw: raw.replace(b"\x5a", b"\x52", 1),
    ],
)
def test_nothing_can_be_added_to_a_transfer(spoil):
    raw = Unsigned("TransferContract", USDT, 5, Reference(b"\1\2", b"12345678", 2**41, 2**41), USDT).encode()
    assert decode(raw).amount == 5
    with pytest.raises(ValueError):
        decode(spoil(raw))


def test_other_kinds_and_other_calls_are_refused():
    reference = Reference(b"\1\2", b"12345678", 2**41, 2**41)
    owner = raw_address(USDT)

    def raw(kind: int, name: str, *inner: tuple[int, int | bytes], more: tuple[tuple[int, int | bytes], ...] = ()) -> bytes:
        packed = protobuf.message((1, f"type.googleapis.com/protocol.{name}".encode()), (2, protobuf.message(*inner)))
        contract = protobuf.message((1, kind), (2, packed), *more)
        limit = 1_000_000 if kind == 31 else 0
        return protobuf.message(
            (1, reference.block_bytes), (4, reference.block_hash), (8, 2**41), (11, contract), (14, 2**41), (18, limit)
        )

    transfer = ((1, owner), (2, owner), (3, 5))
    assert decode(raw(1, "TransferContract", *transfer)).amount == 5
    call = bytes.fromhex("a9059cbb") + b"\0" * 12 + owner[1:] + (5).to_bytes(32)
    assert decode(raw(31, "TriggerSmartContract", (1, owner), (2, owner), (4, call))).amount == 5
    for wrong in (
        raw(2, "TransferAssetContract", *transfer),
        raw(46, "AccountPermissionUpdateContract", *transfer),
        raw(1, "TransferContract", *transfer, more=((5, 2),)),  # Permission_id
        raw(1, "TriggerSmartContract", *transfer),
        raw(1, "TransferContract", (1, owner), (2, owner)),
        raw(1, "TransferContract", (1, owner[:20]), (2, owner), (3, 5)),
        raw(31, "TriggerSmartContract", (1, owner), (2, owner), (3, 7), (4, call)),  # call_value
        raw(31, "TriggerSmartContract", (1, owner), (2, owner), (4, bytes.fromhex("095ea7b3") + call[4:])),  # approve
        raw(31, "TriggerSmartContract", (1, owner), (2, owner), (4, call + b"\0")),
        raw(31, "TriggerSmartContract", (1, owner), (2, owner), (4, call), (5, 1), (6, 1_000_001)),
        raw(54, "FreezeBalanceV2Contract", (1, owner), (2, 5), (3, 2)),
    ):
        with pytest.raises(ValueError):
            decode(wrong)


def test_a_strangers_transfer_is_read_whatever_was_added_to_it():
    raw, does = bytes.fromhex(MINED[0][1]), MINED[0][3]
    odd = added(raw, (10, b"thank you")) + b"\xfd\x7d" + b"12345678"[:4] + b"\xf1\x0712345678"
    assert native_transfers(odd) == [(address(does[0]), address(does[1]), does[3])]
    with pytest.raises(ValueError):
        native_transfers(raw[:-3])


def test_addresses_are_spelled_as_base58_does():
    for _ in range(2000):
        payload = b"\x41" + RANDOM.randbytes(20)
        assert address(payload.hex()) == base58check.encode(payload)
    for edge in (b"\x41" + b"\0" * 20, b"\x41" + b"\xff" * 20):
        assert address(edge.hex()) == base58check.encode(edge)
    for wrong in ("42" + "0" * 40, "41" + "0" * 39, "41 " + "0" * 39, "41" + "0" * 40 + " ", "", "0x" + "0" * 40, None, 41):
        with pytest.raises(Garbled):
            address(wrong)


def test_references_are_the_lower_bytes_of_the_number_and_the_middle_of_the_hash():
    """The main network's block 43376730 (developers.tron.network, "Transactions": ref_block_bytes, ref_block_hash)."""
    found = reference_to("000000000295e05aa866246a779650fe41d6c2a80b8a610c343ecaa2c43c2d1c", 2, 1)
    assert (found.block_bytes.hex(), found.block_hash.hex()) == ("e05a", "a866246a779650fe")
