"""What a shop says with an invoice beside its price, and what the record says is still to be paid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.wiring import services
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

OWN = {"order": "A-17", "lines": [1, 2.5, None, True, {"é": "ü"}]}


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def refused(shop: Shop, **body: Any) -> str:
    answer = shop.post("/v1/invoices", {"currency": "eth", "amount": "1", **body})
    assert (answer.status, answer.json["code"]) == (400, "INVALID_PARAMETER"), answer.body
    return str(answer.json["details"])


def test_metadata_is_in_every_answer_to_a_key_and_in_events(shop: Shop) -> None:
    invoice = shop.invoice(metadata=OWN, externalId="A-17")
    listed = shop.get("/v1/invoices/getAll")["data"]
    found = [invoice, shop.shown(invoice), *listed, shop.get("/v1/invoices/getByExternalId", externalId="A-17")]
    assert [one["metadata"] for one in found] == [OWN] * 4
    shop.pay(invoice["address"], "1")
    shop.mine()
    shop.turn()
    events = shop.get("/v1/events", objectId=invoice["id"])["data"]
    assert [event["data"]["metadata"] for event in events] == [OWN] * 3
    assert shop.shown(invoice)["metadata"] == OWN


def test_the_payer_sees_where_to_go_and_no_metadata(shop: Shop) -> None:
    invoice = shop.invoice(metadata={"margin": "secret-7"}, cancelUrl="https://shop.example/basket?a=1&b=2")
    assert invoice["cancelUrl"] == shop.shown(invoice)["cancelUrl"] == "https://shop.example/basket?a=1&b=2"
    page = shop.stack.call("GET", f"/pay/{invoice['id']}")
    assert 'href="https://shop.example/basket?a=1&amp;b=2"' in page.body.decode()
    status = shop.stack.call("GET", f"/pay/{invoice['id']}/status")
    assert status.json["cancelUrl"] == invoice["cancelUrl"]
    assert b"secret-7" not in page.body + status.body and b"metadata" not in page.body + status.body
    shop.pay(invoice["address"], "1")
    shop.turn()
    paid = shop.stack.call("GET", f"/pay/{invoice['id']}").body.decode()
    assert "rel=" not in paid.split('data-part="back"')[1].split("</div>")[0], "who is paying does not give up"


def test_an_invoice_without_them_is_stored_and_shown_as_before(shop: Shop) -> None:
    """Nothing that a plain invoice does not use costs it a byte in the store."""
    plain = shop.invoice()
    assert not plain.keys() & {"metadata", "cancelUrl"}
    (stored,) = (i for i in services().store.every(Invoice) if i.id == plain["id"])
    item = services().store.models.item(stored).to_dynamodb_dict()
    assert not item.keys() & {"metadata", "cancel_url"}
    empty = shop.invoice(metadata={})
    assert empty["metadata"] == shop.shown(empty)["metadata"] == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"metadata": {"a": "x" * 4096}}, "metadata"),
        ({"metadata": {"a": "é" * 2048}}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"metadata": "{}"}, "metadata"),
        ({"metadata": {"a": "\x00"}}, "NUL"),
        ({"cancelUrl": "javascript:alert(1)"}, "cancelUrl"),
        ({"cancelUrl": "https://u:p@shop.example"}, "cancelUrl"),
        ({"cancelUrl": "https://shop.example/" + "x" * 2000}, "cancelUrl"),
    ],
)
def test_what_is_wrong_is_named(shop: Shop, body: Any, words: str) -> None:
    assert words in refused(shop, **body)


def test_4_kib_are_4096_bytes_of_compact_json(shop: Shop) -> None:
    fits = {"a": "é" * 2044}
    assert len(json.dumps(fits, ensure_ascii=False, separators=(",", ":")).encode()) == 4096
    assert shop.invoice(metadata=fits)["metadata"] == fits
    assert "at most 4096 bytes" in refused(shop, metadata={"a": "é" * 2044 + "x"})


def test_the_record_asks_for_the_rest_alone(shop: Shop) -> None:
    invoice = shop.invoice("1")
    assert (invoice["missing"], invoice["paymentUri"].partition("?")[2]) == ("1", f"value={10**18}")
    shop.pay(invoice["address"], "0.4")
    shop.turn()
    part = shop.shown(invoice)
    assert (part["status"], part["missing"], part["paymentUri"].partition("?")[2]) == ("partial", "0.6", f"value={6 * 10**17}")
    shop.pay(invoice["address"], "0.6")
    shop.turn()
    seen = shop.shown(invoice)
    assert (seen["status"], seen["missing"], seen["paymentUri"]) == ("confirming", "0", None)
    shop.mine()
    shop.turn()
    done = shop.shown(invoice)
    assert (done["status"], done["missing"], done["paymentUri"]) == ("completed", "0", None)
    (told,) = (e for e in shop.get("/v1/events", objectId=invoice["id"])["data"] if e["event"] == "invoice.completed")
    assert told["data"]["paymentUri"] is None


def test_an_expired_invoice_misses_the_rest_and_asks_for_nothing(shop: Shop) -> None:
    invoice = shop.invoice("1", expiresIn=60)
    shop.pay(invoice["address"], "0.4")
    shop.turn()
    shop.wait(61)
    shop.mine(1)
    shop.turn()
    shown = shop.shown(invoice)
    assert (shown["status"], shown["missing"], shown["paymentUri"]) == ("expired", "0.6", None)


@pytest.mark.parametrize(("by_hand", "missing"), [("completed", "0"), ("on-hold", "1")])
def test_a_status_by_hand_asks_for_nothing(shop: Shop, by_hand: str, missing: str) -> None:
    invoice = shop.invoice("1")
    shop.stack.call("PUT", "/v1/invoices", shop.key, json={"invoiceId": invoice["id"], "status": by_hand})
    shown = shop.shown(invoice)
    assert (shown["missing"], shown["paymentUri"]) == (missing, None)
