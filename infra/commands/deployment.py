"""Commands for a deployment as a whole: what it needs to exist, and the gateway's own answers."""

from __future__ import annotations

import argparse

from infra.commands.common import CanNot, Command, say, services


def add(command: Command) -> None:
    """Add the commands of this group."""
    command(prepare).add_argument(
        "--alarm-topic",
        metavar="ARN",
        help="SNS topic that alarms are sent to; by default the one of last time, '' for none",
    )
    command(gateway)


def prepare(args: argparse.Namespace) -> int:
    """Make or update tables, queues, keys, logs, alarms, the catalogue, the seed. Running it again leaves what is there."""
    import boto3

    from chalicelib.domain import demo
    from chalicelib.domain.merchants import Merchant
    from infra import bootstrap
    from infra.deploy import create_stack

    wired = services()
    create_stack(args.stage, alarm_topic=args.alarm_topic)
    bootstrap.prepare(wired, boto3.client("kms"))
    if args.stage == "demo" and wired.store.get(Merchant, id=demo.SHOP) is None:
        say(bootstrap.demo_keys(wired))  # to be published: they are shown this once
    print(f"stage {args.stage} is prepared")
    return 0


def gateway(args: argparse.Namespace) -> int:
    """Give API Gateway's own answers the service's shape. Run it after each `chalice deploy`, which resets them."""
    from infra import gateway_answers

    try:
        api_id = gateway_answers.api_of(args.stage)
    except LookupError as error:
        raise CanNot(str(error)) from error
    gateway_answers.put_answers(api_id)
    print(f"the API {api_id} answers in the service's words")
    return 0
