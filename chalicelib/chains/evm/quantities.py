"""Numbers and hashes as nodes write them. Whatever is not exactly that is the node's fault, and raises Garbled.

Pure; on the scanner's hot path.
"""

from __future__ import annotations

import re
from typing import Any

from chalicelib.chains.answers import Garbled

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}", re.ASCII)
_HASH = re.compile(r"0x[0-9a-f]{64}", re.ASCII)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)


class Contradicted(Garbled):
    """A node's answer contradicts an earlier one about the chain, perhaps of another node."""


def quantity(value: Any, what: str) -> int:
    """A non-negative integer of at most 256 bits (QUANTITY of the execution API's specification; leading zeros are tolerated)."""
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise Garbled(f"{what} is no number")
    return int(value, 16)


def hash32(value: Any, what: str) -> str:
    """A 32 byte hash in lower case."""
    if not isinstance(value, str) or not _HASH.fullmatch(lower := value.lower()):
        raise Garbled(f"{what} is no hash")
    return lower


def address(value: Any, what: str) -> str:
    """An address in storage form (lower case)."""
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise Garbled(f"{what} is no address")
    return value.lower()


def data(value: Any, what: str) -> bytes:
    """Bytes of any length."""
    if not isinstance(value, str) or not _DATA.fullmatch(value):
        raise Garbled(f"{what} is not hexadecimal")
    return bytes.fromhex(value[2:])
