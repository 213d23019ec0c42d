"""All that a deploy leaves, as one record that two accounts can be compared by: without ids and times."""

from __future__ import annotations

import json
import re
from typing import Any

import boto3

from infra.deployment import record, versions
from infra.deployment.bucket import bucket_of
from infra.deployment.function_settings import standing
from infra.deployment.standing import is_of, look


def dump(stage: str) -> dict[str, Any]:
    """Functions with their configuration and code, policies, mappings, rules, API, stack, alarms, logs, and the shared record.

    moto has no GetExport: of the API it is resources, methods, integrations, answers and stages, one by one."""
    found, alarms = look(boto3, stage), boto3.client("cloudwatch").get_paginator("describe_alarms").paginate()
    whole = {
        "functions": {name: _function(name) for name in sorted(found.functions)},
        "mappings": sorted(map(_mapping, boto3.client("lambda").list_event_source_mappings()["EventSourceMappings"]), key=str),
        "rules": {rule: _rule(rule) for rule in found.rules},
        "apis": [_api(api) for api in found.every_api],
        "stack": _stack(f"gateway-{stage}"),
        "keys": {**_stack(f"gateway-{stage}-keys"), "alive": len(_alive())},
        "alarms": {each["AlarmName"]: _alarm(each) for page in alarms for each in page["MetricAlarms"]},
        "record": sorted(map(_entry, _recorded(stage)), key=str),
        # Of functions that are gone, too: a cut leaves a role before its function, or behind it.
        "roles": {name: _rights(name) for name in sorted(_roles(stage))},
        "logs": {each["logGroupName"]: each.get("retentionInDays") for each in _log_groups()},
        "locks": boto3.client("s3").list_objects_v2(Bucket=bucket_of(boto3).name, Prefix="locks/").get("Contents", []),
        "versions": _versions(stage),
        "indexes": {name: _indexes(name) for name in boto3.client("dynamodb").list_tables()["TableNames"]},
        "tables": {name: _rows(name) for name in boto3.client("dynamodb").list_tables()["TableNames"]},
    }
    text = json.dumps(whole, sort_keys=True, default=str)
    for api in found.every_api:
        text = text.replace(api, "API")
    dumped: dict[str, Any] = json.loads(text)
    return dumped


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Where two dumps differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [line for name in names for line in differences(one.get(name), other.get(name), f"{place}/{name}")]
    return [] if one == other else [f"{place}: {str(one)[:300]} / {str(other)[:300]}"]


def _roles(stage: str) -> list[str]:
    pages = boto3.client("iam").get_paginator("list_roles").paginate()
    return [each["RoleName"] for page in pages for each in page["Roles"] if is_of(stage, each["RoleName"])]


def _log_groups() -> list[Any]:
    return [each for page in boto3.client("logs").get_paginator("describe_log_groups").paginate() for each in page["logGroups"]]


def _function(name: str) -> dict[str, Any]:
    client = boto3.client("lambda")
    found: dict[str, Any] = client.get_function_configuration(FunctionName=name)
    for key in ("LastModified", "ResponseMetadata", "RevisionId"):
        found.pop(key, None)
    found["rights"] = _rights(found["Role"].rsplit("/", 1)[1])
    found["tags"] = client.list_tags(Resource=found["FunctionArn"])["Tags"]
    try:
        allowed = json.loads(client.get_policy(FunctionName=name)["Policy"])["Statement"]
    except client.exceptions.ResourceNotFoundException:
        allowed = []
    found["settings"] = standing(client, name)._asdict()
    found["allowed"] = sorted(({key: value for key, value in each.items() if key != "Sid"} for each in allowed), key=str)
    return found


def _rights(role: str) -> dict[str, Any]:
    iam = boto3.client("iam")
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return {name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}


def _mapping(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in ("UUID", "LastModified", "EventSourceMappingArn")}


def _rule(name: str) -> dict[str, Any]:
    events = boto3.client("events")
    found: dict[str, Any] = events.describe_rule(Name=name)
    found.pop("ResponseMetadata")
    return {**found, "targets": events.list_targets_by_rule(Rule=name)["Targets"]}


def _api(api: str) -> dict[str, Any]:
    gateway = boto3.client("apigateway")
    pages = gateway.get_paginator("get_resources").paginate(restApiId=api, embed=["methods"])
    routes = {each["path"]: each.get("resourceMethods", {}) for page in pages for each in page["items"]}
    about = gateway.get_rest_api(restApiId=api)
    # moto's ImportRestApi does not heed endpointConfigurationTypes.
    left_out = ("ResponseMetadata", "createdDate", "rootResourceId", "endpointConfiguration")
    answers = {each["responseType"]: each for each in gateway.get_gateway_responses(restApiId=api)["items"]}
    return {
        "routes": json.loads(re.sub(r'"cacheNamespace": "\w+"', "", json.dumps(routes, default=str))),
        "about": {key: value for key, value in about.items() if key not in left_out},
        "answers": answers,
        "stages": [{k: v for k, v in each.items() if k != "deploymentId"} for each in gateway.get_stages(restApiId=api)["item"]],
        "writes logs by": gateway.get_account().get("cloudwatchRoleArn"),
    }


def _alarm(found: Any) -> dict[str, Any]:
    return {key: value for key, value in found.items() if not key.endswith("Timestamp")}


def _stack(name: str) -> dict[str, Any]:
    formation = boto3.client("cloudformation")
    (stack,) = formation.describe_stacks(StackName=name)["Stacks"]
    return {
        "state": stack["StackStatus"].removeprefix("CREATE_").removeprefix("UPDATE_"),
        "parameters": sorted((each for each in stack["Parameters"] if each["ParameterKey"] != "TablesKeyArn"), key=str),
        "outputs": stack.get("Outputs", []),
        "template": str(formation.get_template(StackName=name)["TemplateBody"]),
        "resources": sorted(
            each["LogicalResourceId"] for each in formation.list_stack_resources(StackName=name)["StackResourceSummaries"]
        ),
    }


def _alive() -> list[str]:
    """Keys that are not on their way to be deleted: a cut makes none too many."""
    kms = boto3.client("kms")
    every = [kms.describe_key(KeyId=each["KeyId"])["KeyMetadata"] for each in kms.list_keys()["Keys"]]
    return [each["KeyId"] for each in every if each["KeyState"] == "Enabled"]


def _recorded(stage: str) -> tuple[record.Resource, ...]:
    shared = record.fetch(bucket_of(boto3), stage)
    return () if shared is None else shared.resources


def _entry(found: record.Resource) -> record.Resource:
    return {key: value for key, value in found.items() if key != "event_uuid"}


def _versions(stage: str) -> dict[str, Any]:
    found = versions.fetch(bucket_of(boto3), stage)
    known = [[each.code, each.rights] for each in found.known]
    return {"known": known, "goal": found.goal, "written": found.written, "begun": found.begun}


def _indexes(table: str) -> list[str]:
    found = boto3.client("dynamodb").describe_table(TableName=table)["Table"]
    return sorted(each["IndexName"] for each in found.get("GlobalSecondaryIndexes", []))


def _rows(table: str) -> int | None:
    """How many rows a table has. In the sandbox's, simulated blocks are mined meanwhile."""
    return None if table.endswith("-sandbox") else len(boto3.client("dynamodb").scan(TableName=table)["Items"])
