"""docs/alarms.md says of every alarm what it means and what to do, and of none that nothing raises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.deploy import TEMPLATE

ROOT = TEMPLATE.parents[1]
PAGE = (ROOT / "docs" / "alarms.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]
VALUE = "\x00"
"""Stands for what a line of the log fills in."""


def texts(node: ast.AST) -> Iterator[str]:
    """The literals in an expression; what is filled in as VALUE."""
    match node:
        case ast.JoinedStr():
            yield "".join(part.value if isinstance(part, ast.Constant) else VALUE for part in node.values)  # type: ignore[misc]
        case ast.Constant(value=str(text)):
            yield text


def logged(source: str) -> set[str]:
    """What `source` logs as an alarm, without the word itself: of calls to a logger, and of calls to a method `_alarm`, whose
    words follow the network as those of other alarms do."""
    found = set()
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        for text in texts(call.args[0]):
            if call.func.attr == "_alarm":
                found.add(f"%s: {text}")
            elif call.func.attr in ("warning", "error", "exception", "critical") and text.startswith("ALARM "):
                found.add(text.removeprefix("ALARM "))
    return found


ALARMS = sorted(
    {(str(file.relative_to(ROOT)), text) for file in (ROOT / "chalicelib").rglob("*.py") for text in logged(file.read_text())}
)


def phrases(row: str) -> list[str]:
    """What stands as code in the first column."""
    return re.findall(r"`([^`]+)`", row.split("|")[1])


def says(phrase: str, text: str) -> bool:
    """Whether a phrase of the page is in an alarm's text, where `…` and `N` stand for what is filled in, or for any words."""
    written = re.sub(r"%[sd]", VALUE, text)
    pattern = r".*?".join(re.escape(part.strip()) for part in re.split(r"…|\bN\b", phrase))
    return re.search(pattern, written) is not None


def test_alarms_are_found_where_they_are_raised() -> None:
    every = [name for name in sorted((ROOT / "chalicelib").rglob("*.py")) if re.search(r'"ALARM |\'ALARM ', name.read_text())]
    assert {str(name.relative_to(ROOT)) for name in every} == {file for file, _ in ALARMS}
    assert logged('log.error("ALARM %s: a", x); self._alarm("%s was b", y); log.info("ALARM c"); log.warning("d")') == {
        "%s: a",
        "%s: %s was b",
    }


def test_phrases_are_compared() -> None:
    assert says("… waits for a second node", "%s: %s waits for a second node, which nobody has configured")
    assert says("… was replaced N times and is", "%s: %s was replaced %d times and is in no block")
    assert not says("… waits for a third node", "%s: %s waits for a second node, which nobody has configured")


@pytest.mark.parametrize(("file", "text"), ALARMS, ids=[f"{Path(file).stem}-{text[:60]}" for file, text in ALARMS])
def test_every_alarm_is_explained(file: str, text: str) -> None:
    if text == "%s: %s waits %s":
        # What for is in the calls of `_wait`.
        waits = set(re.findall(r'_wait\([^)]*"(for [^"]+)"\)', (ROOT / file).read_text()))
        assert waits
        explained = [any(says(p, f"%s: %s waits {what}") for row in ROWS for p in phrases(row)) for what in waits]
        assert all(explained)
        return
    assert any(says(phrase, text) for row in ROWS for phrase in phrases(row)), f"docs/alarms.md does not explain {text!r}"


def test_nothing_is_explained_that_is_not_raised() -> None:
    texts = [text for _, text in ALARMS if text != "%s: %s waits %s"]
    texts += ["%s: %s waits for liquidity of the hot wallet", "%s: %s waits for the balance of its merchant, which is negative"]
    rows = [line for line in PAGE.partition("\n## Lines of the log\n")[2].splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    for phrase in (p for row in rows for p in phrases(row) if not p.startswith("metric=")):
        assert len(re.sub(r"[…N\W]", "", phrase)) > 8, f"{phrase!r} would fit too much"
        assert any(says(phrase, text) for text in texts), phrase


def test_every_alarm_of_cloudwatch_is_explained() -> None:
    found = re.findall(r'AlarmName: !Sub "gateway-\$\{Stage\}-([\w-]+)"', TEMPLATE.read_text())
    named = {name for row in ROWS for name in phrases(row)}
    assert len(found) == len(set(found)) > 10
    assert {name for name in found if not name.endswith("-errors")} <= named
    assert "<function>-errors" in named
