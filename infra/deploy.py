"""Makes or updates the stacks of one stage: keys; tables, queues, log groups and alarms. It must stand before `chalice deploy`
runs, which looks the queues up. The operator's command `prepare` calls this.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from chalicelib.settings import APP

if TYPE_CHECKING:
    import boto3


TEMPLATE = Path(__file__).with_name("template.yaml")
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}", re.ASCII)


def stack_name(stage: str) -> str:
    return f"{APP}-{stage}"


def create_stack(
    stage: str,
    session: boto3.Session | None = None,
    *,
    alarm_topic: str | None = None,
    keep: bool = False,
    tell: Callable[[str], None] = print,
    wait: Callable[[float], None] = time.sleep,
    demand: Callable[[], None] = lambda: None,
) -> None:
    """Make the stacks of `stage`, or bring them up to the templates, and wait until they stand. Safe to repeat, and after a cut.

    Keys come first, in a stack of their own. What stands already outside of the stacks is brought in. Tables are made without
    protection from deletion, so that a first try can be rolled back, and get it in a second update.
    `session` picks account and region (default: the environment's); `alarm_topic` is the ARN of the SNS topic that alarms
    go to: None keeps the one of last time, an empty text takes it away. `keep` leaves what the template does not have any more to
    `end_stack`, behind the functions. `demand` is asked before each change of a stack, and raises CanNot where the stage's lock is
    lost: filling an index takes hours, in which another may deploy. The template goes by S3: a request holds 51,200 bytes, a file
    there 1 MB. Raises botocore's ClientError where AWS refuses, CanNot where the stack does not come to stand.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
    """
    import boto3

    from infra.deployment import index_steps, key_stack, needs, retained
    from infra.deployment.bucket import make_bucket
    from infra.deployment.platform_settings import of_stage
    from infra.deployment.stack import Stack
    from infra.deployment.taken_away import Way, taken_away

    aws = session or boto3
    bucket, formation, real = make_bucket(aws, wait), aws.client("cloudformation"), stage == "prod"
    kms, text = aws.client("kms"), TEMPLATE.read_text()
    main = Stack(formation, bucket, stack_name(stage), wait, real, demand)
    stands, days = main.stands(), str(of_stage(stage).access_log_days)
    given = {"Stage": stage, "AlarmTopic": alarm_topic, "TablesKeyArn": None, "AccessLogDays": days}
    way = Way(main, aws.client("dynamodb"), text, stage, tell)
    if stands and not keep:
        needs.note_gone(bucket, stage, taken_away(main, way.dynamodb, text, stage), deployed=False)
    if stands and key_stack.held(main):
        key_stack.let_go(main, way.steps(keep)[0], {**given, "TablesKeyArn": key_stack.arn_of(kms, stage)}, tell)
    keys = Stack(formation, bucket, key_stack.name_of(stage), wait, real, demand)
    key_stack.stand(keys, kms, stage, lambda: retained.holder_of_money(aws, text, stage), tell)
    if not stands or not main.holds():
        given["TablesKeyArn"] = key_stack.arn_of(kms, stage)
    if retained.bring_back(aws, main, text, stage, given, tell):
        stands, given["TablesKeyArn"] = True, None
    if not stands:
        main.make(index_steps.unprotected(text) if real else text, given)
        if not real:
            return
        given |= {"AlarmTopic": None, "TablesKeyArn": None}
    way.go(given, keep=keep)
    main.protect()


def end_stack(
    stage: str,
    session: boto3.Session | None = None,
    *,
    tell: Callable[[str], None] = print,
    wait: Callable[[float], None] = time.sleep,
    demand: Callable[[], None] = lambda: None,
) -> list[str]:
    """Take away what `create_stack` kept, once functions need it no more: a line for what went. Safe to repeat, and after a cut.
    What goes is noted first with the kept versions that may need it: they do not come back by `rollback`. `demand` as there.

    Raises botocore's ClientError where AWS refuses, CanNot where the stack does not come to stand.
    """
    import boto3

    from infra.deployment import needs
    from infra.deployment.bucket import bucket_of
    from infra.deployment.stack import Stack
    from infra.deployment.taken_away import Way, let_go, taken_away

    aws = session or boto3
    main = Stack(aws.client("cloudformation"), bucket_of(aws), stack_name(stage), wait, stage == "prod", demand)
    way = Way(main, aws.client("dynamodb"), TEMPLATE.read_text(), stage, tell)
    gone, left = taken_away(main, way.dynamodb, way.text, stage), let_go(main, way.text)
    needs.note_gone(main.bucket, stage, gone)
    if gone or left:
        main.stands()  # what another left under way has ended, and its state takes an update
        way.go({})
    return [f"the stack {main.name} lost {each}" for each in gone] + [
        f"{each} left the stack {main.name}, and stays" for each in left
    ]


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

    from infra.deployment.extras import stands
    from infra.deployment.stack_states import state_of

    formation, name = boto3.client("cloudformation"), stack_name(stage)
    return "" if state_of(formation, name) is None else stands(formation, name).get("AlarmTopic", "")
