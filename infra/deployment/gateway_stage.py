"""What API Gateway is told of the API's stage, and Chalice can not say: how many requests it lets through, and its access log.

Publishing an API to a stage that stands changes which deployment the stage shows; its own settings are set by UpdateStage alone.
The guide says that they count once the API is published again, so it is where they were changed.
https://docs.aws.amazon.com/apigateway/latest/developerguide/how-to-deploy-api-with-console.html
https://docs.aws.amazon.com/apigateway/latest/api/API_UpdateStage.html

API Gateway writes logs by one role of the account and region. Another's is used, and never overwritten; where there is none, one of
ours is made and set. It stays: API Gateway may write other APIs' logs by it since.
https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-logging.html
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import boto3
from botocore.exceptions import ClientError

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.deployment.bucket import Bucket
from infra.deployment.chalice_client import PATIENT
from infra.deployment.patience import coded, patiently
from infra.deployment.platform_settings import Platform, of_stage
from infra.gateway_answers import API_STAGE

ROLE = f"{APP}-access-log"
"""No stage's: their roles' names begin with a stage's name."""
LINE = {
    "requestId": "$context.requestId",
    "extendedRequestId": "$context.extendedRequestId",
    "time": "$context.requestTimeEpoch",
    "method": "$context.httpMethod",
    "resource": "$context.resourcePath",
    "status": "$context.status",
    "answer": "$context.error.responseType",
    "latencyMs": "$context.responseLatency",
    "sourceIp": "$context.identity.sourceIp",
    "functionStatus": "$context.integration.status",
    "functionError": "$context.integrationErrorMessage",
}
"""A line of the access log. A caller may choose `requestId`; the extended one is API Gateway's own. The resource's pattern stands
there and not the path: that of a claim link is a secret. Headers, with the key among them, and queries have no place in it.
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-variables-for-access-logging.html
"""
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "apigateway.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
_WRITES = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": [
                *("logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogGroups", "logs:DescribeLogStreams"),
                *("logs:PutLogEvents", "logs:GetLogEvents", "logs:FilterLogEvents"),
            ],
            "Resource": "*",
        }
    ],
}
"""As AWS's own policy for this, which API Gateway looks for before it takes a role; and every API of the account logs by it.
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonAPIGatewayPushToCloudWatchLogs.html
"""
_TRIES, _WAIT_SECONDS = 12, 10.0
"""A role that was made a moment ago is not known everywhere yet, nor is one that was just set for the account."""
_BAD_REQUEST = coded("BadRequestException")
_ALL = "*/*"
"""All methods. The limits count for each of them by itself.
https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-request-throttling.html
"""
_RATE, _BURST = "throttlingRateLimit", "throttlingBurstLimit"


def log_group(stage: str) -> str:
    """The access log's, which infra/template.yaml makes."""
    return f"/aws/apigateway/{APP}-{stage}"


def settle(session: Any, bucket: Bucket, stage: str, api: str, wait: Callable[[float], None] = time.sleep) -> list[str]:
    """Set what differs of a published API, the account's role before it where there is none; what was changed, a line each.

    Safe to repeat; after a cut together with `gateway_answers.put_answers`, which publishes. Raises botocore's ClientError, CanNot
    for settings that are none.
    """
    gateway, wanted = session.client("apigateway", config=PATIENT), of_stage(stage)
    found = gateway.get_stage(restApiId=api, stageName=API_STAGE)
    changes = [*_throttle(found, wanted), *_log(found, wanted, bucket, stage)]
    if not changes:
        return []
    said = []
    if any(change["op"] == "replace" and "accessLog" in change["path"] for change in changes) and not _role(gateway):
        _make_role(session, gateway, wait)
        said.append(f"API Gateway of this account and region writes logs by the role {ROLE} from now on")
    _with_role(lambda: gateway.update_stage(restApiId=api, stageName=API_STAGE, patchOperations=changes), wait)
    gateway.create_deployment(restApiId=api, stageName=API_STAGE)
    return [*said, f"API {api}: {_words(wanted)}"]


def wrong(session: Any, bucket: Bucket, stage: str, api: str) -> Iterator[str]:
    """In what the stage differs, a line each. Raises botocore's ClientError, CanNot for settings that are none."""
    gateway, wanted = session.client("apigateway"), of_stage(stage)
    try:
        found = gateway.get_stage(restApiId=api, stageName=API_STAGE)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        yield f"the API {api} is not published: it has no stage {API_STAGE}"
        return
    if _throttle(found, wanted):
        stands = found.get("methodSettings", {}).get(_ALL, {})
        now = f"{stands[_RATE]:g} and {stands[_BURST]}" if _RATE in stands and _BURST in stands else "as many as the account may"
        yield f"the API lets {now} requests a second and at once through, not {wanted.throttle_rate} and {wanted.throttle_burst}"
    if wanted.access_log and not _role(gateway):
        yield "API Gateway of this account and region has no role to write logs by"
    if _log(found, wanted, bucket, stage):
        yield f"the API has another access log than {log_group(stage)}" if wanted.access_log else "the API has an access log"


