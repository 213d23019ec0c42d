"""Programs of Debian's archive without root: a package and the libraries that this machine lacks, unpacked into a folder.

Which version that is, Debian's release says; what runs here was tried with those of Debian 12.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from infra.local.keeper import NodeMissing


def unpack(folder: Path, name: str, package: str) -> None:
    """Unpack `package` into `folder`/`name`, whole or not at all; the caller sees to it that one does so at a time.

    Raises NodeMissing.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NodeMissing("this is no Debian to take it from")
    work = folder / f"{name}.part"
    shutil.rmtree(work, ignore_errors=True)
    debs = work / "debs"
    debs.mkdir(parents=True)
    # Packages are only read and unpacked, by whoever we are: no lock, and no user of its own for the download.
    common = ["-q", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="]
    own = [*common, "-o", f"Dir::State::lists={work / 'lists'}", "-o", f"Dir::Cache={work / 'cache'}"]
    # The machine's own package lists first; they may be missing, or be older than what the archive has.
    error = _download(debs, common, package)
    if error is not None:
        (work / "lists" / "partial").mkdir(parents=True)
        (work / "cache" / "archives" / "partial").mkdir(parents=True)
        _run(["apt-get", *own, "update"], work)
        error = _download(debs, own, package)
    if error is not None:
        raise NodeMissing(f"apt-get has no {package}: {error}")
    for deb in sorted(debs.glob("*.deb")):
        done = _run(["dpkg", "-x", str(deb), str(work / "root")], work)
        if done.returncode != 0:
            raise NodeMissing(f"dpkg could not unpack {deb.name}: {done.stderr.strip()[-300:]}")
    (work / "root").rename(folder / name)
    shutil.rmtree(work, ignore_errors=True)


def with_libraries(root: Path) -> dict[str, str]:
    """What a program that lies unpacked under `root` needs in its environment to find the libraries that came with it."""
    libraries = [str(path) for path in root.glob("usr/lib/*-linux-gnu")]
    before = [path for path in [os.environ.get("LD_LIBRARY_PATH")] if path]
    return {"LD_LIBRARY_PATH": ":".join([*libraries, *before])} if libraries else {}


def _download(debs: Path, options: list[str], package: str) -> str | None:
    """Download the package and what would be installed with it; what went wrong, or None."""
    planned = _run(["apt-get", *options, "--simulate", "--no-install-recommends", "install", package], debs)
    packages = re.findall(r"^Inst (\S+)", planned.stdout, re.MULTILINE)
    if planned.returncode != 0 or not packages:
        return planned.stderr.strip()[-300:] or "no package of that name"
    done = _run(["apt-get", *options, "download", *packages], debs)
    return None if done.returncode == 0 else done.stderr.strip()[-300:]


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment)
