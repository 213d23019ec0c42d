"""Makes or updates the stack of tables, queues, keys, log groups and alarms of one stage. It must stand before `chalice deploy`
runs, which looks the queues up. The operator's command `prepare` calls this.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chalicelib.settings import APP

if TYPE_CHECKING:
    import boto3

TEMPLATE = Path(__file__).with_name("template.yaml")
_UNCHANGED = "No updates are to be performed"
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}", re.ASCII)
_WAIT = {"Delay": 5, "MaxAttempts": 360}  # half an hour


def stack_name(stage: str) -> str:
    return f"{APP}-{stage}"


@functools.cache
def template_body() -> str:
    """The template as it is sent: a request holds 51,200 bytes, so it goes without comments, in flow style, on one line, and
    without blanks behind its commas.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
    """
    import yaml

    document = yaml.compose(TEMPLATE.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return f"{_dense(document)}\n"


_LIST = "tag:yaml.org,2002:seq"
_NAME = re.compile("[A-Za-z][A-Za-z.]*")
_ONE_LINE = 1_000_000  # characters


def _dense(node: Any) -> str:
    """A node of YAML and all in it in flow style, its scalars plain where that says the same there."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        pairs = ",".join(f"{_dense(key)}: {_dense(value)}" for key, value in node.value)
        return f"{{{pairs}}}"
    tag = "" if node.tag == _LIST else f"{node.tag} "
    if isinstance(node, yaml.SequenceNode):
        return f"{tag}[{','.join(_dense(part) for part in node.value)}]"
    if node.tag.startswith("!") and _NAME.fullmatch(node.value):
        return f"{tag}{node.value}"
    # By itself a text might be plain that is not within brackets.
    alone = yaml.SequenceNode(_LIST, [node], flow_style=True)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.serialize(alone, Dumper=dumper, width=_ONE_LINE, allow_unicode=True)).strip()[1:-1]


def create_stack(stage: str, session: boto3.Session | None = None, *, alarm_topic: str | None = None) -> None:
    """Make the stack of `stage`, or bring it up to the template, and wait until it stands. Safe to repeat.

    `session` picks account and region (default: the environment's); `alarm_topic` is the ARN of the SNS topic that alarms
    go to: None keeps the one of last time, an empty text takes it away. Raises botocore's ClientError where AWS refuses,
    WaiterError where the stack was rolled back.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
    """
    import boto3
    from botocore.exceptions import ClientError

    formation = (session or boto3).client("cloudformation")
    name = stack_name(stage)
    exists = _exists(formation, name)
    arguments: dict[str, Any] = {
        "StackName": name,
        "TemplateBody": template_body(),
        "Parameters": [{"ParameterKey": "Stage", "ParameterValue": stage}, _topic(alarm_topic, exists)],
    }
    if not exists:
        formation.create_stack(**arguments, EnableTerminationProtection=stage == "prod")
        formation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig=_WAIT)
        return
    try:
        formation.update_stack(**arguments)
    except ClientError as error:
        if _UNCHANGED in error.response["Error"]["Message"]:
            return
        raise
    formation.get_waiter("stack_update_complete").wait(StackName=name, WaiterConfig=_WAIT)


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
