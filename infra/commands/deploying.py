"""The command that deploys a stage as a whole."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from infra.commands.common import CanNot, Command, ask
from infra.commands.deployment import ALARM_TOPIC, prepare_stage
from infra.commands.migrating import migrate_behind, reopen

if TYPE_CHECKING:
    from infra.deployment.bucket import Bucket
    from infra.deployment.lock import Lock
    from infra.deployment.standing import Function
    from infra.deployment.versions import Version, Versions


def add(command: Command) -> None:
    """Add the command."""
    parser = command(deploy)
    parser.add_argument("--alarm-topic", **ALARM_TOPIC)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--check", action="store_true", help="change nothing; say what is missing, and every function's version")
    command(package)
    back = command(rollback)
    back.add_argument("--yes", action="store_true", help="do not ask")
    back.add_argument("--to", metavar="CODE", help="another one of the versions that are kept, by its code or time")
    command(delete).add_argument("--yes", action="store_true", help="do not ask for the stage's name")


def deploy(args: argparse.Namespace) -> int:
    """Deploy a stage, or go on with a deploy that was cut. It shows what it will do, and asks.

    The exit code is 1 while something is missing.
    """
    import boto3

    from infra.deploy import topic_problem
    from infra.deployment.bucket import bucket_of, make_bucket
    from infra.deployment.code import PROJECT
    from infra.deployment.lock import locked
    from infra.deployment.plan import plan
    from infra.lambda_platform import demand_python

    if args.stage == "local":
        raise CanNot("the stage local runs on this machine alone: make run")
    bucket = bucket_of(boto3)
    if args.check:
        return _check(bucket, args.stage)
    demand_python(PROJECT)
    if problem := topic_problem(args.stage, args.alarm_topic):
        raise CanNot(problem)
    room = _demand(bucket, args.stage, boto3)
    said = plan(boto3, bucket, args.stage)
    for line in (*said, *room):
        print(line)
    if not args.yes:
        ask()
    with locked(make_bucket(boto3), args.stage, _tell) as lock:
        _demand(lock.bucket, args.stage, boto3)  # once more: somebody may have deployed while the question stood
        if (by_now := plan(boto3, lock.bucket, args.stage)) != said:
            words = "it would do something else by now, and did nothing: run this again. What is new"
            raise CanNot("\n".join([words, *(line for line in by_now if line not in said)]))
        _deploy(args, lock, boto3)
    return _end(lock.bucket, args.stage)


def package(args: argparse.Namespace) -> int:
    """Write the package that functions run, where plain `chalice deploy` finds it. Asks AWS nothing."""
    from zipfile import ZipFile

    from infra.chalice import write_package
    from infra.deployment.code import PROJECT

    file = write_package(PROJECT, args.stage)
    with ZipFile(file) as archive:
        unzipped = sum(entry.file_size for entry in archive.infolist())
    print(f"{file.relative_to(PROJECT)}: {file.stat().st_size / 1e6:.1f} MB, {unzipped / 1e6:.1f} MB unzipped")
    return 0


def rollback(args: argparse.Namespace) -> int:
    """Bring functions back to the version before: code and rights. It shows what it will do, and asks.

    Run again before the next deploy it ends the same rollback, whether or not that was cut.
    """
    import boto3

    from infra.deployment import rolling_back
    from infra.deployment.bucket import bucket_of
    from infra.deployment.lock import locked

    bucket = bucket_of(boto3)
    print(bucket.where)
    functions, known, target = _target(bucket, args)
    for line in rolling_back.preview(functions, known, target):
        print(line)
    if not args.yes:
        ask()
    with locked(bucket, args.stage, _tell) as lock:
        functions, _, again = _target(bucket, args)
        if again != target:
            raise CanNot("somebody deployed meanwhile: nothing was done")
        changed = rolling_back.roll_back(boto3, lock, functions, target)
    print(f"{len(changed)} functions of stage {args.stage} run {target.code} of {target.at} again")
    return 0


def _target(bucket: Bucket, args: argparse.Namespace) -> tuple[Mapping[str, Function], Versions, Version]:
    """The functions that stand, the versions that are kept, and the one to go back to. Raises CanNot where none may come back."""
    import boto3

    from infra.deployment import forms, standing, versions

    functions, known = standing.look(boto3, args.stage).functions, versions.fetch(bucket, args.stage)
    target = versions.before(known, {each.version for each in functions.values()}, args.stage, args.to)
    if not functions:
        raise CanNot(f"no function of stage {args.stage} stands: deploy brings it back")
    forms.demand_reads(args.stage, known, functions.values(), target)
    return functions, known, target


def delete(args: argparse.Namespace) -> int:
    """Take down functions, API and schedules of a stage, and keep what is money. It says what it keeps, and asks for the name."""
    import boto3

    from infra.deploy import stack_name
    from infra.deployment import extras, key_stack, taking_down
    from infra.deployment.bucket import bucket_of, make_bucket
    from infra.deployment.code import PROJECT
    from infra.deployment.lock import locked

    if args.stage == "local":
        raise CanNot("the stage local ends with make run")
    bucket = bucket_of(boto3)
    if blocking := extras.in_the_way(boto3.client("cloudformation"), args.stage):
        raise CanNot(f"the API can not go before: {', '.join(f'platform {name} --unmap' for name in blocking)}")
    if names := extras.inside(boto3.client("lambda"), args.stage):
        raise CanNot(f"{', '.join(names)}: still in a network. {extras.LEAVE}")
    for line in taking_down.preview(boto3, bucket, args.stage, PROJECT):
        print(line)
    if not args.yes:
        ask(f"Type the stage's name, {args.stage}, to go on: ", (args.stage,))
    with locked(make_bucket(boto3), args.stage, _tell) as lock:
        taking_down.take_down(boto3, bucket, lock, _tell, PROJECT)
    for line in taking_down.kept(boto3.client("cloudformation"), key_stack.name_of(args.stage), stack_name(args.stage)):
        print(line)
    for line in taking_down.kept_beside(boto3, bucket, args.stage):
        print(line)
    print(f"stage {args.stage} is taken down; deploy brings it back with the same money")
    return 0


def _demand(bucket: Bucket, stage: str, session: Any) -> list[str]:
    """Lines about the account's room. Raises CanNot where this checkout must not be deployed now."""
    from infra.deployment import code, forms, function_settings, quotas, standing, versions
    from infra.deployment.adopt import demand_one_api
    from infra.stage_settings import declared

    code.policies(code.PROJECT, stage)
    found = standing.look(session, stage)
    demand_one_api(found.apis, stage, code.api_url(bucket))
    forms.demand_readers(stage, versions.fetch(bucket, stage), found.functions.values(), declared(stage))
    return [function_settings.demand_room(session.client("lambda"), stage), *quotas.demand(session, stage, found)]


