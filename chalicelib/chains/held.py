"""Bounds of the rows that a reader holds at once. A stranger decides the size of a block, and a function has half a gigabyte."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.chain import Block

MOST_ROWS = 100_000
"""Rows of blocks that a reader gives at once, and one block more: of 300 to 600 bytes each. Those of 50 full blocks of bsc are as
many on an ordinary day; it gives the blocks before as a prefix, and the caller asks again for the rest."""


def full(blocks: Sequence[Block]) -> bool:
    """Whether a reader returned fewer blocks than asked because these have all the rows that it may hold."""
    return sum(map(rows_in, blocks)) > MOST_ROWS


def rows_in(block: Block) -> int:
    """Transfers, senders and spent outputs: all rows whose number follows a block's size."""
    return len(block.transfers) + len(block.sent.txids) + len(block.spent)
