"""Building transfers with tronpy, offline. The only module that imports it, and that only when something is built."""

from __future__ import annotations

from typing import Any

from chalicelib.chains.tron.transactions import Reference, Unsigned

_TRANSFER = {
    "type": "Function",
    "name": "transfer",
    "stateMutability": "Nonpayable",
    "inputs": [{"name": "to", "type": "address"}, {"name": "value", "type": "uint256"}],
    "outputs": [{"type": "bool"}],
}


class _Offline:
    """What tronpy's builders want of a client. It asks no node: tronpy's own client would bring keys of strangers with it."""

    def __init__(self, fee_limit: int) -> None:
        from tronpy.tron import Trx

        self.conf = {"fee_limit": fee_limit}
        self.trx = Trx(self)


def built_by_tronpy(wanted: Unsigned) -> Any:
    """The transfer of TRX or of a token that `wanted` describes, as tronpy builds it: `txid` is by its encoder."""
    from tronpy.contract import Contract

    client = _Offline(wanted.fee_limit)
    if wanted.contract is None:
        builder = client.trx.transfer(wanted.owner, wanted.recipient, wanted.amount)
    else:
        token = Contract(wanted.contract, abi=[_TRANSFER], owner_address=wanted.owner, client=client)
        builder = token.functions.transfer(wanted.recipient, wanted.amount)
    # Its own times are the machine's; ours follow the chain's.
    builder._raw_data |= {"timestamp": wanted.reference.timestamp, "expiration": wanted.reference.expiration}
    return builder.build(offline=True, ref_block_id=_block_id(wanted.reference))


def _block_id(reference: Reference) -> str:
    """A block id with the two parts that a transaction refers to; nothing else of it is looked at."""
    return "0" * 12 + reference.block_bytes.hex() + reference.block_hash.hex() + "0" * 32
