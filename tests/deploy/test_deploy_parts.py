"""The parts of the command `deploy`: what it asks, how patient it is, which mappings it takes away, what its check finds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.stub import Stubber
from chalice.awsclient import LambdaClientError
from chalice.constants import LAMBDA_TRUST_POLICY
from chalice.deploy.executor import Executor
from chalice.deploy.models import APICall, Plan
from click.testing import CliRunner
from moto import mock_aws

from chalicelib.domain.ids import NetworkId
from chalicelib.settings import VARIABLES
from chalicelib.usecases.recovery.deposit_migration import DepositMigration, Migration
from infra import lambda_platform
from infra.cli import main
from infra.commands import deploying
from infra.commands.common import CanNot
from infra.deployment import check as checks
from infra.deployment import mend, record, roles, standing, taking_down, versions
from infra.deployment.bucket import Bucket, bucket_of, make_bucket
from infra.deployment.chalice_client import TRIES, Client
from infra.deployment.check import check
from infra.deployment.code import PROJECT, policies
from infra.deployment.lock import Lock, locked
from infra.deployment.plan import plan
from infra.deployment.standing import Function, QueueMapping, Standing, look
from infra.lambda_platform import Platform
from infra.local import repairs
from infra.mappings import Consumer
from tests.deploy.made_functions import make_function
from tests.deploy.recorded import WHOLE

STAGE = "prod"
PLATFORM = Platform("python3.13", "x86_64")


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)  # an operator's shell has none of the tests' settings
    monkeypatch.setattr(lambda_platform, "RUNNING", PLATFORM.runtime)
    repairs.install_for_deploying()
    with mock_aws():
        yield


@pytest.fixture
def topic(account: None) -> str:
    return str(boto3.client("sns").create_topic(Name="alarms")["TopicArn"])


def test_the_local_stage_is_not_deployed(account: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--stage", "local", "deploy", "--yes"]) == 1
    assert "make run" in capsys.readouterr().err


@pytest.mark.parametrize("answer", ["", "n", "what?", None])
def test_it_shows_what_it_will_do_and_does_nothing_unless_told(
    topic: str, answer: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(prompt: str) -> str:
        if answer is None:
            raise EOFError
        return answer

    monkeypatch.setattr("builtins.input", said)
    monkeypatch.setattr(deploying, "_deploy", lambda *_: pytest.fail("it began"))
    assert main(["--stage", STAGE, "deploy", "--alarm-topic", topic]) == 1
    told = capsys.readouterr()
    assert "stack gateway-prod: new" in told.out and "functions: 22 new, 0 updated" in told.out and "a new URL" in told.out
    assert "concurrency: 46 of 1000 in reserve" in told.out
    assert told.err.startswith("nothing was done") and ("--yes" in told.err) is (answer is None)
    assert boto3.client("s3").list_buckets()["Buckets"] == []


def test_a_deploy_tells_what_is_stopped(topic: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It stays so (test_stopped_deploys.py): while tables are brought back nothing may run, whatever is deployed meanwhile."""
    make_function("gateway-prod-payout", "2")
    assert main(["--stage", STAGE, "stop-functions"]) == 0
    monkeypatch.setattr("builtins.input", lambda _: "no")
    assert main(["--stage", STAGE, "deploy", "--alarm-topic", topic]) == 1
    assert "all 1 are stopped, and stay so, with their queues" in capsys.readouterr().out
    assert main(["--stage", STAGE, "start-functions"]) == 0
    assert boto3.client("lambda").get_function_concurrency(FunctionName="gateway-prod-payout")["ReservedConcurrentExecutions"] == 20


