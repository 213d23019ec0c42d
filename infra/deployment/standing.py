"""What stands of a stage beside its stack: functions, roles, rules, queue mappings and REST APIs, as AWS itself lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.lambda_platform import Platform, Size
from infra.network_rights import Network, network_of

_EVENT = "-event"


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `version` is the checksum of what it runs, as Lambda tells it; `platform` what it runs on; `settings` are its
    environment, `network` is where it is, `size` its memory and timeout."""

    name: str
    arn: str
    role: str
    version: str
    changed: str
    platform: Platform
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # an API key may be among them
    network: Network = field(default_factory=Network)
    size: Size = field(default_factory=Size)


@dataclass(frozen=True, slots=True)
class QueueMapping:
    uuid: str
    function: str
    queue_arn: str
    state: str

    @property
    def queue(self) -> str:
        return self.queue_arn.rsplit(":", 1)[-1]


@dataclass(frozen=True, slots=True)
class Standing:
    """All of a stage; functions by their names."""

    functions: Mapping[str, Function]
    rules: tuple[str, ...]
    mappings: tuple[QueueMapping, ...]
    apis: tuple[str, ...]
    """The REST APIs that call the stage's function."""
    every_api: tuple[str, ...]
    """Those of all stages: they have one name."""


def look(session: Any, stage: str) -> Standing:
    """What stands of a stage. `session` is boto3 or a session of it. Raises botocore's ClientError."""
    functions = {each.name: each for each in _functions(session.client("lambda"), stage)}
    gateway = session.client("apigateway")
    named, mine = _named_and_mine(gateway, stage)
    return Standing(
        functions,
        tuple(sorted(_rules(session.client("events"), stage))),
        tuple(sorted(_mappings(session.client("lambda"), stage), key=lambda each: each.uuid)),
        mine,
        named,
    )


def api_of(gateway: Any, stage: str) -> str:
    """The id of the REST API that serves a stage, whoever deployed it. `gateway` is API Gateway's client; nothing else is asked.

    Raises CanNot where there is none, or more than one; botocore's ClientError.
    """
    return only(_named_and_mine(gateway, stage)[1], stage)


def only(apis: Sequence[str], stage: str) -> str:
    """The one of the APIs that serve a stage. Raises CanNot where there is none, or more than one."""
    if len(apis) != 1:
        raise CanNot(f"{len(apis)} REST APIs serve stage {stage}{': ' if apis else ''}{', '.join(apis)}; deploy first")
    return apis[0]


def function_names(client: Any, stage: str) -> list[str]:
    """The functions of a stage that stand. `client` is Lambda's: nothing else is asked. Raises botocore's ClientError."""
    return sorted(each.name for each in _functions(client, stage))


def declared(stage: str) -> list[str]:
    """The functions of app.py, by Lambda's names."""
    from app import app

    return [f"{APP}-{stage}", *(f"{APP}-{stage}-{source.name}" for source in app.event_sources)]


def is_of(stage: str, function: str) -> bool:
    """Whether a function is of a stage, by its name. No stage's name has a hyphen."""
    return function == f"{APP}-{stage}" or function.startswith(f"{APP}-{stage}-")


def is_made_by_chalice(client: Any, stage: str, function: Function) -> bool:
    """Whether Chalice made it for this stage: it tags what it makes. `client` is Lambda's."""
    tag = client.list_tags(Resource=function.arn)["Tags"].get("aws-chalice", "")
    return bool(tag.endswith(f":stage={stage}:app={APP}"))


def role_is_there(iam: Any, name: str) -> bool:
    """Whether a role stands. Raises botocore's ClientError."""
    try:
        iam.get_role(RoleName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchEntity":
            return False
        raise
    return True


def _named_and_mine(gateway: Any, stage: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    named = tuple(sorted(_apis(gateway)))
    return named, tuple(api for api in named if _calls(gateway, api, f":function:{APP}-{stage}/invocations"))


def _functions(client: Any, stage: str) -> Iterator[Function]:
    for page in client.get_paginator("list_functions").paginate():
        for each in page["Functions"]:
            if is_of(stage, each["FunctionName"]):
                yield Function(
                    each["FunctionName"],
                    each["FunctionArn"],
                    each["Role"].rsplit("/", 1)[1],
                    each["CodeSha256"],
                    each["LastModified"],
                    Platform(each.get("Runtime", "an image"), each.get("Architectures", ["x86_64"])[0]),
                    each.get("Environment", {}).get("Variables", {}),
                    network_of(each),
                    Size(each.get("MemorySize"), each.get("Timeout")),
                )


def _rules(client: Any, stage: str) -> Iterator[str]:
    for page in client.get_paginator("list_rules").paginate(NamePrefix=f"{APP}-{stage}-"):
        yield from (str(rule["Name"]) for rule in page["Rules"] if rule["Name"].endswith(_EVENT))


def _mappings(client: Any, stage: str) -> Iterator[QueueMapping]:
    """Those that are being deleted are left out: they bring nothing any more."""
    for page in client.get_paginator("list_event_source_mappings").paginate():
        for each in page["EventSourceMappings"]:
            function = each["FunctionArn"].split(":")[6]
            if is_of(stage, function) and each["State"] != "Deleting":
                yield QueueMapping(each["UUID"], function, each.get("EventSourceArn", ""), each["State"])


def _apis(client: Any) -> Iterator[str]:
    for page in client.get_paginator("get_rest_apis").paginate():
        yield from (str(api["id"]) for api in page["items"] if api["name"] == APP)


def _calls(client: Any, api: str, function: str) -> bool:
    """Whether the first method of an API that has an integration calls `function`: ours all call one.

    https://docs.aws.amazon.com/apigateway/latest/api/API_GetResources.html (embed)
    """
    pages = client.get_paginator("get_resources").paginate(restApiId=api, embed=["methods"])
    methods = (method for page in pages for each in page["items"] for method in each.get("resourceMethods", {}).values())
    uris = (method.get("methodIntegration", {}).get("uri") for method in methods)
    return function in next((uri for uri in uris if uri), "")
