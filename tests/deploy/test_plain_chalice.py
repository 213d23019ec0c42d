"""Plain `chalice`, behind the command `package`: it takes the package that lies there, and never for code that was changed since.

No library is packed: test_package.py does that. What Chalice prints of a package is what it would deploy.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from chalice.deploy.packager import DependencyBuilder, LambdaDeploymentPackager
from chalice.utils import UI, OSUtils

from infra.chalice import Packager, write_package
from infra.commands.common import CanNot
from infra.lambda_platform import MACHINES, RUNNING, Platform, declared, demand_python
from tests.deploy.conftest import ROOT, copy_project, run_python, set_in_config

_CHALICE = "import sys; from chalice.cli import main; sys.exit(main())"
_APP = """
import chalicelib
from chalice import Chalice

app = Chalice(app_name="small")


@app.route("/")
def index():
    return {}
"""
_UNCHECKED, _CHECKED = 1, 3
REUSED = "Reusing existing deployment package."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project, its package written."""
    made = tmp_path / "project"
    for folder in (".chalice", "chalicelib"):
        (made / folder).mkdir(parents=True)
    (made / ".chalice" / "config.json").write_text(json.dumps({"version": "2.0", "app_name": "small", "lambda_runtime": RUNNING}))
    (made / "requirements.txt").write_text("# nothing\n")
    (made / "chalicelib" / "__init__.py").write_text("MARK = 'old'\n")
    (made / "chalicelib" / "later.py").write_text("# imported by a handler\n")
    (made / "app.py").write_text(_APP)
    write_package(made, "prod")
    return made


def plain(project: Path) -> tuple[zipfile.ZipFile, str]:
    """What plain Chalice would deploy, and what it said."""
    out = project.parent / "out"
    said = run_python(project.parent, "-c", _CHALICE, "--project-dir", str(project), "package", "--stage", "prod", str(out))
    return zipfile.ZipFile(out / "deployment.zip"), said


def plain_packager(project: Path) -> tuple[zipfile.ZipFile, str]:
    """The same, of Chalice's packager alone."""
    said = io.StringIO()
    made = LambdaDeploymentPackager(OSUtils(), DependencyBuilder(OSUtils()), UI(said)).create_deployment_package(
        str(project), RUNNING
    )
    return zipfile.ZipFile(made), said.getvalue()


def compiled(name: str) -> str:
    return importlib.util.cache_from_source(name)


def mark(archive: zipfile.ZipFile, folder: Path) -> str:
    """What the unpacked package's `chalicelib` says when it is imported. Times are what the package has, as in Lambda."""
    for entry in archive.infolist():
        if entry.filename.startswith("chalicelib/"):
            archive.extract(entry, folder)
    said = run_python(
        folder, "-I", "-S", "-B", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); import chalicelib as c; print(c.MARK)"
    )
    return said.strip()


# The other tests pack a project of two libraries in the same way.
@pytest.mark.sweep
def test_it_takes_our_package(tmp_path: Path) -> None:
    """Of the whole project: what Chalice imports of it changes nothing."""
    project = copy_project(tmp_path)
    (project / "requirements.txt").write_text("# nothing\n")
    ours = write_package(project, "prod")
    archive, said = plain(project)
    assert REUSED in said and Path(str(archive.filename)).read_bytes() == ours.read_bytes()
    names = set(archive.namelist())
    modules = [name for name in names if name.endswith(".py")]
    assert len(modules) > 100 and {"app.py", "chalicelib/__init__.py", "chalice/app.py"} <= set(modules)
    for name in modules:
        assert archive.read(compiled(name))[4] == _UNCHECKED, name


