"""No fee is paid that is worth more than the payment: it waits with the reason `fees`, on every family.

Replacements obey the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib import wiring
from chalicelib.chains.sandbox import payer as sandbox_payer
from chalicelib.domain.catalogue.rates import Rates
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, IDLE, PAYEE, STUCK, THIRST, Shop, decide, open_shop
from tests.support.stack import Stack

DAY = 24 * 3600
FEE_OF = sandbox_payer.fee_of
TO = {"ethereum": PAYEE, "tron": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "litecoin": "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9"}


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("20", "eth"), ("100", "usdt")) as opened:
        yield opened


def cost(patch: pytest.MonkeyPatch, times: int) -> None:
    """Everything costs so many times as much from now on."""
    patch.setattr(sandbox_payer, "fee_of", lambda *what: FEE_OF(*what) * times)


def state(shop: Shop, withdrawal: str) -> tuple[str, str | None]:
    shown = shop.withdrawal(withdrawal)
    return shown["status"], shown.get("pending_reason")


def confirmed(shop: Shop, withdrawal: str) -> bool:
    shop.mine()
    shop.turn()
    return state(shop, withdrawal) == ("confirmed", None)


@pytest.mark.parametrize(
    ("network", "coin", "amount"),
    [
        # The sweep: a native coin waits like those of tron and litecoin, which stay.
        pytest.param("ethereum", "eth", "0.001", marks=pytest.mark.sweep),
        ("ethereum", "usdt", "10"),
        ("tron", "trx", "20"),
        ("litecoin", "ltc", "0.001"),
    ],
)
def test_it_waits_for_a_lower_fee(shop: Shop, monkeypatch: pytest.MonkeyPatch, network: str, coin: str, amount: str) -> None:
    if network != "ethereum":
        there = Shop(shop.stack, network=network)
        there.turn()
        there.pay(there.invoice("100", coin)["address"], "100", coin)
        there.mine(40)
        there.turn()
        shop = there
    withdrawal = shop.withdraw(amount, coin, TO[network])
    with monkeypatch.context() as patch:
        cost(patch, 100)
        shop.turn()
        assert state(shop, withdrawal) == ("pending", "fees")
        shop.nudge(THIRST)
        assert state(shop, withdrawal) == ("pending", "fees")
    shop.nudge(THIRST)
    shop.mine(40)
    shop.turn()
    assert state(shop, withdrawal) == ("confirmed", None)
    assert shop.record(withdrawal).fee_wait is not None


def test_it_fails_after_a_day_of_its_realms_clock_and_its_money_is_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("10", "usdt")
    cost(monkeypatch, 100)
    shop.turn()
    shop.nudge(DAY - 300)
    assert state(shop, withdrawal) == ("pending", "fees")
    shop.nudge(300)
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["failure_reason"]) == ("failed", "its network fee is worth more than it pays, for 24 hours")
    assert shop.balance("usdt")["available"] == "100" and shop.balance("usdt")["frozen"] == "0"
    assert shop.told(withdrawal)["withdrawal.status_changed"] == 1


def test_a_day_that_was_interrupted_begins_anew(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("10", "usdt")
    with monkeypatch.context() as patch:
        cost(patch, 100)
        shop.turn()
        assert state(shop, withdrawal) == ("pending", "fees")
    with monkeypatch.context() as patch:
        # It may be paid for, and then its bytes can not be stored: it stays processing.
        patch.setattr(sandbox_payer.SandboxPayer, "prepare", lambda *_: (_ for _ in ()).throw(sandbox_payer.Refused("away")))
        patch.setattr("chalicelib.usecases.payouts.checks.PayoutChecks.fail", lambda *_: None)
        shop.nudge(THIRST)
        assert shop.record(withdrawal).status == "processing"
    wait = shop.record(withdrawal).fee_wait
    assert wait is not None and wait.since is None
    shop.nudge(IDLE)
    assert confirmed(shop, withdrawal)


def test_the_operators_word_lets_it_go_on(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("10", "usdt")
    cost(monkeypatch, 100)
    shop.turn()
    body = {"id": withdrawal}
    assert shop.stack.call("PUT", "/v1/withdrawals/request/accept", shop.stack.keys["admin_test"], json=body).status == 200
    shop.turn()
    assert confirmed(shop, withdrawal)


@pytest.mark.parametrize("known", ["stale", "never"])
def test_the_last_known_rate_counts_and_where_there_never_was_one_nothing_is_asked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    withdrawal = shop.withdraw("10", "usdt")
    cost(monkeypatch, 100)
    fresh = services().rates("test")

    class Old(Rates):
        """Nothing was told for years."""

        def get(self, coin: str, fiat: str = "USD") -> object:  # type: ignore[override]
            found = fresh.get(coin, fiat)
            return None if found is None or known == "never" else replace(found, at=1)

        def fresh(self, coin: str, now_ms: int, fiat: str = "USD") -> None:
            return None

    monkeypatch.setattr(services().payouts._parts.fees, "_rates_of", lambda realm: Old())
    shop.turn()
    assert state(shop, withdrawal)[1] == ("fees" if known == "stale" else None)
    if known == "never":
        assert confirmed(shop, withdrawal)


def test_what_grows_dear_between_its_beginning_and_its_bytes_waits_too(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("10", "usdt")
    prepare = sandbox_payer.SandboxPayer.prepare
    with monkeypatch.context() as patch:

        def dearer(payer: sandbox_payer.SandboxPayer, payment: object) -> str:
            with pytest.MonkeyPatch.context() as now:
                cost(now, 100)
                return prepare(payer, payment)  # type: ignore[arg-type]

        patch.setattr(sandbox_payer.SandboxPayer, "prepare", dearer)
        shop.turn()
        record = shop.record(withdrawal)
        assert (record.status, record.pending_reason, record.order_id) == ("processing", "fees", None)
        shop.nudge(THIRST)
        assert shop.record(withdrawal).pending_reason == "fees"
    shop.nudge(THIRST)
    assert confirmed(shop, withdrawal)


def test_what_waits_between_its_beginning_and_its_bytes_fails_after_a_day(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("10", "usdt")
    prepare = sandbox_payer.SandboxPayer.prepare

    def dearer(payer: sandbox_payer.SandboxPayer, payment: object) -> str:
        with pytest.MonkeyPatch.context() as now:
            cost(now, 100)
            return prepare(payer, payment)  # type: ignore[arg-type]

    monkeypatch.setattr(sandbox_payer.SandboxPayer, "prepare", dearer)
    shop.turn()
    shop.nudge(DAY)
    assert (state(shop, withdrawal)[0], shop.available("usdt")) == ("failed", "100")


# Replacements


def stuck(shop: Shop, amount: str = "10", coin: str = "usdt") -> str:
    withdrawal = shop.withdraw(amount, coin)
    decide(shop, withdrawal, "stick")
    shop.turn()
    assert state(shop, withdrawal)[0] == "confirming"
    return withdrawal


def test_a_replacement_that_costs_more_than_the_payment_is_not_made(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    withdrawal = stuck(shop)
    first = shop.order(withdrawal)
    with monkeypatch.context() as patch:
        cost(patch, 8)  # 10.4 USDT
        shop.wait(STUCK)
        shop.turn()
        assert (shop.order(withdrawal).txid, shop.order(withdrawal).earlier) == (first.txid, ())
        assert "ALARM" in caplog.text and "is not replaced" in caplog.text
    shop.nudge(60)
    assert len(shop.order(withdrawal).earlier) == 1
    decide(shop, withdrawal, "confirm")
    assert confirmed(shop, withdrawal)


def test_no_payment_of_the_wallet_is_held_up_by_that(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind it another one waits for the nonce: it is replaced at the operator's cost, within the bounds of replacements."""
    withdrawal = stuck(shop)
    cost(monkeypatch, 8)
    behind = shop.withdraw("1")
    shop.turn()
    assert shop.order(behind).nonce == shop.order(withdrawal).nonce + 1
    shop.wait(STUCK)
    shop.turn()
    assert len(shop.order(withdrawal).earlier) == 1
    decide(shop, withdrawal, "confirm")
    shop.turn()
    assert confirmed(shop, behind) and state(shop, withdrawal)[0] == "confirmed"


