"""`python -m infra.chalice package`: what is uploaded is small enough, complete, and works by itself."""

from __future__ import annotations

import ast
import importlib.util
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from infra.chalice import pinned, write_package
from infra.lambda_platform import MACHINES
from infra.package import LEFT_OUT, SERVICES
from tests.deploy.conftest import ROOT, copy_project, made_once, run_python, set_in_config
from tests.deploy.declared import API, CHALICE, function_settings, functions
from tests.deploy.packing import ON_LAMBDAS_PLATFORM, STAGE, package
from tests.support.first_payments import cases, payments

pytestmark = pytest.mark.slow
ZIPPED, UNZIPPED = 45_000_000, 130_000_000
"""Budgets in bytes: 33.9 and 94.0 million are used. Lambda takes 50 million directly, and 250 unzipped."""

_IMPORT_ALL = """
import importlib, json, pkgutil, sys, tempfile, os
os.environ.update(STAGE="prod", HOME="/nonexistent", BCL_DATA_DIR=tempfile.mkdtemp())
sys.path.insert(0, sys.argv[1])
import app, chalicelib
names = [m.name for m in pkgutil.walk_packages(chalicelib.__path__, "chalicelib.")]
for name in names:
    importlib.import_module(name)
for statement in json.loads(sys.argv[2]):
    exec(statement, {})
outside = [
    name
    for name, module in sys.modules.items()
    if "site-packages" in (getattr(module, "__file__", None) or "")
]
print(len(names), len(app.app.routes), outside)
"""
_MAKE_CLIENTS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import botocore.exceptions, botocore.session
session = botocore.session.get_session()
for service in [*json.loads(sys.argv[2]), "ec2"]:
    try:
        client = session.create_client(service, region_name="eu-central-1", aws_access_key_id="none", aws_secret_access_key="none")
        print(client.meta.endpoint_url, end=" ")
    except botocore.exceptions.UnknownServiceError:
        print("unknown:", service)
"""


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that Chalice wrote, the package unzipped in `unzipped`. Once in a run; SWEEP=full packs all of it anew."""
    return made_once(tmp_path_factory, "package", package) / "project" / "out"


