"""Withdrawals that are cancelled, wait, fail on the chain, are refused by the node, meet a key service that is away, or are
one of many that want the same money. What a withdrawal's order may not become before it is signed is in `test_unhappy_orders`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.domain.catalogue.rates import no_rates
from chalicelib.domain.errors import InsufficientBalance
from chalicelib.domain.ledger import BURNT, Book, WalletBalance, totals
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.store import commit
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Refused, Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.withdrawals import retry_idle
from chalicelib.usecases.withdrawals.facts import Output
from chalicelib.wiring import services
from tests.support.shop import ETHER, PAYEE, STUCK, THIRST, Kms, Shop, bent_node, decide, open_shop
from tests.support.stack import Stack

ASKED_AT_ONCE = 20
"""How many of those that wait housekeeping asks for in the test of many; else 50."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def cancel(shop: Shop, withdrawal: str) -> Any:
    return shop.stack.call("DELETE", f"/v1/withdrawals/{withdrawal}", shop.key)


def hot_booked(shop: Shop) -> int:
    place = services().rules.storage_form(shop.network, shop.hot().address)
    found = services().store.get(WalletBalance, network=shop.realm_network().id, address=place, asset=shop.coin("eth").asset)
    return 0 if found is None else found.units


def confirm(shop: Shop) -> None:
    shop.mine()
    shop.turn()


def test_a_cancelled_withdrawal_gives_its_money_back_once(shop: Shop, kms: Kms) -> None:
    withdrawal = shop.withdraw("0.75")
    assert shop.balance() == {"available": "0.25", "frozen": "0.75", "pending": "0"}
    assert cancel(shop, withdrawal).json["data"]["status"] == "cancelled"
    assert shop.balance() == {"available": "1", "frozen": "0", "pending": "0"}
    again = cancel(shop, withdrawal)
    assert (again.status, again.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    # The command to pay it is still on its way.
    shop.turn()
    confirm(shop)
    assert shop.withdrawal(withdrawal)["status"] == "cancelled"
    assert shop.available() == "1"
    assert (shop.paid(), kms.calls["Sign"], len(shop.journal("withdrawal_released"))) == (0, 0, 1)


def test_twenty_cancel_at_once(shop: Shop) -> None:
    withdrawal = shop.withdraw("0.75")
    with ThreadPoolExecutor(20) as pool:
        answers = Counter(pool.map(lambda _: cancel(shop, withdrawal).status, range(20)))
    assert answers == {200: 1, 400: 19}
    assert shop.available() == "1"


def test_what_is_being_paid_can_not_be_cancelled(shop: Shop, kms: Kms) -> None:
    withdrawal = shop.withdraw("0.75")
    kms.away = True
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "processing"
    assert cancel(shop, withdrawal).status == 400
    kms.away = False
    shop.nudge()
    assert shop.withdrawal(withdrawal)["status"] == "confirming"
    assert cancel(shop, withdrawal).status == 400
    confirm(shop)
    assert cancel(shop, withdrawal).status == 400
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    assert (shop.available(), shop.paid()) == ("0.25", 3 * ETHER // 4)


def test_nobody_else_cancels_it(shop: Shop) -> None:
    withdrawal = shop.withdraw("0.75")
    assert cancel(Shop(shop.stack, "other_merchant_test"), withdrawal).status == 404
    assert shop.withdrawal(withdrawal)["status"] == "pending"


def test_too_little_in_the_hot_wallet_waits_and_goes_on_by_itself(shop: Shop, kms: Kms, caplog: pytest.LogCaptureFixture) -> None:
    shop.credit("1000000")
    withdrawal = shop.withdraw("1000000.5")
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["pending_reason"]) == ("pending", "liquidity")
    shop.nudge(THIRST)
    assert shop.withdrawal(withdrawal)["pending_reason"] == "liquidity"
    assert [r.levelno for r in caplog.records if "waits for liquidity" in r.message] == [logging.WARNING]
    assert kms.calls["Sign"] == 0
    shop.pay(shop.hot().address, "10")
    confirm(shop)
    shop.nudge(THIRST)
    shown = shop.withdrawal(withdrawal)
    assert shown["status"] == "confirming"
    assert "pending_reason" not in shown
    confirm(shop)
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    assert shop.paid() == 1_000_000 * ETHER + ETHER // 2
    assert shop.available() == "0.5"


def floor(shop: Shop, text: str, **more: Any) -> None:
    body = {"coin": "eth", "network": shop.network, "hotFloor": text, **more}
    assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=body).status == 200


