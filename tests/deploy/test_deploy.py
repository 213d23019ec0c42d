"""`python -m infra.chalice deploy` against moto: what app.py and config.json declare is what stands there afterwards, and stays so
the next time.

What is packed is test_package.py's matter. Here the package holds app.py alone: uploading 32 MB for each of the functions, twice,
would take most of a minute and show nothing more.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.conftest import ROOT, copy_project, made_once, run_python
from tests.deploy.declared import CHALICE, consumers, function_names, function_settings, functions, schedules

pytestmark = pytest.mark.slow
STAGE = "prod"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What stands after the first and after the second deployment."""
    found: list[dict[str, Any]] = json.loads((made_once(tmp_path_factory, "deploy", _deploy) / "standing.json").read_text())
    return found


def _deploy(folder: Path) -> None:
    copy = copy_project(folder)
    (copy / "requirements.txt").write_text("# nothing: see test_deploy.py\n")
    (folder / "standing.json").write_text(run_python(ROOT, "-m", "tests.deploy.deploying", str(copy), STAGE))


@pytest.fixture(params=["first deployment", "second deployment"])
def standing(deployed: list[dict[str, Any]], request: pytest.FixtureRequest) -> dict[str, Any]:
    return deployed[0 if request.param == "first deployment" else 1]


def test_functions(standing: dict[str, Any]) -> None:
    names = function_names(STAGE)
    assert set(standing["functions"]) == set(names.values())
    for function, name in names.items():
        found, declared = standing["functions"][name], function_settings(STAGE, function)
        assert found["memory"] == declared["lambda_memory_size"]
        assert found["timeout"] == declared["lambda_timeout"]
        assert found["environment"] == declared["environment_variables"]
        assert found["runtime"] == f"python3.{sys.version_info.minor}"


def test_functions_run_what_our_package_holds(standing: dict[str, Any]) -> None:
    """Not what Chalice itself would upload: it takes the packager of `infra/chalice.py`."""
    assert {found["code"] for found in standing["functions"].values()} <= set(standing["packages"])


def test_the_operators_commands_find_the_settings_that_were_deployed(standing: dict[str, Any]) -> None:
    assert standing["differences"] == []


def test_each_function_has_the_rights_of_its_policy_file(standing: dict[str, Any]) -> None:
    for function, name in function_names(STAGE).items():
        file = CHALICE / function_settings(STAGE, function)["iam_policy_file"]
        assert standing["functions"][name]["policy"] == json.loads(file.read_text()), function


def test_handlers_are_what_app_py_defines(standing: dict[str, Any]) -> None:
    import app

    for found in standing["functions"].values():
        module, name = found["handler"].split(".")
        assert module == "app"
        assert callable(getattr(app, name))


def test_routes(standing: dict[str, Any]) -> None:
    from app import app

    (api,) = standing["apis"]
    declared = {path: set(methods) for path, methods in app.routes.items()}
    assert {path: set(methods) for path, methods in api["routes"].items()} == declared
    assert {target for methods in api["routes"].values() for target in methods.values()} == {f"gateway-{STAGE}"}
    assert api["stages"] == ["api"]
    assert api["nodes"] < 300  # API Gateway quotas, resources per API


def test_schedules(standing: dict[str, Any]) -> None:
    names = function_names(STAGE)
    declared = [{"rate": rate, "state": "ENABLED", "function": names[f]} for f, rate in schedules().items()]
    assert len(declared) == 12
    assert sorted(standing["schedules"], key=str) == sorted(declared, key=str)
    assert Counter(s["rate"] for s in standing["schedules"]) == {"rate(1 minute)": 10, "rate(5 minutes)": 2}


def test_queue_mappings_are_there_once_and_take_what_app_py_says(standing: dict[str, Any]) -> None:
    names = function_names(STAGE)
    single = dict.fromkeys(("scan_range", "compare", "tick", "record", "payout", "collect"), 1)
    sizes = {"relay": 10, "deliver": 10, "deliver_slow": 10, **single}
    declared = [{"queue": queue, "function": names[f], "batch": sizes[f]} for f, queue in consumers(STAGE).items()]
    assert len(declared) == 9
    assert Counter(map(str, standing["mappings"])) == Counter(map(str, declared))


def test_what_the_operator_sets_on_mappings_outlives_the_next_deployment(deployed: list[dict[str, Any]]) -> None:
    first, second = deployed
    assert (first["heeded"], first["mappings command"], second["mappings command"]) == ([], 0, 0)
    assert sorted(second["heeded"]) == [f"gateway-{STAGE}-{name}" for name in ("deliver", "deliver_slow", "relay")]


def test_logs_of_every_function_end_some_day(standing: dict[str, Any]) -> None:
    for name in function_names(STAGE).values():
        assert standing["log_retention"][f"/aws/lambda/{name}"] == 90


def test_the_second_deployment_changes_what_is_there(deployed: list[dict[str, Any]]) -> None:
    first, second = ([api["id"] for api in found["apis"]] for found in deployed)
    assert first == second
    assert len(functions()) == len(deployed[1]["functions"]) == 22
