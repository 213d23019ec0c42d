"""The bytes of UTXO transactions: the digest of each input, and the signed transaction.

Pure. Inputs spend plain outputs of one key, every signature commits to everything (SIGHASH_ALL). What this service makes is of
version 2 without a lock time, and every input signals that it can be replaced (BIP-125); `psbt` takes nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from struct import Struct

from chalicelib.chains.utxo.scripts import INPUT_WEIGHT, Spendable, key_hash_of, script_code
from chalicelib.encoding.public_keys import hash160
from chalicelib.usecases.ports.signing import Signature, Signed

VERSION = (2).to_bytes(4, "little")
LOCK_TIME = bytes(4)
SEQUENCE = (0xFFFFFFFD).to_bytes(4, "little")
"""The highest that BIP-125 takes as replaceable; no relative lock time (BIP-68)."""
MOST_UNITS = 84_000_000 * 10**8
"""No chain of this family has more."""

_SIGHASH_ALL = b"\x01"
_SIGHASH_ALL_4 = b"\x01\0\0\0"
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The order of secp256k1's group (SEC 2, section 2.4.1)."""
_AMOUNT = Struct("<Q")


def compact_size(number: int) -> bytes:
    """A length as bitcoin writes it."""
    if number < 0xFD:
        return bytes([number])
    if number <= 0xFFFF:
        return b"\xfd" + number.to_bytes(2, "little")
    return b"\xfe" + number.to_bytes(4, "little")


def double_sha256(data: bytes) -> bytes:
    """SHA-256 twice: ids of transactions, and the digests."""
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


@dataclass(frozen=True, slots=True)
class Input:
    """An output that is spent: `outpoint` in its 36 bytes, its amount and script.

    `redeem` is the witness program behind a P2SH script. `previous` is, for P2PKH, the transaction that made it, without its
    witnesses: a legacy signature does not commit to the amount, so the amount is taken from what hashes to the outpoint's id.
    """

    outpoint: bytes
    amount: int
    script: bytes
    redeem: bytes = b""
    previous: bytes = b""
    sequence: bytes = SEQUENCE

    @property
    def name(self) -> str:
        """<txid>:<n>."""
        return f"{self.outpoint[31::-1].hex()}:{int.from_bytes(self.outpoint[32:], 'little')}"


def outpoint_of(name: str) -> bytes:
    """The 36 bytes of <txid>:<n>. Raises ValueError."""
    txid, colon, index = name.partition(":")
    raw = bytes.fromhex(txid)
    if len(raw) != 32 or not colon or not index.isascii() or not index.isdigit() or str(int(index)) != index:
        raise ValueError("an outpoint is written <txid>:<n>")
    return raw[::-1] + int(index).to_bytes(4, "little")


@dataclass(frozen=True, slots=True)
class PaidTo:
    """An output: units, and the script."""

    amount: int
    script: bytes


@dataclass(frozen=True)
class Unsigned:
    """A transaction before its signatures. Derived values are cached: it never changes."""

    inputs: tuple[Input, ...]
    outputs: tuple[PaidTo, ...]
    version: bytes = VERSION
    lock_time: bytes = LOCK_TIME

    def skeleton(self) -> bytes:
        """The transaction with empty input scripts and without witnesses."""
        inputs = [i.outpoint + b"\0" + i.sequence for i in self.inputs]
        return b"".join((self.version, compact_size(len(inputs)), *inputs, self._rest()))

    @cached_property
    def keys(self) -> list[tuple[Spendable, bytes]]:
        """The way to spend each input, and the HASH160 of its key. Raises ValueError for one that is no plain output of one
        key."""
        return [key_hash_of(i.script, i.redeem) for i in self.inputs]

    @property
    def fee(self) -> int:
        """In units, exact."""
        return sum([i.amount for i in self.inputs]) - sum([o.amount for o in self.outputs])

    @cached_property
    def weight(self) -> int:
        """Weight units (BIP-141) once it is signed, at most."""
        return weight_of([kind for kind, _ in self.keys], [len(o.script) for o in self.outputs])

    @cached_property
    def digests(self) -> list[bytes]:
        """The 32 bytes to sign for each input, in order. Raises ValueError for an input that is no plain output of one key."""
        shared = self.shared()
        return [self.digest(place, shared, *key) for place, key in enumerate(self.keys)]

    def shared(self) -> tuple[bytes, bytes]:
        """The common beginning and end of the digests of all segwit inputs (BIP-143), made once."""
        outpoints = double_sha256(b"".join([i.outpoint for i in self.inputs]))
        sequences = double_sha256(b"".join([i.sequence for i in self.inputs]))
        outputs = double_sha256(b"".join(map(_paid, self.outputs)))
        return self.version + outpoints + sequences, outputs + self.lock_time + _SIGHASH_ALL_4

    def digest(self, place: int, shared: tuple[bytes, bytes], kind: Spendable, key_hash: bytes) -> bytes:
        """The 32 bytes to sign for one input."""
        if kind == "p2pkh":
            return self._legacy_digest(place)
        spent = self.inputs[place]
        own = (spent.outpoint, b"\x19", script_code(key_hash), _AMOUNT.pack(spent.amount), spent.sequence)
        return double_sha256(b"".join((shared[0], *own, shared[1])))

    def signed(self, unlocked: Sequence[tuple[bytes, bytes]]) -> Signed:
        """The transaction with each input's signature (DER) and public key, and its id."""
        scripts, witnesses = [], []
        for spent, (kind, _), (der, key) in zip(self.inputs, self.keys, unlocked, strict=True):
            proof = b"".join((bytes((len(der) + 1,)), der, _SIGHASH_ALL, bytes((len(key),)), key))
            if kind == "p2pkh":
                scripts.append(compact_size(len(proof)) + proof)
                witnesses.append(b"\0")
            else:
                push = compact_size(len(spent.redeem)) + spent.redeem if spent.redeem else b""
                scripts.append(compact_size(len(push)) + push)
                witnesses.append(b"\x02" + proof)
        inputs = [spent.outpoint + script + spent.sequence for spent, script in zip(self.inputs, scripts, strict=True)]
        body = compact_size(len(inputs)) + b"".join(inputs) + self._rest()[:-4]
        base = self.version + body + self.lock_time
        plain = all(witness == b"\0" for witness in witnesses)
        raw = base if plain else self.version + b"\0\x01" + body + b"".join(witnesses) + self.lock_time
        return Signed(raw.hex(), double_sha256(base)[::-1].hex())

    def _rest(self) -> bytes:
        return compact_size(len(self.outputs)) + b"".join(map(_paid, self.outputs)) + self.lock_time

    def _legacy_digest(self, place: int) -> bytes:
        """The rules from before segwit: the input's own script stands in its place, the other inputs have none."""
        parts = [self.version, compact_size(len(self.inputs))]
        for n, spent in enumerate(self.inputs):
            script = spent.script if n == place else b""
            parts += [spent.outpoint, compact_size(len(script)), script, spent.sequence]
        return double_sha256(b"".join([*parts, self._rest(), _SIGHASH_ALL_4]))


