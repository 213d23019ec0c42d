"""Classification of a node's error: a refusal by the chain, or an unknown result. Pure.

Codes: src/rpc/protocol.h of Bitcoin Core, which bcoin took over; words: src/validation.cpp. What is not recognised counts as "not
known": trying again is safe, and giving a payment up wrongly is not.
"""

from __future__ import annotations

import re

from chalicelib.chains.rpc import RpcError

_NO_KEY = -5
_BAD_PARAMETER = -8
_NO_DATA_YET = re.compile(r"txindex|being indexed|index is|not enabled", re.IGNORECASE)
_HEIGHT = re.compile(r"height out of range|block not found|not available", re.IGNORECASE)
_NOT_TAKEN = (-25, -26, -27, -22)
"""Verification failed, refused by the chain's or the node's rules, in the chain already, no transaction at all."""
_KNOWN = re.compile(
    r"already in block chain|outputs already in utxo set|txn-already-known|txn-already-in-mempool|already-in-chain", re.IGNORECASE
)
_BUSY = re.compile(r"internal|timeout|loading|warming|shutting", re.IGNORECASE)


def no_such_height(error: RpcError) -> bool:
    """In answer to getblockhash: the chain is not that long."""
    return error.code == _BAD_PARAMETER or _HEIGHT.search(error.message) is not None


def no_such_transaction(error: RpcError, *, indexed: bool = True) -> bool:
    """In answer to getrawtransaction: there is none, in blocks or in the mempool. `indexed`: only believe a node with an index of
    all transactions (Core names -txindex in its error where it has none)."""
    return error.code == _NO_KEY and not (indexed and _NO_DATA_YET.search(error.message))


def not_taken(error: RpcError) -> bool:
    """In answer to sendrawtransaction: the node will not take this transaction as the chain and its mempool are now."""
    return error.code in _NOT_TAKEN and not _BUSY.search(error.message)


def known_already(error: RpcError) -> bool:
    """In answer to sendrawtransaction: the node has this very transaction, in its mempool or in a block."""
    return _KNOWN.search(error.message) is not None
