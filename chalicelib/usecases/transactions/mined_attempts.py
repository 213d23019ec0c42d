"""Which attempt of a transaction of ours is in the chain, by receipts. That two are is an alarm, whatever the transaction is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Receipt
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Scanned

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Mined:
    """`receipt` of the attempt at `place` of those asked about, which a block of the chain has; None where none is in the chain.
    `somewhere`: whether a node tells a receipt of any of them, be its block in the chain or not."""

    receipt: Receipt | None
    place: int
    somewhere: bool


def mined_attempt(network: Network, answers: Answers, name: str, txids: Sequence[str], scanned: Scanned) -> Mined:
    """The first of the attempts `txids` of the record `name` that is in the chain. Raises Unavailable.

    Nonces, inputs and expiries forbid that two attempts are mined. Should it happen, an operator has to know.
    """
    somewhere, found = False, list[tuple[int, Receipt]]()
    for place, txid in enumerate(txids):
        receipt = answers.receipt(txid)
        somewhere |= receipt is not None
        if receipt is not None and answers.in_chain(receipt, scanned):
            found.append((place, receipt))
    if not found:
        return Mined(None, 0, somewhere)
    first = found[0][0]
    for place, _ in found[1:]:
        log.error("ALARM %s: %s and %s are both in the chain for %s", network.id, txids[first], txids[place], name)
    return Mined(found[0][1], first, True)