def reasons(shop: Shop, *withdrawals: str) -> list[Any]:
    return [shop.withdrawal(w).get("pending_reason") for w in withdrawals]


def test_the_floor_of_the_hot_wallet_holds_back_what_would_go_below_it(shop: Shop, kms: Kms) -> None:
    floor(shop, "999999.5")  # of 1,000,000
    large, small = shop.withdraw("0.6"), shop.withdraw("0.4")
    shop.turn()
    assert reasons(shop, large, small) == ["liquidity", None]
    assert (shop.withdrawal(small)["status"], kms.calls["Sign"]) == ("confirming", 1)
    shop.nudge(THIRST)
    assert reasons(shop, large) == ["liquidity"]
    shop.pay(shop.hot().address, "0.6")
    confirm(shop)
    shop.nudge(THIRST)
    confirm(shop)
    assert [shop.withdrawal(w)["status"] for w in (large, small)] == ["confirmed", "confirmed"]
    assert audit(services().store) == []


def test_a_replacement_may_go_below_the_floor(shop: Shop, kms: Kms) -> None:
    """What is signed has to arrive, and others wait for its nonce: its fee's bound is what holds."""
    withdrawal = shop.withdraw("0.4")
    decide(shop, withdrawal, "stick")
    shop.turn()
    floor(shop, "1000000")
    shop.wait(STUCK)
    shop.turn()
    assert (len(shop.order(withdrawal).earlier), kms.calls["Sign"]) == (1, 2)


