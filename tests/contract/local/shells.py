"""Nodes that are shell scripts."""

from __future__ import annotations

from infra.local.keeper import Kept

DEAF = 'trap "" TERM; touch $0; while :; do sleep 1; done'


class Shell(Kept):
    """A "node" that is a shell script."""

    name = "a script"

    def __init__(self, script: str, *arguments: str) -> None:
        self._keep(["/bin/sh", "-c", script, *arguments])
