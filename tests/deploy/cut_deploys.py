"""Runs commands of a stage one after the other on a copy of the project, from an empty account on, and cuts them at AWS calls:
`deploy`, `upgrade` (deploy, of the next release), `rollback`, `older` (deploy, of the first release, mended), `delete`.

At such a call the process is forked: the copy is cut there, runs the command again as an operator would, and dumps what stands; the
first one goes on. Prints, as JSON, of each command the cuts, what stands in the end, what cuts left otherwise, what was asked of
AWS, and what functions lacked that were not replaced yet. Run in a process of its own by test_deploy_cuts.py: Chalice loads the app
from the folder that it deploys.

A command with `!` behind it is cut in this process, once, and run again: that takes half the time, and there is nothing to compare
with.

    python -m tests.deploy.cut_deploys <commands> <folder> <stage> <the last one's each n-th call> <remainder by n>
        <command:operation, after the first of which it is cut, too; command:operation 2, after the second>
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import botocore.client
from botocore.exceptions import EndpointConnectionError
from moto.core.models import DEFAULT_ACCOUNT_ID

from infra.local.aws import REGION
from tests.support.cuts import WAYS, Cutter, Died

NEVER = 10**6
"""More calls than a command makes."""
_SAID = 3000  # characters


@dataclass
class Forks:
    """Goes round each call to AWS. `cut` is None in the first process; in a forked one it says which call was cut."""

    every: int
    first: int
    named: set[str]
    calls: list[str] = field(default_factory=list)
    asked: set[tuple[str, str]] = field(default_factory=set)
    """Service and operation of each call."""
    cuts: dict[int, str] = field(default_factory=dict)
    cut: int | None = None
    on: bool = False
    forks: bool = True
    """Whether a cut is another process's."""
    ran: set[str] = field(default_factory=set)
    """What functions ran before the command."""
    stood: set[str] = field(default_factory=set)
    """Queues and indexes before it."""
    lacked: set[str] = field(default_factory=set)
    """Those of them that were gone while a function still ran what it had run before."""

    def around(self, operation: str, call: Callable[[], Any]) -> Any:
        # The lock is renewed in a thread of its own, once a minute: a process that is forked there has no main thread to go on.
        if not self.on or threading.current_thread() is not threading.main_thread():
            return call()
        self.calls.append(operation)
        number = len(self.calls)
        named = self.named & {operation, f"{operation} {self.calls.count(operation)}"}
        if named or number % self.every == self.first:
            how, when = ("death", "after") if named else WAYS[len(self.cuts) % len(WAYS)]
            self.named -= named
            self.cuts[number] = f"{number} {operation}: {how} {when}"
            child = os.fork() if self.forks else 0
            if child == 0:
                self.on, self.cut = False, number
                cutter = Cutter(1, how, when, armed=True)
                return cutter.around(operation, call, EndpointConnectionError(endpoint_url="https://aws.invalid"))
            os.waitpid(child, 0)
        return call()


