"""The commands `deploy`, of the first release, of the next one and of the first, mended, `rollback` and `delete`, cut at AWS calls
and run again: what stands in the end is what an uncut one leaves, to the last setting.

moto is made as strict as AWS (strict_aws.py). `make sweep` cuts at every call, a deploy in eight parts that run side by side; the
way back to an older checkout, which makes the calls of an upgrade, at one in four, each time at others.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import next_release
from tests.deploy.conftest import ROOT, copy_project, run_python
from tests.deploy.deployer_rights import missing

pytestmark = pytest.mark.slow
FULL = os.environ.get("SWEEP") == "full"
PARTS = 8
NEVER = 10**6
"""More calls than a command makes."""
SHORT = "deploy:ImportRestApi", "upgrade:UpdateStack", "rollback:UpdateFunctionCode"


def cut(commands: str, folder: Path, every: int, first: int, *operations: str) -> dict[str, Any]:
    """What `cut_deploys` found, by command."""
    (copy_project(folder) / "requirements.txt").write_text("# nothing: see test_deploy.py\n")
    arguments = ("-m", "tests.deploy.cut_deploys", commands, str(folder), "prod", str(every), str(first), ",".join(operations))
    found: dict[str, Any] = json.loads(run_python(ROOT, *arguments, seconds=7200 if FULL else 240))
    assert {command: each["said"] for command, each in found.items()} == dict.fromkeys(commands.replace("!", "").split(","), "")
    lacking = {command: rights for command, each in found.items() if (rights := missing(each["asked"]))}
    assert lacking == {}, "infra/deployer.json gives what the commands need"
    assert {command: each["lacked"] for command, each in found.items() if each["lacked"]} == {}
    return found


# One cut costs a deploy more. That of ImportRestApi leaves an API that no record names: the next run has to find it, or makes a
# second one; those of UpdateStack leave one of two new indexes made, and one of two removed.
@pytest.mark.parametrize(
    ("commands", "every", "operations"),
    [
        ("deploy,upgrade!,rollback!", NEVER, SHORT),
        pytest.param("deploy,upgrade!,rollback!,older!", NEVER, ["older:UpdateStack 2"], marks=pytest.mark.sweep),
        pytest.param("deploy", 500, ["deploy:CreateEventSourceMapping"], marks=pytest.mark.sweep),
    ],
)
def test_a_cut_command_that_is_run_again_ends_as_an_uncut_one(
    tmp_path: Path, commands: str, every: int, operations: Sequence[str]
) -> None:
    first = 0 if every == NEVER else 300
    found = cut(commands, tmp_path, every, first, *operations)
    assert {command: each["left"] for command, each in found.items() if each["left"]} == {}
    for command, each in found.items():
        wanted = [operation.partition(":")[2].split()[0] for operation in operations if operation.startswith(command)]
        cuts = [name.split()[1].rstrip(":") for name in each["cuts"]]
        assert (cuts == wanted) is (every == NEVER) and set(wanted) <= set(cuts)
    stands = found["deploy"]["stands"]
    assert (len(stands["functions"]), len(stands["apis"]), len(stands["mappings"]), stands["locks"]) == (22, 1, 9, [])
    assert (len(stands["alarms"]), {len(each["AlarmActions"]) for each in stands["alarms"].values()}) == (55, {1}), (
        "all but that of demo_reset"
    )
    assert len({each["CodeSha256"] for each in stands["functions"].values()}) == 1
    assert stands["record"] and stands["stack"]["template"].startswith("AWSTemplateFormatVersion")
    if "upgrade" in found:
        upgraded(stands, found["upgrade"]["stands"])
        rolled_back(stands, found["rollback"]["stands"], found["upgrade"]["stands"])
    if "older" in found:
        brought_back(stands, found["older"]["stands"])


def upgraded(before: dict[str, Any], after: dict[str, Any]) -> None:
    """All that the next release changes is changed, and no row is lost."""
    assert before["functions"].keys() - after["functions"].keys() == {f"gateway-prod-{name}" for name in next_release.GONE}
    assert not codes(before) & codes(after) and len(codes(after)) == 1
    (old,), (new,) = before["apis"], after["apis"]
    ways = next_release.ROUTES["-"], next_release.ROUTES["+"]
    assert [[path in api["routes"] for path in ways] for api in (old, new)] == [[True, False], [False, True]]
    assert (len(after["mappings"]), len(after["rules"]), after["locks"]) == (8, len(before["rules"]) - 1, [])
    table = f"gateway-prod-{next_release.TABLE}"
    assert set(after["indexes"][table]) == {*before["indexes"][table], *next_release.INDEXES}
    assert [code for code, _ in after["versions"]["known"]] == [*codes(before), *codes(after)]
    assert {**before["tables"], "gateway-prod-later": 0} == after["tables"] and after["keys"] == before["keys"]


def rolled_back(before: dict[str, Any], after: dict[str, Any], between: dict[str, Any]) -> None:
    """Code and rights are those of before, all else of the upgrade stays. Until the next deploy it is known where it went."""
    (code,) = codes(before)
    assert codes(after) == codes(before) and after["functions"].keys() == between["functions"].keys()
    assert {name: each["rights"] for name, each in after["functions"].items()} == {
        name: before["functions"][name]["rights"] for name in after["functions"]
    }
    assert after["versions"] == {**before["versions"], "goal": code}
    for part in ("mappings", "rules", "apis", "indexes", "tables", "keys", "stack", "record", "locks"):
        assert after[part] == between[part], part


def brought_back(before: dict[str, Any], after: dict[str, Any]) -> None:
    """All is as before the upgrade, but for the code, and the table that came with it, which is never taken away."""
    (mended,), (code,) = codes(after), codes(before)
    assert after.pop("versions")["known"] == [*before["versions"]["known"], [mended, before["versions"]["known"][0][1]]]
    one, other = (re.sub(r'"CodeSize": \d+', '"CodeSize": 0', json.dumps(each)) for each in (before, after))
    for part, stands in json.loads(other.replace(mended, code)).items():
        if part in ("tables", "indexes"):
            assert stands.pop("gateway-prod-later") is not None
        assert stands == json.loads(one)[part], part


def codes(stands: dict[str, Any]) -> set[str]:
    return {each["CodeSha256"] for each in stands["functions"].values()}


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("commands", "one_in"), [("deploy", 1), ("deploy,upgrade", 1), ("deploy,upgrade!,older", 4)])
def test_every_cut_ends_the_same(tmp_path: Path, commands: str, one_in: int, part: int) -> None:
    first = part * one_in + random.randrange(one_in)
    found = cut(commands, tmp_path, PARTS * one_in, first)[commands.rpartition(",")[2]]
    assert len(found["cuts"]) > 60 // one_in
    assert found["left"] == {}


@pytest.mark.sweep
def test_every_cut_of_rollback_ends_the_same(tmp_path: Path) -> None:
    """Of two versions before: it never goes to the first."""
    found = cut("deploy,upgrade!,older!,upgrade,rollback", tmp_path, 1, 0)["rollback"]
    assert len(found["cuts"]) > 50
    assert found["left"] == {}


@pytest.mark.sweep
def test_every_cut_of_delete_ends_the_same(tmp_path: Path) -> None:
    found = cut("deploy,delete", tmp_path, 1, 0)["delete"]
    assert len(found["cuts"]) > 100
    assert found["left"] == {}
    stands = found["stands"]
    assert [len(stands[part]) for part in ("functions", "roles", "apis", "mappings", "rules", "record", "locks")] == [0] * 7
    assert stands["tables"]["gateway-prod-chain"] > 50
