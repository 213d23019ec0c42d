"""Commands for a deployment as a whole: what it needs to exist, and what `chalice deploy` can not set."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from infra.commands.common import CanNot, Command, say, services

ALARM_TOPIC: Any = {
    "metavar": "ARN",
    "help": "SNS topic that alarms are sent to; by default the one of last time, '' for none; prod has to have one",
}
"""The argument of the commands that make the alarms."""


def add(command: Command) -> None:
    """Add the commands of this group."""
    command(prepare).add_argument("--alarm-topic", **ALARM_TOPIC)
    command(gateway)
    command(mappings).add_argument("--check", action="store_true", help="change nothing; say what is wrong")
    command(stop_functions)
    command(start_functions)


def prepare(args: argparse.Namespace) -> int:
    """Make or update tables, queues, keys, logs, alarms, the catalogue, the seed. Running it again leaves what is there.

    Of what Chalice has made, by whichever checkout, this one gets the record: plain `chalice deploy` would make a second API.
    """
    import boto3

    from infra.deploy import topic_problem
    from infra.deployment import elsewhere, record, standing
    from infra.deployment.bucket import bucket_of, make_bucket
    from infra.deployment.code import PROJECT, adopt
    from infra.deployment.lock import locked
    from infra.deployment.taken_away import demand_nothing_taken

    if problem := topic_problem(args.stage, args.alarm_topic):
        raise CanNot(problem)
    if args.stage != "local":
        bucket = bucket_of(boto3)
        print(bucket.where)
        elsewhere.demand_no_other(boto3, bucket, args.stage, standing.function_names(boto3.client("lambda"), args.stage))
    with locked(make_bucket(boto3), args.stage, print) as lock:
        demand_nothing_taken(boto3, lock.bucket, args.stage)
        code = prepare_stage(args, lock.demand)
        if args.stage != "local" and (resources := adopt(boto3, lock.bucket, args.stage, PROJECT)[1]):
            record.write_file(record.file_of(PROJECT, args.stage), resources)
        return code


def prepare_stage(args: argparse.Namespace, demand: Callable[[], None], *, keep: bool = False) -> int:
    """The same for who holds the stage's lock, as `demand` demands, and has looked at the alarm topic and at what runs, or keeps
    (`keep`) what that may need."""
    import boto3

    from infra import bootstrap
    from infra.deploy import create_stack

    wired = services()
    create_stack(args.stage, alarm_topic=args.alarm_topic, keep=keep, demand=demand)
    bootstrap.prepare(wired, boto3.client("kms"))
    if args.stage == "demo" and not bootstrap.demo_is_published(wired):
        say(bootstrap.demo_keys(wired))  # to be published: they are shown this once
    wired.directory.list_all()
    print(f"stage {args.stage} is prepared")
    return 0


def gateway(args: argparse.Namespace) -> int:
    """Set API Gateway's own answers, throttling and access log. Run it after each `chalice deploy`, which resets the answers."""
    import boto3

    from infra import gateway_answers
    from infra.deployment import gateway_stage, standing
    from infra.deployment.bucket import bucket_of

    api_id = standing.api_of(boto3.client("apigateway"), args.stage)
    gateway_answers.put_answers(api_id)
    for line in gateway_stage.settle(boto3, bucket_of(boto3), args.stage, api_id):
        print(line)
    print(f"the API {api_id} answers in the service's words")
    return 0


def mappings(args: argparse.Namespace) -> int:
    """Have Lambda heed which messages of a batch failed. Run it after each `chalice deploy`.

    The exit code is 1 while something is wrong that this can not mend.
    """
    import boto3

    from infra import mappings as queues

    client = boto3.client("lambda")
    wanted = queues.consumers(args.stage)
    functions = [each.function for each in wanted]
    if not args.check:
        for changed in queues.heed(client, wanted, queues.standing(client, functions)):
            print(f"{changed.function}: messages of {changed.queue} that fail come back by themselves from now on")
    said = queues.wrong(wanted, queues.standing(client, functions))
    for line in said:
        print(line, file=sys.stderr)
    if not said:
        print(f"all {len(wanted)} consumers of stage {args.stage} get their messages, and what they answer counts")
    return 1 if said else 0


def stop_functions(args: argparse.Namespace) -> int:
    """Have no function called any more, the API included, until `start-functions`. What runs ends within five minutes.

    The exit code is 1 while one is called, or a deploy is under way, which may make new ones.
    """
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from infra.deployment import standing, stopping
    from infra.deployment.bucket import bucket_of
    from infra.deployment.elsewhere import not_here
    from infra.deployment.lock import locked

    client = boto3.client("lambda")
    functions = standing.function_names(client, args.stage)
    left = stopping.stop(client, functions)  # before anything else is asked
    if not functions:
        raise not_here(boto3, bucket_of(boto3), args.stage)
    try:
        bucket = bucket_of(boto3)
        print(bucket.where)
        with locked(bucket, args.stage, print):  # a deploy makes new functions
            functions = standing.function_names(client, args.stage)
            left = stopping.stop(client, functions)
    except (CanNot, ClientError, BotoCoreError) as error:
        if not isinstance(error, ClientError) or error.response["Error"]["Code"] != "NoSuchBucket":  # nobody has deployed
            _tell_stopped(args.stage, functions, left)
            raise CanNot(f"{error}. A deploy may make functions that are called: run this again") from error
    _tell_stopped(args.stage, functions, left)
    return 1 if left else 0


def _tell_stopped(stage: str, functions: Sequence[str], left: Mapping[str, str]) -> None:
    """`left` says of functions, and of mappings by their ids, why they were not stopped."""
    for name, said in left.items():
        print(f"{name} is still called: {said}", file=sys.stderr)
    stopped = [name for name in functions if name not in left]
    queues = "and no queue brings messages to any" if left.keys() <= set(functions) else "and some queues still bring messages"
    print(f"{len(stopped)} functions of stage {stage} are stopped, {queues}")


def start_functions(args: argparse.Namespace) -> int:
    """Have functions and queues call, and give them concurrency, loops and retries. Run it after each `chalice deploy`.

    The exit code is 1 where the account has no room for the reserve of some: they are called without.
    """
    import boto3

    from infra.deployment import function_settings, standing, stopping
    from infra.deployment.bucket import bucket_of
    from infra.deployment.elsewhere import not_here

    client, bucket = boto3.client("lambda"), bucket_of(boto3)
    functions = standing.function_names(client, args.stage)
    if not functions:
        raise not_here(boto3, bucket, args.stage)
    print(bucket.where)
    stopping.start(client, args.stage, functions)
    said = list(function_settings.wrong(client, args.stage, functions))
    for line in said:
        print(line, file=sys.stderr)
    print(f"{len(functions)} functions of stage {args.stage} are called")
    return 1 if said else 0
