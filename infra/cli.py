"""The operator's command line: ``python -m infra.cli --stage prod COMMAND``. Needs AWS credentials of an operator.

Prepares a deployment, makes merchants and keys, connects networks to nodes, takes up halted ones, and audits the books.
The commands are in infra/commands. What an operator can do something about is one line on standard error, and exit code 1.
They work with the stage's settings in .chalice/config.json, and are refused where the deployed functions have others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from chalicelib.settings import STAGES
from infra.commands import (
    books,
    custody,
    deploying,
    deployment,
    merchants,
    migrating,
    networks,
    node_secrets,
    payments,
    platform,
    put_back,
    restoring,
    treasury,
)
from infra.commands.common import CanNot, Run
from infra.stage_settings import declared, differences, of_stage, one_region

UNCHECKED = (
    *("deploy", "rollback", "delete", "prepare", "gateway", "mappings", "start-functions", "platform"),
    *("stop-functions", "revoke", "stop-payments", "package"),
)
"""Deploying itself, what must not wait for a deploy that went wrong, and what asks AWS nothing."""
GROUPS = (
    *(deploying, deployment, platform, migrating, merchants, networks, node_secrets),
    *(custody, payments, treasury, books, restoring, put_back),
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.cli", description=__doc__)
    parser.add_argument("--stage", required=True, choices=STAGES, help="which deployment")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Run) -> argparse.ArgumentParser:
        name = run.__name__.replace("_", "-")
        added = commands.add_parser(name, help=(run.__doc__ or "").split(".")[0])
        added.set_defaults(run=run, checked=name not in UNCHECKED)
        return added

    for group in GROUPS:
        group.add(command)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    one_region()
    args = _parser().parse_args(words)
    try:
        settings = declared(args.stage)
    except ValueError as error:
        return _sorry(str(error))
    with of_stage(args.stage, settings) as left_out:
        if left_out:
            print(f"left out, stage {args.stage} has its own settings: {', '.join(left_out)}", file=sys.stderr)
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from botocore.exceptions import BotoCoreError, ClientError

    from chalicelib.usecases.base.retries import Failures
    from chalicelib.usecases.ports.changes import Conflict
    from chalicelib.usecases.ports.failures import Unavailable

    try:
        if args.checked and args.stage != "local":
            _demand_deployed(args.stage)
        result = _work(args)
    except (CanNot, ClientError, BotoCoreError) as error:
        return _sorry(str(error))
    except Unavailable as error:
        return _sorry(_with_cause(error))
    except Failures as failures:
        return _sorry("; ".join(map(_with_cause, failures.exceptions)))
    except Conflict:
        return _sorry("something else changed the same records meanwhile: try again")
    return result


def _work(args: argparse.Namespace) -> int:
    """Raises CanNot where the stage does not stand in this account and region."""
    import boto3

    from chalicelib.usecases.ports.failures import Unavailable
    from infra.deployment import elsewhere, standing
    from infra.deployment.bucket import bucket_of

    try:
        result: int = args.run(args)
    except Unavailable as error:
        # Functions are looked for where a table is missing alone: a stage may have tables and no functions.
        if args.stage == "local" or not _no_table(error) or standing.function_names(boto3.client("lambda"), args.stage):
            raise
        raise elsewhere.not_here(boto3, bucket_of(boto3), args.stage) from error
    return result


def _no_table(error: BaseException) -> bool:
    from botocore.exceptions import ClientError

    first = _first_cause(error)
    return isinstance(first, ClientError) and first.response["Error"]["Code"] == "ResourceNotFoundException"


def _demand_deployed(stage: str) -> None:
    """Raises CanNot where functions run with other settings than this command would."""
    import boto3

    wrong = differences(boto3.client("lambda"), stage)
    if wrong:
        raise CanNot(f"{'; '.join(wrong)}. Run python -m infra.cli --stage {stage} deploy, or put .chalice/config.json right")


def _with_cause(error: BaseException) -> str:
    """The store hides what AWS said behind its own words; an operator wants to see it."""
    first = _first_cause(error)
    return str(error) if first is error else f"{error}: {first}"


def _first_cause(error: BaseException) -> BaseException:
    while (before := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        error = before
    return error


def _sorry(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
