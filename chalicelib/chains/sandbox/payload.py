"""Payments of the simulated networks as bytes: the signed bytes, the broadcast ones, and the fee.

Pure, but for recovering public keys, which imports coincurve when first used. The bytes are canonical JSON: the one text
that these fields have, so that decoding and encoding again must give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.catalogue.catalogue import Family, Network
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.usecases.ports.signing import Signature

HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Half of secp256k1's order: the highest s that is taken (EIP-2, BIP-62)."""
_FIELDS = ("amount", "chain_id", "contract", "fee", "network", "nonce", "recipient", "sender")
_LONGEST = 4_096

# Units of the native coin for a native and for a token payment, in the size of the real ones: 21,000 and 65,000 gas at
# 20 gwei; 141 virtual bytes at 10 satoshi; 268 bytes of bandwidth and 65,000 energy at Tron's burn prices.
_FEES: dict[Family, tuple[int, int]] = {
    "evm": (21_000 * 20 * 10**9, 65_000 * 20 * 10**9),
    "utxo": (1_410, 1_410),
    "tron": (268_000, 6_845_000),
}
_TENTHS: dict[Priority, int] = {"low": 8, "normal": 10, "high": 15, "urgent": 20}


def fee_of(family: Family, token: bool, priority: Priority) -> int:
    """The fee of a payment, in units of the native coin: always the same, 0.8, 1, 1.5 or 2 times by priority."""
    return _FEES[family][token] * _TENTHS[priority] // 10


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A payment as it is signed. Amount and fee in units, addresses in storage form. `reference`: whose payment it is; it may be
    left out."""

    amount: int
    chain_id: int | None
    contract: str | None
    fee: int
    network: str
    nonce: int
    recipient: str
    sender: str
    reference: str | None = None

    def encode(self) -> str:
        """The canonical bytes, as hex."""
        named = _FIELDS if self.reference is None else (*_FIELDS, "reference")
        return _encode({name: getattr(self, name) for name in named})

    @classmethod
    def decode(cls, unsigned: str, network: Network) -> Unsigned:
        """The payment that these bytes are. Raises ValueError unless they are canonical, complete, and for `network`."""
        doc = _decode(unsigned, _FIELDS, frozenset({"reference"}))
        for name in ("amount", "fee", "nonce"):
            if type(doc[name]) is not int or doc[name] < 0:
                raise ValueError(f"{name} is no whole number of at least 0")
        for name in ("network", "recipient", "sender", *(("reference",) if "reference" in doc else ())):
            if not isinstance(doc[name], str) or not doc[name]:
                raise ValueError(f"{name} is missing")
        if doc["contract"] is not None and (not isinstance(doc["contract"], str) or not doc["contract"]):
            raise ValueError("contract is neither null nor a contract")
        # The type too: JSON's true would pass for 1.
        if (
            doc["network"] != network.id
            or type(doc["chain_id"]) is not type(network.chain_id)
            or doc["chain_id"] != network.chain_id
        ):
            raise ValueError(f"belongs to another network than {network.id}")
        return cls(**doc)


@dataclass(frozen=True, slots=True)
class SignedPayment:
    """A payment as it is broadcast: the signed bytes and their signature."""

    unsigned: str
    signature: Signature

    def encode(self) -> str:
        """As hex."""
        s = self.signature
        return _encode({"r": f"{s.r:064x}", "s": f"{s.s:064x}", "unsigned": self.unsigned, "y": s.parity})

    @classmethod
    def decode(cls, raw: str) -> SignedPayment:
        """Raises ValueError unless `raw` is canonical and complete."""
        doc = _decode(raw, ("r", "s", "unsigned", "y"))
        for name in ("r", "s"):
            if not isinstance(doc[name], str) or len(doc[name]) != 64:
                raise ValueError(f"{name} is not 32 bytes as hex")
        if type(doc["y"]) is not int or doc["y"] not in (0, 1) or not isinstance(doc["unsigned"], str):
            raise ValueError("is no signed payment")
        signed = cls(doc["unsigned"], Signature(int(doc["r"], 16), int(doc["s"], 16), doc["y"]))
        if signed.encode() != raw:
            raise ValueError("is not canonical")
        return signed


def digest_of(unsigned: str) -> bytes:
    """The 32 bytes to sign: SHA-256 twice, as bitcoin does."""
    return hashlib.sha256(hashlib.sha256(bytes.fromhex(unsigned)).digest()).digest()


def txid_of(family: Family, signed: SignedPayment) -> str:
    """The transaction's id: over the signed bytes on EVM, without the signature elsewhere (BIP-141, Tron)."""
    if family == "evm":
        return "0x" + digest_of(signed.encode()).hex()
    return digest_of(signed.unsigned).hex()


def recover(signed: SignedPayment) -> bytes:
    """The public key that signed, x and y as 64 bytes. Raises ValueError for a signature that no node would take."""
    from coincurve import PublicKey

    s = signed.signature
    if not 0 < s.s <= HALF_ORDER:
        raise ValueError("s of the signature is not in the lower half")
    if s.r >> 256 or not s.r:
        raise ValueError("r of the signature is out of range")
    compact = s.r.to_bytes(32, "big") + s.s.to_bytes(32, "big") + bytes([s.parity])
    try:
        key = PublicKey.from_signature_and_message(compact, digest_of(signed.unsigned), hasher=None)
    except Exception as error:
        raise ValueError("the signature belongs to no key") from error
    return key.format(compressed=False)[1:]


def _encode(doc: dict[str, Any]) -> str:
    return json.dumps(doc, sort_keys=True, separators=(",", ":")).encode("ascii").hex()


def _decode(text: str, fields: tuple[str, ...], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    if len(text) > _LONGEST:
        raise ValueError("is too long for a payment")
    try:
        doc = json.loads(bytes.fromhex(text))
    except ValueError as error:
        raise ValueError("is no JSON as hex") from error
    if not isinstance(doc, dict) or tuple(sorted(doc.keys() - optional)) != tuple(sorted(fields)):
        raise ValueError(f"has other fields than {', '.join(fields)}")
    if _encode(doc) != text:
        raise ValueError("is not canonical")
    return doc
