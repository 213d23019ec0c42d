"""The operator's pages name every command of the command line, and what they tell an operator to type is understood."""

from __future__ import annotations

import argparse
import re
import shlex

import pytest

from infra import cli
from infra.deploy import TEMPLATE
from tests.deploy import operators_pages

DOCS = TEMPLATE.parents[1] / "docs"
PAGES = ("deploying", "operating", "runbooks", "alarms", "aws")
TEXT = "\n".join((DOCS / f"{name}.md").read_text() for name in PAGES)
BY_KEYS = "AWS_PROFILE=keys "


def commands_of(text: str) -> set[str]:
    """The lines of a page that are commands of ours, whoever types them."""
    lines = {line.strip().removeprefix(BY_KEYS).partition("  #")[0].strip() for line in text.splitlines()}
    return {line for line in lines if line.startswith("CLI ")}


LINES = sorted(commands_of(TEXT))


def commands() -> set[str]:
    parser = cli._parser()
    return {name for action in parser._actions if isinstance(action, argparse._SubParsersAction) for name in action.choices}


def words(line: str) -> list[str]:
    """What a line of a page says to type: options in brackets with the others, and a number where N stands for one."""
    plain = re.sub(r"[\[\]]", "", line.removeprefix("CLI "))
    return ["7" if word == "N" else word for word in shlex.split(plain)]


def test_the_pages_have_examples() -> None:
    assert len(LINES) > 25


@pytest.mark.parametrize("line", [line for line in LINES if "--help" not in line])
def test_an_example_is_understood(line: str) -> None:
    found = words(line.replace("SLUG", "ethereum").replace("|", " "))
    assert cli._parser().parse_args(["--stage", "prod", *found]).run.__name__ == found[0].replace("-", "_")


def test_every_command_is_named() -> None:
    named = {name for name in commands() if re.search(rf"(CLI |`|/ ){name}[ `]", TEXT)}
    assert commands() - named == set()


def test_what_a_deploy_says_is_said_by_it() -> None:
    """The refusals that the page explains, where `…` stands for anything."""
    page = (DOCS / "deploying.md").read_text().partition("| it says | do |\n|---|---|\n")[2].partition("\n\n")[0]
    said = [re.findall(r"`([^`]+)`", line)[0] for line in page.splitlines()]
    code = "\n".join(file.read_text() for file in sorted((DOCS.parent / "infra").rglob("*.py")))
    written = re.sub(r"\{[^{}]*\}", "…", code)
    assert len(said) >= 5
    assert [each for each in said if each not in written] == []


def test_what_an_account_needs_once_is_counted() -> None:
    """Beside the commands of the way to the first invoice (test_deploy.py)."""
    page = (DOCS / "deploying.md").read_text()
    needed = page.partition("\n## What is needed\n")[2].partition("\n## ")[0]
    once = [line for line in needed.splitlines() if line.strip().startswith("aws ")]
    assert f"Once an account: the {len(once)} above" in page and len(once) == 8


def test_each_command_of_the_first_pages_is_run_by_a_test() -> None:
    """Those of deploying and operating, in sentences too: as the page has them, or by the test that is named."""
    pages = "\n".join((DOCS / f"{name}.md").read_text() for name in ("deploying", "operating"))
    written = typed(pages)
    run, elsewhere, parsed = operators_pages.RUN, operators_pages.ELSEWHERE, operators_pages.PARSED
    assert written == run.keys() | elsewhere.keys() | parsed and len(parsed) == 1
    for command, where in elsewhere.items():
        assert_is_run(command, where)


def test_each_command_of_the_other_pages_is_run_by_a_test() -> None:
    """With the options that the page has, by the test that is named."""
    first = ("deploying.md", "operating.md", "README.md")
    pages = [*DOCS.glob("*.md"), DOCS.with_name("CHANGELOG.md")]
    written = {line for page in pages if page.name not in first for line in typed(page.read_text())}
    known = {**operators_pages.BY_NAME, **operators_pages.ELSEWHERE}
    left = {line for line in written if line not in known and line not in operators_pages.RUN}
    assert left - {line for line in left if within_another(line)} == set()
    assert operators_pages.BY_NAME.keys() - written == set()
    for command, where in operators_pages.BY_NAME.items():
        assert_is_run(command, where)


def typed(page: str) -> set[str]:
    """The commands that a page has, in blocks and in sentences."""
    return commands_of(page) | set(re.findall(r"`(CLI [a-z][^`]+)`", page))


def within_another(line: str) -> bool:
    """Whether it is a command that runs elsewhere, with other values, or fewer options."""
    ran = {*operators_pages.RUN, *operators_pages.ELSEWHERE, *operators_pages.BY_NAME}
    options = {word for word in words(line) if word.startswith("--")}
    return any(words(line)[0] == words(each)[0] and options <= {*words(each), "--yes"} for each in ran)


def assert_is_run(command: str, where: str) -> None:
    """The test is there, and its module gives the command with all options that the page has."""
    file, _, name = where.partition("::")
    text = (DOCS.parent / file).read_text()
    assert f"def {name}(" in text, command
    if where.startswith("tests/contract/"):
        given = words(command)
        assert all(f'"{word}"' in text for word in (given[0], *given) if word == given[0] or word.startswith("--")), command
