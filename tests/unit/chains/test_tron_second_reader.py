"""The second reader of Tron against our own encoder: random orders pass both, and each altered field is found by it alone.

Altered transactions are encoded by the strict test node's codec, so that nothing of ours has to take them.
"""

from __future__ import annotations

import copy
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from coincurve import PrivateKey

from chalicelib.chains.tron.fees import MOST_FEE_LIMIT
from chalicelib.chains.tron.second_reader import TronSecondReader
from chalicelib.chains.tron.transactions import Kind, Reference, Unsigned, assemble, disassemble
from chalicelib.custody.signatures import sign_with
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from chalicelib.usecases.ports.second_reader import Order, OrderKind
from infra.local.tron.messages import CODEC
from tests.support.tron_published import FREEZE, LOCKED, MINED, NOT_OURS, PUBLISHED, SIGNED_CALL

FULL = os.environ.get("SWEEP") == "full"
RANDOM = random.Random(7)
ORDERS: dict[Kind, OrderKind] = {
    "TransferContract": "payment", "TriggerSmartContract": "payment", "FreezeBalanceV2Contract": "stake",
    "DelegateResourceContract": "delegation", "UnDelegateResourceContract": "undelegation",
}  # fmt: skip
KINDS = tuple(ORDERS)
TERMS = {"ref_block_bytes", "ref_block_hash", "expiration", "timestamp", "fee_limit"}
NOW = 1_790_000_000_007
READER = TronSecondReader()
Message = dict[str, Any]


def address_of(key: PrivateKey) -> str:
    return tron_address(key.public_key.format(compressed=False)[1:])


def somebody() -> str:
    return base58check.encode(b"\x41" + RANDOM.randbytes(20))


def ordered(kind: Kind, owner: str, raw: bytes = b"", **more: Any) -> Order:
    """An order that a transaction of this kind carries out."""
    own = {
        "kind": ORDERS[kind], "sender": owner, "recipient": owner if kind == "FreezeBalanceV2Contract" else somebody(),
        "contract": somebody() if kind == "TriggerSmartContract" else None, "amount": 5_000_000, "nonce": None,
        "fee": MOST_FEE_LIMIT + 10**6, "unsigned": raw.hex(), "resource": None if ORDERS[kind] == "payment" else "ENERGY",
    }  # fmt: skip
    return Order(**own | more)  # type: ignore[arg-type]


def random_order(kind: Kind, owner: str) -> Order:
    amount = RANDOM.randrange(1, 2 ** RANDOM.choice((7, 8, 32, 256 if kind == "TriggerSmartContract" else 63)))
    order = ordered(kind, owner, amount=amount, nonce=RANDOM.choice((None, RANDOM.randrange(10**6))))
    return order if order.resource is None else replace(order, resource=RANDOM.choice(("BANDWIDTH", "ENERGY")))


def ours(kind: Kind, order: Order, made: int = NOW) -> Unsigned:
    """The order in our own encoder's hands, with terms of its choice."""
    made = made // 1000 * 1000 + (made if order.nonce is None else order.nonce) % 1000
    reference = Reference(RANDOM.randbytes(2), RANDOM.randbytes(8), made + RANDOM.randrange(1, 600_000), made)
    limit = RANDOM.randrange(1, MOST_FEE_LIMIT + 1) if order.contract else 0
    recipient = None if order.kind == "stake" else order.recipient
    return Unsigned(kind, order.sender, order.amount, reference, recipient, order.contract, order.resource, limit)


def signed_by(key: PrivateKey, raw: bytes, signature: Callable[[bytes], bytes] = bytes, more: bytes = b"") -> bytes:
    """A transaction of any raw_data, as our own side would never assemble it."""
    made = sign_with(key, sha256(raw).digest())
    compact = made.r.to_bytes(32) + made.s.to_bytes(32) + bytes([made.parity])
    return length_delimited(1, raw) + length_delimited(2, signature(compact)) + more


def length_delimited(number: int, value: bytes) -> bytes:
    assert number < 16
    size = bytes([len(value)]) if len(value) < 128 else bytes([len(value) & 0x7F | 0x80, len(value) >> 7])
    return bytes([number << 3 | 2]) + size + value


