"""What a first deploy would meet of an account's quotas is said before anything is made; for what stands no room is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.apigateway.models import Account
from moto.iam.models import AccountSummary

from infra.cli import main
from infra.commands.common import CanNot
from infra.deployment import quotas, standing
from infra.deployment.quotas import PACKAGE
from infra.deployment.standing import Standing
from infra.local import repairs
from infra.local.repairs import functions

STAGE = "prod"
NOTHING = Standing({}, (), (), (), ())
FUNCTIONS, RULES = 22, 12


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    repairs.install_for_deploying()
    with mock_aws():
        yield boto3


def test_an_empty_account_has_room(session: Any) -> None:
    assert len(standing.declared(STAGE)) == FUNCTIONS
    assert quotas.demand(session, STAGE, NOTHING) == []


@pytest.mark.parametrize(("free", "fits"), [(FUNCTIONS * PACKAGE, True), (FUNCTIONS * PACKAGE - 1, False)])
def test_packages(session: Any, monkeypatch: pytest.MonkeyPatch, free: int, fits: bool) -> None:
    monkeypatch.setattr(functions, "_CODE", free)
    expect(session, fits, f"{FUNCTIONS * PACKAGE} more bytes for functions' packages needed, and the account has 0 of {free}")


@pytest.mark.parametrize(("others", "fits"), [(1000 - FUNCTIONS - 1, True), (1000 - FUNCTIONS, False)])
def test_roles(session: Any, monkeypatch: pytest.MonkeyPatch, others: int, fits: bool) -> None:
    """One more than functions: API Gateway's logs have theirs, where it is not made yet."""
    monkeypatch.setattr(AccountSummary, "_roles", property(lambda self: others), raising=False)
    assert session.client("iam").get_account_summary()["SummaryMap"]["Roles"] == others
    expect(session, fits, f"{FUNCTIONS + 1} more roles needed, and the account has {others} of 1000")
    session.client("iam").create_role(RoleName="gateway-access-log", AssumeRolePolicyDocument='{"Version": "2012-10-17"}')
    expect(session, True, "")


@pytest.mark.parametrize(("others", "fits"), [(100 - RULES, True), (100 - RULES + 1, False)])
def test_rules(session: Any, monkeypatch: pytest.MonkeyPatch, others: int, fits: bool) -> None:
    """In a region where they are few by default; pages are counted together."""
    monkeypatch.setattr(quotas, "_FEW", (os.environ.get("AWS_DEFAULT_REGION") or boto3.client("events").meta.region_name,))
    events = session.client("events")
    for number in range(others):
        events.put_rule(Name=f"other-{number}", ScheduleExpression="rate(1 day)")
    expect(session, fits, f"{RULES} more rules of EventBridge needed, and the account has {others} of 100")


def test_an_accounts_own_quota_counts(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """moto knows none but those of networks."""
    answer(monkeypatch, "GetServiceQuota", {"Quota": {"Value": float(RULES - 1)}})
    with pytest.raises(CanNot, match=rf"and the account has 0 of {RULES - 1}: ask for more by aws service-quotas request-"):
        quotas.demand(session, STAGE, NOTHING)


def test_what_stands_is_not_asked_for(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full account can be deployed to again."""
    monkeypatch.setattr(functions, "_CODE", 0)
    functions_that_stand: Any = dict.fromkeys(standing.declared(STAGE))
    stands = replace(NOTHING, functions=functions_that_stand, rules=tuple(scheduled()))
    answer(monkeypatch, "GetServiceQuota", {"Quota": {"Value": 0.0}})
    assert quotas.demand(session, STAGE, stands) == []


@pytest.mark.parametrize(
    ("operation", "code", "right", "told"),
    [
        ("GetAccountSummary", "AccessDenied", "iam:GetAccountSummary", 1),
        ("GetAccount", "AccessDeniedException", "apigateway:GET", 2),  # of requests, and of roles: which is set for logs
    ],
)
def test_what_may_not_be_looked_at_is_told(
    session: Any, monkeypatch: pytest.MonkeyPatch, operation: str, code: str, right: str, told: int
) -> None:
    denied = {"Error": {"Code": code, "Message": f"not authorized to perform: {right}"}}
    answer(monkeypatch, operation, ClientError(denied, operation))
    said = quotas.demand(session, STAGE, NOTHING)
    assert len(said) == told
    assert all(line.startswith("a quota was not looked at: ") and right in line for line in said)


def test_requests_that_the_account_lets_through(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Account.__init__

    def small(self: Account) -> None:
        made(self)
        self.throttle_settings = {"rateLimit": 400.0, "burstLimit": 5000}

    monkeypatch.setattr(Account, "__init__", small)
    (line,) = quotas.demand(session, STAGE, NOTHING)
    assert line.startswith(
        "API Gateway lets 400 requests a second and 5000 at once through to all APIs of the account, fewer than the 500"
    )


def test_a_deploy_that_would_be_cut_by_a_quota_does_not_begin(
    session: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(functions, "_CODE", 1)
    monkeypatch.setattr("infra.lambda_platform.demand_python", lambda project: None)
    topic = session.client("sns").create_topic(Name="alarms")["TopicArn"]
    assert main(["--stage", STAGE, "deploy", "--yes", "--alarm-topic", topic]) == 1
    assert "bytes for functions' packages needed" in capsys.readouterr().err
    assert session.client("s3").list_buckets()["Buckets"] == []


def expect(session: Any, fits: bool, said: str) -> None:
    if fits:
        assert quotas.demand(session, STAGE, NOTHING) == []
        return
    with pytest.raises(CanNot) as refused:
        quotas.demand(session, STAGE, NOTHING)
    assert str(refused.value).startswith(said) and str(refused.value).endswith("Nothing was changed")


def scheduled() -> list[str]:
    from chalice.app import ScheduledEventConfig

    from app import app

    return [f"gateway-{STAGE}-{each.name}-event" for each in app.event_sources if isinstance(each, ScheduledEventConfig)]


def answer(patch: pytest.MonkeyPatch, operation: str, given: dict[str, Any] | ClientError) -> None:
    """What AWS would say where moto says something else."""
    call = BaseClient._make_api_call

    def answered(self: BaseClient, asked: str, sent: dict[str, Any]) -> Any:
        if asked != operation:
            return call(self, asked, sent)
        if isinstance(given, ClientError):
            raise given
        return given

    patch.setattr(BaseClient, "_make_api_call", answered)
