"""A merchant's budget of mined blocks on the simulated networks. All merchants of a deployment share them, and every poll has to
read every block. The hour is the machine's: moving the sandbox's clock gives nobody more."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.chain import MinedBlocks
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.activity import aside
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store

BLOCKS_A_CALL = 1_000
BLOCKS_AN_HOUR = 10_000
_HOUR_MS = 3_600_000


class MiningBudget:
    """`clock` is the machine's."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def spend(self, tenant: TenantId, field: str, blocks: int) -> None:
        """Count `blocks` of the hour before they are mined: a block that is not mined after all is spent all the same. `field`
        is named in the error. Raises BusinessRule where fewer are left, Unavailable."""

        def decide() -> None:
            hour = self._clock.now_ms() // _HOUR_MS
            before = self._store.get(MinedBlocks, tenant=tenant) or MinedBlocks(tenant, hour, 0, version=0)
            spent = before.blocks if before.hour == hour else 0
            if spent + blocks > BLOCKS_AN_HOUR:
                words = f"a merchant can have {BLOCKS_AN_HOUR} blocks an hour on the simulated networks"
                raise BusinessRule(field, f"{words}; {BLOCKS_AN_HOUR - spent} are left of this one")
            self._store.commit([Save(replace(next_version(before), hour=hour, blocks=spent + blocks))])

        with aside():  # the blocks are the change, and the chain may refuse them
            until_settled(decide)
