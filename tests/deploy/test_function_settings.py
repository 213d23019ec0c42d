"""What Lambda is told of each function beside its code: reserve, loops, retries."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.commands.common import CanNot
from infra.deployment import function_settings
from infra.deployment.chalice_client import Client
from infra.local.aws import isolate_environment
from infra.local.repairs.functions import repair_functions
from infra.policies import FUNCTIONS

STAGE = "prod"
POLL, RELAY, RATES, PAYOUT, API = (f"gateway-{STAGE}{name}" for name in ("-poll_tron", "-relay", "-rates", "-payout", ""))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Lambda with the stage's functions, as Chalice leaves them, and one of somebody else."""
    isolate_environment()
    monkeypatch.setenv("MOTO_LAMBDA_CONCURRENCY_QUOTA", "1000")
    repair_functions()
    with mock_aws():
        role = boto3.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        made = boto3.client("lambda")
        with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
            archive.writestr("app.py", "")
        for name in (*function_settings.declared(STAGE), "another"):
            code = {"ZipFile": packed.getvalue()}
            made.create_function(FunctionName=name, Runtime="python3.11", Role=role, Handler="app.app", Code=code)
        yield made


def names() -> list[str]:
    return sorted(function_settings.declared(STAGE))


def test_what_a_deploy_leaves_out_is_set_once(client: Any) -> None:
    assert {line.split()[0].rstrip(":") for line in function_settings.wrong(client, STAGE, names())} == set(names()) - {
        API, *(f"gateway-{STAGE}-{name}" for name in ("tick", "record", "compare"))
    }  # fmt: skip
    changed = function_settings.settle(client, STAGE, names())
    assert POLL in changed and API not in changed and "another" not in changed
    assert list(function_settings.wrong(client, STAGE, names())) == []
    assert function_settings.standing(client, POLL) == (2, False, 0, 60)
    assert function_settings.standing(client, RELAY) == (None, True, None, None)
    assert function_settings.standing(client, RATES) == (None, False, 0, 60)
    assert function_settings.standing(client, "another") == (None, False, None, None)
    assert function_settings.settle(client, STAGE, names()) == []


def test_what_somebody_changed_is_set_back(client: Any) -> None:
    function_settings.settle(client, STAGE, names())
    client.put_function_concurrency(FunctionName=API, ReservedConcurrentExecutions=3)
    client.put_function_recursion_config(FunctionName=POLL, RecursiveLoop="Allow")
    client.put_function_event_invoke_config(FunctionName=RELAY, MaximumRetryAttempts=1)
    assert list(function_settings.wrong(client, STAGE, names())) == [
        f"{API}: it has a reserve of 3, not of nothing",
        f"{POLL}: it may call itself without end",
        f"{RELAY}: events are tried otherwise than declared",
    ]  # fmt: skip
    assert sorted(function_settings.settle(client, STAGE, names())) == sorted([API, POLL, RELAY])
    assert list(function_settings.wrong(client, STAGE, names())) == []


def test_a_function_that_is_not_there_is_left_out(client: Any) -> None:
    client.delete_function(FunctionName=RATES)
    function_settings.settle(client, STAGE, [name for name in names() if name != RATES])
    assert list(function_settings.wrong(client, STAGE, [name for name in names() if name != RATES])) == []
    assert function_settings.demand_room(client, STAGE).startswith("concurrency: 46 of 1000")


def test_stopped_functions_stay_so_until_they_are_started(client: Any) -> None:
    function_settings.settle(client, STAGE, names())
    assert function_settings.stop(client, names()) == {}
    assert function_settings.stopped(client, names()) == names()
    assert all("is stopped: start-functions" in line for line in function_settings.wrong(client, STAGE, names()))
    function_settings.settle(client, STAGE, names())
    assert function_settings.stopped(client, names()) == names(), "a deploy starts nothing"
    function_settings.settle(client, STAGE, names(), start=True)
    assert function_settings.stopped(client, names()) == [] and list(function_settings.wrong(client, STAGE, names())) == []


def test_a_deploy_by_chalice_leaves_the_concurrency_alone(client: Any) -> None:
    """It has every function's reserve deleted that its configuration does not name."""
    import botocore.session

    function_settings.settle(client, STAGE, names())
    function_settings.stop(client, [POLL])
    for name in (POLL, PAYOUT):
        Client(botocore.session.get_session()).delete_function_concurrency(name)
    assert function_settings.standing(client, POLL).reserved == 0 and function_settings.standing(client, PAYOUT).reserved == 20


