"""Keccak-256, the hash of Ethereum and Tron (the original padding, so not hashlib's sha3_256)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_new: Callable[..., Any] | None = None


def keccak256(data: bytes) -> bytes:
    """The 32 byte Keccak-256 digest. Source: the Keccak submission, version 3, as Ethereum's yellow paper uses it."""
    global _new  # noqa: PLW0603
    if _new is None:
        # Imported at the first use: loading it takes 30 ms, which most Lambdas and most requests never need.
        from Crypto.Hash.keccak import new

        _new = new
    return bytes(_new(data=data, digest_bits=256).digest())
