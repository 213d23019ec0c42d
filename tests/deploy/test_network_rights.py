"""A network of the operator's: the rights of roles, where config.json has subnets, for Lambda alone; which functions are in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra import lambda_platform, network_rights, policies
from infra.deployment import check
from infra.deployment.standing import Function, Standing
from infra.lambda_platform import Platform, Size
from infra.network_rights import network_of, rights


@pytest.mark.parametrize(
    ("config", "inside"),
    [
        ({}, False),
        ({"subnet_ids": ["subnet-1"]}, True),
        ({"stages": {"prod": {"subnet_ids": ["subnet-1"]}}}, True),
        ({"stages": {"demo": {"subnet_ids": ["subnet-1"]}}}, False),
        ({"stages": {"prod": {"lambda_functions": {"payout": {"subnet_ids": ["subnet-1"]}}}}}, True),
        ({"stages": {"prod": {"subnet_ids": [], "security_group_ids": []}}}, True),  # they leave it: Lambda deletes interfaces
        ({"stages": {"prod": {}}}, False),
    ],
)
def test_roles_have_them_where_functions_have_subnets(tmp_path: Path, config: dict[str, Any], inside: bool) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert bool(rights("prod", tmp_path / "config.json")) is inside


def test_they_are_in_every_policy_of_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make policies` writes them, and the check of the files demands them."""
    (tmp_path / "config.json").write_text(json.dumps({"stages": {"prod": {"subnet_ids": ["subnet-1"]}}}))
    monkeypatch.setattr(network_rights.rights, "__defaults__", (tmp_path / "config.json",))
    stale = {file.name for file in policies.stale()}
    assert stale == {f"policy-{function}-prod.json" for function in policies.FUNCTIONS}
    for statement in policies.policy("poll", "prod")["Statement"][-2:]:
        assert all(action.startswith("ec2:") for action in statement["Action"]) and len(statement["Action"]) == 6
    allowed, denied = policies.policy("poll", "prod")["Statement"][-2:]
    assert (allowed["Effect"], denied["Effect"]) == ("Allow", "Deny") and allowed["Action"] == denied["Action"]
    assert denied["Condition"] == {"ArnLike": {"lambda:SourceFunctionArn": "arn:aws:lambda:*:*:function:gateway-prod*"}}


def test_chalice_puts_a_stages_functions_there() -> None:
    from chalice.config import Config

    given = {"subnet_ids": ["subnet-1", "subnet-2"], "security_group_ids": ["sg-1"]}
    config = Config(chalice_stage="prod", function_name="payout", config_from_disk={"stages": {"prod": given}})
    assert (config.subnet_ids, config.security_group_ids) == (["subnet-1", "subnet-2"], ["sg-1"])


def test_functions_with_empty_lists_are_taken_out_of_it(tmp_path: Path) -> None:
    from chalice.config import Config
    from chalice.deploy.appgraph import ApplicationGraphBuilder

    given = {"stages": {"prod": {"subnet_ids": [], "security_group_ids": []}}}
    (tmp_path / "config.json").write_text(json.dumps(given))
    config = Config(chalice_stage="prod", function_name="payout", config_from_disk=given)
    assert ApplicationGraphBuilder()._get_vpc_params("payout", config) == ([], [])
    assert str(network_rights.declared("prod", "payout", tmp_path / "config.json")) == "no network"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, ["gateway-prod-payout is in subnet-1, subnet-2, sg-1, and config.json says no network"]),
        (
            {"subnet_ids": ["subnet-2", "subnet-1"], "security_group_ids": ["sg-1"]},
            [
                "gateway-prod is in no network, and config.json says subnet-1, subnet-2, sg-1",
                "gateway-prod-rates is in no network, and config.json says subnet-1, subnet-2, sg-1",
            ],
        ),
        (
            {"lambda_functions": {"payout": {"subnet_ids": ["subnet-1", "subnet-2"], "security_group_ids": ["sg-2"]}}},
            ["gateway-prod-payout is in subnet-1, subnet-2, sg-1, and config.json says subnet-1, subnet-2, sg-2"],
        ),
        ({"lambda_functions": {"payout": {"subnet_ids": ["subnet-1", "subnet-2"], "security_group_ids": ["sg-1"]}}}, []),
    ],
)
def test_the_check_says_which_function_is_in_another_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], said: list[str]
) -> None:
    """Functions of one stage, as Lambda lists them; another's, and one that app.py does not name, are not looked at."""
    (tmp_path / "config.json").write_text(json.dumps({"app_name": "gateway", "stages": {"prod": config}}))
    monkeypatch.setattr(network_rights.declared, "__defaults__", (tmp_path / "config.json",))
    there = {"VpcConfig": {"SubnetIds": ["subnet-2", "subnet-1"], "SecurityGroupIds": ["sg-1"], "VpcId": "vpc-1"}}
    nowhere = {"VpcConfig": {"SubnetIds": [], "SecurityGroupIds": [], "VpcId": ""}}
    listed = {"gateway-prod": {}, "gateway-prod-rates": nowhere, "gateway-prod-payout": there, "gateway-prod-mine": there}
    functions = {
        name: Function(name, "arn", "role", "v", "t", Platform("python3.13", "x86_64"), network=network_of(each))
        for name, each in listed.items()
    }
    monkeypatch.setattr(lambda_platform, "size_of", lambda *_: Size())
    assert sorted(check._places(Standing(functions, (), (), (), ()), "prod")) == said
