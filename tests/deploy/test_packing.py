"""What the deployment package is made of: which files stay out, and which AWS services functions call."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import json
import platform
import re
import zipfile
from pathlib import Path

import orjson
import pytest

from infra.commands.common import CanNot
from infra.lambda_platform import RUNNING
from infra.package import SERVICES, is_packed, misfit, pack
from tests.deploy.conftest import ROOT
from tests.deploy.declared import CHALICE

MAKERS = {"client", "_client", "quick_client", "create_client"}
"""The names of what makes or hands out a client of the service in its first argument."""


def test_the_services_are_those_that_the_code_makes_clients_of() -> None:
    made = set()
    sources = (file.read_text(encoding="utf-8") for file in (ROOT / "chalicelib").rglob("*.py"))
    # What calls one of them has its name before a bracket: few modules have to be parsed.
    for source in filter(re.compile(rf"\b({'|'.join(MAKERS)})\s*\(").search, sources):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = getattr(node.func, "attr", getattr(node.func, "id", None))
                if name in MAKERS:
                    made.add(node.args[0].value)
    assert made == SERVICES


def test_no_function_has_rights_to_another_service() -> None:
    """Beside `logs`, which Lambda itself writes with the function's rights."""
    statements = [s for file in CHALICE.glob("policy-*.json") for s in json.loads(file.read_text())["Statement"]]
    actions = [action for s in statements for action in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])]
    assert len(actions) > 100
    assert {action.partition(":")[0] for action in actions} - SERVICES == {"logs"}


@pytest.mark.parametrize(
    "name",
    [
        "app.py",
        "chalicelib/web/static/swagger-ui.css.gz",
        "botocore/data/endpoints.json",
        "botocore/data/_retry.json",
        "botocore/data/dynamodb/2012-08-10/service-2.json.gz",
        "bitcoinlib/data/networks.json",
        "eth_utils/__json/eth_networks.json",
        "coincurve/_libsecp256k1.cpython-311-x86_64-linux-gnu.so",
        "google/_upb/_message.abi3.so",
    ],
)
def test_it_is_packed(name: str) -> None:
    assert is_packed(name)


@pytest.mark.parametrize(
    "name",
    [
        "botocore/data/ec2/2016-11-15/service-2.json.gz",
        "botocore/data/dynamodbstreams/2012-08-10/service-2.json.gz",
        "tests/block722010.pickle",
        "sqlalchemy/engine/base.py",
        "sqlalchemy-2.1.9.dist-info/METADATA",
        "cytoolz/itertoolz.c",
        importlib.util.cache_from_source("chalicelib/settings.py"),
    ],
)
def test_it_stays_out(name: str) -> None:
    assert not is_packed(name)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A package as Chalice makes it."""
    file = tmp_path / "whole.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("app.py", "HANDLED = 1\n")
        archive.writestr("tests/test_it.py", "")
        archive.writestr(importlib.util.cache_from_source("app.py"), b"of another day")
        archive.writestr("data.json", "{}")
    return file


def test_the_compiled_form_is_what_python_loads(whole: Path, tmp_path: Path) -> None:
    """It is not compared with the source, whose time the package does not keep: a changed source changes nothing."""
    pack(whole, tmp_path / "ours.zip")
    with zipfile.ZipFile(tmp_path / "ours.zip") as archive:
        assert set(archive.namelist()) == {"app.py", importlib.util.cache_from_source("app.py"), "data.json"}
        archive.extractall(tmp_path / "task")
    source = tmp_path / "task" / "app.py"
    assert source.read_text() == "HANDLED = 1\n"
    source.write_text("HANDLED = 'compiled again'\n")
    loader = importlib.machinery.SourceFileLoader("packed_app", str(source))
    spec = importlib.util.spec_from_loader("packed_app", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    assert module.HANDLED == 1


def library(machine: int) -> bytes:
    """The head of a compiled library: 64 bits, the lowest byte first, and the processor it is for."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00" + machine.to_bytes(2, "little") + bytes(44)