@pytest.fixture(scope="module")
def template(packaged: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((packaged / "sam.json").read_text())["Resources"]
    return found


def test_size(packaged: Path, record_property: Any) -> None:
    with zipfile.ZipFile(packaged / "deployment.zip") as archive:
        unzipped = sum(entry.file_size for entry in archive.infolist())
    zipped = (packaged / "deployment.zip").stat().st_size
    record_property("zipped_bytes", zipped)
    record_property("unzipped_bytes", unzipped)
    assert zipped < ZIPPED, f"{zipped / 1e6:.1f} MB zipped"
    assert unzipped < UNZIPPED, f"{unzipped / 1e6:.1f} MB unzipped"


@pytest.mark.sweep
def test_for_arm64_every_library_is_compiled_for_it(tmp_path: Path) -> None:
    """fastecdsa has no wheel for it. bitcoinlib takes ecdsa in its place, as the next test does."""
    project = copy_project(tmp_path)
    set_in_config(project, lambda_architecture="arm64")
    with zipfile.ZipFile(write_package(project, STAGE)) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    compiled = [name for name, bytes_ in content.items() if bytes_.startswith(b"\x7fELF")]
    assert len(compiled) > 50
    assert {int.from_bytes(content[name][18:20], "little") for name in compiled} == {MACHINES["arm64"]}
    tags = [line for name, told in content.items() if name.endswith("dist-info/WHEEL") for line in told.decode().splitlines()]
    assert [line for line in tags if line.startswith("Tag:") and not line.endswith(("aarch64", "-any"))] == []
    assert "ecdsa/keys.py" in content and not [name for name in content if name.startswith("fastecdsa")]
    pins = len(pinned((project / "requirements.txt").read_text(), "aarch64"))
    assert len([name for name in content if name.endswith("dist-info/WHEEL")]) == pins - 1, "all but SQLAlchemy"
    assert sum(map(len, content.values())) < UNZIPPED


def test_each_processor_has_its_pins() -> None:
    """Not those of the processor that packs, which pip would take."""
    text = (ROOT / "requirements.txt").read_text()
    x86, arm = set(pinned(text, "x86_64")), set(pinned(text, "aarch64"))
    assert (x86 - arm, arm - x86) == ({"fastecdsa==3.0.1"}, {"ecdsa==0.19.2"})
    assert {line.partition(";")[0] for line in text.splitlines() if "==" in line} == x86 | arm


_WITHOUT_FASTECDSA = """
import os, sys
os.environ["USE_FASTECDSA"] = "false"
os.environ.pop("SWEEP", None)
import pytest
failed = pytest.main(["-q", "-p", "no:cacheprovider", "tests/unit/chains/test_utxo_second_reader.py"])
sys.exit(failed or "fastecdsa" in sys.modules or "ecdsa" not in sys.modules)
"""


@pytest.mark.sweep
def test_without_fastecdsa_the_second_reader_is_the_same() -> None:
    """The fallback that bitcoinlib has for machines without it: every test of the reader."""
    assert "[100%]" in run_python(ROOT, "-c", _WITHOUT_FASTECDSA)


def test_our_code_is_in_it_to_the_last_file(packaged: Path) -> None:
    copy = packaged.parent
    ours = [file.relative_to(copy) for file in (copy / "chalicelib").rglob("*.py")] + [Path("app.py")]
    assert len(ours) > 50
    for file in ours:
        assert (packaged / "unzipped" / file).read_bytes() == (copy / file).read_bytes(), file


def test_every_module_is_compiled(packaged: Path) -> None:
    with zipfile.ZipFile(packaged / "deployment.zip") as archive:
        names = archive.namelist()
    modules = [name for name in names if name.endswith(".py")]
    assert len(modules) > 1000 and len(set(names)) == len(names)
    assert {importlib.util.cache_from_source(name) for name in modules} <= set(names)


def test_what_is_pinned_is_in_it(packaged: Path) -> None:
    """Every pinned package, but those that `LEFT_OUT` names."""
    pins = [line.split("==") for line in pinned((packaged.parent / "requirements.txt").read_text(), "x86_64")]
    there = {folder.name.removesuffix(".dist-info") for folder in (packaged / "unzipped").glob("*.dist-info")}
    spelt = {name.replace("-", "_").lower() for name in there}
    missing = [name for name, version in pins if f"{name.split('[')[0].replace('-', '_').lower()}_{version}" not in spelt]
    assert missing == [name for name, _ in pins if f"{name.lower()}-*" in LEFT_OUT]
    assert len(pins) - len(missing) == len(there), "requirements.txt does not pin everything that was packed"


@pytest.mark.skipif(not ON_LAMBDAS_PLATFORM, reason="the package holds programs for Linux on x86_64")
def test_it_works_by_itself(packaged: Path) -> None:
    """Without this machine's site-packages (-S, -I), as in Lambda: every module of ours can be imported from the package alone, and
    so can what they import at first use."""
    later = imports_in_functions(packaged.parent)
    assert any("tronpy" in statement for statement in later)
    answer = run_python(packaged, "-I", "-S", "-c", _IMPORT_ALL, str(packaged / "unzipped"), json.dumps(later))
    modules, routes, outside = answer.split(maxsplit=2)
    assert (int(modules) > 50, int(routes) > 20, outside.strip()) == (True, True, "[]")


def imports_in_functions(project: Path) -> list[str]:
    """The statements by which functions of ours import at first use."""
    found: set[str] = set()
    for file in (project / "chalicelib").rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)}
    return sorted(found)


@pytest.mark.skipif(not ON_LAMBDAS_PLATFORM, reason="the package holds programs for Linux on x86_64")
def test_second_readers_find_all_that_they_read(packaged: Path) -> None:
    """Their libraries' data too, which no import shows. Each has a library of its own."""
    several = cases()
    read = payments(packaged / "unzipped", list(several.values()))
    assert [line.split()[0] for line in read] == [network.slug for network, _, _ in several.values()]


@pytest.mark.skipif(not ON_LAMBDAS_PLATFORM, reason="the package holds programs for Linux on x86_64")
def test_it_has_the_clients_of_our_services_and_no_other(packaged: Path) -> None:
    services = sorted(SERVICES)
    answer = run_python(packaged, "-I", "-S", "-c", _MAKE_CLIENTS, str(packaged / "unzipped"), json.dumps(services))
    assert answer.split() == [*(f"https://{service}.eu-central-1.amazonaws.com" for service in services), "unknown:", "ec2"]


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
