"""Claims: the deposit id of each proven movement of a block stays the same through reorganisations.

On EVM networks a token's log is named by its number in the block, which changes when other transactions come before its own. Its
transaction's claim (`domain.deposits.claims.LogClaim`) is stored before the first deposit of it: dying in between leaves a claim
that the next scan finds, and of two scanners the second takes the claim of the first. A transaction without one gets it when it is
seen.

No other position needs one. "native" and "out:<n>" name the transaction and its output; "trace:<recipient>:<n>" and Tron's
"log:<n>" and "int:<n>" count within the transaction; "balance:<block>:<address>" goes with its block.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.deposits.claims import LogClaim, log_number
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader, LogOrder
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)

_AT_ONCE = 10
"""Claims of one transaction of the store."""


class Claims:
    def __init__(self, network: Network, reader: ChainReader, store: Store) -> None:
        self._network, self._reader, self._store = network, reader, store

    def ids(self, block: Block, transfers: Sequence[Transfer]) -> list[str]:
        """The deposit id of each of `transfers`, which are proven to have happened in `block`; stores their claims.

        For tokens on EVM networks one batch read, and a write for up to ten transactions that had no claim. Raises Unavailable,
        Conflict.
        """
        own = [deposit_id(self._network.id, t.txid, t.position) for t in transfers]
        places = self.positions(block, transfers)
        claimed = [deposit_id(self._network.id, t.txid, place) for t, place in zip(transfers, places, strict=True)]
        return self._settled(block, transfers, own, claimed)

    def positions(self, block: Block, transfers: Sequence[Transfer]) -> list[str]:
        """The position that names each of `transfers`, which are proven to have happened in `block`, in every block: its
        position in the block where its transaction was first seen. Stores claims as `ids` does. Raises Unavailable, Conflict."""
        order = self._log_order()
        numbers = {t: number for t in transfers if t.contract is not None and (number := log_number(t.position)) is not None}
        if order is None or not numbers:
            return [t.position for t in transfers]
        firsts = order.first_logs(block, list(dict.fromkeys(t.txid for t in numbers)))
        claims = self.claimed(firsts)
        found = []
        for transfer in transfers:
            number = numbers.get(transfer)
            if number is not None and number < firsts[transfer.txid]:
                raise Unavailable(f"{self._network.id}: {transfer.txid} has no log {number} in block {block.number}")
            place = None if number is None else claims[transfer.txid].position(number - firsts[transfer.txid])
            found.append(place or transfer.position)
        return found

    def claimed(self, firsts: Mapping[str, int]) -> dict[str, LogClaim]:
        """The claim of each transaction, by its id. A transaction without a claim gets one: `firsts` has the number of its first
        log.

        Raises Unavailable, Conflict.
        """

        def decide() -> dict[str, LogClaim]:
            wanted: list[tuple[type[Any], dict[str, str]]] = [
                (LogClaim, {"network": self._network.id, "txid": txid}) for txid in firsts
            ]
            found = {claim.txid: claim for claim in self._store.get_many(wanted) if claim is not None}
            made = [LogClaim(self._network.id, txid, first) for txid, first in firsts.items() if txid not in found]
            for start in range(0, len(made), _AT_ONCE):
                self._store.commit([Save(claim) for claim in made[start : start + _AT_ONCE]])
            return found | {claim.txid: claim for claim in made}

        return until_settled(decide)

    def _log_order(self) -> LogOrder | None:
        evm = self._network.family == "evm" and not self._network.simulated
        return self._reader if evm and isinstance(self._reader, LogOrder) else None

    def _settled(self, block: Block, transfers: Sequence[Transfer], own: list[str], claimed: list[str]) -> list[str]:
        """`claimed`, but for what is recorded as this very log of this very block under its `own` id: by a version without claims,
        or by what a node told of the transaction's logs that another node tells otherwise. It is that deposit, and no second one.
        """
        differ = [place for place, id_ in enumerate(claimed) if id_ != own[place]]
        if not differ:
            return claimed
        wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": ids[n]}) for ids in (own, claimed) for n in differ]
        found = self._store.get_many(wanted)
        settled = list(claimed)
        for n, mine, theirs in zip(differ, found, found[len(differ) :], strict=False):
            position = transfers[n].position
            if _is_in(mine, block) and mine.position == position:
                settled[n] = own[n]
            elif _is_in(theirs, block) and theirs.position != position:
                log.error(
                    "ALARM %s: the claim of %s on %s is wrong: nodes number the logs of block %d differently",
                    *(self._network.id, transfers[n].txid, claimed[n], block.number),
                )
                settled[n] = own[n]
        return settled


def _is_in(deposit: Deposit | None, block: Block) -> bool:
    return deposit is not None and deposit.status != "orphaned" and deposit.block_hash == block.hash
