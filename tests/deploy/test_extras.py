"""The optional stacks: their templates, and the command that puts them up, changes them and takes them down."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import yaml
from botocore.stub import Stubber
from cfnlint.api import lint_file
from moto import mock_aws

from chalicelib.settings import VARIABLES
from infra.cli import main
from infra.commands.common import CanNot
from infra.deployment import extras, standing
from infra.deployment.bucket import Bucket, make_bucket
from infra.deployment.extras import EXTRAS, FOLDER, Extra
from infra.local import repairs
from infra.package import SERVICES
from tests.deploy.formation import Formation
from tests.deploy.template_text import Loader

STAGE = "prod"
API = "a1b2c3d4e5"
DOMAIN, FIREWALL, NETWORK, BUDGET = EXTRAS
GIVEN = {"DomainName": "pay.example.com"}


def template(extra: Extra) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(extra.template, Loader=Loader)  # noqa: S506 - a SafeLoader
    return found


def of_type(kind: str, extra: Extra = NETWORK) -> dict[str, Any]:
    return {name: each["Properties"] for name, each in template(extra)["Resources"].items() if each["Type"] == f"AWS::{kind}"}


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda extra: extra.name)
def test_aws_own_checker_has_nothing_to_say(extra: Extra) -> None:
    assert [str(match) for match in lint_file(FOLDER / f"{extra.name}.yaml")] == []


def test_each_template_is_an_extra() -> None:
    assert sorted(file.stem for file in FOLDER.iterdir()) == sorted(extra.name for extra in EXTRAS)


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda extra: extra.name)
def test_an_operator_can_give_what_the_template_asks_for(extra: Extra) -> None:
    parameters = template(extra)["Parameters"]
    own = {"Stage", "RestApiId"} if extra.of_the_api else {"Stage"}
    assert parameters.keys() == own | {option.parameter for option in extra.options}
    for option in extra.options:
        assert option.needed is ("Default" not in parameters[option.parameter]), option.flag
        if default := re.search(r"\(default (\S+)\)", option.says):
            assert default[1] == str(parameters[option.parameter]["Default"])
    assert set(re.findall(r"{(\w+)}", extra.then)) <= template(extra).get("Outputs", {}).keys()


def test_a_domain_leads_to_the_api_with_and_without_its_path() -> None:
    """Published paths begin with /api; the root leads to the portal."""
    mappings = of_type("ApiGatewayV2::ApiMapping", DOMAIN)
    assert sorted(each.get("ApiMappingKey", "") for each in mappings.values()) == ["", "api"]
    assert all((each["ApiId"], each["Stage"]) == ({"Ref": "RestApiId"}, "api") for each in mappings.values())
    assert of_type("ApiGateway::BasePathMapping", DOMAIN) == {}, "one without a path bears no other beside it"
    (domain,) = of_type("ApiGateway::DomainName", DOMAIN).values()
    assert domain["EndpointConfiguration"] == {"Types": ["REGIONAL"]} and domain["SecurityPolicy"] == "TLS_1_2"
    (certificate,) = of_type("CertificateManager::Certificate", DOMAIN).values()
    assert certificate["ValidationMethod"] == "DNS"
    assert template(DOMAIN)["Outputs"]["PublicUrl"]["Value"] == {"Fn::Sub": "https://${DomainName}/api"}


def test_a_firewall_without_an_api_is_before_nothing() -> None:
    (before,) = (each for each in template(FIREWALL)["Resources"].values() if each["Type"] == "AWS::WAFv2::WebACLAssociation")
    assert before["Condition"] == "Mapped"
    assert template(FIREWALL)["Conditions"] == {"Mapped": {"Fn::Not": [{"Fn::Equals": [{"Ref": "RestApiId"}, ""]}]}}


def test_a_firewall_answers_as_the_service_does() -> None:
    from infra.gateway_answers import answers

    (firewall,) = of_type("WAFv2::WebACL", FIREWALL).values()
    (rule,) = firewall["Rules"]
    said = json.loads(firewall["CustomResponseBodies"]["TooMany"]["Content"])
    ours = next(each for each in answers() if each["responseType"] == "QUOTA_EXCEEDED")
    assert said == json.loads(ours["responseTemplates"]["application/json"])
    assert str(rule["Action"]["Block"]["CustomResponse"]["ResponseCode"]) == ours["statusCode"]
    shown = [each["VisibilityConfig"]["SampledRequestsEnabled"] for each in (firewall, rule)]
    assert shown == [False, False], "sampled requests show keys"
    bound = {"AggregateKeyType": "IP", "EvaluationWindowSec": 300, "Limit": {"Ref": "Requests"}}
    assert rule["Statement"] == {"RateBasedStatement": bound} and firewall["DefaultAction"] == {"Allow": {}}


def test_every_service_that_functions_call_has_its_way_out_of_the_network() -> None:
    endpoints = {
        each["ServiceName"]["Fn::Sub"].removeprefix("com.amazonaws.${AWS::Region}."): each
        for each in of_type("EC2::VPCEndpoint").values()
    }
    assert endpoints.keys() >= SERVICES
    assert endpoints.keys() - SERVICES <= {"secretsmanager"}
    private = [{"Ref": "PrivateA"}, {"Ref": "PrivateB"}]
    for service, endpoint in endpoints.items():
        if endpoint["VpcEndpointType"] == "Gateway":
            assert service in ("dynamodb", "s3"), "AWS has no others of that kind"
            assert endpoint["RouteTableIds"] == [{"Ref": "PrivateARoutes"}, {"Ref": "PrivateBRoutes"}]
            continue
        assert endpoint["PrivateDnsEnabled"] is True and endpoint["SubnetIds"] == private
        assert endpoint["SecurityGroupIds"] == [{"Ref": "EndpointsGroup"}]
    groups = of_type("EC2::SecurityGroup")
    (let_in,) = groups["EndpointsGroup"]["SecurityGroupIngress"]
    assert (let_in["FromPort"], let_in["ToPort"], let_in["SourceSecurityGroupId"]) == (443, 443, {"Ref": "FunctionsGroup"})
    assert "SecurityGroupIngress" not in groups["FunctionsGroup"], "nothing reaches a function"


def test_functions_go_out_by_fixed_addresses_of_their_own_zone() -> None:
    routes = {each["RouteTableId"]["Ref"]: each for each in of_type("EC2::Route").values()}
    assert routes["PublicRoutes"]["GatewayId"] == {"Ref": "Internet"}
    assert routes["PrivateARoutes"]["NatGatewayId"] == {"Ref": "NatA"}
    assert routes["PrivateBRoutes"]["NatGatewayId"] == {"Fn::If": ["Both", {"Ref": "NatB"}, {"Ref": "NatA"}]}
    assert "GatewayId" not in routes["PrivateARoutes"] and "GatewayId" not in routes["PrivateBRoutes"]
    tables = {each["SubnetId"]["Ref"]: each["RouteTableId"]["Ref"] for each in of_type("EC2::SubnetRouteTableAssociation").values()}
    assert tables == {
        "PublicA": "PublicRoutes", "PublicB": "PublicRoutes", "PrivateA": "PrivateARoutes", "PrivateB": "PrivateBRoutes",
    }  # fmt: skip
    nats = {
        name: (each["SubnetId"]["Ref"], each["AllocationId"]["Fn::GetAtt"]) for name, each in of_type("EC2::NatGateway").items()
    }
    assert nats == {"NatA": ("PublicA", "AddressA.AllocationId"), "NatB": ("PublicB", "AddressB.AllocationId")}
    subnets = of_type("EC2::Subnet")
    blocks = [each["CidrBlock"]["Fn::Select"][0] for each in subnets.values()]
    assert sorted(blocks) == [0, 1, 2, 3]
    zones = {name: each["AvailabilityZone"]["Fn::Select"][0] for name, each in subnets.items()}
    assert zones == {"PublicA": 0, "PublicB": 1, "PrivateA": 0, "PrivateB": 1}


def test_a_budget_tells_before_and_at_the_amount() -> None:
    (budget,) = of_type("Budgets::Budget", BUDGET).values()
    told = [each["Notification"] for each in budget["NotificationsWithSubscribers"]]
    assert [(each["NotificationType"], each["Threshold"]) for each in told] == [
        ("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100),
    ]  # fmt: skip
    assert "BudgetName" not in budget["Budget"], "another amount or address is another budget: one name would be taken"


@pytest.fixture
def formation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Formation]:
    """An account with an API of the stage's, and CloudFormation of our own."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)  # an operator's shell has none of the tests' settings
    repairs.install_for_deploying()
    found, client = Formation(), boto3.client
    monkeypatch.setattr(boto3, "client", lambda name, **n: found if name == "cloudformation" else client(name, **n))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(extras.put_up, "__defaults__", (print, lambda _: None))
    monkeypatch.setattr(extras.take_down, "__defaults__", (lambda _: None,))
    monkeypatch.setattr(standing, "look", lambda session, stage: standing.Standing({}, (), (), (API,), (API,)))
    with mock_aws():
        yield found


