"""`.local/runtime.json`: where a running local stack is and with which keys, for scripts. Holds keys, so it is the owner's alone.

The newest stack writes `runtime.json`; each writes `runtime-<port>.json` beside it. Both are whole at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("RUNTIME_FOLDER") or Path(__file__).resolve().parents[2] / ".local")
"""RUNTIME_FOLDER is for tests, which must not overwrite the files of a stack that somebody works with."""


def publish(port: int, base_url: str, keys: Mapping[str, str], nodes: Mapping[str, str], folder: Path = FOLDER) -> None:
    """Write both files for this process."""
    content = {"base_url": base_url, "keys": dict(keys), "nodes": dict(nodes), "pid": os.getpid()}
    folder.mkdir(parents=True, exist_ok=True)
    for path in (_own(folder, port), _latest(folder)):
        _write(path, content)


def withdraw(port: int, folder: Path = FOLDER) -> None:
    """Remove this process's file, and `runtime.json` where no newer stack has written it since."""
    for path in (_own(folder, port), _latest(folder)):
        if _pid(path) == os.getpid():
            path.unlink()


def withdraw_own(folder: Path = FOLDER) -> None:
    """Remove every file of this process, whatever its port."""
    for path in folder.glob("runtime*.json"):
        if _pid(path) == os.getpid():
            path.unlink(missing_ok=True)


def _own(folder: Path, port: int) -> Path:
    return folder / f"runtime-{port}.json"


def _latest(folder: Path) -> Path:
    return folder / "runtime.json"


def _write(path: Path, content: Mapping[str, Any]) -> None:
    part = path.with_suffix(f".{os.getpid()}")
    part.unlink(missing_ok=True)
    # The mode is given at creation: between open() and chmod() anybody could read the keys.
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    part.replace(path)


def _pid(path: Path) -> int | None:
    """Whose file it is; None where there is none, or it is not one of ours."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return content.get("pid") if isinstance(content, dict) else None
