"""Payments that can not be stored for a reason of their own, such as an archived invoice that can not be read back.

The others of the block are stored all the same, and the network goes on: anybody can pay any of our addresses, and would stop it.
What is left over waits for a rescan of the block (`leftover_rescans.py`), which tries it with each poll and fails loudly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from chalicelib.domain.chain import Block
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.deposits.groups import Member
from chalicelib.usecases.ports.changes import Conflict
from chalicelib.usecases.ports.failures import Halted, Unavailable

log = logging.getLogger(__name__)

_OF_ALL = (Conflict, Unavailable, Halted)
"""What says nothing about one payment: the block waits."""


class Poison:
    """Of one block. `failures` has what kept payments from being stored."""

    def __init__(self, network: NetworkId, block: Block) -> None:
        self._name = f"{network}: block {block.number}"
        self.failures: list[Exception] = []

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
