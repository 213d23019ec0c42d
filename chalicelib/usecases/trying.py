"""Deciding again after somebody else was first."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from chalicelib.usecases.changes import AtEpoch, Conflict

T = TypeVar("T")

TRIES = 12


def until_settled(decide: Callable[[], T]) -> T:
    """Run `decide` (read, decide, commit) and run it again when its commit met a Conflict. Raises the last Conflict.

    `decide` must read everything afresh, so that what it does the second time fits what is stored by then.
    """
    for attempt in range(TRIES - 1):
        try:
            return decide()
        except Conflict as conflict:
            if isinstance(conflict.change, AtEpoch):
                raise  # what was read of the chain is out of date: deciding again would not change it
            time.sleep(random.uniform(0, min(0.2, 0.005 * 2**attempt)))  # noqa: S311 - spreads retries, guards nothing
    return decide()
