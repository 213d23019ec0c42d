"""How often a payout waits for the node, by the times of its requests."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.tron.http import TronHttp

ANSWER = 0.1
"""Seconds that each answer takes here, so that requests which are under way together are seen to be."""


@dataclass
class Rounds:
    """The requests to a node: what each one asks, and when it began and ended. A batch is one request."""

    asked: list[tuple[float, float, tuple[str, ...]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def timed(self, methods: tuple[str, ...], ask: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            time.sleep(ANSWER)
            return ask()
        finally:
            with self.lock:
                self.asked.append((began, time.monotonic(), methods))

    @property
    def serial(self) -> int:
        """The most requests of which each began after the one before had ended."""
        count, until = 0, 0.0
        for began, ended, _ in sorted(self.asked, key=lambda each: each[1]):
            if began >= until:
                count, until = count + 1, ended
        return count

    @property
    def methods(self) -> Counter[str]:
        return Counter(method for _, _, methods in self.asked for method in methods)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rounds]:
    """The requests that are made while the block runs. Tron has no batches: each request of one is counted."""
    rounds, call, batch, exchange = Rounds(), JsonRpc.call, JsonRpc.batch, TronHttp._exchange
    with monkeypatch.context() as patch:
        patch.setattr(JsonRpc, "call", lambda self, m, p=(): rounds.timed((m,), lambda: call(self, m, p)))
        patch.setattr(JsonRpc, "batch", lambda self, r: rounds.timed(tuple(m for m, _ in r), lambda: batch(self, r)))
        patch.setattr(TronHttp, "_exchange", lambda self, m, body: rounds.timed((m,), lambda: exchange(self, m, body)))
        yield rounds


def fewest(pay: Callable[[], Rounds], rounds: int) -> Rounds:
    """Of three payouts the one that waits least: a thread that a busy machine lets wait can only add to them."""
    found = []
    for _ in range(3):
        found.append(pay())
        if found[-1].serial <= rounds:
            break
    return min(found, key=lambda each: each.serial)
