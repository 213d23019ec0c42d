"""What stands of the main stack's resources and is not in it: kept when somebody deleted the stack, or made again by functions that
ran on. It is brought in by resource import, since CloudFormation makes nothing whose name is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.deployment import index_steps
from infra.deployment.bucket import Bucket
from infra.deployment.stack import Existing, Given, Stack
from infra.deployment.template_nodes import applies, named, of, properties_of, replaced, resources, retaining, type_of

TABLE, BUCKET, LOGS = "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::Logs::LogGroup"


@dataclass(frozen=True, slots=True)
class Outside:
    """What stands of the template and is not in its stack, by logical id."""

    tables: Mapping[str, index_steps.Table]
    groups: Mapping[str, int | None]
    """Days that a log group keeps what it has, None for ever."""
    found: Mapping[str, Existing]
    """All of it, the bucket too."""


def look(session: Any, text: str, stage: str, inside: Collection[str], bucket: Bucket) -> Outside:
    """What stands beside what is `inside`. `bucket` says which account and region. Raises botocore's ClientError."""
    wanted = [
        logical
        for logical, each in resources(text).items()
        if logical not in inside and type_of(each) in (TABLE, BUCKET, LOGS) and applies(text, logical, stage)
    ]
    tables = _tables(session.client("dynamodb"), text, stage, wanted)
    groups = _groups(session.client("logs"), text, stage, wanted)
    found = {
        **{logical: Existing(TABLE, {"TableName": _name(text, stage, logical, "TableName")}) for logical in tables},
        **_buckets(session.client("s3"), text, stage, wanted, bucket),
        **{logical: Existing(LOGS, {"LogGroupName": _name(text, stage, logical, "LogGroupName")}) for logical in groups},
    }
    return Outside(tables, groups, found)


def bring_back(session: Any, main: Stack, text: str, stage: str, given: Given, tell: Callable[[str], None]) -> bool:
    """Have the stack take what stands outside of it, as it is; whether there was any. Safe to repeat after a cut.

    Log groups go with their stack, and functions that still run make them again. Raises CanNot where a table is encrypted with
    another key than the stage's, or CloudFormation refuses; botocore's ClientError.
    """
    outside = look(session, text, stage, main.holds() if main.stands() else (), main.bucket)
    if not outside.found:
        return False
    for logical, table in outside.tables.items():
        if table.key and given["TablesKeyArn"] and table.key != given["TablesKeyArn"]:
            raise CanNot(
                f"{_name(text, stage, logical, 'TableName')} is encrypted with {table.key}, and not with {given['TablesKeyArn']}:"
                f" have alias/{APP}-{stage}-tables lead to the table's key again"
            )
    tell(f"the stack {main.name} takes {words(outside)} that stand already")
    days = {logical: {"RetentionInDays": each} for logical, each in outside.groups.items()}
    as_it_is = replaced(index_steps.as_they_stand(text, outside.tables), days)
    main.bring_in(retaining(as_it_is, outside.groups), given, outside.found)
    return True


def words(outside: Outside) -> str:
    """How many of each kind, for the operator."""
    kinds = {"tables": len(outside.tables), "log groups": len(outside.groups)}
    kinds["buckets"] = len(outside.found) - sum(kinds.values())
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)


def holder_of_money(session: Any, text: str, stage: str) -> str | None:
    """The name of a table that stands and holds money, None where there is none. Raises botocore's ClientError."""
    dynamodb = session.client("dynamodb")
    return next((name for name in index_steps.protected_names(text, stage) if index_steps.table_of(dynamodb, name)), None)


def unprotected(dynamodb: Any, text: str, stage: str) -> list[str]:
    """The names of tables that hold money and are not protected from deletion. Raises botocore's ClientError."""
    found = {name: index_steps.table_of(dynamodb, name) for name in index_steps.protected_names(text, stage)}
    return [name for name, table in found.items() if table and not table.protected]


def _tables(dynamodb: Any, text: str, stage: str, wanted: list[str]) -> dict[str, index_steps.Table]:
    found = {}
    for logical in wanted:
        if type_of(resources(text)[logical]) == TABLE:
            table = index_steps.table_of(dynamodb, _name(text, stage, logical, "TableName"))
            if table is not None:
                found[logical] = table
    return found


def _buckets(s3: Any, text: str, stage: str, wanted: list[str], bucket: Bucket) -> dict[str, Existing]:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html lists the account's own, and no other's."""
    found = {}
    for logical in wanted:
        if type_of(resources(text)[logical]) == BUCKET:
            name = _name(text, stage, logical, "BucketName")
            name = name.replace("${AWS::AccountId}", bucket.owner).replace("${AWS::Region}", bucket.region)
            if name in [each["Name"] for each in s3.list_buckets()["Buckets"]]:
                found[logical] = Existing(BUCKET, {"BucketName": name})
    return found


def _groups(logs: Any, text: str, stage: str, wanted: list[str]) -> dict[str, int | None]:
    mine = {_name(text, stage, each, "LogGroupName"): each for each in wanted if type_of(resources(text)[each]) == LOGS}
    if not mine:
        return {}
    prefixes = (f"/aws/lambda/{APP}-{stage}", f"/aws/apigateway/{APP}-{stage}")
    pages = (page for prefix in prefixes for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix))
    every: list[Mapping[str, Any]] = [each for page in pages for each in page["logGroups"]]
    return {mine[each["logGroupName"]]: each.get("retentionInDays") for each in every if each["logGroupName"] in mine}


def _name(text: str, stage: str, logical: str, name: str) -> str:
    return named(of(properties_of(resources(text)[logical]), name), stage)
