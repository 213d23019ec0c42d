"""Takes down what Chalice made of a stage: API, mappings, rules, functions, roles. The stacks stay, with all that is money in them:
tables, keys, archive and queues are there for the next deploy, which works with them as before. Only the API's URL is another then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chalicelib.settings import APP, Settings
from infra.deployment import extras, gateway_stage, record, standing
from infra.deployment.bucket import Bucket
from infra.deployment.code import adopt, chalice
from infra.deployment.lock import Lock

_NAMED = {"AWS::DynamoDB::Table": "table", "AWS::KMS::Key": "key", "AWS::S3::Bucket": "bucket"}
"""What is told by name; of the rest how many there are."""
_COUNTED = {
    "AWS::CloudWatch::Alarm": "alarms",
    "AWS::KMS::Alias": "aliases of keys",
    "AWS::Logs::LogGroup": "log groups",
    "AWS::Logs::MetricFilter": "metric filters",
    "AWS::SQS::Queue": "queues",
}


def preview(session: Any, bucket: Bucket, stage: str) -> list[str]:
    """What goes, a line each. Raises botocore's ClientError."""
    found = standing.look(session, stage)
    return [
        f"account {bucket.owner}, region {bucket.region}, as {bucket.caller}",
        f"goes: {len(found.functions)} functions with their roles, {len(found.rules)} schedules, {len(found.mappings)} mappings",
        f"goes: {len(found.apis)} REST API; the next deploy has another URL",
        "stays: the stacks, with what is money in them",
        "until the next deploy no payment is seen, paid out or told to anybody",
    ]


def take_down(session: Any, bucket: Bucket, lock: Lock, tell: Callable[[str], None], project: Path) -> None:
    """Have Chalice delete what stands, whoever deployed it. Safe to repeat after a cut.

    Raises CanNot where Chalice fails, the lock is lost or two APIs serve the stage; botocore's ClientError.
    """
    shared, resources = adopt(session, bucket, lock.stage, project)
    record.write_file(record.file_of(project, lock.stage), resources)
    chalice(project, lock, tell, delete=True)
    lock.demand()
    record.store(bucket, lock.stage, (), shared.etag if shared else None)


def kept_beside(session: Any, bucket: Bucket, stage: str) -> Iterator[str]:
    """What stays outside of the two stacks, a line each: optional stacks, parameters, secrets, the bucket, the role for logs.
    Raises botocore's ClientError."""
    for name, state in extras.states(session.client("cloudformation"), stage).items():
        yield f"kept: stack {APP}-{stage}-{name} ({state}), until platform {name} --remove"
    settings = Settings(stage=stage)
    yield f"kept: parameters {settings.ceiling_parameter('')}…, the ceilings of address indexes"
    yield f"kept: secrets {settings.node_secret('')}… of nodes, if any, in AWS Secrets Manager"
    yield f"kept: bucket {bucket.name}, of all stages, with the versions that were deployed"
    if standing.role_is_there(session.client("iam"), gateway_stage.ROLE):
        yield f"kept: role {gateway_stage.ROLE}, by which API Gateway writes logs"


def kept(formation: Any, *stacks: str) -> list[str]:
    """What the stacks still hold, a line each. Raises botocore's ClientError.

    What was not made, or is deleted, is listed beside it: by AWS without a physical id or by its status, by moto, which makes no
    alarms, without any name. It is left out.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackResourceSummary.html
    """
    pages = [page for stack in stacks for page in formation.get_paginator("list_stack_resources").paginate(StackName=stack)]
    every = [
        (each["ResourceType"], each["PhysicalResourceId"])
        for page in pages
        for each in page["StackResourceSummaries"]
        if each.get("PhysicalResourceId") and each["ResourceStatus"] != "DELETE_COMPLETE"
    ]
    named = sorted(f"kept: {_NAMED[kind]} {name}" for kind, name in every if kind in _NAMED)
    rest = Counter(_COUNTED.get(kind, f"of {kind}") for kind, _ in every if kind not in _NAMED)
    return named + [f"kept: {count} {words}" for words, count in sorted(rest.items())]
