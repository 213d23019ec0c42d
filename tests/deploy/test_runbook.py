"""docs/alarms.md says of every alarm what it means and what to do, and of none that nothing raises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.deploy import TEMPLATE
from tests.deploy.alarms import ALARMS, ROOT, VALUE, logged

PAGE = (ROOT / "docs" / "alarms.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]


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
    assert {name for name in found if not re.search("-(errors|throttled|silent)$", name)} <= named
    assert {"<function>-errors", "<function>-throttled", "<function>-silent", "api-throttled"} <= named
