"""A cache of nodes' answers for one run over transactions in flight: each receipt and each block is asked for once.

A hundred payments share one transaction, and a thousand transactions share a few blocks. Blocks that the scan remembers are linked:
where the chain still has the newest of them it has all of them, and one question answers for all.
"""

from __future__ import annotations

from bisect import bisect_left

from chalicelib.domain.chain import Receipt
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.transactions.finality import Scanned


class Answers:
    """For one run over what is out: what was told once is not asked for again. Every method raises Unavailable."""

    def __init__(self, reader: ChainReader) -> None:
        self._reader = reader
        self._receipts: dict[str, Receipt | None] = {}
        self._hashes: dict[int, str | None] = {}
        self._standing: tuple[Scanned, int] | None = None

    def receipt(self, txid: str) -> Receipt | None:
        """As `ChainReader.receipt`."""
        if txid not in self._receipts:
            self._receipts[txid] = self._reader.receipt(txid)
        return self._receipts[txid]

    def hash_at(self, number: int, scanned: Scanned) -> str | None:
        """As `ChainReader.block_hash`: from the scan's memory as far as the chain still has it, else as the node says."""
        remembered = scanned.recent.get(str(number))
        if remembered is not None and number <= self._stands(scanned):
            return remembered
        return self._asked(number)

    def in_chain(self, receipt: Receipt, scanned: Scanned) -> bool:
        """Whether its block is one of the chain by the node's own word: where the scan remembers another one there, the node is
        asked, and what follows from that is decided where the two are compared (`Finality.believed`)."""
        number, hash_ = receipt.block_number, receipt.block_hash
        return self.hash_at(number, scanned) == hash_ or self._asked(number) == hash_

    def _stands(self, scanned: Scanned) -> int:
        """The highest remembered block that the chain still has; -1 where it has none of them."""
        if self._standing is None or self._standing[0] is not scanned:
            heights = sorted(number for number in map(int, scanned.recent) if number <= scanned.height)
            if heights and not self._holds(heights[-1], scanned):
                # Below the fork the chain has all of them, above it none.
                heights = heights[: bisect_left(heights, True, key=lambda number: not self._holds(number, scanned))]
            self._standing = scanned, heights[-1] if heights else -1
        return self._standing[1]

    def _holds(self, number: int, scanned: Scanned) -> bool:
        return self._asked(number) == scanned.recent[str(number)]

    def _asked(self, number: int) -> str | None:
        if number not in self._hashes:
            self._hashes[number] = self._reader.block_hash(number)
        return self._hashes[number]
