"""Holds every command of the operator's to the rights that the pages give those who run it: moto enforces no policies.

Kinds and names of what is called are looked up, and not the resources: `tests/deploy/test_deployer.py` has those.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from botocore.client import BaseClient

from infra import cli
from tests.deploy.deployer_rights import FILE, OF_KEYS, actions, allows

Call = tuple[str, str]
"""Service and operation."""
OF_PLATFORM = FILE.with_name("deployer-platform.json")
BY_KEYS = {"deploy", "move_node_secrets", "node_secret", "rotate", "seed_restore", "wallet_keys"}
"""What docs/deploying.md leaves to the role that makes keys; `seed_restore` makes the stacks of an empty account."""
BY_PLATFORM = {"platform"}


@cache
def _lacking(command: str, call: Call) -> tuple[str, ...]:
    files = (FILE, *((OF_KEYS,) if command in BY_KEYS else ()), *((OF_PLATFORM,) if command in BY_PLATFORM else ()))
    return tuple(sorted(action for action in actions(*call) if not allows(action, directly=True, files=files)))


def held(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command; fails where it asks AWS for what its role may not."""
    name, lacking, send = args.run.__name__, set[str](), BaseClient._make_api_call

    def noted(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        lacking.update(_lacking(name, (self.meta.service_model.service_name, operation)))
        return send(self, operation, sent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", noted)
        code = run(args)
    assert not lacking, f"{name} asks for {', '.join(sorted(lacking))}, which no role of docs/deploying.md that runs it has"
    return code


def hold(patch: Any) -> None:
    """From now on, until `patch` is undone, commands are held to their rights."""
    run = cli._run
    patch.setattr(cli, "_run", lambda args: held(run, args))
