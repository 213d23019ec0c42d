"""Deploys a copy of the project to moto by hand with Chalice, then another copy, a second checkout, by the command `deploy`, and
prints as JSON what stands after each. Run in a process of its own by test_deploy.py: Chalice loads the app from the folder that it
deploys, and changes the environment.

    python -m tests.deploy.deploying <project> <second checkout> <stage>
"""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import io
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import boto3


def deploy(project: str, stage: str) -> None:
    """`python -m infra.chalice deploy`, as from the command line. Its words go to standard error."""
    from chalice.cli import cli

    from infra import package
    from infra.chalice import use_our_package

    use_our_package()
    package.is_packed = _is_small
    with contextlib.redirect_stdout(sys.stderr):
        cli.main(args=["--project-dir", project, "deploy", "--stage", stage], obj={}, standalone_mode=False)


def deploy_from_a_clone(project: str, stage: str) -> dict[str, Any]:
    """`prepare`, then `python -m infra.chalice deploy`, from a checkout without Chalice's record; what each brings, and said."""
    from infra.chalice import main as chalice
    from infra.deployment import code, record
    from infra.deployment.bucket import bucket_of

    file = record.file_of(Path(project), stage)
    file.unlink()
    vars(code)["PROJECT"] = Path(project)
    prepared = operate("--stage", stage, "prepare")
    brought = [each["name"] for each in json.loads(file.read_text())["resources"]]
    file.unlink()
    said, words = io.StringIO(), sys.argv
    sys.argv = ["chalice", "--project-dir", project, "deploy", "--stage", stage]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            chalice()
    except SystemExit as ended:
        result = ended.code
    sys.argv = words
    shared = record.fetch(bucket_of(boto3), stage)
    names = [each["name"] for each in shared.resources] if shared else []
    return {"prepare": prepared["code"], "brought": brought, "code": result, "said": said.getvalue(), "shared": names}


def _is_small(name: str) -> bool:
    """All of our code, uploaded 44 times, takes longer than everything else here."""
    return name == "app.py"


def standing() -> dict[str, Any]:
    """What there is: functions, routes, schedules and what they start, queue mappings, roles with their policies."""
    functions, logs = boto3.client("lambda"), boto3.client("logs")
    listed = functions.list_functions()["Functions"]
    return {
        "functions": {
            f["FunctionName"]: {
                "memory": f["MemorySize"],
                "timeout": f["Timeout"],
                "handler": f["Handler"],
                "runtime": f["Runtime"],
                "code": f["CodeSha256"],
                "environment": f["Environment"]["Variables"],
                "policy": _policy(f["Role"].rsplit("/", 1)[1]),
            }
            for f in listed
        },
        "mappings": [
            {
                "queue": _last(m["EventSourceArn"]),
                "function": _last(m["FunctionArn"]),
                "batch": m["BatchSize"],
            }
            for m in functions.list_event_source_mappings()["EventSourceMappings"]
        ],
        "heeded": [
            _last(m["FunctionArn"])
            for m in functions.list_event_source_mappings()["EventSourceMappings"]
            if m.get("FunctionResponseTypes") == ["ReportBatchItemFailures"]
        ],
        "schedules": _schedules(),
        "apis": [_api(api["id"]) for api in boto3.client("apigateway").get_rest_apis()["items"]],
        "log_retention": {g["logGroupName"]: g.get("retentionInDays") for g in logs.describe_log_groups()["logGroups"]},
    }


def packages(project: str) -> list[str]:
    """The checksums of the packages that ours made of Chalice's, as Lambda tells them."""
    files = (Path(project) / ".chalice" / "deployments").glob("*.zip")
    return [base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode() for file in files]


def _last(arn: str) -> str:
    return arn.rsplit(":", 1)[1]


