"""Invoices that are cancelled, or get more time: by themselves, and against payments, expiries and each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.work import Work
from chalicelib.usecases.invoices import expiries
from chalicelib.usecases.invoices.invoices import expiry_work
from chalicelib.wiring import services
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.shop import Shop, open_shop
from tests.support.stack import Response, Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def one(shop: Shop, method: str, id: str, more: str = "", **body: Any) -> Response:
    return shop.stack.call(method, f"/v1/invoices/{id}{more}", shop.key, json=body or None)


def cancel(shop: Shop, invoice: dict[str, Any], expect: int = 200) -> Any:
    answer = one(shop, "DELETE", invoice["id"])
    assert answer.status == expect, answer.body
    return answer.json


def extend(shop: Shop, invoice: dict[str, Any], seconds: int = 3600, expect: int = 200) -> Any:
    answer = one(shop, "POST", invoice["id"], "/extend", expiresIn=seconds)
    assert answer.status == expect, answer.body
    return answer.json


def stored(invoice: dict[str, Any]) -> Invoice:
    (found,) = (i for i in services().store.every(Invoice) if i.id == invoice["id"])
    return found


def open_expiries(invoice: dict[str, Any]) -> list[Work]:
    return [w for w in services().store.every_work() if w.kind == "expiry" and w.id.endswith(invoice["id"])]


def open_id(invoice: dict[str, Any]) -> str:
    return expiry_work(stored(invoice)).id


def pass_time(shop: Shop, seconds: int = 61) -> None:
    shop.wait(seconds)
    shop.mine(1)
    shop.turn()


def test_one_invoice_by_its_path(shop: Shop, stack: Stack) -> None:
    invoice = shop.invoice()
    found = one(shop, "GET", invoice["id"])
    assert (found.status, found.json) == (200, shop.shown(invoice))
    for method, more, body in (("GET", "", {}), ("DELETE", "", {}), ("POST", "/extend", {"expiresIn": 60})):
        for key, id in (
            (shop.key, "inv_00000000000000000000000000"),
            (shop.key, "x"),
            (stack.keys["other_merchant_test"], invoice["id"]),
        ):
            gone = stack.call(method, f"/v1/invoices/{id}{more}", key, json=body or None)
            assert (gone.status, gone.json["code"]) == (404, "NOT_FOUND"), gone.body
    assert shop.status(invoice) == "pending"


def test_a_cancelled_invoice_stays_cancelled(shop: Shop) -> None:
    invoice = shop.invoice("1")
    done = cancel(shop, invoice)
    assert (done["status"], done["paymentUri"], done["missing"]) == ("cancelled", None, "1")
    assert cancel(shop, invoice) == done and open_expiries(invoice) == []
    pass_time(shop, 3601)
    assert shop.status(invoice) == "cancelled"
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.cancelled": 1}
    (told,) = (e for e in shop.get("/v1/events", objectId=invoice["id"])["data"] if e["event"] == "invoice.cancelled")
    assert told["data"]["previous_status"] == "pending"
    shown = shop.stack.call("GET", f"/pay/{invoice['id']}/status").json
    assert shown["status"] == "cancelled" and "paymentUri" not in shown
    totals = shop.get("/v1/invoices/summary")
    assert (totals["totalInvoices"], totals["pendingInvoices"], totals["completedInvoices"]) == (1, 0, 0)


@pytest.mark.parametrize("after", [0, 3601], ids=["in its time", "after its time"])
def test_a_payment_after_a_cancellation_is_credited_and_late(shop: Shop, after: int) -> None:
    invoice = shop.invoice("1")
    cancel(shop, invoice)
    if after:
        pass_time(shop, after)
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shop.available()) == ("cancelled", "1", "1")
    assert shop.told(invoice["id"]) == {"invoice.created": 1, "invoice.cancelled": 1, "invoice.late_payment": 1}


def test_what_was_paid_before_stays_the_merchants_and_the_rest_is_late(shop: Shop) -> None:
    """Also through a reorganisation: the part that counted stays in time, and what came after stays late."""
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "0.4")
    shop.turn()
    assert cancel(shop, invoice)["missing"] == "0.6"
    shop.pay(invoice["address"], "0.6")
    shop.turn()
    found = stored(invoice)
    assert (found.unconfirmed, found.late_unconfirmed) == (4 * 10**17, 6 * 10**17)
    shop.reorg(3, remine=True)
    shop.turn()
    shop.mine()
    shop.turn()
    found = stored(invoice)
    assert (found.status, found.confirmed + found.late, shop.available()) == ("cancelled", 10**18, "1")
    told = shop.told(invoice["id"])
    assert told["invoice.cancelled"] == 1 and told["invoice.late_payment"] >= 1
    assert not told.keys() & {"invoice.completed", "invoice.confirming", "invoice.reverted", "invoice.expired"}


def test_a_payment_that_falls_out_of_a_cancelled_invoice_is_taken_back(shop: Shop) -> None:
    invoice = shop.invoice("1")
    shop.pay(invoice["address"], "0.4")
    shop.mine()
    shop.turn()
    cancel(shop, invoice)
    shop.reorg(14)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"], shown["missing"], shop.available()) == ("cancelled", "0", "1", "0")


def test_only_what_waits_for_money_is_cancelled(shop: Shop) -> None:
    paid, late, by_hand, called = (shop.invoice("1", expiresIn=60) for _ in range(4))
    for status, invoice in (("on-hold", by_hand), ("cancelled", called)):
        shop.stack.call("PUT", "/v1/invoices", shop.key, json={"invoiceId": invoice["id"], "status": status})
    shop.pay(paid["address"], "1")
    shop.turn()
    assert "this one is confirming" in cancel(shop, paid, 400)["details"]
    shop.mine()
    shop.turn()
    pass_time(shop)
    for invoice, status in ((paid, "completed"), (late, "expired"), (by_hand, "on-hold, set by hand")):
        answer = cancel(shop, invoice, 400)
        assert answer["code"] == "VALIDATION_ERROR" and f"this one is {status}" in answer["details"]
    assert cancel(shop, called)["status"] == "cancelled", "it is already"


def test_more_time(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=60)
    longer = extend(shop, invoice, 600)
    assert longer["expiresAt"] > invoice["expiresAt"] and longer["status"] == "pending"
    assert open_expiries(invoice) == [expiry_work(stored(invoice))]
    pass_time(shop, 300)
    assert shop.status(invoice) == "pending"
    pass_time(shop, 301)
    assert shop.status(invoice) == "expired" and open_expiries(invoice) == []
    again = extend(shop, invoice, 60)
    assert (again["status"], open_expiries(invoice)) == ("pending", [expiry_work(stored(invoice))])
    assert again["paymentUri"]
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    assert shop.status(invoice) == "completed"
    told = {"invoice.created": 1, "invoice.expired": 1, "invoice.confirming": 1, "invoice.completed": 1}
    assert shop.told(invoice["id"]) == told


def test_it_expires_again_and_is_told_again(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=60)
    for n in (1, 2):
        pass_time(shop)
        assert (shop.status(invoice), shop.told(invoice["id"])["invoice.expired"]) == ("expired", n)
        extend(shop, invoice, 60)
    totals = shop.get("/v1/invoices/summary")
    assert (totals["totalInvoices"], totals["pendingInvoices"]) == (1, 1)


def test_more_time_is_never_less(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=3600)
    before = stored(invoice)
    assert extend(shop, invoice, 60)["expiresAt"] == invoice["expiresAt"]
    assert stored(invoice) == before, "nothing is written"


def test_more_time_for_what_is_open_or_was_not_paid_at_all(shop: Shop) -> None:
    part, late, gone, by_hand = (shop.invoice("1", expiresIn=60) for _ in range(4))
    shop.stack.call("PUT", "/v1/invoices", shop.key, json={"invoiceId": by_hand["id"], "status": "on-hold"})
    cancel(shop, gone)
    shop.pay(part["address"], "0.4")
    shop.turn()
    assert extend(shop, part, 120)["status"] == "partial"
    pass_time(shop)
    shop.pay(late["address"], "0.1")
    shop.turn()
    pass_time(shop)
    assert shop.status(part) == "expired"
    for invoice, status in ((part, "expired"), (late, "expired"), (gone, "cancelled"), (by_hand, "on-hold, set by hand")):
        answer = extend(shop, invoice, 60, 400)
        assert answer["code"] == "VALIDATION_ERROR" and f"this one is {status}" in answer["details"]


def test_expired_by_a_late_payment_that_falls_out_and_extended_before_the_clock(shop: Shop) -> None:
    """The late payment was faster than the clock, so the old work is open still. It closes by itself, and expires nothing."""
    invoice = shop.invoice("1", expiresIn=60)
    shop.turn()
    found = stored(invoice)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services().invoice_expiries.__class__, "expire_due", lambda *_: 0)
        shop.wait(61)
        shop.pay(invoice["address"], "1")
        shop.turn()
        assert stored(invoice).expired and open_expiries(invoice) == [expiry_work(found)]
        shop.reorg(1)
        shop.turn()
        assert shop.status(invoice) == "expired"
        extend(shop, invoice, 600)
        assert len(open_expiries(invoice)) == 2
    pass_time(shop, 1)
    assert (shop.status(invoice), open_expiries(invoice)) == ("pending", [expiry_work(stored(invoice))])


@pytest.mark.parametrize("seconds", [0, -1, 30 * 86400 + 1, "60", 1.5, None])
def test_how_long_is_said_in_whole_seconds(shop: Shop, seconds: Any) -> None:
    answer = one(shop, "POST", shop.invoice()["id"], "/extend", expiresIn=seconds)
    assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER") and "expiresIn" in answer.json["details"]


def test_30_days_are_allowed(shop: Shop) -> None:
    assert extend(shop, shop.invoice(), 30 * 86400)["status"] == "pending"


@pytest.mark.parametrize(("act", "status"), [(cancel, "cancelled"), (extend, "pending")])
def test_an_expiry_in_hand_meets_a_cancellation_or_more_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, act: Callable[..., Any], status: str
) -> None:
    """Between the reading of due work and its closing the merchant acts: the act counts, and the expiry leaves it alone."""
    invoice = shop.invoice("1", expiresIn=60)
    shop.wait(61)
    run, acted = expiries._Run._expire, list[str]()

    def meanwhile(self: Any, work: Work, found: Any, tip: Any) -> None:
        if not acted:
            acted.append(work.id)
            act(shop, invoice)
        run(self, work, found, tip)

    monkeypatch.setattr(expiries._Run, "_expire", meanwhile)
    shop.turn()
    assert acted == [open_id(invoice)] and shop.status(invoice) == status
    assert open_expiries(invoice) == ([] if status == "cancelled" else [expiry_work(stored(invoice))])
    assert shop.told(invoice["id"])["invoice.expired"] == 0


@pytest.mark.parametrize(("how", "when"), WAYS, ids=["-".join(way) for way in WAYS])
@pytest.mark.parametrize("what", ["cancel", "extend"])
def test_any_call_of_it_may_fail(shop: Shop, monkeypatch: pytest.MonkeyPatch, what: str, how: How, when: When) -> None:
    """Cut anywhere and asked for again: it is done once, with one event and the right open work."""
    cutter = Cutter()
    install(cutter, monkeypatch)
    for at in range(1, 20):
        invoice = shop.invoice("1")
        cutter.set(at, how, when)
        answers: list[int] = []
        for _ in range(2):
            try:
                with cutter.arm():
                    again = (
                        one(shop, "DELETE", invoice["id"])
                        if what == "cancel"
                        else one(shop, "POST", invoice["id"], "/extend", expiresIn=7200)
                    )
                answers.append(again.status)
            except Died:
                answers.append(0)
            if answers[-1] == 200:
                break
        assert answers[-1] == 200, (at, answers)
        found = stored(invoice)
        if what == "cancel":
            assert (found.status, open_expiries(invoice), found.emitted) == ("cancelled", [], 2)
        else:
            assert open_expiries(invoice) == [expiry_work(found)] and found.expires_at > found.created_at + 7_000_000
        if not cutter.fired:
            assert at > 3
            break
    shop.turn()
