"""The whole service in this process, without sockets: requests go through the local gateway's own event builder, schedules and
queues through the pump's `drain`. For fault tests, `snapshot` and `restore` put all data back in a few milliseconds.
"""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from chalicelib.settings import APP, Settings
from infra.local.aws import LocalAws, Snapshot
from infra.local.gateway import Gateway, Request
from infra.local.pump import Drained, drain
from tests.support.openapi import assert_documented

Query = Mapping[str, Any] | Sequence[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Response:
    """`json` is the parsed body, None where it is no JSON; `headers` by lower-case name, the last of repeated ones."""

    status: int
    json: Any
    headers: dict[str, str]
    body: bytes


class Client:
    """Calls an app through the gateway. `path` is what follows `/api`, raw.

    What our own app answers has to be as documented: whatever is not raises Undocumented, whoever asked.
    """

    def __init__(self, app: Any, stage: str = "local") -> None:
        self._gateway = Gateway(app, stage)
        self._ours = app.app_name == APP

    def call(
        self,
        method: str,
        path: str,
        key: str | None = None,
        json: Any = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        body: bytes | str | None = None,
        source_ip: str = "127.0.0.1",
        query: Query | None = None,
    ) -> Response:
        """One request. `key` becomes X-Api-Key; `json` the body, with its content type; `query` is encoded (lists repeat)."""
        sent = list(headers.items()) if isinstance(headers, Mapping) else list(headers or ())
        if key is not None:
            sent.append(("X-Api-Key", key))
        if json is not None:
            if body is not None:
                raise ValueError("json and body exclude each other")
            body = jsonlib.dumps(json)
        if body is not None and not any(name.lower() == "content-type" for name, _ in sent):
            sent.append(("Content-Type", "application/json"))
        raw = body.encode("utf-8") if isinstance(body, str) else body or b""
        target = "/api" + path + (f"?{urlencode(query, doseq=True)}" if query else "")
        reply = self._gateway.handle(Request(method, target, sent, raw, source_ip))
        response = Response(reply.status, _parsed(reply.body), {n.lower(): v for n, v in reply.headers}, reply.body)
        if self._ours:
            assert_documented(response.status, response.headers, response.json, method, target.removeprefix("/api"))
        return response


class Stack(Client):
    """`keys` are those of the first start, by name; `app` is the Chalice app with all its handlers."""

    def __init__(self, aws: LocalAws, app: Any, keys: Mapping[str, str]) -> None:
        super().__init__(app, aws.settings.stage)
        self.aws = aws
        self.app = app
        self.keys = dict(keys)
        self._fresh = aws.snapshot()
        self._prepared: dict[Hashable, Snapshot] = {}
        self._prepared_in = ""

    def drain(self, **options: Any) -> Drained:
        """Everything that clocks and queues would do, until nothing is left; see `infra.local.pump.drain`."""
        return drain(self.app, **options)

    def snapshot(self) -> Snapshot:
        return self.aws.snapshot()

    def restore(self, token: Snapshot) -> None:
        """All data as at `snapshot`, and no process memory of what came after."""
        self.aws.restore(token)
        _forget_services()

    def prepare(self, name: Hashable, make: Callable[[], None]) -> None:
        """Do `make` on the stack as it was after its first start, or give back what it left there when it was done under this name
        before, in the same module: what one changes for all its tests is in force then. A stack that something was done to is
        prepared anew."""
        module = os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]
        if module != self._prepared_in:
            self._prepared, self._prepared_in = {}, module
        if not self.aws.holds(self._fresh):
            make()
        elif name in self._prepared:
            self.restore(self._prepared[name])
        else:
            make()
            self._prepared[name] = self.snapshot()
            _forget_services()  # as after a restore: no test depends on being the first

    def reset(self) -> None:
        """All data as after the first start."""
        self.restore(self._fresh)


def first_stack(aws: LocalAws, nodes: Any = None) -> Stack:
    """Do a first start on empty tables and queues. `nodes`: slug to NodeInfo, for live networks that have a node."""
    from app import app
    from infra.bootstrap import first_start

    aws.reset_data()
    _forget_services()
    return Stack(aws, app, first_start(Settings.from_environment(), nodes))


def _forget_services() -> None:
    from chalicelib import wiring

    wiring.forget()


def _parsed(body: bytes) -> Any:
    try:
        return jsonlib.loads(body)
    except ValueError:
        return None
