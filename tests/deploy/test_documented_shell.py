"""What the operator's pages have typed to other programs than ours and AWS's: run here as it is written, by bash.

openssl asks for a passphrase at a terminal; here it stands in the line. curl asks the app itself.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from chalicelib.custody.seed import SEED_BYTES, account_xpubs
from chalicelib.custody.seed_backup import LEAST_BITS, escrow, opened
from chalicelib.domain.addresses.addresses import Xpub
from chalicelib.domain.withdrawals.approvals import withdrawal_text
from chalicelib.encoding.ed25519 import read_bytes, verify
from chalicelib.settings import Settings
from tests.deploy.conftest import ROOT
from tests.deploy.documented_aws import commands, run, section

DOCS, CHANGELOG = ROOT / "docs", ROOT / "CHANGELOG.md"
PAGES = ("deploying", "operating", "runbooks", "alarms", "aws")
PROGRAMS = ("openssl", "git", "printf", "echo", "head", "python3", "curl", "xxd")
PASSPHRASE = "of the operator"


def blocks(text: str) -> list[str]:
    """The lines of a text's blocks, one that goes on in the next as one, without what is remarked behind them."""
    found = "".join(re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")
    return [line.partition("   #")[0].strip() for line in found.splitlines()]


def of(text: str, *programs: str) -> list[str]:
    return [line for line in blocks(text) if line.split(" ", 1)[0] in programs]


def bash(line: str, folder: Path) -> str:
    return subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=folder, check=True, capture_output=True, text=True).stdout


BACKUPS, APPROVALS = section(DOCS / "runbooks.md", "## Backups"), section(DOCS / "operating.md", "## Approvals")
UPGRADE, PROOFS = section(DOCS / "deploying.md", "## Upgrade"), (DOCS / "aws.md").read_text(encoding="utf-8")
RUN = [
    *of(BACKUPS, "openssl"),
    *of(APPROVALS, "openssl", "printf"),
    *of(UPGRADE, "git"),
    *of(PROOFS, "python3", "echo", "head"),
]


def test_each_line_for_such_a_program_is_run() -> None:
    """curl's: tests/deploy/first_invoice.py, tests/contract/wallets/test_documented_wallet.py."""
    every = "\n".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)
    assert len(RUN) == 11 and sorted(line for line in of(every, *PROGRAMS) if not line.startswith("curl ")) == sorted(RUN)


def test_the_escrow_is_sealed_and_opened_by_the_keys_that_the_page_makes(tmp_path: Path) -> None:
    make, public = of(BACKUPS, "openssl")
    bash(f"{make} -pass 'pass:{PASSPHRASE}'", tmp_path)
    bash(f"{public} -passin 'pass:{PASSPHRASE}'", tmp_path)
    private_pem, public_pem = ((tmp_path / f"escrow-{name}.pem").read_bytes() for name in ("private", "public"))
    assert b"ENCRYPTED PRIVATE KEY" in private_pem and LEAST_BITS <= 4096
    seed = bytearray(range(SEED_BYTES))
    xpubs: list[Xpub] = account_xpubs(seed, 0)
    sealed = escrow(seed, Settings(stage="prod"), xpubs, public_pem, 0)
    with opened(None, sealed, private_pem, PASSPHRASE) as found:
        assert found == seed
    with pytest.raises(ValueError, match="passphrase is another"), opened(None, sealed, private_pem, "another"):
        pass


def test_a_signer_signs_as_the_page_says(tmp_path: Path) -> None:
    make, public, text, sign = of(APPROVALS, "openssl", "printf")
    bash(make, tmp_path)
    key = bash(public, tmp_path).strip()
    bash(text, tmp_path)
    signed = (tmp_path / "text").read_text()
    name, network, coin, amount, to = signed.split("\n")
    assert signed == withdrawal_text(name, network, coin, amount, to) and Decimal(amount) == Decimal("1.5")
    signature = read_bytes(bash(sign, tmp_path), 64).hex()
    assert read_bytes(key, 32).hex() == key and verify(key, signed, signature)
    assert not verify(key, signed + "\nreject", signature)


