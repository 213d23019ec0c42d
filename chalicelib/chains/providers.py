"""Several nodes of one network behind the interface of one: their health, failover, and the cool-down after a failure.

What is kept about a node is kept in this process only: a fresh function starts without prejudice. A node that failed is not asked
again before its cool-down is over, unless no other answers: so one that hangs costs one timeout, and then nothing for a while.
A batch is answered by one node. URLs are never named, since they may hold a provider's secret: nodes are numbered as configured.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from chalicelib.chains.answers import Garbled
from chalicelib.chains.rows import Thin
from chalicelib.chains.rpc import Request, RpcError, TooMuch, Transport, rows_of
from chalicelib.domain.scanning.node_reports import Asked
from chalicelib.usecases.base.side_by_side import answers
from chalicelib.usecases.ports.failures import Unanswered, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

COOL_DOWN = 15.0
"""Seconds that a node is left alone after its first failure. Each further one doubles them."""
COOL_DOWN_OF_WAITING = 8.0
"""The same as a multiple of the time that the failure took: a node that hangs is dearer than one that refuses."""
MOST_COOL_DOWN = 600.0

_MOST_WORDS = 100
_BROADCASTS = frozenset({"eth_sendRawTransaction", "sendrawtransaction", "wallet/broadcasttransaction", "wallet/broadcasthex"})
_METHOD_NOT_FOUND = -32601
_NOT_HERE = re.compile(
    r"(header|block|transaction|state|trie node|resource|method)[^.]{0,40} not (found|available|supported|exist)|missing trie node"
    r"|unknown block|unfinalized|pruned|archive|(loading|verifying) (block|wallet)|warming up|initial block download|still syncing"
    r"|does not exist/is not available|not whitelisted|unsupported method",
    re.IGNORECASE,
)
"""What a node says when it has not got something that another may have. The words differ, and no code is common to them."""


class Health:
    """A node's health. `latency` in seconds, smoothed; `tip` is the height of its last answer.

    `name` tells the node apart from others in what is stored, and holds no secret. `silent`: it gave no answer of any kind when it
    was last asked; `answered` and `ignored` say whether it did, or did not, since `taken` was called last. `has_vote`: False where
    it has not answered for so long that nothing waits for its word, which it gets back with its first answer.
    """

    def __init__(self, number: int, clock: Callable[[], float] = time.monotonic, name: str | None = None) -> None:
        self.number = number
        self.name = name or str(number)
        self.silent = self.answered = self.ignored = False
        self.has_vote = True
        self.failures = 0
        self.latency = 0.0
        self.tip: int | None = None
        self._clock = clock
        self._rests_until = 0.0
        self._failed_at = -math.inf
        self._times = self._failed = 0
        self._seconds = 0.0
        self._trouble: str | None = None
        self._counting = threading.Lock()

    def exchanged(self, seconds: float, trouble: str | None = None) -> None:
        """Count a request for the next report: how long it took, and how it failed, if it did."""
        with self._counting:
            self._times += 1
            self._seconds += seconds
            if trouble is not None:
                self._failed += 1
                self._trouble = trouble

    def asked(self) -> Asked:
        """What the node was asked since this was last called."""
        with self._counting:
            asked = Asked(self._times, self._failed, self._seconds, self._trouble)
            self._times, self._failed, self._seconds, self._trouble = 0, 0, 0.0, None
        return asked

    def now(self) -> float:
        """Seconds on this node's clock."""
        return self._clock()

    @property
    def rests_for(self) -> float:
        """Seconds left of its cool-down; 0 when it may be asked."""
        return max(0.0, self._rests_until - self._clock())

    @property
    def voteless(self) -> bool:
        return self.silent and not self.has_vote

    def taken(self) -> bool | None:
        """Whether it has answered anything since the last call of this method; None where it was not asked."""
        answered = True if self.answered else False if self.ignored else None
        self.answered = self.ignored = False
        return answered

    def heard(self) -> None:
        """Record an answer of any kind: an error, or nonsense, too."""
        self.silent, self.answered, self.has_vote = False, True, True

    def unheard(self) -> None:
        """Record that it did not answer."""
        self.silent = self.ignored = True

    def watched(self, ask: Callable[[], T]) -> T:
        """Run `ask` and record the result. An error of the node (RpcError, TooMuch) is an answer of a healthy node."""
        start = self._clock()
        try:
            answer = ask()
        except (RpcError, TooMuch):
            self._well(self._clock() - start)
            raise
        except Unavailable as error:
            self.failed(str(error), self._clock() - start)
            raise
        self._well(self._clock() - start)
        return answer

    def failed(self, why: str, took: float = 0.0) -> None:
        """Start its cool-down. Of requests that were under way together the first failure counts: the node failed once. The longest
        that one of them took counts as well: it may hang."""
        with self._counting:
            now, before = self._clock(), self._rests_until
            if now - took >= self._failed_at:
                self.failures += 1
                self._failed_at, before = now, 0.0
            cool_down = max(COOL_DOWN, took * COOL_DOWN_OF_WAITING) * 2 ** min(max(self.failures, 1) - 1, 10)
            self._rests_until = max(before, now + min(MOST_COOL_DOWN, cool_down))
        log.warning("node %d is left alone for %d s (failure %d): %s", self.number, self.rests_for, self.failures, why)

    def _well(self, took: float) -> None:
        # Not `heard`: a reader may have an answer without asking the node.
        self.failures = 0
        self._rests_until = 0.0
        self.latency = took if self.latency == 0.0 else 0.8 * self.latency + 0.2 * took


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node's transport, and its health."""

    transport: Transport
    health: Health