def test_changed_code_is_deployed_as_it_is(project: Path, tmp_path: Path) -> None:
    """Even where nothing tells by the file's size and time that it was changed, since the compiled form was made."""
    source = project / "chalicelib" / "__init__.py"
    assert mark(plain_packager(project)[0], tmp_path / "before") == "old"
    before = source.stat()
    source.write_text("MARK = 'new'\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    archive, said = plain(project)
    assert REUSED not in said
    assert mark(archive, tmp_path / "task") == "new"
    flags = {archive.read(name)[4] for name in archive.namelist() if name.endswith(".pyc")}
    assert flags == {_CHECKED}, "nothing is compiled in a way that is not checked"


def test_each_code_has_its_own_package(project: Path) -> None:
    """Also code that is removed, or becomes again what it was; and one that plain Chalice made is replaced."""
    source, left = project / "app.py", project / "chalicelib" / "left.py"
    content = source.read_bytes()
    source.write_bytes(content + b"# changed\n")
    left.write_text("# unused\n")
    archive, said = plain_packager(project)
    assert REUSED not in said and compiled("app.py") not in archive.namelist()
    write_package(project, "prod")
    archive, said = plain_packager(project)
    assert REUSED in said and {compiled("app.py"), "chalicelib/left.py"} < set(archive.namelist())
    left.unlink()
    archive, said = plain_packager(project)
    assert REUSED not in said and "chalicelib/left.py" not in archive.namelist()
    Path(compiled(str(left))).unlink()
    source.write_bytes(content)
    archive, said = plain_packager(project)
    assert REUSED in said and archive.read("app.py") == content


def test_a_cut_leaves_no_half_package(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "app.py").write_text((project / "app.py").read_text() + "# changed\n")
    before = sorted((project / ".chalice" / "deployments").iterdir())
    monkeypatch.setattr(Packager, "_add_vendor_files", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_package(project, "prod")
    assert sorted((project / ".chalice" / "deployments").iterdir()) == before
    _, said = plain_packager(project)
    assert REUSED not in said


def test_what_can_not_be_had_is_named_and_nothing_is_packed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chalice's own way is to say so, and to deploy the rest."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (project / "requirements.txt").write_text("fastecdsa==3.0.1\n")
    before = sorted((project / ".chalice" / "deployments").iterdir())
    with pytest.raises(CanNot, match=r"the libraries for cp3\d\d on x86_64 can not be had: .*fastecdsa==3\.0\.1"):
        write_package(project, "prod")
    assert sorted((project / ".chalice" / "deployments").iterdir()) == before


def test_another_python_packs_nothing(project: Path) -> None:
    other = "python3.13" if sys.version_info.minor == 11 else "python3.11"
    set_in_config(project, lambda_runtime=other)
    with pytest.raises(
        CanNot, match=rf"functions are to run {other} .* this is python3\.{sys.version_info.minor}: install {other}"
    ):
        demand_python(project)
    command = ["--project-dir", str(project), "package", str(project / "out")]
    done = subprocess.run([sys.executable, "-m", "infra.chalice", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: functions are to run {other} ") and "Traceback" not in done.stderr


@pytest.mark.parametrize(("setting", "value"), [("lambda_runtime", "python3.9"), ("lambda_architecture", "riscv")])
def test_a_platform_that_is_not_supported_is_refused(project: Path, setting: str, value: str) -> None:
    set_in_config(project, **{setting: value})
    with pytest.raises(CanNot, match=rf"{setting} is '{value}', and has to be one of "):
        declared(project, "prod")


def test_the_platform_is_what_config_says() -> None:
    assert declared(ROOT, "prod") == Platform("python3.13", "x86_64")
    assert set(MACHINES) == {"x86_64", "arm64"}


def test_a_stage_that_is_none_is_refused_before_anything_is_asked(project: Path) -> None:
    """Chalice's own default is `dev`; `local` runs on one machine alone."""
    for stage in ([], ["--stage", "local"]):
        command = [sys.executable, "-m", "infra.chalice", "--project-dir", str(project), "deploy", *stage]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: --stage is ") and "Traceback" not in done.stderr
