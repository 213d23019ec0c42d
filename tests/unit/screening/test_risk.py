"""Risk of a payment: each finding by itself, and what merchants have to be able to do without being asked."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.screening.risk import (
    HOUR_MS,
    MOST_ALIKE,
    MOST_AMOUNTS,
    MOST_DAYS,
    Assessment,
    Case,
    Finding,
    Payee,
    Payees,
    PaymentHistory,
    findings_of,
    mark_of,
)
from chalicelib.domain.screening.rules import RiskRules
from chalicelib.domain.withdrawals.approvals import Approval, ApprovalSignature
from chalicelib.domain.withdrawals.limits import DAY_MS
from chalicelib.store.codec import plain, shaped

TENANT, NETWORK, ASSET = TenantId("mch_a:test"), NetworkId("test:ethereum"), AssetId("test:ethereum:eth")
NOW = 20_000 * DAY_MS + 5 * HOUR_MS
RULES = RiskRules()
COIN = 10**6
PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"
TWIN = "0x5290" + "a" * 32 + "9ee7"


def none(payees: Payees | None = None, address: str = PAYEE) -> Payees:
    return payees or Payees(TENANT, NETWORK, mark_of(address))


def large(units: int) -> bool:
    return Decimal(units) / COIN >= 1000


def case(units: int = COIN, **more: Any) -> Case:
    return Case(PAYEE, units, **{"history": PaymentHistory(TENANT, ASSET), "payees": none(), "large": large, **more})


def names(found: Case, now: int = NOW, rules: RiskRules = RULES) -> list[str]:
    return [finding.name for finding in findings_of(found, rules, now)]


def score(found: Case, now: int = NOW) -> int:
    return Assessment(findings_of(found, RULES, now)).score


def paid(units: int = 100 * COIN, days: int = 10, each: int = 1) -> PaymentHistory:
    """A merchant who paid so much, so often, on each of the last days."""
    history = PaymentHistory(TENANT, ASSET)
    for day in range(days, 0, -1):
        for n in range(each):
            history = history.with_payment(NOW - day * DAY_MS + n * 1000, units, True)
    return history


def known(since: int = 10 * DAY_MS) -> Payees:
    had = ((ASSET, (NOW - since) // DAY_MS, 0, 1000 * COIN),)
    return replace(none(), known=(Payee(PAYEE, NOW - since, NOW - since, 1, ("wd_1",), had),))


def test_the_first_withdrawals_of_a_merchant_are_nobodys_business() -> None:
    assert names(case()) == []
    assert names(case(10**6 * COIN)) == ["new_address"]
    assert score(case(10**6 * COIN, contract=True)) < RULES.threshold
    history, payees = PaymentHistory(TENANT, ASSET), none()
    for n in range(RULES.per_hour):  # a batch of a hundred
        assert score(case(10 * COIN, history=history, payees=payees)) < RULES.threshold, n
        history = history.with_payment(NOW, 10 * COIN, True)


@pytest.mark.parametrize(
    "trusted, payees, was_paid, new",
    [
        (None, none(), False, True),
        (None, known(), True, False),
        (None, known(), False, True),  # what was begun and never arrived
        (None, known(DAY_MS - 1), True, True),
        (NOW - HOUR_MS + 1, none(), False, True),
        (NOW - HOUR_MS, none(), False, False),
    ],
)
def test_what_a_new_address_is(trusted: int | None, payees: Payees, was_paid: bool, new: bool) -> None:
    found = case(1000 * COIN, trusted_since=trusted, payees=payees, paid=was_paid)
    assert (found.new(NOW), names(found)) == (new, ["new_address"] if new else [])


def test_an_amount_is_unusual_against_the_merchants_own() -> None:
    history = paid(days=3, each=2)
    assert names(case(1000 * COIN, history=history)) == ["new_address", "unusual_amount"]
    assert score(case(1000 * COIN, history=history)) >= RULES.threshold
    assert "unusual_amount" not in names(case(1000 * COIN - 1, history=history))
    assert names(case(1000 * COIN, history=history, payees=known(), paid=True)) == ["unusual_amount"]
    assert score(case(1000 * COIN, history=history, payees=known(), paid=True)) < RULES.threshold
    assert names(case(1000 * COIN, history=paid(days=2, each=2))) == ["new_address"]  # no habit yet
    once = history.with_payment(NOW - 2 * DAY_MS, 5000 * COIN, True)
    assert names(case(5000 * COIN, history=once)) == ["new_address"]
    # Small change stays small, whatever the habit.
    assert names(case(900 * COIN, history=paid(COIN))) == []


def test_without_a_rate_it_is_judged_by_coins_alone() -> None:
    def nobody_knows(units: int) -> bool:
        return True

    assert names(case(10, history=paid(1), large=nobody_knows)) == ["new_address", "unusual_amount", "velocity"]
    assert names(case(1, large=nobody_knows)) == ["new_address"]


def test_many_small_payments_to_new_addresses_are_one_large_one() -> None:
    history = PaymentHistory(TENANT, ASSET)
    for n in range(RULES.per_hour):
        history = history.with_payment(NOW + n * 1000, 9 * COIN, True)
    later = NOW + RULES.per_hour * 1000
    assert "velocity" in names(case(9 * COIN, history=history), later)
    assert score(case(9 * COIN, history=history), later) >= RULES.threshold
    assert names(case(200 * COIN, history=history), NOW + 2 * HOUR_MS) == ["new_address"]  # together they are worth that much
    # Those that were always paid still are.
    assert names(case(9 * COIN, history=history, payees=known(), paid=True), later) == []
    slow = PaymentHistory(TENANT, ASSET)
    for n in range(RULES.per_day):
        slow = slow.with_payment(NOW + n * 240_000, COIN, True)
    assert "velocity" in names(case(history=slow), NOW + RULES.per_day * 240_000)


def test_a_busy_merchant_sets_its_own_pace() -> None:
    busy = paid(COIN, each=400)
    today = busy
    for n in range(399):
        today = today.with_payment(NOW + n * 1000, COIN, True)
    assert "velocity" not in names(case(history=today), NOW + 399_000)
    assert "velocity" in names(case(history=today.with_payment(NOW, COIN, True)), NOW + 399_000)


def test_a_days_volume_to_new_addresses_is_held_against_the_busiest_day() -> None:
    history = paid(400 * COIN)
    for _ in range(4):
        assert "velocity" not in names(case(400 * COIN, history=history))
        history = history.with_payment(NOW, 400 * COIN, True)
    assert "velocity" not in names(case(400 * COIN, history=history))
    assert "velocity" in names(case(400 * COIN + 1, history=history))


@pytest.mark.parametrize(
    "one, other, alike",
    [
        (PAYEE, TWIN, True),
        (PAYEE, "0x5291" + PAYEE[6:], False),
        (PAYEE, PAYEE[:-1] + "8", False),
        ("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "TJRaXXXXXXXXXXXXXXXXXXXXXXXXXXRTv8", False),
        ("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "TJRabXXXXXXXXXXXXXXXXXXXXXXXXpRTv8", True),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "bc1qw508zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzf3t4", True),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "bc1qw50zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzf3t4", False),
        ("ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9", "ltc1pw508zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz4n9"[:40] + "n4n9", True),
        ("LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1", "LM2WMzzzzzzzzzzzzzzzzzzzzzzzzzpGc1", True),
    ],
)
def test_what_looks_alike(one: str, other: str, alike: bool) -> None:
    assert (mark_of(one) == mark_of(other)) is alike


def test_an_address_that_looks_like_another_always_asks() -> None:
    trusted = none().with_trusted(TWIN)
    assert trusted is not None and trusted.with_trusted(TWIN) is None
    found = case(1, payees=trusted)
    assert (names(found), score(found) >= RULES.threshold) == (["look_alike"], True)
    # Also one that is whitelisted itself: whoever has the key could do that.
    assert "look_alike" in names(replace(found, trusted_since=0))
    both = trusted.with_payment(PAYEE, NOW - 2 * DAY_MS, "wd_1")
    assert both is not None
    assert names(case(1, payees=both, paid=True)) == []  # it had money before, with somebody's consent


def test_contracts_own_addresses_and_failures() -> None:
    assert names(case(contract=True)) == ["contract"]
    assert names(case(contract=True, payees=known(), paid=True)) == []
    assert (names(case(own=True)), score(case(own=True)) < RULES.threshold) == (["own_address"], True)
    assert names(case(failures=2)) == []
    assert (names(case(failures=3)), score(case(failures=3)) >= RULES.threshold) == (["repeated_failures"], True)


def test_one_unit_and_a_day_make_nobody_known() -> None:
    habit, payees = PaymentHistory(TENANT, ASSET), none().with_payment(PAYEE, NOW - DAY_MS - 1, "wd_1", ASSET, 1)
    for day in range(40, 1, -1):
        habit = habit.with_payment(NOW - day * DAY_MS, 2000 * COIN, False)
    assert payees is not None
    assert names(case(10**6 * COIN, history=habit, payees=payees, paid=True)) == ["new_address", "unusual_amount", "velocity"]
    assert names(case(999 * COIN, history=habit, payees=payees, paid=True)) == []
    # In parts it is as much, and new for a day from then on.
    parts = payees.with_payment(PAYEE, NOW, "wd_2", ASSET, 999 * COIN)
    assert parts is not None and case(999 * COIN, history=habit, payees=parts, paid=True).new(NOW)
    grown = parts.with_payment(PAYEE, NOW, "wd_3", ASSET, 999 * COIN, grown=True)
    assert grown is not None
    assert [case(payees=grown, paid=True).new(NOW + wait) for wait in (DAY_MS - 1, DAY_MS)] == [True, False]
    # A hundred times the largest asks by itself, of whomever it is.
    most = case(200_000 * COIN, history=habit, trusted_since=0)
    assert (names(most), score(most), score(replace(most, units=most.units - 1))) == (["unusual_amount"], 60, 40)


def test_what_was_accepted_is_not_asked_again() -> None:
    first = Assessment((Finding("new_address", 20), Finding("unusual_amount", 40)))
    assert (first.score, first.unaccepted, first.agreed().score, first.agreed().unaccepted) == (60, 60, 60, 0)
    more = Assessment((*first.findings, Finding("velocity", 60)), first.agreed().accepted)
    assert (more.score, more.unaccepted, more.agreed().unaccepted) == (120, 60, 0)


def test_the_records_stay_small_and_come_back_as_they_were() -> None:
    history, payees = paid(10**30, days=60, each=10), none()
    assert (len(history.latest), len(history.days), history.count) == (MOST_AMOUNTS, MOST_DAYS, 600)
    for n in range(100):
        payees = payees.with_payment(f"0x{n:040x}", NOW, f"wd_{n}") or payees
    assert len(payees.known) == MOST_ALIKE and payees.find(f"0x{0:040x}") is not None
    for n in range(100):
        payees = payees.with_payment(PAYEE, NOW, f"wd_{n}") or none().with_payment(PAYEE, NOW, "wd_0") or payees
    for record in (history, payees, Assessment((Finding("velocity", 60),), ("velocity",))):
        assert shaped(type(record), plain(record)) == record


def test_the_operators_word_is_about_what_it_was_asked() -> None:
    asked = Approval(()).asking("risk")
    assert (asked.reasons, asked.given, asked.waits_for, asked.reopened) == (("risk",), False, "risk", 0)
    agreed = replace(asked, operator="key_1")
    again = agreed.asking("grey_list")
    assert (again.reasons, again.given, again.operator, again.waits_for, again.reopened) == (
        ("risk", "grey_list"), False, None, "approval", 1,
    )  # fmt: skip
    third = replace(again, operator="key_1").asking("risk")
    assert (third.reasons, third.given, third.reopened) == (("risk", "grey_list"), False, 2)
    unsigned = Approval(("multisig",), 1).asking("risk")
    assert (unsigned.waits_for, unsigned.reopened) == ("approval", 0)
    signed = replace(unsigned, signatures=(ApprovalSignature("alice", "00", NOW),))
    assert (signed.waits_for, signed.given) == ("risk", False)


def test_what_goes_to_addresses_of_this_service_is_haste_and_no_habit() -> None:
    """It comes back: whoever pays itself, or a friend here who pays back, could make any habit."""
    history = PaymentHistory(TENANT, ASSET)
    for n in range(RULES.per_hour):
        history = history.with_payment(NOW + n * 1000, 9 * COIN, False, service=True)
    later = NOW + RULES.per_hour * 1000
    assert (history.count, history.largest, history.typical, history.days) == (0, 0, 0, ())
    assert "velocity" in names(case(9 * COIN, history=history), later)
    again = case(9 * COIN, history=history, payees=known(), paid=True, service=True)
    assert (names(again, later), score(again, later) >= RULES.threshold) == (["velocity"], True)
    assert names(replace(again, service=False), later) == []  # others that were always paid still are
