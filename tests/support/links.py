"""Payment links of a shop, as its merchant makes them and as visitors open them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.payment_links.stock import LinkStock
from chalicelib.wiring import services
from tests.support.shop import Shop
from tests.support.stack import Response

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TERMS = {"name": "Two pairs of shoes", "currency": "eth", "network": "ethereum", "amount": "1"}
VISITOR = "203.0.113.7"


def make(shop: Shop, expect: int = 201, **terms: Any) -> Any:
    """A link over one ether, or on other terms; None leaves one out."""
    body = {name: value for name, value in {**TERMS, **terms}.items() if value is not None}
    answer = shop.stack.call("POST", "/v1/payment-links", shop.key, json=body)
    assert answer.status == expect, answer.body
    return answer.json


def one(shop: Shop, method: str, link: str, key: str | None = None, **body: Any) -> Response:
    return shop.stack.call(method, f"/v1/payment-links/{link}", key or shop.key, json=body or None)


def left(shop: Shop, link: str) -> Any:
    return one(shop, "GET", link).json.get("stock")


def visit(shop: Shop, link: str, source: str = VISITOR, **body: Any) -> Response:
    """A visitor asks for an invoice, as a program does."""
    return shop.stack.call("POST", f"/v1/link/{link}", json=body or None, source_ip=source)


def opened(shop: Shop, link: str, source: str = VISITOR, **body: Any) -> dict[str, Any]:
    """The invoice that a visitor got, as its merchant sees it."""
    answer = visit(shop, link, source, **body)
    assert answer.status == 201, answer.body
    found: dict[str, Any] = shop.get("/v1/invoices", id=answer.json["invoiceId"])
    return found


def submit(shop: Shop, link: str, text: str = "", source: str = VISITOR) -> Response:
    """A visitor sends the page's form."""
    return shop.stack.call("POST", f"/v1/link/{link}", body=text, headers=FORM, source_ip=source)


def page(shop: Shop, link: str) -> Response:
    return shop.stack.call("GET", f"/v1/link/{link}")


def invoices_of(link: str) -> list[Invoice]:
    return [invoice for invoice in services().store.every(Invoice) if invoice.payment_link == link]


def assert_whole(link: str, stock: int) -> Counter[str]:
    """Every piece is left, or held by one invoice that is neither expired nor cancelled; nothing was sold twice."""
    shards = [shard for shard in services().store.every(LinkStock) if shard.link == link]
    assert all(shard.left >= 0 for shard in shards), shards
    found = invoices_of(link)
    for invoice in found:
        assert (invoice.piece is None) == (invoice.status in ("expired", "cancelled")), invoice
    assert sum(shard.left for shard in shards) + sum(invoice.piece is not None for invoice in found) == stock
    return Counter(invoice.status for invoice in found)
