"""The command for what stands beside a stage at an operator's wish: domain, firewall, network, budget."""

from __future__ import annotations

import argparse
from typing import Any

from infra.commands.common import CanNot, Command, ask


def add(command: Command) -> None:
    """Add the command."""
    from infra.deployment.extras import EXTRAS

    named = command(platform).add_subparsers(required=True, metavar="NAME", dest="name")
    for extra in EXTRAS:
        parser = named.add_parser(extra.name, help=extra.says)
        for option in extra.options:
            parser.add_argument(f"--{option.flag}", dest=option.parameter, help=option.says)
        if extra.of_the_api:
            parser.add_argument("--unmap", action="store_true", help="take it from the API, and keep it for the next; for `delete`")
        parser.add_argument("--remove", action="store_true", help="take it down")
        parser.add_argument("--yes", action="store_true", help="do not ask")


def platform(args: argparse.Namespace) -> int:
    """Put an optional stack up, change it, or take it down. It shows what it will do, and asks; what is not given stays."""
    import boto3

    from infra.deployment import extras
    from infra.deployment.bucket import bucket_of, make_bucket

    if args.stage == "local":
        raise CanNot("the stage local runs on this machine alone: make run")
    extra = next(each for each in extras.EXTRAS if each.name == args.name)
    bucket = bucket_of(boto3)
    print(f"account {bucket.owner}, region {bucket.region}, as {bucket.caller}")
    if args.remove:
        return _remove(args, extra, boto3)
    given = {o.parameter: str(value) for o in extra.options if (value := getattr(args, o.parameter)) is not None}
    if getattr(args, "unmap", False):
        given["RestApiId"] = ""
    for line in extras.plan(boto3, args.stage, extra, given):
        print(line)
    if not args.yes:
        ask()
    found = extras.put_up(boto3, make_bucket(boto3), args.stage, extra, given, _tell)
    print(f"stack {extras.extra_stack(args.stage, extra)} stands")
    if extra.then:
        print(extra.then.format(**found))
    return 0


def _remove(args: argparse.Namespace, extra: Any, session: Any) -> int:
    from infra.deployment import extras
    from infra.deployment.stack_states import state_of

    formation, name = session.client("cloudformation"), extras.extra_stack(args.stage, extra)
    state = state_of(formation, name)
    if state is None:
        print(f"there is no stack {name}")
        return 0
    print(f"goes: stack {name} ({state})")
    for key, value in extras.outputs(formation, name).items():
        print(f"  {key}: {value}")
    if not args.yes:
        ask()
    extras.take_down(session, args.stage, extra)
    print(f"stack {name} is gone")
    return 0


def _tell(line: str) -> None:
    print(line, flush=True)
