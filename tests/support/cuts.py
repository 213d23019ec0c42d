"""Makes the n-th call to AWS or to a node fail, for any n: the tool behind the fault sweeps.

A call is one botocore operation, or one call or batch to a node (JSON-RPC, or Tron's HTTP), that the service makes while it is
*armed* (inside a request or a handler). What AWS does by itself, and what the test looks up, is not counted. Four ways to fail:

* ``error`` / ``before``: the call raises and had no effect. A time-out on the way there.
* ``error`` / ``after``: the call had its effect and raises all the same. A time-out on the way back.
* ``death`` / ``before`` and ``after``: the function dies there; nothing that it would have done next is done, no handler of
  an exception runs (`Died` is no Exception), and the next call starts in a fresh process (the caller forgets all services).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import botocore.client
import pytest
from botocore.exceptions import EndpointConnectionError

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.tron.http import TronHttp
from chalicelib.usecases.ports.failures import Unavailable

How = Literal["error", "death"]
When = Literal["before", "after"]
WAYS: tuple[tuple[How, When], ...] = (("error", "before"), ("error", "after"), ("death", "before"), ("death", "after"))


class Died(BaseException):
    """The function ended here, as if the power had gone."""


@dataclass
class Cutter:
    """Counts armed calls, or those `of` one name, and fails number `at` (from 1; 0: none). `trace` names all armed calls."""

    at: int = 0
    how: How = "error"
    when: When = "before"
    armed: bool = False
    fired: bool = False
    of: str = ""
    trace: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Of calls that are made at the same time one has the number."""

    def set(self, at: int, how: How, when: When, of: str = "") -> None:
        self.at, self.how, self.when, self.of = at, how, when, of
        self.armed, self.fired, self.trace = False, False, []

    @contextmanager
    def arm(self) -> Iterator[None]:
        """Count, and cut, what happens inside."""
        before, self.armed = self.armed, True
        try:
            yield
        finally:
            self.armed = before

    def around(self, name: str, call: Callable[[], Any], error: Exception) -> Any:
        if not self.armed:
            return call()
        with self.lock:
            self.trace.append(name)
            counted = self.trace.count(self.of) if self.of else len(self.trace)
            mine = counted == self.at and self.of in ("", name)
        if mine and self.when == "before":
            self._fail(error)
        try:
            return call()
        finally:
            # Where it was refused, the refusal is lost.
            if mine:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.fired = True
        if self.how == "death":
            self.armed = False
            raise Died(f"call {self.at}: {self.trace[-1]}")
        raise error


def install(cutter: Cutter, patch: pytest.MonkeyPatch) -> None:
    """Put `cutter` round every botocore client and every node."""
    api_call = botocore.client.BaseClient._make_api_call

    def aws(self: Any, operation: str, arguments: Any) -> Any:
        lost = EndpointConnectionError(endpoint_url="https://aws.invalid")
        return cutter.around(operation, lambda: api_call(self, operation, arguments), lost)

    patch.setattr(botocore.client.BaseClient, "_make_api_call", aws)
    for transport in (JsonRpc, TronHttp):
        _install(cutter, patch, transport)


def _install(cutter: Cutter, patch: pytest.MonkeyPatch, transport: type[Any]) -> None:
    rpc_call, rpc_batch = transport.call, transport.batch

    def call(self: Any, method: str, params: Any = ()) -> Any:
        return cutter.around(f"node {method}", lambda: rpc_call(self, method, params), Unavailable("the node hung up"))

    def batch(self: Any, requests: Any) -> Any:
        wanted = list(requests)
        name = f"node {wanted[0][0]} x{len(wanted)}" if wanted else "node nothing"
        return cutter.around(name, lambda: rpc_batch(self, wanted), Unavailable("the node hung up"))

    patch.setattr(transport, "call", call)
    patch.setattr(transport, "batch", batch)