class Heard:
    """A node's transport that records in its `Health` whether the node answers, for every caller and every use of the answer. A
    node that answers nonsense, or lags, answers."""

    def __init__(self, transport: Transport, health: Health) -> None:
        self._transport, self._health = transport, health

    def __repr__(self) -> str:
        return f"Heard({self._transport!r})"

    def call(self, method: str, params: Any = ()) -> Any:
        return self._noted(lambda: self._transport.call(method, params))

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        return self._noted(lambda: self._transport.batch(requests))

    def rows(self, method: str, params: Sequence[Any], thin: Thin, under: str | None = None) -> Any:
        """As `JsonRpc.rows`."""
        return self._noted(lambda: rows_of(self._transport, method, params, thin, under))

    def _noted(self, ask: Callable[[], T]) -> T:
        health, start = self._health, self._health.now()
        try:
            answer = ask()
        except Unanswered as error:
            health.unheard()
            health.exchanged(health.now() - start, own_words(error))
            raise
        except (RpcError, TooMuch):
            # Which methods it has, and how much it tells at once, is a healthy node's to say.
            health.heard()
            health.exchanged(health.now() - start)
            raise
        except (Unavailable, Garbled) as error:
            health.heard()
            health.exchanged(health.now() - start, own_words(error))
            raise
        health.heard()
        health.exchanged(health.now() - start)
        return answer

    @property
    def voteless(self) -> bool:
        return self._health.voteless


def own_words(error: Exception) -> str:
    """What a failure says before it quotes the node: a provider writes anything behind that."""
    return str(error).partition(":")[0][:_MOST_WORDS]


def has_no_vote(node: object) -> bool:
    """Whether a transport's node has lost its vote by silence, and did not answer when asked last."""
    return isinstance(node, Heard) and node.voteless


def electorate(nodes: Sequence[T]) -> list[T]:
    """The transports whose vote is needed before a transaction is called lost: all but those of nodes without a vote, and all
    where none has one."""
    return [node for node in nodes if not has_no_vote(node)] or list(nodes)


class Providers:
    """A `Transport` over the nodes of one network, in the order of preference. Safe to share between threads."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        if not nodes:
            raise ValueError("a network has one node at least")
        self._nodes = list(nodes)

    def __repr__(self) -> str:
        return f"Providers({len(self._nodes)})"

    def call(self, method: str, params: Any = ()) -> Any:
        """As `JsonRpc.call`, of the first node that answers. A payment is handed to every node that is well: see `_spread`."""
        if method in _BROADCASTS:
            return self._spread(method, params)
        return self._first(lambda transport: transport.call(method, params))

    def batch(self, requests: Sequence[Request]) -> list[Any]:
        """As `JsonRpc.batch`: all of it of one node, so that the answers belong together."""
        return self._first(lambda transport: transport.batch(requests))

    def _first(self, ask: Callable[[Transport], T]) -> T:
        refusal: Exception | None = None
        for node in in_order(self._nodes):
            try:
                return node.health.watched(partial(ask, node.transport))
            except RpcError as error:
                if not another_may_know(error):
                    raise
                refusal = error
            except TooMuch as error:
                refusal = error
            except Unavailable as error:
                refusal = refusal or error
        raise refusal or Unavailable("no node answers")

    def _spread(self, method: str, params: Any) -> Any:
        """Hand a payment to every node that is well, at the same time, and answer with the first in their order that took it.

        One is enough for the payment; the others make it spread where the first is cut off or withholds it. That another one knows
        it already, or does not answer, is no error. Those that rest are asked where none of the others answers. Where none takes
        it, what the first one said that did answer is raised.
        """

        def hand(node: Node) -> Any:
            try:
                return node.health.watched(partial(node.transport.call, method, params))
            except (RpcError, Unavailable) as error:
                return error

        order = in_order(self._nodes)
        well = [node for node in order if not node.health.rests_for]
        told = answers(hand, well)
        for node in [node for node in order if node not in well]:
            if any(map(_taken, told)):
                break
            told.append(hand(node))
        taken = list(filter(_taken, told))
        if taken:
            return next((answer for answer in taken if not _refused(answer)), taken[0])
        errors = [answer for answer in told if isinstance(answer, Exception)]
        raise next(
            (error for error in errors if isinstance(error, RpcError)), errors[0] if errors else Unavailable("no node answers")
        )


class Watched(Protocol):
    """A client of one node."""

    @property
    def health(self) -> Health: ...


N = TypeVar("N", bound=Watched)


def in_order(nodes: Sequence[N], preferred: N | None = None) -> list[N]:
    """The nodes that may be asked, the best first: the healthy ones in their order (`preferred` before all), then the others,
    since a node in its cool-down is better than none."""
    well = [node for node in nodes if not node.health.rests_for]
    if preferred is not None and preferred in well:
        well.remove(preferred)
        well.insert(0, preferred)
    return well + sorted((node for node in nodes if node not in well), key=lambda node: node.health.rests_for)


def another_may_know(error: RpcError) -> bool:
    """Whether a node's error speaks of that node (it lacks the method, the block, the old state) and not of the request."""
    return error.code == _METHOD_NOT_FOUND or _NOT_HERE.search(error.message) is not None


def _taken(answer: Any) -> bool:
    """Whether a node says anything but a failure. Null is what none says that took a payment."""
    return answer is not None and not isinstance(answer, Exception)


def _refused(answer: Any) -> bool:
    """Tron's node answers a refusal as a result."""
    return isinstance(answer, dict) and answer.get("result") is not True and "code" in answer
