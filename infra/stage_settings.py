"""A stage's settings, as `chalice deploy` gives them to its functions: what the operator's commands work with, too.

Without them a command would make a wallet's key, or spell an address, under other settings than the functions that use it. Where
`.chalice/config.json` was changed and not deployed, or deployed from elsewhere, a command is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chalicelib.settings import APP, VARIABLES

CONFIG = Path(__file__).resolve().parents[1] / ".chalice" / "config.json"


def declared(stage: str, function: str | None = None, config: Path = CONFIG) -> dict[str, str]:
    """The settings in config.json that `function`, as Chalice calls it, gets on `stage`; without one, those of the stage.

    Raises ValueError for a file that is none.
    """
    from chalice.config import Config

    try:
        loaded = json.loads(config.read_text())
        found = Config(chalice_stage=stage, function_name=function or "", config_from_disk=loaded).environment_variables
    except (OSError, ValueError, AttributeError) as error:
        raise ValueError(f"{config.name} can not be read: {error}") from error
    return {name: str(value) for name, value in found.items() if name in VARIABLES}


@contextmanager
def of_stage(stage: str, settings: Mapping[str, str]) -> Iterator[list[str]]:
    """Put a stage's settings into the environment, until the end.

    The local stage's are set in the shell, which counts there. On other stages the shell's settings are left out: their names.
    """
    before = {name: os.environ.get(name) for name in VARIABLES}
    wanted = {**settings, "STAGE": stage}
    left_out: list[str] = []
    for name in VARIABLES:
        if stage != "local" and before[name] is not None and name != "STAGE" and before[name] != wanted.get(name):
            left_out.append(name)
            del os.environ[name]
        if name in wanted and (stage != "local" or name == "STAGE" or before[name] is None):
            os.environ[name] = wanted[name]
    try:
        yield left_out
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def one_region() -> None:
    """Have all clients of this process in the region that AWS_REGION names, where it is set.

    boto3 and Chalice read AWS_DEFAULT_REGION and the configuration file alone; the AWS CLI reads AWS_REGION first.
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-region.html
    """
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region


def differences(client: Any, stage: str) -> list[str]:
    """In what the deployed functions' settings differ from config.json, a line each; nothing where none is deployed yet.

    Values are not told: an API key may be among them. `client` is a client of Lambda. Raises botocore's ClientError, ValueError.
    https://docs.aws.amazon.com/lambda/latest/api/API_ListFunctions.html
    """
    said = []
    pages = client.get_paginator("list_functions").paginate()
    for function in (each for page in pages for each in page["Functions"]):
        name = str(function["FunctionName"])
        if name != f"{APP}-{stage}" and not name.startswith(f"{APP}-{stage}-"):
            continue
        deployed: Mapping[str, str] = function.get("Environment", {}).get("Variables", {})
        own = name.removeprefix(f"{APP}-{stage}").removeprefix("-") or "api_handler"
        wanted, common = declared(stage, own), declared(stage)
        said += [f"{name} has another {v} than config.json" for v in VARIABLES if deployed.get(v) != wanted.get(v)]
        said += [f"{name} is to have a {v} of its own: set it for the stage" for v in VARIABLES if wanted.get(v) != common.get(v)]
    return said
