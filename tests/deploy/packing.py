"""The package that Chalice and ours make of this project, for test_package.py.

Most of the time goes into the pinned libraries, which change with a pin: what was made of them is kept, under the checksum of all
that it depends on, and our code is packed anew each time, by the same commands. That both together are the whole package, to the
last byte, is looked at when the libraries are packed. `make sweep` packs everything anew.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

from chalice.utils import OSUtils

from infra.chalice import Wheels
from infra.local.keeper import installing
from tests.deploy.conftest import ROOT, copy_project, run_python

STAGE = "prod"
ABI = f"cp{sys.version_info.major}{sys.version_info.minor}"
WHEELS, LIBRARIES = (ROOT / ".local" / name for name in ("wheels", "libraries"))
ON_LAMBDAS_PLATFORM = sys.platform == "linux" and platform.machine() == "x86_64"
_OURS = ("app.py", "__pycache__/app.", "chalicelib/", "chalice/")
"""What is made anew: our code, and Chalice's own, which it packs whatever is pinned."""


def package(folder: Path) -> None:
    """Make `project` in `folder`, and in its `out` what Chalice writes, the package unzipped in `unzipped`."""
    if os.environ.get("SWEEP") == "full" or not ON_LAMBDAS_PLATFORM:
        out = _packed(copy_project(folder))
        with zipfile.ZipFile(out / "deployment.zip") as archive:
            archive.extractall(out / "unzipped")
        return
    libraries = _libraries()
    project = copy_project(folder)
    out = _packed_without_libraries(project)
    with zipfile.ZipFile(out / "deployment.zip") as ours:
        ours.extractall(out / "unzipped")
        shutil.copy(libraries / "libraries.zip", out / "whole.zip")
        with zipfile.ZipFile(out / "whole.zip", "a", zipfile.ZIP_DEFLATED) as whole:
            for entry in ours.infolist():
                whole.writestr(entry, ours.read(entry), zipfile.ZIP_DEFLATED)
    (out / "whole.zip").replace(out / "deployment.zip")
    _link(libraries / "unzipped", out / "unzipped")


def _link(kept: Path, place: Path) -> None:
    """Let `place`, a folder, show what is in `kept`, too: nothing is copied."""
    for each in kept.iterdir():
        there = place / each.name
        if there.exists():  # both have modules at the top, and so a __pycache__
            _link(each, there)
        else:
            there.symlink_to(each)


def _packed(project: Path) -> Path:
    """The folder that Chalice writes for the project."""
    out = project / "out"
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(_wheels())} if ON_LAMBDAS_PLATFORM else {}
    said = run_python(ROOT, "-m", "infra.chalice", "--project-dir", str(project), "package", "--stage", STAGE, str(out), **pip)
    assert "Could not install dependencies" not in said
    return out


def _packed_without_libraries(project: Path) -> Path:
    """The same, as if nothing were pinned."""
    pinned = (project / "requirements.txt").read_bytes()
    (project / "requirements.txt").write_text("# nothing\n")
    out = _packed(project)
    (project / "requirements.txt").write_bytes(pinned)
    return out


def _libraries() -> Path:
    """A folder with what the whole package holds besides our code, as a zip file and unzipped. Kept until anything changes that
    this depends on."""
    files = ("requirements.txt", "infra/package.py", "infra/lambda_platform.py", "infra/chalice.py", "tests/deploy/packing.py")
    made_of = [(ROOT / name).read_bytes() for name in files] + [sys.version.encode(), version("chalice").encode()]
    kept = LIBRARIES / hashlib.sha256(b"\0".join(made_of)).hexdigest()[:16]
    with installing(LIBRARIES):
        if not kept.exists():
            for old in LIBRARIES.glob("*/"):
                shutil.rmtree(old)
            making = kept.with_suffix(".making")
            making.mkdir()
            _keep_libraries(making)
            making.rename(kept)
    return kept


def _keep_libraries(folder: Path) -> None:
    whole, ours = _packed(copy_project(folder / "whole")), _packed_without_libraries(copy_project(folder / "ours"))
    with (
        zipfile.ZipFile(whole / "deployment.zip") as everything,
        zipfile.ZipFile(folder / "libraries.zip", "w", zipfile.ZIP_DEFLATED) as libraries,
    ):
        for entry in everything.infolist():
            if not entry.filename.startswith(_OURS):
                libraries.writestr(entry, everything.read(entry), zipfile.ZIP_DEFLATED)
        libraries.extractall(folder / "unzipped")
        with zipfile.ZipFile(ours / "deployment.zip") as own:
            assert sorted(_contents(everything)) == sorted(_contents(libraries) + _contents(own))
    for name in ("whole", "ours"):
        shutil.rmtree(folder / name)


def _contents(archive: zipfile.ZipFile) -> list[tuple[str, int, int]]:
    return [(entry.filename, entry.file_size, entry.CRC) for entry in archive.infolist()]


def _wheels() -> Path:
    """A folder with what is pinned, for Lambda, as the index has it. Kept until a pin changes: pip weighs each of 90,000 files in
    the index, which takes longer than making the package."""
    pinned = (ROOT / "requirements.txt").read_bytes() + (ROOT / "infra" / "chalice.py").read_bytes() + sys.version.encode()
    kept = WHEELS / hashlib.sha256(pinned).hexdigest()[:16]
    with installing(WHEELS):
        if not kept.exists():
            for old in WHEELS.glob("*/"):
                shutil.rmtree(old)
            making = kept.with_suffix(".making")
            making.mkdir()
            Wheels(OSUtils()).download(ABI, str(ROOT / "requirements.txt"), str(making))
            making.rename(kept)
    return kept
