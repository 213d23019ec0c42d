"""Virtual blocks: the chain's height, each block's hash and time, and the effect of a fork.

Pure. Blocks are virtual: the head says how high the chain stands and since when, and the clock adds one block per `step`.
A block's hash follows from its network, number, the salt of the branch that holds it, and its transaction. A
reorganisation is a new salt from some height on, so every hash from there changes, and whatever was stored under the old
salt no longer counts. That makes it one conditional write of the head, however much falls out.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.domain.catalogue.catalogue import Family
from chalicelib.domain.ids import NetworkId

GENESIS_MS = 1_735_689_600_000
"""Time of block 0 (1 January 2025 UTC), in milliseconds since 1970: the same before and after the chain's first write."""
MAX_DEPTH = 300
"""Blocks that a reorganisation can drop. Deeper than any network is followed (256), so that halting can be rehearsed."""

Fork = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Head:
    """The stored end of the chain: block `height` at `time` (ms), then one block per `step` ms (0: none by themselves).

    `forks` says which salt names the blocks from which height on, ascending; the first entry is not at 0 once older ones
    have been archived. `ahead` is how far (ms) the sandbox's clock was in front of the machines' when this was written: a jump
    of that clock is no time in which blocks were mined. `version` is the stored one, 0 while nothing is stored yet; each
    write makes it the next.
    """

    version: int = 0
    height: int = 0
    time: int = GENESIS_MS
    step: int = 0
    forks: tuple[Fork, ...] = ((0, ""),)
    ahead: int = 0

    def to_doc(self) -> dict[str, Any]:
        doc: dict[str, Any] = {"height": self.height, "time": self.time, "step": self.step}
        return {**doc, "forks": [list(fork) for fork in self.forks], "ahead": self.ahead}

    @classmethod
    def from_doc(cls, version: int, doc: dict[str, Any]) -> Head:
        forks = tuple((start, salt) for start, salt in doc["forks"])
        return cls(version, doc["height"], doc["time"], doc["step"], forks, doc.get("ahead", 0))


@dataclass(frozen=True, slots=True)
class Stretch:
    """When the blocks after `after`, up to and with `height`, were mined. Stored at `height`; times in ms.

    Up to `auto_last` the clock mined one each `step` after `after_ms`; the rest were mined at `time`.
    """

    height: int
    after: int
    after_ms: int
    step: int
    auto_last: int
    time: int

    def time_of(self, number: int) -> int:
        """Time of a block of this stretch, in milliseconds since 1970."""
        return self.after_ms + (number - self.after) * self.step if number <= self.auto_last else self.time

    def cut(self, height: int) -> Stretch:
        """The same up to `height` alone: says the same of every block that it still covers."""
        return replace(self, height=height, auto_last=min(self.auto_last, height))

    def to_doc(self) -> list[int]:
        return [self.after, self.after_ms, self.step, self.auto_last, self.time]

    @classmethod
    def from_doc(cls, height: int, doc: list[int]) -> Stretch:
        return cls(height, *doc)


class View:
    """The chain as it is at one moment: the head, the clock, and as many forks as the question needs.

    `now_ms` is the sandbox's time, of which the machines are `ahead` behind.
    """

    def __init__(self, head: Head, now_ms: int, older: tuple[Fork, ...] = (), ahead: int = 0) -> None:
        self.head = head
        self.now = now_ms
        self.ahead = ahead
        passed = now_ms - (ahead - head.ahead) - head.time
        grown = max(0, passed) // head.step if head.step else 0
        self.tip = head.height + grown
        self._forks = older + head.forks
        self._starts = [start for start, _ in self._forks]

    @property
    def known_from(self) -> int:
        """The lowest height whose salt this view knows."""
        return self._starts[0]

    def salt_at(self, number: int) -> str:
        """The salt of the branch that holds block `number`. Raises LookupError below `known_from`."""
        place = bisect_right(self._starts, number) - 1
        if place < 0:
            raise LookupError(f"forks below {self.known_from} were not read; asked for {number}")
        return self._forks[place][1]

    def holds(self, number: int, salt: str) -> bool:
        """Whether a transaction mined in block `number` of the branch `salt` is in the chain."""
        return number <= self.tip and self.salt_at(number) == salt

    def grown_time(self, number: int) -> int:
        """Time of a block that the clock mined after the head, in milliseconds since 1970."""
        return GENESIS_MS if number == 0 else self.head.time + (number - self.head.height) * self.head.step

    def extended(self, count: int, step: int) -> tuple[View, Stretch]:
        """The chain after `count` blocks are mined now, and the stretch to store at its new end."""
        head = self.head
        # Never before the tip's own time: another machine's clock may be ahead of this one.
        time = max(self.now, self.grown_time(self.tip))
        after = replace(head, height=self.tip + count, time=time, step=step, ahead=self.ahead)
        stretch = Stretch(after.height, head.height, head.time, head.step, self.tip, time)
        return View(after, self.now, self._forks[: -len(head.forks)], self.ahead), stretch

    def forked(self, first: int, salt: str, step: int) -> tuple[View, Stretch, list[Fork]]:
        """The chain with other blocks from `first` on, one block longer than it was: the longer branch wins.

        Also the stretch to store at its new end, and the forks to archive: no reorganisation can reach them any more.
        """
        time = max(self.now, self.grown_time(self.tip))
        height = self.tip + 1
        forks = [fork for fork in self.head.forks if fork[0] < first] + [(first, salt)]
        archived: list[Fork] = []
        while len(archived) < 3 and len(forks) > 1 and forks[1][0] <= self.tip - MAX_DEPTH:
            archived.append(forks.pop(0))
        head = replace(self.head, height=height, time=time, step=step, forks=tuple(forks), ahead=self.ahead)
        stretch = Stretch(height, first - 1, 0, 0, first - 1, time)
        older = tuple(fork for fork in self._forks if fork[0] < forks[0][0])
        return View(head, self.now, older, self.ahead), stretch, archived


def block_hash(network: NetworkId, family: Family, salt: str, number: int, txid: str | None) -> str:
    """The hash of a block, in the form of its family (tron: begins with the number, as its block ids do)."""
    digest = hashlib.sha256("|".join((network, salt, str(number), txid or "")).encode()).hexdigest()
    if family == "evm":
        return "0x" + digest
    if family == "tron":
        return f"{number:016x}" + digest[16:]
    return "0" * 8 + digest[8:]
