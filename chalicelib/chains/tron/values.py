"""Numbers, hashes and addresses as Tron's nodes write them. Whatever is not exactly that is the node's fault, and raises Garbled.

Pure; on the scanner's hot path. Addresses are 41 and 40 hex digits in a node's answers, and base58check in our storage form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Any

from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import TRON_PREFIX

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ADDRESS = re.compile(r"41[0-9a-f]{40}", re.ASCII)
_DATA = re.compile(r"(?:[0-9a-fA-F]{2})*", re.ASCII)
_REMEMBERED = 16_384

_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PAIRS = tuple(high + low for high in _DIGITS for low in _DIGITS)
_P4, _P8, _P16, _P18 = 58**4, 58**8, 58**16, 58**18


class Garbled(Exception):
    """A node's answer contradicts the request or itself. The message says which part, never what a provider wrote."""


def whole(value: Any, what: str) -> int:
    """A non-negative integer of 63 bits. None is 0: protobuf's JSON leaves out what is zero."""
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value < 2**63:
        raise Garbled(f"{what} is no number")
    return value


def hash32(value: Any, what: str) -> str:
    """A 32 byte hash: 64 lower-case hex digits."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise Garbled(f"{what} is no hash")
    return value


def data(value: Any, what: str) -> bytes:
    """Bytes of any length; None is none."""
    if value is None:
        return b""
    if not isinstance(value, str) or not _DATA.fullmatch(value):
        raise Garbled(f"{what} is not hexadecimal")
    return bytes.fromhex(value)


def row(answer: Any, what: str) -> dict[str, Any]:
    """An object."""
    if not isinstance(answer, dict):
        raise Garbled(f"{what} is no object")
    return answer


@lru_cache(maxsize=_REMEMBERED)
def address(value: str) -> str:
    """The storage form (base58check) of an address as nodes write it. Raises Garbled, TypeError for what can not be hashed.

    A base58 of our own for this one length: the library takes ten times as long, and a block has hundreds of them.
    """
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise Garbled("an address is none")
    payload = bytes.fromhex(value)
    number = int.from_bytes(payload + sha256(sha256(payload).digest()).digest()[:4])
    # 25 bytes that begin with 0x41 always have 34 digits: 16 and 18.
    high, low = divmod(number, _P18)
    first, second = divmod(high, _P8)
    top, low = divmod(low, _P16)
    third, fourth = divmod(low, _P8)
    return _eight(first) + _eight(second) + _PAIRS[top] + _eight(third) + _eight(fourth)


def _eight(number: int) -> str:
    high, low = divmod(number, _P4)
    a, b = divmod(high, 3364)
    c, d = divmod(low, 3364)
    return _PAIRS[a] + _PAIRS[b] + _PAIRS[c] + _PAIRS[d]


def raw_address(text: str) -> bytes:
    """The 21 bytes of an address in base58check. Raises ValueError."""
    payload = base58check.decode(text)
    if len(payload) != 21 or payload[:1] != TRON_PREFIX:
        raise ValueError("is not an address of the Tron network")
    return payload


def hex_address(text: str) -> str:
    """An address in base58check as nodes want it. Raises ValueError."""
    return raw_address(text).hex()


def words(value: Any) -> str:
    """What a node says in words, which it writes in hex or in plain text; at most 200 characters."""
    if not isinstance(value, str):
        return ""
    if value and _DATA.fullmatch(value):
        value = bytes.fromhex(value).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else " " for char in value)[:200]
