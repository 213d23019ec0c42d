"""Transaction bytes against EIP-155's published example and a second implementation (eth_account); strict decoding."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
import rlp
from coincurve import PrivateKey
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction

from chalicelib.chains.abi import parse_transfer_call, transfer_call
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.transactions import Unsigned, assemble, decode_payload, disassemble, signer
from chalicelib.chains.rpc import JsonRpc
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding.keccak import keccak256
from chalicelib.usecases.ports.accounts import Explained
from chalicelib.usecases.ports.signing import Signature

CASES = 1_000 if os.environ.get("SWEEP") == "full" else 200
RECIPIENT = "0x" + "35" * 20
TOKEN = "0x" + "70" * 20


def payer(slug: str = "ethereum") -> EvmPayer:
    network = next(network for network in default_networks("live") if network.slug == slug)
    return EvmPayer(network, JsonRpc("http://127.0.0.1:1"))


def typed(**changes: object) -> Unsigned:
    fields = {
        "chain_id": 1, "nonce": 3, "gas": 21_000, "max_fee": 30 * 10**9, "tip": 10**9,
        "to": bytes.fromhex(RECIPIENT[2:]), "value": 10**18, "data": b"",
    }  # fmt: skip
    return Unsigned(**(fields | changes))  # type: ignore[arg-type]


def token_call(data: bytes, **changes: object) -> Unsigned:
    return typed(**({"to": bytes.fromhex(TOKEN[2:]), "value": 0, "data": data} | changes))


def test_the_example_of_eip155() -> None:
    """https://eips.ethereum.org/EIPS/eip-155, "Example"."""
    unsigned = Unsigned(1, 9, 21_000, 20 * 10**9, None, bytes.fromhex(RECIPIENT[2:]), 10**18, b"")
    payload = "ec098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080018080"
    assert unsigned.payload().hex() == payload
    digest = keccak256(unsigned.payload())
    assert digest.hex() == "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"
    assert payer().digest(payload) == payer().digest("0x" + payload) == digest
    signature = Signature(
        18515461264373351373200002665853028612451056578545711640558177340181847433846,
        46948507304638947509940763649030358759909902576025900602547168820602576006531,
        0,
    )
    assert sign_with(PrivateKey(b"\x46" * 32), digest) == signature
    assert payer().assemble(payload, signature).raw == (
        "0xf86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003"
        "e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
    )
    assert payer().explain(payload) == Explained(1, 9, RECIPIENT, None, 10**18, fee=21_000 * 20 * 10**9)


@pytest.mark.parametrize("kind", ["typed", "legacy"])
def test_signed_bytes_ids_and_digests_are_eth_accounts(kind: str) -> None:
    source = random.Random(f"evm {kind}")
    for _ in range(CASES):
        key = PrivateKey(source.randbytes(32))
        data = (
            b""
            if source.random() < 0.5
            else transfer_call("0x" + source.randbytes(20).hex(), source.getrandbits(source.choice((1, 64, 256))))
        )
        unsigned = Unsigned(
            chain_id=source.choice((1, 56, 137, 250, 42161, 2**40)),
            nonce=source.choice((0, 1, 127, 128, 255, 256, source.getrandbits(32))),
            gas=source.randrange(21_000, 10**7),
            max_fee=source.getrandbits(source.choice((1, 8, 40, 60))),
            tip=source.getrandbits(source.choice((1, 8, 30))) if kind == "typed" else None,
            to=source.randbytes(20),
            value=source.choice((0, 1, 127, 128, source.getrandbits(80))),
            data=data,
        )
        fees = (
            {"gasPrice": unsigned.max_fee}
            if kind == "legacy"
            else {"maxFeePerGas": unsigned.max_fee, "maxPriorityFeePerGas": unsigned.tip}
        )
        theirs = {
            "chainId": unsigned.chain_id, "nonce": unsigned.nonce, "gas": unsigned.gas, "to": unsigned.to,
            "value": unsigned.value, "data": data, **fees, **({"type": 2, "accessList": []} if kind == "typed" else {}),
        }  # fmt: skip
        expected = Account.sign_transaction(theirs, key.secret)
        digest = keccak256(unsigned.payload())
        if kind == "typed":
            assert digest == TypedTransaction.from_dict(theirs).hash()
        signature = sign_with(key, digest)
        done = assemble(unsigned, signature)
        assert done.raw == "0x" + expected.raw_transaction.hex().removeprefix("0x")
        assert done.txid == "0x" + expected.hash.hex().removeprefix("0x")
        assert signer(unsigned, signature) == Account.recover_transaction(done.raw)
        assert decode_payload(unsigned.payload()) == unsigned
        assert disassemble(bytes.fromhex(done.raw[2:])) == (unsigned, signature)


