"""The stock of a payment link through the life of its invoices: each piece is left, or held by one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.invoices import pieces
from chalicelib.usecases.payment_links import links, opening
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from tests.support.cuts import WAYS, Cutter, Died, How, When, install
from tests.support.links import assert_whole, invoices_of, left, make, one, opened, page, submit, visit
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        opened.turn()
        yield opened


def settle(shop: Shop, expires_in: int = 60, **more: Any) -> None:
    """Invoices of the shop have this much time, and what else is said."""
    settings = {"defaultExpirationTime": expires_in, **more}
    answer = shop.stack.call("PUT", "/v1/invoices/configureSettings", shop.key, json={"settings": settings})
    assert answer.status == 201, answer.body


def cancel(shop: Shop, invoice: dict[str, Any]) -> Any:
    return shop.stack.call("DELETE", f"/v1/invoices/{invoice['id']}", shop.key)


def extend(shop: Shop, invoice: dict[str, Any]) -> Any:
    return shop.stack.call("POST", f"/v1/invoices/{invoice['id']}/extend", shop.key, json={"expiresIn": 3600})


def by_hand(shop: Shop, invoice: dict[str, Any], status: str) -> None:
    answer = shop.stack.call("PUT", "/v1/invoices", shop.key, json={"invoiceId": invoice["id"], "status": status})
    assert answer.status == 201


def pass_time(shop: Shop, seconds: int = 61) -> None:
    shop.wait(seconds)
    shop.mine(1)
    shop.turn()


def pay(shop: Shop, invoice: dict[str, Any], amount: str = "1") -> None:
    shop.pay(invoice["address"], amount)
    shop.mine()
    shop.turn()


@pytest.mark.parametrize("stock", [1, 3, 8, 20])
def test_so_many_and_no_more(shop: Shop, stock: int) -> None:
    link = make(shop, stock=stock)["id"]
    answers = [visit(shop, link) for _ in range(stock + 2)]
    assert [answer.status for answer in answers] == [201] * stock + [400, 400]
    assert left(shop, link) == 0 and assert_whole(link, stock) == {"pending": stock}


def test_expiry_gives_the_piece_back_once(shop: Shop) -> None:
    settle(shop)
    link = make(shop, stock=2)["id"]
    kept, invoice = opened(shop, link), opened(shop, link)
    assert "Sold out" in page(shop, link).body.decode() and submit(shop, link).status == 400
    shop.pay(kept["address"], "1")
    shop.turn()
    pass_time(shop)
    pass_time(shop)
    assert (shop.status(kept), shop.status(invoice), left(shop, link)) == ("confirming", "expired", 1)
    again = opened(shop, link)
    assert visit(shop, link).status == 400
    shop.mine()
    shop.turn()
    assert assert_whole(link, 2) == {"completed": 1, "expired": 1, "pending": 1} and shop.status(again) == "pending"


def test_cancellation_gives_the_piece_back_once(shop: Shop) -> None:
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    for _ in range(2):
        assert cancel(shop, invoice).status == 200
        assert left(shop, link) == 1
    opened(shop, link)
    assert assert_whole(link, 1) == {"cancelled": 1, "pending": 1}


def test_a_status_by_hand_counts_as_what_it_is(shop: Shop) -> None:
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    for status, there in (("expired", 1), ("on-hold", 0), ("cancelled", 1), ("cancelled", 1), ("completed", 0)):
        by_hand(shop, invoice, status)
        assert (left(shop, link), sum(assert_whole(link, 1).values())) == (there, 1), status


def test_a_late_payment_without_a_piece_completes_nothing(shop: Shop) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    late = opened(shop, link)
    pass_time(shop)
    sold = opened(shop, link)
    pay(shop, sold)
    pay(shop, late)
    assert (shop.status(sold), shop.status(late), left(shop, link)) == ("completed", "expired", 0)
    assert shop.told(late["id"])["invoice.late_payment"] == 1 and shop.available() == "2"
    assert_whole(link, 1)


@pytest.mark.parametrize("sold", [True, False], ids=["sold meanwhile", "left"])
def test_a_late_payment_is_accepted_with_a_piece_alone(shop: Shop, sold: bool) -> None:
    settle(shop, latePayments="accept")
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    pass_time(shop)
    settle(shop, 86_400)
    if sold:
        opened(shop, link)
    pay(shop, invoice)
    assert (shop.status(invoice), left(shop, link)) == ("expired" if sold else "completed", 0)
    assert shop.told(invoice["id"])["invoice.late_payment"] == 1 and shop.available() == "1"
    assert_whole(link, 1)


def seen_late(shop: Shop, invoice: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A payment in time that is seen when its invoice has expired: the clock was faster than the scan."""
    with monkeypatch.context() as patch:
        patch.setattr(Deposits, "detect", lambda self, *given: "nothing")
        patch.setattr(Deposits, "detect_together", lambda self, *given, **named: ())
        shop.pay(invoice["address"], "1")
        shop.turn()
        pass_time(shop)
    assert shop.status(invoice) == "expired"


