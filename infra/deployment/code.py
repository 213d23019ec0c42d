"""What Chalice deploys: functions, roles, rules, mappings and the API. Its record comes from the bucket, and goes back there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.settings import APP
from infra import deploy, lambda_platform
from infra.commands.common import CanNot
from infra.deployment import elsewhere, forms, needs, record, standing, versions
from infra.deployment.adopt import adopted, short_name
from infra.deployment.bucket import Bucket
from infra.deployment.lock import Lock
from infra.deployment.record import Record, Resource
from infra.deployment.versions import Version
from infra.mappings import consumers
from infra.stage_settings import declared

PROJECT = Path(__file__).resolve().parents[2]
AGAIN = "what was done stays; run this again to go on"


def deploy_code(
    session: Any,
    bucket: Bucket,
    lock: Lock,
    tell: Callable[[str], None],
    project: Path,
    behind: Callable[[], None] = lambda: None,
) -> list[Resource]:
    """Deploy the project with Chalice to the stage whose lock is held; the record afterwards. `behind` is done right behind
    Chalice, and before what that made is shared.

    Records of an older version have to be migrated anew behind it (`migrating.reopen`). What stands and is not recorded is adopted
    first. Raises CanNot where Chalice fails, the lock is lost or two APIs serve the stage; botocore's ClientError.
    """
    with recording(session, bucket, lock, project, migrating=True) as recorded:
        chalice(project, lock, tell)
        behind()
    return recorded


@contextmanager
def recording(session: Any, bucket: Bucket, lock: Lock, project: Path, *, migrating: bool = False) -> Iterator[list[Resource]]:
    """What goes round Chalice's deploy, whoever runs it: the record, before it what may be written, and behind it the version, for
    `rollback`. `migrating`: what an older version wrote is migrated anew behind it.

    Raises CanNot where a function that runs would not read what this checkout writes, or the stage stands in another region, and as
    `_sharing`.
    """
    stage, needed = lock.stage, needs.of_template(deploy.TEMPLATE.read_text(), lock.stage)
    rights, wanted = policies(project, stage), declared(stage, config=project / ".chalice" / "config.json")
    known, functions = versions.fetch(bucket, stage), standing.look(session, stage).functions.values()
    elsewhere.demand_no_other(session, bucket, stage, functions)
    forms.demand_readers(stage, known, functions, wanted)
    migrated = forms.MIGRATED if migrating or not forms.older_ran(known, functions) else ()
    platform = lambda_platform.declared(project, stage)
    made = Version("", "", rights, forms.read_here(), forms.written_here(), *platform, migrated, needed)
    versions.begin(bucket, stage, {*made.writes, *forms.switched_on(stage, wanted)})
    with _sharing(session, bucket, lock, project) as recorded:
        yield recorded
    running = session.client("lambda").get_function_configuration(FunctionName=f"{APP}-{stage}")["CodeSha256"]
    package = versions.package_of(project / ".chalice" / "deployments", running)
    versions.keep(bucket, stage, package, made)


@contextmanager
def _sharing(session: Any, bucket: Bucket, lock: Lock, project: Path) -> Iterator[list[Resource]]:
    """Give this checkout the record of what stands, while Chalice deploys it, and share what Chalice has made of that: behind, the
    list has it.

    Raises CanNot where Chalice wrote none, the lock is lost or two APIs serve the stage; botocore's ClientError.
    """
    file, made = record.file_of(project, lock.stage), list[Resource]()
    shared, resources = adopt(session, bucket, lock.stage, project)
    record.write_file(file, resources)
    yield made
    lock.demand()
    after = record.read_file(file)
    if after is None:
        raise CanNot(f"Chalice wrote no record {file}: {AGAIN}")
    record.store(bucket, lock.stage, after.resources, shared.etag if shared else None)
    made += after.resources


def adopt(session: Any, bucket: Bucket, stage: str, project: Path) -> tuple[Record | None, list[Resource]]:
    """The shared record, and what it has to say of what stands now; without one, this checkout's, where that is of this account and
    region. Raises CanNot, ClientError."""
    shared, before = _before(bucket, stage, project)
    queues = {each.function: each.queue for each in consumers(stage)}
    return shared, adopted(before, standing.look(session, stage), queues, stage, session, api_url(bucket))


def recorded_functions(bucket: Bucket, stage: str, project: Path) -> set[str]:
    """The functions that `adopt` finds recorded, by Lambda's names: a deploy that was cut has left others. Raises as that."""
    found = _before(bucket, stage, project)[1]
    return {str(each["lambda_arn"]).rsplit(":", 1)[1] for each in found if each["resource_type"] == "lambda_function"}


def _before(bucket: Bucket, stage: str, project: Path) -> tuple[Record | None, tuple[Resource, ...]]:
    """The shared record, and what is recorded there or else in this checkout."""
    if shared := record.fetch(bucket, stage):
        return shared, shared.resources
    own = record.read_file(record.file_of(project, stage)) or Record(())
    # Of another place it would name roles, which stand in that one.
    return None, own.resources if record.is_of(own.resources, bucket.owner, bucket.region) else ()


def api_url(bucket: Bucket) -> str:
    """The address of an API of this region, with {} for its id."""
    suffix = "amazonaws.com.cn" if bucket.region.startswith("cn-") else "amazonaws.com"
    return f"https://{{}}.execute-api.{bucket.region}.{suffix}/api/"


def policies(project: Path, stage: str) -> dict[str, dict[str, Any]]:
    """The rights of each function of app.py, by Lambda's names, as its policy file says them. Raises CanNot for one without."""
    from chalice.config import Config

    loaded, found = json.loads((project / ".chalice" / "config.json").read_text()), {}
    for name in standing.declared(stage):
        file = Config(chalice_stage=stage, function_name=short_name(stage, name), config_from_disk=loaded).iam_policy_file
        if file is None or not (project / ".chalice" / file).exists():
            raise CanNot(f"{name} has no policy file: .chalice/config.json names {file or 'none'} for it as iam_policy_file")
        found[name] = json.loads((project / ".chalice" / file).read_text())
    return found


def chalice(project: Path, lock: Lock, tell: Callable[[str], None], *, delete: bool = False) -> None:
    """`chalice deploy` of our package, or `chalice delete`. Before each thing that it makes, changes or deletes it has to have the
    lock still. Raises CanNot."""
    from chalice.cli.factory import CLIFactory
    from chalice.deploy.deployer import ChaliceDeploymentError, create_deletion_deployer

    from infra.chalice import use_our_package
    from infra.deployment.chalice_client import Client, Told

    use_our_package()
    factory = CLIFactory(str(project))
    config, session = factory.create_config_obj(chalice_stage_name=lock.stage), factory.create_botocore_session()
    try:
        if delete:
            deployer = create_deletion_deployer(Client(session), Told(lock, tell))
        else:
            deployer = factory.create_default_deployer(session=session, config=config, ui=Told(lock, tell))
        deployer.deploy(config, chalice_stage_name=lock.stage)
    except (ChaliceDeploymentError, ClientError, BotoCoreError, RuntimeError) as error:
        raise CanNot(f"Chalice: {error}: {AGAIN}") from error
