"""Which rights the functions' calls to AWS need, and whether their policies give them.

moto enforces no policies of roles. So the calls are recorded where botocore sends them, each with the function that was at
work, and looked up in the policy files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.deploy.declared import API, CHALICE, function_settings, functions

Call = tuple[str, str, str]
"""Function, IAM action, ARN."""
_OF_TRANSACTION = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


class Recorder:
    def __init__(self) -> None:
        self.function = API
        self.calls: set[Call] = set()
        self.items: set[tuple[str, str, str, str]] = set()
        """Function, IAM action, ARN of a table, and the partition key that was asked for; queries of indexes are not among them."""

    def note(self, service: str, operation: str, sent: dict[str, Any]) -> None:
        self.calls |= {(self.function, action, arn) for action, arn in needed(service, operation, sent)}
        if service == "dynamodb":
            self.items |= {
                (self.function, f"dynamodb:{a}", f"arn:aws:dynamodb:r:1:table/{t}", pk) for a, t, pk in _items(operation, sent)
            }


def needed(service: str, operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    """The IAM actions and resources that a call needs.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html (transactions need the rights
    of their parts), .../list_amazonsqs.html, .../list_awskeymanagementservice.html
    """
    if service == "dynamodb":
        return {(f"dynamodb:{action}", f"arn:aws:dynamodb:r:1:table/{table}") for action, table in _of_tables(operation, sent)}
    if service == "sqs":
        queue = sent.get("QueueName") or sent["QueueUrl"].rsplit("/", 1)[1]
        # A batch is sent by the right to send: .../AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
        return {(f"sqs:{operation.removesuffix('Batch')}", f"arn:aws:sqs:r:1:{queue}")}
    if service == "s3":
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
        return {(f"s3:{operation}", f"arn:aws:s3:::{sent['Bucket']}/{sent['Key']}")}
    if service == "sts":
        return set()  # GetCallerIdentity: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
    if service == "ssm":
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
        names = sent["Names"] if "Names" in sent else [sent["Name"]]
        return {(f"ssm:{operation}", f"arn:aws:ssm:r:1:parameter{name}") for name in names}
    if service == "secretsmanager":
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssecretsmanager.html
        # A hyphen and six characters follow the name: https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html
        return {(f"secretsmanager:{operation}", f"arn:aws:secretsmanager:r:1:secret:{sent['SecretId']}-a1B2c3")}
    if service == "kms":
        if operation == "CreateKey":
            return {("kms:CreateKey", "*"), ("kms:TagResource", "arn:aws:kms:r:1:key/k")}
        if operation == "CreateAlias":
            return {("kms:CreateAlias", "arn:aws:kms:r:1:key/k"), ("kms:CreateAlias", f"arn:aws:kms:r:1:{sent['AliasName']}")}
        return {(f"kms:{operation}", "arn:aws:kms:r:1:key/k")}
    return {(f"{service}:{operation}", "*")}


def _of_tables(operation: str, sent: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if operation == "TransactWriteItems":
        for item in sent["TransactItems"]:
            for part, body in item.items():
                yield _OF_TRANSACTION[part], body["TableName"]
    elif operation == "TransactGetItems":
        for item in sent["TransactItems"]:
            yield "GetItem", item["Get"]["TableName"]
    elif operation in ("BatchGetItem", "BatchWriteItem"):
        for table in sent["RequestItems"]:
            yield operation, table
    elif "IndexName" in sent:
        yield operation, f"{sent['TableName']}/index/{sent['IndexName']}"
    else:
        yield operation, sent["TableName"]


def _items(operation: str, sent: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """IAM action, table and partition key."""
    if operation in ("TransactWriteItems", "TransactGetItems"):
        for item in sent["TransactItems"]:
            for part, body in item.items():
                yield _OF_TRANSACTION.get(part, "GetItem"), body["TableName"], (body.get("Key") or body["Item"])["pk"]["S"]
    elif operation == "BatchGetItem":
        for table, asked in sent["RequestItems"].items():
            for key in asked["Keys"]:
                yield operation, table, key["pk"]["S"]
    elif operation == "Query" and "IndexName" not in sent:
        names = sent.get("ExpressionAttributeNames", {})
        for name, value in re.findall(r"(#?\w+) = (:\w+)", sent["KeyConditionExpression"]):
            if names.get(name, name) == "pk":
                yield operation, sent["TableName"], sent["ExpressionAttributeValues"][value]["S"]
    elif "Key" in sent or "Item" in sent:
        yield operation, sent["TableName"], (sent.get("Key") or sent["Item"])["pk"]["S"]


def allowed(policy: dict[str, Any], action: str, arn: str, partition: str | None = None) -> bool:
    """`partition` is held against the condition on partition keys. Other conditions are not looked at: those of KMS are compared
    with what is sent in test_policies.py."""
    if any(
        any(fnmatchcase(action, a) for a in statement["Action"]) and "Condition" not in statement
        for statement in policy["Statement"]
        if statement["Effect"] == "Deny"
    ):
        return False
    return any(
        any(fnmatchcase(action, a) for a in statement["Action"])
        and any(fnmatchcase(arn, r) for r in statement["Resource"])
        and (partition is None or any(fnmatchcase(partition, prefix) for prefix in _partitions(statement)))
        for statement in policy["Statement"]
        if statement["Effect"] == "Allow"
    )


def _partitions(statement: dict[str, Any]) -> list[str]:
    found: list[str] = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", ["*"])
    return found


def policies() -> dict[str, Any]:
    return {f: json.loads((CHALICE / function_settings("local", f)["iam_policy_file"]).read_text()) for f in functions()}


def refused(calls: set[Call]) -> list[Call]:
    """Those that their function's policy does not allow."""
    rights = policies()
    return sorted(call for call in calls if not allowed(rights[call[0]], *call[1:]))


def refused_items(items: set[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """Those whose partition key their function's policy does not allow."""
    rights = policies()
    return sorted(item for item in items if not allowed(rights[item[0]], *item[1:]))


def recording(patch: pytest.MonkeyPatch, into: Recorder | None = None) -> Recorder:
    """From now on every call to AWS is noted, until `patch` is undone."""
    found = into or Recorder()
    send = BaseClient._make_api_call

    def noted(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        found.note(self.meta.service_model.service_name, operation, sent)
        return send(self, operation, sent)

    patch.setattr(BaseClient, "_make_api_call", noted)
    return found
