"""The sandbox's actions, and the resets of the demo."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.sandbox.demo import DemoResets
    from chalicelib.usecases.sandbox.rates import RateSetter
    from chalicelib.usecases.sandbox.sandbox import Sandbox
    from chalicelib.wiring.parts import Parts
    from chalicelib.wiring.simulated import SimulatedWiring


class SandboxWiring:
    def __init__(self, parts: Parts, simulated: SimulatedWiring) -> None:
        self._parts, self._simulated = parts, simulated

    @cached_property
    def sandbox(self) -> Sandbox:
        from chalicelib.usecases.sandbox.mining_budget import MiningBudget
        from chalicelib.usecases.sandbox.sandbox import Sandbox

        store, chains = self._parts.store, self._simulated
        mined = MiningBudget(store, self._parts.clock)
        return Sandbox(store, chains.simulated, self._parts.rules, chains.simulated_tokens, mined)

    @cached_property
    def demo_resets(self) -> DemoResets:
        from chalicelib.usecases.sandbox.demo import DemoResets

        return DemoResets(self._parts.store, self._parts.clock)

    @cached_property
    def rate_setter(self) -> RateSetter:
        from chalicelib.usecases.sandbox.rates import RateSetter

        return RateSetter(self._parts.store, self._parts.rates("test"))

    def wipe_demo(self) -> int:
        """Remove the demo's data. Raises ValueError on every other stage."""
        from chalicelib.store.wipe import wipe

        return wipe(self._parts.store.models.connection.client, self._parts.settings)
