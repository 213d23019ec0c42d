"""`chalice package`: what is uploaded is small enough, complete, and works by itself."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.conftest import copy_project, run_python
from tests.deploy.declared import API, CHALICE, function_settings, functions

pytestmark = pytest.mark.slow
STAGE = "prod"
BUDGET = 75_000_000  # bytes; 64.5 million are used, the platform takes 250
ON_LAMBDAS_PLATFORM = sys.platform == "linux" and platform.machine() == "x86_64"

_IMPORT_ALL = """
import importlib, pkgutil, sys, tempfile, os
os.environ["STAGE"] = "prod"
sys.path.insert(0, sys.argv[1])
import app, chalicelib
names = [m.name for m in pkgutil.walk_packages(chalicelib.__path__, "chalicelib.")]
for name in names:
    importlib.import_module(name)
import tronpy.tron, tronpy.contract, coincurve
outside = [
    name
    for name, module in sys.modules.items()
    if "site-packages" in (getattr(module, "__file__", None) or "")
]
print(len(names), len(app.app.routes), outside)
"""


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `chalice package` wrote, the package unzipped in `unzipped`. pip downloads what is pinned: half a minute."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return _package(tmp_path_factory.mktemp("package"))
    # Made once for all workers of a run: whoever is first, the others wait for it.
    shared = tmp_path_factory.getbasetemp().parent / f"package-{run}"
    with (shared.parent / f"{shared.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            making = shared.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            _package(making)
            making.rename(shared)
    return shared / "project" / "out"


def _package(folder: Path) -> Path:
    copy = copy_project(folder)
    out = copy / "out"
    command = "import sys; from chalice.cli import main; sys.exit(main())"
    said = run_python(copy, "-c", command, "package", "--stage", STAGE, str(out))
    assert "Could not install dependencies" not in said
    with zipfile.ZipFile(out / "deployment.zip") as archive:
        archive.extractall(out / "unzipped")
    return out


@pytest.fixture(scope="module")
def template(packaged: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((packaged / "sam.json").read_text())["Resources"]
    return found


def test_size(packaged: Path, record_property: Any) -> None:
    with zipfile.ZipFile(packaged / "deployment.zip") as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    record_property("unzipped_bytes", size)
    assert size < BUDGET, f"{size / 1e6:.1f} MB unzipped"


def test_our_code_is_in_it_to_the_last_file(packaged: Path) -> None:
    copy = packaged.parent
    ours = [file.relative_to(copy) for file in (copy / "chalicelib").rglob("*.py")] + [Path("app.py")]
    assert len(ours) > 50
    for file in ours:
        assert (packaged / "unzipped" / file).read_bytes() == (copy / file).read_bytes(), file


def test_what_is_pinned_is_in_it(packaged: Path) -> None:
    pins = [line.split("==") for line in (packaged.parent / "requirements.txt").read_text().splitlines() if "==" in line]
    there = {folder.name.removesuffix(".dist-info") for folder in (packaged / "unzipped").glob("*.dist-info")}
    spelt = {name.replace("-", "_").lower() for name in there}
    missing = [name for name, version in pins if f"{name.split('[')[0].replace('-', '_').lower()}_{version}" not in spelt]
    assert missing == []
    assert len(pins) == len(there), "requirements.txt does not pin everything that was packed"


@pytest.mark.skipif(not ON_LAMBDAS_PLATFORM, reason="the package holds programs for Linux on x86_64")
def test_it_works_by_itself(packaged: Path) -> None:
    """Without this machine's site-packages (-S, -I), as in Lambda: every module of ours can be imported from the package alone."""
    answer = run_python(packaged, "-I", "-S", "-c", _IMPORT_ALL, str(packaged / "unzipped"))
    modules, routes, outside = answer.split(maxsplit=2)
    assert (int(modules) > 50, int(routes) > 20, outside.strip()) == (True, True, "[]")


def test_functions_routes_and_schedules_are_in_the_template(template: dict[str, Any]) -> None:
    from app import app

    made = {r["Properties"]["Handler"]: r["Properties"] for r in template.values() if r["Type"] == "AWS::Serverless::Function"}
    assert set(made) == {"app.app" if name == API else f"app.{name}" for name in functions()}
    for function in functions():
        properties = made["app.app" if function == API else f"app.{function}"]
        declared = function_settings(STAGE, function)
        assert (properties["MemorySize"], properties["Timeout"]) == (declared["lambda_memory_size"], declared["lambda_timeout"])
        role = template[properties["Role"]["Fn::GetAtt"][0]]["Properties"]
        (policy,) = role["Policies"]
        assert policy["PolicyDocument"] == json.loads((CHALICE / declared["iam_policy_file"]).read_text()), function
    (api,) = [r["Properties"] for r in template.values() if r["Type"] == "AWS::Serverless::Api"]
    assert set(api["DefinitionBody"]["paths"]) == set(app.routes)
    assert (api["StageName"], api["EndpointConfiguration"]) == ("api", "REGIONAL")
