"""The public record of an invoice is rendered once per commit: what the answer shows is what the event tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.usecases.base.views import Views
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The status of each invoice that is rendered."""
    real, seen = Views.invoice, list[str]()

    def invoice(views: Views, invoice: Invoice, tip: int | None = None) -> dict[str, Any]:
        seen.append(invoice.status)
        return real(views, invoice, tip)

    monkeypatch.setattr(Views, "invoice", invoice)
    return seen


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "once"}])
def test_a_new_invoice_is_rendered_for_its_event_and_its_answer_together(
    shop: Shop, rendered: list[str], headers: dict[str, str]
) -> None:
    sent = {"currency": "eth", "amount": "1"}
    answer = shop.stack.call("POST", "/v1/invoices", shop.key, json=sent, headers=headers)
    assert (answer.status, rendered) == (201, ["pending"])
    shop.turn()
    (event,) = shop.get("/v1/events", objectId=answer.json["id"])["data"]
    assert event["data"] == answer.json


def test_two_events_of_one_payment_have_one_rendering(shop: Shop, rendered: list[str]) -> None:
    invoice = shop.invoice("1", expiresIn=60)
    shop.wait(61)
    shop.pay(invoice["address"], "0.4")
    rendered.clear()
    shop.turn("poll_ethereum")
    assert rendered == ["expired"]
    told = [event["event"] for event in shop.get("/v1/events", objectId=invoice["id"], order="asc")["data"]]
    assert told == ["invoice.created", "invoice.expired", "invoice.late_payment"]
