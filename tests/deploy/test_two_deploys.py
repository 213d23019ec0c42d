"""Two checkouts take turns: of two `deploy` at the same moment one is refused, and goes on afterwards with the same API."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.deploy.conftest import ROOT, copy_project, run_python


@pytest.mark.sweep
@pytest.mark.slow
def test_two_checkouts_that_deploy_at_once_take_turns(tmp_path: Path) -> None:
    checkouts = [copy_project(tmp_path / name) for name in ("first", "second")]
    for checkout in checkouts:
        shutil.copytree(ROOT / "infra", checkout / "infra", ignore=shutil.ignore_patterns("__pycache__"))
        (checkout / "requirements.txt").write_text("# nothing: see test_deploy.py\n")
    found = json.loads(run_python(ROOT, "-m", "tests.deploy.two_deploys", *map(str, checkouts), "prod", seconds=1200))
    done, refused = sorted(found["together"], key=lambda each: each["code"])
    assert (done["code"], done["wrong"], refused["code"]) == (0, [], 1), found["together"]
    (said,) = refused["wrong"]
    assert "deploys stage prod (seen " in said and "wait until that has ended" in said
    again, check = found["again"], found["check"]
    assert (again["code"], again["wrong"], check["code"], check["wrong"]) == (0, [], 0, [])
    assert again["said"][-1] == check["said"][-1] == done["said"][-1], "the same URL"
    assert done["said"][-1].startswith("stage prod stands as it is declared: https://")
    assert len(found["stands"]["apis"]) == 1
    for part in ("functions", "mappings", "schedules", "apis"):
        assert sorted(map(str, found["stands"][part])) == sorted(map(str, found["once"][part]))
