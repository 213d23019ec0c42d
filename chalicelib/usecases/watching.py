"""Watching the blocks that settled something, as deep as a reorganisation is followed: payments, stakes, moves.

The obligation's `order` is the block's height, and its id ends with the block's hash.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chalicelib.domain.catalogue import Network
from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.sweeping import pages_of
from chalicelib.usecases.trying import Each, until_settled
from chalicelib.usecases.verdicts import Scanned, Verdicts


def watch(
    kind: WorkKind,
    what: str,
    network: Network,
    reader: ChainReader,
    store: Store,
    verdicts: Verdicts,
    more: Callable[[], bool],
    undo: Callable[[Work], None],
    rest: Callable[[Work], None],
) -> None:
    """See that what is watched under `kind` stays in the chain: `undo` what does not, `rest` where no reorganisation reaches it.

    Each block is asked for once. Stops when `more` says that the time is over. Raises Unavailable, Failures.
    """
    scanned: Scanned | None = None
    hashes: dict[int, str | None] = {}

    def look(work: Work, scanned: Scanned) -> None:
        number, block_hash = int(work.order), work.id.rsplit("|", 1)[1]
        if number not in hashes:
            hashes[number] = reader.block_hash(number)
        if hashes[number] is None:
            return  # the node is behind, or a shorter branch has won for a moment
        if hashes[number] != block_hash:
            until_settled(partial(undo, work))
        elif number <= scanned.height - network.reorg_depth:
            until_settled(partial(rest, work))

    with Each(f"{network.id}: {what}") as each:
        for works in pages_of(store, kind, network.id):
            scanned = scanned or verdicts.scanned()
            for work in works:
                if not more():
                    return
                each.take(work.id, partial(look, work, scanned))
