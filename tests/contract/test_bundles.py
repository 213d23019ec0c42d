"""Withdrawals from coins: several in one transaction, through whatever happens. The chain is `tests.support.fake_coins`; store,
queues, schedules and HTTP are the real ones.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses import Wallet
from chalicelib.domain.bundles import Bundle
from chalicelib.domain.coins_held import HeldCoins
from chalicelib.domain.ids import network_id
from chalicelib.domain.withdrawals import Withdrawal
from chalicelib.encoding import base58check
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.audit import audit
from chalicelib.wiring import Services, services
from chalicelib.wiring.chains import ChainServices
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from tests.support.cuts import Died
from tests.support.fake_coins import DigestSigner, FakeCoins, Reader
from tests.support.stack import Stack, first_stack

NETWORK = network_id("live", "litecoin")
HANDLERS = ("poll_litecoin", "relay", "payout")
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
        self.stack.drain(only=HANDLERS, failures="count", hurry=True)

    def later(self, minutes: int = 1) -> None:
        self.minutes += minutes
        services().clock.shift_ms = self.minutes * 60_000

    def sweep(self) -> None:
        self.later()
        self.stack.drain(only=(*HANDLERS, "housekeeping"), failures="count", hurry=True)

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


@pytest.fixture(scope="module")
def live(running_aws: LocalAws) -> Iterator[tuple[Stack, Any, FakeCoins]]:
    """The service with litecoin live, a funded merchant and a funded hot wallet, to go back to."""
    at_work: dict[str, FakeCoins] = {"chain": FakeCoins()}

    class Now:
        """Whichever chain is at work."""

        def __getattr__(self, name: str) -> Any:
            return getattr(at_work["chain"], name)

    with pytest.MonkeyPatch.context() as patch, running_aws.active():
        patch.setattr(ChainServices, "_live_reader", lambda self, network: Reader(Now()))  # type: ignore[arg-type]
        patch.setattr(ChainServices, "_live_coin_payer", lambda self, network: Now())
        patch.setattr(Services, "signer", DigestSigner())
        at_work["chain"].mine(70)
        stack = first_stack(running_aws, {"litecoin": NodeInfo("http://127.0.0.1:9")})
        shop = Shop(stack, at_work["chain"])
        shop.fund()
        shop.whole()
        assert [coin.amount for coin in shop.held().free] == [10 * COIN, 5 * COIN, 2 * COIN]
        snapshot = stack.snapshot()
        yield stack, (snapshot, at_work), copy.deepcopy(at_work["chain"])


@pytest.fixture
def begin(live: tuple[Stack, Any, FakeCoins]) -> Iterator[Callable[[], Shop]]:
    """A shop as it was when it was funded, as often as it is asked for."""
    stack, (snapshot, at_work), chain = live

    def anew() -> Shop:
        at_work["chain"] = copy.deepcopy(chain)
        stack.restore(snapshot)
        return Shop(stack, at_work["chain"])

    yield anew


@pytest.fixture
def shop(begin: Callable[[], Shop]) -> Shop:
    return begin()


def test_several_withdrawals_are_one_transaction(shop: Shop) -> None:
    ids = [shop.withdraw("1", 0), shop.withdraw("2.5", 1), shop.withdraw("0.25", 2)]
    shop.run()
    (bundle,) = shop.bundles()
    assert bundle.state == "signed" and len(bundle.payouts) == 3 and len(shop.chain.pool) == 1
    assert {shop.status(i) for i in ids} == {"confirming"}
    shop.whole()
    shop.confirm()
    assert {shop.status(i) for i in ids} == {"confirmed"}
    assert [shop.paid(n) for n in range(3)] == [COIN, 250_000_000, 25_000_000]
    (bundle,) = shop.bundles()
    assert bundle.state == "settled" and bundle.newest is not None
    fees = [w.fee for w in services().store.every(Withdrawal)]
    assert sum(fees) == bundle.newest.fee and max(fees) - min(fees) <= 1
    assert sum(coin.amount for coin in shop.held().free) == shop.chain.balance_of(shop.hot)
    assert shop.available() == "26.25"
    shop.whole()
    shop.confirm(REORG)
    assert not [work for work in services().store.every_work() if work.kind == "bundle"]
    shop.whole()


def test_change_is_no_deposit(shop: Shop) -> None:
    from chalicelib.domain.deposits import Deposit

    before = len(list(services().store.every(Deposit)))
    shop.withdraw("1", run=True)
    shop.confirm()
    assert len(list(services().store.every(Deposit))) == before


@pytest.mark.parametrize("after", [False, True])
def test_dying_at_any_commit_pays_each_once(begin: Callable[[], Shop], after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes next goes on from what is stored; nothing is paid twice, and nothing is left behind."""
    commit = DynamoStore.commit
    at = 0
    while True:
        at += 1
        shop = begin()
        ids = [shop.withdraw("1", 0), shop.withdraw("2", 1)]
        shop.stack.drain(only=("relay",), hurry=True)
        count = 0

        def cut(self: DynamoStore, changes: Any, at: int = at) -> None:
            nonlocal count
            count += 1
            if count == at and not after:
                raise Died("before a commit")
            commit(self, changes)
            if count == at:
                raise Died("after a commit")

        died = False
        with monkeypatch.context() as patch:
            patch.setattr(DynamoStore, "commit", cut)
            try:
                first = services().store.get(Withdrawal, tenant=_tenant(), id=ids[0])
                assert first is not None
                services().payouts.pay(first.tenant, first.id)
            except Died:
                died = True
        shop.reborn()
        shop.whole()
        shop.sweep()
        shop.confirm()
        shop.sweep()
        assert [shop.status(i) for i in ids] == ["confirmed", "confirmed"], at
        assert (shop.paid(0), shop.paid(1)) == (COIN, 2 * COIN)
        shop.whole()
        if not died:
            break
    assert at > 8


def _tenant() -> Any:
    return next(iter(services().store.every(Withdrawal))).tenant
