"""Payments that can not be stored, or not even looked up, for a reason of their own, such as an archived invoice, or an archived
deposit, that can not be read back.

The others of the block are stored all the same, and the network goes on: anybody can pay any of our addresses, and would stop it.
What is left over waits for a rescan of the block (`leftover_rescans.py`), which tries it with each poll and fails loudly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.deposits.groups import Member
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Halted, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

_OF_ALL = (Conflict, Unavailable, Halted)
"""What says nothing about one payment: the block waits."""


class Poison:
    """Of one block. `failures` has what kept payments from being stored; `left` are those of which nobody can tell whether they are
    stored: none of them may be recorded now, since it may be credited."""

    def __init__(self, network: NetworkId, block: Block) -> None:
        self._name = f"{network}: block {block.number}"
        self.failures: list[Exception] = []
        self.left: set[Transfer] = set()

    def each(self, transfers: Sequence[Transfer], step: Callable[[Sequence[Transfer]], Sequence[T]]) -> dict[Transfer, T]:
        """What `step`, which can be done again, tells of each of `transfers`. Where it fails, it is asked by halves, and
        what fails alone is noted and left out. Raises Conflict, Unavailable, Halted."""
        if not transfers:
            return {}
        try:
            return dict(zip(transfers, step(transfers), strict=True))
        except _OF_ALL:
            raise
        except Exception as error:
            if len(transfers) == 1:
                log.exception("ALARM %s: %s can not be stored and is left to a rescan", self._name, transfers[0].txid)
                self.left.add(transfers[0])
                self.failures.append(error)
                return {}
        half = len(transfers) // 2
        return self.each(transfers[:half], step) | self.each(transfers[half:], step)

    def together(self, members: Sequence[Member], step: Callable[[], Sequence[Member]]) -> Sequence[Member]:
        """What `step` leaves of a group; all of it where the group fails, of which one member may be the reason.

        Raises Conflict, Unavailable, Halted.
        """
        try:
            return step()
        except _OF_ALL:
            raise
        except Exception:
            log.warning("%s: %d payments are recorded one by one", self._name, len(members), exc_info=True)
            return members

    def alone(self, member: Member, step: Callable[[], object]) -> None:
        """Record one payment by `step`, or note that it has to be left over. Raises Conflict, Unavailable, Halted."""
        try:
            step()
        except _OF_ALL:
            raise
        except Exception as error:
            log.exception("ALARM %s: %s can not be stored and is left to a rescan", self._name, member.transfer.txid)
            self.failures.append(error)
