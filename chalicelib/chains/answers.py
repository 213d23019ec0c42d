"""Checks of answers that nodes of every family give alike. Any other form is the node's fault, and raises Garbled."""

from __future__ import annotations

import re
from typing import Any

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Garbled(Exception):
    """A node's answer contradicts the request or itself. The message says which part, never what a provider wrote."""


def hash32(value: Any, what: str) -> str:
    """A 32 byte hash: 64 lower-case hex digits (UTXO nodes, Tron)."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise Garbled(f"{what} is no hash")
    return value


def member(answer: Any, name: str, what: str) -> Any:
    """`answer[name]`, None where it is not there. `answer` must be an object."""
    if not isinstance(answer, dict):
        raise Garbled(f"{what} is no object")
    return answer.get(name)
