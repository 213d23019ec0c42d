"""What functions run on, as `.chalice/config.json` says: the Python (`lambda_runtime`, a word of ours) and the processor
(`lambda_architecture`, Chalice's).

Chalice takes the Python that runs it for the functions' own, whatever it is. A package is made for one Python: it holds libraries
that were compiled for it, and our modules in the form that it alone reads. So it has to be the one that is named.
Python 3.13 runs on Amazon Linux 2023, Python 3.11 on Amazon Linux 2, whose support ended in June 2026.
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from infra.commands.common import CanNot

RUNTIMES = ("python3.13", "python3.11")
"""Those that are tested; the first one counts where none is named."""
MACHINES = {"x86_64": 62, "arm64": 183}
"""The processors that Lambda has, by its names, and how a compiled library names them (`e_machine`).
https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
"""
RUNNING = f"python{sys.version_info.major}.{sys.version_info.minor}"


class Platform(NamedTuple):
    """In Lambda's words."""

    runtime: str
    architecture: str


class Size(NamedTuple):
    """What a function has of both; None where nobody says."""

    megabytes: int | None = None
    seconds: int | None = None


def size_of(project: Path, stage: str, function: str) -> Size:
    """What config.json gives to `function`, as Chalice calls it, and reads the file. Raises CanNot for a file that is none."""
    from chalice.config import Config

    found = Config(chalice_stage=stage, function_name=function, config_from_disk=_config(project))
    return Size(found.lambda_memory_size, found.lambda_timeout)


def declared(project: Path, stage: str) -> Platform:
    """What config.json says of a stage's functions. Raises CanNot for what is not supported."""
    loaded = _config(project)
    architecture = loaded.get("stages", {}).get(stage, {}).get("lambda_architecture", loaded.get("lambda_architecture", "x86_64"))
    return Platform(_one_of("lambda_runtime", _runtime(loaded), RUNTIMES), _one_of("lambda_architecture", architecture, MACHINES))


def demand_python(project: Path) -> None:
    """Raises CanNot where this Python is not the one that the project's functions are to have."""
    wanted = _one_of("lambda_runtime", _runtime(_config(project)), RUNTIMES)
    if wanted != RUNNING:
        raise CanNot(
            f"functions are to run {wanted} (lambda_runtime in .chalice/config.json), and this is {RUNNING}: install {wanted} and "
            f"make .venv with it (make deps PYTHON=/path/to/{wanted}), or name another there: {', '.join(RUNTIMES)}"
        )


def _config(project: Path) -> dict[str, Any]:
    file = project / ".chalice" / "config.json"
    try:
        loaded: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CanNot(f"{file} can not be read: {error}") from error
    return loaded


def _runtime(loaded: dict[str, Any]) -> str:
    return str(loaded.get("lambda_runtime", RUNTIMES[0]))


def _one_of(setting: str, value: str, allowed: Any) -> str:
    if value not in allowed:
        raise CanNot(f".chalice/config.json: {setting} is {value!r}, and has to be one of {', '.join(allowed)}")
    return value
