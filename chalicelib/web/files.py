"""Files of the pages, each under a name with the first digits of its hash: a name never changes what it stands for."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class File:
    """One file as it is served. `name` has the hash in it; `tag` is the whole hash, for an ETag."""

    name: str
    text: str
    media: str
    tag: str


@lru_cache(maxsize=32)
def _file(on_disk: str) -> File:
    """Packed ones are unpacked here, once per process."""
    path = STATIC / on_disk
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    plain = Path(path.name.removesuffix(".gz"))
    tag = hashlib.sha256(raw).hexdigest()
    return File(f"{plain.stem}.{tag[:_DIGITS]}{plain.suffix}", raw.decode("utf-8"), _TYPES[plain.suffix], tag)


def named(plain: str) -> str:
    """The name that a small file of ours (`checkout.css`) is served under; nothing else is read for it."""
    return _file(plain).name


@lru_cache(maxsize=1)
def files() -> dict[str, File]:
    """Every file in `static`, by the name without hash (`swagger-ui.css`)."""
    return {path.name.removesuffix(".gz"): _file(path.name) for path in sorted(STATIC.iterdir())}


def by_name(name: str) -> File | None:
    """The file with this name, hash included; None where there is none. No path is ever made of `name`."""
    return next((file for file in files().values() if file.name == name), None)
