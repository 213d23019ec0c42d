"""What a stage lacks of what a deploy makes: after `deploy` nothing, after a plain `chalice deploy` what Chalice can not set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.settings import APP
from infra import gateway_answers, lambda_platform, mappings, network_rights
from infra.commands.common import CanNot
from infra.deploy import TEMPLATE, stack_name
from infra.deployment import code, entrances, extras, function_settings, gateway_stage, key_stack, record, retained, roles, standing
from infra.deployment.adopt import adopted
from infra.deployment.bucket import Bucket
from infra.deployment.code import api_url
from infra.deployment.mend import too_many
from infra.deployment.stack_states import STANDS, is_missing
from infra.deployment.standing import Standing
from infra.lambda_platform import Size
from infra.stage_settings import differences


@dataclass(frozen=True, slots=True)
class Checked:
    """The version of every function (checksum and time), what is wrong, a line each, and the API's address."""

    versions: tuple[str, ...]
    wrong: tuple[str, ...]
    url: str | None
    beside: tuple[str, ...] = ()
    """The optional stacks that stand, with their states."""


def check(session: Any, bucket: Bucket, stage: str) -> Checked:
    """Look at all that stands. Changes nothing. Raises botocore's ClientError."""
    found, formation = standing.look(session, stage), session.client("cloudformation")
    versions = tuple(f"{each.name} {each.version} {each.changed}" for _, each in sorted(found.functions.items()))
    parts: list[Callable[[], Iterator[str]]] = [
        lambda: _stack(formation, key_stack.name_of(stage), key_stack.KEYS),
        lambda: _stack(formation, stack_name(stage), TEMPLATE),
        lambda: _protection(session.client("dynamodb"), stage),
        lambda: _functions(session.client("lambda"), found, stage),
        lambda: _places(found, stage),
        lambda: roles.wrong(session.client("iam"), found, stage, code.PROJECT),
        lambda: iter(differences(session.client("lambda"), stage)),
        lambda: function_settings.wrong(session.client("lambda"), stage, sorted(found.functions)),
        lambda: _queues(session.client("lambda"), found, stage),
        lambda: entrances.rules(session.client("events"), found, stage),
        lambda: entrances.permissions(session, found, stage),
        lambda: _api(session.client("apigateway"), found, stage),
        lambda: _api_stage(session, bucket, found, stage),
        lambda: _record(session, bucket, found, stage),
        lambda: extras.wrong(formation, stage, found.apis),
    ]
    wrong = tuple(line for part in parts for line in part())
    url = api_url(bucket).format(found.apis[0]) if len(found.apis) == 1 else None
    beside = (f"stack {stack_name(stage)}-{name} {state}" for name, state in extras.states(formation, stage).items())
    return Checked(versions, wrong, url, tuple(beside))


def _stack(formation: Any, name: str, file: Path) -> Iterator[str]:
    try:
        (stack,) = formation.describe_stacks(StackName=name)["Stacks"]
        sent = formation.get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
    except ClientError as error:
        if not is_missing(error):
            raise
        yield f"there is no stack {name}"
        return
    if stack["StackStatus"] not in STANDS:
        yield f"the stack {name} is {stack['StackStatus']}"
    if str(sent).strip() != file.read_text().strip():
        yield f"the stack {name} was made of another template than infra/{file.name}"


def _protection(dynamodb: Any, stage: str) -> Iterator[str]:
    """A new stack's tables are protected in a second update; other stages' never."""
    if stage == "prod" and (names := retained.unprotected(dynamodb, TEMPLATE.read_text(), stage)):
        yield f"not protected from deletion: {', '.join(names)}"


def _functions(client: Any, found: Standing, stage: str) -> Iterator[str]:
    wanted, platform = standing.declared(stage), lambda_platform.declared(code.PROJECT, stage)
    yield from (f"{name} is not deployed" for name in wanted if name not in found.functions)
    for name, function in found.functions.items():
        if name not in wanted:
            if standing.is_made_by_chalice(client, stage, function):
                yield f"{name} is deployed, and app.py does not name it"
        elif function.platform != platform:
            yield f"{name} runs on {' and '.join(function.platform)}, and config.json says {' and '.join(platform)}"
    versions = {each.version for each in found.functions.values() if each.name in wanted}
    if len(versions) > 1:
        yield f"functions run {len(versions)} different versions"


def _places(found: Standing, stage: str) -> Iterator[str]:
    """The network that each function is in, and its memory and timeout."""
    for function in [found.functions[name] for name in standing.declared(stage) if name in found.functions]:
        own = function.name.removeprefix(f"{APP}-{stage}").removeprefix("-") or "api_handler"
        network, size = network_rights.declared(stage, own), lambda_platform.size_of(code.PROJECT, stage, own)
        if function.network != network:
            yield f"{function.name} is in {function.network}, and config.json says {network}"
        units = zip(Size._fields, function.size, size, strict=True)
        if other := [f"{has} {unit}, not {said}" for unit, has, said in units if has != said]:
            yield f"{function.name} has {', and '.join(other)}, as config.json says"


def _queues(client: Any, found: Standing, stage: str) -> Iterator[str]:
    wanted = mappings.consumers(stage)
    yield from mappings.wrong(wanted, mappings.standing(client, [each.function for each in wanted]))
    for each in too_many(wanted, found, ()):
        if each.function not in [consumer.function for consumer in wanted]:
            yield f"{each.function}: the mapping {each.uuid} of {each.queue} was left behind"


def _api(client: Any, found: Standing, stage: str) -> Iterator[str]:
    if len(found.apis) != 1:
        named = f": {', '.join(found.apis)}: delete the one that, by its metrics, no merchant uses" if found.apis else ""
        yield f"{len(found.apis)} REST APIs call {APP}-{stage}{named}"
        return
    answers = {each["responseType"]: each for each in client.get_gateway_responses(restApiId=found.apis[0], limit=500)["items"]}
    other = [w["responseType"] for w in gateway_answers.answers() if not _same(answers.get(w["responseType"], {}), w)]
    if other:
        yield f"API Gateway answers in its own words: {', '.join(other)}"
    yield from entrances.routes(client, found.apis[0])


def _api_stage(session: Any, bucket: Bucket, found: Standing, stage: str) -> Iterator[str]:
    if len(found.apis) == 1:
        yield from gateway_stage.wrong(session, bucket, stage, found.apis[0])


def _same(stands: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(stands.get(key) == value for key, value in wanted.items())


def _record(session: Any, bucket: Bucket, found: Standing, stage: str) -> Iterator[str]:
    """Only the names are compared: the rest follows from them."""
    try:
        shared = record.fetch(bucket, stage)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
        shared = None
    if shared is None:
        yield f"no record is shared in {bucket.name}: another checkout would know nothing of this deploy"
        return
    queues = {each.function: each.queue for each in mappings.consumers(stage)}
    try:
        now = adopted(shared.resources, found, queues, stage, session, api_url(bucket))
    except CanNot:
        return  # two APIs: told above
    before, after = _lines(shared.resources), _lines(now)
    if before != after:
        yield f"the shared record is not what stands: {', '.join(sorted({name for name, _ in before ^ after}))}"


def _lines(resources: Sequence[record.Resource]) -> set[tuple[str, str]]:
    """Name, and which one of that name it is."""
    return {(each["name"], str(each.get("event_uuid") or each.get("rest_api_id") or "")) for each in resources}
