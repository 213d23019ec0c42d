"""Withdrawals that wait with the reason `fees`: how they are shown, who may let them go on, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts.checks import PayoutChecks
from chalicelib.wiring import services
from tests.support.shop import CONFIRMATIONS, Shop, open_shop
from tests.support.stack import Stack

DAY = 24 * 3600


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("20", "eth")) as opened:
        yield opened


def made_to_wait(shop: Shop, withdrawal: str, own: bool = True) -> Withdrawal | None:
    """The payment function finds that its fee is too high."""
    wired = services()
    checks = PayoutChecks(wired.store, wired.rules, wired.realm_clock, wired.risk, wired.rates)
    with in_realm("test"):
        return checks.wait_for_fees(shop.realm_network(), shop.record(withdrawal), "its fee is worth more than it pays", own=own)


def decide(shop: Shop, what: str, withdrawal: str, key: str = "admin_test") -> Any:
    return shop.stack.call("PUT", f"/v1/withdrawals/request/{what}", shop.stack.keys[key], json={"id": withdrawal})


def test_it_is_shown_and_found_and_goes_on_by_the_operators_word(shop: Shop) -> None:
    withdrawal = shop.withdraw("1")
    assert made_to_wait(shop, withdrawal) is None
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["pending_reason"]) == ("pending", "fees")
    assert [w["id"] for w in shop.get("/v1/withdrawals", pending_reason="fees")["data"]] == [withdrawal]
    for key in ("admin_test", "client_test"):
        listed = shop.stack.call("GET", "/v1/withdrawals/requests", shop.stack.keys[key]).json["data"]
        assert [w["id"] for w in listed] == [withdrawal]
    assert decide(shop, "accept", withdrawal, "client_test").status == 400
    assert decide(shop, "accept", withdrawal, "other_merchant_test").status in (400, 404)
    accepted = decide(shop, "accept", withdrawal)
    assert (accepted.status, accepted.json["data"].get("pending_reason")) == (200, None)
    assert shop.record(withdrawal).fees_accepted
    version = shop.record(withdrawal).version
    assert decide(shop, "accept", withdrawal).status == 200
    assert shop.record(withdrawal).version == version
    shop.turn()
    shop.mine(CONFIRMATIONS)
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    assert decide(shop, "accept", withdrawal).json["data"]["status"] == "confirmed"


def test_an_operator_refuses_it_once(shop: Shop) -> None:
    withdrawal = shop.withdraw("1")
    made_to_wait(shop, withdrawal)
    refused = decide(shop, "reject", withdrawal).json["data"]
    assert (refused["status"], refused["failure_reason"]) == ("failed", "rejected")
    assert decide(shop, "reject", withdrawal).json["data"] == refused
    shop.turn()
    assert (shop.available(), shop.told(withdrawal)["withdrawal.status_changed"]) == ("20", 1)


def test_a_fee_of_its_own_that_stays_too_high_fails_after_a_day(shop: Shop) -> None:
    withdrawal = shop.withdraw("1")
    made_to_wait(shop, withdrawal)
    shop.wait(DAY - 60)
    assert made_to_wait(shop, withdrawal) is None
    shop.wait(60)
    failed = made_to_wait(shop, withdrawal)
    assert failed is not None and failed.status == "failed"
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["failure_reason"]) == ("failed", "its fee is worth more than it pays, for 24 hours")
    assert (shop.available(), shop.balance()["frozen"]) == ("20", "0")
    assert shop.told(withdrawal) == {"withdrawal.created": 1, "withdrawal.status_changed": 1}


def test_a_budget_that_is_used_up_fails_nothing_and_is_no_part_of_the_day(shop: Shop) -> None:
    withdrawal = shop.withdraw("1")
    made_to_wait(shop, withdrawal)
    shop.wait(DAY - 60)
    assert made_to_wait(shop, withdrawal, own=False) is None
    shop.wait(DAY)
    assert made_to_wait(shop, withdrawal, own=False) is None
    assert made_to_wait(shop, withdrawal) is None
    assert shop.withdrawal(withdrawal)["pending_reason"] == "fees"
