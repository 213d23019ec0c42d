"""The rehearsal of a deployment: whole in `make sweep`, its parts in each run."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from infra.local.aws import LocalAws
from infra.local.gateway import Request
from infra.rehearse import functions
from infra.rehearse.checks import EXPECTED, code_of, demand_well
from infra.rehearse.cloud import changes_sources
from infra.rehearse.deployed import Deployed
from infra.rehearse.functions import FunctionFailed, Process, World
from infra.rehearse.identity import Identity, Refused, call_of
from infra.rehearse.money import Failed
from infra.rehearse.operator import url_of
from infra.rehearse.packages import Packages
from tests.deploy.conftest import ROOT

HANDLERS = """
import os, socket, sys, time

def told(event, context):
    return {
        "event": event,
        "handler": os.environ["_HANDLER"],
        "own": os.environ["OWN"],
        "others": "TEST_OF_THE_REHEARSAL" in os.environ,
        "left": context.get_remaining_time_in_millis(),
        "trace": os.environ["_X_AMZN_TRACE_ID"],
        "path": [each for each in sys.path if "site-packages" in each],
    }

def writes(event, context):
    with open(os.path.join(os.environ["LAMBDA_TASK_ROOT"], "new"), "w") as file:
        file.write("x")

def boto(event, context):
    import boto3

def asks(event, context):
    socket.create_connection((event["host"], 443), timeout=1)

def sleeps(event, context):
    time.sleep(60)

def works(event, context):
    end = time.process_time() + event
    while time.process_time() < end:
        pass

def dies(event, context):
    os._exit(3)