def rescanned(shop: Shop) -> None:
    cursor = services().store.get(Cursor, network=shop.realm_network().id)
    assert cursor is not None
    blocks = {"fromBlock": max(1, cursor.number - 20), "toBlock": cursor.number}
    answer = shop.stack.call("POST", "/v1/networks/ethereum/rescan", shop.stack.keys["admin_test"], json=blocks)
    assert answer.status == 201, answer.body
    for _ in range(2):
        shop.turn("scan_range")
        shop.mine()
    shop.turn()


def test_a_payment_in_time_that_is_seen_late_takes_a_piece_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    seen_late(shop, invoice, monkeypatch)
    assert left(shop, link) == 1
    rescanned(shop)
    assert (shop.status(invoice), left(shop, link)) == ("completed", 0)
    assert_whole(link, 1)


def test_where_none_is_left_it_stays_expired(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    seen_late(shop, invoice, monkeypatch)
    settle(shop, 7 * 86_400)
    other = opened(shop, link)
    rescanned(shop)
    assert (shop.status(invoice), shop.status(other), shop.available()) == ("expired", "pending", "1")
    assert shop.shown(invoice)["received"] == "1", "it is the merchant's, who is told and looks after it by hand"
    assert shop.told(invoice["id"])["invoice.late_payment"] == 1
    assert_whole(link, 1)
    by_hand(shop, invoice, "completed")
    assert left(shop, link) == 0


def test_a_payment_that_falls_out_after_its_time_gives_the_piece_back(shop: Shop) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    shop.pay(invoice["address"], "1")
    shop.turn()
    pass_time(shop)
    assert (shop.status(invoice), left(shop, link)) == ("confirming", 0)
    shop.reorg(4)
    shop.turn()
    assert (shop.status(invoice), left(shop, link)) == ("expired", 1)
    assert_whole(link, 1)


def test_more_time_takes_a_piece_again(shop: Shop) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    pass_time(shop)
    assert left(shop, link) == 1
    assert extend(shop, invoice).json["status"] == "pending" and left(shop, link) == 0
    pay(shop, invoice)
    assert shop.status(invoice) == "completed" and assert_whole(link, 1) == {"completed": 1}


def test_no_more_time_without_a_piece(shop: Shop) -> None:
    settle(shop)
    link = make(shop, stock=1)["id"]
    invoice = opened(shop, link)
    pass_time(shop)
    opened(shop, link)
    refused = extend(shop, invoice)
    assert (refused.status, refused.json["code"]) == (400, "VALIDATION_ERROR") and "none is left" in refused.json["error"]
    assert assert_whole(link, 1) == {"expired": 1, "pending": 1}


@pytest.mark.parametrize("stock", [None, 5])
def test_a_deleted_or_unlimited_links_invoices_end_as_they_should(shop: Shop, stock: int | None) -> None:
    settle(shop)
    link = make(shop, stock=2)["id"]
    invoice = opened(shop, link)
    assert one(shop, "PUT", link, stock=stock).status == 200
    if stock is None:
        opened(shop, link)
        assert "stock" not in one(shop, "GET", link).json
    else:
        assert one(shop, "DELETE", link).status == 200
    pass_time(shop)
    assert shop.status(invoice) == "expired"
    assert_whole(link, 2 if stock is None else 6) if stock else None


def test_who_is_second_at_the_last_piece_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen it: the condition of the transaction decides."""
    link = make(shop, stock=1)["id"]
    real, seen = opening.stock_of, [services().store.get_many(pieces.stock_keys(link))]
    opened(shop, link)
    monkeypatch.setattr(opening, "stock_of", lambda store, id: [s for s in seen.pop() if s] if seen else real(store, id))
    assert visit(shop, link).status == 400
    assert assert_whole(link, 1) == {"pending": 1}


def test_who_is_second_at_a_shard_takes_another_piece(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    link = make(shop, stock=2)["id"]
    real, seen = opening.stock_of, [services().store.get_many(pieces.stock_keys(link))]
    taken = opened(shop, link)
    (first,) = (invoice for invoice in invoices_of(link) if invoice.id == taken["id"])
    stale = [shard for shard in seen.pop() if shard is not None and shard.shard == first.piece]
    seen.append(stale)
    monkeypatch.setattr(opening, "stock_of", lambda store, id: seen.pop() if seen else real(store, id))
    assert visit(shop, link).status == 201 and not seen
    assert assert_whole(link, 2) == {"pending": 2}


def test_a_change_of_the_stock_meets_a_visitor(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading and committing a piece is taken: what is left is what was asked for, less that piece at most."""
    link = make(shop, stock=8)["id"]
    real = links.stock_of

    def meanwhile(store: Any, id: str) -> Any:
        found = real(store, id)
        monkeypatch.setattr(links, "stock_of", real)
        assert visit(shop, link).status == 201
        return found

    monkeypatch.setattr(links, "stock_of", meanwhile)
    assert one(shop, "PUT", link, stock=3).status == 200
    assert left(shop, link) in (2, 3)
    assert_whole(link, left(shop, link) + 1)


@pytest.mark.parametrize(("how", "when"), WAYS, ids=["-".join(way) for way in WAYS])
def test_opening_may_be_cut_anywhere(shop: Shop, monkeypatch: pytest.MonkeyPatch, how: How, when: When) -> None:
    """Each call of it fails once: the piece is there with an invoice that holds it, or left; never neither, never both."""
    cutter = Cutter()
    install(cutter, monkeypatch)
    link = make(shop, stock=50)["id"]
    for at in range(1, 20):
        cutter.set(at, how, when)
        status = 0
        try:
            with cutter.arm():
                status = visit(shop, link).status
        except Died:
            pass
        assert status in (0, 201, 500), status
        assert_whole(link, 50)
        if not cutter.fired:
            assert at > 3 and status == 201
            break
    assert visit(shop, link).status == 201
    shop.nudge()
    for invoice in invoices_of(link):
        assert shop.told(invoice.id) == {"invoice.created": 1}


@pytest.mark.parametrize(("how", "when"), WAYS, ids=["-".join(way) for way in WAYS])
def test_expiry_may_be_cut_anywhere(shop: Shop, monkeypatch: pytest.MonkeyPatch, how: How, when: When) -> None:
    settle(shop)
    cutter = Cutter()
    install(cutter, monkeypatch)
    link = make(shop, stock=3)["id"]
    network, until = shop.realm_network().id, 10**15
    for at in range(1, 30):
        invoice = opened(shop, link)
        cutter.set(at, how, when)
        try:
            with cutter.arm():
                services().invoice_expiries.expire_due(network, until)
        except (Died, Unavailable, Failures):
            assert cutter.fired
        assert_whole(link, 3)
        services().invoice_expiries.expire_due(network, until)
        assert shop.status(invoice) == "expired" and left(shop, link) == 3
        if not cutter.fired:
            assert at > 2
            break


def test_a_plain_invoice_stores_nothing_of_it(shop: Shop) -> None:
    shop.invoice()
    (invoice,) = services().store.every(Invoice)
    item = services().store.models.item(invoice)
    assert not {"payment_link", "piece", "given_back"} & item.serialize().keys()
