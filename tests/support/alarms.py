"""Alarms of a test, and whether docs/alarms.md explains them."""

from __future__ import annotations

import re

import pytest

from infra.deploy import TEMPLATE

_PHRASES = [
    re.compile(".*?".join(re.escape(part.strip()) for part in re.split(r"…|\bN\b", phrase)))
    for line in (TEMPLATE.parents[1] / "docs" / "alarms.md").read_text().splitlines()
    if line.startswith("| `")
    for phrase in re.findall(r"`([^`]+)`", line.split("|")[1])
]


def raised(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Its alarms. Raises AssertionError where the page does not explain one."""
    lines = [record.getMessage() for record in caplog.records if "ALARM" in record.getMessage()]
    for line in lines:
        assert any(phrase.search(line) for phrase in _PHRASES), f"docs/alarms.md does not explain {line}"
    return lines