def test_the_fee_of_a_tokens_payment_leaves_the_native_floor_and_one_in_usd_needs_a_rate(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.credit("50", "usdt")
    shop.pay(shop.hot().address, "50", "usdt")
    confirm(shop)
    floor(shop, "1000000")
    withdrawal = shop.withdraw("20", "usdt")
    shop.turn()
    assert reasons(shop, withdrawal) == ["liquidity"]
    floor(shop, "1", useUsdLimits=True)
    with monkeypatch.context() as patch:
        patch.setattr(services().payouts._checks, "_rates_of", no_rates)
        shop.nudge(THIRST)
        assert reasons(shop, withdrawal) == ["liquidity"]
    shop.nudge(THIRST)
    assert shop.withdrawal(withdrawal)["status"] == "confirming"


def test_one_that_waits_for_liquidity_can_be_cancelled(shop: Shop) -> None:
    shop.credit("1000000")
    withdrawal = shop.withdraw("1000000.5")
    shop.turn()
    assert cancel(shop, withdrawal).status == 200
    shop.pay(shop.hot().address, "10")
    confirm(shop)
    shop.nudge(THIRST)
    assert shop.withdrawal(withdrawal)["status"] == "cancelled"
    assert (shop.available(), shop.paid()) == ("1000001", 0)


@pytest.mark.slow
def test_many_that_wait_hold_nobody_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """They can not be paid for now; who comes later and can, is paid and settled at once, and no queue fills up."""
    monkeypatch.setattr(retry_idle, "ASKED_AT_ONCE", ASKED_AT_ONCE)
    count = 2 * ASKED_AT_ONCE
    shop.credit(str(1_000_001 * count))
    wired = services()
    coin, tenant = shop.coin("eth"), shop.record(shop.withdraw("0.1")).tenant
    for _ in range(count):
        wired.withdrawals.create(tenant, coin, Output(PAYEE, 1_000_001 * ETHER))
    shop.turn()
    waiting = [w for w in wired.store.every(Withdrawal) if w.pending_reason == "liquidity"]
    assert len(waiting) == count
    later = shop.withdraw("0.2")
    shop.turn()
    shop.mine()
    drained = shop.turn()
    assert shop.withdrawal(later)["status"] == "confirmed"
    assert drained.calls["payout"] == 0
    shop.wait(THIRST)
    # Housekeeping asks for a bounded number of them a time, and each has its turn before any has it again.
    before = {w.id: w.version for w in waiting}
    for _ in range(count // ASKED_AT_ONCE):
        shop.stack.drain(only=("housekeeping",), rounds=1)
        assert len(shop.messages("payout")) == ASKED_AT_ONCE
        shop.turn()
    after = {w.id: w.version for w in wired.store.every(Withdrawal) if w.pending_reason == "liquidity"}
    # In line, and out of it again.
    assert after == {id_: version + 2 for id_, version in before.items()}


def test_mined_and_failed_gives_the_money_back_and_books_the_fee(shop: Shop) -> None:
    before, chain_before = hot_booked(shop), shop.paid(shop.hot().address)
    withdrawal = shop.withdraw("0.75")
    decide(shop, withdrawal, "fail")
    shop.turn()
    confirm(shop)
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["failure_reason"]) == ("failed", "the transaction failed on the chain")
    assert (shop.balance(), shop.paid()) == ({"available": "1", "frozen": "0", "pending": "0"}, 0)
    fee = before - hot_booked(shop)
    assert fee > 0
    assert chain_before - shop.paid(shop.hot().address) == fee
    sums = totals(shop.journal("withdrawal_bounced"))
    assert sums[Book.WHERE, BURNT, shop.coin("eth").asset] == fee
    assert shop.told(withdrawal)["withdrawal.completed"] == 0
    assert cancel(shop, withdrawal).status == 400


# The sweep: `test_renewed_payouts` has payments that are replaced once and five times, and stays.
@pytest.mark.sweep
def test_in_no_block_for_long_and_confirmed_then(shop: Shop, kms: Kms) -> None:
    withdrawal = shop.withdraw("0.75")
    decide(shop, withdrawal, "stick")
    shop.turn()
    for _ in range(3):
        shop.nudge(600)
        confirm(shop)
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["confirmations"], shop.paid()) == ("confirming", 0, 0)
    txid, order = shown["transaction_hash"], shop.order(withdrawal)
    assert (order.txid, len(order.earlier)) == (txid, 2)
    decide(shop, withdrawal, "confirm")
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["transaction_hash"], shop.paid()) == ("confirmed", txid, 3 * ETHER // 4)
    assert kms.calls["Sign"] == 3
    assert shop.told(withdrawal)["withdrawal.completed"] == 1


@pytest.mark.parametrize("error", [Refused("txpool is full"), Unavailable("timeout")], ids=["refuses", "away"])
def test_the_node_takes_nothing_for_a_while(shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    real, down, offered = SandboxPayer.broadcast, [True], []

    def broadcast(payer: SandboxPayer, raw: str) -> None:
        offered.append(raw)
        if down[0]:
            raise error
        real(payer, raw)

    monkeypatch.setattr(SandboxPayer, "broadcast", broadcast)
    withdrawal = shop.withdraw("0.75")
    for _ in range(3):
        shop.wait(60)
        shop.stack.drain(only=("relay", "payout"))
        shop.stack.drain(only=("poll_ethereum", "housekeeping"), rounds=1, failures="count")
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shop.paid()) == ("broadcasting", 0)
    assert shop.balance() == {"available": "0.25", "frozen": "0.75", "pending": "0"}
    down[0] = False
    shop.turn()
    confirm(shop)
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    assert (shop.paid(), kms.calls["Sign"], len(set(offered))) == (3 * ETHER // 4, 1, 1)
    assert len(offered) >= 4


def test_kms_is_away_and_comes_back(shop: Shop, kms: Kms) -> None:
    kms.away = True
    first, second = shop.withdraw("0.25"), shop.withdraw("0.5")
    shop.turn()
    shop.nudge()
    assert {shop.withdrawal(w)["status"] for w in (first, second)} == {"processing"}
    assert [o.raw for o in services().store.every(PaymentOrder)] == [None, None]
    assert shop.paid() == 0
    kms.away = False
    shop.nudge()
    confirm(shop)
    assert {shop.withdrawal(w)["status"] for w in (first, second)} == {"confirmed"}
    assert sorted(o.nonce for o in services().store.every(PaymentOrder)) == [0, 1]
    assert (shop.paid(), shop.available()) == (3 * ETHER // 4, "0.25")


def test_fifty_want_the_money_of_one(shop: Shop) -> None:
    withdrawals, coin = services().withdrawals, shop.coin("eth")
    tenant = shop.record(shop.withdraw("0.1")).tenant

    def ask(_: int) -> str:
        try:
            return withdrawals.create(tenant, coin, Output(PAYEE, ETHER // 2)).id
        except InsufficientBalance:
            return "refused"

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, range(50)))
    assert answers.count("refused") == 49
    assert shop.balance() == {"available": "0.4", "frozen": "0.6", "pending": "0"}
    shop.turn()
    confirm(shop)
    assert shop.paid() == 6 * ETHER // 10


# The sweep: fifty want the money of one above, and stay; the API asks for it by the same use case.
@pytest.mark.sweep
def test_fifty_ask_at_once_through_the_api(shop: Shop) -> None:
    """As many as the rate limit lets through meet; the others are told to slow down."""
    with ThreadPoolExecutor(50) as pool:
        answers = Counter(pool.map(lambda _: shop.ask("0.6").status, range(50)))
    assert answers[201] == 1
    assert set(answers) <= {201, 400, 429}
    assert answers[400] >= 1
    assert shop.balance() == {"available": "0.4", "frozen": "0.6", "pending": "0"}


def test_a_withdrawal_pays_another_merchants_invoice(shop: Shop) -> None:
    other = Shop(shop.stack, "other_merchant_test")
    invoice = other.invoice("0.75")
    withdrawal = shop.withdraw("0.75", address=invoice["address"])
    shop.turn()
    assert other.status(invoice) == "confirming"
    confirm(shop)
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    # Charged whole, payment and collecting: twice 21,000 gas at 20 gwei.
    assert (other.status(invoice), other.available(), shop.available()) == ("completed", "0.75", "0.24916")


def test_a_withdrawal_to_the_hot_wallet_itself(shop: Shop) -> None:
    """Nobody asks for that on purpose: it is refused, and where it slipped through, nothing of it is signed."""
    before = hot_booked(shop)
    refused = shop.ask("0.75", address=shop.hot().address)
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    withdrawal = shop.withdraw("0.75")
    made = shop.record(withdrawal)
    services().store.commit([Save(replace(made, to_address=shop.hot().address, version=made.version + 1))])
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["failure_reason"]) == ("failed", "the address is a wallet of the service itself")
    assert (shop.available(), hot_booked(shop)) == ("1", before)


def test_a_token_payment_without_its_log_has_failed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction succeeded and moved nothing, as tokens can that return false (money rule 8): the money is given back."""
    shop.credit("100", "usdt")
    withdrawal = shop.withdraw("40", "usdt")
    shop.turn()
    node = bent_node(shop, monkeypatch)
    node.bend(receipt=lambda real, _txid: None if real is None else replace(real, moved=()))
    confirm(shop)
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shop.balance("usdt")) == ("failed", {"available": "100", "frozen": "0", "pending": "0"})
    assert len(shop.journal("withdrawal_bounced")) == 1


def test_a_withdrawal_that_was_committed_unheard_is_one(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store says that it is busy although the transaction went through: the same token asks again, and it is done once."""
    real, tokens = commit.write, []

    def unheard(models: Any, changes: Any, token: str, *more: Any) -> None:
        tokens.append(token)
        if len(tokens) == 1:
            real(models, changes, token, *more)
            raise commit.Busy
        real(models, changes, token, *more)

    monkeypatch.setattr(commit, "write", unheard)
    withdrawal = shop.withdraw("0.75")
    assert len(tokens) == 2
    assert len(set(tokens)) == 1
    assert shop.balance() == {"available": "0.25", "frozen": "0.75", "pending": "0"}
    assert [w.id for w in services().store.every(Withdrawal)] == [withdrawal]
