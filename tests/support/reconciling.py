"""The simulated chain compared with the ledger."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.reconciliation import SECOND_LOOK_MS, Comparison, ComparisonReport
from chalicelib.usecases.reconciliation.run import ReconciliationRun
from chalicelib.wiring import services
from tests.support.shop import Shop

THIEF = "0x52908400098527886e0f7030069857d2e4169ee7"
USDT = 10**6


def run_of(shop: Shop) -> ReconciliationRun:
    return services().reconciliation_run(shop.realm_network())


def second_look(shop: Shop) -> None:
    """Time passes, and a block comes: what differed is looked at again."""
    shop.wait(SECOND_LOOK_MS // 1000)
    shop.mine(1)
    shop.turn()


def compared(shop: Shop) -> ComparisonReport:
    """One whole run, ordered."""
    services().reconciliations.order("test", None)
    found = run_through(shop)
    shop.wait(1)
    return found


def run_through(shop: Shop) -> ComparisonReport:
    """The run that is due now, up to its end."""
    run = run_of(shop)
    assert run.begin()
    for _ in range(90):
        step = run.step()
        if step == "idle":
            break
        if step == "waits":
            second_look(shop)
    found = services().store.get(ComparisonReport, network=shop.realm_network().id)
    assert found is not None and step == "idle"
    return found


def sums(report: ComparisonReport, coin: str) -> Any:
    (found,) = (each for each in report.sums if each.asset.endswith(f":{coin}"))
    return found


def suspected(shop: Shop) -> list[Any]:
    """What one look at everything finds, by itself."""
    run, state = run_of(shop), Comparison(shop.realm_network().id, "rec_x", 0, 0, phase="walk")
    while state.phase == "walk":
        state = run._walked(state)
    return [(s.address, s.asset, s.difference) for s in state.suspects]
