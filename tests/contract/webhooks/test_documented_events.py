"""What merchants are really told, held against the section `webhooks` of the document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.api.openapi import document
from chalicelib.domain.webhooks.endpoints import TEST_EVENT, EventRecord
from chalicelib.domain.webhooks.events import EVENT_NAMES
from chalicelib.wiring import services
from tests.support.openapi import validator_of
from tests.support.refunds import claimed, paid_invoice, payout_link, refund
from tests.support.shop import CONFIRMATIONS, PAYEE, Shop, decide, open_shop
from tests.support.stack import Stack

THIEF = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"  # EIP-55's own example
OF_ENDPOINTS = {"webhook.failing", "webhook.disabled"}
"""What happens to endpoints has tests of its own."""


def tell_everything(shop: Shop) -> None:
    """A day of a shop on which every event happens."""
    parts = shop.invoice("1")
    shop.pay(parts["address"], "0.4")
    shop.mine()
    shop.turn()
    shop.pay(parts["address"], "0.6")
    shop.turn()
    shop.mine()
    shop.turn()
    late = shop.invoice("1", expiresIn=60)
    shop.wait(61)
    shop.turn("housekeeping")
    shop.pay(late["address"], "1")
    shop.mine()
    shop.turn()
    assert shop.stack.call("DELETE", f"/v1/invoices/{shop.invoice('1')['id']}", shop.key).status == 200
    withdrawal = shop.withdraw("0.5")
    shop.turn()
    shop.mine()
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirmed"
    taken_back = shop.invoice("1", coin="usdt")
    shop.pay(taken_back["address"], "1", "usdt")
    shop.mine()
    shop.turn()
    shop.reorg(CONFIRMATIONS + 2)
    shop.turn()
    give_back(shop)
    hook = shop.post("/v1/webhooks", {"url": "https://shop.example/hook", "events": ["*"]}).json["data"]
    assert shop.post(f"/v1/webhooks/{hook['id']}/test", None).status == 201


def give_back(shop: Shop) -> None:
    """Refunds and payout links, to each of their ends."""
    shop.credit("10")
    invoice = paid_invoice(shop)

    def make() -> list[dict[str, Any]]:
        return [refund(shop, invoice, amount="0.1", expiresIn=60), payout_link(shop, "0.1", expiresIn=60)]

    paid = make()
    for link in paid:
        assert claimed(shop, link, PAYEE).status == 200
    for link in make():
        kind = "refunds" if link["id"].startswith("ref_") else "payout-links"
        assert shop.stack.call("DELETE", f"/v1/{kind}/{link['id']}", shop.key).status == 200
    for link in make():
        assert claimed(shop, link, THIEF).status == 200
    for waiting in shop.get("/v1/withdrawals", status="pending")["data"]:
        if waiting["to_address"] == THIEF:
            decide(shop, waiting["id"], "fail")
    make()
    shop.wait(61)
    for _ in range(2):
        shop.turn()
        shop.mine()
    shop.turn()


# The sweep: `test_events_told` holds each event of such a day against the document, and stays.
@pytest.mark.sweep
def test_every_event_is_as_documented(stack: Stack) -> None:
    made = document.document()
    validators = {
        name: validator_of(said["post"]["requestBody"]["content"]["application/json"]["schema"], made["components"]["schemas"])
        for name, said in made["webhooks"].items()
    }
    with open_shop(stack) as shop:
        tell_everything(shop)
        shown = shop.get("/v1/withdrawals")["data"][-1]
        told = [(event.name, json.loads(event.body)) for event in services().store.every(EventRecord)]
        listed = shop.get("/v1/events", limit="100")["data"]
    assert {name for name, _ in told} == {*EVENT_NAMES, TEST_EVENT} - OF_ENDPOINTS
    for name, body in told:
        validators[name].validate(body)
    for body in listed:
        validators[body["event"]].validate(body)
    changes = [body for name, body in told if name == "withdrawal.status_changed" and body["data"]["id"] == shown["id"]]
    hashes = {body["data"]["status"]: body["data"]["transaction_hash"] for body in changes}
    assert (hashes["processing"], hashes["confirmed"]) == (None, shown["transaction_hash"])
    for body in changes:
        del body["data"]["transaction_hash"]
        assert not validators["withdrawal.status_changed"].is_valid(body)
    assert not validators["invoice.created"].is_valid(next(body for name, body in told if name == "invoice.expired"))
