"""Files of the pages, each under a name with the first digits of its hash: a name never changes what it stands for.

A file lies in `static` or in one folder of it. It is served under one flat name: `portal/invoices.js` as
`portal-invoices.<hash>.js`. Modules name each other by relative paths; the names that are served stand in what is sent. So the hash
of a module depends on the hashes of those that it imports, and imports may form no cycle.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_DIGITS = 12
_SERVED = re.compile(rf"([a-z0-9_-]{{1,80}})\.[0-9a-f]{{{_DIGITS}}}(\.[a-z]{{2,3}})", re.ASCII)
_IMPORT = re.compile(r"""(\bfrom\s*|\bimport\s*\(\s*|\bimport\s*)(["'])([^"'\s]+)\2""", re.ASCII)
_BARE = {"preact": "lib/preact.js"}
"""What libraries import by name, and the file that has it."""


@dataclass(frozen=True, slots=True)
class File:
    """One file as it is served. `name` has the hash in it; `tag` is the whole hash, for an ETag. `imports` are the modules that it
    needs before it runs, by their paths; those that it loads later are not among them."""

    name: str
    text: str
    media: str
    tag: str
    imports: tuple[str, ...] = ()


def flat(path: str) -> str:
    """The name without hash that `path` is served under: ``portal/invoices.js`` → ``portal-invoices.js``."""
    return path.replace("/", "-")


@lru_cache(maxsize=1)
def index() -> dict[str, str]:
    """The path of each file below `static` by its flat name. Folders are read, and no file.

    Raises ValueError where two files would have one name.
    """
    found: dict[str, str] = {}
    for file in sorted([*STATIC.glob("*"), *STATIC.glob("*/*")]):
        path = file.relative_to(STATIC).as_posix().removesuffix(".gz")
        if file.suffix not in (*_TYPES, ".gz"):
            continue
        if flat(path) in found:
            raise ValueError(f"{path} and {found[flat(path)]} would be served under one name")
        found[flat(path)] = path
    return found


def _text(path: str) -> str:
    """What is on disk. Packed files are unpacked here, once per process."""
    packed = STATIC / f"{path}.gz"
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else (STATIC / path).read_bytes()
    return raw.decode("utf-8")


def file(path: str) -> File:
    """The file at `path` below `static` (``portal/invoices.js``) as it is served: it is read, and the modules that it imports.

    Raises ValueError for imports that form a cycle, or that name no file of ours.
    """
    return _file(path, ())


_made: dict[str, File] = {}


def _file(path: str, above: tuple[str, ...]) -> File:
    if path in _made:
        return _made[path]
    if path in above:
        raise ValueError(f"imports form a cycle: {' → '.join([*above[above.index(path) :], path])}")
    plain, text, imports = PurePosixPath(flat(path)), _text(path), []

    def served(match: re.Match[str]) -> str:
        """An import, by the name that the module is served under."""
        wanted = _imported(path, match[3])
        if wanted is None:
            return match[0]
        if "(" not in match[1]:
            imports.append(wanted)
        return f"{match[1]}{match[2]}./{_file(wanted, (*above, path)).name}{match[2]}"

    # Packed scripts are others', and no modules.
    if plain.suffix == ".js" and (STATIC / path).exists():
        text = _IMPORT.sub(served, text)
    tag = hashlib.sha256(text.encode()).hexdigest()
    name = f"{plain.stem}.{tag[:_DIGITS]}{plain.suffix}"
    _made[path] = File(name, text, _TYPES[plain.suffix], tag, tuple(imports))
    return _made[path]


def _imported(path: str, specifier: str) -> str | None:
    """The path below `static` that `specifier` names in the module at `path`; None for text that is no import of a module."""
    if specifier in _BARE:
        return _BARE[specifier]
    if not specifier.startswith(("./", "../")):
        return None
    parts = list(PurePosixPath(path).parent.parts)
    for part in PurePosixPath(specifier).parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    wanted = "/".join(parts)
    if index().get(flat(wanted)) != wanted:
        raise ValueError(f"{path} imports {specifier}, which is no file")
    return wanted


def read_again() -> None:
    """Forget what was read, where a file has changed since: for the local stack, whose files somebody is at work on."""
    newest = max(each.stat().st_mtime_ns for each in [*STATIC.glob("*"), *STATIC.glob("*/*")])
    if _newest[0] not in (0, newest):
        _made.clear()
        index.cache_clear()
    _newest[0] = newest


_newest = [0]


def named(path: str) -> str:
    """The name that the file at `path` (`checkout.css`, `portal/main.js`) is served under."""
    return file(path).name


def needed(*paths: str) -> list[str]:
    """The names of the modules at `paths` and of all that they import, without those that are loaded later: for `modulepreload`."""
    found: dict[str, None] = {}
    waiting = list(paths)
    while waiting:
        path = waiting.pop(0)
        if path not in found:
            found[path] = None
            waiting += file(path).imports
    return [named(path) for path in found]


def files() -> dict[str, File]:
    """Every file in `static`, by the flat name without hash (`swagger-ui.css`): for tests, and what must see all."""
    return {plain: file(path) for plain, path in index().items()}


def by_name(name: str) -> File | None:
    """The file with this name, hash included; None where there is none. No path is ever made of `name`."""
    match = _SERVED.fullmatch(name)
    path = index().get(match[1] + match[2]) if match else None
    if path is None:
        return None
    found = file(path)
    return found if found.name == name else None
