"""PHP, to run the programs of docs/shop: how it is found and installed (without root, from Debian's archive)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from infra.local import debian
from infra.local.keeper import NODES_FOLDER, NodeMissing, installing


def find_php(folder: Path = NODES_FOLDER) -> tuple[Path, dict[str, str]]:
    """The program (PHP 8, with its own web server) and what it needs in its environment.

    $PHP, the PATH's, or Debian's package unpacked in `folder` (3 MB; once, whoever is at it). Raises NodeMissing.
    """
    if named := os.environ.get("PHP"):
        if not Path(named).is_file():
            raise NodeMissing("$PHP names no file")
        return Path(named), {}
    if on_path := shutil.which("php"):
        return Path(on_path), {}
    root = folder / "php"
    with installing(folder):
        if _program(root) is None:
            try:
                debian.unpack(folder, "php", "php-cli")
            except NodeMissing as error:
                raise NodeMissing(f"PHP is not here, and {error}; set $PHP to one (8.0 or newer)") from error
    program = _program(root)
    if program is None:
        raise NodeMissing("Debian's package php-cli brings no program; set $PHP to one (8.0 or newer)")
    return program, debian.with_libraries(root)


def _program(root: Path) -> Path | None:
    # Debian's has its version in its name; `php` itself is a link that only an installation makes.
    found = [path for path in (root / "usr" / "bin").glob("php[0-9]*") if path.suffix != ".phar" and path.is_file()]
    return max(found, default=None)