def main(commands: str, folder: str, stage: str, every: str, first: str, operations: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    gc.disable()  # it ends before its garbage is worth a search: that would be a tenth of its time
    os.environ["STAGE"] = stage
    from infra import package
    from infra.deployment import code
    from tests.deploy import next_release

    topic = _empty_account()
    vars(package)["is_packed"] = lambda name: name == "app.py"  # all of our code, uploaded 44 times, takes longer than all else
    project = Path(folder) / "project"
    vars(code)["PROJECT"] = project
    deploy = ["--stage", stage, "deploy", "--yes", "--alarm-topic", topic]
    forks = Forks(1, 0, set())
    client: Any = botocore.client.BaseClient
    api_call = client._make_api_call

    def called(self: Any, operation: str, arguments: Any) -> Any:
        if operation == "UpdateFunctionCode" and forks.ran & _running():
            forks.lacked |= forks.stood - _needed()
        if forks.on:
            forks.asked.add((self.meta.service_model.service_name, operation))
        return forks.around(operation, lambda: api_call(self, operation, arguments))

    client._make_api_call = called
    named = [each.split(":") for each in operations.split(",") if each]
    found, every_command = {}, commands.split(",")
    for place, word in enumerate(every_command, 1):
        command = word.rstrip("!")
        if command == "upgrade":
            next_release.check_out(project)
        if command == "older":
            next_release.check_out_the_one_before(project)
        mine = {operation for whose, operation in named if whose == command}
        each_n_th = (int(every), int(first)) if place == len(every_command) else (NEVER, 0)
        forks = Forks(*each_n_th, mine, forks=word == command, ran=_running(), stood=_needed())
        words = deploy if command in ("deploy", "upgrade", "older") else ["--stage", stage, command, "--yes"]
        found[command] = _cut(forks, words, Path(folder), stage)
    print(json.dumps(found))


def _needed() -> set[str]:
    """The queues, and the indexes of tables, that stand: what a function that runs may use. moto is asked beside all calls."""
    from moto.dynamodb.models import dynamodb_backends
    from moto.sqs.models import sqs_backends

    tables = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.values()
    indexes = {f"index {index.name} of {table.name}" for table in tables for index in table.global_indexes}
    return {f"queue {name}" for name in sqs_backends[DEFAULT_ACCOUNT_ID][REGION].queues} | indexes


def _running() -> set[str]:
    """The checksums of what functions run."""
    from moto.awslambda.models import lambda_backends

    return {each.code_sha_256 for each in lambda_backends[DEFAULT_ACCOUNT_ID][REGION].list_functions()}


def _cut(forks: Forks, words: list[str], folder: Path, stage: str) -> dict[str, Any]:
    """Run one command whole, and cut in the processes that are forked from it; what became of it all."""
    from infra.deployment import lock
    from tests.deploy.standing_dump import differences, dump

    forks.on = True
    with contextlib.suppress(Died):
        said = _operate(words)
    if forks.cut is not None and forks.forks:
        _go_on(forks, words, folder, stage)
        os._exit(0)
    if forks.cut is not None:
        forks.on, age = True, lock._age
        said = _again(words)
        vars(lock)["_age"] = age
    forks.on = False
    whole, left = dump(stage), {}
    for number, name in forks.cuts.items() if forks.forks else ():
        file = folder / f"{number}.json"
        answer = json.loads(file.read_text()) if file.exists() else {"said": "its process ended"}
        file.unlink(missing_ok=True)
        problems = [answer["said"]] if answer["said"] else [*differences(whole, answer["dump"]), *answer["lacked"]]
        if problems:
            left[name] = problems
    cuts, lacked = [*forks.cuts.values()], sorted(forks.lacked)
    return {"said": said, "left": left, "stands": whole, "cuts": cuts, "asked": sorted(forks.asked), "lacked": lacked}


def _empty_account() -> str:
    """An account with nothing but a topic for alarms; its ARN. moto, as strict as AWS."""
    from moto.core.models import MockAWS

    from infra.local import aws, repairs
    from infra.local.repairs import direct
    from tests.deploy.importing import stand_in
    from tests.deploy.strict_aws import be_strict

    aws.isolate_environment()
    aws.share_loader()
    repairs.install_for_deploying()
    be_strict()
    stand_in()
    MockAWS(config={"core": {"mock_credentials": False, "reset_boto3_session": False}}).start()
    boto3.setup_default_session(region_name=aws.REGION)
    direct.begin(aws.REGION)
    return str(boto3.client("sns").create_topic(Name="alarms")["TopicArn"])


def _operate(words: list[str]) -> str:
    """The operator's command: empty where it went well, otherwise what it said."""
    from infra.cli import main as operate

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        result = operate(words)
    return "" if result == 0 else said.getvalue()[-_SAID:]


def _go_on(forks: Forks, words: list[str], folder: Path, stage: str) -> None:
    """What the operator does after a cut, in this process that was forked for it, and what stands then, into a file."""
    from infra.deployment import code
    from tests.deploy.standing_dump import dump

    number = forks.cut
    own = folder / str(number)
    shutil.copytree(folder / "project", own)
    vars(code)["PROJECT"] = own
    said = _again(words)
    answer = {"said": said, "dump": None if said else dump(stage), "lacked": sorted(forks.lacked)}
    (folder / f"{number}.json").write_text(json.dumps(answer))
    shutil.rmtree(own)


def _again(words: list[str]) -> str:
    """The same command again, as if in a fresh process; where the lock stayed once it is dead. What it said of failures."""
    from chalicelib import wiring
    from infra.deployment import lock

    wiring.forget()
    # It died with the lock, or could not give it back: the operator waits as he is told.
    age = lock._age
    vars(lock)["_age"] = lambda found: age(found) + lock.DEAD
    try:
        return _operate(words)
    except Exception as error:  # noqa: BLE001 - it is told as what the operator would see
        return repr(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
