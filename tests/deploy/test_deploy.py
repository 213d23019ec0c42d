"""`python -m infra.chalice deploy` against moto, by hand, and then the command `deploy` from another checkout: what app.py and
config.json declare is what stands there afterwards, and stays so the next time.

What is packed is test_package.py's matter. Here the package holds app.py alone: uploading 32 MB for each of the functions, twice,
would take most of a minute and show nothing more.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import operators_pages
from tests.deploy.conftest import ROOT, copy_project, made_once, run_python
from tests.deploy.declared import CHALICE, consumers, function_names, function_settings, functions, schedules
from tests.deploy.first_invoice import CLONE, COMMANDS, SAID

pytestmark = [pytest.mark.slow, pytest.mark.nodes]
STAGE = "prod"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What stands after the first and after the second deployment, and when the stage was taken down and deployed again."""
    found: list[dict[str, Any]] = json.loads((made_once(tmp_path_factory, "deploy", _deploy) / "standing.json").read_text())
    return found


def _deploy(folder: Path) -> None:
    copies = [copy_project(folder / name) for name in ("first", "second")]
    for copy in copies:
        (copy / "requirements.txt").write_text("# nothing: see test_deploy.py\n")
    (folder / "standing.json").write_text(run_python(ROOT, "-m", "tests.deploy.deploying", *map(str, copies), STAGE))


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


def test_what_chalice_leaves_undone_is_told_with_every_functions_version(deployed: list[dict[str, Any]]) -> None:
    """`chalice deploy` by hand stays possible: the check says what it can not set, and changes nothing."""
    check = deployed[0]["check"]
    assert check["code"] == 1 and deployed[0]["heeded"] == []
    versions = {line.split()[0]: line.split()[1] for line in check["said"]}
    assert versions == {name: found["code"] for name, found in deployed[0]["functions"].items()}
    *said, last = check["wrong"]
    ignoring = [line.split(":")[0] for line in said if "ReportBatchItemFailures" in line]
    assert sorted(ignoring) == [f"gateway-{STAGE}-{name}" for name in ("deliver", "deliver_slow", "relay")]
    (answers,) = [line for line in said if line.startswith("API Gateway answers in its own words")]
    assert "MISSING_AUTHENTICATION_TOKEN" in answers
    assert [line for line in said if line.startswith("no record is shared in gateway-deployments-")]
    assert f"gateway-{STAGE}-relay: Lambda stops it after 16 rounds" in said
    stage = [
        line for line in said if "requests a second and at once" in line or "role to write logs" in line or "access log" in line
    ]
    assert len(stage) == 3, "no bounds, no log, and no role for it"
    assert len(said) == 5 + 3 + 18, "eighteen functions have a reserve, a schedule or a loop"
    assert last == f"{len(said)} things are missing or wrong. What names no other way: python -m infra.cli --stage {STAGE} deploy"


def test_the_command_sets_all_of_it(deployed: list[dict[str, Any]]) -> None:
    done, check = deployed[1]["deploy"], deployed[1]["check"]
    (api,) = deployed[1]["apis"]
    assert (done["code"], done["wrong"], check["code"], check["wrong"]) == (0, [], 0, [])
    url = f"https://{api['id']}.execute-api.eu-central-1.amazonaws.com/api/"
    assert done["said"][-1] == check["said"][-1] == f"stage {STAGE} stands as it is declared: {url}"
    assert sorted(deployed[1]["heeded"]) == [f"gateway-{STAGE}-{name}" for name in ("deliver", "deliver_slow", "relay")]


def test_a_migration_is_run_behind_functions_of_an_older_version_alone(deployed: list[dict[str, Any]]) -> None:
    """What was deployed by hand is not known: it may be older. Behind the command itself it is done."""
    behind, again = (deployed[n]["deploy"]["said"] for n in (1, 2))
    waits = "deposits: waits 5 minutes for the last calls of the version before"
    blocks = next(n for n, line in enumerate(behind) if line.startswith("deposits: 0 blocks listed by height"))
    assert behind.index(waits) < blocks
    assert waits not in again and any(line.startswith("deposits: migrated before") for line in again)


def test_what_lambda_refuses_is_told_and_the_next_run_goes_on(deployed: list[dict[str, Any]]) -> None:
    refused = deployed[1]["refused"]
    (said,) = refused["wrong"]
    assert refused["code"] == 1 and said.startswith("Chalice: ERROR - While sending your chalice handler code to Lambda to update")
    assert "Request must be smaller than 70167211 bytes" in said and said.endswith("what was done stays; run this again to go on")


