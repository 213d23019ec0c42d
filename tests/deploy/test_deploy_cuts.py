"""The command `deploy`, cut at AWS calls and run again: what stands in the end is what an uncut deploy leaves, to the last setting.

moto is made as strict as AWS (strict_aws.py). `make sweep` cuts at every call, in four parts that run side by side.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.conftest import ROOT, copy_project, run_python
from tests.deploy.deployer_rights import missing

pytestmark = pytest.mark.slow
FULL = os.environ.get("SWEEP") == "full"
PARTS = 4
NEVER = 10**6
"""More calls than a deploy makes."""


def cut(command: str, folder: Path, every: int, first: int, operations: str = "") -> dict[str, Any]:
    """What `cut_deploys` found."""
    (copy_project(folder) / "requirements.txt").write_text("# nothing: see test_deploy.py\n")
    arguments = ("-m", "tests.deploy.cut_deploys", command, str(folder), "prod", str(every), str(first), operations)
    found: dict[str, Any] = json.loads(run_python(ROOT, *arguments, seconds=7200 if FULL else 240))
    assert found["said"] == ""
    assert len(found["asked"]) > 20 and missing(found["asked"]) == [], "infra/deployer.json gives what the commands need"
    return found


# One cut costs a deploy more. This one leaves an API that no record names: the next run has to find it, or makes a second one.
@pytest.mark.parametrize(
    ("first", "operations"),
    [(0, "ImportRestApi"), pytest.param(300, "CreateEventSourceMapping", marks=pytest.mark.sweep)],
)
def test_a_cut_deploy_that_is_run_again_ends_as_an_uncut_one(tmp_path: Path, first: int, operations: str) -> None:
    found = cut("deploy", tmp_path, 500 if first else NEVER, first, operations)
    assert found["left"] == {}
    cuts = [name.split(" ", 1)[1].split(":")[0] for name in found["cuts"]]
    assert (len(cuts) > 1) is (first > 0) and operations in cuts
    stands = found["stands"]
    assert (len(stands["functions"]), len(stands["apis"]), len(stands["mappings"]), stands["locks"]) == (22, 1, 9, [])
    assert (len(stands["alarms"]), {len(each["AlarmActions"]) for each in stands["alarms"].values()}) == (55, {1}), (
        "all but that of demo_reset"
    )
    assert len({each["CodeSha256"] for each in stands["functions"].values()}) == 1
    assert stands["record"] and stands["stack"]["template"].startswith("AWSTemplateFormatVersion")


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(PARTS))
def test_every_cut_ends_the_same(tmp_path: Path, part: int) -> None:
    found = cut("deploy", tmp_path, PARTS, part)
    assert len(found["cuts"]) > 120
    assert found["left"] == {}


@pytest.mark.sweep
def test_every_cut_of_delete_ends_the_same(tmp_path: Path) -> None:
    found = cut("delete", tmp_path, 1, 0)
    assert len(found["cuts"]) > 100
    assert found["left"] == {}
    stands = found["stands"]
    assert [len(stands[part]) for part in ("functions", "apis", "mappings", "rules", "record", "locks")] == [0] * 6
    assert stands["tables"]["gateway-prod-chain"] > 50