def test_explain_reads_transfers_of_both_kinds() -> None:
    assert typed().explain() == Explained(1, 3, RECIPIENT, None, 10**18)
    assert token_call(transfer_call(RECIPIENT, 2**256 - 1)).explain() == Explained(1, 3, RECIPIENT, TOKEN, 2**256 - 1)


WORD = b"\0" * 12 + b"\x11" * 20
AMOUNT = (5).to_bytes(32)
OTHER_CALLS = {
    "approve": bytes.fromhex("095ea7b3") + WORD + AMOUNT,
    "transferFrom": bytes.fromhex("23b872dd") + WORD + WORD + AMOUNT,
    "increaseAllowance": bytes.fromhex("39509351") + WORD + AMOUNT,
    "permit": bytes.fromhex("d505accf") + WORD * 7,
    "multicall": bytes.fromhex("ac9650d8") + WORD * 3,
    "only a selector": bytes.fromhex("a9059cbb"),
    "no selector": b"\x01",
    "a short amount": bytes.fromhex("a9059cbb") + WORD + AMOUNT[:-1],
    "something behind it": bytes.fromhex("a9059cbb") + WORD + AMOUNT + b"\0",
    "bits above the address": bytes.fromhex("a9059cbb") + b"\x01" + WORD[1:] + AMOUNT,
    "nothing moved": bytes.fromhex("a9059cbb") + WORD + b"\0" * 32,
}


@pytest.mark.parametrize("data", OTHER_CALLS.values(), ids=OTHER_CALLS.keys())
def test_other_calls_are_never_explained_nor_hashed_nor_assembled(data: bytes) -> None:
    refuses("0x" + token_call(data).payload().hex())


def refuses(unsigned: str) -> None:
    signature = Signature(1, 1, 0)
    for ask in (payer().explain, payer().digest, lambda text: payer().assemble(text, signature)):
        with pytest.raises(ValueError, match=r"."):
            ask(unsigned)


def encoded(fields: list[object], prefix: bytes = b"\x02") -> bytes:
    return prefix + rlp.encode(fields)


def plain_fields() -> list[object]:
    fields = rlp.decode(typed().payload()[1:])
    assert isinstance(fields, list)
    return fields


def with_field(place: int, value: object) -> bytes:
    fields = plain_fields()
    fields[place] = value
    return encoded(fields)


