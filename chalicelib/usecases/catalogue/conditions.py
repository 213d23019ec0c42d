"""How networks are doing, for people who are about to pay: halted or behind, and what a plain payment usually costs.

Kept in this process for half a minute, so that payers who look at their pages every few seconds read none of it from the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Cursor, FeeQuote
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.store import Store

Delay = Literal["halted", "behind"]

FRESH_SECONDS = 30.0
QUOTED_MS = 15 * 60_000
"""A fee that was quoted longer ago is not shown. The poll quotes once a minute."""
LATE_MS = 10 * 60_000
LATE_BLOCKS = 12
"""A network is behind when it has taken in no block for ten minutes and for twelve block times, or is so far from its tip."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`delay`: why payments are seen or credited later than usual, None where they are not. `fees` are what a plain payment of
    each coin, by slug, usually costs, in units of the native coin; none where no fresh quote is stored."""

    delay: Delay | None = None
    fees: Mapping[str, int] = field(default_factory=dict)


class Conditions:
    def __init__(self, store: Store, seconds: Callable[[], float] = time.monotonic) -> None:
        self._store, self._seconds = store, seconds
        self._known: dict[NetworkId, tuple[float, Condition]] = {}

    def of(self, networks: Iterable[Network], now_ms: int) -> dict[NetworkId, Condition]:
        """The conditions of `networks`, at most half a minute old: one read at most. `now_ms` by the clock of their realm.

        Raises Unavailable.
        """
        wanted = {network.id: network for network in networks}
        at = self._seconds()
        old = [found for name, found in wanted.items() if self._is_old(name, at)]
        if old:
            cursors = [(Cursor, {"network": network.id}) for network in old]
            quotes = [(FeeQuote, {"network": network.id}) for network in old]
            read = self._store.get_many([*cursors, *quotes])
            for network, cursor, quote in zip(old, read[: len(old)], read[len(old) :], strict=True):
                self._known[network.id] = (at, Condition(_delay(network, cursor, now_ms), _fees(quote, now_ms)))
        return {name: self._known[name][1] for name in wanted}

    def _is_old(self, name: NetworkId, at: float) -> bool:
        known = self._known.get(name)
        return known is None or at - known[0] > FRESH_SECONDS


def _delay(network: Network, cursor: Cursor | None, now_ms: int) -> Delay | None:
    if network.status != "active" or (cursor is not None and cursor.halted is not None):
        return "halted"
    # A simulated network makes its blocks when it is asked to, and a new one has no cursor before its first poll.
    if cursor is None or network.simulated:
        return None
    patience = max(LATE_MS, LATE_BLOCKS * network.block_time * 1000)
    lag = max(now_ms - cursor.updated_at, (cursor.tip - cursor.number) * network.block_time * 1000)
    return "behind" if lag > patience else None


def _fees(quote: FeeQuote | None, now_ms: int) -> Mapping[str, int]:
    return {} if quote is None or now_ms - quote.at > QUOTED_MS else quote.fees