@pytest.fixture
def bucket(formation: Formation) -> Bucket:
    return make_bucket(boto3, lambda _: None)


def put_up(bucket: Bucket, extra: Extra, **given: str) -> dict[str, str]:
    return extras.put_up(boto3, bucket, STAGE, extra, given)


def test_what_was_given_last_time_stays(formation: Formation, bucket: Bucket) -> None:
    put_up(bucket, DOMAIN, **GIVEN, HostedZoneId="Z123456789")
    values = formation.stacks["gateway-prod-domain"]["values"]
    assert values == {"Stage": "prod", "RestApiId": API, "DomainName": "pay.example.com", "HostedZoneId": "Z123456789"}
    put_up(bucket, DOMAIN)
    assert formation.asked == ["CreateStack", "UpdateStack"]
    assert formation.stacks["gateway-prod-domain"]["values"] == values
    put_up(bucket, DOMAIN, HostedZoneId="")
    assert formation.stacks["gateway-prod-domain"]["values"] == {**values, "HostedZoneId": ""}


def test_what_is_missing_is_named_before_anything_is_made(formation: Formation, bucket: Bucket) -> None:
    for extra, said in ((DOMAIN, "domain needs --name"), (BUDGET, "budget needs --usd and --email")):
        with pytest.raises(CanNot, match=said):
            put_up(bucket, extra)
    assert formation.asked == []