KEY_ON_LIST = [[b"\x11" * 20, [b"\0" * 32]]]
OTHER_BYTES = {
    "nothing": b"",
    "type 2 and nothing": b"\x02",
    "no transaction": b"\xff" * 40,
    "an unknown type": encoded(plain_fields(), b"\x05"),
    "type 1": encoded(plain_fields(), b"\x01"),
    "blobs (type 3)": encoded(plain_fields(), b"\x03"),
    "delegation (type 4)": encoded(plain_fields(), b"\x04"),
    "something behind it": typed().payload() + b"\0",
    "a byte missing": typed().payload()[:-1],
    "ten fields": encoded([*plain_fields(), b""]),
    "eight fields": encoded(plain_fields()[:-1]),
    "signed already": encoded([*plain_fields(), b"", b"\x01", b"\x01"]),
    "an access list": with_field(8, KEY_ON_LIST),
    "an access list that is a string": with_field(8, b""),
    "makes a contract": with_field(5, b""),
    "a short recipient": with_field(5, b"\x11" * 19),
    "a long recipient": with_field(5, b"\x11" * 32),
    "a nonce that is a list": with_field(1, []),
    "a nonce with a zero in front": with_field(1, b"\0\x03"),
    "a value with a zero in front": with_field(6, b"\0\x01"),
    "a value of 33 bytes": with_field(6, b"\x01" * 33),
    "no value": with_field(6, b""),
    "value and a call": token_call(transfer_call(RECIPIENT, 5), value=1).payload(),
    "value and a note": typed(data=b"hello").payload(),
    "another chain": typed(chain_id=56).payload(),
    "no chain": typed(chain_id=0).payload(),
    "legacy without a chain (before EIP-155)": rlp.encode([b"\x03", b"\x01", b"\x52\x08", b"\x11" * 20, b"\x01", b""]),
    "legacy, another chain": typed(tip=None, chain_id=56).payload(),
    "legacy, signed": rlp.encode([b"\x03", b"\x01", b"\x52\x08", b"\x11" * 20, b"\x01", b"", b"\x25", b"\x01", b"\x01"]),
    "a fee that no transfer costs": typed(max_fee=10**15).payload(),
}


@pytest.mark.parametrize("payload", OTHER_BYTES.values(), ids=OTHER_BYTES.keys())
def test_other_bytes_are_never_explained_nor_hashed_nor_assembled(payload: bytes) -> None:
    refuses("0x" + payload.hex())


@pytest.mark.parametrize("text", ["", "0x", "0x0", "0xzz", "hello"])
def test_text_that_is_no_transaction(text: str) -> None:
    refuses(text)


def test_lengths_written_the_long_way_are_refused() -> None:
    """The same fields in a longer spelling have another hash: RLP has one encoding of everything."""
    payload = typed().payload()
    body = payload[2:]
    refuses("0x02" + (b"\xf8" + bytes([len(body)]) + body).hex())


def test_no_changed_byte_goes_unnoticed() -> None:
    """Whatever is decoded is exactly those bytes, so bytes that were tampered with never read as what was approved."""
    source = random.Random("tampering")
    for original in (typed(), typed(tip=None), token_call(transfer_call(RECIPIENT, 5))):
        payload = original.payload()
        for _ in range(1500):
            changed = bytearray(payload)
            for _ in range(source.choice((1, 1, 2, 3))):
                changed[source.randrange(len(changed))] = source.randrange(256)
            try:
                decoded = decode_payload(bytes(changed))
            except ValueError:
                continue
            assert decoded.payload() == bytes(changed)
            assert (decoded == original) == (changed == payload)


def test_calldata_of_transfer() -> None:
    """The example of the Solidity ABI's layout, as any wallet sends it: selector, padded address, amount."""
    data = transfer_call("0x" + "AB" * 20, 1_000_000)
    assert data.hex() == "a9059cbb" + "0" * 24 + "ab" * 20 + "0" * 58 + "0f4240"
    assert parse_transfer_call(data) == ("0x" + "ab" * 20, 1_000_000)
    for amount in (-1, 2**256):
        with pytest.raises(ValueError, match="amount"):
            transfer_call(RECIPIENT, amount)


@pytest.mark.parametrize(
    ("slug", "unsigned", "most"),
    [("ethereum", typed(), 150_000), ("ethereum", token_call(transfer_call(RECIPIENT, 1)), 400_000)],
    ids=["native", "token"],
)
def test_more_gas_than_a_transfer_takes_is_not_signed(slug: str, unsigned: Unsigned, most: int) -> None:
    """A recipient that is a contract must not compute at the wallet's expense."""
    allowed, more = replace(unsigned, gas=most), replace(unsigned, gas=most + 1)
    assert len(payer(slug).digest(allowed.payload().hex())) == 32
    for look in (payer(slug).digest, payer(slug).explain):
        with pytest.raises(ValueError, match="gas, which no transfer takes"):
            look(more.payload().hex())
