"""Which rights a call to AWS needs, and whether a policy gives them. moto enforces no policies of roles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

_OF_TRANSACTION = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


def needed(service: str, operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    """The IAM actions and resources that a call needs.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html (transactions need the rights
    of their parts), .../list_amazonsqs.html, .../list_awskeymanagementservice.html
    """
    of = _OF_SERVICE.get(service)
    return {(f"{service}:{operation}", "*")} if of is None else of(operation, sent)


def _dynamodb(operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    return {(f"dynamodb:{action}", f"arn:aws:dynamodb:r:1:table/{table}") for action, table in _of_tables(operation, sent)}


def _sqs(operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    """A batch is sent by the right to send.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
    """
    queue = sent.get("QueueName") or sent["QueueUrl"].rsplit("/", 1)[1]
    return {(f"sqs:{operation.removesuffix('Batch')}", f"arn:aws:sqs:r:1:{queue}")}


def _s3(operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    """https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html"""
    return {(f"s3:{operation}", f"arn:aws:s3:::{sent['Bucket']}/{sent['Key']}")}


def _sts(operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    """GetCallerIdentity needs none: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html"""
    return set()


def _ssm(operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    """https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html"""
    names = sent["Names"] if "Names" in sent else [sent["Name"]]
    return {(f"ssm:{operation}", f"arn:aws:ssm:r:1:parameter{name}") for name in names}


def _secretsmanager(operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    """A hyphen and six characters follow the name: https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssecretsmanager.html
    """
    return {(f"secretsmanager:{operation}", f"arn:aws:secretsmanager:r:1:secret:{sent['SecretId']}-a1B2c3")}


def _kms(operation: str, sent: dict[str, Any]) -> set[tuple[str, str]]:
    if operation == "CreateKey":
        return {("kms:CreateKey", "*"), ("kms:TagResource", "arn:aws:kms:r:1:key/k")}
    if operation == "CreateAlias":
        return {("kms:CreateAlias", "arn:aws:kms:r:1:key/k"), ("kms:CreateAlias", f"arn:aws:kms:r:1:{sent['AliasName']}")}
    return {(f"kms:{operation}", "arn:aws:kms:r:1:key/k")}


_OF_SERVICE = {
    "dynamodb": _dynamodb,
    "sqs": _sqs,
    "s3": _s3,
    "sts": _sts,
    "ssm": _ssm,
    "secretsmanager": _secretsmanager,
    "kms": _kms,
}


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


def items(operation: str, sent: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """IAM action, table and partition key."""
    if operation in ("TransactWriteItems", "TransactGetItems"):
        for item in sent["TransactItems"]:
            for part, body in item.items():
                yield _OF_TRANSACTION.get(part, "GetItem"), body["TableName"], (body.get("Key") or body["Item"])["pk"]["S"]
    elif operation == "BatchGetItem":
        yield from ((operation, table, key["pk"]["S"]) for table, asked in sent["RequestItems"].items() for key in asked["Keys"])
    elif operation == "Query" and "IndexName" not in sent:
        yield from ((operation, sent["TableName"], key) for key in _queried(sent))
    elif "Key" in sent or "Item" in sent:
        yield operation, sent["TableName"], (sent.get("Key") or sent["Item"])["pk"]["S"]


def _queried(sent: dict[str, Any]) -> Iterator[str]:
    names = sent.get("ExpressionAttributeNames", {})
    for name, value in re.findall(r"(#?\w+) = (:\w+)", sent["KeyConditionExpression"]):
        if names.get(name, name) == "pk":
            yield sent["ExpressionAttributeValues"][value]["S"]


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