def test_a_stack_that_could_not_be_made_is_made_again(formation: Formation, bucket: Bucket) -> None:
    put_up(bucket, BUDGET, Amount="50", Email="a@b.example")
    formation.stacks["gateway-prod-budget"]["stuck"] = "ROLLBACK_COMPLETE"
    assert (
        "\n".join(extras.wrong(formation, STAGE, (API,))) == "the stack gateway-prod-budget is ROLLBACK_COMPLETE: platform budget"
    )
    put_up(bucket, BUDGET, Amount="50", Email="a@b.example")
    assert formation.asked == ["CreateStack", "DeleteStack", "CreateStack"]
    assert list(extras.wrong(formation, STAGE, (API,))) == []


def test_after_a_cut_the_same_command_goes_on(formation: Formation, bucket: Bucket) -> None:
    """The certificate of a domain waits for its record; the operator has gone away meanwhile."""

    def cut(_: float) -> None:
        raise KeyboardInterrupt

    formation.steps = 3
    with pytest.raises(KeyboardInterrupt):
        extras.put_up(boto3, bucket, STAGE, DOMAIN, GIVEN, wait=cut)
    assert extras.states(formation, STAGE) == {"domain": "CREATE_IN_PROGRESS"}
    put_up(bucket, DOMAIN)
    assert formation.asked == ["CreateStack", "UpdateStack"] and extras.states(formation, STAGE) == {"domain": "CREATE_COMPLETE"}


def test_the_record_that_a_certificate_waits_for_is_told_once(formation: Formation, bucket: Bucket) -> None:
    said: list[str] = []
    formation.steps = 4
    formation.events = [
        {"ResourceStatusReason": "Content of DNS Record is: {Name: _1.pay.example.com.,Type: CNAME,Value: _2.acm-validations.aws.}"}
    ]
    extras.put_up(boto3, bucket, STAGE, DOMAIN, GIVEN, said.append)
    assert len(said) == 1 and "_1.pay.example.com.,Type: CNAME,Value: _2" in said[0]


def test_the_check_tells_of_what_leads_to_another_api(formation: Formation, bucket: Bucket) -> None:
    put_up(bucket, DOMAIN, **GIVEN)
    put_up(bucket, NETWORK)
    extras.states(formation, STAGE)
    assert extras.states(formation, STAGE) == {"domain": "CREATE_COMPLETE", "network": "CREATE_COMPLETE"}
    assert list(extras.wrong(formation, STAGE, (API,))) == []
    (said,) = extras.wrong(formation, STAGE, ("anew",))
    assert said == "the stack gateway-prod-domain is not before the API that stands: platform domain"


