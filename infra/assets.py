"""Files of other projects that the pages need, kept in the repository: no CDN is asked, and nothing is built.

Swagger UI, for the explorer, comes from the pinned package `swagger-ui-py` and is kept packed: the Lambda package has no room for
all that the package brings. Preact and htm, for the portal and the console, come from their npm packages, byte for byte.

`python -m infra.assets` writes them; `--check` only says whether they are those of the pinned packages.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

STATIC = Path(__file__).resolve().parents[1] / "chalicelib" / "web" / "static"
PACKAGE = "swagger-ui-py"
FILES = {
    "swagger-ui-bundle.js": "swagger-ui-bundle.js",
    "swagger-ui.css": "swagger-ui.css",
    "swagger-ui-license.txt": "LICENSE",
}
"""Our name for each, and the package's."""


@dataclass(frozen=True, slots=True)
class Library:
    """A package of npm. `integrity` is the registry's hash of its archive; `files` have by our name the package's, and its
    SHA-256."""

    package: str
    integrity: str
    files: dict[str, tuple[str, str]]


LIBRARIES = (
    Library(
        "preact@10.29.8",
        "sha512-ej2aVZ+vZ8WO7tvlQWRM9N63A0KzF9q4mWJfDUHgYaIofWY9hu74QdnQrjoPMmZi2/nZ5gN0bJCQF49xQqx09Q==",
        {
            "lib/preact.js": ("dist/preact.module.js", "c30e721ebfdc6e2ad4c18c14d2dfb82667829c8aec27de1207774e3fc16858a8"),
            "lib/preact-hooks.js": (
                "hooks/dist/hooks.module.js",
                "a6ee626f2d01570592dd569a792e3f050154aa02890eead8c223fa3ed5aa3d5a",
            ),
            "lib/preact-license.txt": ("LICENSE", "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4"),
        },
    ),
    Library(
        "htm@3.1.1",
        "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {
            "lib/htm.js": ("dist/htm.module.js", "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4"),
            "lib/htm-license.txt": ("LICENSE", "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f"),
        },
    ),
)


def wanted() -> dict[str, bytes]:
    """What belongs in the folder, by the name without `.gz`. Raises PackageNotFoundError where the package is not installed."""
    package = distribution(PACKAGE)
    return {ours: Path(str(package.locate_file(f"swagger_ui/static/{theirs}"))).read_bytes() for ours, theirs in FILES.items()}


def stale() -> list[str]:
    """Names of files that are missing, or not byte for byte those of the packages. Packing may differ from machine to machine."""
    packed = [name for name, content in wanted().items() if _kept(name) != content]
    return packed + [ours for library in LIBRARIES for ours, (_, digest) in library.files.items() if _digest(ours) != digest]


def _kept(name: str) -> bytes | None:
    file = STATIC / f"{name}.gz"
    return gzip.decompress(file.read_bytes()) if file.exists() else None


def _digest(name: str) -> str | None:
    file = STATIC / name
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None


def unpacked(library: Library, archive: bytes) -> dict[str, bytes]:
    """Our files of a package's archive, by our names. Raises ValueError for an archive, or a file, that is not the pinned one."""
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != library.integrity:
        raise ValueError(f"the archive of {library.package} is not the pinned one: {found}")
    files: dict[str, bytes] = {}
    with tempfile.TemporaryFile() as held:
        held.write(archive)
        held.seek(0)
        with tarfile.open(fileobj=held) as content:
            for ours, (theirs, digest) in library.files.items():
                member = content.extractfile(f"package/{theirs}")
                files[ours] = b"" if member is None else member.read()
                if hashlib.sha256(files[ours]).hexdigest() != digest:
                    raise ValueError(f"{theirs} of {library.package} is not the pinned one")
    return files


def _fetched(library: Library) -> dict[str, bytes]:
    from infra.local.keeper import npm_archive

    with tempfile.TemporaryDirectory() as folder:
        return unpacked(library, npm_archive(Path(folder), library.package).read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the files of other projects that the pages need from the pinned packages.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not the package's")
    wrong = stale()
    if parser.parse_args().check:
        if wrong:
            raise SystemExit("not up to date, run python -m infra.assets: " + ", ".join(wrong))
        return
    content = wanted()
    for name in set(wrong) & content.keys():
        (STATIC / f"{name}.gz").write_bytes(gzip.compress(content[name], 9, mtime=0))
    for library in LIBRARIES:
        if library.files.keys() & set(wrong):
            for name, raw in _fetched(library).items():
                (STATIC / name).parent.mkdir(exist_ok=True)
                (STATIC / name).write_bytes(raw)


if __name__ == "__main__":
    main()
