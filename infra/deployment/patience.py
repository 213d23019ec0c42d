"""Repeats a call that AWS refuses for a moment: what it names is being changed, or is not known everywhere yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import ClientError

T = TypeVar("T")
Busy = Callable[[Exception], bool]
"""Whether a refusal is one that passes."""


def patiently(call: Callable[[], T], busy: Busy, pause: Callable[[], object], tries: int) -> T:
    """What `call` gives, asked for at most `tries` times, with a pause between. Raises the last refusal, and others at once."""
    for _ in range(tries - 1):
        try:
            return call()
        except Exception as error:
            if not busy(error):
                raise
        pause()
    return call()


def coded(*codes: str) -> Busy:
    """Refusals with one of these codes pass."""
    return lambda error: isinstance(error, ClientError) and error.response["Error"]["Code"] in codes
