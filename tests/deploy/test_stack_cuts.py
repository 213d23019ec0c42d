"""The making of a stage's stacks, cut at AWS calls and done again: it ends as an uncut one, with the same keys and the same rows.

Resource import is a stand-in of ours (importing.py). `make sweep` cuts at every call of each scenario.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.deploy.conftest import ROOT, run_python
from tests.deploy.deployer_rights import OF_KEYS, missing

pytestmark = pytest.mark.slow
NEVER = 10**6
"""More calls than there are."""


def cut(scenario: str, every: int, operations: str = "") -> dict[str, Any]:
    arguments = ("-m", "tests.deploy.cut_stacks", scenario, str(every), "0", operations)
    found: dict[str, Any] = json.loads(run_python(ROOT, *arguments, seconds=3600 if every == 1 else 240))
    assert found["left"] == {}
    assert missing(found["asked"], OF_KEYS) == [], "the two policies give what who makes keys needs"
    stands = found["stands"]
    assert {name: each["state"] for name, each in stands["stacks"].items()} == dict.fromkeys(stands["stacks"], "COMPLETE")
    assert {name: each["protected"] for name, each in stands["stacks"].items()} == {"gateway-prod": True, "gateway-prod-keys": True}
    assert len(stands["keys"]) == 5 == len(stands["aliases"]), "no cut made a key too many"
    unprotected = [name for name, each in stands["tables"].items() if not each["protected"]]
    assert unprotected == ["gateway-prod-events", "gateway-prod-sandbox"]
    return found


def same_money(found: dict[str, Any]) -> None:
    before, stands = found["before"], found["stands"]
    assert stands["aliases"] == before["aliases"] and stands["keys"] == before["keys"]
    assert {name: each["rows"] for name, each in before["tables"].items()} == {n: t["rows"] for n, t in stands["tables"].items()}
    assert stands["tables"]["gateway-prod-ledger"]["rows"]


# What each cut leaves is looked at in one process by test_bringing_back.
@pytest.mark.sweep
def test_a_cut_import_is_gone_on_with() -> None:
    """Before its execution the change set is all there is of the stack; behind it, only the update is missing."""
    found = cut("deleted", NEVER, "CreateChangeSet,ExecuteChangeSet")
    assert [each.split()[1] for each in found["cuts"]] == ["CreateChangeSet:", "ExecuteChangeSet:"]
    same_money(found)


@pytest.mark.sweep
@pytest.mark.parametrize("scenario", ["new", "failed", "deleted", "moved"])
def test_every_cut_ends_the_same(scenario: str) -> None:
    found = cut(scenario, 1)
    assert len(found["cuts"]) > 50
    if scenario not in ("new", "failed"):
        same_money(found)
