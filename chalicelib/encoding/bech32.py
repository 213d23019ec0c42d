"""Bech32 and Bech32m, as segwit addresses use them (BIP-173, BIP-350)."""

from __future__ import annotations

import re
from functools import lru_cache

BECH32 = 1
BECH32M = 0x2BC830A3
"""The constants of the two checksums: witness version 0 has the first, later versions the second."""

_CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES = {char: value for value, char in enumerate(_CHARSET)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
# The generator's part of a step depends on five bits only: 32 sums made once instead of five tests at every character.
_STEP = tuple(
    (top & 1) * _GENERATOR[0]
    ^ (top >> 1 & 1) * _GENERATOR[1]
    ^ (top >> 2 & 1) * _GENERATOR[2]
    ^ (top >> 3 & 1) * _GENERATOR[3]
    ^ (top >> 4 & 1) * _GENERATOR[4]
    for top in range(32)
)
_PRINTABLE = re.compile(r"[!-~]+", re.ASCII)


def _absorb(state: int, values: bytes) -> int:
    for value in values:
        state = (state & 0x1FFFFFF) << 5 ^ value ^ _STEP[state >> 25]
    return state


@lru_cache(maxsize=16)
def _start(hrp: str) -> int:
    return _absorb(1, bytes([ord(c) >> 5 for c in hrp]) + b"\0" + bytes([ord(c) & 31 for c in hrp]))


def parse(text: str) -> tuple[str, bytes, int]:
    """Human-readable part (lower case), data as 5 bit values, and the checksum's constant: BECH32 or BECH32M.

    Raises ValueError with the reason: characters, mixed case, length over 90, no separator, checksum.
    """
    if len(text) > 90:
        raise ValueError("must have at most 90 characters")
    if not _PRINTABLE.fullmatch(text):
        raise ValueError("has characters that an address does not have")
    lower = text.lower()
    if text not in (lower, text.upper()):
        raise ValueError("mixes upper and lower case")
    split = lower.rfind("1")
    if split < 1 or split + 7 > len(lower):
        raise ValueError("is cut short")
    hrp = lower[:split]
    try:
        values = bytes([_VALUES[char] for char in lower[split + 1 :]])
    except KeyError:
        raise ValueError("has characters that an address does not have") from None
    constant = _absorb(_start(hrp), values)
    if constant not in (BECH32, BECH32M):
        raise ValueError("the checksum is wrong: a character was mistyped or is missing")
    return hrp, values[:-6], constant


def decode_segwit(text: str) -> tuple[str, int, bytes]:
    """Human-readable part, witness version (0 to 16) and program (2 to 40 bytes) of a segwit address.

    Raises ValueError with the reason. Source: BIP-173 with the checksum rule of BIP-350.
    """
    hrp, data, constant = parse(text)
    if not data or data[0] > 16:
        raise ValueError("has an unknown witness version")
    version = data[0]
    if constant != (BECH32M if version else BECH32):
        raise ValueError("the checksum is of the wrong kind for its witness version")
    bits = 5 * (len(data) - 1)
    number = 0
    for value in data[1:]:
        number = number << 5 | value
    padding = bits % 8
    if padding > 4 or number & (1 << padding) - 1:
        raise ValueError("has a wrong padding")
    program = (number >> padding).to_bytes(bits // 8, "big")
    if not 2 <= len(program) <= 40 or (version == 0 and len(program) not in (20, 32)):
        raise ValueError("has a wrong length for its witness version")
    return hrp, version, program


def encode_segwit(hrp: str, version: int, program: bytes) -> str:
    """The address of a witness program, lower case. `hrp` is the network's prefix, such as ``bc``."""
    bits = 8 * len(program)
    padding = -bits % 5
    number = int.from_bytes(program, "big") << padding
    values = bytes([version, *[number >> shift & 31 for shift in range(bits + padding - 5, -5, -5)]])
    checksum = _absorb(_start(hrp), values + bytes(6)) ^ (BECH32M if version else BECH32)
    checked = values + bytes([checksum >> shift & 31 for shift in (25, 20, 15, 10, 5, 0)])
    return f"{hrp}1{''.join([_CHARSET[value] for value in checked])}"