def test_random_orders_pass_both() -> None:
    for n in range(2000 if FULL else 50):
        key, kind = PrivateKey(RANDOM.randbytes(32)), KINDS[n % len(KINDS)]
        order = random_order(kind, address_of(key))
        unsigned = ours(kind, order, RANDOM.randrange(1, 2 ** RANDOM.choice((20, 41, 43))))
        order = replace(order, unsigned=unsigned.encode().hex())
        built = READER.built(order)
        assert [digest.hex() for digest in built.digests] == [unsigned.txid], order
        signed = assemble(unsigned.encode(), sign_with(key, built.digests[0]))
        assert READER.read(order, signed.raw) == built.reading, order


def agree(order: Order, txid: str, signed: bytes) -> bool:
    built = READER.built(order)
    return built.digests == (bytes.fromhex(txid),) and READER.read(order, signed.hex()) == built.reading


@pytest.mark.parametrize(("txid", "raw", "signature", "does"), MINED)
def test_mined_transfers(txid: str, raw: str, signature: str, does: Any) -> None:
    owner, recipient = (base58check.encode(bytes.fromhex(each)) for each in does[:2])
    unsigned = bytes.fromhex(raw)
    order = ordered("TransferContract", owner, unsigned, recipient=recipient, amount=does[3])
    assert agree(order, txid, length_delimited(1, unsigned) + length_delimited(2, bytes.fromhex(signature)))


def test_a_published_call() -> None:
    raw, signature, does = SIGNED_CALL
    owner, recipient, contract = (base58check.encode(bytes.fromhex(each)) for each in does[:3])
    unsigned = bytes.fromhex(raw)
    order = ordered("TriggerSmartContract", owner, unsigned, recipient=recipient, contract=contract, amount=does[3])
    signed = length_delimited(1, unsigned) + length_delimited(2, bytes.fromhex(signature))
    assert agree(order, sha256(unsigned).hexdigest(), signed)


def test_a_mined_stake() -> None:
    txid, raw = FREEZE
    owner = base58check.encode(bytes.fromhex("41ba9406e2290365a47277de962130fc0f2927421e"))
    order = ordered("FreezeBalanceV2Contract", owner, bytes.fromhex(raw), amount=3_500_000_000)
    assert READER.built(order).digests == (bytes.fromhex(txid),)


@pytest.mark.parametrize(("direction", "txid", "raw"), PUBLISHED)
def test_published_loans(direction: str, txid: str, raw: str) -> None:
    unsigned, _ = disassemble(raw)
    kind: Kind = "DelegateResourceContract" if direction == "delegation" else "UnDelegateResourceContract"
    order = ordered(kind, unsigned.owner, unsigned.encode(), recipient=unsigned.recipient, amount=1_000_000)
    assert agree(order, txid, bytes.fromhex(raw))


def test_a_published_loan_with_a_lock_is_no_order_of_ours() -> None:
    raw = bytes.fromhex(LOCKED)
    inner = CODEC.decode("raw", raw)["contract"][0]["parameter"]["value"]
    owner, receiver = (base58check.encode(inner[name]) for name in ("owner_address", "receiver_address"))
    order = ordered("DelegateResourceContract", owner, raw, recipient=receiver, amount=inner["balance"], resource="BANDWIDTH")
    built = READER.built(order)
    assert built.digests != (sha256(raw).digest(),)
    key = PrivateKey()
    read = READER.read(order, signed_by(key, raw).hex())
    differing = {name for name in read.keys() | built.reading.keys() if read.get(name) != built.reading.get(name)}
    assert differing == {"lock", "txid", "signer"}


@pytest.mark.parametrize("raw", NOT_OURS)
def test_what_others_encode_in_another_way_is_no_order_of_ours(raw: str) -> None:
    unsigned = bytes.fromhex(raw)
    # By the headers of the fields: the strict codec reads none of these either.
    owner, contract = (base58check.encode(unsigned.partition(head)[2][:21]) for head in (b"\x0a\x15", b"\x12\x15"))
    data = unsigned.partition(bytes.fromhex("2244a9059cbb"))[2][:64]
    recipient, amount = base58check.encode(b"\x41" + data[12:32]), int.from_bytes(data[32:])
    order = ordered("TriggerSmartContract", owner, unsigned, recipient=recipient, contract=contract, amount=amount)
    assert READER.built(order).digests != (sha256(unsigned).digest(),)