def test_who_pays_is_stopped_first_and_a_refusal_stops_no_other(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    refused = {RELAY: 2, RATES: 99}
    put = client.put_function_concurrency

    def putting(FunctionName: str, ReservedConcurrentExecutions: int) -> None:
        asked.append(FunctionName)
        refused[FunctionName] = refused.get(FunctionName, 0) - 1
        if refused[FunctionName] >= 0:
            raise client.exceptions.ResourceConflictException(
                {"Error": {"Code": "ResourceConflictException"}}, "PutFunctionConcurrency"
            )
        put(FunctionName=FunctionName, ReservedConcurrentExecutions=ReservedConcurrentExecutions)

    monkeypatch.setattr(client, "put_function_concurrency", putting)
    left = function_settings.stop(client, names(), wait=lambda _: None)
    assert asked[:2] == [PAYOUT, f"gateway-{STAGE}-collect"] and list(left) == [RATES] and "ResourceConflict" in left[RATES]
    assert function_settings.stopped(client, names()) == [name for name in names() if name != RATES]


def test_where_there_is_no_room_for_a_reserve_it_is_called_without(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function_settings.settle(client, STAGE, names())
    function_settings.stop(client, names())
    monkeypatch.setenv("MOTO_LAMBDA_CONCURRENCY_QUOTA", "115")
    function_settings.settle(client, STAGE, names(), start=True)
    assert function_settings.stopped(client, names()) == []
    assert [line for line in function_settings.wrong(client, STAGE, names()) if "a reserve of nothing" in line] != []


@pytest.mark.parametrize(("limit", "fits"), [(10, False), (46 + 100 - 1, False), (46 + 100, True), (46 + 371, True)])
def test_an_account_without_room_is_told_what_to_ask_for(
    client: Any, monkeypatch: pytest.MonkeyPatch, limit: int, fits: bool
) -> None:
    """371: 268 by queues without a reserve, three schedules, a hundred requests."""
    monkeypatch.setenv("MOTO_LAMBDA_CONCURRENCY_QUOTA", str(limit))
    if fits:
        said = function_settings.demand_room(client, STAGE)
        assert said.startswith(f"concurrency: 46 of {limit} in reserve for polls, payouts, collections and housekeeping")
        assert ("short of it below 417" in said) is (limit < 417)
        function_settings.settle(client, STAGE, names())
        assert "46 of" in function_settings.demand_room(client, STAGE), "its own reserve is not asked for twice"
        return
    with pytest.raises(CanNot, match=rf"at most {limit} functions .* 146 are needed, 46 of .* L-B99A9384"):
        function_settings.demand_room(client, STAGE)


def test_a_queue_brings_no_more_at_once_than_its_functions_reserve() -> None:
    """Lambda turns away what is above it, which SQS counts as a failure of the message."""
    from chalice.app import SQSEventConfig

    from app import app

    wanted = function_settings.declared(STAGE)
    reserved = {
        source.name: (source.maximum_concurrency, wanted[f"gateway-{STAGE}-{source.name}"].reserved)
        for source in app.event_sources
        if isinstance(source, SQSEventConfig) and wanted[f"gateway-{STAGE}-{source.name}"].reserved is not None
    }
    assert reserved == {"payout": (20, 20), "collect": (8, 8)}


def test_what_others_have_in_reserve_is_not_there(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_LAMBDA_CONCURRENCY_QUOTA", "180")
    client.put_function_concurrency(FunctionName="another", ReservedConcurrentExecutions=50)
    with pytest.raises(CanNot, match="196 are needed"):
        function_settings.demand_room(client, STAGE)


def test_loops_are_allowed_to_what_sends_to_its_own_queue() -> None:
    """By the rights to send. The slow deliveries' function is the deliveries' with another queue."""
    own = {
        name for name, rights in FUNCTIONS.items() if rights.consumes in rights.sends or f"{rights.consumes}-slow" in rights.sends
    }
    allowed = {name for name, wanted in function_settings.declared(STAGE).items() if wanted.circles}
    assert allowed == {f"gateway-{STAGE}-{name}" for name in own | {"deliver_slow"}}
