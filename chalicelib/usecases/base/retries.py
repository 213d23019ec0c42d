"""Retries after a Conflict, and runs over many items that go on when one of them fails."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from chalicelib.domain.work import Work
from chalicelib.usecases.ports.changes import AtEpoch, AtPart, Close, Conflict, Dropped
from chalicelib.usecases.ports.failures import Halted, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 12


def until_settled(decide: Callable[[], T], tries: int = TRIES, *, of: Work | None = None) -> T:
    """Run `decide` (read, decide, commit), and retry it while its commit meets a Conflict, at most `tries` times in all. Raises the
    last Conflict.

    `decide` must read everything afresh, so that its second decision fits the records of that time. `of`: the open work that each
    decision closes. Where another worker has closed it, no retry changes that, and the Conflict is raised at once.
    """
    for attempt in range(tries - 1):
        try:
            return decide()
        except Conflict as conflict:
            if isinstance(conflict.change, AtEpoch | AtPart | Dropped):
                raise  # what was read of the chain is out of date: deciding again would not change it
            if of is not None and conflict.change == Close(of):
                raise
            time.sleep(random.uniform(0, min(0.2, 0.005 * 2**attempt)))  # noqa: S311 - spreads retries, guards nothing
    return decide()


class Failures(ExceptionGroup[Exception]):
    """The failures of a run over many items. Each was logged where it happened."""


class Each:
    """Takes many steps, or the same step for many records; a failed step does not stop the next ones.

    A context manager that raises `Failures` at its end if any step failed, so that a run fails loudly. `what` names all of them
    in the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._failures: list[Exception] = []

    def __enter__(self) -> Each:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None and self._failures:
            raise Failures(self._what, self._failures)

    def take(self, name: str, step: Callable[[], object]) -> None:
        """Take one step. A Conflict is no failure; an unexpected exception is an alarm."""
        try:
            step()
        except Conflict:
            log.info("%s: %s: somebody else was first", self._what, name)
        except Failures as failures:
            self._failures += failures.exceptions
        except (Unavailable, Halted) as error:
            log.warning("%s: %s: not now: %s", self._what, name, error)
            self._failures.append(error)
        except Exception as error:
            log.exception("ALARM %s: %s failed and is left out", self._what, name)
            self._failures.append(error)
