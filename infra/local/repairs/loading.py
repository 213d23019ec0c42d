"""How botocore and moto find descriptions of services, made quicker: it took a third of each start of moto.

Apply it before moto's services are imported: its EC2 asks for all regions then.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from botocore.loaders import Loader
from moto.core import loaders, utils

_DONE = "_gateway_quick"
_MODELS = frozenset({"service-2", "paginators-1", "waiters-2", "endpoint-rule-set-1"})
"""Kinds of descriptions that are asked for by a service's name: whether it has one shows when it is read."""
_UNUSED = {"metadata": {"endpointPrefix": "ec2"}}
"""All that is asked of EC2: moto looks up its regions. The description is the largest of all, and nobody calls it here."""


def repair_loading() -> None:
    """List services once for all kinds of descriptions, have moto share what it has read, and leave EC2's description unread. May
    be called any number of times."""
    quick: Any = Loader
    if getattr(quick, _DONE, False):
        return
    setattr(quick, _DONE, True)
    listed, load = quick.list_available_services, quick.load_service_model

    def available(self: Any, type_name: str) -> Any:
        """botocore looks into each of 400 folders, once for each kind. A service without that kind is refused a step later."""
        return _services(tuple(self.search_paths)) if type_name in _MODELS else listed(self, type_name)

    def loaded(self: Any, service_name: str, type_name: str, api_version: str | None = None) -> Any:
        if (service_name, type_name) == ("ec2", "service-2"):
            return _UNUSED
        return load(self, service_name, type_name, api_version)

    quick.list_available_services, quick.load_service_model = available, loaded
    # moto makes a loader for each description that it reads.
    setattr(utils, "create_loader", lru_cache(maxsize=1)(loaders.create_loader))  # noqa: B010 - not exported there


@cache
def _services(paths: tuple[str, ...]) -> list[str]:
    """The names of the folders there."""
    folders = [folder for folder in map(Path, paths) if folder.is_dir()]
    return sorted({entry.name for folder in folders for entry in os.scandir(folder) if entry.is_dir()})