def test_an_api_is_not_deleted_behind_a_domain(formation: Formation, bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    """API Gateway refuses, half-way through what Chalice deletes. What stood before it is told behind the next deploy."""
    put_up(bucket, DOMAIN, **GIVEN)
    put_up(bucket, FIREWALL)
    assert main(["--stage", STAGE, "delete", "--yes"]) == 1
    assert "can not go before: platform domain --unmap, platform firewall --unmap" in capsys.readouterr().err
    for name in ("domain", "firewall"):
        assert main(["--stage", STAGE, "platform", name, "--unmap", "--yes"]) == 0
        assert formation.stacks[f"gateway-prod-{name}"]["values"]["RestApiId"] == ""
    assert extras.in_the_way(formation, STAGE) == []
    lines = [f"the stack gateway-prod-{name} is not before the API that stands: platform {name}" for name in ("domain", "firewall")]
    for name in ("domain", "firewall"):
        assert list(extras.wrong(formation, STAGE, (API,))) == lines
        assert main(["--stage", STAGE, "platform", name, "--yes"]) == 0
        assert formation.stacks[f"gateway-prod-{name}"]["values"]["RestApiId"] == API
        lines.pop(0)
    assert list(extras.wrong(formation, STAGE, (API,))) == []
    assert main(["--stage", STAGE, "platform", "firewall", "--remove", "--yes"]) == 0
    assert extras.in_the_way(formation, STAGE) == ["domain"], "taken down it is in nobody's way, too"


@pytest.mark.parametrize("answer", ["n", "y"])
def test_the_command_shows_what_it_will_do_and_asks(
    formation: Formation, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: answer)
    formation.outputs = {"PublicUrl": "https://pay.example.com/api", "Target": "d-1.execute-api.example"}
    assert main(["--stage", STAGE, "platform", "domain", "--name", "pay.example.com"]) == (0 if answer == "y" else 1)
    said = capsys.readouterr().out
    assert "stack gateway-prod-domain: new" in said and "  DomainName: pay.example.com" in said and f"  RestApiId: {API}" in said
    assert ("set PUBLIC_URL to https://pay.example.com/api and deploy" in said) is (answer == "y")
    assert formation.asked == (["CreateStack"] if answer == "y" else [])
    if answer == "y":
        assert main(["--stage", STAGE, "platform", "domain", "--name", "shop.example.com"]) == 0
        said = capsys.readouterr().out
        assert "(CREATE_COMPLETE): brought to infra/platform/domain.yaml" in said
        assert "  DomainName: shop.example.com, it was pay.example.com" in said


def test_a_network_is_not_taken_from_its_functions(
    formation: Formation, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CloudFormation would try for half an hour, and the fixed addresses would be gone first."""
    assert main(["--stage", STAGE, "platform", "network", "--yes"]) == 0
    formation.outputs = {"Addresses": "192.0.2.1,192.0.2.2"}
    inside = ["gateway-prod-poll_tron"]
    monkeypatch.setattr(extras, "inside", lambda client, stage: inside)
    assert main(["--stage", STAGE, "platform", "network", "--remove", "--yes"]) == 1
    said = capsys.readouterr()
    assert "Addresses: 192.0.2.1,192.0.2.2" in said.out and "gateway-prod-poll_tron: still in the network" in said.err
    assert formation.stacks.keys() == {"gateway-prod-network"}
    assert main(["--stage", STAGE, "delete", "--yes"]) == 1
    assert "gateway-prod-poll_tron: still in a network. Set subnet_ids and security_group_ids" in capsys.readouterr().err
    inside.clear()
    with monkeypatch.context() as left:
        left.setattr(extras, "settled", lambda *_: "DELETE_FAILED")
        with pytest.raises(CanNot, match=r"DELETE_FAILED: .* aws ec2 delete-network-interface"):
            extras.take_down(boto3, STAGE, NETWORK)
    put_up(bucket, NETWORK)
    for _ in range(2):
        assert main(["--stage", STAGE, "platform", "network", "--remove", "--yes"]) == 0
    assert formation.stacks == {} and "there is no stack gateway-prod-network" in capsys.readouterr().out


def test_functions_in_a_network_are_found() -> None:
    client = boto3.client("lambda", region_name="eu-central-1")
    names, role = ("gateway-prod-payout", "gateway-prod-poll_tron", "gateway-demo-payout"), "arn:aws:iam::123456789012:role/r"
    listed = [{"FunctionName": n, "FunctionArn": n, "Role": role, "CodeSha256": "v", "LastModified": "t"} for n in names]
    with Stubber(client) as stub:
        stub.add_response("list_functions", {"Functions": listed})
        stub.add_response("get_function_configuration", {"VpcConfig": {"SubnetIds": ["subnet-1"]}}, {"FunctionName": names[0]})
        stub.add_response("get_function_configuration", {"VpcConfig": {"SubnetIds": []}}, {"FunctionName": names[1]})
        assert extras.inside(client, STAGE) == ["gateway-prod-payout"]
        stub.assert_no_pending_responses()


def test_without_an_api_there_is_nothing_to_stand_before(
    formation: Formation, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "look", lambda session, stage: standing.Standing({}, (), (), (), ()))
    with pytest.raises(CanNot, match="0 REST APIs serve stage prod; deploy first"):
        put_up(bucket, DOMAIN, **GIVEN)
