"""infra/deployer-platform.json: with infra/deployer.json, rights for the optional stacks; no more than handlers ask for."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest
import yaml
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from infra.deployment.extras import EXTRAS
from tests.deploy.conftest import ROOT
from tests.deploy.template_text import Loader

FILE = ROOT / "infra" / "deployer-platform.json"
LINKED = "iam:CreateServiceLinkedRole"
GATEWAY = "ops.apigateway.amazonaws.com"
RESOURCES = [
    each
    for extra in EXTRAS
    for each in yaml.load(extra.template, Loader=Loader)["Resources"].values()  # noqa: S506 - a SafeLoader
]
TYPES = sorted({each["Type"] for each in RESOURCES})
UNUSED = {
    # For what else a firewall may stand before than an API.
    "AWS::WAFv2::WebACLAssociation": {
        'ResourceArn: !Sub "arn:${AWS::Partition}:elasticloadbalancing': (
            *("amplify:*", "apprunner:*", "appsync:*", "bedrock-agentcore:*", "cognito-idp:*", "ec2:*", "elasticloadbalancing:*"),
        )
    },
    "AWS::WAFv2::WebACL": {"MonetizationConfig": ("payments:*",)},
    "AWS::CertificateManager::Certificate": {"CertificateAuthorityArn": ("acm-pca:*",)},
    "AWS::EC2::VPC": {"VpcEncryptionControl": ("ec2:*VpcEncryptionControl*",)},
    "AWS::EC2::VPCEndpoint": {"ServiceNetworkArn": ("vpc-lattice:*",), "ServiceRegion": ("vpce:AllowMultiRegion",)},
    "AWS::EC2::VPCGatewayAttachment": {"VpnGatewayId": ("ec2:*VpnGateway*",)},
    "AWS::EC2::Subnet": {"Ipv6CidrBlock": ("ec2:*SubnetCidrBlock",)},
    "AWS::EC2::EIP": {"TransferAddress": ("ec2:AcceptAddressTransfer",)},
}
"""Rights that a resource's handler asks for where the template has this property, which it has not."""


def statements() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(FILE.read_text())["Statement"]
    return found


def handled(type_: str) -> set[str]:
    """As in test_deployer.py."""
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", type_).schema["handlers"]
    asked = {each for way in ("create", "read", "update", "delete") for each in handlers.get(way, {}).get("permissions", [])}
    spared = [pattern for patterns in UNUSED.get(type_, {}).values() for pattern in patterns]
    return {action for action in asked if not any(fnmatchcase(action, pattern) for pattern in spared)}


def test_it_is_small_enough_for_a_managed_policy() -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: 6,144 characters, white space not counted."""
    assert len(re.sub(r"\s", "", FILE.read_text())) <= 6_144


@pytest.mark.parametrize("type_", TYPES)
def test_cloudformation_may_do_with_it_what_the_templates_ask_for(type_: str) -> None:
    templates = "".join(extra.template for extra in EXTRAS)
    assert [name for name in UNUSED.get(type_, {}) if name in templates] == []
    given = {action for statement in statements() for action in statement["Action"]}
    assert handled(type_) and sorted(handled(type_) - given) == []


def test_every_right_is_one_that_something_needs() -> None:
    # The zones are read for !GetAZs.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-getavailabilityzones.html
    asked = {action for type_ in TYPES for action in handled(type_)} | {"ec2:DescribeAvailabilityZones", LINKED}
    assert [action for statement in statements() for action in statement["Action"] if action not in asked] == []


def test_the_first_domain_of_an_account_can_be_made() -> None:
    """API Gateway makes its own role then, in the name of who asks: no handler says so, and CreateDomainName is refused without.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/using-service-linked-roles.html
    https://docs.aws.amazon.com/IAM/latest/UserGuide/create-service-linked-role.html
    """
    (statement,) = (each for each in statements() if LINKED in each["Action"])
    assert statement["Action"] == [LINKED]
    assert statement["Resource"] == f"arn:aws:iam::*:role/aws-service-role/{GATEWAY}/*"
    assert statement["Condition"] == {"StringEquals": {"iam:AWSServiceName": GATEWAY}}


def test_what_names_no_resource_only_looks_or_is_called_by_cloudformation() -> None:
    """Lambda asks, in the name of who puts a function into a network, for its subnets and groups.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
    """
    for statement in statements():
        if statement["Action"] == [LINKED]:
            continue  # It names its resource.
        if "Condition" not in statement:
            assert all(action.startswith("ec2:Describe") for action in statement["Action"])
            assert {"ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"} <= set(statement["Action"])
            continue
        assert statement["Condition"] == {"ForAnyValue:StringEquals": {"aws:CalledVia": "cloudformation.amazonaws.com"}}
