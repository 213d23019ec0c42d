"""Reorganisations deeper than the cursor remembers: the lost blocks are found when an operator resumes the network.

The blocks that hold deposits are asked for from the highest one down, until the chain still has one: all blocks below it are the
chain's, since each names the one before it. Nothing is changed here, so that it can be asked again after whatever went wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chalicelib.domain.chain import ArchivedBlock, Block, DepositBlock
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import each_of
from chalicelib.usecases.deposits.blocks import highest_first
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.ports.readers import Witness
from chalicelib.usecases.scanning.block_lists import deposits_of


class Fallen(NamedTuple):
    """`gone` are the blocks that the chain no longer has and whose deposits stand still, highest first. `standing` is the height
    of the highest block with deposits that it has, archived ones too; None where it has none."""

    gone: tuple[DepositBlock, ...]
    standing: int | None

    def below(self, oldest: int) -> int:
        """The highest block behind which the scan may go on, given that it remembers `oldest` and those above."""
        return max(0, min([oldest, *(block.number for block in self.gone)]) - 1)


class DeepReorganisations:
    def __init__(self, context: NetworkContext) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store

    def fallen(self) -> Fallen:
        """Raises Unavailable: also where the node has no block yet at a height where deposits are, or another one in the place of
        the highest whose row left for the archive. Where the network has several nodes, two of them have to have another block in
        the place of the lowest that is gone; else Unavailable is raised."""
        gone: list[DepositBlock] = []
        standing: int | None = None
        height, there = -1, ""
        for block in highest_first(self._store, self._network):
            if standing is not None and block.number < standing:
                break
            if block.number != height:
                height, there = block.number, self._hash(block.number)
            if there == block.hash:
                standing = height
            elif self._holds(block):
                gone.append(block)
        self._vouched(gone)
        return Fallen(tuple(gone), self._with_archived(standing))

    def _with_archived(self, standing: int | None) -> int | None:
        """`standing`, or the highest block whose row left for the archive (`usecases/archive/block_rows.py`), if that is higher: it
        was final months ago."""
        archived = self._store.get(ArchivedBlock, network=self._network.id)
        if archived is None or (standing is not None and standing >= archived.number):
            return standing
        if self._hash(archived.number) != archived.hash:
            # Nobody knows which payments below it would have to be taken back.
            raise Unavailable(f"{self._network.id}: the chain has no block {archived.hash}, up to which payments are archived")
        return archived.number

    def _hash(self, number: int) -> str:
        found = self._reader.block_hash(number)
        if found is None:
            raise Unavailable(f"the node of {self._network.id} does not know block {number}, where deposits were: not yet, perhaps")
        return found

    def _holds(self, block: DepositBlock) -> bool:
        """Whether deposits stand on it."""
        for _, listed in deposits_of(self._store, self._network.id, [block.hash]):
            wanted: list[tuple[type[Any], dict[str, str]]] = [(Deposit, {"id": id_}) for id_ in listed]
            found = each_of(self._store, wanted)
            if any(isinstance(d, TooNew) for d in found):
                return True  # perhaps: what stands on it is told once it can be read
            if any(d is not None and d.status != "orphaned" and d.block_hash == block.hash for d in found):
                return True
        return False

    def _vouched(self, gone: Sequence[DepositBlock]) -> None:
        """Money is taken back on no single node's word where there are several: another block in the place of the lowest one that
        is gone means other blocks all the way up."""
        if gone and isinstance(self._reader, Witness):
            number = gone[-1].number
            there = Block(number, self._hash(number), "", 0, [])
            if there.hash == gone[-1].hash or not self._reader.agreed(there, []):
                raise Unavailable(f"{self._network.id}: no two nodes have the same block {number} in the place of the one scanned")
