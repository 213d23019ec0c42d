"""A bundle, a consolidation and a cold move of UTXOs: every call to AWS, and every broadcast, fails before or after its effect or
kills the function there, and so does a write of the retry. Whatever was cut, ledger and chain are in the end what they are
when nothing fails: each payee is paid once, each UTXO is spent once.

With `SWEEP=full` every write is cut in every way, every fourth read, and every second write of the retry after a death at each
write, in turns. Without it a bundle is cut twice in a row, once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError

from chalicelib.domain.ledger import WalletBalance
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from tests.contract.treasury.coin_treasury import COLD, KINDS, Treasury
from tests.support.bundles import OUT
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.fake_coins import FakeCoins

pytestmark = pytest.mark.slow

FULL = os.environ.get("SWEEP") == "full"
READS = ("Get", "Query", "BatchGet", "TransactGet")
RETRIES = 2

Cut = tuple[int, How, When]


class CoinCutter(Cutter):
    """Leaves out the mempool's reader, whose node is down in all of this."""

    def around(self, name: str, call: Callable[[], Any], error: Exception) -> Any:
        return call() if name.startswith("node get") else super().around(name, call, error)


class Run:
    """One kind from its beginning to its end, with failures in it."""

    def __init__(self, anew: Callable[[], Treasury], kind: str, cutter: Cutter) -> None:
        self._anew, self._kind, self._cutter = anew, kind, cutter
        self.missed = 0
        """Cuts of a retry that were not met: its calls are not the same ones each time. The run counts all the same."""

    def __call__(self, *cuts: Cut) -> dict[str, Any]:
        """What is there at the end."""
        cutter, treasury = self._cutter, self._anew()
        KINDS[self._kind](treasury)
        cutter.set(*(cuts[0] if cuts else (0, "error", "before")))
        left = list(cuts[1:])
        for _ in range(1 + RETRIES):
            with contextlib.suppress(Died, Unavailable, BotoCoreError), cutter.arm():
                self._step(treasury)
            treasury.later()
            treasury.reborn()
            if cutter.fired and left:
                cutter.set(*left.pop(0))
        met = cutter.fired == (cutter.at > 0)
        assert met or (len(cuts) > 1 and not left), "the call never came"
        self.missed += not met
        cutter.armed = False
        treasury.chain.mine(6)
        for _ in range(2):
            self._step(treasury)
        return self._facts(treasury)

    def _step(self, treasury: Treasury) -> None:
        treasury.run()
        if self._kind != "bundled":
            treasury.step()
        if self._kind == "cooled":
            treasury.look_cold()
            treasury.sign()

    def _facts(self, treasury: Treasury) -> dict[str, Any]:
        store = services().store
        treasury.whole()
        assert treasury.suspected() == []
        bundles, moves = treasury.bundles(), treasury.moves()
        assert set(treasury.chain.sent) == {each.mined for each in (*bundles, *moves)}
        if self._kind == "bundled":
            # Which payments one bundle has, and so what they cost together, is decided by what a cut left to be gathered.
            paid = [treasury.chain.balance_of(address) for address in OUT]
            return {"paid": paid, "payments": sum(len(b.payouts) for b in bundles), "bundles": sorted({b.state for b in bundles})}
        return {
            "paid": [treasury.chain.balance_of(address) for address in (*OUT, treasury.hot, COLD)],
            "ledger": sorted((b.address, b.units) for b in store.every(WalletBalance) if b.units and "litecoin" in b.network),
            "bundles": [(b.state, len(b.payouts), len(b.earlier)) for b in bundles],
            "moves": [(m.kind, m.state, len(m.inputs), len(m.earlier)) for m in moves],
        }


def writes(trace: list[str]) -> list[int]:
    return [number for number, name in enumerate(trace, 1) if not name.startswith(READS)]


def cuts_of(run: Run, cutter: Cutter) -> list[tuple[Cut, ...]]:
    """What fails, one after the other, by the calls of a run in which nothing did."""
    trace, mine = list(cutter.trace), writes(cutter.trace)
    if not FULL:
        return [((trace.index("node broadcast"), "death", "after"), (2, "death", "after"))]
    reads = [at for at in range(1, len(trace) + 1) if at not in mine][::4]
    single: list[tuple[Cut, ...]] = [((at, "error", "before"),) for at in sorted([*mine, *reads])]
    single += [((at, how, when),) for how, when in WAYS if (how, when) != ("error", "before") for at in mine]
    double: list[tuple[Cut, ...]] = []
    for at in mine:
        first: Cut = (at, "death", "after")
        run(first, (0, "error", "before"))
        double += [(first, (again, "death", "after")) for again in writes(cutter.trace)[at % 2 :: 2]]
    return single + double


@pytest.mark.parametrize("kind", sorted(KINDS) if FULL else ["bundled"])
def test_any_call_may_fail_and_so_may_one_of_the_retry(
    kind: str, anew: Callable[[], Treasury], monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    cutter, points = CoinCutter(), 0
    install(cutter, monkeypatch)
    broadcast = FakeCoins.broadcast

    def around(chain: FakeCoins, raw: str) -> None:
        cutter.around("node broadcast", lambda: broadcast(chain, raw), Unavailable("the node hung up"))

    monkeypatch.setattr(FakeCoins, "broadcast", around)
    run = Run(anew, kind, cutter)
    undisturbed = run()
    if kind == "bundled":
        assert undisturbed["bundles"] == ["settled"]
    else:
        assert {state for state, *_ in undisturbed["bundles"]} | {state for _, state, *_ in undisturbed["moves"]} == {"settled"}
    for cuts in cuts_of(run, cutter):
        try:
            assert run(*cuts) == undisturbed
        except AssertionError as error:
            raise AssertionError(f"{kind}: cut {cuts}: {error}") from error
        points += len(cuts)
    assert 20 * run.missed <= points, f"{run.missed} cuts of {points} were not met"
    record_property("cut_points", points - run.missed)
