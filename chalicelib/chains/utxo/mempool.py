"""Mempool transactions of a UTXO network, as one node sees them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.chains.answers import Garbled, hash32, member
from chalicelib.chains.rpc import JsonRpc, RpcError, TooMuch
from chalicelib.chains.utxo.answers import number
from chalicelib.chains.utxo.facts import GENESIS
from chalicelib.chains.utxo.parsing import outputs_of
from chalicelib.chains.utxo.refusals import no_such_transaction
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Unmined
from chalicelib.encoding.public_keys import Chain
from chalicelib.usecases.ports.failures import Unavailable

log = logging.getLogger(__name__)

MOST_SPENDS = 16
"""Outputs that are remembered of what a transaction spends. A replacement spends one of all; wallets spend each again."""
_SAYS_SO = 0xFFFFFFFE
"""Below this, an input's sequence says that the transaction may be replaced (BIP-125)."""


class UtxoMempool:
    """Implements `usecases.ports.readers.Mempool` over one node."""

    def __init__(self, network: Network, rpc: JsonRpc, chain: Chain = "main") -> None:
        self._network, self._rpc = network, rpc
        self._genesis = GENESIS[network.slug, chain]

    def waiting(self) -> frozenset[str]:
        """The ids of all transactions in the node's mempool."""
        try:
            genesis = self._rpc.call("getblockhash", [0])
            # Alone: of a large mempool the ids are more than the answers to a batch may be together.
            found = self._rpc.call("getrawmempool", [])
            if genesis not in self._genesis:
                raise Garbled("the node is on another chain")
            if not isinstance(found, list):
                raise Garbled("the mempool is no list")
            return frozenset([hash32(txid, "a transaction's id") for txid in found])
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error

    def transactions(self, txids: Sequence[str]) -> list[Unmined]:
        """Those of `txids` that are still in the mempool: not replaced, not mined. `spends` names up to `MOST_SPENDS` of their
        inputs."""
        try:
            found = [(txid, answer) for txid, answer in zip(txids, self._found(txids), strict=True) if answer is not None]
            if any(member(answer, "txid", "a transaction") != txid for txid, answer in found):
                raise Garbled("the transaction is not the one asked for")
            return [_unmined(answer) for _, answer in found if answer.get("blockhash") is None]
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error

    def ousted(self, spends: Mapping[str, Sequence[str]]) -> set[str]:
        """See the port. The mempool is asked for last and of the same node: what spends the outputs may be what they are
        remembered for, back again.
        """
        asked = [(txid, *outpoint.split(":")) for txid, outpoints in spends.items() for outpoint in outpoints]
        if not asked:
            return set()
        try:
            found = self._rpc.batch([("gettxout", [parent, int(index), True]) for _, parent, index in asked])
            waiting = self._rpc.call("getrawmempool", [])
            if not isinstance(waiting, list):
                raise Garbled("the mempool is no list")
            return {txid for (txid, *_), answer in zip(asked, found, strict=True) if answer is None} - set(waiting)
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error

    def _found(self, txids: Sequence[str]) -> list[Any]:
        """Each transaction, None where the node has it no more. A batch fails as a whole, so one with a gap is asked in halves."""
        if not txids:
            return []
        try:
            return self._rpc.batch([("getrawtransaction", [txid, True]) for txid in txids])
        except TooMuch as error:
            # The transport has halved the batch down to one: that is at fault, and is seen in its block.
            log.warning("%s: one of %d waiting transactions is not read: %s", self._network.slug, len(txids), error)
        except RpcError as error:
            if not no_such_transaction(error, indexed=False):
                raise
        if len(txids) == 1:
            return [None]
        middle = len(txids) // 2
        return self._found(txids[:middle]) + self._found(txids[middle:])


def _unmined(answer: Any) -> Unmined:
    """A transaction as the node tells it. Those that wait for unconfirmed ones, which say that they may be replaced, are
    replaceable as well and do not say so: that is not followed."""
    spends: list[str] = []
    replaceable = False
    try:
        for entry in answer["vin"]:
            if entry.get("ismweb"):
                continue
            replaceable = replaceable or number(entry["sequence"], "a sequence") < _SAYS_SO
            if len(spends) < MOST_SPENDS:
                spends.append(f"{hash32(entry['txid'], 'a spent transaction')}:{number(entry['vout'], 'an output')}")
    except (KeyError, TypeError):
        raise Garbled("an input lacks a field") from None
    return Unmined(answer["txid"], outputs_of([answer]), tuple(spends), replaceable)
