"""The scanner's sightings of many transactions of ours, read at once: they tell whether to ask a node about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.rounds import covered
from chalicelib.domain.transactions.sightings import Ours, Seen, Sighting, met
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.finality import Scanned


@dataclass(frozen=True, slots=True)
class Noted:
    """`own` is the deepest block in which one of its attempts was met, `rival`: another transaction was, in its place, deeper than
    reorganisations are followed. `deep`: `own` has the confirmations. `ripens`: it has them by the node's height alone. A block
    that the scan remembers otherwise counts for nothing."""

    own: Seen | None
    rival: bool
    deep: bool
    ripens: bool


class Notes:
    """Of one network, for one poll. A note is a hint: what it means is decided by `losses` and by the node's receipt."""

    def __init__(self, network: Network, store: Store, scanned: Scanned) -> None:
        self._network, self._store, self._scanned = network, store, scanned

    def of(self, many: Sequence[Ours]) -> list[Noted]:
        """In the same order. Raises Unavailable."""
        subjects = list(dict.fromkeys(subject for ours in many for subject in ours.subjects))
        keys = [(Sighting, {"network": self._network.id, "subject": subject}) for subject in subjects]
        found = dict(zip(subjects, known_of(self._store, keys), strict=True)) if keys else {}
        return [self._noted(ours, [found[subject] for subject in ours.subjects]) for ours in many]

    def unsure(self, created_at: int) -> bool:
        """Whether what was created then may be in a block without notes, so that nothing follows from there being none."""
        return not covered(created_at, self._scanned.noted_at)

    def _noted(self, ours: Ours, sightings: Sequence[Sighting | None]) -> Noted:
        own, others = ([seen for seen in each if self._counts(seen)] for each in met(ours, sightings))
        deepest, network, scanned = min(own, key=lambda seen: seen.number, default=None), self._network, self._scanned
        rival = any(seen.number <= scanned.height - network.reorg_depth for seen in others)
        if deepest is None:
            return Noted(None, rival, deep=False, ripens=False)
        deep = scanned.depth(deepest.number) >= network.confirmations
        return Noted(deepest, rival, deep, not deep and scanned.tip - deepest.number + 1 >= network.confirmations)

    def _counts(self, seen: Seen) -> bool:
        return seen.number <= self._scanned.height and self._scanned.recent.get(str(seen.number), seen.hash) == seen.hash
