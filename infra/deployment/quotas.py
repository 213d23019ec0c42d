"""What of an account's quotas a deploy would meet half-way: looked at before it begins, by counts and by what AWS tells of them.

Concurrency is `function_settings.demand_room`'s. What can not be met by a few dozen things of each kind is not looked at
(docs/aws.md names it).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.deployment import gateway_stage, standing
from infra.deployment.platform_settings import of_stage
from infra.deployment.standing import Standing

PACKAGE = 50 * 1024 * 1024
"""Bytes that a package has at most: Lambda takes no larger one directly."""
_RULES, _FEW_RULES, _FEW = "L-244521F2", 100, ("af-south-1", "eu-south-1")
"""The code of the quota of rules, where the default is not 300, and what it is there.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
"""
_DENIED = ("AccessDenied", "AccessDeniedException")


class Room(NamedTuple):
    """How many are needed beside those that stand, in the account's words; where to ask for more."""

    what: str
    needed: int
    used: int
    limit: int
    ask: str

    def __str__(self) -> str:
        return f"{self.needed} more {self.what} needed, and the account has {self.used} of {self.limit}: ask for more by {self.ask}"


def demand(session: Any, stage: str, found: Standing) -> list[str]:
    """Lines about what is near its end. Raises CanNot where something of a deploy could not be made, botocore's ClientError."""
    lines, missing = list[str](), list[str]()
    with _telling_denials(lines):
        lines += _throttle(session, stage)
    for look in (_code, _roles, _rules):
        with _telling_denials(lines):
            room = look(session, stage, found)
            if room is not None and room.used + room.needed > room.limit:
                missing.append(str(room))
    if missing:
        raise CanNot(f"{'; '.join(missing)}. Nothing was changed")
    return lines


@contextmanager
def _telling_denials(lines: list[str]) -> Iterator[None]:
    """What may not be looked at is a line; a deploy needs it for nothing else. Raises botocore's ClientError of anything else."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in _DENIED:
            raise
        lines.append(f"a quota was not looked at: {error}")


def _new(stage: str, found: Standing) -> int:
    return len(set(standing.declared(stage)) - found.functions.keys())


def _code(session: Any, stage: str, found: Standing) -> Room | None:
    """Bytes of all packages: each function has its own, though they are alike; 75 GB.

    https://docs.aws.amazon.com/lambda/latest/api/API_GetAccountSettings.html
    """
    if not (new := _new(stage, found)):
        return None
    told = session.client("lambda").get_account_settings()
    used, limit = told["AccountUsage"]["TotalCodeSize"], told["AccountLimit"]["TotalCodeSize"]
    return Room("bytes for functions' packages", new * PACKAGE, used, limit, _request("lambda", "L-2ACBD22F"))


def _roles(session: Any, stage: str, found: Standing) -> Room | None:
    """Each function has a role, API Gateway's logs one more where nobody made it yet; 1,000 in an account.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetAccountSummary.html
    """
    if not (new := _new(stage, found)):
        return None
    needed = new + gateway_stage.makes_role(session, stage)
    told = session.client("iam").get_account_summary()["SummaryMap"]
    return Room("roles", needed, told["Roles"], told["RolesQuota"], _request("iam", "L-FE177D64", "us-east-1"))


def _rules(session: Any, stage: str, found: Standing) -> Room | None:
    """Rules of the default bus, one for each schedule."""
    from chalice.app import ScheduledEventConfig

    from app import app

    wanted = {f"{APP}-{stage}-{each.name}-event" for each in app.event_sources if isinstance(each, ScheduledEventConfig)}
    if not (new := len(wanted - {*found.rules})):
        return None
    events = session.client("events")
    used = sum(len(page["Rules"]) for page in events.get_paginator("list_rules").paginate())
    default = _FEW_RULES if events.meta.region_name in _FEW else 300
    return Room("rules of EventBridge", new, used, _applied(session, "events", _RULES, default), _request("events", _RULES))


def _applied(session: Any, service: str, code: str, default: int) -> int:
    """The account's own quota; a default where Service Quotas knows none of its own.

    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
    """
    try:
        return int(session.client("service-quotas").get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        return default


def _throttle(session: Any, stage: str) -> list[str]:
    """A line or none about the requests that all APIs of an account may have together: 10,000 a second, in smaller regions 2,500.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
    """
    told, wanted = session.client("apigateway").get_account().get("throttleSettings", {}), of_stage(stage)
    rate, burst = told.get("rateLimit", wanted.throttle_rate), told.get("burstLimit", wanted.throttle_burst)
    if rate >= wanted.throttle_rate and burst >= wanted.throttle_burst:
        return []
    return [
        f"API Gateway lets {rate:.0f} requests a second and {burst} at once through to all APIs of the account, fewer than the"
        f" {wanted.throttle_rate} and {wanted.throttle_burst} of config.json's platform: {_request('apigateway', 'L-8A5B8E43')}"
    ]


def _request(service: str, code: str, region: str = "") -> str:
    """The command that asks for more; IAM's quotas are asked for in one region.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    """
    said = f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} --desired-value NUMBER"
    return f"{said} --region {region}" if region else said