class Case:
    """One order with its bytes, and the same message taken apart by the strict node's codec."""

    def __init__(self, kind: Kind) -> None:
        self.key = PrivateKey(RANDOM.randbytes(32))
        order = ordered(kind, address_of(self.key))
        self.raw = ours(kind, order).encode()
        self.order = replace(order, unsigned=self.raw.hex())
        self.message: Message = CODEC.decode("raw", self.raw)

    def differing(self, raw: bytes, signed: bytes | None = None) -> set[str]:
        """The fields in which the second reader finds the signed form of `raw` unlike the order; of what it does not read, all."""
        wanted = READER.built(self.order).reading
        try:
            found = READER.read(self.order, (signed or signed_by(self.key, raw)).hex())
        except ValueError:
            return {"unreadable"}
        return {name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)}

    def same_digest(self, raw: bytes) -> bool:
        """Whether the key would be handed the digest of `raw`, if it were our unsigned bytes."""
        try:
            return READER.built(replace(self.order, unsigned=raw.hex())).digests == (sha256(raw).digest(),)
        except ValueError:
            return False


def fields_of(kind: Kind) -> list[tuple[str, str]]:
    """Every field that Tron publishes for a transaction of this kind, by its message."""
    found = [(of, field.name) for of in ("raw", "Contract", "Any", kind) for field in CODEC.fields(of)]
    return [each for each in found if each not in (("raw", "contract"), ("Contract", "parameter"), ("Any", "value"))]


def other(value: Any, field: Any) -> Any:
    """Another value of the field's type."""
    if field.kind == "address":
        return b"\x41" + RANDOM.randbytes(20)
    if field.kind == "bytes":
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\1"
    if field.kind == "bool":
        return not value
    return (value or 0) + 1 if field.kind == "int" else value


@pytest.mark.parametrize(("kind", "of", "name"), [(kind, *each) for kind in KINDS for each in fields_of(kind)])
def test_each_altered_field_is_found(kind: Kind, of: str, name: str) -> None:
    case = Case(kind)
    message = copy.deepcopy(case.message)
    (contract,) = message["contract"]
    at = {"raw": message, "Contract": contract, "Any": contract["parameter"], kind: contract["parameter"].get("value")}[of]
    field = next(field for field in CODEC.fields(of) if field.name == name)
    if name == "type_url":
        raw = case.raw.replace(b"type.googleapis.com", b"type.googleapis.org")
    else:
        by_name = {"resource": "BANDWIDTH", "type": "WithdrawBalanceContract"}
        at[name] = by_name.get(name) or other(at.get(name), field)
        raw = CODEC.encode("raw", message)
    assert raw != case.raw
    called = {"raw": f"raw.{name}", "Contract": f"contract.{name}", "Any": f"contract.{name}"}.get(of, name)
    assert case.differing(raw) - {"txid"} in ({called}, {"unreadable"})
    if of == "raw" and name in TERMS and (name != "fee_limit" or kind == "TriggerSmartContract"):
        # The order leaves it open; what was signed has to have it as the unsigned bytes do.
        assert case.differing(raw) == {called, "txid"}
    else:
        assert not case.same_digest(raw)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["Transaction", "raw", "Contract", "Any", "inner"])
