"""What is stored and deployed keeps its names, whatever the modules are called: see `frozen`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.deploy.frozen import LIST, names

BEFORE: dict[str, Any] = json.loads(LIST.read_text())


@pytest.mark.parametrize("part", sorted(BEFORE))
def test_no_stored_or_deployed_name_is_lost(part: str) -> None:
    before, now = BEFORE[part], names()[part]
    assert before, "an empty list would prove nothing"
    if isinstance(before, list):
        assert not set(before) - set(now)
        return
    assert not set(before) - set(now)
    for name, value in before.items():
        if isinstance(value, list):
            assert not set(value) - set(now[name]), name
        else:
            assert value == now[name], name


@pytest.mark.parametrize("part", sorted(BEFORE))
def test_each_stored_or_deployed_name_is_in_the_list(part: str) -> None:
    """What is not in the list could be renamed unseen: `.venv/bin/python -m tests.deploy.frozen` adds it."""
    before, now = BEFORE[part], names()[part]
    assert not set(now) - set(before)
    for name, value in {} if isinstance(before, list) else now.items():
        assert not isinstance(value, list) or not set(value) - set(before[name]), name
