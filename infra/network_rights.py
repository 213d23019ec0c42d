"""The network of the operator's that functions are in, as config.json says, and what their roles need there: Lambda makes the
interfaces in the role's name.

The function itself is denied them: a role whose code was taken over would move interfaces of the account.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html (permissions)
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AWSLambdaVPCAccessExecutionRole.html
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from chalicelib.settings import APP
from infra.stage_settings import CONFIG

_INTERFACES = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
]


class Network(NamedTuple):
    """Where a function is, as sets: neither Lambda nor Chalice keeps an order. Both are empty for one that is in no network."""

    subnets: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return ", ".join([*sorted(self.subnets), *sorted(self.groups)]) or "no network"


def network_of(configuration: dict[str, Any]) -> Network:
    """Of a function, by what Lambda tells of it. https://docs.aws.amazon.com/lambda/latest/api/API_VpcConfigResponse.html"""
    found = configuration.get("VpcConfig") or {}
    return Network(frozenset(found.get("SubnetIds", [])), frozenset(found.get("SecurityGroupIds", [])))


def declared(stage: str, function: str, config: Path = CONFIG) -> Network:
    """Where config.json puts `function`, as Chalice calls it, and reads the file."""
    from chalice.config import Config

    found = Config(chalice_stage=stage, function_name=function, config_from_disk=json.loads(config.read_text()))
    return Network(frozenset(found.subnet_ids or []), frozenset(found.security_group_ids or []))


def rights(stage: str, config: Path = CONFIG) -> list[dict[str, Any]]:
    """The statements, where config.json names subnets of functions of `stage`; none otherwise. An empty list counts: Lambda deletes
    the interfaces of functions that have left by their roles, behind the deploy.
    https://github.com/aws/aws-cdk/issues/34400 (what becomes of interfaces whose role may not delete them)
    """
    if not _names_subnets(stage, json.loads(config.read_text())):
        return []
    own = {"ArnLike": {"lambda:SourceFunctionArn": f"arn:aws:lambda:*:*:function:{APP}-{stage}*"}}
    return [
        {"Sid": "Network", "Effect": "Allow", "Action": _INTERFACES, "Resource": ["*"]},
        {"Sid": "NetworkByLambdaAlone", "Effect": "Deny", "Action": _INTERFACES, "Resource": ["*"], "Condition": own},
    ]


def _names_subnets(stage: str, loaded: dict[str, Any]) -> bool:
    """For all stages, one, or functions of one, as Chalice reads them."""
    places = [loaded, loaded.get("stages", {}).get(stage, {})]
    functions = [each for place in places for each in place.get("lambda_functions", {}).values()]
    return any("subnet_ids" in each for each in (*places, *functions))