@pytest.mark.parametrize("strange", ["unknown number", "unknown bytes", "zero"])
def test_nothing_can_trail(kind: Kind, level: str, strange: str) -> None:
    """In no message: neither a field that nobody has published, nor one of zero, which adds nothing but changes the id."""
    case = Case(kind)
    zero = {"Transaction": 1, "raw": 3, "Contract": 5, "Any": 1, "inner": 3}[level]
    tail = {"unknown number": b"\xa0\x06\x01", "unknown bytes": b"\xa2\x06\x01\x00", "zero": bytes([zero << 3, 0])}[strange]
    (contract,) = case.message["contract"]
    packed, value = contract["parameter"], CODEC.encode(kind, contract["parameter"]["value"])
    value += tail if level == "inner" else b""
    any_bytes = length_delimited(1, packed["type_url"].encode()) + length_delimited(2, value) + (tail if level == "Any" else b"")
    number = {"TransferContract": 1, "TriggerSmartContract": 31, "FreezeBalanceV2Contract": 54}.get(kind)
    number = number or (57 if kind == "DelegateResourceContract" else 58)
    whole = bytes([1 << 3, number]) + length_delimited(2, any_bytes) + (tail if level == "Contract" else b"")
    ref = case.message
    raw = CODEC.encode("raw", {name: ref[name] for name in ("ref_block_bytes", "ref_block_hash", "expiration")})
    raw += length_delimited(11, whole)
    raw += CODEC.encode("raw", {name: ref[name] for name in ("timestamp", "fee_limit") if name in ref})
    raw += tail if level == "raw" else b""
    if level == "Transaction":
        assert raw == case.raw
        assert case.differing(raw) == set()
        assert case.differing(raw, signed_by(case.key, raw, more=tail))
        return
    assert raw != case.raw
    assert case.differing(raw) - {"txid"}
    assert not case.same_digest(raw)


@pytest.mark.parametrize("kind", KINDS)
def test_an_authority_is_found_in_its_place(kind: Kind) -> None:
    """raw_data's field 9, which is out of use: tronpy's schema has it, and the strict codec has not."""
    case = Case(kind)
    head = CODEC.encode("raw", {name: case.message[name] for name in ("ref_block_bytes", "ref_block_hash", "expiration")})
    assert case.raw.startswith(head)
    raw = head + bytes.fromhex("4a03120161") + case.raw.removeprefix(head)
    assert len(case.differing(raw) - {"txid"}) >= 1
    assert not case.same_digest(raw)


CALLS: dict[str, Callable[[bytes], bytes]] = {
    "a byte more": lambda data: data + b"\0",
    "a word more": lambda data: data + b"\0" * 32,
    "a byte less": lambda data: data[:-1],
    "approve": lambda data: bytes.fromhex("095ea7b3") + data[4:],
    "padding of the prefix": lambda data: data[:15] + b"\x41" + data[16:],
    "padding": lambda data: data[:4] + b"\1" + data[5:],
    "recipient": lambda data: data[:35] + bytes([data[35] ^ 1]) + data[36:],
    "amount": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "nothing": lambda data: b"",
}


@pytest.mark.parametrize("change", CALLS)
def test_call_data_is_compared_to_the_byte(change: str) -> None:
    """A decoder that takes trailing bytes, or addresses with their prefix, reads some of these as the order's transfer."""
    case = Case("TriggerSmartContract")
    message = copy.deepcopy(case.message)
    value = message["contract"][0]["parameter"]["value"]
    value["data"] = CALLS[change](value["data"])
    raw = CODEC.encode("raw", message)
    assert case.differing(raw) == {"data", "txid"}
    assert not case.same_digest(raw)


@pytest.mark.parametrize("kind", KINDS)
def test_signatures_of_another_kind_or_key_are_found(kind: Kind) -> None:
    case = Case(kind)
    assert case.differing(case.raw) == set()
    assert case.differing(case.raw, signed_by(PrivateKey(), case.raw)) == {"signer"}
    spoilt: dict[str, Callable[[bytes], bytes]] = {
        "Ethereum's parity": lambda one: one[:64] + bytes([one[64] + 27]),
        "the other parity": lambda one: one[:64] + bytes([1 - one[64]]),
        "a byte more": lambda one: one + b"\0",
        "a byte less": lambda one: one[:64],
        "none": lambda one: b"",
        "no point": lambda one: b"\xff" * 64 + one[64:],
    }
    for name, spoil in spoilt.items():
        assert case.differing(case.raw, signed_by(case.key, case.raw, spoil)) <= {"signer", "unreadable"}, name
        assert case.differing(case.raw, signed_by(case.key, case.raw, spoil)), name
    twice = signed_by(case.key, case.raw) + length_delimited(2, b"\1" * 65)
    assert case.differing(case.raw, twice) == {"unreadable"}


