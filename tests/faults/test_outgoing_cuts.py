"""One outgoing transaction of each kind on account networks, and a second failure in the retry that follows the first.

Every call on the way of a payout, top-up, sweep, distribution, cold move, drain, filler and stake fails before or after its effect,
or kills the function there, and so does a call of the retry. Whatever was cut: once clocks and queues have run again, ledger and
chain are exactly what they are when nothing fails, so nothing was paid twice and nothing stands still.

With `SWEEP=full` every write is cut in every way, every fourth read (neighbours fail into the same state), and every second write
of the retry after a death at each write, in turns. Without it some kinds are cut twice in a row, once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder, Withdrawal
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import Snapshot
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.outgoing import KINDS, Scene, opened
from tests.support.reconciling import suspected
from tests.support.shop import PAYEE
from tests.support.stack import Stack

pytestmark = pytest.mark.slow

FULL = os.environ.get("SWEEP") == "full"
READS = ("Get", "Query", "BatchGet", "TransactGet")
MINUTES = 5
"""How long a retry may take: less than after which a payment in no block counts as stuck."""

Cut = tuple[int, How, When]


@dataclass
class Runner:
    """Runs what a scene has begun, from the same state again and again, with failures in it."""

    scene: Scene
    cutter: Cutter
    start: Snapshot
    shift: int
    ends_in: int = 0
    """Minutes until it is at its end, where a cut decides how many it takes."""
    missed: int = 0
    """Cuts of a retry that were not met: its calls are not the same ones each time. The run counts all the same."""

    def run(self, *cuts: Cut) -> dict[str, Any]:
        """What is there at the end, after these failures one behind the other; the trace is that of the last of them."""
        shop = self.scene.shop
        shop.stack.restore(self.start)
        services().clock.shift_ms = shift = self.shift
        self.cutter.set(*(cuts[0] if cuts else (0, "error", "before")))
        left = list(cuts[1:])
        for number in range(self.scene.rounds + (MINUTES if cuts else 0)):
            retrying = number >= self.scene.rounds
            shift += 60_000 * retrying
            services().clock.shift_ms = shift
            if self.cutter.fired and left:
                self.cutter.set(*left.pop(0))
            if retrying and self.cutter.fired and not left and not self._open():
                break
            self._turn(("housekeeping",) if retrying else (), shift)
            shop.mine()
        met = self.cutter.fired == (self.cutter.at > 0)
        assert met or (len(cuts) > 1 and not left), "the call never came"
        self.missed += not met
        self.cutter.armed = False
        shop.turn(failures="count")
        for _ in range(self.ends_in):
            shift += 60_000
            services().clock.shift_ms = shift
            shop.mine()
            shop.turn("housekeeping", failures="count")
        return self._facts()

    def _turn(self, more: tuple[str, ...], shift: int) -> None:
        try:
            with self.cutter.arm():
                self.scene.shop.turn(*more, failures="count")
        except Died:
            wiring.forget()
            services().clock.shift_ms = shift

    def _facts(self) -> dict[str, Any]:
        """Everything that must not depend on what failed: money by chain and ledger, how each order ended, and how many nonces it
        took."""
        store, shop = services().store, self.scene.shop
        network = shop.realm_network().id
        assert audit(store) == []
        assert suspected(shop) == []
        # Which of several hot wallets pays may depend on what failed: they count together.
        slots = [wallet.address.lower() for wallet in hot_wallets(store, network)]
        several = len(slots) > 1
        coins = ("trx",) if shop.network == "tron" else ("eth", "usdt")
        orders = list(store.every(PaymentOrder))
        counters = [c for c in store.every(NonceCounter) if c.network == network]
        payee = {} if shop.network == "tron" else {f"payee {coin}": shop.paid(PAYEE, coin) for coin in coins}
        return payee | {
            "ledger": sorted(self._together(slots if several else [], network)),
            "withdrawals": sorted((w.amount, w.status) for w in store.every(Withdrawal)),
            # Which of two payments is first may depend on what failed, and each has a nonce of its own all the same.
            "orders": sorted((o.amount, o.state, len(o.earlier)) for o in orders),
            "used": len({(o.wallet, o.nonce) for o in orders}) if several else sorted(o.nonce for o in orders),
            "moves": sorted((m.kind, m.asset, m.amount, m.state, m.fee, len(m.earlier)) for m in store.every(Move)),
            "stakes": sorted((s.amount, s.status, s.round) for s in store.every(Stake)),
            "nonces": sum(c.next for c in counters) if several else sorted((c.wallet, c.next) for c in counters),
            "work": self._open(),
        }

    def _together(self, slots: list[str], network: str) -> list[tuple[str, str, int]]:
        """What the ledger has at each address; at `slots` under one name."""
        found: Counter[tuple[str, str]] = Counter()
        for balance in services().store.every(WalletBalance):
            if balance.network == network:
                found["hot" if balance.address in slots else balance.address, balance.asset] += balance.units
        return [(address, asset, units) for (address, asset), units in found.items() if units]

    def _open(self) -> list[str]:
        """What is open beside what only time ends."""
        return sorted({w.kind for w in services().store.every_work()} - {"expiry", "moved", "settled", "staked"})


def begun(base: Scene, start: Snapshot, kind: str, cutter: Cutter) -> Runner:
    """One of the kinds, as far as it waits for clocks and queues."""
    base.shop.stack.restore(start)
    scene = base.begun(kind)
    return Runner(scene, cutter, scene.shop.stack.snapshot(), services().clock.shift_ms)


def writes(trace: list[str]) -> list[int]:
    return [number for number, name in enumerate(trace, 1) if not name.startswith(READS)]


def cuts_of(runner: Runner, undone: list[str]) -> list[tuple[Cut, ...]]:
    """What fails, one after the other. Of reads an error before the answer says all; a function that dies before a call dies with
    what the write before it left."""
    mine = writes(undone)
    if not FULL:
        signed = undone.index("Sign") + 2 if "Sign" in undone else mine[len(mine) // 2]
        return [((signed, "death", "after"), (2, "death", "after"))]
    reads = [at for at in range(1, len(undone) + 1) if at not in mine][::4]
    single: list[tuple[Cut, ...]] = [((at, "error", "before"),) for at in sorted([*mine, *reads])]
    single += [((at, how, when),) for how, when in WAYS if (how, when) != ("error", "before") for at in mine]
    double: list[tuple[Cut, ...]] = []
    for at in mine:
        first: Cut = (at, "death", "after")
        runner.run(first, (0, "error", "before"))
        double += [(first, (again, "death", "after")) for again in writes(runner.cutter.trace)[at % 2 :: 2]]
    return single + double


SAMPLE = ("slot_payout", "sweep", "stake")


@pytest.mark.parametrize("kinds", [(kind,) for kind in KINDS] if FULL else [SAMPLE], ids="-".join)
def test_any_call_may_fail_and_so_may_one_of_the_retry(
    kinds: tuple[str, ...], stack: Stack, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    cutter, points = Cutter(), 0
    install(cutter, monkeypatch)
    base = opened(stack)
    start = stack.snapshot()
    for kind in kinds:
        runner = begun(base, start, kind, cutter)
        runner.ends_in = 10 if kind == "filler" else 0  # the payment whose nonce it takes is lost when blocks prove it
        undisturbed = runner.run()
        ended = {state for _, _, _, state, _, _ in undisturbed["moves"]} | {status for _, status, _ in undisturbed["stakes"]}
        assert ended <= {"settled", "confirmed"} and undisturbed["work"] == (["givenup"] if kind == "filler" else []), kind
        for cuts in cuts_of(runner, list(cutter.trace)):
            try:
                assert runner.run(*cuts) == undisturbed
            except AssertionError as error:
                raise AssertionError(f"{kind}: cut {cuts}: {error}") from error
            points += len(cuts)
        assert 20 * runner.missed <= points, f"{kind}: {runner.missed} cuts of {points} were not met"
        points -= runner.missed
    record_property("cut_points", points)
