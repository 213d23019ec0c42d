"""The command `rollback`: functions go back to the version before, also after a cut, and a function that it had not stays."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from chalice.cli import deploy as deploy_command
from click.testing import CliRunner, Result
from moto import mock_aws

from chalicelib.settings import VARIABLES
from infra import stage_settings
from infra.chalice import go_on_with_what_stands
from infra.cli import main
from infra.commands.common import CanNot
from infra.deployment import code, forms, lock, needs, rolling_back, standing, versions
from infra.deployment.bucket import Bucket, make_bucket
from infra.deployment.code import PROJECT, policies
from infra.deployment.standing import declared
from infra.deployment.versions import MOST, Version, Versions, before
from infra.lambda_platform import Platform
from infra.local import repairs
from tests.deploy.conftest import copy_project
from tests.support.cuts import WAYS, Cutter, Died, How, When

STAGE = "prod"
FULL = os.environ.get("SWEEP") == "full"
NAMES = ("gateway-prod", "gateway-prod-payout")
BEFORE, NOW = Platform("python3.11", "x86_64"), Platform("python3.13", "arm64")
OFF = dict.fromkeys(forms.SWITCHED, "off") | {"ARCHIVE_AFTER_DAYS": "0"}
ON = dict.fromkeys(forms.SWITCHED, "on") | {"ARCHIVE_AFTER_DAYS": "400"}


def package(content: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("app.py", (1980, 1, 1, 0, 0, 0)), content)
    return file.getvalue()


def checksum(content: str) -> str:
    return base64.b64encode(hashlib.sha256(package(content)).digest()).decode()


def rights(what: str, *names: str) -> dict[str, Any]:
    statement = {"Sid": what, "Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    return {name: {"Version": "2012-10-17", "Statement": [statement]} for name in names}


def further(content: str) -> int:
    """The exit code of a rollback to this version, whatever the last one went to."""
    return main(["--stage", STAGE, "rollback", "--yes", "--to", checksum(content)])


class Stage:
    """Two functions whose versions are deployed one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bucket = folder, make_bucket(boto3)
        self.functions, self.iam = boto3.client("lambda"), boto3.client("iam")

    def deploy(
        self,
        content: str,
        *names: str,
        platform: Platform = NOW,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        on: Sequence[str] = (),
        migrated: Sequence[str] = (),
        needed: Sequence[str] = (),
        silent: bool = False,
    ) -> None:
        """`on`: the settings that are; the others are off, or not there where the function is `silent` about them."""
        file = self.folder / f"packed-{content}.zip"
        file.write_bytes(package(content))
        for name in names:
            try:
                architecture = [platform.architecture]
                self.functions.update_function_code(FunctionName=name, ZipFile=package(content), Architectures=architecture)
                self.functions.update_function_configuration(FunctionName=name, Runtime=platform.runtime)
            except self.functions.exceptions.ResourceNotFoundException:
                role = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": []}')
                self.functions.create_function(
                    FunctionName=name,
                    Runtime=platform.runtime,
                    Architectures=[platform.architecture],
                    Role=role["Role"]["Arn"],
                    Handler="app",
                    Code={"ZipFile": package(content)},
                )
            variables = {"STAGE": STAGE, **({} if silent else OFF), **{name: ON[name] for name in on}}
            self.functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
            document = json.dumps(rights(content, name)[name])
            self.iam.put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=document)
        versions.begin(self.bucket, STAGE, {*writes, *on})
        made = Version("", "", rights(content, *names), reads, writes, *platform, migrated, needed)
        versions.keep(self.bucket, STAGE, file, made)

    def die_deploying(self, content: str, *names: str) -> None:
        """A deploy that is cut behind these functions."""

        def dies(*_: Any) -> None:
            for name in names:
                self.functions.update_function_code(FunctionName=name, ZipFile=package(content))
            raise Died

        project, held = self.folder / "project", lock.Lock(self.bucket, STAGE)
        held.take()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Died):
            patch.setattr(code, "chalice", dies)
            code.deploy_code(boto3, self.bucket, held, print, project if project.exists() else copy_project(self.folder))
        held.release()

    def deploy_by_hand(self, content: str, *names: str) -> Result:
        """`python -m infra.chalice deploy`, but for what Chalice does to functions: here their code alone changes."""
        project = self.folder / "project"
        if not project.exists():
            copy_project(self.folder)

        def run(**_: Any) -> None:
            for name in names:
                self.functions.update_function_code(FunctionName=name, ZipFile=package(content))
            file = project / ".chalice" / "deployments" / f"{content}.zip"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(package(content))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deploy_command, "callback", run)
            go_on_with_what_stands()
            obj = {"project_dir": str(project), "debug": False}
            return CliRunner().invoke(deploy_command, ["--stage", STAGE], obj=obj)

    def runs(self) -> dict[str, tuple[str, str]]:
        """The code and the rights of each function."""
        listed = self.functions.list_functions()["Functions"]
        found = {}
        for each in listed:
            name = each["FunctionName"]
            document = self.iam.get_role_policy(RoleName=name, PolicyName=name)["PolicyDocument"]
            found[name] = (each["CodeSha256"], document["Statement"][0]["Sid"])
        return found

    def packages(self) -> set[str]:
        listed = boto3.client("s3").list_objects_v2(Bucket=self.bucket.name, Prefix=f"packages/{STAGE}/")
        return {each["Key"] for each in listed["Contents"]}

    def platforms(self) -> set[Platform]:
        listed = self.functions.list_functions()["Functions"]
        return {Platform(each["Runtime"], each["Architectures"][0]) for each in listed}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    repairs.install_for_deploying()
    with mock_aws():
        yield Stage(tmp_path)


