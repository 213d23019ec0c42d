"""The optional stacks of a stage: a domain, a firewall, a network, a budget. Each is a template in infra/platform.

They stand beside the stage's own stack, hold no money, and may go and come again. What an operator gave last time is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.settings import APP
from infra.commands.common import CanNot
from infra.deploy import stack_name
from infra.deployment import standing
from infra.deployment.bucket import Bucket
from infra.deployment.stack import send, upload
from infra.deployment.stack_states import STANDS, demand, is_missing, settled, state_of, takes_update

FOLDER = Path(__file__).resolve().parents[1] / "platform"
_UNCHANGED = "No updates are to be performed"
_RECORD = "Content of DNS Record is"
LEAVE = (
    "Set subnet_ids and security_group_ids to [] in .chalice/config.json, and deploy: Lambda deletes the network interfaces by the"
    " functions' roles. Go on once aws ec2 describe-network-interfaces shows none"
)

Wait = Callable[[float], None]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Option:
    """What an operator gives: a parameter of the template. One that is `needed` has no default there."""

    flag: str
    parameter: str
    says: str
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Extra:
    """`of_the_api`: the template has the API's id as RestApiId. `then`: what is left to the operator, with the stack's outputs."""

    name: str
    says: str
    options: tuple[Option, ...]
    of_the_api: bool = False
    then: str = ""

    @property
    def template(self) -> str:
        return (FOLDER / f"{self.name}.yaml").read_text()


EXTRAS = (
    Extra(
        "domain",
        "A domain of your own, with its certificate",
        (
            Option("name", "DomainName", "the domain, such as pay.example.com", needed=True),
            Option("zone", "HostedZoneId", "the Route 53 zone that has it; '' where DNS is elsewhere (default)"),
        ),
        of_the_api=True,
        then="without a zone let a CNAME of the domain lead to {Target}; then set PUBLIC_URL to {PublicUrl} and deploy",
    ),
    Extra(
        "firewall",
        "A bound on the requests of each address",
        (Option("requests", "Requests", "of one address in five minutes (default 30000)"),),
        of_the_api=True,
    ),
    Extra(
        "network",
        "A network for the functions, with fixed addresses to the outside",
        (
            Option("cidr", "Cidr", "a private network of 16 or 18 bits (default 10.71.0.0/16)"),
            Option("nat", "NatGateways", "NAT gateways, and fixed addresses: 1 or 2 (default)"),
        ),
        then="set subnet_ids [{Subnets}] and security_group_ids [{SecurityGroup}] of the stage in .chalice/config.json, make"
        " policies, and deploy; nodes see {Addresses} from then on",
    ),
    Extra(
        "budget",
        "A mail where the account spends more than you expect",
        (
            Option("usd", "Amount", "US dollars a month, for the whole account", needed=True),
            Option("email", "Email", "who is told at 80 and 100 percent, and of a forecast above", needed=True),
        ),
    ),
)


def extra_stack(stage: str, extra: Extra) -> str:
    """The stack's name."""
    return f"{stack_name(stage)}-{extra.name}"


def put_up(
    session: Any,
    bucket: Bucket,
    stage: str,
    extra: Extra,
    given: Mapping[str, str],
    tell: Tell = print,
    wait: Wait = time.sleep,
) -> dict[str, str]:
    """Make the stack, or bring it to its template and what was given, by parameters; wait until it stands; its outputs.

    Safe to repeat, and after a cut: a stack that is being changed is waited for. Raises CanNot where it does not come to stand, or
    something is missing; botocore's ClientError.
    """
    formation, name = session.client("cloudformation"), extra_stack(stage, extra)
    watching = _watching(formation, name, tell, wait)
    new = not takes_update(formation, name, watching)
    arguments = {
        "StackName": name,
        "TemplateURL": bucket.url(upload(bucket, extra.template)),
        "Parameters": _parameters(session, stage, extra, given, {} if new else stands(formation, name)),
    }
    if new:
        send(formation.create_stack, arguments, wait)
        demand(formation, name, "CREATE_COMPLETE", watching)
        return outputs(formation, name)
    try:
        send(formation.update_stack, arguments, wait)
    except ClientError as error:
        if _UNCHANGED not in error.response["Error"]["Message"]:
            raise
    else:
        demand(formation, name, "UPDATE_COMPLETE", watching)
    return outputs(formation, name)


def take_down(session: Any, stage: str, extra: Extra, wait: Wait = time.sleep) -> None:
    """Delete the stack, and wait until it is gone. Safe to repeat. Raises CanNot where functions use it; botocore's ClientError."""
    formation, name = session.client("cloudformation"), extra_stack(stage, extra)
    if extra.name == "network" and (names := inside(session.client("lambda"), stage)):
        raise CanNot(f"{', '.join(names)}: still in the network. {LEAVE}")
    formation.delete_stack(StackName=name)
    if (state := settled(formation, name, wait)) is not None:
        raise CanNot(f"the stack {name} is {state}: look at its events, and run this again{_left(extra, stage)}")


