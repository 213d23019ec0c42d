"""The operator's commands work with the settings that the stage's functions have, or not at all."""

from __future__ import annotations

import ast
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from chalicelib.settings import STAGES, VARIABLES, Settings
from chalicelib.wiring import parts
from infra import chalice, cli, stage_settings
from infra.cli import main
from infra.deployment import code
from infra.local import repairs
from infra.stage_settings import declared, differences, of_stage
from tests.deploy.declared import function_names, function_settings

READERS = {"os.environ.get", "_flag", "_switch", "_whole", "_url", "_pairs", "_chains"}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes the settings of the stage prod."""
    file = tmp_path / "config.json"
    monkeypatch.setattr(stage_settings, "CONFIG", file)
    monkeypatch.setattr(stage_settings.declared, "__defaults__", (None, file))

    def write(functions: dict[str, dict[str, str]] | None = None, **settings: str) -> None:
        own = {name: {"environment_variables": variables} for name, variables in (functions or {}).items()}
        stage = {"environment_variables": {"STAGE": "prod", **settings}, "lambda_functions": own}
        file.write_text(json.dumps({"version": "2.0", "app_name": "gateway", "stages": {"prod": stage}}))

    return write


@pytest.fixture
def functions() -> Iterator[Callable[..., None]]:
    """Makes functions of the stage prod with these settings."""
    repairs.install()
    with mock_aws():
        client = boto3.client("lambda")
        role = boto3.client("iam").create_role(
            RoleName="any", AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": []}'
        )
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("app.py", "")

        def make(*names: str, **settings: str) -> None:
            for name in names:
                client.create_function(
                    FunctionName=name, Runtime="python3.11", Role=role["Role"]["Arn"], Handler="app",
                    Code={"ZipFile": file.getvalue()}, Environment={"Variables": {"STAGE": "prod", **settings}},
                )  # fmt: skip

        yield make


def test_every_setting_that_is_read_is_among_the_names() -> None:
    source = Path(Settings.from_environment.__func__.__code__.co_filename).read_text()  # type: ignore[attr-defined]
    read = {
        call.args[0].value
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in READERS and call.args and isinstance(call.args[0], ast.Constant)
    }
    assert read == set(VARIABLES)


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_declared_is_what_chalice_gives_every_function(stage: str) -> None:
    for function in function_names(stage):
        wanted = {**function_settings(stage, function)["environment_variables"]}
        assert declared(stage, function) == declared(stage) == {name: wanted[name] for name in VARIABLES if name in wanted}


def test_a_command_works_with_the_stages_settings(config: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """`rotate` made a key that can be shown, for the main chain, where the stage said otherwise."""
    config(WALLET_CUSTODY="native", LIVE_CHAINS="bitcoin=testnet", ADDRESSES_MODE="cross")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WALLET_CUSTODY", "envelope")
    monkeypatch.setenv("RISK_USD", "5")
    monkeypatch.setenv("STAGE", "local")
    with of_stage("prod", declared("prod")) as left_out:
        found = Settings.from_environment()
        assert (found.stage, found.wallet_custody, found.chain("live:bitcoin")) == ("prod", "native", "testnet")
        assert (found.addresses_mode, found.risk.usd) == ("cross", 1000)
        assert left_out == ["RISK_USD", "WALLET_CUSTODY"]
    assert (os.environ["STAGE"], os.environ["WALLET_CUSTODY"], os.environ["RISK_USD"]) == ("local", "envelope", "5")
    assert "ADDRESSES_MODE" not in os.environ


def test_the_local_stages_settings_are_the_shells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLET_CUSTODY", "native")
    monkeypatch.setenv("WEBHOOKS_ALLOW_PRIVATE", "false")
    with of_stage("local", declared("local")) as left_out:
        assert Settings.from_environment().wallet_custody == "native" and left_out == []
        assert Settings.from_environment().webhooks_private is False


def test_a_command_is_refused_where_functions_have_other_settings(
    config: Callable[..., None], functions: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    config(WALLET_CUSTODY="native", COINGECKO_API_KEY="new-secret")
    functions("gateway-prod", "gateway-prod-payout", WALLET_CUSTODY="native", COINGECKO_API_KEY="new-secret", OTHER="x")
    functions("gateway-prod-collect", WALLET_CUSTODY="envelope", LIVE_CHAINS="tron=testnet", COINGECKO_API_KEY="old-secret")
    functions("gateway-demo-collect", "gateway-production", WALLET_CUSTODY="envelope")
    said = differences(boto3.client("lambda"), "prod")
    names = ("COINGECKO_API_KEY", "LIVE_CHAINS", "WALLET_CUSTODY")
    assert said == [f"gateway-prod-collect has another {name} than config.json" for name in names]
    assert main(["--stage", "prod", "rotate", "ethereum", "--realm", "live", "--type", "hot"]) == 1
    told = capsys.readouterr().err
    assert "gateway-prod-collect has another WALLET_CUSTODY than config.json" in told and "infra.cli --stage prod deploy" in told
    assert "secret" not in told


def test_what_must_not_wait_for_a_deploy_is_not_refused(
    config: Callable[..., None], functions: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    config()
    functions("gateway-prod", ADDRESSES_MODE="cross")
    for words in (
        ["revoke", "mch_x", "key_x"],
        ["mappings", "--check"],
        ["stop-payments", "--realm", "live", "--reason", "a leak"],
    ):
        main(["--stage", "prod", *words])
        assert "than config.json" not in capsys.readouterr().err
    assert main(["--stage", "prod", "keys", "mch_x"]) == 1
    assert "gateway-prod has another ADDRESSES_MODE than config.json" in capsys.readouterr().err


def test_a_package_is_written_without_asking_aws(
    config: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever functions have, and without a region or credentials."""
    config()
    (tmp_path / ".chalice").mkdir()
    (tmp_path / "config.json").rename(tmp_path / ".chalice" / "config.json")
    monkeypatch.setattr(stage_settings.declared, "__defaults__", (None, tmp_path / ".chalice" / "config.json"))
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("app.py", "")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(code, "PROJECT", tmp_path)
    monkeypatch.setattr(chalice.Packager, "create_deployment_package", lambda *_: str(tmp_path / "packed.zip"))
    assert main(["--stage", "prod", "package"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out == "packed.zip: 0.0 MB, 0.0 MB unzipped\n"


def test_a_setting_of_one_function_is_refused(config: Callable[..., None], functions: Callable[..., None]) -> None:
    config({"payout": {"WALLET_CUSTODY": "envelope"}}, WALLET_CUSTODY="native")
    functions("gateway-prod-payout", WALLET_CUSTODY="envelope")
    said = differences(boto3.client("lambda"), "prod")
    assert said == ["gateway-prod-payout is to have a WALLET_CUSTODY of its own: set it for the stage"]


def test_a_file_that_is_none_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "config.json"
    for text in ("{", "[]", "1"):
        broken.write_text(text)
        with pytest.raises(ValueError, match=r"config.json can not be read"):
            declared("prod", config=broken)
    with pytest.raises(ValueError, match="can not be read"):
        declared("prod", config=tmp_path / "none.json")


def test_where_nothing_is_deployed_nothing_differs(config: Callable[..., None], functions: Callable[..., None]) -> None:
    config(ADDRESSES_MODE="cross")
    assert differences(boto3.client("lambda"), "prod") == []


@pytest.mark.parametrize(
    ("stage", "custody", "shown"), [("prod", "native", False), ("demo", "envelope", True), ("local", "envelope", True)]
)
def test_prods_keys_stay_in_kms_and_in_no_answer(stage: str, custody: str, shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STAGE", stage)
    found = Settings.from_environment()
    assert (found.wallet_custody, found.reveal_private_keys) == (custody, shown)
    monkeypatch.setenv("WALLET_CUSTODY", "envelope")
    monkeypatch.setenv("REVEAL_PRIVATE_KEYS", "true")
    found = Settings.from_environment()
    assert (found.wallet_custody, found.reveal_private_keys) == ("envelope", True)


@pytest.mark.parametrize("start", ["cli", "chalice"])
def test_every_client_is_in_the_region_of_aws_region(start: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """boto3 reads AWS_DEFAULT_REGION and the configuration file alone; the page tells an operator to set AWS_REGION."""
    (tmp_path / "config").write_text("[default]\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert boto3.session.Session().region_name == "us-east-1"
    found: list[str | None] = []

    def look(*_: object) -> int:
        found.append(boto3.session.Session().region_name)
        found.append(parts._region())
        return 0

    monkeypatch.setattr(cli, "_run", look)
    monkeypatch.setattr("chalice.cli.main", look)
    assert (main(["--stage", "local", "audit"]) if start == "cli" else chalice.main()) == 0
    assert found == ["eu-west-1", "eu-west-1"]