def _policy(role: str) -> dict[str, Any]:
    iam = boto3.client("iam")
    (name,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
    document: dict[str, Any] = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
    return document


def _schedules() -> list[dict[str, str]]:
    events = boto3.client("events")
    return [
        {"rate": rule["ScheduleExpression"], "state": rule["State"], "function": _last(target["Arn"])}
        for rule in events.list_rules()["Rules"]
        for target in events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
    ]


def _api(api_id: str) -> dict[str, Any]:
    gateway = boto3.client("apigateway")
    routes: dict[str, dict[str, str]] = {}
    nodes = 0
    pages = gateway.get_paginator("get_resources").paginate(restApiId=api_id, embed=["methods"])
    for resource in (r for page in pages for r in page["items"]):
        nodes += 1
        for method, found in resource.get("resourceMethods", {}).items():
            target = found["methodIntegration"]["uri"].split(":function:")[1].split("/")[0]
            routes.setdefault(resource["path"], {})[method] = target
    stages = [stage["stageName"] for stage in gateway.get_stages(restApiId=api_id)["item"]]
    return {"id": api_id, "nodes": nodes, "routes": routes, "stages": stages}


def operate(*words: str) -> dict[str, Any]:
    """The operator's command line: what it said, and its exit code. Fails where it does what its role may not."""
    import pytest

    from infra.cli import main as cli
    from tests.support.operators_rights import hold

    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong), pytest.MonkeyPatch.context() as patch:
        hold(patch)
        code = cli(list(words))
    return {"code": code, "said": said.getvalue().splitlines(), "wrong": wrong.getvalue().splitlines()}


def keeps() -> dict[str, Any]:
    """What is money: the rows of the tables, and which key each alias leads to."""
    dynamodb, kms = boto3.client("dynamodb"), boto3.client("kms")
    tables = [name for name in dynamodb.list_tables()["TableNames"] if not name.endswith("-sandbox")]
    rows = {name: sorted(map(str, dynamodb.scan(TableName=name)["Items"])) for name in tables}
    aliases = {each["AliasName"]: each.get("TargetKeyId") for each in kms.list_aliases()["Aliases"]}
    return {"rows": rows, "aliases": aliases, "buckets": [each["Name"] for each in boto3.client("s3").list_buckets()["Buckets"]]}


def main(project: str, second: str, stage: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    gc.disable()  # it ends before its garbage is worth a search: that would be a tenth of its time
    os.environ["STAGE"] = stage
    from chalicelib.settings import Settings
    from infra.deployment import code
    from infra.local import repairs
    from infra.local.aws import start_aws
    from infra.stage_settings import differences
    from tests.deploy import first_invoice, importing, operators_pages, strict_aws

    aws = start_aws(Settings.from_environment())
    repairs.install_for_deploying()
    topic = boto3.client("sns").create_topic(Name="alarms")["TopicArn"]
    deploy(project, stage)
    strict_aws.be_strict()
    importing.stand_in()
    vars(code)["PROJECT"] = Path(second)
    found = [standing()]
    found[0] |= {"packages": packages(project), "check": operate("--stage", stage, "deploy", "--check")}
    vars(strict_aws)["PACKAGE"] = 100  # bytes
    refused = operate("--stage", stage, "deploy", "--yes", "--alarm-topic", topic)
    vars(strict_aws)["PACKAGE"] = 50 * 1024 * 1024
    deployed = operate("--stage", stage, "deploy", "--yes", "--alarm-topic", topic)
    found.append(standing())
    found[1] |= {
        "packages": packages(second),
        "refused": refused,
        "deploy": deployed,
        "check": operate("--stage", stage, "deploy", "--check"),
    }
    found[1]["clone"] = deploy_from_a_clone(project, stage)
    found[1]["clone"] |= {"apis": standing()["apis"], "check": operate("--stage", stage, "deploy", "--check")}
    vars(code)["PROJECT"] = Path(second)
    for each in found:
        each["differences"] = differences(boto3.client("lambda"), stage)
    money = [keeps()]
    deleted = operate("--stage", stage, "delete", "--yes")
    gone = standing()
    for name in (f"gateway-{stage}", f"gateway-{stage}-keys"):  # by hand: what they kept comes back by import
        boto3.client("cloudformation").update_termination_protection(StackName=name, EnableTerminationProtection=False)
        boto3.client("cloudformation").delete_stack(StackName=name)
    money.append(keeps())
    walk = first_invoice.Walk(operate)
    back = walk.until_deployed()
    found.append({**standing(), "delete": deleted, "gone": gone, "deploy": back, "money": [*money, keeps()]})
    operated = walk.on_to_the_invoice(lambda walk: (list(walk.questions), operators_pages.operate(walk)))
    found[-1]["walk"] = {"questions": operated[0], "answer": walk.answer, "operated": operated[1]}
    aws.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
