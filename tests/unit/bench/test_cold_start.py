"""Cold starts are measured in a package that nothing can be written into, as on Lambda, by root neither."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from infra.rehearse.packages import Packages
from tests.bench.bench_cold_start import start

WRITES = (
    "open(os.path.join(sys.argv[1], 'more.py'), 'w')",
    "open(os.path.join(sys.argv[1], 'app.py'), 'a')",
    "os.remove(os.path.join(sys.argv[1], 'app.py'))",
)


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    return Packages(tmp_path)


@pytest.fixture
def package(packages: Packages) -> Path:
    content = io.BytesIO()
    with ZipFile(content, "w") as archive:
        archive.writestr("app.py", "READY = True\n")
    return packages.of("code", content.getvalue())


def test_a_start_leaves_the_package_as_it_was(packages: Packages, package: Path) -> None:
    milliseconds, memory = start(package, "app", "import app; app.READY and first_request()")
    assert 0 < milliseconds < 5_000
    assert 1 < memory < 40, "its own, not that of the process which measures"
    assert packages.touched() == [], "not even a compiled module"


@pytest.mark.parametrize("write", WRITES)
def test_nothing_can_be_written_into_it(packages: Packages, package: Path, write: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        start(package, "app", f"{write}; first_request()")
    assert "PermissionError" in failed.value.stderr or "Read-only" in failed.value.stderr
    assert packages.touched() == []


def test_one_that_can_be_written_is_not_measured(package: Path, tmp_path: Path) -> None:
    writable = tmp_path / "writable"
    shutil.copytree(package, writable)
    for path in (writable, writable / "app.py"):
        path.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError) as failed:
        start(writable, "app", "first_request()")
    assert "not read-only" in failed.value.stderr
