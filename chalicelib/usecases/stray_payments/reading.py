"""Reads the payments of an EVM transaction to our deposit addresses, watched there or not, in registered coins or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chalicelib.domain.addresses.addresses import Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.money import MOST_SUM
from chalicelib.domain.treasury.moves import Move, operators
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import Balances, ChainReader, Witness
from chalicelib.usecases.ports.store import Listed, Store


@dataclass(frozen=True, slots=True)
class Arrived:
    """One proven movement to a deposit address, and the id of the deposit that it is or would be."""

    transfer: Transfer
    watched: Watched
    deposit: str


@dataclass(frozen=True, slots=True)
class Reading:
    """`internal`: what contracts sent inside of the transaction was read, too."""

    block: Block
    arrived: tuple[Arrived, ...]
    internal: bool


class StrayReader:
    """Reads transactions of one network. With several nodes, two of them have to vouch for them."""

    def __init__(self, network: Network, reader: ChainReader, store: Store) -> None:
        self._network, self._reader, self._store = network, reader, store
        self._claims = Claims(network, reader, store)

    def read(self, txid: str) -> Reading:
        """`txid` in storage form. Raises BusinessRule where there is nothing to credit (yet), Unavailable."""
        slug = self._network.slug
        receipt = self._reader.receipt(txid)
        if receipt is None:
            raise BusinessRule("txid", f"is in no block of {slug} that the node knows")
        if not receipt.success:
            raise BusinessRule("txid", "failed on the chain: it moved nothing")
        paid = self._ours(recipient for _, _, recipient in receipt.moved)
        contracts = {contract for contract, _, recipient in receipt.moved if recipient in paid}
        blocks = self._reader.blocks(receipt.block_number, receipt.block_number, contracts)
        if not blocks or blocks[0].hash != receipt.block_hash:
            raise Unavailable(f"{self._network.id}: the chain changed while {txid} was read")
        block = Block(blocks[0].number, blocks[0].hash, blocks[0].parent_hash, blocks[0].time)
        there = [t for t in blocks[0].transfers if t.txid == txid and 0 < t.amount <= MOST_SUM]
        ours = self._ours(t.recipient for t in there)
        proven = self._proven(block, [t for t in there if t.recipient in ours])
        if self._moves_of_ours(txid):
            raise BusinessRule("txid", "is a transaction of the service itself")
        arrived = [Arrived(t, ours[t.recipient], id_) for t, id_ in zip(proven, self._claims.ids(block, proven), strict=True)]
        internal = self._network.simulated or (isinstance(self._reader, Balances) and self._reader.traces is not False)
        if not arrived:
            unread = "" if internal else ", as far as nodes that do not trace can tell: what contracts sent inside was not read"
            raise BusinessRule("txid", f"brought nothing to a deposit address of this service{unread}")
        return Reading(block, tuple(arrived), internal)

    def _ours(self, recipients: Iterable[str]) -> dict[str, Watched]:
        """The deposit addresses among them, whichever networks they are watched on."""
        wanted = sorted(set(recipients))
        found = self._store.get_many([watched_key(self._network, address) for address in wanted]) if wanted else []
        return {a: w for a, w in zip(wanted, found, strict=True) if w is not None and w.role == "user" and w.tenant is not None}

    def _proven(self, block: Block, transfers: Sequence[Transfer]) -> list[Transfer]:
        proven = self._reader.proven(block, transfers) if transfers else []
        if proven and isinstance(self._reader, Witness) and not self._reader.agreed(block, proven):
            raise Unavailable(f"{self._network.id}: no two nodes vouch for what {proven[0].txid} moved")
        return proven

    def _moves_of_ours(self, txid: str) -> bool:
        """Whether it is a top-up, a sweep or the like: its own settlement posts what it brings."""
        places = self._store.places(Listed("tx", "hash", operators(self._network.realm), txid), limit=10).places
        return any(isinstance(found, Move) for found in self._store.at(places))