def test_functions_go_back_one_version(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES)
    stage.deploy("two", *NAMES)  # again: no further version
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert stage.runs() == {name: (checksum("one"), "one") for name in NAMES}
    said = capsys.readouterr().out
    assert (
        said.startswith(f"{stage.bucket.where}\nfunctions run {checksum('two')}")
        and f"2 functions of stage prod run {checksum('one')}" in said
    )
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert f"0 functions of stage prod run {checksum('one')}" in capsys.readouterr().out
    stage.deploy("one", *NAMES)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 1
    assert "no version before this one is kept of stage prod" in capsys.readouterr().err
    stage.deploy("three", *NAMES)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}, "what ran before it: two had gone wrong"


def test_functions_get_the_python_and_processor_back_that_their_code_is_for(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.deploy("one", *NAMES, platform=BEFORE)
    stage.deploy("two", *NAMES)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert (stage.runs()[NAMES[1]], stage.platforms()) == ((checksum("one"), "one"), {BEFORE})
    assert "for python3.11: each function fails for some seconds" in capsys.readouterr().out


def test_versions_that_an_older_or_a_later_checkout_kept_are_read(stage: Stage) -> None:
    """The older one kept no platform: what functions have stays."""
    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES)
    key = f"versions/{STAGE}.json"
    content = json.loads(boto3.client("s3").get_object(Bucket=stage.bucket.name, Key=key)["Body"].read())
    one, two = content["known"]
    del one["runtime"], one["architecture"]
    two["later"] = "something"
    boto3.client("s3").put_object(Bucket=stage.bucket.name, Key=key, Body=json.dumps(content).encode())
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert (stage.runs()[NAMES[0]], stage.platforms()) == ((checksum("one"), "one"), {NOW})


def test_a_function_that_it_did_not_have_stays(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.deploy("one", NAMES[0])
    stage.deploy("two", *NAMES)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert stage.runs() == {NAMES[0]: (checksum("one"), "one"), NAMES[1]: (checksum("two"), "two")}
    assert "gateway-prod-payout stays: that version does not have it" in capsys.readouterr().out


@pytest.mark.parametrize("name", forms.SWITCHED)
def test_a_version_that_reads_less_does_not_come_back(name: str, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES, reads=forms.read_here(), on=[name])
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 1
    said = capsys.readouterr().err
    assert f"the version to go back to, {checksum('one')}" in said and f"does not read what {name} " in said
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}
    stage.deploy("two", *NAMES, reads=forms.read_here())  # off again
    assert main(["--stage", STAGE, "rollback", "--yes"]) == (1 if name in forms.STAY else 0)
    assert ("which stays: deploy a version that does" in capsys.readouterr().err) is (name in forms.STAY)


