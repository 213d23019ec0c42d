"""Classification of a node's error: a refusal by the chain, or an unknown result. Pure.

Nodes have no error codes in common, only similar words. What is not recognised counts as "not known": trying again is safe, and
giving a payment up wrongly is not.
"""

from __future__ import annotations

import re

from chalicelib.chains.rpc import RpcError

_WOULD_FAIL = re.compile(
    r"revert|invalid opcode|invalid jump|out of gas|outofgas|gas required exceeds|always failing|insufficient (funds|balance)"
    r"|out ?of ?funds|vm execution error|evm error",
    re.IGNORECASE,
)
# A token that reverts with these words says that the sender's tokens are too few: that is a failure of the call, not of the fee.
_NO_FUNDS = re.compile(r"(?<!revert: )\binsufficient funds\b|out ?of ?funds", re.IGNORECASE)
_KNOWN = re.compile(r"already (known|imported|exists|in mempool)|known transaction|alreadyknown", re.IGNORECASE)
_NOT_TAKEN = re.compile(
    r"nonce too low|nonce is too low|oldnonce|insufficient funds|underpriced|intrinsic gas|exceeds block gas limit"
    r"|gas limit reached|max fee per gas less than block base fee|fee cap|feetoolow|invalid chain id|invalid sender"
    r"|invalid signature|max priority fee per gas higher|exceeds the configured cap|transaction type not supported"
    # The same nonce is taken by one that pays more, or nearly as much: geth, erigon, nethermind, besu.
    r"|could not replace|replacement ?not ?allowed|same nonce|replacement fee too low",
    re.IGNORECASE,
)


def would_fail(error: RpcError) -> bool:
    """In answer to eth_call or eth_estimateGas: the transaction would fail on the chain. Geth marks reverts with the code 3."""
    return error.code == 3 or _WOULD_FAIL.search(error.message) is not None


def out_of_funds(error: RpcError) -> bool:
    """In answer to eth_call or eth_estimateGas: the sender can not pay for the value or the gas."""
    return error.code != 3 and _NO_FUNDS.search(error.message) is not None


def known_already(error: RpcError) -> bool:
    """In answer to eth_sendRawTransaction: the node has this very transaction."""
    return _KNOWN.search(error.message) is not None


def not_taken(error: RpcError) -> bool:
    """In answer to eth_sendRawTransaction: the node will not take this transaction as the chain is now."""
    return _NOT_TAKEN.search(error.message) is not None