X86, ARM, RISC = 62, 183, 243
MINE, OTHER = ("313", "311") if RUNNING == "python3.13" else ("311", "313")


@pytest.mark.parametrize(
    ("name", "content", "architecture"),
    [
        (f"coincurve/_libsecp256k1.cpython-{MINE}-x86_64-linux-gnu.so", library(X86), "x86_64"),
        (f"coincurve/_libsecp256k1.cpython-{MINE}-aarch64-linux-gnu.so", library(ARM), "arm64"),
        ("google/_upb/_message.abi3.so", library(ARM), "arm64"),
        ("fastecdsa.libs/libgmp-afec2dd4.so.10.2.0", library(X86), "x86_64"),
        ("app.py", b"", "arm64"),
        ("bitcoinlib/data/networks.json", b"{}", "x86_64"),
    ],
)
def test_a_library_of_the_functions_processor_and_python_fits(name: str, content: bytes, architecture: str) -> None:
    assert misfit(name, content, architecture) is None


@pytest.mark.parametrize(
    ("name", "content", "architecture", "problem"),
    [
        ("google/_upb/_message.abi3.so", library(X86), "arm64", "it is for x86_64, and functions run on arm64"),
        ("google/_upb/_message.abi3.so", library(ARM), "x86_64", "it is for arm64, and functions run on x86_64"),
        ("fastecdsa.libs/libgmp-afec2dd4.so.10.2.0", library(ARM), "x86_64", "it is for arm64"),
        ("a/program", library(ARM), "x86_64", "it is for arm64"),
        ("a.abi3.so", library(RISC), "x86_64", "it is for machine 243"),
        ("a.abi3.so", b"\xcf\xfa\xed\xfe of macOS", "x86_64", "it is no library of Linux for 64 bits"),
        ("a.abi3.so", b"\x7fELF\x01\x01 of 32 bits", "x86_64", "it is no library of Linux for 64 bits"),
        (
            f"a.cpython-{OTHER}-x86_64-linux-gnu.so",
            library(X86),
            "x86_64",
            f"it is for Python 3.{OTHER[1:]}, and functions run {RUNNING}",
        ),
    ],
)
def test_any_other_does_not(name: str, content: bytes, architecture: str, problem: str) -> None:
    assert str(misfit(name, content, architecture)).startswith(problem)


def test_a_package_with_a_library_for_another_processor_is_refused(tmp_path: Path) -> None:
    """With one that was really compiled: this machine's."""
    here, other = ("x86_64", "arm64") if platform.machine() == "x86_64" else ("arm64", "x86_64")
    real = Path(orjson.orjson.__file__)
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.write(real, f"orjson/{real.name}")
    pack(tmp_path / "whole.zip", tmp_path / "ours.zip", here)
    (tmp_path / "ours.zip").unlink()
    with pytest.raises(CanNot, match=rf"orjson/{real.name} can not be deployed: it is for {here}, and functions run on {other}"):
        pack(tmp_path / "whole.zip", tmp_path / "ours.zip", other)
    assert not (tmp_path / "ours.zip").exists()


def test_the_same_files_make_the_same_package(whole: Path, tmp_path: Path) -> None:
    pack(whole, tmp_path / "first.zip")
    with zipfile.ZipFile(whole) as archive:
        contents = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(tmp_path / "later.zip", "w") as archive:
        for name in sorted(contents, reverse=True):
            archive.writestr(zipfile.ZipInfo(name, (2030, 1, 1, 0, 0, 0)), contents[name])
    pack(tmp_path / "later.zip", tmp_path / "second.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()


def test_every_user_may_read_what_is_packed(whole: Path, tmp_path: Path) -> None:
    pack(whole, tmp_path / "ours.zip")
    with zipfile.ZipFile(tmp_path / "ours.zip") as archive:
        assert {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()} == {0o644}


def test_a_module_that_does_not_compile_leaves_no_package(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("app.py", "this is no Python")
    with pytest.raises(SyntaxError):
        pack(tmp_path / "whole.zip", tmp_path / "ours.zip")
    assert not (tmp_path / "ours.zip").exists()
