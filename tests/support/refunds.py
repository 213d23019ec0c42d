"""A shop that gives money back: invoices that are paid, refunds of them, and payees who claim."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from tests.support.shop import Shop
from tests.support.stack import Response


def paid_invoice(shop: Shop, amount: str = "1", paid: str | None = None) -> dict[str, Any]:
    """A completed invoice over `amount`, or one that was `paid` otherwise."""
    return settle(shop, shop.invoice(amount), paid)


def priced_invoice(shop: Shop, price: str, fiat: str = "USD") -> dict[str, Any]:
    """A completed invoice over a price in fiat."""
    made = shop.post("/v1/invoices", {"currency": "eth", "network": shop.network, "fiatAmount": price, "fiatCurrency": fiat})
    assert made.status == 201, made.body
    return settle(shop, made.json, None)


def settle(shop: Shop, invoice: dict[str, Any], paid: str | None) -> dict[str, Any]:
    shop.pay(invoice["address"], paid or invoice["amount"])
    shop.mine()
    shop.turn()
    return invoice


def ask_refund(shop: Shop, invoice: dict[str, Any], **asked: Any) -> Response:
    return shop.post(f"/v1/invoices/{invoice['id']}/refunds", {"mode": "same", **asked})


def refund(shop: Shop, invoice: dict[str, Any], **asked: Any) -> dict[str, Any]:
    answer = ask_refund(shop, invoice, **asked)
    assert answer.status == 201, answer.body
    return dict(answer.json)


def payout_link(shop: Shop, amount: str = "0.4", **more: Any) -> dict[str, Any]:
    answer = shop.post("/v1/payout-links", {"network": shop.network, "coin": "eth", "amount": amount, **more})
    assert answer.status == 201, answer.body
    return dict(answer.json)


def page_of(link: dict[str, Any]) -> str:
    """The path of a link's page."""
    return "/v1/claim/" + str(link["claimUrl"]).rpartition("/")[2]


def claim(shop: Shop, link: dict[str, Any], **body: Any) -> Response:
    """What a payee sends as JSON."""
    return shop.stack.call("POST", page_of(link), json=body)


def claim_form(shop: Shop, link: dict[str, Any], **fields: str) -> Response:
    """What a payee's browser sends."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return shop.stack.call("POST", page_of(link), body=urlencode(fields), headers=kind)


def claimed(shop: Shop, link: dict[str, Any], address: str) -> Response:
    """Look at an address, and be paid there."""
    seen = claim(shop, link, address=address)
    assert seen.status == 200, seen.body
    return claim(shop, link, address=address, confirm=seen.json["confirm"])
