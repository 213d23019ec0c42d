"""Secrets of nodes, read from Secrets Manager and kept in this process, and the transport to a node whose URL refers to them.

A value is read again after four minutes, so that a new version counts within five. Where the node refuses the credentials
(HTTP 401, 403) it is read again at once, and then the version before is tried: in a rotation either side may be first. While
Secrets Manager does not answer, the last value goes on; without one the node counts as one that does not answer.

AWSCURRENT is the version that GetSecretValue gives, AWSPREVIOUS the one before:
https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html
https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.chains.rows import Thin
from chalicelib.chains.rpc import Denied, Request, Transport, rows_of
from chalicelib.settings import USER_AGENT
from chalicelib.usecases.catalogue.node_secrets import NodeSecret, decoded, filled, hidden_parts, name_problem, names_in
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Unanswered

log = logging.getLogger(__name__)

T = TypeVar("T")

QUICK = Config(retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=1, read_timeout=3, user_agent=USER_AGENT)
"""Of the client: nine seconds at most. A request that a caller waits for has 29 in all, and asks a node afterwards."""
MOST_AGE_MS = 240_000
AGAIN_MS = 15_000
"""Milliseconds between two attempts where the first failed, or the node refused what it gave."""
_NO_SUCH = "ResourceNotFoundException"
_KEPT_TRANSPORTS = 2  # with the current secrets, and with those before


class Withheld(Unanswered):
    """The node is not called: a secret must not be sent there, or is not there."""


@dataclass
class _Kept:
    current: NodeSecret | None = None
    version: str = ""
    read_at: int | None = None
    tried_at: int | None = None
    trouble: str = ""
    previous: NodeSecret | None = None
    previous_of: str | None = None
    """The version that was current when `previous` was looked for."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class NodeSecrets:
    """The secrets of nodes. Safe to share between threads. `client` makes or gives the client of Secrets Manager."""

    def __init__(self, client: Callable[[], Any], clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def current(self, name: str) -> NodeSecret:
        """The secret, at most `MOST_AGE_MS` old while Secrets Manager answers. Raises Withheld where none was ever read."""
        kept = self._of(name)
        if not self._within(kept.read_at, MOST_AGE_MS):
            self._renew(name, kept)
        return self._value(name, kept)

    def renewed(self, name: str) -> NodeSecret:
        """As `current`, read again unless it was asked for in the last `AGAIN_MS`."""
        kept = self._of(name)
        self._renew(name, kept)
        return self._value(name, kept)

    def previous(self, name: str) -> NodeSecret | None:
        """The version before the current one, None where there is none or it can not be read now."""
        kept = self._of(name)
        with kept.lock:
            if kept.previous_of != kept.version:
                answer = self._ask(name, "AWSPREVIOUS")
                if isinstance(answer, str) and answer != _NO_SUCH:
                    return None
                kept.previous = None if isinstance(answer, str) else answer[0]
                kept.previous_of = kept.version
            return kept.previous

    def read_at(self, name: str) -> int | None:
        """When the current value was read, in milliseconds."""
        return self._of(name).read_at

    def _of(self, name: str) -> _Kept:
        with self._lock:
            return self._known.setdefault(name, _Kept())

    def _within(self, then: int | None, milliseconds: int) -> bool:
        # A clock that was set back makes it old, not young.
        return then is not None and 0 <= self._clock.now_ms() - then < milliseconds

    def _value(self, name: str, kept: _Kept) -> NodeSecret:
        if kept.current is None:
            raise Withheld(f"the secret {name} can not be read: {kept.trouble}")
        return kept.current

    def _renew(self, name: str, kept: _Kept) -> None:
        """Read it unless somebody just did. Who has a value does not wait for another thread that reads."""
        if not kept.lock.acquire(blocking=kept.current is None):
            return
        try:
            if self._within(kept.tried_at, AGAIN_MS):
                return
            answer = self._ask(name, "AWSCURRENT")
            kept.tried_at = self._clock.now_ms()
            if isinstance(answer, str):
                kept.trouble = answer
                if kept.current is not None:
                    log.warning("the secret %s can not be read (%s): its last value goes on", name, answer)
                return
            kept.current, kept.version = answer
            kept.read_at = kept.tried_at
        finally:
            kept.lock.release()

    def _ask(self, name: str, stage: str) -> tuple[NodeSecret, str] | str:
        """A version of the secret and its id, or the code of the failure."""
        try:
            answer = self._client().get_secret_value(SecretId=name, VersionStage=stage)
        except ClientError as error:
            return str(error.response.get("Error", {}).get("Code", "unknown"))
        except BotoCoreError as error:
            return type(error).__name__
        try:
            return decoded(str(answer.get("SecretString", ""))), str(answer["VersionId"])
        except ValueError as error:
            return f"it {error}"


class SecretNode:
    """The transport to a node whose URL refers to secrets. `prefix` begins the names that may be; `connect` makes the transport to
    a URL, and is told what to hide."""

    def __init__(
        self, url: str, prefix: str, secrets: NodeSecrets, connect: Callable[[str, Sequence[str]], Transport], clock: Clock
    ) -> None:
        self._url, self._prefix, self._names = url, prefix, names_in(url)
        self._secrets, self._connect, self._clock = secrets, connect, clock
        self._made: dict[tuple[NodeSecret, ...], Transport] = {}
        self._lock = threading.Lock()
        self._in_use: tuple[list[int | None], tuple[NodeSecret, ...]] | None = None
        """Secrets before the current ones that the node took, and when the current ones were read that it refused."""
        self._denied_at: int | None = None

    def __repr__(self) -> str:
        return "SecretNode(...)"

    def call(self, method: str, params: Any = ()) -> Any:
        """As `JsonRpc.call`. Raises Withheld, too."""
        return self._ask(lambda transport: transport.call(method, params))

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        """As `JsonRpc.batch`. Raises Withheld, too."""
        return self._ask(lambda transport: transport.batch(requests))

    def rows(self, method: str, params: Sequence[Any], thin: Thin, under: str | None = None) -> Any:
        """As `JsonRpc.rows`. Raises Withheld, too."""
        return self._ask(lambda transport: rows_of(transport, method, params, thin, under))

    def _ask(self, use: Callable[[Transport], T]) -> T:
        first = self._first()
        try:
            return use(self._over(first))
        except Denied:
            # Nothing was done: a request whose credentials are refused can be sent again, a payment, too.
            if self._just_denied():
                raise
            for other in self._others(first):
                try:
                    answer = use(self._over(other))
                except (Denied, Withheld):
                    continue
                self._keep_to(other)
                return answer
            self._denied_at = self._clock.now_ms()
            raise

    def _first(self) -> tuple[NodeSecret, ...]:
        """The current secrets, or those before while the current ones are those that the node refused."""
        self._check()
        current = tuple(self._secrets.current(name) for name in self._names)
        in_use = self._in_use  # another thread may take it away
        if in_use is not None and in_use[0] == self._read_at():
            return in_use[1]
        return current

    def _check(self) -> None:
        for name in self._names:
            if name_problem(name, self._prefix) is not None:
                raise Withheld("the node's URL refers to a secret of something else")

    def _others(self, refused: tuple[NodeSecret, ...]) -> Iterator[tuple[NodeSecret, ...]]:
        """What else the node may take: the secrets as they are now, then those before."""
        current = tuple(self._secrets.renewed(name) for name in self._names)
        if current != refused:
            yield current
        before = tuple(self._secrets.previous(name) or now for name, now in zip(self._names, current, strict=True))
        if before not in (refused, current):
            yield before

    def _keep_to(self, taken: tuple[NodeSecret, ...]) -> None:
        """Begin with these, until the current ones are read again."""
        current = tuple(self._secrets.current(name) for name in self._names)
        self._in_use = None if taken == current else (self._read_at(), taken)
        self._denied_at = None

    def _read_at(self) -> list[int | None]:
        return [self._secrets.read_at(name) for name in self._names]

    def _just_denied(self) -> bool:
        return self._denied_at is not None and 0 <= self._clock.now_ms() - self._denied_at < AGAIN_MS

    def _over(self, secrets: tuple[NodeSecret, ...]) -> Transport:
        """The transport with these secrets. Raises Withheld where one must not be sent to the URL's origin."""
        with self._lock:
            if secrets not in self._made:
                try:
                    url = filled(self._url, dict(zip(self._names, secrets, strict=True)))
                except ValueError as error:
                    raise Withheld(str(error)) from None
                while len(self._made) >= _KEPT_TRANSPORTS:
                    del self._made[next(iter(self._made))]
                self._made[secrets] = self._connect(url, hidden_parts(secrets))
            return self._made[secrets]
