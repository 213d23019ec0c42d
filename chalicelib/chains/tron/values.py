"""Numbers, hashes and addresses as Tron's nodes write them. Whatever is not exactly that is the node's fault, and raises Garbled.

Pure; on the scanner's hot path. Addresses are 41 and 40 hex digits in a node's answers, or base58check
where that was asked for, as in our storage form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from chalicelib.chains.answers import Garbled
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import TRON_PREFIX

_ADDRESS = re.compile(r"41[0-9a-f]{40}", re.ASCII)
SPELLED = re.compile(r"T[1-9A-HJ-NP-Za-km-z]{33}", re.ASCII)
"""An address in base58, as nodes write it when asked to. Its checksum is not looked at: a wrong one is nobody's."""
_DATA = re.compile(r"(?:[0-9a-fA-F]{2})*", re.ASCII)
_REMEMBERED = 16_384

_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
_P10, _P20 = 58**10, 58**20
"""Two digits are 3,364, four are 11,316,496."""
_known: dict[str, str] = {}
_raws: dict[str, bytes] = {}
"""Exchanges are in every block. Threads may compute one twice, which changes nothing."""


def whole(value: Any, what: str) -> int:
    """A non-negative integer of 63 bits. None is 0: protobuf's JSON leaves out what is zero."""
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value < 2**63:
        raise Garbled(f"{what} is no number")
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


def address(value: Any) -> str:
    """The storage form (base58check) of an address as nodes write it in hex. Raises Garbled."""
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise Garbled("an address is none")
    digits = value[2:]
    return addresses([digits])[digits]


def addresses(wanted: Iterable[str]) -> Mapping[str, str]:
    """The storage forms of addresses that are given as 40 hex digits (lower case), without their prefix 41. Has others, too.

    A base58 of our own for this one length: the library takes ten times as long, and a block has hundreds of them.
    """
    known = _known
    if len(known) > _REMEMBERED:
        known.clear()
    pairs = _PAIRS
    for digits in wanted:
        if digits in known:
            continue
        payload = b"\x41" + bytes.fromhex(digits)
        number = int.from_bytes(payload + sha256(sha256(payload).digest()).digest()[:4])
        # 25 bytes that begin with 0x41 always have 34 digits: 4, and three times 10, which are 2 and twice 4.
        high, low = divmod(number, _P20)
        a, high = divmod(high, _P10)
        middle, low = divmod(low, _P10)
        b, d = divmod(high, 11316496)
        b, c = divmod(b, 11316496)
        e, g = divmod(middle, 11316496)
        e, f = divmod(e, 11316496)
        h, j = divmod(low, 11316496)
        h, i = divmod(h, 11316496)
        known[digits] = (
            f"{pairs[a // 3364]}{pairs[a % 3364]}"
            f"{pairs[b]}{pairs[c // 3364]}{pairs[c % 3364]}{pairs[d // 3364]}{pairs[d % 3364]}"
            f"{pairs[e]}{pairs[f // 3364]}{pairs[f % 3364]}{pairs[g // 3364]}{pairs[g % 3364]}"
            f"{pairs[h]}{pairs[i // 3364]}{pairs[i % 3364]}{pairs[j // 3364]}{pairs[j % 3364]}"
        )
    return known


def raw_address(text: str) -> bytes:
    """The 21 bytes of an address in base58check. Raises ValueError."""
    known = _raws.get(text)
    if known is not None:
        return known
    payload = base58check.decode(text)
    if len(payload) != 21 or payload[:1] != TRON_PREFIX:
        raise ValueError("is not an address of the Tron network")
    return payload


def text_address(raw: bytes) -> str:
    """The storage form of an address of 21 bytes. Raises ValueError."""
    if len(raw) != 21 or raw[:1] != TRON_PREFIX:
        raise ValueError("is not an address of the Tron network")
    digits = raw[1:].hex()
    text = addresses([digits])[digits]
    if len(_raws) > 64:
        _raws.clear()
    # Who decodes a transaction encodes it again, to see that nothing was lost.
    _raws[text] = raw
    return text


def hex_address(text: str) -> str:
    """An address in base58check as nodes want it. Raises ValueError."""
    return raw_address(text).hex()


def words(value: Any) -> str:
    """A node's message, which it writes in hex or in plain text; at most 200 characters."""
    if not isinstance(value, str):
        return ""
    if value and _DATA.fullmatch(value):
        value = bytes.fromhex(value).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else " " for char in value)[:200]
