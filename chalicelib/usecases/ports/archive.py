"""The archive: objects that are written once, and kept where no row is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class NotKept(Exception):
    """What was read back from the archive is not what was written: nothing may rest on it."""


class Archive(Protocol):
    """Objects of records. `store/archive.py` fits it to S3."""

    def keep(self, records: Sequence[Any], /) -> str:
        """Write one object of `records`, read it back and compare every byte; its name, which follows from the content: the same
        records make the same object, however often. Raises Unavailable, NotKept."""
        ...

    def records(self, name: str, /) -> list[Any]:
        """All records of an object. Raises Unavailable, NotKept where it is not what its name says."""
        ...