def plan(session: Any, stage: str) -> Iterator[str]:
    """What `settle` will do, a line each. Raises botocore's ClientError, CanNot for settings that are none."""
    wanted = of_stage(stage)
    yield f"API's stage: {_words(wanted)}"
    if wanted.access_log and not _role(session.client("apigateway")):
        yield f"  API Gateway of this account and region writes no logs yet: it gets the role {ROLE} for it"


def makes_role(session: Any, stage: str) -> bool:
    """Whether `settle` will make a role. Changes nothing. Raises botocore's ClientError, CanNot for settings that are none."""
    if not of_stage(stage).access_log or _role(session.client("apigateway")):
        return False
    iam = session.client("iam")
    try:
        iam.get_role(RoleName=ROLE)
    except iam.exceptions.NoSuchEntityException:
        return True
    return False


def _words(wanted: Platform) -> str:
    log = f"an access log of {wanted.access_log_days} days" if wanted.access_log else "no access log"
    return f"{wanted.throttle_rate} requests a second, {wanted.throttle_burst} at once, {log}"


def _throttle(found: dict[str, Any], wanted: Platform) -> list[dict[str, str]]:
    """https://docs.aws.amazon.com/apigateway/latest/api/patch-operations.html#UpdateStage-Patch"""
    stands = found.get("methodSettings", {}).get(_ALL, {})
    if (stands.get(_RATE), stands.get(_BURST)) == (wanted.throttle_rate, wanted.throttle_burst):
        return []
    return [
        {"op": "replace", "path": f"/{_ALL}/throttling/rateLimit", "value": str(wanted.throttle_rate)},
        {"op": "replace", "path": f"/{_ALL}/throttling/burstLimit", "value": str(wanted.throttle_burst)},
    ]


def _log(found: dict[str, Any], wanted: Platform, bucket: Bucket, stage: str) -> list[dict[str, str]]:
    stands = found.get("accessLogSettings") or {}
    if not wanted.access_log:
        return [{"op": "remove", "path": "/accessLogSettings"}] if stands else []
    partition = boto3.Session().get_partition_for_region(bucket.region)
    arn = f"arn:{partition}:logs:{bucket.region}:{bucket.owner}:log-group:{log_group(stage)}"
    text = json.dumps(LINE, separators=(",", ":"))
    if (stands.get("destinationArn", "").removesuffix(":*"), stands.get("format")) == (arn, text):
        return []
    return [
        {"op": "replace", "path": "/accessLogSettings/destinationArn", "value": arn},
        {"op": "replace", "path": "/accessLogSettings/format", "value": text},
    ]


def _role(gateway: Any) -> str:
    """The account's role, whoever set it; empty where there is none. https://docs.aws.amazon.com/apigateway/latest/api/API_GetAccount.html"""
    return str(gateway.get_account().get("cloudwatchRoleArn") or "")


def _make_role(session: Any, gateway: Any, wait: Callable[[float], None]) -> None:
    iam = session.client("iam")
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):  # a cut left it, or another region's deploy made it
        iam.create_role(
            RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(_TRUST), Description="API Gateway writes its logs by this role"
        )
    iam.put_role_policy(RoleName=ROLE, PolicyName=ROLE, PolicyDocument=json.dumps(_WRITES))
    arn = iam.get_role(RoleName=ROLE)["Role"]["Arn"]
    if _role(gateway):
        return  # set by somebody else meanwhile
    change = {"op": "replace", "path": "/cloudwatchRoleArn", "value": arn}
    _with_role(lambda: gateway.update_account(patchOperations=[change]), wait)


def _with_role(call: Callable[[], Any], wait: Callable[[float], None]) -> None:
    try:
        patiently(call, _refuses_role, partial(wait, _WAIT_SECONDS), _TRIES)
    except ClientError as error:
        if not _refuses_role(error):
            raise
        raise CanNot(
            f"API Gateway refuses the access log: {error.response['Error']['Message']} The account's role is never overwritten"
            f" here: mend it, or set platform.access_log to false in .chalice/config.json"
        ) from error


def _refuses_role(error: Exception) -> bool:
    return isinstance(error, ClientError) and _BAD_REQUEST(error) and "role" in error.response["Error"]["Message"].lower()