def test_a_version_that_reads_all_comes_back_whatever_is_on(stage: Stage) -> None:
    for content in ("one", "two"):
        stage.deploy(content, *NAMES, reads=forms.read_here(), on=list(forms.SWITCHED))
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}


def test_a_breaking_change_takes_two_releases_to_go_back(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES, reads=["Invoice 1"])
    stage.deploy("three", *NAMES, reads=["Invoice 1"], writes=["Invoice 1"])
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert further("one") == 1
    assert "does not read what Invoice 1 has written, which stays" in capsys.readouterr().err
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}


def test_a_deploy_writes_nothing_that_a_running_function_does_not_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(**wanted: str) -> None:
        functions = standing.look(boto3, STAGE).functions.values()
        forms.demand_readers(STAGE, versions.fetch(stage.bucket, STAGE), functions, OFF | wanted)

    ask(**ON)  # nothing runs yet
    stage.deploy("one", *NAMES)
    ask()
    for name, off in (("SHORT_RECORDS", "off"), ("ARCHIVE_AFTER_DAYS", "0")):
        with pytest.raises(CanNot, match=rf"does not read what {name} would write: deploy with that {off} \("):
            ask(**{name: ON[name]})
    with pytest.raises(CanNot, match=r"deploy with that off \(ARCHIVE_AFTER_DAYS: 0\) \("):
        ask(**ON)
    stage.deploy("two", *NAMES, reads=forms.read_here())
    ask(SHORT_RECORDS="on")
    monkeypatch.setattr(forms, "written_here", lambda: ("Invoice 1",))
    with pytest.raises(CanNot, match="does not read what Invoice 1 would write"):
        ask()


def test_a_setting_that_is_not_allowed_is_told(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything runs, too, and where it is a function's own."""
    said = "a setting of stage prod is not allowed: ARCHIVE_AFTER_DAYS is 'off'; it has to be a whole number of at least 0"
    with pytest.raises(CanNot, match=said):
        forms.demand_readers(STAGE, versions.fetch(stage.bucket, STAGE), (), OFF | {"ARCHIVE_AFTER_DAYS": "off"})
    for content in ("one", "two"):
        stage.deploy(content, *NAMES)
    variables = {"STAGE": STAGE, **OFF, "ARCHIVE_AFTER_DAYS": "off"}
    stage.functions.update_function_configuration(FunctionName=NAMES[0], Environment={"Variables": variables})
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 1
    assert capsys.readouterr().err == f"{said}\n"
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}


def test_a_version_before_all_forms_is_silent_about_them(stage: Stage) -> None:
    """config.json says them in prod, so that functions tell which they know, also those of a cut deploy or of a plain one."""
    wanted = stage_settings.declared(STAGE)
    assert {name: wanted[name] for name in forms.SWITCHED} == ON
    for content in ("one", "two"):
        stage.deploy(content, *NAMES, silent=True)

    def ask() -> None:
        functions = standing.look(boto3, STAGE).functions.values()
        forms.demand_readers(STAGE, versions.fetch(stage.bucket, STAGE), functions, wanted)

    with pytest.raises(CanNot, match="ARCHIVE_AFTER_DAYS, LOOKOUTS, ONE_ITEM_OUTBOX, PACKED_RECORDS, SHORT_RECORDS"):
        ask()
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}
    stage.deploy("three", *NAMES, on=list(forms.SWITCHED))
    ask()


