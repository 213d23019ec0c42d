"""Transactions in flight, sorted by whether a node has to be asked about them in this poll.

Due is a transaction for a reason: its record says so, it was noted deep enough in the chain, it fell out of the chain, another one
was noted in its place, blocks that may have it are not noted, it was signed a moment ago, or it has waited too long for a block. Of
the last only the first of each wallet, where transactions wait for the nonces before theirs: nothing would help those behind it.
One that was noted and is not deep enough needs no question. The rest is quiet: its turn comes in a round (`round_robin`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chalicelib.domain.transactions.rounds import FIRST_MS, place_of
from chalicelib.domain.transactions.sightings import Ours, Seen
from chalicelib.domain.work import Work
from chalicelib.usecases.transactions.notes import Notes


@dataclass(frozen=True, slots=True)
class Out:
    """A transaction of ours that is signed. `asks`: its record is reason enough, whatever was noted. `undone`: it was in a block
    that fell out. `overdue`: it has waited too long for a block; `line` is its wallet and nonce, where there are nonces. Times in
    milliseconds since 1970: `created_at` before anything of it was signed, `signed_at` of its newest attempt."""

    work: Work
    ours: Ours = field(default_factory=lambda: Ours((), ()))
    created_at: int = 0
    signed_at: int = 0
    asks: bool = False
    undone: bool = False
    overdue: bool = False
    line: tuple[str, int] | None = None


@dataclass(slots=True)
class Sorted:
    """`shallow` was noted in a block that is not deep enough; `ripens`: one of these is, by the node's height alone."""

    due: list[Work] = field(default_factory=list)
    quiet: list[Work] = field(default_factory=list)
    shallow: dict[Work, Seen] = field(default_factory=dict)
    ripens: bool = False
    _lines: dict[str, tuple[int, Work]] = field(default_factory=dict)

    def add(self, outs: Sequence[Out], notes: Notes, now: int) -> None:
        """Sort some more. Raises Unavailable."""
        for out, noted in zip(outs, notes.of([out.ours for out in outs]), strict=True):
            if out.asks or noted.deep:
                self.due.append(out.work)
            elif noted.own is not None:
                self.shallow[out.work] = noted.own
                self.ripens |= noted.ripens
            elif out.undone or noted.rival or notes.unsure(out.created_at) or now - out.signed_at < FIRST_MS:
                self.due.append(out.work)
            elif out.overdue:
                self._wait(out)
            else:
                self.quiet.append(out.work)

    def _wait(self, out: Out) -> None:
        if out.line is None:
            self.due.append(out.work)
            return
        wallet, nonce = out.line
        first = self._lines.get(wallet)
        if first is not None:
            self.quiet.append(max(first, (nonce, out.work), key=lambda each: each[0])[1])
        if first is None or nonce < first[0]:
            self._lines[wallet] = nonce, out.work

    def by_place(self) -> tuple[list[Work], list[Work]]:
        """Due and quiet in the store's order, once everything was added."""
        due = [*self.due, *(work for _, work in self._lines.values())]
        return sorted(due, key=place_of), sorted(self.quiet, key=place_of)