def test_a_stop_beside_a_deploy_says_that_new_functions_may_come(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    make_function("gateway-prod-payout", "2")
    with locked(make_bucket(boto3), STAGE, print):
        assert main(["--stage", STAGE, "stop-functions"]) == 1
    assert boto3.client("lambda").get_function_concurrency(FunctionName="gateway-prod-payout")["ReservedConcurrentExecutions"] == 0
    told = capsys.readouterr()
    assert "1 functions of stage prod are stopped, and no queue brings messages to any" in told.out
    assert "deploys stage prod" in told.err and "may make functions that are called: run this again" in told.err


def test_two_apis_of_a_stage_are_named_before_anything_is_done(
    topic: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(standing, "look", lambda *_: replace(look(boto3, STAGE), apis=("abc", "xyz"), every_api=("abc", "xyz")))
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("it asked"))
    assert main(["--stage", STAGE, "deploy", "--alarm-topic", topic]) == 1
    said = capsys.readouterr().err
    assert "2 REST APIs serve stage prod: abc (https://abc." in said and "xyz (https://xyz." in said
    assert boto3.client("s3").list_buckets()["Buckets"] == []


def test_what_stays_beside_the_stacks_is_said(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking_down.extras, "states", lambda *_: {"network": "CREATE_COMPLETE"})
    said = list(taking_down.kept_beside(boto3, bucket_of(boto3), STAGE))
    assert said[0] == "kept: stack gateway-prod-network (CREATE_COMPLETE), until platform network --remove"
    assert not any("gateway-access-log" in line for line in said), "there is none yet"


def test_an_account_without_room_is_not_deployed_to(
    topic: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MOTO_LAMBDA_CONCURRENCY_QUOTA", "10")
    assert main(["--stage", STAGE, "deploy", "--yes", "--alarm-topic", topic]) == 1
    assert "at most 10 functions at once" in capsys.readouterr().err
    assert boto3.client("s3").list_buckets()["Buckets"] == []


def test_agreed_to_it_begins_and_one_at_a_time(
    topic: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: "y")
    held: list[str] = []
    monkeypatch.setattr(deploying, "_deploy", lambda args, lock, session: held.append(lock.stage))
    monkeypatch.setattr(deploying, "_end", lambda *_: 0)
    words = ["--stage", STAGE, "deploy", "--alarm-topic", topic]
    assert main(words) == 0 and held == [STAGE]
    Lock(make_bucket(boto3), STAGE).take()
    assert main(words) == 1 and held == [STAGE]
    assert "deploys stage prod" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["a form", "no room"])
def test_it_looks_again_once_it_has_the_lock(
    what: str, topic: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody deployed, or took the room, while the question stood."""

    def meanwhile(question: str) -> str:
        if what == "a form":
            versions.begin(make_bucket(boto3), STAGE, ["Invoice 7"])
        else:
            monkeypatch.setenv("MOTO_LAMBDA_CONCURRENCY_QUOTA", "10")
        return "y"

    monkeypatch.setattr("builtins.input", meanwhile)
    monkeypatch.setattr(deploying, "_deploy", lambda *_: pytest.fail("it began"))
    words = ["--stage", STAGE, "deploy", "--alarm-topic", topic]
    said = "does not read what Invoice 7 has written" if what == "a form" else "at most 10 functions at once"
    assert main(words) == 1 and said in capsys.readouterr().err
    Lock(make_bucket(boto3), STAGE).take()  # it was given back
    if what == "a form":
        monkeypatch.setattr("builtins.input", lambda question: pytest.fail("it is refused before it asks"))
        assert main(words) == 1 and said in capsys.readouterr().err


def test_it_does_nothing_that_it_did_not_say(
    topic: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another checkout deployed while the question stood: its queue would go."""

    def meanwhile(question: str) -> str:
        template = "Resources:\n  LaterQueue:\n    Type: AWS::SQS::Queue\n"
        boto3.client("cloudformation").create_stack(StackName=f"gateway-{STAGE}", TemplateBody=template)
        return "y"

    monkeypatch.setattr("builtins.input", meanwhile)
    monkeypatch.setattr(deploying, "_deploy", lambda *_: pytest.fail("it began"))
    words = ["--stage", STAGE, "deploy", "--alarm-topic", topic]
    assert main(words) == 1
    said = capsys.readouterr()
    assert "LaterQueue" not in said.out
    assert "it would do something else by now" in said.err and "takes away LaterQueue (AWS::SQS::Queue)" in said.err
    Lock(make_bucket(boto3), STAGE).take()  # it was given back


def test_what_a_migration_leaves_fails_no_deploy_and_needs_no_lock(
    account: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: DepositMigration, tell: Any, **_: Any) -> Migration:
        Lock(make_bucket(boto3), STAGE).take()
        return Migration(left={NetworkId("live:bsc"): 1})

    bucket = make_bucket(boto3)
    monkeypatch.setattr(
        "chalicelib.wiring.services", lambda: SimpleNamespace(catalogue=lambda _: NoNetworks, store=None, clock=None)
    )
    monkeypatch.setattr(DepositMigration, "run", run)
    monkeypatch.setattr(deploying, "_deploy", lambda *_: None)
    monkeypatch.setattr(deploying, "_demand", lambda *_: [])
    monkeypatch.setattr(deploying, "_check", lambda *_: 0)
    topic = boto3.client("sns").create_topic(Name="alarms")["TopicArn"]
    assert main(["--stage", STAGE, "deploy", "--yes", "--alarm-topic", topic]) == 0
    assert "live:bsc: 1 token transactions are left: its node is away" in capsys.readouterr().err
    assert bucket.client.list_objects_v2(Bucket=bucket.name, Prefix="locks/")["KeyCount"] == 1, "the lock of another"


class NoNetworks:
    networks: ClassVar[dict[str, Any]] = {}


def test_the_plan_names_what_goes(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    function = standing.Function("gateway-prod-old", "arn", "role", "v", "t", PLATFORM)
    left = QueueMapping("m9", "gateway-prod-older", "arn:aws:sqs:eu-central-1:1:gateway-prod-oldies", "Enabled")
    found = Standing({"gateway-prod-old": function}, (), (left,), ("abc",), ("abc",))
    monkeypatch.setattr(standing, "look", lambda session, stage: found)
    said = "\n".join(plan(boto3, bucket_of(boto3), STAGE))
    assert "removed where Chalice made them: gateway-prod-old" in said
    assert "mapping m9 of gateway-prod-oldies and gateway-prod-older: one too many, removed" in said
    assert "https://abc.execute-api" in said


def client() -> tuple[Client, list[float]]:
    waited: list[float] = []
    return Client(botocore.session.get_session(), waited.append), waited


def test_an_import_waits_for_its_turn_and_is_never_sent_twice(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """API Gateway imports one each three seconds. A second import would be a second API, with a URL of its own."""
    answers: list[Any] = [429, 429, None]
    sent: list[str] = []
    gateway = boto3.client("apigateway", region_name="eu-central-1")

    def answer(**_: Any) -> dict[str, str]:
        sent.append("import")
        if answers[0] is None:
            return {"id": "abc"}
        raise answers.pop(0) if isinstance(answers[0], Exception) else too_many(answers.pop(0))

    def too_many(_: int) -> Exception:
        error = {"Error": {"Code": "TooManyRequestsException", "Message": "Too Many Requests"}}
        return gateway.exceptions.TooManyRequestsException(error, "ImportRestApi")

    patient, waited = client()
    asked: list[Any] = []
    monkeypatch.setattr(gateway, "import_rest_api", answer)
    monkeypatch.setattr(patient._session, "create_client", lambda service, config: asked.append(config) or gateway)
    assert patient.import_rest_api({}, "REGIONAL") == "abc"
    assert (len(sent), waited) == (3, [5, 5])
    assert asked[0].retries == {"total_max_attempts": 1}
    answers[:] = [ReadTimeoutError(endpoint_url="https://aws.invalid")]
    with pytest.raises(ReadTimeoutError):
        patient.import_rest_api({}, "REGIONAL")
    assert len(sent) == 4
    answers[:] = [429] * (TRIES + 1)
    with pytest.raises(ClientError, match="TooManyRequests"):
        patient.import_rest_api({}, "REGIONAL")


def test_a_function_that_is_not_ready_is_waited_for(account: None) -> None:
    """As after a cut: it was made a moment ago."""
    patient, waited = client()
    functions = patient._client("lambda")
    with Stubber(functions) as stub:
        stub.add_client_error("update_function_code", "ResourceConflictException", "The function is currently in state: Pending")
        stub.add_response("update_function_code", {"LastUpdateStatus": "Successful"})
        assert patient._update_function_code(function_name="f", zip_contents=b"")["LastUpdateStatus"] == "Successful"
        assert waited == [5]
        stub.add_client_error("update_function_code", "RequestEntityTooLargeException", "Request must be smaller")
        with pytest.raises(LambdaClientError, match="must be smaller"):
            patient._update_function_code(function_name="f", zip_contents=b"")


def test_the_rest_is_repeated_by_botocore(account: None) -> None:
    patient, _ = client()
    retries = patient._client("apigateway").meta.config.retries
    assert (retries["mode"], retries["total_max_attempts"]) == ("standard", 11)


FIRST, SECOND = ("b4f2c6ae-0000-4000-8000-00000000000" + n for n in "12")
RELAY = Consumer("gateway-prod-relay", "gateway-prod-relay", True)


def mapping(uuid: str, function: str = "gateway-prod-relay", queue: str = "gateway-prod-relay") -> QueueMapping:
    return QueueMapping(uuid, function, f"arn:aws:sqs:eu-central-1:1:{queue}", "Enabled")


def test_doubled_mappings_and_those_left_behind_go() -> None:
    every = (mapping("m0"), mapping("m1"), mapping("m2", queue="another"), mapping("m3", function="gateway-prod-old"))
    found = Standing({}, (), every, (), ())
    assert [each.uuid for each in mend.too_many([RELAY], found, WHOLE)] == ["m0", "m2", "m3"], "m1 is the recorded one"
    assert [each.uuid for each in mend.too_many([RELAY], found, ())] == ["m1", "m2", "m3"]
    assert mend.too_many([RELAY], replace(found, mappings=every[:1]), ()) == []
    mine = Function("gateway-prod-old", "arn", "role", "v", "t", PLATFORM)
    here = replace(found, functions={mine.name: mine})
    assert [each.uuid for each in mend.too_many([RELAY], here, ())] == ["m1", "m2"], (
        "the operator's own function keeps its messages"
    )


def test_a_mapping_that_is_being_changed_goes_later() -> None:
    functions = boto3.client("lambda", region_name="eu-central-1")
    waited: list[float] = []
    with Stubber(functions) as stub:
        stub.add_client_error("delete_event_source_mapping", "ResourceInUseException")
        stub.add_response("delete_event_source_mapping", {}, {"UUID": FIRST})
        stub.add_client_error("delete_event_source_mapping", "ResourceNotFoundException")
        mend.take_away(functions, [mapping(FIRST), mapping(SECOND)], waited.append)
        stub.assert_no_pending_responses()
        stub.add_client_error("delete_event_source_mapping", "AccessDeniedException")
        with pytest.raises(ClientError, match="AccessDenied"):
            mend.take_away(functions, [mapping(FIRST)], waited.append)
    assert len(waited) == 1


def test_the_check_says_what_is_missing(account: None) -> None:
    found = check(boto3, bucket_of(boto3), STAGE)
    assert found.versions == () and found.url is None
    said = "\n".join(found.wrong)
    for line in (
        "there is no stack gateway-prod",
        "gateway-prod-payout is not deployed",
        "nothing brings it the messages of gateway-prod-payouts.fifo",
        "there is no rule gateway-prod-housekeeping-event",
        "0 REST APIs call gateway-prod",
        "no record is shared in gateway-deployments-",
    ):
        assert line in said, said


def test_the_check_says_which_function_has_no_policy_file(account: None, tmp_path: Path) -> None:
    (tmp_path / ".chalice").mkdir()
    (tmp_path / ".chalice" / "config.json").write_text(json.dumps({"version": "2.0", "app_name": "gateway", "stages": {STAGE: {}}}))
    found = look(boto3, STAGE)
    assert list(roles.wrong(boto3.client("iam"), found, STAGE, tmp_path)) == [
        "gateway-prod has no policy file: .chalice/config.json names none for it as iam_policy_file"
    ]


def test_the_check_says_who_else_may_take_a_role_and_what_bounds_it(account: None) -> None:
    """As Chalice made the role, and as IAM may give it back, it is said nothing of."""
    iam, name = boto3.client("iam"), "gateway-prod-payout"
    make_function(name, "1")
    trust = json.loads(json.dumps(LAMBDA_TRUST_POLICY))
    (lambda_alone,) = trust["Statement"]
    iam.put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=json.dumps(policies(PROJECT, STAGE)[name]))

    def said(*statements: dict[str, Any]) -> list[str]:
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=document)
        return list(roles.wrong(iam, look(boto3, STAGE), STAGE, PROJECT))

    written = {"Effect": "Allow", "Principal": {"Service": ["lambda.amazonaws.com"]}, "Action": ["sts:AssumeRole"]}
    assert said(lambda_alone) == said(written) == []
    somebody = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::210987654321:root"}, "Action": "sts:AssumeRole"}
    both = {**lambda_alone, "Principal": {"Service": ["lambda.amazonaws.com", "ec2.amazonaws.com"]}}
    iam.delete_role_policy(RoleName=name, PolicyName=name)
    assert len(said(somebody)) == 2, "who may take it is said where its policy is gone, too"
    iam.put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=json.dumps(policies(PROJECT, STAGE)[name]))
    for statements in ([lambda_alone, somebody], [somebody], [both]):
        (line,) = said(*statements)
        assert line.startswith(
            f"{name}: its role {name} is not trusted to Lambda alone, and no deploy changes that: as administrator"
        )
    bound = json.dumps({"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}})
    arn = iam.create_policy(PolicyName="bound", PolicyDocument=bound)["Policy"]["Arn"]
    iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=arn)
    (line,) = said(lambda_alone)
    assert f"its role {name} is bounded by arn:aws:iam::123456789012:policy/bound, and may do less" in line


def test_the_check_says_what_differs(account: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deploy that was cut, rules that somebody disabled, and what an older version left."""
    for name, content in (("gateway-prod", "1"), ("gateway-prod-payout", "2"), ("gateway-prod-old", "1"), ("gateway-demo", "9")):
        make_function(name, content, **{"aws-chalice": "version=1:stage=prod:app=gateway"})
    make_function("gateway-prod-mine", "3")
    network = {"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    boto3.client("lambda").update_function_configuration(FunctionName="gateway-prod-payout", VpcConfig=network)
    iam = boto3.client("iam")
    more = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
    for policy in ("gateway-prod-payout", "by-hand"):
        iam.put_role_policy(RoleName="gateway-prod-payout", PolicyName=policy, PolicyDocument=more)
    everything = iam.create_policy(PolicyName="everything", PolicyDocument=more)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="gateway-prod-payout", PolicyArn=everything)
    events = boto3.client("events")
    events.put_rule(Name="gateway-prod-rates-event", ScheduleExpression="rate(1 minute)", State="DISABLED")
    events.put_rule(Name="gateway-prod-archive-event", ScheduleExpression="rate(1 minute)")
    boto3.client("cloudformation").create_stack(StackName="gateway-prod", TemplateBody=json.dumps({"Resources": {}}))
    bucket = make_bucket(boto3)
    record.store(bucket, STAGE, WHOLE, None)
    said = "\n".join(check(boto3, bucket, STAGE).wrong)
    for line in (
        "the stack gateway-prod was made of another template than infra/template.yaml",
        "gateway-prod-old is deployed, and app.py does not name it",
        "functions run 2 different versions",
        "gateway-prod-payout: it has a reserve of nothing, not of 20",
        "gateway-prod-payout is in subnet-1, sg-1, and config.json says no network",
        "gateway-prod has 128 megabytes, not 1024, and 3 seconds, not 29, as config.json says",
        "gateway-prod: its role gateway-prod has no policy of that name",
        "gateway-prod-payout: its role gateway-prod-payout has other rights than its policy file says",
        "gateway-prod-payout: its role gateway-prod-payout has rights of by-hand, everything beside, and no deploy takes them:",
        "as administrator, aws iam delete-role-policy --role-name gateway-prod-payout --policy-name by-hand; ",
        f"aws iam detach-role-policy --role-name gateway-prod-payout --policy-arn {everything}",
        "the rule gateway-prod-rates-event is not enabled",
        "the rule gateway-prod-archive-event starts nothing",
        "the shared record is not what stands: ",
    ):
        assert line in said, said
    assert "gateway-prod-mine is deployed" not in said, "somebody's own"
    assert len(check(boto3, bucket, STAGE).versions) == 4, "another stage's are not looked at"
    found = look(boto3, STAGE)
    two = replace(found, apis=("abc", "xyz"), every_api=("abc", "xyz"))
    (said,) = checks._api(None, two, STAGE)
    assert said == "2 REST APIs call gateway-prod: abc, xyz: delete the one that, by its metrics, no merchant uses"
    assert list(checks._record(boto3, bucket, two, STAGE)) == []


def test_failures_of_several_steps_are_one_line(account: None, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from chalicelib.usecases.base.retries import Failures
    from chalicelib.usecases.ports.failures import Unavailable

    def failing(*_: Any) -> None:
        raise Failures("the pools", [Unavailable("one"), Unavailable("two")])

    monkeypatch.setattr(deploying, "_check", failing)
    assert main(["--stage", STAGE, "deploy", "--check"]) == 1
    assert capsys.readouterr().err == "one; two\n"


def test_what_chalice_can_not_do_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from chalice.cli.factory import CLIFactory

    from infra.deployment import code

    class Failing:
        def deploy(self, config: Any, chalice_stage_name: str) -> None:
            raise ReadTimeoutError(endpoint_url="https://aws.invalid")

    monkeypatch.setattr(CLIFactory, "create_default_deployer", lambda *_, **__: Failing())
    with pytest.raises(CanNot, match=r"Chalice: Read timeout.*run this again to go on"):
        code.chalice(code.PROJECT, Lock(None, STAGE), print)  # type: ignore[arg-type]


def test_chalice_by_hand_ends_where_the_lock_is_lost(account: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the deploy of the operator's command does."""
    from chalice import cli

    from infra import chalice
    from infra.deployment import code

    held, made, recording = list[Lock](), list[str](), code.recording

    def kept(session: Any, bucket: Bucket, lock: Lock, project: Path) -> Any:
        held.append(lock)
        return recording(session, bucket, lock, project)

    class Aws:
        def make(self, name: str) -> None:
            made.append(name)
            (lock,) = held
            content = json.dumps({"who": "another", "token": "else", "count": 1}).encode()
            lock.bucket.client.put_object(**lock.bucket.whose, Key=lock.key, Body=content)
            lock.renew()

    def deploy(**_: Any) -> None:
        """Chalice's own, for a project of two."""
        calls = [APICall("make", {"name": name}) for name in ("first", "second")]
        said = {id(each): f"Creating lambda function: {each.params['name']}\n" for each in calls}
        Executor(Aws(), cli.UI()).execute(Plan(calls, said))  # type: ignore[arg-type]

    shutil.copytree(PROJECT / ".chalice", tmp_path / ".chalice", ignore=shutil.ignore_patterns("deploy*"))
    monkeypatch.setattr(code, "recording", kept)
    monkeypatch.setattr(cli.deploy, "callback", deploy)
    monkeypatch.setattr(cli, "UI", cli.UI)  # put back behind the test
    chalice.go_on_with_what_stands()
    done = CliRunner().invoke(cli.deploy, ["--stage", STAGE], obj={"project_dir": str(tmp_path)})
    assert made == ["first"] and done.exit_code == 1
    assert done.output.splitlines()[0] == "Creating lambda function: first"
    assert done.output.splitlines()[1].startswith(f"Error: the lock of stage {STAGE} was taken over by another")


@pytest.mark.parametrize("answer", ["", "y", "demo"])
def test_a_stage_is_taken_down_by_its_name_alone(
    account: None, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    make_function("gateway-prod-payout", "2", **{"aws-chalice": f"version=1.32.0:stage={STAGE}:app=gateway"})
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or answer)
    monkeypatch.setattr(taking_down, "take_down", lambda *_: pytest.fail("it began"))
    assert main(["--stage", STAGE, "delete"]) == 1
    told = capsys.readouterr()
    assert "stays: the stacks, with what is money in them" in told.out and "no payment is seen" in told.out
    assert asked == ["Type the stage's name, prod, to go on: "] and told.err == "nothing was done\n"
    assert boto3.client("s3").list_buckets()["Buckets"] == []
    assert main(["--stage", "local", "delete", "--yes"]) == 1


def test_what_a_stack_keeps_is_told_by_name_where_it_is_money() -> None:
    from infra.deployment.taking_down import kept

    class Formation:
        def get_paginator(self, operation: str) -> Any:
            return self

        def paginate(self, StackName: str) -> Any:
            return [{"StackResourceSummaries": listed}]

    def one(kind: str, name: str | None, status: str = "CREATE_COMPLETE") -> dict[str, Any]:
        physical = {} if name is None else {"PhysicalResourceId": name}
        return {"ResourceType": kind and f"AWS::{kind}", "ResourceStatus": status, "LogicalResourceId": kind} | physical

    listed = [
        *(one("DynamoDB::Table", "t"), one("KMS::Key", "k"), one("S3::Bucket", "b"), one("SQS::Queue", "q")),
        *(one("SQS::Queue", "r"), one("CloudWatch::Alarm", "a"), one("SNS::Topic", "n")),
        # Not made, deleted, and what moto has no resource of.
        *(one("SQS::Queue", None, "CREATE_FAILED"), one("DynamoDB::Table", "gone", "DELETE_COMPLETE"), one("", "")),
    ]
    assert kept(Formation(), "gateway-prod") == [
        *("kept: bucket b", "kept: key k", "kept: table t"),
        *("kept: 1 alarms", "kept: 1 of AWS::SNS::Topic", "kept: 2 queues"),
    ]
