"""Output scripts of the five address types, and those that this service can spend. Pure.

An address is the short spelling of a script; a node's word for it is never asked.
"""

from __future__ import annotations

from typing import Literal

from chalicelib.chains.addresses import parse
from chalicelib.encoding import base58check, bech32
from chalicelib.encoding.public_keys import Chain, hash160, spelling

Spendable = Literal["p2wpkh", "p2pkh", "p2sh-p2wpkh"]

_P2PKH = (b"\x76\xa9\x14", b"\x88\xac")
"""OP_DUP OP_HASH160 <20 bytes> OP_EQUALVERIFY OP_CHECKSIG."""
_P2SH = (b"\xa9\x14", b"\x87")
"""OP_HASH160 <20 bytes> OP_EQUAL (BIP-16)."""

INPUT_WEIGHT: dict[Spendable, int] = {"p2wpkh": 4 * 41 + 108, "p2pkh": 4 * 148 + 1, "p2sh-p2wpkh": 4 * 64 + 108}
"""Of a signed input, in weight units (BIP-141), at most: a signature of 72 bytes, its hash type included, and a key of 33.

P2PKH: one more for its empty witness beside segwit inputs.
"""

_SEGWIT_SPEND, _LEGACY_SPEND = 67, 148
"""Bytes that spending an output takes, as Core's GetDustThreshold counts them."""


def script_of(network: str, address: str, chain: Chain) -> bytes:
    """The output script of an address. Raises ValueError for what is no address of that chain."""
    kind, text = parse(network, address, chain)
    if kind in ("p2pkh", "p2sh"):
        head, tail = _P2PKH if kind == "p2pkh" else _P2SH
        return head + base58check.decode(text)[1:] + tail
    _, version, program = bech32.decode_segwit(text)
    return bytes([0x50 + version if version else 0, len(program)]) + program


def address_of(network: str, script: bytes, chain: Chain) -> str:
    """The public spelling of the address that stands for `script`. Raises ValueError where none does."""
    known = spelling(network, chain)
    if (hash_ := _between(script, _P2PKH)) is not None:
        return base58check.encode(bytes([known.p2pkh]) + hash_)
    if (hash_ := _between(script, _P2SH)) is not None:
        return base58check.encode(bytes([known.p2sh[0]]) + hash_)
    # BIP-141: a version and one push. Kinds as `chains.addresses` knows them.
    if len(script) in (22, 34) and script[1] == len(script) - 2 and (script[0] == 0 or script[:2] == b"\x51\x20"):
        return bech32.encode_segwit(known.segwit, 1 if script[0] else 0, script[2:])
    raise ValueError("an output pays to a script that no address stands for")


def key_hash_of(script: bytes, redeem: bytes = b"") -> tuple[Spendable, bytes]:
    """The way to spend an output with one key, and the HASH160 of that key. `redeem` is the script behind a P2SH address.

    Raises ValueError for every other script.
    """
    if (hash_ := _between(script, _P2PKH)) is not None and not redeem:
        return "p2pkh", hash_
    if len(script) == 22 and script[:2] == b"\x00\x14" and not redeem:
        return "p2wpkh", script[2:]
    if len(redeem) == 22 and redeem[:2] == b"\x00\x14" and _between(script, _P2SH) == hash160(redeem):
        return "p2sh-p2wpkh", redeem[2:]
    raise ValueError("an input is not a plain output of one key")


def script_code(key_hash: bytes) -> bytes:
    """The script code of a digest (BIP-143: of P2WPKH; the legacy rules: of P2PKH), without its length."""
    return _P2PKH[0] + key_hash + _P2PKH[1]


def dust_of(script: bytes, rate: int) -> int:
    """Amounts below this are dust at `rate` (Core's GetDustThreshold): relaying and spending would cost more than it is worth."""
    witness = len(script) > 1 and script[1] == len(script) - 2 and (script[0] == 0 or 0x51 <= script[0] <= 0x60)
    return (8 + 1 + len(script) + (_SEGWIT_SPEND if witness else _LEGACY_SPEND)) * rate // 1000


def _between(script: bytes, frame: tuple[bytes, bytes]) -> bytes | None:
    """The 20 bytes inside a script of this frame."""
    head, tail = frame
    whole = len(script) == len(head) + 20 + len(tail) and script.startswith(head) and script.endswith(tail)
    return script[len(head) : -len(tail)] if whole else None
