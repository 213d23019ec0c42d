"""Extended keys (BIP-32): master, hardened and normal children, and their spelling as xprv and xpub.

Both kinds hide their contents from repr: an xprv is a secret, and an xpub tells every address under it.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from coincurve import PrivateKey, PublicKey

from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import hash160

HARDENED = 0x80000000
_XPUB = bytes.fromhex("0488b21e")
_XPRV = bytes.fromhex("0488ade4")


class InvalidChild(ValueError):
    """BIP-32 leaves out this index (chance: 1 in 2^127): the caller goes on with the next one."""


def child_number(step: str) -> int:
    """The child number of one step of a path: ``44'`` (or ``44h``) is hardened, ``0`` is not. Raises ValueError."""
    hardened = step.endswith(("'", "h"))
    digits = step[:-1] if hardened else step
    if not (digits.isascii() and digits.isdigit() and int(digits) < HARDENED):
        raise ValueError(f"{step[:20]!r} is no step of a derivation path")
    return int(digits) + (HARDENED if hardened else 0)


@dataclass(frozen=True, slots=True)
class ExtendedPublicKey:
    """A public key that has children. `fingerprint` is the parent's, 4 bytes; `number` the child number."""

    key: PublicKey = field(repr=False)
    chain_code: bytes = field(repr=False)
    depth: int = 0
    fingerprint: bytes = bytes(4)
    number: int = 0

    @classmethod
    def parse(cls, xpub: str) -> ExtendedPublicKey:
        """Read an xpub (main network's version bytes). Raises ValueError for every case of BIP-32's test vector 5."""
        data = base58check.decode(xpub)
        if len(data) != 78 or data[:4] != _XPUB:
            raise ValueError("is not an xpub")
        depth, fingerprint, number = data[4], data[5:9], int.from_bytes(data[9:13], "big")
        if (depth == 0 and number) or (depth == 0) == any(fingerprint):
            raise ValueError("is an xpub whose depth and parent contradict each other")
        try:
            return cls(PublicKey(data[45:]), data[13:45], depth, fingerprint, number)
        except ValueError:
            raise ValueError("is an xpub whose key is not a point of the curve") from None

    def child(self, number: int) -> ExtendedPublicKey:
        """CKDpub of a normal child. Raises ValueError for a hardened one, InvalidChild where BIP-32 has no such child."""
        if not 0 <= number < HARDENED:
            raise ValueError("a hardened child needs the private key")
        compressed = self.key.format()
        digest = hmac.digest(self.chain_code, compressed + number.to_bytes(4, "big"), "sha512")
        try:
            key = self.key.add(digest[:32])
        except ValueError:
            raise InvalidChild(f"BIP-32 has no child of number {number} here: use the next one") from None
        return ExtendedPublicKey(key, digest[32:], self.depth + 1, hash160(compressed)[:4], number)

    def xpub(self) -> str:
        head = _XPUB + bytes([self.depth]) + self.fingerprint + self.number.to_bytes(4, "big")
        return base58check.encode(head + self.chain_code + self.key.format())


@dataclass(frozen=True, slots=True)
class ExtendedPrivateKey:
    """A private key that has children. Never stored, never logged: it lives as long as the call that needs it."""

    key: PrivateKey = field(repr=False)
    chain_code: bytes = field(repr=False)
    depth: int = 0
    fingerprint: bytes = bytes(4)
    number: int = 0

    @classmethod
    def master(cls, seed: bytes | bytearray) -> ExtendedPrivateKey:
        """The master key of a seed of 16 to 64 bytes. Raises ValueError for another length, InvalidChild for an unusable seed."""
        if not 16 <= len(seed) <= 64:
            raise ValueError("a BIP-32 seed has 16 to 64 bytes")
        digest = hmac.digest(b"Bitcoin seed", seed, "sha512")
        try:
            return cls(PrivateKey(digest[:32]), digest[32:])
        except ValueError:
            raise InvalidChild("BIP-32 has no master key for this seed: make another") from None

    def child(self, number: int) -> ExtendedPrivateKey:
        """CKDpriv. Raises InvalidChild where BIP-32 has no such child."""
        compressed = self.key.public_key.format()
        parent = b"\0" + self.key.secret if number >= HARDENED else compressed
        digest = hmac.digest(self.chain_code, parent + number.to_bytes(4, "big"), "sha512")
        try:
            key = self.key.add(digest[:32])
        except ValueError:
            raise InvalidChild(f"BIP-32 has no child of number {number} here: use the next one") from None
        return ExtendedPrivateKey(key, digest[32:], self.depth + 1, hash160(compressed)[:4], number)

    def derive(self, path: str) -> ExtendedPrivateKey:
        """The descendant at `path`, such as ``m/84'/0'/0'``, seen from this key. Raises ValueError, InvalidChild."""
        first, *steps = path.split("/")
        if first != "m":
            raise ValueError("a derivation path starts with m")
        key = self
        for step in steps:
            key = key.child(child_number(step))
        return key

    def public(self) -> ExtendedPublicKey:
        return ExtendedPublicKey(self.key.public_key, self.chain_code, self.depth, self.fingerprint, self.number)

    def xpub(self) -> str:
        return self.public().xpub()

    def xprv(self) -> str:
        """The secret itself, for a restore by hand. Never logged."""
        head = _XPRV + bytes([self.depth]) + self.fingerprint + self.number.to_bytes(4, "big")
        return base58check.encode(head + self.chain_code + b"\0" + self.key.secret)
