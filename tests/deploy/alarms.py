"""The alarms that the product logs, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from infra.deploy import TEMPLATE

ROOT = TEMPLATE.parents[1]
VALUE = "\x00"
"""Stands for what a line of the log fills in."""


def texts(node: ast.AST) -> Iterator[str]:
    """The literals in an expression; what is filled in as VALUE."""
    match node:
        case ast.JoinedStr():
            yield "".join(part.value if isinstance(part, ast.Constant) else VALUE for part in node.values)  # type: ignore[misc]
        case ast.Constant(value=str(text)):
            yield text


def logged(source: str) -> set[str]:
    """What `source` logs as an alarm, without the word itself: of calls to a logger, and of calls to a method `_alarm`, whose
    words follow the network as those of other alarms do."""
    found: set[str] = set()
    if "ALARM " not in source and "_alarm(" not in source:
        return found  # parsing takes longer than reading
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        for text in texts(call.args[0]):
            if call.func.attr == "_alarm":
                found.add(f"%s: {text}")
            elif call.func.attr in ("warning", "error", "exception", "critical") and text.startswith("ALARM "):
                found.add(text.removeprefix("ALARM "))
    return found


ALARMS = sorted(
    {(str(file.relative_to(ROOT)), text) for file in (ROOT / "chalicelib").rglob("*.py") for text in logged(file.read_text())}
)
