"""What the deployment package is made of: which files stay out, and which AWS services functions call."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import json
import re
import zipfile
from pathlib import Path

import pytest

from infra.package import SERVICES, is_packed, pack
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