def test_what_was_written_stays_known_behind_a_rollback(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.deploy("none", *NAMES)
    stage.deploy("one", *NAMES, reads=["Invoice 1"])
    stage.deploy("two", *NAMES, reads=["Invoice 1"], writes=["Invoice 1"])
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    stage.deploy("three", *NAMES, reads=["Invoice 1"])
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert further("none") == 1
    assert "does not read what Invoice 1 has written" in capsys.readouterr().err


def test_an_older_checkout_is_not_deployed_over_what_it_does_not_read(stage: Stage) -> None:
    stage.deploy("two", *NAMES, reads=[*forms.read_here(), "Invoice 7"])
    known, functions = versions.fetch(stage.bucket, STAGE), standing.look(boto3, STAGE).functions.values()
    forms.demand_readers(STAGE, known, functions, {})  # nothing is written that it does not read
    stage.deploy("two", *NAMES, reads=[*forms.read_here(), "Invoice 7"], writes=["Invoice 7"])
    known = versions.fetch(stage.bucket, STAGE)
    with pytest.raises(CanNot, match="this checkout does not read what Invoice 7 has written on stage prod") as said:
        forms.demand_readers(STAGE, known, functions, {})
    assert f"check out the version that was deployed {known.known[-1].at}, or a later one" in str(said.value)


def test_what_a_cut_deploy_may_have_written_is_known(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It died behind its first function: no version is kept of it, but its form is."""
    before = forms.read_here()
    stage.deploy("none", *NAMES, reads=before)
    stage.deploy("one", *NAMES, reads=before)
    stage.deploy("two", *NAMES, reads=[*before, "Invoice 1"])
    monkeypatch.setattr(forms, "written_here", lambda: ("Invoice 1",))
    stage.die_deploying("three", NAMES[0])
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {found for found, _ in stage.runs().values()} == {checksum("two")}
    assert further("one") == 1
    assert "does not read what Invoice 1 has written, which stays" in capsys.readouterr().err
    assert {found for found, _ in stage.runs().values()} == {checksum("two")}


def test_whether_functions_of_an_older_version_leave_records_to_a_migration(stage: Stage) -> None:
    def older() -> bool:
        return forms.older_ran(versions.fetch(stage.bucket, STAGE), standing.look(boto3, STAGE).functions.values())

    assert not older(), "nothing ran ever"
    stage.deploy("one", *NAMES)
    assert older()
    stage.deploy("two", *NAMES, migrated=forms.MIGRATED)
    assert not older()
    stage.functions.update_function_code(FunctionName=NAMES[0], ZipFile=package("three"))
    assert not older(), "of a deploy behind two that was cut"
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert further("one") == 0
    assert older(), "it has run since the migration"
    for name in NAMES:
        stage.functions.delete_function(FunctionName=name)
    assert older(), "the version that ran last"


def test_no_newer_code_runs_with_older_rights(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES)
    seen: list[dict[str, tuple[str, str]]] = []
    update = rolling_back._update

    def watched(*asked: Any) -> None:
        seen.append(stage.runs())
        update(*asked)
        seen.append(stage.runs())

    monkeypatch.setattr(rolling_back, "_update", watched)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert len(seen) == 4
    assert not any(found == (checksum("two"), "one") for runs in seen for found in runs.values())


def test_nothing_is_done_unless_told(stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES)
    monkeypatch.setattr("builtins.input", lambda prompt: "no")
    assert main(["--stage", STAGE, "rollback"]) == 1
    assert capsys.readouterr().err == "nothing was done\n"
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}


@pytest.mark.parametrize(("how", "when"), WAYS)
def test_after_a_cut_it_goes_on_to_the_same_version(stage: Stage, monkeypatch: pytest.MonkeyPatch, how: How, when: When) -> None:
    """Never to the one before that, though functions run it already, and be all done but the lock's return."""
    cutter = Cutter()
    call = type(boto3.client("s3"))._make_api_call
    lost = EndpointConnectionError(endpoint_url="https://aws.invalid")
    monkeypatch.setattr(
        "botocore.client.BaseClient._make_api_call",
        lambda self, operation, arguments: cutter.around(operation, lambda: call(self, operation, arguments), lost),
    )
    at, last = 0, False
    while not last:
        at += 1 if FULL else 11
        for content, platform in (("none", NOW), (f"one{at}", BEFORE), (f"two{at}", NOW)):
            stage.deploy(content, *NAMES, platform=platform)
        cutter.set(at, how, when)
        with cutter.arm(), contextlib.suppress(Died):
            first = main(["--stage", STAGE, "rollback", "--yes"])
        if last := not cutter.fired:
            assert first == 0
            cutter.set(len(cutter.trace), how, when)  # the very last call
            for content, platform in (("none", NOW), (f"one{at}", BEFORE), (f"two{at}", NOW)):
                stage.deploy(content, *NAMES, platform=platform)
            with cutter.arm(), contextlib.suppress(Died):
                main(["--stage", STAGE, "rollback", "--yes"])
            assert cutter.fired and cutter.trace[-1] == "DeleteObject"
        with monkeypatch.context() as later:  # the lock may have stayed
            later.setattr(lock, "_age", lambda found: lock.DEAD)
            assert main(["--stage", STAGE, "rollback", "--yes"]) == 0, cutter.trace
        assert stage.runs() == {name: (checksum(f"one{at}"), f"one{at}") for name in NAMES}, cutter.trace
        assert stage.platforms() == {BEFORE}, cutter.trace
        assert [each.code for each in versions.fetch(stage.bucket, STAGE).known][-1] == checksum(f"one{at}")
        assert boto3.client("s3").list_objects_v2(Bucket=stage.bucket.name, Prefix="locks/").get("Contents", []) == []


def test_a_version_further_is_named(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """By its code, or its time as it is told: run again after a cut, that is the same, too."""
    for content in ("one", "two", "three", "four"):
        stage.deploy(content, *NAMES)
    first, second = versions.fetch(stage.bucket, STAGE).known[:2]
    for _ in range(2):
        assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
        assert {code for code, _ in stage.runs().values()} == {checksum("three")}
    said = capsys.readouterr().out
    assert "the last rollback went there: this ends it" in said and f"{second.code} of {second.at}" in said
    for _ in range(2):
        assert main(["--stage", STAGE, "rollback", "--yes", "--to", second.code]) == 0
        assert {code for code, _ in stage.runs().values()} == {checksum("two")}
    assert main(["--stage", STAGE, "rollback", "--yes", "--to", checksum("three")]) == 1
    assert f"kept are {first.code} of {first.at}, {second.code} of {second.at}" in capsys.readouterr().err
    stage.deploy("five", *NAMES)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}, "what ran before it"


def test_behind_an_older_version_that_was_deployed_again_nothing_newer_comes_back(stage: Stage) -> None:
    """Its deploy has taken away what newer functions need: their indexes, their queues."""
    for content in ("one", "two", "three", "two"):
        stage.deploy(content, *NAMES)
    assert [each.code for each in versions.fetch(stage.bucket, STAGE).known] == [checksum("one"), checksum("two")]
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}


def test_a_deploy_by_hand_is_known_as_another_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it writes, what it goes back to, and that it was behind the last rollback."""
    before, after = forms.read_here(), (*forms.read_here(), "Invoice 1")
    stage.deploy("none", *NAMES, reads=before)
    for content in ("one", "two"):
        stage.deploy(content, *NAMES, reads=after)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    monkeypatch.setattr(forms, "written_here", lambda: ("Invoice 1",))
    monkeypatch.setattr(forms, "read_here", lambda: after)
    done = stage.deploy_by_hand("three", *NAMES)
    assert done.exit_code == 0, done.output
    known = versions.fetch(stage.bucket, STAGE)
    assert [each.code for each in known.known] == [checksum(content) for content in ("none", "one", "three")]
    assert (known.goal, known.begun, known.known[-1].reads) == (None, None, list(after))
    assert known.known[-1].rights == policies(stage.folder / "project", STAGE)
    assert forms.older_ran(known, standing.look(boto3, STAGE).functions.values()), "nothing that older ones wrote was migrated"
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}
    assert further("none") == 1
    assert "does not read what Invoice 1 has written, which stays" in capsys.readouterr().err


def test_a_deploy_by_hand_writes_nothing_that_a_running_function_does_not_read(stage: Stage) -> None:
    stage.deploy("one", *NAMES)
    done = stage.deploy_by_hand("two", *NAMES)
    assert done.exit_code == 1 and "does not read what ARCHIVE_AFTER_DAYS" in done.output
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}
    assert versions.fetch(stage.bucket, STAGE).written == ()


@pytest.mark.parametrize("cut", [NAMES[:1], NAMES])
def test_behind_a_cut_deploy_of_an_older_version_what_ran_before_it_comes_back(
    stage: Stage, cut: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where that was not the newest, but one that a cut rollback was going to; and cut twice."""
    for content in ("one", "two", "three"):
        stage.deploy(content, *NAMES, reads=forms.read_here())
    for _ in range(2):
        stage.die_deploying("one", *cut)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("three")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "forget_after", lambda *_: (_ for _ in ()).throw(CanNot("cut")))
        assert further("two") == 1
    stage.die_deploying("one", *cut)
    capsys.readouterr()
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}
    assert "the last rollback" not in capsys.readouterr().out


