"""A merchant on a litecoin in memory whose withdrawals are bundled, and cuts at the store's commits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Wallet, Watched
from chalicelib.domain.ids import network_id
from chalicelib.domain.reconciliation import Seen
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.encoding import base58check
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.retries import Each, Failures
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from chalicelib.workers import poll
from chalicelib.workers.deadlines import Deadline
from tests.support.cuts import Died
from tests.support.fake_coins import FakeCoins
from tests.support.stack import Stack

NETWORK = network_id("live", "litecoin")
HANDLERS = ("poll_litecoin", "relay", "payout", "housekeeping")
ROUNDS = 3
"""Of a drain: a poll finds what is new, the payouts answer it, and one to spare. It would never settle: what the poll asks a node
over the network fails in each round, and all thirty went by."""
CONFIRMATIONS = 6
REORG = 64
COIN = 10**8
OUT = (
    "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9",
    "LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1",
    base58check.encode(bytes([0x32]) + bytes(range(20))),
)


class Shop:
    """A merchant with 30 LTC on a network whose hot wallet has three coins."""

    def __init__(self, stack: Stack, chain: FakeCoins) -> None:
        self.stack, self.chain = stack, chain
        self.key = stack.keys["client_live"]
        self.minutes = 0

    def fund(self) -> None:
        made = self.post("/v1/invoices", currency="ltc", amount="30", network="litecoin")
        self.chain.pay(made["address"], 30 * COIN)
        for units in (10 * COIN, 5 * COIN, 2 * COIN):
            self.chain.pay(self.hot, units)
        self.confirm()

    @property
    def hot(self) -> str:
        wallet = services().store.get(Wallet, network=NETWORK, role="hot")
        assert wallet is not None
        return wallet.address

    def post(self, path: str, **body: Any) -> Any:
        answer = self.stack.call("POST", path, self.key, json=body)
        assert answer.status == 201, answer.body
        return answer.json

    def withdraw(self, amount: str, to: int = 0, run: bool = False) -> str:
        made = self.post("/v1/withdraws", network="litecoin", coin="ltc", address=OUT[to], amount=amount)
        if run:
            self.run()
        return str(made["id"])

    def run(self) -> None:
        """A poll, and everybody who waits is paid: what clocks and queues do, of this network alone."""
        network = services().catalogue("live").networks["litecoin"]
        with in_realm("live"):
            try:
                polled = poll.Poll(network)
                with Each("a poll") as each:
                    for part in (polled.credit, polled.follow):
                        each.take("", partial(part, Deadline.after(600)))
            except Failures as failures:
                if failures.split(Unavailable)[1] is not None:
                    raise
            for withdrawal in sorted(services().store.every(Withdrawal), key=lambda w: w.id):
                with contextlib.suppress(Unavailable):
                    services().payouts.pay(withdrawal.tenant, withdrawal.id)

    def later(self, minutes: int = 1) -> None:
        self.minutes += minutes
        services().clock.shift_ms = self.minutes * 60_000

    def drain(self) -> None:
        """The same through the schedules and the queues themselves, a minute later."""
        self.later()
        self.stack.drain(only=HANDLERS, failures="count", hurry=True, rounds=ROUNDS)

    def reborn(self) -> None:
        wiring.forget()
        services().clock.shift_ms = self.minutes * 60_000

    def confirm(self, blocks: int = CONFIRMATIONS) -> None:
        self.chain.mine(blocks)
        self.run()

    def status(self, withdrawal: str) -> str:
        answer = self.stack.call("GET", f"/v1/withdrawals/{withdrawal}", self.key)
        return str(answer.json["data"]["status"])

    def available(self) -> str:
        for entry in self.stack.call("GET", "/v1/balances", self.key).json["data"]:
            if (entry["network"], entry["coin"]) == ("litecoin", "ltc"):
                return str(entry["available"])
        return "0"

    def bundles(self) -> list[Bundle]:
        return sorted(services().store.every(Bundle), key=lambda bundle: bundle.id)

    def held(self) -> HeldCoins:
        found = services().store.get(HeldCoins, network=NETWORK, wallet=self.hot)
        assert found is not None
        return found

    def paid(self, to: int = 0) -> int:
        return self.chain.balance_of(OUT[to])

    def whole(self) -> None:
        assert audit(services().store) == []

    def suspected(self) -> list[Any]:
        """What one look at every place finds that the chain has otherwise than the ledger."""
        run = services().reconciliation_run(services().catalogue("live").networks["litecoin"])
        watched = [each for each in services().store.every(Watched) if each.realm == "live" and "litecoin" in each.networks]
        looks = run._looks.look(run._walk.places(watched))
        return [seen for seen in looks if not isinstance(seen, Seen) or seen.difference]


class Cut:
    """Does something at commit number `at`, in place of it or after it, once."""

    def __init__(self, at: int, what: Callable[[], None], after: bool = False) -> None:
        self.at, self.what, self.after = at, what, after
        self.count, self.fired = 0, False

    def commit(self, store: DynamoStore, changes: Any) -> None:
        self.count += 1
        mine = self.count == self.at and not self.fired
        if mine and not self.after:
            self.fired = True
            self.what()
        _COMMIT(store, changes)
        if mine and self.after:
            self.fired = True
            self.what()


_COMMIT = DynamoStore.commit


def die() -> None:
    raise Died("at a commit")


def hang() -> None:
    raise Unavailable("no answer, and it was committed")


def cut(
    shop: Shop, at: int, what: Callable[[], None], act: Callable[[Shop], Any], after: bool = False, stolen: bool = False
) -> bool:
    """Whether `act` had that many commits. What it leaves has to be whole. `stolen`: the chain has less of one place."""
    with pytest.MonkeyPatch.context() as patch:
        made = Cut(at, what, after)

        def commit(store: DynamoStore, changes: Any) -> None:
            made.commit(store, changes)

        patch.setattr(DynamoStore, "commit", commit)
        with contextlib.suppress(Died, Unavailable):
            act(shop)
    shop.reborn()
    shop.whole()
    with contextlib.suppress(Unavailable):  # a reorganisation that is not followed yet
        assert len(shop.suspected()) == stolen
    return made.fired
