"""Parts of no capability: the health of the store, and the kill switch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.base.health import StoreHealth
    from chalicelib.usecases.base.kill_switch import Switches
    from chalicelib.wiring.parts import Parts


class BaseWiring:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @cached_property
    def health(self) -> StoreHealth:
        from chalicelib.store.probe import QUICK, TABLES, DynamoProbe
        from chalicelib.usecases.base.health import StoreHealth

        client = self._parts.quick_client("dynamodb", QUICK)
        return StoreHealth(DynamoProbe(client, [self._parts.settings.table(name) for name in TABLES]))

    @cached_property
    def switches(self) -> Switches:
        from chalicelib.usecases.base.kill_switch import Switches

        return Switches(self._parts.store, self._parts.realm_clock)