def test_behind_a_cut_rollback_and_a_deploy_nothing_comes_back_that_was_left(stage: Stage) -> None:
    for content in ("one", "two", "three"):
        stage.deploy(content, *NAMES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling_back, "_update", lambda *_: (_ for _ in ()).throw(CanNot("cut")))
        assert main(["--stage", STAGE, "rollback", "--yes"]) == 1
    stage.deploy("four", *NAMES)
    assert [each.code for each in versions.fetch(stage.bucket, STAGE).known] == [checksum(each) for each in ("one", "two", "four")]
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}


def test_a_deploy_that_was_cut_before_its_first_function_changes_not_what_comes_back(stage: Stage) -> None:
    for content in ("one", "two"):
        stage.deploy(content, *NAMES, reads=forms.read_here())
    stage.die_deploying("three")
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}


def test_behind_a_plain_deploy_no_rollback_says_that_nothing_was_deployed(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    for content in ("one", "two"):
        stage.deploy(content, *NAMES)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    first = capsys.readouterr().out
    assert f"--to CODE for another version of {checksum('one')}" in first and f", {checksum('two')}" in first
    for name in NAMES:
        stage.functions.update_function_code(FunctionName=name, ZipFile=package("three"))
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert "nothing was deployed" not in capsys.readouterr().out
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}


