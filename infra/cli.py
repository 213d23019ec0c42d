"""The operator's command line: ``python -m infra.cli --stage prod COMMAND``. Needs AWS credentials of an operator.

Prepares a deployment, makes merchants and keys, connects networks to nodes, takes up halted ones, and audits the books.
The commands are in infra/commands. What an operator can do something about is one line on standard error, and exit code 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from chalicelib.settings import STAGES
from infra.commands import books, custody, deployment, merchants, networks, payments, put_back, restoring, treasury
from infra.commands.common import CanNot, Run

GROUPS = (deployment, merchants, networks, custody, payments, treasury, books, restoring, put_back)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.cli", description=__doc__)
    parser.add_argument("--stage", required=True, choices=STAGES, help="which deployment")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Run) -> argparse.ArgumentParser:
        added = commands.add_parser(run.__name__.replace("_", "-"), help=(run.__doc__ or "").split(".")[0])
        added.set_defaults(run=run)
        return added

    for group in GROUPS:
        group.add(command)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    args = _parser().parse_args(words)
    os.environ["STAGE"] = args.stage
    from botocore.exceptions import BotoCoreError, ClientError

    from chalicelib.usecases.changes import Conflict
    from chalicelib.usecases.ports.failures import Unavailable

    try:
        result: int = args.run(args)
    except (CanNot, ClientError, BotoCoreError) as error:
        return _sorry(str(error))
    except Unavailable as error:
        # The store hides what AWS said behind its own words; an operator wants to see it.
        first = _first_cause(error)
        return _sorry(str(error) if first is error else f"{error}: {first}")
    except Conflict:
        return _sorry("something else changed the same records meanwhile: try again")
    return result


def _first_cause(error: BaseException) -> BaseException:
    while (before := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        error = before
    return error


def _sorry(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
