"""A deploy of a stage that is stopped, as a whole or in part: what is stopped stays so, and nothing else stops."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.settings import VARIABLES
from infra import deploy, gateway_answers
from infra.cli import main
from infra.commands import deploying
from infra.deployment import code, function_settings, gateway_stage, record, standing, versions
from infra.deployment.bucket import make_bucket
from infra.deployment.lock import locked
from infra.deployment.plan import plan
from infra.local import repairs
from tests.deploy.conftest import copy_project
from tests.deploy.made_functions import make_function
from tests.support.cuts import Died

STAGE = "prod"
NAMES = "gateway-prod", "gateway-prod-payout", "gateway-prod-relay"
NEW = "gateway-prod-collect"
OURS = {"aws-chalice": f"version=1.32.0:stage={STAGE}:app=gateway"}
Go = Callable[[Callable[[], None]], None]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Go]:
    """Deploy, with what Chalice does to functions and mappings; the stacks and the API are left out."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(code, "PROJECT", copy_project(tmp_path))
    # Which package runs is not looked at: moto's functions have none of ours.
    monkeypatch.setattr(versions, "package_of", lambda *_: tmp_path / "project" / "app.py")
    for module, name in ((deploying, "prepare_stage"), (deploying, "reopen"), (gateway_answers, "put_answers")):
        monkeypatch.setattr(module, name, lambda *_, **__: 0)
    for module, name in ((gateway_stage, "settle"), (deploy, "end_stack")):
        monkeypatch.setattr(module, name, lambda *_, **__: [])

    def deployed(chalice: Callable[[], None]) -> None:
        def as_chalice(project: Path, *_: Any) -> None:
            chalice()
            resources: list[dict[str, Any]] = [{"name": "rest_api", "resource_type": "rest_api", "rest_api_id": "abc"}]
            for each in standing.look(boto3, STAGE).functions.values():
                resources.append({"name": each.name, "resource_type": "lambda_function", "lambda_arn": each.arn})
            record.write_file(record.file_of(project, STAGE), resources)

        with monkeypatch.context() as patched, locked(make_bucket(boto3), STAGE, print) as lock:
            patched.setattr(code, "chalice", as_chalice)
            deploying._deploy(Namespace(stage=STAGE), lock, boto3)

    with mock_aws():
        repairs.install_for_deploying()
        for each in NAMES:
            make_function(each, "1", **OURS)
        deployed(lambda: None)
        yield deployed


def stopped() -> list[str]:
    client = boto3.client("lambda")
    return function_settings.stopped(client, standing.function_names(client, STAGE))


def plan_says(words: str) -> bool:
    return any(words in line for line in plan(boto3, make_bucket(boto3), STAGE))


def test_one_stopped_function_stops_no_other(run: Go) -> None:
    """As an operator's own reserve of 0 for the payout, or a `start-functions` that was cut."""
    boto3.client("lambda").put_function_concurrency(FunctionName=NAMES[1], ReservedConcurrentExecutions=0)
    assert plan_says(f"  1 of 3 are stopped, and stay so, with their queues: start-functions has them called again: {NAMES[1]}")
    run(lambda: make_function(NEW, "1", **OURS))
    assert stopped() == [NAMES[1]]


def test_what_a_deploy_makes_new_in_a_stopped_stage_is_stopped(run: Go) -> None:
    assert main(["--stage", STAGE, "stop-functions"]) == 0
    assert plan_says("  all 3 are stopped, and stay so, with their queues; new ones, too")
    run(lambda: make_function(NEW, "1", **OURS))
    assert stopped() == sorted([*NAMES, NEW])


@pytest.mark.parametrize("behind", ["a function", "Chalice"])
def test_it_is_after_a_cut_too(run: Go, behind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["--stage", STAGE, "stop-functions"]) == 0

    def dies(*_: Any, **__: Any) -> Any:
        raise Died

    def made() -> None:
        make_function(NEW, "1", **OURS)
        if behind == "a function":
            dies()

    with monkeypatch.context() as patched, pytest.raises(Died):
        if behind == "Chalice":
            patched.setattr("infra.deployment.stopping.stop", dies)
        run(made)
    assert stopped() == [*NAMES], "the new one runs"
    bucket = make_bucket(boto3)
    bucket.client.delete_object(**bucket.whose, Key=f"locks/{STAGE}")  # the dead one's, five minutes later
    run(lambda: None)
    assert stopped() == sorted([*NAMES, NEW])