def _left(extra: Extra, stage: str) -> str:
    """Interfaces whose function is gone with its role are left, and the stack does not go before them."""
    if extra.name != "network":
        return ""
    named = f"Name=description,Values='AWS Lambda VPC ENI-{APP}-{stage}*'"
    return (
        f". Interfaces that functions left: aws ec2 describe-network-interfaces --filters {named}, aws ec2 delete-network-interface"
    )


def plan(session: Any, stage: str, extra: Extra, given: Mapping[str, str]) -> Iterator[str]:
    """What `put_up` will do, a line each. Raises CanNot where something is missing; botocore's ClientError."""
    formation, name = session.client("cloudformation"), extra_stack(stage, extra)
    state = state_of(formation, name)
    before = stands(formation, name) if state in STANDS else {}
    yield f"stack {name} ({state}): brought to infra/platform/{extra.name}.yaml" if state else f"stack {name}: new"
    for each in _parameters(session, stage, extra, given, before):
        key = each["ParameterKey"]
        value, was = each.get("ParameterValue", before.get(key)), before.get(key)
        yield f"  {key}: {value or 'nothing'}" + (f", it was {was or 'nothing'}" if key in before and was != value else "")


def states(formation: Any, stage: str) -> dict[str, str]:
    """Of those that stand, or should: name of the extra and the stack's state. Raises botocore's ClientError."""
    found = {extra.name: state_of(formation, extra_stack(stage, extra)) for extra in EXTRAS}
    return {name: state for name, state in found.items() if state is not None}


def wrong(formation: Any, stage: str, apis: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with optional stacks, a line each. Raises botocore's ClientError."""
    known = {extra.name: extra for extra in EXTRAS}
    for name, state in states(formation, stage).items():
        stack = extra_stack(stage, known[name])
        if state not in STANDS:
            yield f"the stack {stack} is {state}: platform {name}"
        elif known[name].of_the_api and stands(formation, stack).get("RestApiId", "") not in apis:
            yield f"the stack {stack} is not before the API that stands: platform {name}"


def in_the_way(formation: Any, stage: str) -> list[str]:
    """The extras that an API can not be deleted behind.

    API Gateway refuses to delete an API that a domain is mapped to, and leaves a firewall's association without what it names.
    https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteRestApi.html
    """
    found = [extra for extra in EXTRAS if extra.of_the_api and state_of(formation, extra_stack(stage, extra)) is not None]
    return [extra.name for extra in found if stands(formation, extra_stack(stage, extra)).get("RestApiId")]


def stands(formation: Any, name: str) -> dict[str, str]:
    """The parameters of a stack that stands. Raises botocore's ClientError."""
    (stack,) = formation.describe_stacks(StackName=name)["Stacks"]
    return {each["ParameterKey"]: each.get("ParameterValue", "") for each in stack.get("Parameters", [])}


def outputs(formation: Any, name: str) -> dict[str, str]:
    """The outputs of a stack that stands. Raises botocore's ClientError."""
    (stack,) = formation.describe_stacks(StackName=name)["Stacks"]
    return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}


def _parameters(
    session: Any, stage: str, extra: Extra, given: Mapping[str, str], before: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A parameter that is not given has its value of last time; at first, the template's."""
    found: dict[str, str] = {"Stage": stage, **given}
    if extra.of_the_api and "RestApiId" not in given:
        found["RestApiId"] = standing.only(standing.look(session, stage).apis, stage)
    missing = [f"--{o.flag}" for o in extra.options if o.needed and o.parameter not in found and o.parameter not in before]
    if missing:
        raise CanNot(f"platform {extra.name} needs {' and '.join(missing)}")
    kept = [key for key in before if key not in found]
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in found.items()] + [
        {"ParameterKey": key, "UsePreviousValue": True} for key in kept
    ]


def inside(client: Any, stage: str) -> list[str]:
    """The functions that a network of the operator's holds. Raises botocore's ClientError."""
    names = standing.function_names(client, stage)
    found = ((name, client.get_function_configuration(FunctionName=name).get("VpcConfig", {})) for name in names)
    return [name for name, network in found if network.get("SubnetIds")]


def _watching(formation: Any, name: str, tell: Tell, wait: Wait) -> Wait:
    """Waits, and tells once the record that a certificate waits for: nobody else makes it where DNS is not in Route 53.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-certificatemanager-certificate.html
    """
    told: set[str] = set()

    def watching(seconds: float) -> None:
        for event in _events(formation, name):
            reason = event.get("ResourceStatusReason", "")
            if _RECORD in reason and reason not in told:
                told.add(reason)
                tell(f"the certificate waits for this record of DNS: {reason}")
        wait(seconds)

    return watching


def _events(formation: Any, name: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = formation.describe_stack_events(StackName=name)["StackEvents"]
    except ClientError as error:
        if not is_missing(error):
            raise
        return []  # it was taken away a moment ago
    return found
