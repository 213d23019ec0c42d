"""A copy of what Chalice deploys, so that packaging leaves nothing behind in the source tree."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.lambda_platform import RUNNING

ROOT = Path(__file__).resolve().parents[2]
_LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "deployments", "deployed")


def copy_project(folder: Path) -> Path:
    """app.py, chalicelib, .chalice and requirements.txt in a new folder `project` under `folder`, for the Python of the tests."""
    copy = folder / "project"
    for name in ("chalicelib", ".chalice"):
        shutil.copytree(ROOT / name, copy / name, ignore=_LEFT_BEHIND)
    for name in ("app.py", "requirements.txt"):
        shutil.copy(ROOT / name, copy)
    set_in_config(copy, lambda_runtime=RUNNING)
    return copy


def set_in_config(project: Path, **settings: str) -> None:
    """Change a copy's `.chalice/config.json`."""
    file = project / ".chalice" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` has filled: once for all workers of a run, whoever is first; the others wait for it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        alone = factory.mktemp(name)
        make(alone)
        return alone
    shared = factory.getbasetemp().parent / f"{name}-{run}"
    with (shared.parent / f"{shared.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            making = shared.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make(making)
            making.rename(shared)
    return shared


def run_python(folder: Path, *arguments: str, seconds: float = 240, **environment: str) -> str:
    """Run Python with these arguments in a folder, with these variables besides; its output. The test fails with what it said when
    it fails."""
    # What the tests have set for themselves, and no deployment accepts.
    env = {name: value for name, value in os.environ.items() if name != "WEBHOOKS_ALLOW_PRIVATE"} | environment
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=seconds, check=False, env=env
    )
    if done.returncode != 0:
        pytest.fail(f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}")
    return done.stdout