def weight_of(inputs: Sequence[Spendable], scripts: Sequence[int]) -> int:
    """Weight units of a signed transaction, at most: the kinds of its inputs, and the lengths of its outputs' scripts."""
    bare = 4 + len(compact_size(len(inputs))) + len(compact_size(len(scripts))) + sum(scripts) + 9 * len(scripts) + 4
    # Two for the marker and the flag of a transaction with witnesses.
    return 4 * bare + 2 + sum([INPUT_WEIGHT[kind] for kind in inputs])


def unlock(key_hash: bytes, digest: bytes, signature: Signature) -> tuple[bytes, bytes]:
    """The signature (DER) and the public key that spend an input. Raises ValueError unless it is by the key of that hash."""
    from coincurve import PublicKey

    r, s = signature.r, signature.s
    if not 0 < r < _ORDER or not 0 < s <= _ORDER // 2 or signature.parity not in (0, 1):
        raise ValueError("the signature is out of range, or its s is in the upper half")
    try:
        compact = r.to_bytes(32) + s.to_bytes(32) + bytes([signature.parity])
        key = PublicKey.from_signature_and_message(compact, digest, hasher=None).format()
    except Exception as error:
        # coincurve raises a bare Exception for a point that is not on the curve.
        raise ValueError("no key can have made this signature") from error
    if hash160(key) != key_hash:
        raise ValueError("the signature is not by the key of the input's address")
    return der_of(r, s), key


def der_of(r: int, s: int) -> bytes:
    """A signature in DER (BIP-66)."""
    # One more bit than the number has: DER's integers are signed.
    first, second = r.to_bytes(r.bit_length() // 8 + 1), s.to_bytes(s.bit_length() // 8 + 1)
    body = b"\x02" + bytes([len(first)]) + first + b"\x02" + bytes([len(second)]) + second
    return b"\x30" + bytes([len(body)]) + body


def transaction_id(raw: bytes) -> str:
    """The id of a transaction, signed or not. Raises ValueError for what is none."""
    return double_sha256(without_witnesses(raw))[::-1].hex()


def _paid(output: PaidTo) -> bytes:
    return _AMOUNT.pack(output.amount) + compact_size(len(output.script)) + output.script


class Bytes:
    """Reads parts one after another; raises ValueError where they end too early, or a length is not in its shortest form."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) != count:
            raise ValueError("the transaction is cut short")
        self._at += count
        return part

    def size(self) -> int:
        first = self.take(1)[0]
        if first < 0xFD:
            return first
        number = int.from_bytes(self.take({0xFD: 2, 0xFE: 4, 0xFF: 8}[first]), "little")
        if compact_size(number)[0] != first:
            raise ValueError("a length is not in its shortest form")
        return number

    def sized(self) -> bytes:
        return self.take(self.size())

    def amount(self) -> int:
        return int.from_bytes(self.take(8), "little")

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    @property
    def at(self) -> int:
        return self._at


def without_witnesses(raw: bytes) -> bytes:
    """The part of a transaction that its id is the hash of (BIP-141; Litecoin's flag for MWEB data is cut off the same way)."""
    reader = Bytes(raw)
    version = reader.take(4)
    extended = raw[4:5] == b"\0"
    if extended:
        reader.take(2)
    start = reader.at
    for _ in range(reader.size()):
        reader.take(36)
        reader.sized()
        reader.take(4)
    for _ in range(reader.size()):
        reader.take(8)
        reader.sized()
    end = reader.at
    if reader.left < 4 or (not extended and reader.left != 4):
        raise ValueError("the transaction is cut short, or too long")
    return version + raw[start:end] + raw[-4:]


def outputs_in(raw: bytes) -> list[PaidTo]:
    """The outputs of a transaction without witnesses."""
    reader = Bytes(raw)
    reader.take(4)
    for _ in range(reader.size()):
        reader.take(36)
        reader.sized()
        reader.take(4)
    return [PaidTo(reader.amount(), reader.sized()) for _ in range(reader.size())]
