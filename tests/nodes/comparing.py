"""The chain compared with the ledger on a real node."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.reconciliation import SECOND_LOOK_MS, ComparisonReport
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.nodes import deploy_token
from tests.nodes.grounds import EvmGround
from tests.nodes.merchants import Merchant


class TokenGround(EvmGround):
    """With a token that returns nothing, as the best known one."""

    def __init__(self, slug: str) -> None:
        super().__init__(slug)
        self.usdt = deploy_token(self.node.rpc, "USDT", "Tether USD", 6, returns_nothing=True)

    @property
    def info(self) -> NodeInfo:
        return NodeInfo(self.node.url, {"usdt": self.usdt})


def begun(merchant: Merchant) -> Any:
    services().clock.shift_ms += 1000
    services().reconciliations.order("live", None)
    run = services().reconciliation_run(services().catalogue("live").networks[merchant.slug])
    assert run.begin()
    return run


def compared(merchant: Merchant) -> ComparisonReport:
    run = begun(merchant)
    for _ in range(40):
        step = run.step()
        if step == "idle":
            break
        if step == "waits":
            services().clock.shift_ms += SECOND_LOOK_MS
            merchant.ground.mine()
            merchant.run()
    found = services().store.get(ComparisonReport, network=merchant.network.id)
    assert found is not None and step == "idle"
    return found