def _deploy(args: argparse.Namespace, lock: Lock, session: Any) -> None:
    from infra import gateway_answers, mappings
    from infra.deploy import end_stack
    from infra.deployment import forms, function_settings, gateway_stage, mend, standing, stopping, versions
    from infra.deployment.code import PROJECT, deploy_code, recorded_functions

    stage, client = args.stage, session.client("lambda")
    prepare_stage(args, lock.demand, keep=True)
    lock.demand()
    if forms.older_ran(versions.fetch(lock.bucket, stage), standing.look(session, stage).functions.values()):
        reopen()
    known = recorded_functions(lock.bucket, stage, PROJECT)
    stopped, whole = stopping.to_stay(client, standing.function_names(client, stage), known)

    def stop_again() -> None:
        """Their new mappings, and of a stage that is stopped as a whole new functions: they run from Chalice on."""
        if stopped and (left := stopping.stop(client, standing.function_names(client, stage) if whole else stopped)):
            raise CanNot("; ".join(f"{name} is called, and was to be stopped: {said}" for name, said in left.items()))

    recorded = deploy_code(session, lock.bucket, lock, _tell, PROJECT, stop_again)
    wanted = mappings.consumers(stage)
    surplus = mend.too_many(wanted, standing.look(session, stage), recorded)
    mend.take_away(client, surplus)
    for each in surplus:
        print(f"{each.function}: the mapping {each.uuid} of {each.queue} was one too many, and is gone")
    mappings.heed(client, wanted, mappings.standing(client, [each.function for each in wanted]))
    function_settings.settle(client, stage, standing.function_names(client, stage))
    lock.demand()
    api = next(each["rest_api_id"] for each in recorded if each["resource_type"] == "rest_api")
    gateway_answers.put_answers(api)
    for line in gateway_stage.settle(session, lock.bucket, stage, api):
        print(line)
    lock.demand()
    for line in end_stack(stage, demand=lock.demand):
        print(line)


def _end(bucket: Bucket, stage: str) -> int:
    """What needs no lock: a migration runs beside the service and may take long; `rollback` has to be possible meanwhile."""
    migrate_behind()
    return _check(bucket, stage)


def _check(bucket: Bucket, stage: str) -> int:
    import boto3

    from infra.deployment.check import check

    found = check(boto3, bucket, stage)
    for line in (*found.versions, *found.beside):
        print(line)
    for line in found.wrong:
        print(line, file=sys.stderr)
    if found.wrong:
        otherwise = f"What names no other way: python -m infra.cli --stage {stage} deploy"
        print(f"{len(found.wrong)} things are missing or wrong. {otherwise}", file=sys.stderr)
    else:
        print(f"stage {stage} stands as it is declared: {found.url}")
    return 1 if found.wrong else 0


def _tell(line: str) -> None:
    print(line, flush=True)
