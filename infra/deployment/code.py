"""What Chalice deploys: functions, roles, rules, mappings and the API. Its record comes from the bucket, and goes back there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.deployment import record, standing, versions
from infra.deployment.adopt import adopted, short_name
from infra.deployment.bucket import Bucket
from infra.deployment.lock import Lock
from infra.deployment.record import Record, Resource
from infra.mappings import consumers

PROJECT = Path(__file__).resolve().parents[2]
AGAIN = "what was done stays; run this again to go on"


def deploy_code(session: Any, bucket: Bucket, lock: Lock, tell: Callable[[str], None], project: Path) -> list[Resource]:
    """Deploy the project with Chalice to the stage whose lock is held; the record afterwards.

    What stands and is not recorded is adopted first. Raises CanNot where Chalice fails, the lock is lost or two APIs serve the
    stage; botocore's ClientError.
    """
    stage, file = lock.stage, record.file_of(project, lock.stage)
    shared = record.fetch(bucket, stage)
    before = shared or record.read_file(file) or Record(())
    queues = {each.function: each.queue for each in consumers(stage)}
    found = standing.look(session, stage)
    record.write_file(file, adopted(before.resources, found, queues, stage, session, api_url(bucket)))
    _chalice(project, stage, lock, tell)
    lock.demand()
    after = record.read_file(file)
    if after is None:
        raise CanNot(f"Chalice wrote no record {file}: {AGAIN}")
    record.store(bucket, stage, after.resources, shared.etag if shared else None)
    running = session.client("lambda").get_function_configuration(FunctionName=f"{APP}-{stage}")["CodeSha256"]
    versions.keep(bucket, stage, versions.package_of(project / ".chalice" / "deployments", running), _rights(project, stage))
    return list(after.resources)


def api_url(bucket: Bucket) -> str:
    """The address of an API of this region, with {} for its id."""
    suffix = "amazonaws.com.cn" if bucket.region.startswith("cn-") else "amazonaws.com"
    return f"https://{{}}.execute-api.{bucket.region}.{suffix}/api/"


def _rights(project: Path, stage: str) -> dict[str, dict[str, Any]]:
    """The rights of each function of app.py, by Lambda's names, as its policy file says them."""
    from chalice.config import Config

    loaded, found = json.loads((project / ".chalice" / "config.json").read_text()), {}
    for name in standing.declared(stage):
        file = Config(chalice_stage=stage, function_name=short_name(stage, name), config_from_disk=loaded).iam_policy_file
        found[name] = json.loads((project / ".chalice" / str(file)).read_text())
    return found


def _chalice(project: Path, stage: str, lock: Lock, tell: Callable[[str], None]) -> None:
    """`chalice deploy` of our package. Before each thing that it makes or changes it has to have the lock still."""
    from chalice.cli.factory import CLIFactory
    from chalice.deploy.deployer import ChaliceDeploymentError
    from chalice.utils import UI

    from infra.chalice import use_our_package

    class Told(UI):
        def write(self, message: str) -> None:
            lock.demand()
            tell(message.rstrip())

    use_our_package()
    factory = CLIFactory(str(project))
    config = factory.create_config_obj(chalice_stage_name=stage)
    try:
        deployer = factory.create_default_deployer(session=factory.create_botocore_session(), config=config, ui=Told())
        deployer.deploy(config, chalice_stage_name=stage)
    except (ChaliceDeploymentError, ClientError, BotoCoreError, RuntimeError) as error:
        raise CanNot(f"Chalice: {error}: {AGAIN}") from error