def test_behind_a_delete_it_refuses(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    for content in ("one", "two"):
        stage.deploy(content, *NAMES)
    for name in NAMES:
        stage.functions.delete_function(FunctionName=name)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 1
    assert capsys.readouterr().err == f"no function of stage {STAGE} stands: deploy brings it back\n"
    assert versions.fetch(stage.bucket, STAGE).goal is None


def test_what_functions_write_is_looked_at_again_once_it_has_the_lock(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody turned a form on while the question stood: the same code, other settings."""

    def meanwhile(prompt: str) -> str:
        stage.deploy("two", *NAMES, reads=forms.read_here(), on=["PACKED_RECORDS"])
        return "y"

    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES, reads=forms.read_here())
    monkeypatch.setattr("builtins.input", meanwhile)
    assert main(["--stage", STAGE, "rollback"]) == 1
    assert "does not read what PACKED_RECORDS has written" in capsys.readouterr().err
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}


def test_a_version_that_lost_what_it_may_need_does_not_come_back(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a hotfix of the one before, say, whose template does not have the newer one's queue. An alarm is needed by none."""
    queue, index, alarm = "TicksQueue (AWS::SQS::Queue)", "index by_day of gateway-prod-records", "Late (AWS::CloudWatch::Alarm)"
    stage.deploy("silent", *NAMES)  # as an older checkout kept it: nobody knows what it needs
    stage.deploy("one", *NAMES, needed=["WorkTable (AWS::DynamoDB::Table)", alarm])
    stage.deploy("two", *NAMES, needed=[queue, index])
    stage.deploy("mended", *NAMES, needed=[index])
    for _ in range(2):
        needs.note_gone(stage.bucket, STAGE, [queue, index, alarm])
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 1
    said = capsys.readouterr().err
    assert f"{checksum('two')} of " in said and f"does not come back: {queue}, {index}, which it may need, was taken away" in said
    assert said.count(checksum("two")) == 1 and f"{checksum('one')} of " in said, "those that can come back are named"
    assert further("silent") == 1 and f"{queue}, {index}, which" in capsys.readouterr().err
    assert {code for code, _ in stage.runs().values()} == {checksum("mended")}
    assert further("one") == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}
    stage.deploy("two", *NAMES, needed=[queue, index])  # brings them again
    stage.deploy("three", *NAMES)
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("two")}


