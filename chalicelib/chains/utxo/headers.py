"""Proof of a block by its hash: the header's 80 bytes, and the Merkle tree of its transaction ids. Pure; on the hot path.

A transaction that a node leaves out, or has lost, would be a payment lost without notice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from chalicelib.chains.answers import Garbled, hash32
from chalicelib.chains.utxo.answers import number
from chalicelib.domain.chain import Header


def check_block(block: dict[str, Any], txids: Sequence[str]) -> None:
    """Raises Garbled unless `block` (of getblock) hashes to its own hash, and its header stands for just these transactions.

    (Litecoin's proof of work is another function; its blocks are named by the same hash.)
    """
    try:
        version, bits, nonce = block["version"] & 0xFFFFFFFF, bytes.fromhex(block["bits"]), block["nonce"]
        root = bytes.fromhex(hash32(block["merkleroot"], "a block's tree"))[::-1]
        parent = bytes.fromhex(hash32(block.get("previousblockhash", "0" * 64), "a block's parent"))[::-1]
        time = number(block["time"], "a block's time")
        ends = [part.to_bytes(4, "little") for part in (version, time, nonce)]
        header = ends[0] + parent + root + ends[1] + bits[::-1] + ends[2]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Garbled("a block's header lacks a field") from None
    if len(header) != 80 or _twice(header)[::-1].hex() != block["hash"]:
        raise Garbled("a block's header is not what its hash says")
    # Twice the same at the end of a row makes the same root (CVE-2012-2459).
    if len(set(txids)) != len(txids) or merkle_root(txids) != root:
        raise Garbled("a block's transactions are not those that its header stands for")


def read_header(raw: Any, number_: int, hash_: str) -> Header:
    """The header of these 80 bytes (hex), whose hash is the block's. Raises Garbled where it is not."""
    try:
        header = bytes.fromhex(raw)
    except (TypeError, ValueError):
        raise Garbled("a block's header is no bytes") from None
    if len(header) != 80 or _twice(header)[::-1].hex() != hash_:
        raise Garbled("a block's header is not what its hash says")
    return Header(number_, hash_, header[4:36][::-1].hex(), int.from_bytes(header[68:72], "little") * 1000)


def merkle_root(txids: Sequence[str]) -> bytes:
    """The root of the tree over these ids, in the order of the header's bytes. Raises Garbled for what is no id."""
    try:
        row = b"".join([bytes.fromhex(txid)[::-1] for txid in txids])
    except (TypeError, ValueError):
        raise Garbled("a transaction's id is no hash") from None
    if len(row) != 32 * len(txids) or not row:
        raise Garbled("a transaction's id is no hash")
    sha256 = hashlib.sha256
    while len(row) > 32:
        if len(row) % 64:
            row += row[-32:]
        row = b"".join([sha256(sha256(row[at : at + 64]).digest()).digest() for at in range(0, len(row), 64)])
    return row


def _twice(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()