@pytest.mark.parametrize("rest", ["enough", "too little"])
def test_a_replacement_that_the_merchant_pays_for_is_reserved_too(stack: Stack, monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    monkeypatch.setenv("WITHDRAWAL_FEE_PAYER", "merchant")
    wiring.forget()
    with open_shop(stack, ("100", "usdt")) as shop:
        withdrawal = stuck(shop, "50" if rest == "enough" else "95")
        before = shop.record(withdrawal).charge
        free = shop.available("usdt")
        with monkeypatch.context() as patch:
            cost(patch, 4)
            shop.wait(STUCK)
            shop.turn()
        order, record = shop.order(withdrawal), shop.record(withdrawal)
        if rest == "enough":
            assert len(order.earlier) == 1 and record.charge == 4 * before
            assert float(shop.available("usdt")) == pytest.approx(float(free) - 3 * before / 10**6)
        else:
            assert (order.earlier, record.charge, shop.available("usdt")) == ((), before, free)
        assert audit(services().store) == []
        decide(shop, withdrawal, "confirm")
        shop.nudge(60)
        assert confirmed(shop, withdrawal)
        shown = shop.withdrawal(withdrawal)
        assert float(shown["fee_charged"]) == pytest.approx(float(shown["fee"]) * 3000)
    wiring.forget()
    assert CONFIRMATIONS
