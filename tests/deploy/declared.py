"""What app.py and .chalice/config.json declare, as the tests compare it with what was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chalice.app import ScheduledEventConfig, SQSEventConfig

CHALICE = Path(__file__).resolve().parents[2] / ".chalice"
API = "api_handler"
"""Chalice's name for the function behind the REST API."""


def config() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CHALICE / "config.json").read_text())
    return loaded


def functions() -> list[str]:
    """All functions by their names in config.json."""
    from app import app

    return [API, *(source.name for source in app.event_sources)]


def function_names(stage: str) -> dict[str, str]:
    """The Lambdas' names by the functions' names."""
    return {f: f"gateway-{stage}" if f == API else f"gateway-{stage}-{f}" for f in functions()}


def function_settings(stage: str, function: str) -> dict[str, Any]:
    """Memory, timeout, policy file and environment as Chalice puts them together from config.json."""
    loaded = config()
    of_stage = loaded["stages"][stage]
    return {
        **loaded["lambda_functions"][function],
        **of_stage["lambda_functions"][function],
        "environment_variables": of_stage["environment_variables"],
    }


def schedules() -> dict[str, str]:
    from app import app

    return {s.name: s.schedule_expression.to_string() for s in app.event_sources if isinstance(s, ScheduledEventConfig)}


def consumers(stage: str) -> dict[str, str]:
    """Queue names by the functions that consume them. The app was imported for the stage `local`."""
    from app import app

    found = {s.name: s.queue for s in app.event_sources if isinstance(s, SQSEventConfig)}
    return {name: queue.replace("gateway-local-", f"gateway-{stage}-") for name, queue in found.items()}
