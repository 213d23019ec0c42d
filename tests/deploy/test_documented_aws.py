"""What pages say of AWS: its commands are such, each row of docs/aws.md names code, a source of AWS's own and a proof."""

from __future__ import annotations

import re

import pytest

from infra.deploy import TEMPLATE
from tests.deploy.documented_aws import asked, commands
from tests.deploy.named_files import exists

DOCS = TEMPLATE.parents[1] / "docs"
CHANGELOG = DOCS.with_name("CHANGELOG.md")
COMMANDS = [(page.name, command) for page in [*sorted(DOCS.glob("*.md")), CHANGELOG] for command in commands(page)]
HEAD = ["assumption", "where", "AWS documents", "prove it"]
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    for line in (DOCS / "aws.md").read_text().splitlines()
    if line.startswith("| ")
]
PROOF = re.compile(r"`(?:aws|CLI|curl) [^`]+`|metric `[A-Za-z0-9]+/[A-Za-z]+`")
"""A command, or a metric: the page's head has the command that shows one."""
SOURCES = ("https://docs.aws.amazon.com/", "https://github.com/aws/")


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{page}-{command[:50]}" for page, command in COMMANDS])
def test_a_command_is_one(page: str, command: str) -> None:
    assert asked(command).operation


@pytest.mark.parametrize(
    "command",
    [
        "aws dynamodb make-table --table-name a",
        "aws dynamodb delete-table --table a",
        "aws dynamodb delete-table",
        "aws dynamodb delete-table --table-name a b",
        "aws sqs send-message --queue-url a --message-body x --delay-seconds soon",
        "aws kms create-key --key-spec ECC_SECG_P256K2 --key-usage SIGN_VERIFY",
        "aws kms create-grant --key-id a --grantee-principal b --operations Sing",
        "aws dynamodb update-table --table-name a --sse-specification Enabled=true,SSEType=KSM",
    ],
)
def test_what_is_none_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        asked(command)


def test_a_command_is_read_as_it_is_written() -> None:
    found = asked("aws dynamodb update-time-to-live --table-name t --time-to-live-specification Enabled=true,AttributeName=a")
    assert found[:2] == ("dynamodb", "UpdateTimeToLive")
    assert found.arguments["TimeToLiveSpecification"] == {"Enabled": True, "AttributeName": "a"}
    found = asked("aws dynamodb update-table --table-name t --no-deletion-protection-enabled")
    assert found.arguments == {"TableName": "t", "DeletionProtectionEnabled": False}


def test_each_assumption_names_code_a_source_and_a_proof() -> None:
    rows = [row for row in ROWS if row != HEAD]
    assert len(rows) >= 40 and all(len(row) == 4 and all(row) for row in rows)
    for assumption, where, documents, proof in rows:
        assert PROOF.search(proof), f"{assumption} has no command: {proof}"
        places = re.findall(r"`([^`]+)`", where)
        assert places and [place for place in places if not exists(place)] == [], assumption
        sources = re.findall(r"\]\(([^)]+)\)", documents)
        assert sources and all(source.startswith(SOURCES) for source in sources), assumption
