"""ECDSA over secp256k1: reading DER, low s, and the parity of R. Every signature that leaves custody went through here."""

from __future__ import annotations

from coincurve import PrivateKey, PublicKey

from chalicelib.usecases.ports.signing import Signature

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


class NotSigned(Exception):
    """The bytes are not a signature of this digest by this key."""


def parse_der(der: bytes) -> tuple[int, int]:
    """r and s of a DER signature (SEC 1, C.5; strict as BIP-66). Raises ValueError."""
    if len(der) < 8 or der[0] != 0x30 or der[1] != len(der) - 2:
        raise ValueError("is not a DER sequence")
    r, rest = _integer(der[2:])
    s, rest = _integer(rest)
    if rest:
        raise ValueError("has bytes after the signature")
    return r, s


def _integer(data: bytes) -> tuple[int, bytes]:
    if len(data) < 3 or data[0] != 0x02 or not 1 <= data[1] <= 33 or len(data) < 2 + data[1]:
        raise ValueError("is not a DER integer of 32 bytes")
    body = data[2 : 2 + data[1]]
    if body[0] & 0x80 or (body[0] == 0 and len(body) > 1 and not body[1] & 0x80):
        raise ValueError("is negative, or has needless zeros")
    value = int.from_bytes(body, "big")
    if not 0 < value < ORDER:
        raise ValueError("is out of the curve's range")
    return value, data[2 + data[1] :]


def finish(r: int, s: int, digest: bytes, public_key: bytes) -> Signature:
    """The signature in the form that chains take: s in the lower half (EIP-2, BIP-62), with the parity of R.

    `public_key` is x and y, 64 bytes. The parity is found by recovering the public key, which also proves that the
    signature is right. Raises NotSigned where it is not.
    """
    s = min(s, ORDER - s)
    compact = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    for parity in (0, 1):
        try:
            recovered = PublicKey.from_signature_and_message(compact + bytes([parity]), digest, hasher=None)
        except ValueError:
            continue  # r is no x coordinate of the curve: then the other parity fails too, and the loop ends in NotSigned
        if recovered.format(compressed=False)[1:] == public_key:
            return Signature(r, s, parity)
    raise NotSigned("the signature does not belong to this digest and key")


def sign_with(key: PrivateKey, digest: bytes) -> Signature:
    """Sign 32 bytes with a key at hand (RFC 6979, low s). Raises NotSigned in the one case in 2^127 that chains can not write."""
    compact = key.sign_recoverable(digest, hasher=None)
    if compact[64] > 1:
        raise NotSigned("R is out of the range that a parity can describe")
    return Signature(int.from_bytes(compact[:32], "big"), int.from_bytes(compact[32:64], "big"), compact[64])


def check_digest(digest: bytes) -> None:
    """Raises ValueError for anything but 32 bytes."""
    if len(digest) != 32:
        raise ValueError("a digest has 32 bytes")