def test_a_branch_of_ones_own_is_brought_up_to_date(tmp_path: Path) -> None:
    """As somebody has it who keeps settings in a commit of his own, in a branch that follows none."""
    identity = "git config user.name n && git config user.email n@shop.example"
    bash(f"git init -q -b main theirs && cd theirs && {identity} && echo 1 >code && git add code && git commit -qm 1", tmp_path)
    bash(f"git clone -q theirs ours && cd ours && {identity} && git checkout -q --no-track -b shop", tmp_path)
    bash("echo 1 >config && git add config && git commit -qm settings", tmp_path / "ours")
    bash("echo 2 >code && git commit -qam 2", tmp_path / "theirs")
    (line,) = of(UPGRADE, "git")
    with pytest.raises(subprocess.CalledProcessError):
        bash("git pull", tmp_path / "ours")
    bash(line, tmp_path / "ours")
    assert bash("cat code config && git branch --show-current", tmp_path / "ours").split() == ["2", "1", "shop"]


@pytest.fixture
def region(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


def test_what_proofs_are_made_of_is_made(region: None, tmp_path: Path) -> None:
    """The files that the page has made, and on moto what its first rows do with them."""
    for line in of(PROOFS, "python3", "echo", "head"):
        bash(line, tmp_path)
    assert (tmp_path / "digest").stat().st_size == 32 and len((tmp_path / "large.json").read_text()) > 400 * 1024
    assert len(json.loads((tmp_path / "over.json").read_text())) == 101
    for line in of(PROOFS, "aws"):
        run(line, {})

    def prove(words: str) -> None:
        (line,) = [each for each in commands(DOCS / "aws.md") if words in each]
        run(line.replace("file://", f"file://{tmp_path}/"), {})

    dynamodb = boto3.client("dynamodb")
    for words in ("over.json", "large.json"):
        with pytest.raises(ClientError, match="ValidationException"):
            prove(words)
    assert dynamodb.scan(TableName="proof")["Items"] == []
    prove("add.json")
    assert dynamodb.scan(TableName="proof")["Items"] == [{"pk": {"S": "a"}, "n": {"N": "1"}}]
    prove("--condition-expression")
    with pytest.raises(ClientError, match="ConditionalCheckFailed") as refused:
        prove("--condition-expression")
    assert refused.value.response["Item"] == {"pk": {"S": "b"}}  # type: ignore[typeddict-item]


def test_what_the_changelog_has_typed_renews_a_policy(region: None) -> None:
    iam, before = boto3.client("iam"), (ROOT / "infra" / "keys-deployer.json").read_text()
    given = {"POLICY": iam.create_policy(PolicyName="gateway-deployer", PolicyDocument=before)["Policy"]["Arn"]}
    renew, remove = commands(CHANGELOG)
    assert "create-policy-version" in renew and "delete-policy-version" in remove
    run(renew, given)
    (version,) = [each for each in iam.list_policy_versions(PolicyArn=given["POLICY"])["Versions"] if each["IsDefaultVersion"]]
    found = iam.get_policy_version(PolicyArn=given["POLICY"], VersionId=version["VersionId"])["PolicyVersion"]["Document"]
    assert found == json.loads((ROOT / "infra" / "deployer.json").read_text())
    run(remove, given)
    assert len(iam.list_policy_versions(PolicyArn=given["POLICY"])["Versions"]) == 1


def test_each_version_says_what_an_operator_has_to_do() -> None:
    """First, and in numbered steps, or that there is nothing to do."""
    text = CHANGELOG.read_text(encoding="utf-8")
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert versions and all(re.match(r"(\d+\.\d+\.\d+ \(|Unreleased)", each) for each in versions)
    for each in versions:
        name, _, rest = each.partition("\n")
        head, _, todo = rest.partition("\n")
        assert head == "### What an operator has to do", name
        first = todo.partition("\n### ")[0].strip()
        assert first.startswith("1. ") or first == "Nothing.", name
