"""The archive: what writes to it, and its rounds. Reading lies in the store (`parts`)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.domain.ids import Realm
    from chalicelib.usecases.archive.archiving import Archiving
    from chalicelib.usecases.archive.coverage import Coverage
    from chalicelib.usecases.archive.rounds import ArchiveRounds
    from chalicelib.wiring.parts import Parts


class ArchiveWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def archiving(self) -> Archiving:
        from chalicelib.usecases.archive.archiving import Archiving

        return Archiving(self._parts.store, self._parts.archived, self._parts.rules)

    def rounds(self, realm: Realm) -> ArchiveRounds:
        from chalicelib.usecases.archive.rounds import ArchiveRounds

        parts = self._parts
        return ArchiveRounds(realm, parts.store, self.archiving, parts.clock, parts.settings.archive_after_days or 0)

    @cached_property
    def coverage(self) -> Coverage:
        from chalicelib.usecases.archive.coverage import Coverage

        return Coverage(self._parts.store)
