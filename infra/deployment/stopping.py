"""Stops all functions of a stage, and the queues that bring them messages; starts them again.

A function that is stopped turns its queue's messages away, and each comes to the dead letters after some turns: half an hour is
enough. So queues stop, too. Functions stop first, since each of them may pay, and start first: no queue brings what none takes. A
cut between leaves what `deploy --check` names, and the command that was cut ends it.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from infra import mappings
from infra.deployment import function_settings


def stop(client: Any, functions: Sequence[str], wait: Callable[[float], None] = time.sleep) -> dict[str, str]:
    """Stop all of them. Functions, and ids of mappings, that Lambda refused to stop, with what it said. `client` is Lambda's."""
    left = function_settings.stop(client, functions, wait)
    return left | mappings.stop(client, functions, wait)


def to_stay(client: Any, functions: Sequence[str], recorded: Collection[str]) -> tuple[list[str], bool]:
    """Those of a stage's functions that are stopped, and whether the stage is as a whole: then new ones stop, too. What is not
    `recorded` is new, of a deploy that was cut before it could stop it. Raises botocore's ClientError."""
    stopped = function_settings.stopped(client, functions)
    older = [each for each in functions if each in recorded] or functions
    return stopped, bool(stopped) and set(older) <= set(stopped)


def start(client: Any, stage: str, functions: Sequence[str], wait: Callable[[float], None] = time.sleep) -> None:
    """Start all of them, with the settings that they are to have. Raises botocore's ClientError."""
    function_settings.settle(client, stage, functions, start=True)
    mappings.start(client, functions, wait)