def test_it_shows_first_what_it_will_do(deployed: list[dict[str, Any]]) -> None:
    said = deployed[1]["refused"]["said"]
    begun = next(n for n, line in enumerate(said) if line.startswith("Updating policy") or "is prepared" in line)
    plan = "\n".join(said[:begun])
    for line in (
        "account 123456789012, region eu-central-1, as ",
        f"stack gateway-{STAGE} (UPDATE_COMPLETE): brought to infra/template.yaml",
        "functions: 0 new, 22 updated, one after the other",
        f"API: https://{deployed[0]['apis'][0]['id']}.execute-api.",
    ):
        assert line in plan, plan


def test_delete_takes_down_what_chalice_made_and_says_what_it_kept(deployed: list[dict[str, Any]]) -> None:
    done, gone = deployed[2]["delete"], deployed[2]["gone"]
    assert (done["code"], done["wrong"]) == (0, [])
    assert [gone[part] for part in ("functions", "mappings", "schedules", "apis")] == [{}, [], [], []]
    assert f"kept: table gateway-{STAGE}-ledger" in done["said"] and "kept: 19 queues" in done["said"]
    assert [line for line in done["said"] if re.match(r"kept: \d+ of", line)] == []
    beside = (
        "parameters /gateway-prod/pools/",
        "secrets gateway-prod-node-",
        "bucket gateway-deployments-",
        "role gateway-access-log",
    )
    assert [name for name in beside if not any(line.startswith(f"kept: {name}") for line in done["said"])] == []
    assert done["said"][-1] == f"stage {STAGE} is taken down; deploy brings it back with the same money"


def test_deployed_again_it_has_the_same_money(deployed: list[dict[str, Any]]) -> None:
    """Rows, keys and buckets, though somebody deleted both stacks beside; all else is as it was, but for the API's URL.

    Resource import is a stand-in of ours (importing.py).
    """
    before, down, again = deployed[2]["money"]
    assert before == down == again and len(before["rows"]["gateway-prod-chain"]) > 50
    assert deployed[2]["deploy"]["code"] == 0
    assert any("takes 10 tables" in line for line in deployed[2]["deploy"]["said"])
    for part in ("functions", "schedules", "mappings"):
        assert Counter(map(str, deployed[2][part])) == Counter(map(str, deployed[1][part]))


def test_logs_of_every_function_end_some_day(standing: dict[str, Any]) -> None:
    for name in function_names(STAGE).values():
        assert standing["log_retention"][f"/aws/lambda/{name}"] == 90


def test_a_second_checkout_changes_what_is_there(deployed: list[dict[str, Any]]) -> None:
    first, second = ([api["id"] for api in found["apis"]] for found in deployed[:2])
    assert first == second
    assert len(functions()) == len(deployed[1]["functions"]) == 22


def test_chalice_alone_goes_on_with_what_stands(deployed: list[dict[str, Any]]) -> None:
    """From a clone without Chalice's record: `prepare` brings it, and `python -m infra.chalice` has it by itself, and shares it."""
    clone = deployed[1]["clone"]
    assert (clone["prepare"], clone["code"]) == (0, 0), clone["said"]
    assert [api["id"] for api in clone["apis"]] == [api["id"] for api in deployed[1]["apis"]]
    assert sorted(clone["brought"]) == sorted(clone["shared"]) and len(clone["shared"]) == 22 * 2 + 12 + 9 + 1
    assert not [line for line in clone["check"]["wrong"] if "record" in line or "mapping" in line or "API" in line.split()[1:2]]


def test_the_page_leads_from_a_clone_to_a_live_invoice(deployed: list[dict[str, Any]]) -> None:
    """As it is written, and with as many commands and questions as it says."""
    walk = deployed[2]["walk"]
    assert (walk["answer"].get("status"), walk["answer"].get("amount")) == ("pending", "0.01"), walk["answer"]
    assert SAID is not None and len(CLONE) == 1
    assert (len(COMMANDS), len(walk["questions"])) == tuple(map(int, SAID.groups()))


@pytest.mark.parametrize("line", operators_pages.RUN)
def test_an_operators_command_does_what_its_page_says(deployed: list[dict[str, Any]], line: str) -> None:
    ran, said = deployed[2]["walk"]["operated"][line], operators_pages.RUN[line]
    assert ran["code"] == (line in operators_pages.REFUSED), ran
    assert said in "\n".join(ran["wrong" if ran["code"] else "said"]), ran
