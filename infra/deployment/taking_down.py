"""Takes down what Chalice made of a stage: API, mappings, rules, functions, roles. The stacks stay, with all that is money in them:
tables, keys, archive and queues are there for the next deploy, which works with them as before. Only the API's URL is another then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from chalicelib.settings import APP, Settings
from infra.deploy import TEMPLATE, stack_name
from infra.deployment import elsewhere, extras, gateway_stage, key_stack, record, retained, standing
from infra.deployment.bucket import Bucket
from infra.deployment.code import adopt, chalice
from infra.deployment.lock import Lock
from infra.deployment.stack import Stack, listed

_NAMED = {"AWS::DynamoDB::Table": "table", "AWS::KMS::Key": "key", "AWS::S3::Bucket": "bucket"}
"""What is told by name; of the rest how many there are."""
_COUNTED = {
    "AWS::CloudWatch::Alarm": "alarms",
    "AWS::KMS::Alias": "aliases of keys",
    "AWS::Logs::LogGroup": "log groups",
    "AWS::Logs::MetricFilter": "metric filters",
    "AWS::SQS::Queue": "queues",
}

_ROLE = "iam_role"


def preview(session: Any, bucket: Bucket, stage: str, project: Path) -> list[str]:
    """What goes, a line each. Raises CanNot where nothing of the stage stands in this account and region, and nothing is recorded
    there, as a `delete` that was cut leaves it; botocore's ClientError."""
    shared, resources = adopt(session, bucket, stage, project)
    if shared is None and not resources:
        raise elsewhere.not_here(session, bucket, stage)
    other = elsewhere.look(session, bucket, stage)
    goes = Counter(each["resource_type"] for each in resources)
    roles = f"stay: {goes[_ROLE]} roles, also of stage {stage} {other}" if other else f"goes: {goes[_ROLE]} roles"
    return [
        bucket.where,
        f"goes: {goes['lambda_function']} functions, {goes['cloudwatch_event']} schedules, {goes['sqs_event']} mappings",
        roles,
        f"goes: {goes['rest_api']} REST API; the next deploy has another URL",
        "stays: the stacks, with what is money in them",
        "until the next deploy no payment is seen, paid out or told to anybody",
    ]


def take_down(session: Any, bucket: Bucket, lock: Lock, tell: Callable[[str], None], project: Path) -> None:
    """Have Chalice delete what stands, whoever deployed it. Safe to repeat after a cut: what stood is in the shared record until
    the end. Roles that functions of another region may have stay, in the record too: it takes them once those are gone.

    Raises CanNot where Chalice fails, the lock is lost or two APIs serve the stage; botocore's ClientError.
    """
    shared, resources = adopt(session, bucket, lock.stage, project)
    etag = shared.etag if shared else record.store(bucket, lock.stage, resources, None)
    other = elsewhere.look(session, bucket, lock.stage)
    left = [each for each in resources if other and each["resource_type"] == _ROLE]
    record.write_file(record.file_of(project, lock.stage), [each for each in resources if each not in left])
    chalice(project, lock, tell, delete=True)
    lock.demand()
    record.store(bucket, lock.stage, left, etag)
    if left:
        tell(f"kept: {len(left)} roles, also of stage {lock.stage} {other}")
    if left and other.silent and not other.stands:
        tell("if it does not stand there, as administrator, for each role of theirs:")
        for name in sorted(each["role_name"] for each in left):
            tell(f"  aws iam delete-role-policy --role-name {name} --policy-name {name}; aws iam delete-role --role-name {name}")


def kept_beside(session: Any, bucket: Bucket, stage: str) -> Iterator[str]:
    """What stays outside of the two stacks, a line each: what is theirs otherwise, optional stacks, parameters, secrets, the
    bucket, the role for logs. Raises botocore's ClientError."""
    main, keys = (Stack(session.client("cloudformation"), bucket, name) for name in (stack_name(stage), key_stack.name_of(stage)))
    inside = {**main.holds(), **keys.holds()}  # keys may be in the main stack still
    alone = {
        **retained.look(session, TEMPLATE.read_text(), stage, inside, bucket).found,
        **key_stack.outside(session.client("kms"), stage, inside),
    }
    yield from sorted(
        f"kept: {_NAMED[each.type]} {next(iter(each.identifier.values()))}, in no stack; deploy brings it in again"
        for each in alone.values()
        if each.type in _NAMED
    )
    for name, state in extras.states(session.client("cloudformation"), stage).items():
        yield f"kept: stack {APP}-{stage}-{name} ({state}), until platform {name} --remove"
    settings = Settings(stage=stage)
    yield f"kept: parameters {settings.ceiling_parameter('')}…, the ceilings of address indexes"
    yield f"kept: secrets {settings.node_secret('')}… of nodes, if any, in AWS Secrets Manager"
    yield f"kept: bucket {bucket.name}, of all stages, with the versions that were deployed"
    if standing.role_is_there(session.client("iam"), gateway_stage.ROLE):
        yield f"kept: role {gateway_stage.ROLE}, by which API Gateway writes logs"


def kept(formation: Any, *stacks: str) -> list[str]:
    """What the stacks still hold, and which of them is not there, a line each. Raises botocore's ClientError.

    What was not made, or is deleted, is listed beside it: by AWS without a physical id or by its status, by moto, which makes no
    alarms, without any name. It is left out.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackResourceSummary.html
    """
    found = {stack: listed(formation, stack) for stack in stacks}
    missing = [f"there is no stack {stack}" for stack, every in found.items() if every is None]
    every = [
        (each["ResourceType"], each["PhysicalResourceId"])
        for each in chain.from_iterable(each or () for each in found.values())
        if each.get("PhysicalResourceId") and each["ResourceStatus"] != "DELETE_COMPLETE"
    ]
    named = sorted(f"kept: {_NAMED[kind]} {name}" for kind, name in every if kind in _NAMED)
    rest = Counter(_COUNTED.get(kind, f"of {kind}") for kind, _ in every if kind not in _NAMED)
    return missing + named + [f"kept: {count} {words}" for words, count in sorted(rest.items())]
