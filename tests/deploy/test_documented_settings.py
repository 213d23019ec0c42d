"""docs/operating.md has every setting once, with its meaning and the default that it really has on each stage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from chalicelib.settings import STAGES, VARIABLES, Settings
from infra.deploy import TEMPLATE
from infra.deployment.platform_settings import of_stage
from infra.stage_settings import CONFIG, declared

PAGE = (TEMPLATE.parents[1] / "docs" / "operating.md").read_text()
SECTION = PAGE.partition("\n## Settings\n")[2].partition("\n## ")[0]
LINES = [line for line in SECTION.splitlines() if re.match(r"\| [A-Z]", line)]
ROWS = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in LINES]
IN_WORDS = {
    "STAGE": "chosen for each command",
    "LIVE_CHAINS": "each network's main chain: nothing is named",
    "PUBLIC_URL": "none, and then the gateway's",
    "COINGECKO_API_KEY": "none", "COINGECKO_URL": "the provider's", "KRAKEN_URL": "the provider's", "COINGECKO_IDS": "none",
}  # fmt: skip
"""Settings whose default is that there is no value."""

FIXED = {
    "version", "app_name", "autogen_policy", "api_gateway_stage", "api_gateway_endpoint_type", "minimum_compression_size", "stages",
    "lambda_functions", "environment_variables", "iam_policy_file", "platform",
}  # fmt: skip
"""Members of config.json that no operator sets, or that hold others."""


def names(row: tuple[str, ...]) -> list[str]:
    return re.findall(r"\b[A-Z][A-Z_]{3,}\b", row[0])


def defaults(text: str) -> dict[str, str]:
    """By stage what a cell such as `on; local off` says, or `0; demo, prod 2`."""
    general, *others = text.split("; ")
    found = dict.fromkeys(STAGES, general)
    for each in others:
        stages, value = re.fullmatch(r"([a-z, ]+) (\S+)", each).groups()  # type: ignore[union-attr]
        found |= dict.fromkeys(stages.split(", "), value)
    return found


def of_page() -> dict[str, str]:
    """Each setting's cell of the defaults. A row of several has one default for all of them, or one for each."""
    found: dict[str, str] = {}
    for row in ROWS:
        several = names(row)
        parts = row[2].split(", ") if len(several) > 1 and ";" not in row[2] else [row[2]]
        found |= dict(zip(several, parts if len(parts) == len(several) else [row[2]] * len(several), strict=True))
    return found


def test_every_setting_has_one_row_and_no_other_name_has() -> None:
    every = [name for row in ROWS for name in names(row)]
    assert sorted(every) == sorted(VARIABLES)
    assert all(len(row) == 3 and all(row) for row in ROWS)


def test_what_a_deploy_sets_has_a_row_as_well() -> None:
    """`access_log_days` of the platform is AccessLogDays; the key's ARN is no operator's choice."""
    parameters = re.findall(r"^  (\w+):$", TEMPLATE.read_text().partition("\nParameters:\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert len(parameters) >= 2
    assert {name for name in parameters if name.upper() not in VARIABLES} - {"AccessLogDays", "TablesKeyArn"} == {
        row[0].partition(":")[0] for row in ROWS if not names(row)
    }


def test_what_chalice_is_told_has_its_default() -> None:
    """All that config.json says of functions, and what puts them into a network; by default none is in one."""
    config = json.loads(CONFIG.read_text())
    told = {name: [*found(config, name)] for name in (*members(config), "subnet_ids", "security_group_ids")}
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in SECTION.splitlines() if re.match(r"\| `[a-z]+_", line)
    ]
    said = {n: text for row in rows for n, text in zip(re.findall(r"`(\w+)`", row[0]), row[2].strip(" |").split(", "), strict=True)}
    wanted = {name: _range(values) for name, values in told.items() if name not in FIXED}
    assert len(wanted) >= 6 and said == wanted and all(len(row) == 3 and all(row) for row in rows)


def members(value: Any) -> Iterator[str]:
    """The names of all members, but for those of functions, stages and variables."""
    for name, inner in value.items():
        yield name
        if name in ("stages", "lambda_functions"):
            yield from (each for one in inner.values() for each in members(one))


def found(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from ([value[name]] if name in value else [])
        yield from (each for inner in value.values() for each in found(inner, name))


def _range(values: list[Any]) -> str:
    least, most = (min(values), max(values)) if values else ("none", "none")
    return str(least) if least == most else f"{least} to {most}"


@pytest.mark.parametrize("stage", ["demo", "prod"])
def test_what_is_set_of_the_platform_has_its_default(stage: str, tmp_path: Path) -> None:
    rows = [re.findall(r"[^|]+", line) for line in SECTION.splitlines() if line.startswith("| `platform.")]
    said = {n: d for row in rows for n, d in zip(re.findall(r"platform\.(\w+)", row[0]), row[2].strip().split(", "), strict=True)}
    own = {name: re.fullmatch(r"(\S+)(?: \(prod (\S+)\))?", text) for name, text in said.items()}
    (tmp_path / "config.json").write_text("{}")
    wanted = {name: str(value).lower() for name, value in asdict(of_stage(stage, tmp_path / "config.json")).items()}
    assert {name: (stage == "prod" and found[2]) or found[1] for name, found in own.items() if found} == wanted


@pytest.mark.parametrize("name", [name for name in VARIABLES if name not in IN_WORDS])
@pytest.mark.parametrize("stage", STAGES)
def test_a_default_is_what_a_stage_has(stage: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set to what the page says, a setting changes nothing; set to anything else, it does, or is refused."""
    for each in VARIABLES:
        monkeypatch.delenv(each, raising=False)
    said = defaults(of_page()[name])[stage]
    for variable, value in {"STAGE": stage, **declared(stage)}.items():
        monkeypatch.setenv(variable, value)
    before = Settings.from_environment()
    monkeypatch.setenv(name, "" if said == "none" else said)
    assert Settings.from_environment() == before
    monkeypatch.setenv(name, "977" if re.fullmatch(r"[0-9]+", said) else "nonsense")
    assert _or_refused() != before


def _or_refused() -> Settings | None:
    try:
        return Settings.from_environment()
    except ValueError:
        return None