def test_the_last_versions_are_kept(stage: Stage) -> None:
    for number in range(MOST + 2):
        stage.deploy(str(number), NAMES[0])
    known = versions.fetch(stage.bucket, STAGE).known
    assert [each.code for each in known] == [checksum(str(n)) for n in range(2, MOST + 2)]
    assert stage.packages() == {each.key(STAGE) for each in known}


def test_a_package_that_a_cut_rollback_left_goes_with_the_next_deploy(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in ("one", "two"):
        stage.deploy(content, *NAMES)
    with monkeypatch.context() as cut:
        cut.setattr(versions, "_delete_others", lambda *_: (_ for _ in ()).throw(Died()))
        with pytest.raises(Died):
            main(["--stage", STAGE, "rollback", "--yes"])
    assert len(stage.packages()) == 2
    stage.bucket.client.delete_object(Bucket=stage.bucket.name, Key=f"locks/{STAGE}")
    stage.deploy("one", *NAMES)
    assert stage.packages() == {each.key(STAGE) for each in versions.fetch(stage.bucket, STAGE).known}


def test_another_stages_versions_take_no_package_away(stage: Stage, tmp_path: Path) -> None:
    """Stages that run the same code share the bucket: one forgets a version that the other one goes back to."""
    stage.deploy("one", *NAMES)
    stage.deploy("two", *NAMES)
    for content in ("one", *map(str, range(MOST))):
        (tmp_path / "demo.zip").write_bytes(package(content))
        versions.keep(stage.bucket, "demo", tmp_path / "demo.zip", Version("", "", {}))
    assert checksum("one") not in {each.code for each in versions.fetch(stage.bucket, "demo").known}
    assert main(["--stage", STAGE, "rollback", "--yes"]) == 0
    assert {code for code, _ in stage.runs().values()} == {checksum("one")}


def test_which_version_is_before() -> None:
    one, two, three = (Version(checksum(name), "", {}) for name in ("one", "two", "three"))
    whole = Versions((one, two, three))
    assert before(whole, {three.code}, STAGE) == two
    assert before(whole, {three.code, two.code}, STAGE) == two, "a rollback that was cut, and its goal lost"
    assert before(whole, {three.code, "four"}, STAGE) == three, "a deploy that was cut: no version is known before its end"
    assert before(Versions((one,)), {one.code, "two"}, STAGE) == one
    assert before(whole, {"of a plain chalice deploy"}, STAGE) == three
    assert before(Versions((one, two, three), goal=one.code), {one.code}, STAGE) == one
    for known in ((), (one,)):
        with pytest.raises(CanNot, match="no version before"):
            before(Versions(known), {one.code}, STAGE)


def test_where_nothing_was_deployed_it_says_so(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert versions.fetch(Bucket(stage.bucket.client, "no-such-bucket", "1", "eu-central-1"), STAGE) == Versions()
    assert main(["--stage", "demo", "rollback", "--yes"]) == 1
    assert "no version before this one is kept of stage demo" in capsys.readouterr().err


def test_every_functions_rights_are_kept() -> None:
    found = policies(PROJECT, STAGE)
    assert list(found) == declared(STAGE)
    assert found["gateway-prod"] == json.loads((PROJECT / ".chalice/policy-api-prod.json").read_text())


def test_a_package_that_was_not_made_here_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(package("one"))
    assert versions.package_of(tmp_path, checksum("one")) == tmp_path / "a.zip"
    with pytest.raises(CanNot, match="does not hold the package that functions run"):
        versions.package_of(tmp_path, checksum("two"))
