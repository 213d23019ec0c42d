"""An operator's settings of the platform round the functions: `platform` in .chalice/config.json, for all stages or for one.

They stand beside what Chalice reads there, which passes over what it does not know. No function gets them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.commands.common import CanNot
from infra.stage_settings import CONFIG

LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""What CloudWatch takes. https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html"""


@dataclass(frozen=True, slots=True)
class Platform:
    """The settings of one stage.

    The API has room for a hundred requests at once beside all else (`function_settings.API`). At 200 ms each, that is 500 a second,
    and twice as many at once find room for a moment where queues are quiet. More would be turned away by Lambda, with an alarm, or
    take what deliveries run on. An account's own bounds (10,000 and 5,000) spare nothing of that.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-request-throttling.html
    """

    throttle_rate: int = 500
    """Requests a second, over time."""
    throttle_burst: int = 200
    """Requests at once, beyond the rate."""
    access_log: bool = True
    access_log_days: int = 90


def of_stage(stage: str, config: Path = CONFIG) -> Platform:
    """The settings of `stage`. Raises CanNot, naming what is wrong with which."""
    try:
        loaded = json.loads(config.read_text())
        found = {**_part(loaded), **_part(loaded.get("stages", {}).get(stage, {}))}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise CanNot(f"{config.name} can not be read: {error}") from error
    if unknown := sorted(found.keys() - Platform.__dataclass_fields__.keys()):
        raise CanNot(f"platform in {config.name} knows no {', '.join(unknown)}: {', '.join(Platform.__dataclass_fields__)}")
    wanted = Platform(**{"access_log_days": 90 if stage == "prod" else 7, **found})
    _demand(config, "throttle_rate", wanted.throttle_rate, range(1, 10_001), "1 to 10000 requests a second")
    _demand(config, "throttle_burst", wanted.throttle_burst, range(1, 5_001), "1 to 5000 requests")
    _demand(config, "access_log", wanted.access_log, (True, False), "true or false")
    _demand(config, "access_log_days", wanted.access_log_days, LOG_DAYS, f"one of {', '.join(map(str, LOG_DAYS))}")
    return wanted


def _part(loaded: Mapping[str, Any]) -> dict[str, Any]:
    return dict(loaded.get("platform", {}))


def _demand(config: Path, name: str, value: object, allowed: Any, said: str) -> None:
    if type(value) is not type(next(iter(allowed))) or value not in allowed:
        raise CanNot(f"platform.{name} in {config.name} is {json.dumps(value)}, and has to be {said}")
