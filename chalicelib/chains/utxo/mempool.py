"""What waits to be mined on a UTXO network, as one node sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.chains.utxo.answers import Garbled, hash32, member
from chalicelib.chains.utxo.facts import GENESIS
from chalicelib.chains.utxo.parsing import outputs_of
from chalicelib.chains.utxo.refusals import no_such_transaction
from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Transfer
from chalicelib.encoding.public_keys import Chain
from chalicelib.usecases.ports.failures import Unavailable


class UtxoMempool:
    """Implements `usecases.ports.Mempool` over one node."""

    def __init__(self, network: Network, rpc: JsonRpc, chain: Chain = "main") -> None:
        self._network, self._rpc = network, rpc
        self._genesis = GENESIS[network.slug, chain]

    def waiting(self) -> frozenset[str]:
        """The ids of all transactions in the node's mempool."""
        try:
            genesis, found = self._rpc.batch([("getblockhash", [0]), ("getrawmempool", [])])
            if genesis not in self._genesis:
                raise Garbled("the node is on another chain")
            if not isinstance(found, list):
                raise Garbled("the mempool is no list")
            return frozenset([hash32(txid, "a transaction's id") for txid in found])
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error

    def transfers_of(self, txids: Sequence[str]) -> list[Transfer]:
        """The outputs of those of `txids` that are in the mempool still: not replaced, not mined."""
        try:
            found = [(txid, answer) for txid, answer in zip(txids, self._found(txids), strict=True) if answer is not None]
            if any(member(answer, "txid", "a transaction") != txid for txid, answer in found):
                raise Garbled("the transaction is not the one asked for")
            return outputs_of([answer for _, answer in found if answer.get("blockhash") is None])
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error

    def _found(self, txids: Sequence[str]) -> list[Any]:
        """Each transaction, None where the node has it no more. A batch fails as a whole, so one with a gap is asked in halves."""
        if not txids:
            return []
        try:
            return self._rpc.batch([("getrawtransaction", [txid, True]) for txid in txids])
        except RpcError as error:
            if not no_such_transaction(error, indexed=False):
                raise
        if len(txids) == 1:
            return [None]
        middle = len(txids) // 2
        return self._found(txids[:middle]) + self._found(txids[middle:])
