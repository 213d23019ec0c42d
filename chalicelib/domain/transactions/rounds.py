"""Rounds in which nodes are asked about our transactions in flight: at once after a sighting, else now and then. Pure.

The scanner notes our transactions in the blocks that it passes (`domain.transactions.sightings`). A note is a hint that a node
should be asked. No note ends a transaction (money rule 13): each one in flight is asked about again in rounds. Times in
milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Work, WorkKind

ROUND_MS = 300_000
"""A round begins so long after the one before: what nodes forgot is sent again, what was mined and not noted is found."""
FIRST_MS = 90_000
"""A transaction signed so lately is asked about in each poll: its signer may have died before sending it."""
SLACK_MS = 10_000
"""How far the clocks of two functions may be apart."""
BEGINNING = "#"
"""Before every place. Not an empty text, which not every DynamoDB takes (DynamoDB Local)."""


@dataclass(frozen=True, slots=True)
class AskingRound:
    """Progress of the round over one network's open work of one kind.

    `after` is the place in the round that began at `began_at`, None where that is complete. `cut` is where the last run ran out of
    time among what is due in every poll, the beginning where it did not.
    """

    network: NetworkId
    kind: WorkKind
    began_at: int = 0
    after: str | None = None
    cut: str = BEGINNING
    version: int = 0

    def at(self, now: int) -> AskingRound:
        """This round, or the next one where that is due. A clock that was set back makes it due."""
        if self.after is None and not 0 <= now - self.began_at < ROUND_MS:
            return replace(self, began_at=now, after=BEGINNING)
        return self


def place_of(work: Work) -> str:
    """The position of a row of work among its kind, in the store's order."""
    return f"{work.order}#{work.id}"


def turned(works: list[Work], cut: str) -> list[Work]:
    """`works` rotated: those behind `cut` first, the ones before it last."""
    return [work for work in works if place_of(work) > cut] + [work for work in works if place_of(work) <= cut]


def covered(created_at: int, noted_at: int | None) -> bool:
    """Whether sightings are complete for all blocks that can hold a transaction created then, as far as they are scanned: no
    block without them is younger than `noted_at` (`Cursor`)."""
    return noted_at is not None and created_at >= noted_at + SLACK_MS
