"""The files of Swagger UI that the explorer page needs, taken from the pinned package `swagger-ui-py` and kept packed in the
repository: the Lambda package has no room for all that the package brings, and no CDN is asked.

`python -m infra.assets` writes them; `--check` only says whether they are those of the installed package.
"""

from __future__ import annotations

import argparse
import gzip
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


def wanted() -> dict[str, bytes]:
    """What belongs in the folder, by the name without `.gz`. Raises PackageNotFoundError where the package is not installed."""
    package = distribution(PACKAGE)
    return {ours: Path(str(package.locate_file(f"swagger_ui/static/{theirs}"))).read_bytes() for ours, theirs in FILES.items()}


def stale() -> list[str]:
    """Names of files that are missing, or not byte for byte those of the package. Packing may differ from machine to machine."""
    return [name for name, content in wanted().items() if _kept(name) != content]


def _kept(name: str) -> bytes | None:
    file = STATIC / f"{name}.gz"
    return gzip.decompress(file.read_bytes()) if file.exists() else None


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the explorer's files from the installed package.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not the package's")
    wrong = stale()
    if parser.parse_args().check:
        if wrong:
            raise SystemExit("not up to date, run python -m infra.assets: " + ", ".join(wrong))
        return
    content = wanted()
    for name in wrong:
        (STATIC / f"{name}.gz").write_bytes(gzip.compress(content[name], 9, mtime=0))


if __name__ == "__main__":
    main()
