"""Base58 with a checksum of four bytes (bitcoin's legacy addresses, Tron's addresses, extended keys, WIF)."""

from __future__ import annotations

import re

import base58

_ALPHABET = re.compile(r"[1-9A-HJ-NP-Za-km-z]+", re.ASCII)
MAX_LENGTH = 120
"""Characters. An extended key, the longest thing that we decode, has 111; decoding time grows with the square."""


def encode(payload: bytes) -> str:
    """`payload` and its checksum, in base58."""
    return base58.b58encode_check(payload).decode("ascii")


def decode(text: str) -> bytes:
    """The payload of `text`, without its checksum.

    Raises ValueError, whose message never repeats `text` (it may be a secret): wrong characters, too long, wrong checksum.
    """
    # Checked here because the library strips blanks at the end and takes any length.
    if len(text) > MAX_LENGTH:
        raise ValueError(f"must have at most {MAX_LENGTH} characters")
    if not _ALPHABET.fullmatch(text):
        raise ValueError("has characters that base58 does not have")
    try:
        return base58.b58decode_check(text)
    except ValueError:
        raise ValueError("the checksum is wrong: a character was mistyped or is missing") from None