"""


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("handlers.py", HANDLERS)
    place = Packages(tmp_path).of("code", content.getvalue())
    yield place
    for each in [place, *place.rglob("*/")]:
        each.chmod(0o755)


@pytest.fixture
def start(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Process]]:
    monkeypatch.setenv("TEST_OF_THE_REHEARSAL", "1")
    started: list[Process] = []

    def begin(handler: str, seconds: float = 5.0) -> Process:
        role, arn = "arn:aws:iam::1:role/r", "arn:aws:lambda:r:1:function:f"
        found = Deployed("f", arn, role, "code", f"handlers.{handler}", {"OWN": "yes"}, 512, seconds, False, False, b"")
        started.append(Process(found, package, World(tmp_path, 1, {"shop.example": ("93.184.215.14", 2)}), tmp_path / "f.log"))
        return started[-1]

    yield begin
    for each in started:
        each.end()


def test_a_function_has_its_own_settings_and_nothing_of_this_machine(start: Callable[..., Process]) -> None:
    process = start("told", seconds=7.0)
    found = process.call({"a": 1}, invocation=3)
    assert 5 < process.memory_mb < 60, "its own memory, not that of what started it"
    assert (found["event"], found["handler"], found["own"], found["others"]) == ({"a": 1}, "handlers.told", "yes", False)
    assert 5000 < found["left"] <= 7000
    assert found["trace"].endswith(":3")
    assert found["path"] == []


@pytest.mark.parametrize(
    ("handler", "event", "said"),
    [
        ("boto", None, "No module named 'boto3'"),
        ("asks", {"host": "api.coingecko.com"}, "has no network"),
        ("asks", {"host": "10.0.0.1"}, "has no network"),
        ("asks", {"host": "shop.example"}, "Connection refused"),  # nobody listens on that port of this machine
        ("dies", None, "its process ended by itself"),
    ],
)
def test_a_function_can_not(start: Callable[..., Process], handler: str, event: Any, said: str) -> None:
    with pytest.raises(FunctionFailed, match=said):
        start(handler).call(event, 1)


def test_a_function_does_not_write_into_its_package(start: Callable[..., Process], package: Path, tmp_path: Path) -> None:
    if functions.without_privileges() or os.geteuid() != 0:
        with pytest.raises(FunctionFailed, match="PermissionError"):
            start("writes").call(None, 1)
        assert not (package / "new").exists()


def test_what_was_written_into_a_package_is_seen(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a/b.py", "x = 1")
        archive.writestr("c.py", "")
    packages = Packages(tmp_path)
    place = packages.of("code", content.getvalue())
    assert packages.of("code", b"") == place
    assert packages.touched() == []
    for each in (place, place / "a", place / "c.py"):
        each.chmod(0o755)
    (place / "a" / "b.pyc").write_bytes(b"")
    assert str(place / "a" / "b.pyc") in packages.touched()


def test_a_function_has_its_time_and_no_more(start: Callable[..., Process], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "PATIENCE", 1.0)
    process = start("sleeps", seconds=1.0)
    with pytest.raises(FunctionFailed, match="its time is up"):
        process.call(None, 1)
    assert not process.alive
    monkeypatch.setattr(functions, "PATIENCE", 60.0)
    with pytest.raises(FunctionFailed, match="seconds of a processor"):
        start("works", seconds=0.6).call(0.7, 1)


def test_a_role_that_allows_it_not(aws: LocalAws) -> None:
    iam, policy = boto3.client("iam"), json.loads((ROOT / ".chalice" / "policy-rates-prod.json").read_text())
    role = iam.create_role(RoleName="gateway-prod-rates", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    iam.put_role_policy(RoleName="gateway-prod-rates", PolicyName="p", PolicyDocument=json.dumps(policy))
    identity = Identity()
    # What the file allows is taken; the same on another table is not, nor what it does not speak of.
    statement = next(each for each in policy["Statement"] if "dynamodb:GetItem" in each["Action"])
    table = statement["Resource"][0].rsplit("/", 1)[1]
    prefix = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", ["x*"])[0].rstrip("*")
    identity.demand("f", role, "dynamodb", dynamodb("GetItem", TableName=table, Key={"pk": {"S": f"{prefix}1"}}))
    for service, request in (
        ("dynamodb", dynamodb("GetItem", TableName="gateway-prod-custody", Key={"pk": {"S": "seed#1"}})),
        ("dynamodb", dynamodb("DeleteItem", TableName=table, Key={"pk": {"S": f"{prefix}1"}})),
        ("s3", Request("GET", "/gateway-prod-archive/a/b?x=1", [], b"", "")),
        ("lambda", Request("POST", "/2015-03-31/functions", [], b"Action=X", "")),
    ):
        with pytest.raises(Refused, match="f is not authorized to perform"):
            identity.demand("f", role, service, request)
    assert len(identity.refused) == 4
    identity.demand("f", role, "sts", Request("POST", "/", [], b"Action=GetCallerIdentity&Version=2011-06-15", ""))


def test_calls_are_read_as_they_are_sent() -> None:
    assert call_of("s3", Request("PUT", "/bucket/a/b", [], b"x", "")) == ("PutObject", {"Bucket": "bucket", "Key": "a/b"})
    assert call_of("sts", Request("POST", "/", [], b"Action=GetCallerIdentity", "")) == ("GetCallerIdentity", {})
    assert call_of("dynamodb", dynamodb("Query", TableName="t")) == ("Query", {"TableName": "t"})


def dynamodb(operation: str, **sent: Any) -> Request:
    return Request("POST", "/", [("X-Amz-Target", f"DynamoDB_20120810.{operation}")], json.dumps(sent).encode(), "")


@pytest.mark.parametrize(
    ("method", "target", "action", "changes"),
    [
        ("POST", "/", "AWSEvents.PutRule", True),
        ("POST", "/", "AWSEvents.RemoveTargets", True),
        ("POST", "/", "AWSEvents.ListRules", False),
        ("POST", "/", "DynamoDB_20120810.PutItem", False),
        ("PUT", "/2015-03-31/event-source-mappings/1", "", True),
        ("GET", "/2015-03-31/event-source-mappings/", "", False),
    ],
)
def test_what_changes_rules_and_mappings_is_seen(method: str, target: str, action: str, changes: bool) -> None:
    assert changes_sources(Request(method, target, [("X-Amz-Target", action)], b"", "")) is changes


def seen(name: str = "gateway-prod-relay", **other: Any) -> dict[str, Any]:
    figures = {"calls": 1, "starts": 1, "failures": {}, "memory_mb": 90.0, "memory_limit": 512, "init_seconds": 0.5} | other
    return {"functions": {name: figures}, "touched": [], "refused": []}


def test_what_a_rehearsal_must_not_have_seen() -> None:
    demand_well(seen())
    (rates,) = EXPECTED
    demand_well(seen(rates, failures={f"Unavailable: {EXPECTED[rates]}": 3}))
    for found, said in (
        (seen(failures={"KeyError": 1}), "relay failed: KeyError"),
        (seen(rates, failures={"KeyError": 1}), "rates failed: KeyError"),
        (seen(memory_mb=513.0), "513 MB"),
        (seen() | {"touched": ["/x/y.pyc"]}, "wrote into their package: /x/y.pyc"),
        (seen() | {"refused": ["f is not authorized"]}, "f is not authorized"),
    ):
        with pytest.raises(Failed, match=said):
            demand_well(found)


def test_what_commands_say_is_read() -> None:
    lines = ["gateway-prod aaa= 2026-01-01T00:00:00Z", "gateway-prod-relay aaa= 2026-01-01T00:00:01Z"]
    assert (
        code_of("\n".join([*lines, "stage prod stands as it is declared: https://a1.execute-api.r.amazonaws.com/api/"])) == "aaa="
    )
    with pytest.raises(Failed, match="2 versions"):
        code_of("\n".join([*lines, "gateway-prod-tick bbb= 2026-01-01T00:00:01Z"]))
    assert (
        url_of("stands: https://a1.execute-api.eu-central-1.amazonaws.com/api/\n")
        == "https://a1.execute-api.eu-central-1.amazonaws.com/api/"
    )
    with pytest.raises(Failed):
        url_of("nothing")


@pytest.mark.sweep
def test_a_clean_clone_is_deployed_upgraded_rolled_back_and_taken_down() -> None:
    before = set(Path(tempfile.gettempdir()).glob("gateway-rehearsal-*"))
    done = subprocess.run(
        [sys.executable, "-m", "infra.rehearse"], cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-3000:]
    assert "deploy again" in done.stdout and "FAILED" not in done.stdout
    assert set(Path(tempfile.gettempdir()).glob("gateway-rehearsal-*")) <= before
