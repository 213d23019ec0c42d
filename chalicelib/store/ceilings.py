"""`usecases.ports.ceilings` on AWS Systems Manager: a standard parameter for each pool, which outlives the tables.

A standard parameter is free; an account has 10,000 per region, and 40 GetParameter, GetParameters and PutParameter calls a second
unless it asks for more: housekeeping makes one call a minute, and one more each 25,000 addresses.
https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-throughput.html

PutParameter has no condition. So a slow writer may put an older number in the place of a newer one: `highest` therefore reads the
history, which keeps the last 100 values. https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-paramstore-versions.html
That a read sees the newest write is nowhere promised, and nothing here relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.settings import Settings
from chalicelib.usecases.ports.failures import Unavailable


class SsmCeilings:
    def __init__(self, settings: Settings, client: Callable[[], Any]) -> None:
        self._settings, self._client = settings, client

    def read(self, names: Sequence[str]) -> dict[str, int]:
        """Recorded ceilings by pool name; a pool without one is left out. Raises Unavailable."""
        by_parameter = {self._settings.ceiling_parameter(name): name for name in names}
        try:
            found = self._client().get_parameters(Names=list(by_parameter))["Parameters"]
        except (BotoCoreError, ClientError) as error:
            raise Unavailable("the ceilings of the index pools can not be read") from error
        return {by_parameter[each["Name"]]: _number(each) for each in found}

    def highest(self, name: str) -> int | None:
        """Raises Unavailable."""
        parameter, values = self._settings.ceiling_parameter(name), []
        try:
            for page in self._client().get_paginator("get_parameter_history").paginate(Name=parameter):
                values += [_number(each) for each in page["Parameters"]]
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == "ParameterNotFound":
                return None
            raise Unavailable(f"{parameter} can not be read") from error
        return max(values, default=None)

    def write(self, name: str, ceiling: int) -> None:
        """Raises Unavailable."""
        parameter = self._settings.ceiling_parameter(name)
        try:
            self._client().put_parameter(Name=parameter, Value=str(ceiling), Type="String", Tier="Standard", Overwrite=True)
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(f"{parameter} can not be written") from error


def _number(parameter: dict[str, Any]) -> int:
    text = str(parameter["Value"])
    if not text.isdecimal():
        raise Unavailable(f"{parameter['Name']} is {text[:40]!r}, which is no ceiling: somebody else wrote it")
    return int(text)
