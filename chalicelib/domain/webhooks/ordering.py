"""The order of an object's events at one endpoint: which deliveries hold up later ones. Pure: sends nothing, reads no clock.

A later event of an object waits until each earlier one is answered 2xx, ended, or has failed three times. `sequence` says which is
earlier. A delivery that others wait for is a blocker: it failed once or twice, or it is being sent and others are parked behind it.
The endpoint's lease keeps the blockers, so that a worker who finds none there reads and writes nothing for the order.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from chalicelib.domain.webhooks.deliveries import Delivery

FREE_AFTER = 3
"""A delivery that has failed so often holds up nothing any more."""
MOST_BLOCKERS = 300
"""Blockers of one endpoint, about 45 bytes each in its lease. Where more objects fail at once, those beyond are not ordered."""
_SEQUENCE_DIGITS = 15


def object_key(object_id: str) -> str:
    """Eight characters for an object: its events lie together in the lane of their endpoint, whatever its id is made of."""
    return base64.urlsafe_b64encode(hashlib.sha256(object_id.encode()).digest()[:6]).decode()


def place_behind(object_key: str, sequence: int) -> str:
    """The place of a parked delivery among those of its object: `Delivery.behind`."""
    return f"{object_key}{sequence:0{_SEQUENCE_DIGITS}d}"


def sequence_at(place: str) -> int:
    """The sequence number in a place of `place_behind`."""
    return int(place[-_SEQUENCE_DIGITS:])


def is_free(delivery: Delivery) -> bool:
    """Whether later events need not wait for `delivery`: it has ended, or failed three times."""
    return delivery.status != "pending" or len(delivery.attempts) >= FREE_AFTER


@dataclass(frozen=True, slots=True)
class Blocker:
    """The delivery `delivery` of event `sequence` of an object holds up later ones. `followed`: some are parked behind it."""

    object: str
    sequence: int
    delivery: str
    followed: bool = False

    @property
    def text(self) -> str:
        """As the lease stores it."""
        return f"{self.object} {self.sequence} {self.delivery}{' +' if self.followed else ''}"


def _blocker(text: str) -> Blocker:
    object, sequence, delivery, *followed = text.split(" ")
    return Blocker(object, int(sequence), delivery, bool(followed))


@dataclass(frozen=True, slots=True)
class Blockers:
    """All blockers of an endpoint."""

    all: tuple[Blocker, ...] = ()

    @classmethod
    def stored(cls, texts: Sequence[str] | None) -> Blockers:
        return cls(tuple(_blocker(text) for text in texts or ()))

    @property
    def texts(self) -> tuple[str, ...] | None:
        """As the lease stores them; None where there are none."""
        return tuple(one.text for one in self.all) or None

    @property
    def full(self) -> bool:
        return len(self.all) >= MOST_BLOCKERS

    def holds_up(self, object: str, sequence: int) -> bool:
        """Whether event `sequence` of an object has to wait."""
        return any(one.object == object and one.sequence < sequence for one in self.all)

    def find(self, delivery: str) -> Blocker | None:
        return next((one for one in self.all if one.delivery == delivery), None)

    def of(self, object: str) -> tuple[Blocker, ...]:
        return tuple(one for one in self.all if one.object == object)

    def plus(self, blocker: Blocker) -> Blockers:
        """With one more; unchanged where it is known, or where they are too many and nothing is parked behind it."""
        if self.find(blocker.delivery) is not None or (self.full and not blocker.followed):
            return self
        followed = blocker.followed or any(one.followed for one in self.of(blocker.object))
        return Blockers((*self.all, replace(blocker, followed=followed)))

    def followed(self, object: str) -> Blockers:
        """With deliveries parked behind those of an object."""
        return Blockers(tuple(replace(one, followed=True) if one.object == object else one for one in self.all))

    def minus(self, delivery: str) -> Blockers:
        return Blockers(tuple(one for one in self.all if one.delivery != delivery))


@dataclass(frozen=True, slots=True)
class Due:
    """A due delivery, its object's key and its event's number."""

    delivery: Delivery
    object: str
    sequence: int

    @property
    def blocker(self) -> Blocker:
        return Blocker(self.object, self.sequence, self.delivery.id)


@dataclass(frozen=True, slots=True)
class Arranged:
    """The due deliveries to `send` now, at once; to `park` behind a blocker; to `leave` until the next look."""

    send: tuple[Due, ...]
    park: tuple[Due, ...]
    leave: tuple[Due, ...]
    blockers: Blockers


def arranged(due: Iterable[Due], blockers: Blockers, *, whole: bool) -> Arranged:
    """Sort due deliveries. Of one object only the earliest event is sent at a time.

    `whole`: nothing more is due at the endpoint. Else those behind the earliest one are parked, so that the next look sees what
    is due of other objects.
    """
    send: list[Due] = []
    park: list[Due] = []
    leave: list[Due] = []
    first: dict[str, Due] = {}
    for one in sorted(due, key=lambda each: each.sequence):
        earliest = first.setdefault(one.object, one)
        if blockers.holds_up(one.object, one.sequence):
            park.append(one)
            blockers = blockers.followed(one.object)
        elif one.sequence == earliest.sequence:
            send.append(one)
        elif whole or blockers.full or is_free(earliest.delivery):
            leave.append(one)
        else:
            park.append(one)
            blockers = blockers.plus(earliest.blocker).followed(one.object)
    return Arranged(tuple(send), tuple(park), tuple(leave), blockers)
