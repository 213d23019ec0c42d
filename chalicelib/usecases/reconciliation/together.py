"""Balances of many places in one request, where a node tells them (Tron)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from chalicelib.domain.reconciliation import Place
from chalicelib.usecases.base.side_by_side import answers
from chalicelib.usecases.ports.readers import SolidBalances

MOST, AT_ONCE = 100, 2
"""Places of a request, and such requests at a time."""
APART_S = 0.15
"""What each of them lasts at least: TronGrid suspends a key that asks more than 15 times a second for half a minute. It gives
100,000 requests a day (https://developers.tron.network/reference/rate-limits)."""


class Together:
    def __init__(self, solid: SolidBalances) -> None:
        self._solid = solid
        self._one_by_one: set[str | None] = set()
        """Contracts, None for the native coin, whose balances could not be told so."""

    def told(self, places: Sequence[Place]) -> dict[Place, int]:
        """What nodes tell so of `places`; the others have to be asked for one by one. Raises Unavailable."""
        by_contract: dict[str | None, list[Place]] = defaultdict(list)
        for place in places:
            if not place.staked:
                by_contract[place.contract].append(place)
        parts = [each[at : at + MOST] for each in by_contract.values() for at in range(0, len(each), MOST)]
        found = zip(parts, answers(self._ask, parts, AT_ONCE), strict=True)
        return {place: units for part, told in found if told is not None for place, units in zip(part, told, strict=True)}

    def _ask(self, part: Sequence[Place]) -> list[int] | None:
        contract, began = part[0].contract, time.monotonic()
        if contract in self._one_by_one:
            return None
        told = self._solid.solid_balances([place.address for place in part], contract)
        if told is None:
            self._one_by_one.add(contract)
        time.sleep(max(0.0, began + APART_S - time.monotonic()))
        return told