@pytest.mark.parametrize("kind", KINDS)
def test_two_contracts_in_one_transaction_are_none(kind: Kind) -> None:
    case = Case(kind)
    message = copy.deepcopy(case.message)
    message["contract"] *= 2
    raw = CODEC.encode("raw", message)
    assert case.differing(raw) == {"unreadable"}
    assert not case.same_digest(raw)


@pytest.mark.parametrize("kind", KINDS)
def test_terms_are_bounded(kind: Kind) -> None:
    case = Case(kind)

    def with_(**terms: Any) -> bytes:
        return CODEC.encode("raw", {**case.message, **terms})

    made = case.message["timestamp"]
    assert case.same_digest(with_(expiration=made + 24 * 3600_000))
    refused = [
        {"expiration": made + 24 * 3600_000 + 1}, {"expiration": made}, {"timestamp": 0}, {"ref_block_bytes": b""},
        {"ref_block_bytes": b"\1\2\3"}, {"ref_block_hash": b"1234567"},
    ]  # fmt: skip
    limits = (0, MOST_FEE_LIMIT + 1) if kind == "TriggerSmartContract" else (1,)
    for terms in [*refused, *({"fee_limit": limit} for limit in limits)]:
        with pytest.raises(ValueError, match=r"refer to a block|within a day|may burn"):
            READER.built(replace(case.order, unsigned=with_(**terms).hex()))
    with pytest.raises(ValueError, match="another nonce"):
        READER.built(replace(case.order, nonce=made + 1))
    assert READER.built(replace(case.order, nonce=made + 5_000)).digests == (sha256(case.raw).digest(),)


def test_a_call_may_burn_no_more_than_its_order() -> None:
    case = Case("TriggerSmartContract")
    limit = case.message["fee_limit"]
    assert READER.built(replace(case.order, fee=limit)).reading["raw.fee_limit"] == limit
    with pytest.raises(ValueError, match="may burn"):
        READER.built(replace(case.order, fee=limit - 1))


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_nothing_are_refused_in_one_way(kind: Kind) -> None:
    case = Case(kind)
    for spoilt in ("", "0a", case.raw[:-1].hex(), "ff" * 40, "no hex"):
        with pytest.raises(ValueError):
            READER.built(replace(case.order, unsigned=spoilt))
        with pytest.raises(ValueError):
            READER.read(case.order, spoilt)


@pytest.mark.parametrize("kind", KINDS)
def test_other_orders_have_other_digests_or_none(kind: Kind) -> None:
    """Every field of the order counts, and what no library builds is refused."""
    case = Case(kind)
    changes: list[dict[str, Any]] = [
        {"sender": somebody()}, {"sender": case.order.sender[:-1]}, {"sender": ""},
        {"amount": 6}, {"amount": 2**256}, {"amount": -1},
    ]  # fmt: skip
    changes += [{"kind": other} for other in set(ORDERS.values()) - {case.order.kind}]
    changes += [] if kind == "FreezeBalanceV2Contract" else [{"recipient": somebody()}, {"recipient": ""}]
    changes += [{"contract": somebody()}, {"contract": ""}] if case.order.contract else []
    changes += [{"contract": somebody()}] if kind == "TransferContract" else []
    changes += [{"resource": "BANDWIDTH"}, {"resource": None}] if case.order.resource else []
    for change in changes:
        try:
            made = READER.built(replace(case.order, **change)).digests
        except ValueError:
            continue
        assert made != (sha256(case.raw).digest(),), change


def test_nothing_but_signing_loads_the_libraries() -> None:
    """The adapters of Tron and the second reader itself import them when they are first asked, not before."""
    names = ("http", "reader", "tokens", "staking", "delegating", "payer", "schema", "second_reader")
    code = (
        f"import sys; [__import__('chalicelib.chains.tron.' + n) for n in {names}]\n"
        "print([name for name in ('tronpy', 'google.protobuf', 'eth_abi') if name in sys.modules])"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert asked.stdout.strip() == "[]"
