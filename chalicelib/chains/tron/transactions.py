"""Tron transactions: their bytes, id, signature and content.

Pure. Imports no Tron library. `decode` takes only what `encode` gives: the five kinds of transaction that we sign, without memo,
permission, call value or any field more, in the order in which Tron's nodes write them.

Sources: tronprotocol/protocol, core/Tron.proto (Transaction) and core/contract/*.proto; developers.tron.network,
"Transactions": the id is the SHA-256 of raw_data, and what is signed is the id.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal

from chalicelib.chains.abi import parse_transfer_call, transfer_call
from chalicelib.chains.tron import protobuf
from chalicelib.chains.tron.values import raw_address, text_address
from chalicelib.domain.transactions.sightings import Lifetime
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.encoding.keccak import keccak256
from chalicelib.usecases.ports.accounts import Opened
from chalicelib.usecases.ports.signing import Signature, Signed

Kind = Literal[
    "TransferContract", "TriggerSmartContract", "FreezeBalanceV2Contract", "DelegateResourceContract", "UnDelegateResourceContract"
]  # fmt: skip
DELEGATIONS: tuple[Kind, ...] = ("DelegateResourceContract", "UnDelegateResourceContract")

_NUMBERS: dict[Kind, int] = {
    "TransferContract": 1, "TriggerSmartContract": 31, "FreezeBalanceV2Contract": 54,
    "DelegateResourceContract": 57, "UnDelegateResourceContract": 58,
}  # fmt: skip
_KINDS = {number: kind for kind, number in _NUMBERS.items()}
_TYPE_URL = "type.googleapis.com/protocol."
_RESOURCES: tuple[Resource, ...] = ("BANDWIDTH", "ENERGY")
"""By their numbers in ResourceCode."""
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The order of secp256k1's group (SEC 2, section 2.4.1)."""
_RAW: dict[int, type] = {1: bytes, 4: bytes, 8: int, 11: bytes, 14: int, 18: int}
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Reference:
    """The block that a transaction refers to (TAPOS), and its times in milliseconds since 1970.

    `block_bytes` is the lower two bytes of its number, `block_hash` bytes 8 to 16 of its id. The chain takes the transaction
    only while its newest block is older than `expiration`. `timestamp` is looked at by nobody: it makes ids differ.
    """

    block_bytes: bytes
    block_hash: bytes
    expiration: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A transaction before its signature. Addresses in base58check; amounts and `fee_limit` in sun.

    TransferContract: `amount` sun to `recipient`. TriggerSmartContract: transfer(recipient, amount) of the token `contract`.
    FreezeBalanceV2Contract: `amount` sun of the owner frozen for `resource`; no recipient.
    DelegateResourceContract: the `resource` of `amount` sun that the owner has staked, lent to `recipient`, never locked;
    UnDelegateResourceContract: taken back.
    """

    kind: Kind
    owner: str
    amount: int
    reference: Reference
    recipient: str | None = None
    contract: str | None = None
    resource: Resource | None = None
    fee_limit: int = 0

    def encode(self) -> bytes:
        """raw_data: the exact bytes whose SHA-256 is the id and is signed. Raises ValueError."""
        inner = protobuf.message(*self._inner())
        packed = protobuf.message((1, f"{_TYPE_URL}{self.kind}".encode()), (2, inner))
        contract = protobuf.message((1, _NUMBERS[self.kind]), (2, packed))
        ref = self.reference
        return protobuf.message(
            (1, ref.block_bytes),
            (4, ref.block_hash),
            (8, ref.expiration),
            (11, contract),
            (14, ref.timestamp),
            (18, self.fee_limit),
        )

    def _inner(self) -> list[tuple[int, int | bytes]]:
        owner = raw_address(self.owner)
        if self.kind == "FreezeBalanceV2Contract":
            return [(1, owner), (2, self.amount), (3, _RESOURCES.index(self.resource or "BANDWIDTH"))]
        recipient = raw_address(self.recipient or "")
        if self.kind in DELEGATIONS:
            return [(1, owner), (2, _RESOURCES.index(self.resource or "BANDWIDTH")), (3, self.amount), (4, recipient)]
        if self.kind == "TransferContract":
            return [(1, owner), (2, recipient), (3, self.amount)]
        return [(1, owner), (2, raw_address(self.contract or "")), (4, transfer_call("0x" + recipient[1:].hex(), self.amount))]

    @property
    def txid(self) -> str:
        return sha256(self.encode()).hexdigest()

    def json(self, signature: bytes | None = None) -> dict[str, Any]:
        """The form in which nodes take it (wallet/broadcasttransaction, wallet/getsignweight)."""
        names = {1: "owner_address", 2: "to_address", 3: "amount"}
        if self.kind == "FreezeBalanceV2Contract":
            names = {1: "owner_address", 2: "frozen_balance", 3: "resource"}
        elif self.kind in DELEGATIONS:
            names = {1: "owner_address", 2: "resource", 3: "balance", 4: "receiver_address"}
        elif self.kind == "TriggerSmartContract":
            names = {1: "owner_address", 2: "contract_address", 4: "data"}
        value: dict[str, Any] = {names[n]: v.hex() if isinstance(v, bytes) else v for n, v in self._inner() if v}
        if self.resource is not None:
            value["resource"] = self.resource
        raw = self.encode()
        ref = self.reference
        raw_data = {
            "contract": [{"parameter": {"value": value, "type_url": f"{_TYPE_URL}{self.kind}"}, "type": self.kind}],
            "ref_block_bytes": ref.block_bytes.hex(),
            "ref_block_hash": ref.block_hash.hex(),
            "expiration": ref.expiration,
            "timestamp": ref.timestamp,
        } | ({"fee_limit": self.fee_limit} if self.fee_limit else {})
        whole = {"visible": False, "txID": sha256(raw).hexdigest(), "raw_data": raw_data, "raw_data_hex": raw.hex()}
        return whole if signature is None else whole | {"signature": [signature.hex()]}


@lru_cache(maxsize=64)
def decode(raw: bytes) -> Unsigned:
    """The transaction whose `encode()` is exactly these bytes. Raises ValueError for any other bytes.

    Remembered for a moment: before a payment is signed it is asked for what it does, for its digest, and for its bytes.
    """
    found = protobuf.only(raw, _RAW)
    reference = Reference(
        protobuf.bytes_in(found, 1), protobuf.bytes_in(found, 4), protobuf.number_in(found, 8), protobuf.number_in(found, 14)
    )
    if len(reference.block_bytes) != 2 or len(reference.block_hash) != 8 or not reference.expiration or not reference.timestamp:
        raise ValueError("the transaction does not refer to a block, or has no times")
    contract = protobuf.only(protobuf.bytes_in(found, 11), {1: int, 2: bytes})
    kind = _KINDS.get(protobuf.number_in(contract, 1))
    if kind is None:
        raise ValueError("the transaction is of a kind that is never signed here")
    packed = protobuf.only(protobuf.bytes_in(contract, 2), {1: bytes, 2: bytes})
    if protobuf.bytes_in(packed, 1) != f"{_TYPE_URL}{kind}".encode():
        raise ValueError("the transaction's kind and its contents differ")
    decoded = _decoded(kind, protobuf.bytes_in(packed, 2), reference, protobuf.number_in(found, 18))
    if decoded.amount <= 0 or (kind != "TriggerSmartContract" and decoded.amount > _MOST):
        raise ValueError("the transaction moves nothing, or more than there is")
    if (decoded.fee_limit > 0) != (kind == "TriggerSmartContract"):
        raise ValueError("a call has a fee limit, and nothing else has")
    if decoded.encode() != raw:
        raise ValueError("the transaction is not in its canonical encoding")
    return decoded


def _decoded(kind: Kind, inner: bytes, reference: Reference, fee_limit: int) -> Unsigned:
    if kind == "TransferContract":
        found = protobuf.only(inner, {1: bytes, 2: bytes, 3: int})
        amount, recipient = protobuf.number_in(found, 3), text_address(protobuf.bytes_in(found, 2))
        return Unsigned(kind, text_address(protobuf.bytes_in(found, 1)), amount, reference, recipient, fee_limit=fee_limit)
    if kind == "TriggerSmartContract":
        found = protobuf.only(inner, {1: bytes, 2: bytes, 4: bytes})
        evm, amount = parse_transfer_call(protobuf.bytes_in(found, 4))
        owner, contract = text_address(protobuf.bytes_in(found, 1)), text_address(protobuf.bytes_in(found, 2))
        return Unsigned(kind, owner, amount, reference, text_address(bytes.fromhex("41" + evm[2:])), contract, fee_limit=fee_limit)
    if kind in DELEGATIONS:
        # A lock would keep our stake away for as long as it says: that field has no place here.
        found = protobuf.only(inner, {1: bytes, 2: int, 3: int, 4: bytes})
        owner, recipient = text_address(protobuf.bytes_in(found, 1)), text_address(protobuf.bytes_in(found, 4))
        lent = _resource(protobuf.number_in(found, 2))
        return Unsigned(kind, owner, protobuf.number_in(found, 3), reference, recipient, resource=lent, fee_limit=fee_limit)
    found = protobuf.only(inner, {1: bytes, 2: int, 3: int})
    owner, amount = text_address(protobuf.bytes_in(found, 1)), protobuf.number_in(found, 2)
    return Unsigned(kind, owner, amount, reference, resource=_resource(protobuf.number_in(found, 3)), fee_limit=fee_limit)


def _resource(number: int) -> Resource:
    if number >= len(_RESOURCES):
        raise ValueError("the transaction names what is no resource of ours")
    return _RESOURCES[number]


def reference_to(block_id: str, expiration: int, timestamp: int) -> Reference:
    """A reference to the block with this id (64 hex digits)."""
    return Reference(bytes.fromhex(block_id[12:16]), bytes.fromhex(block_id[16:32]), expiration, timestamp)


def assemble(raw: bytes, signature: Signature) -> Signed:
    """The signed transaction (protobuf's Transaction, as hex) and its id. `raw` as `decode` takes it. Raises ValueError, also
    unless the owner's key signed."""
    from coincurve import PublicKey

    if not 0 < signature.r < _ORDER or not 0 < signature.s <= _ORDER // 2 or signature.parity not in (0, 1):
        raise ValueError("the signature is out of range, or its s is in the upper half")
    owner = decode(raw).owner
    compact = signature.r.to_bytes(32) + signature.s.to_bytes(32) + bytes([signature.parity])
    try:
        key = PublicKey.from_signature_and_message(compact, sha256(raw).digest(), hasher=None)
    except Exception as error:
        # coincurve raises a bare Exception for a point that is not on the curve.
        raise ValueError("no key can have made this signature") from error
    if keccak256(key.format(compressed=False)[1:])[12:] != raw_address(owner)[1:]:
        raise ValueError("the signature is not by the key of the address that pays")
    return Signed(protobuf.message((1, raw), (2, compact)).hex(), sha256(raw).hexdigest())


def disassemble(raw: str) -> tuple[Unsigned, bytes]:
    """The transaction and its 65-byte signature from bytes of `assemble`. Raises ValueError."""
    found = protobuf.only(bytes.fromhex(raw), {1: bytes, 2: bytes})
    signature = protobuf.bytes_in(found, 2)
    if len(signature) != 65:
        raise ValueError("the signature is not of 65 bytes")
    return decode(protobuf.bytes_in(found, 1)), signature


def opened(raw: str) -> Opened:
    """The parts of a transaction of `assemble`: the signed bytes (as hex), their id, and the owner, whose key signed. Raises
    ValueError."""
    unsigned, signature = disassemble(raw)
    if signature[64] > 1:
        raise ValueError("the signature is out of range")
    parts = Signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:64]), signature[64])
    again = assemble(unsigned.encode(), parts)
    if again.raw != raw:
        raise ValueError("the transaction is not in its canonical encoding")
    return Opened(unsigned.encode().hex(), again.txid, unsigned.owner)


def lifetime(raw: str, txid: str) -> Lifetime:
    """The blocks that can hold the signed transaction `raw`. Raises ValueError unless its id is `txid`."""
    unsigned, _ = disassemble(raw)
    if unsigned.txid != txid:
        raise ValueError("the transaction has another id")
    reference = unsigned.reference
    return Lifetime(int.from_bytes(reference.block_bytes), reference.block_hash.hex(), reference.expiration)


def native_transfers(raw: bytes) -> list[tuple[str, str, int]]:
    """Owner, recipient and sun of the TRX transfers in the raw_data of a stranger, who may have added what we never do.

    Raises ValueError for what is no transaction.
    """
    found = []
    for contract in protobuf.repeated(raw, 11):
        if not any(number == 1 and value == 1 for number, value in protobuf.fields(contract)):
            continue
        for packed in protobuf.repeated(contract, 2):
            for inner in protobuf.repeated(packed, 2):
                facts = dict(protobuf.fields(inner))
                owner, recipient = protobuf.bytes_in(facts, 1), protobuf.bytes_in(facts, 2)
                found.append((text_address(owner), text_address(recipient), protobuf.number_in(facts, 3)))
    return found
