"""The pages' ES modules in Node.js: what they compute, without a browser."""

from __future__ import annotations

import json
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from chalicelib.web import files
from infra.local.keeper import find_node_js

_OURS = re.compile(r"""(["'])((?:[a-z_]+)/[\w.-]+\.js)\1""", re.ASCII)


@lru_cache(maxsize=1)
def _folder() -> Path:
    """All modules as they are served, side by side."""
    folder = Path(mkdtemp(prefix="modules-"))
    (folder / "package.json").write_text('{"type": "module"}')
    for file in files.files().values():
        if file.name.endswith(".js"):
            (folder / file.name).write_text(file.text)
    return folder


def run(source: str, seconds: float = 30) -> str:
    """What a module prints. `source` imports ours by their paths: ``import { amount } from "app/format.js"``.

    Raises AssertionError with what Node.js complains of.
    """
    text = _OURS.sub(lambda match: f'"./{files.named(match[2])}"', source)
    command = [find_node_js(), "--input-type=module", "-"]
    done = subprocess.run(command, input=text, cwd=_folder(), capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def value(source: str, expression: str) -> Any:
    """The value of a JavaScript expression (awaited), by JSON, behind the imports in `source`."""
    return json.loads(run(f"{source}\nconsole.log(JSON.stringify(await ({expression})));"))
