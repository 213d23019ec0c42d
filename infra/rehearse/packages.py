"""Deployed packages, unpacked as Lambda has them: read-only, each once, whatever number of functions runs it."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

Listing = dict[str, tuple[int, int, int]]
"""Size, and times of the last change of content and of anything, in nanoseconds, by path."""


class Packages:
    """The packages in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._unpacked: dict[str, tuple[Path, Listing]] = {}

    def of(self, code: str, content: bytes) -> Path:
        """Where the package with this checksum is; unpacked by the first who asks."""
        with self._lock:
            if code not in self._unpacked:
                place = self._folder / f"task-{len(self._unpacked)}"
                with ZipFile(io.BytesIO(content)) as archive:
                    archive.extractall(place)
                for path in [place, *place.rglob("*")]:
                    path.chmod(0o555 if path.is_dir() else 0o444)
                self._unpacked[code] = place, dict(_list(place))
            return self._unpacked[code][0]

    def touched(self) -> list[str]:
        """The files that were written, added or removed since: none, or a function did what it can not do on Lambda. root may
        write what is read-only."""
        with self._lock:
            kept = dict(self._unpacked)
        found = []
        for place, before in kept.values():
            after = dict(_list(place))
            found += [str(place / path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        return sorted(found)


def _list(place: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    for folder, _, files in os.walk(place):
        for path in (Path(folder), *(Path(folder) / name for name in files)):
            found = path.stat()
            yield str(path.relative_to(place)), (found.st_size, found.st_mtime_ns, found.st_ctime_ns)
