"""Makes or updates the stack of tables, queues, keys, log groups and alarms of one stage. It must stand before `chalice deploy`
runs, which looks the queues up. The operator's command `prepare` calls this.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chalicelib.settings import APP

if TYPE_CHECKING:
    import boto3

    from infra.deployment.bucket import Bucket

TEMPLATE = Path(__file__).with_name("template.yaml")
_TRIES = 20
_WAIT_SECONDS = 6.0
_UNCHANGED = "No updates are to be performed"
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}", re.ASCII)


def stack_name(stage: str) -> str:
    return f"{APP}-{stage}"


def create_stack(
    stage: str,
    session: boto3.Session | None = None,
    *,
    alarm_topic: str | None = None,
    tell: Callable[[str], None] = print,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Make the stack of `stage`, or bring it up to the template, and wait until it stands. Safe to repeat, and after a cut.

    `session` picks account and region (default: the environment's); `alarm_topic` is the ARN of the SNS topic that alarms
    go to: None keeps the one of last time, an empty text takes it away. The template goes by S3: a request holds 51,200 bytes, a
    file there 1 MB. Raises botocore's ClientError where AWS refuses, CanNot where the stack does not come to stand.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
    """
    import boto3

    from infra.deployment import index_steps
    from infra.deployment.bucket import make_bucket
    from infra.deployment.stack_states import takes_update

    aws = session or boto3
    bucket = make_bucket(aws, wait)
    formation, dynamodb, name = aws.client("cloudformation"), aws.client("dynamodb"), stack_name(stage)
    stands, text = takes_update(formation, name, wait), TEMPLATE.read_text()
    if not stands:
        _apply(formation, bucket, stage, text, _topic(alarm_topic, stands), wait, new=True)
        return
    tables = index_steps.table_names(text, stage)
    index_steps.wait_for_tables(dynamodb, tables, tell, wait)
    for step in index_steps.steps(text, stage, lambda table: index_steps.table_of(dynamodb, table)):
        _apply(formation, bucket, stage, step, _topic(alarm_topic, stands), wait, new=False)
        index_steps.wait_for_tables(dynamodb, tables, tell, wait)


def _apply(
    formation: Any,
    bucket: Bucket,
    stage: str,
    text: str,
    topic: dict[str, Any],
    wait: Callable[[float], None],
    *,
    new: bool,
) -> None:
    """Make the stack of this template, or update it, and wait."""
    from botocore.exceptions import ClientError

    from infra.deployment.stack_states import demand

    name = stack_name(stage)
    arguments: dict[str, Any] = {
        "StackName": name,
        "TemplateURL": bucket.url(upload(bucket, text)),
        "Parameters": [{"ParameterKey": "Stage", "ParameterValue": stage}, topic, _log_days(stage)],
    }
    if new:
        send(formation.create_stack, {**arguments, "EnableTerminationProtection": stage == "prod"}, wait)
        demand(formation, name, "CREATE_COMPLETE", wait)
        return
    try:
        send(formation.update_stack, arguments, wait)
    except ClientError as error:
        if _UNCHANGED in error.response["Error"]["Message"]:
            return
        raise
    demand(formation, name, "UPDATE_COMPLETE", wait)


def send(call: Callable[..., Any], arguments: dict[str, Any], wait: Callable[[float], None]) -> None:
    """Call CloudFormation. In a bucket that is versioned since a moment ago it may not find the template at first.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketVersioning.html
    """
    from botocore.exceptions import ClientError

    for left in reversed(range(_TRIES)):
        try:
            call(**arguments)
        except ClientError as error:
            if not left or "S3 error" not in error.response["Error"]["Message"]:
                raise
            wait(_WAIT_SECONDS)
        else:
            return


def upload(bucket: Bucket, text: str) -> str:
    """Put a template into the bucket; its key. One text is one object, whoever sends it."""
    body = text.encode()
    key = f"templates/{hashlib.sha256(body).hexdigest()}.yaml"
    bucket.client.put_object(**bucket.whose, Key=key, Body=body)
    return key


def topic_problem(stage: str, wanted: str | None) -> str | None:
    """What is wrong with the alarm topic that `create_stack` would be given, None where nothing is: prod has to have one.

    CloudFormation takes any text, and alarms to a topic that is none reach nobody. Raises botocore's ClientError.
    https://docs.aws.amazon.com/sns/latest/api/API_GetTopicAttributes.html
    """
    import boto3
    from botocore.exceptions import ClientError

    if wanted is None:
        wanted = _topic_of_last_time(stage)
    if not wanted:
        return "prod needs --alarm-topic ARN: nobody would hear of its alarms" if stage == "prod" else None
    none = f"--alarm-topic {wanted} is no SNS topic of this region"
    if not _TOPIC.fullmatch(wanted):
        return none
    try:
        boto3.client("sns").get_topic_attributes(TopicArn=wanted)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in ("NotFound", "NotFoundException", "InvalidParameter", "InvalidParameterValue"):
            return none
        if code not in ("AuthorizationError", "AuthorizationErrorException"):
            raise  # a topic of another account may show itself to nobody, and take alarms all the same
    return None


def _topic_of_last_time(stage: str) -> str:
    import boto3

    formation = boto3.client("cloudformation")
    if not _exists(formation, stack_name(stage)):
        return ""
    (stack,) = formation.describe_stacks(StackName=stack_name(stage))["Stacks"]
    return next((p.get("ParameterValue", "") for p in stack.get("Parameters", []) if p.get("ParameterKey") == "AlarmTopic"), "")


def _topic(wanted: str | None, exists: bool) -> dict[str, Any]:
    """The parameter. A new stack has no previous value to use.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Parameter.html
    """
    if wanted is None and exists:
        return {"ParameterKey": "AlarmTopic", "UsePreviousValue": True}
    return {"ParameterKey": "AlarmTopic", "ParameterValue": wanted or ""}


def _log_days(stage: str) -> dict[str, Any]:
    """The parameter."""
    from infra.deployment.platform_settings import of_stage

    return {"ParameterKey": "AccessLogDays", "ParameterValue": str(of_stage(stage).access_log_days)}


def _exists(formation: Any, name: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        formation.describe_stacks(StackName=name)
    except ClientError as error:
        # CloudFormation has no code of its own for this.
        if "does not exist" in error.response["Error"]["Message"]:
            return False
        raise
    return True
