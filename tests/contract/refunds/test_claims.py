"""Claim links: who has one names an address, sees it once more, and is paid once, whatever else is tried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Any

import pytest

from chalicelib.domain.refunds.refunds import ClaimLink, Refund
from chalicelib.usecases.merchants.source_limits import LIMIT
from chalicelib.wiring import services
from tests.support.refunds import claim, claim_form, claimed, page_of, paid_invoice, payout_link, refund
from tests.support.shop import PAYEE, Shop, as_operator, open_shop
from tests.support.stack import Response, Stack

OTHER = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"  # EIP-55
WEEK = 7 * 86_400


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("2", "eth")) as opened:
        yield opened


def now(shop: Shop, link: dict[str, Any]) -> Any:
    kind = "refunds" if link["id"].startswith("ref_") else "payout-links"
    return shop.get(f"/v1/{kind}/{link['id']}")


def status(shop: Shop, link: dict[str, Any]) -> Response:
    return shop.stack.call("GET", page_of(link) + "/status")


def page(shop: Shop, link: dict[str, Any]) -> str:
    answer = shop.stack.call("GET", page_of(link))
    assert answer.status == 200
    return answer.body.decode()


def refused(answer: Response) -> str:
    assert (answer.status, answer.json["error"]["code"]) == (400, "VALIDATION_ERROR"), answer.body
    return str(answer.json["error"]["message"])


def test_a_customer_claims_a_refund(shop: Shop) -> None:
    invoice = paid_invoice(shop)
    link = refund(shop, invoice, amount="0.4", reason="Out of <stock>")
    assert (link["status"], link["address"], link["withdrawalId"]) == ("awaiting_claim", None, None)
    assert re.fullmatch(r".*/claim/[A-Za-z0-9_-]{43}", link["claimUrl"])
    assert now(shop, link) == {**link, "claimUrl": None}, "it is shown once"
    shown = status(shop, link)
    assert shown.json == {
        "status": "awaiting_claim",
        "amount": "0.4",
        "currency": "eth",
        "symbol": "ETH",
        "network": "ethereum",
        "description": "Out of <stock>",
        "expiresAt": link["expiresAt"],
        "expiresIn": shown.json["expiresIn"],
    }
    assert WEEK - 5 < shown.json["expiresIn"] <= WEEK
    seen = claim(shop, link, address=PAYEE.lower())
    assert seen.json == {**shown.json, "expiresIn": seen.json["expiresIn"], "address": PAYEE, "confirm": seen.json["confirm"]}
    assert now(shop, link)["status"] == "awaiting_claim", "nothing has happened yet"
    paid = claim(shop, link, address=PAYEE, confirm=seen.json["confirm"])
    assert (paid.status, paid.json["status"], paid.json["address"]) == (200, "pending", PAYEE)
    assert shop.balance() == {"available": "2.6", "frozen": "0.4", "pending": "0"}
    for _ in range(2):
        shop.turn()
        shop.mine()
    shop.turn()
    assert now(shop, link)["status"] == "completed"
    assert shop.paid() == 4 * 10**17
    assert status(shop, link).json["transactionHash"] == shop.withdrawal(now(shop, link)["withdrawalId"])["transaction_hash"]
    assert shop.told(link["id"]) == {"refund.created": 1, "refund.claimed": 1, "refund.completed": 1}


def test_the_page_works_without_a_script(shop: Shop) -> None:
    link = refund(shop, paid_invoice(shop), amount="0.4", reason='<b>Out</b> & "gone"')
    answer = shop.stack.call("GET", page_of(link))
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy and "connect-src" not in policy
    assert "form-action 'self'" in policy
    assert (answer.headers["referrer-policy"], answer.headers["cache-control"]) == ("no-referrer", "no-store")
    text = answer.body.decode()
    assert text.count("<script") == 1, "the one that shows times in the reader's zone"
    assert "<b>Out" not in text
    assert escape('<b>Out</b> & "gone"') in text
    assert 'name="address"' in text
    checked = claim_form(shop, link, address=f" {PAYEE} ").body.decode()
    confirm = re.search(r'name="confirm" value="([0-9a-f]+)"', checked)
    assert confirm is not None
    assert f'<code id="address" dir="ltr">{PAYEE}</code>' in checked and "Is this your address?" in checked
    done = claim_form(shop, link, address=PAYEE, confirm=confirm[1])
    assert (done.status, "It is on its way" in done.body.decode()) == (200, True)
    assert 'name="address"' not in page(shop, link)
    again = claim_form(shop, link, address=PAYEE, confirm=confirm[1])
    assert (again.status, "used already" in again.body.decode()) == (200, False), "a reload is no second claim"
    late = claim_form(shop, link, address=OTHER, confirm=confirm[1])
    assert (late.status, "used already" in late.body.decode()) == (400, True)
    assert PAYEE in page(shop, link)


def test_a_wrong_address_is_told_on_the_page(shop: Shop) -> None:
    link = payout_link(shop)
    for typed, words in (
        ("", "<p>An address is needed, of the network of the link.</p>"),
        ('"><script>alert(1)</script>', "<p>Not an address of ethereum: must be 0x and 40 hexadecimal digits.</p>"),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "Not an address of ethereum"),
        (PAYEE.replace("A", "a", 1), "checksum"),
        (shop.hot().address, "<p>The address is a wallet of the service itself.</p>"),
    ):
        answer = claim_form(shop, link, address=typed)
        text = answer.body.decode()
        assert answer.status == 400, typed
        assert words in unescape(text), (typed, text)
        assert "<script>" not in text
        assert refused(claim(shop, link, address=typed))
    assert now(shop, link)["status"] == "awaiting_claim"
    assert shop.balance()["frozen"] == "0.4"


def test_the_confirmed_address_is_the_one_that_was_shown(shop: Shop) -> None:
    link, other = payout_link(shop), payout_link(shop)
    word = claim(shop, link, address=PAYEE).json["confirm"]
    assert "send the address alone first" in refused(claim(shop, link, address=OTHER, confirm=word))
    assert "send the address alone first" in refused(claim(shop, other, address=PAYEE, confirm=word))
    assert "send the address alone first" in refused(claim(shop, link, address=PAYEE, confirm="0" * 16))
    assert claim(shop, link, address=PAYEE, confirm=word).status == 200


def test_a_second_click_and_a_second_tab_pay_nothing_more(shop: Shop) -> None:
    link = payout_link(shop)
    first = claim(shop, link, address=PAYEE).json["confirm"]
    second = claim(shop, link, address=OTHER).json["confirm"]
    assert claim(shop, link, address=PAYEE, confirm=first).status == 200
    assert "pays once" in refused(claim(shop, link, address=PAYEE, confirm=first))
    assert "pays once" in refused(claim(shop, link, address=OTHER, confirm=second))
    assert "pays once" in refused(claim(shop, link, address=OTHER))
    shop.turn()
    shop.mine()
    shop.turn()
    assert (shop.paid(), shop.paid(OTHER)) == (4 * 10**17, 0)


def test_an_unclaimed_link_gives_the_money_back(shop: Shop) -> None:
    link = payout_link(shop, expiresIn=600)
    word = claim(shop, link, address=PAYEE).json["confirm"]
    assert shop.post("/v1/sandbox/clock", {"advance": 540}).status in (200, 201)
    assert status(shop, link).json["status"] == "awaiting_claim"
    shop.post("/v1/sandbox/clock", {"advance": 60})
    assert status(shop, link).json["status"] == "expired", "from that moment on, whatever the poll does"
    assert "has expired" in refused(claim(shop, link, address=PAYEE, confirm=word))
    assert "This link has expired" in page(shop, link)
    shop.turn()
    assert now(shop, link)["status"] == "expired"
    assert shop.balance() == {"available": "2", "frozen": "0", "pending": "0"}
    assert shop.told(link["id"]) == {"payout_link.created": 1, "payout_link.expired": 1}
    shop.turn()
    assert shop.available() == "2", "once"
    answer = shop.stack.call("DELETE", f"/v1/payout-links/{link['id']}", shop.key)
    assert answer.status == 400


def test_a_cancelled_link_pays_nobody(shop: Shop) -> None:
    link = payout_link(shop)
    word = claim(shop, link, address=PAYEE).json["confirm"]
    for _ in range(2):
        answer = shop.stack.call("DELETE", f"/v1/payout-links/{link['id']}", shop.key)
        assert (answer.status, answer.json["status"]) == (200, "cancelled")
    assert "was cancelled" in refused(claim(shop, link, address=PAYEE, confirm=word))
    assert "This link was cancelled" in page(shop, link)
    assert shop.available() == "2"


def test_a_claim_whose_payout_is_cancelled_stays_used(shop: Shop) -> None:
    link = payout_link(shop)
    assert claimed(shop, link, PAYEE).status == 200
    shop.stack.call("DELETE", f"/v1/payout-links/{link['id']}", shop.key)
    assert (now(shop, link)["status"], shop.available()) == ("cancelled", "2")
    assert "was cancelled" in refused(claim(shop, link, address=PAYEE))
    shop.turn()
    assert shop.told(link["id"]) == {"payout_link.created": 1, "payout_link.claimed": 1, "payout_link.cancelled": 1}


def test_a_grey_listed_address_waits_for_the_operator(shop: Shop) -> None:
    as_operator(shop, "POST", "/v1/addresses/grey-list", network="ethereum", address=PAYEE, reason="stolen")
    link = payout_link(shop)
    answer = claimed(shop, link, PAYEE)
    assert answer.json["status"] == "pending"
    assert "stolen" not in answer.body.decode()
    shop.turn()
    assert shop.withdrawal(now(shop, link)["withdrawalId"])["pending_reason"] == "approval"


def test_rules_of_the_merchant_are_not_told(shop: Shop) -> None:
    """Enforced after the link was made: it has no daily limit to count towards, so the whitelist holds."""
    link = payout_link(shop)
    shop.stack.call("PUT", "/v1/merchant/settings", shop.key, json={"whitelist_enforced": True})
    assert "can not be paid out now" in refused(claim(shop, link, address=PAYEE))
    body = {"network": "ethereum", "address": PAYEE, "label": "them"}
    assert shop.post("/v1/whitelist/addresses", body).status == 201
    assert claimed(shop, link, PAYEE).status == 200


def test_a_link_counts_towards_the_daily_limit_wherever_it_goes(shop: Shop) -> None:
    shop.stack.call("PUT", "/v1/merchant/settings", shop.key, json={"whitelist_enforced": True, "refundDailyLimitUSD": "1000000"})
    link = payout_link(shop)
    assert claimed(shop, link, OTHER).status == 200


def test_unknown_links_say_nothing(shop: Shop) -> None:
    link = payout_link(shop)
    token = page_of(link).rpartition("/")[2]
    for other in ("A" * 43, token[:-1], token + "A", token.swapcase(), "..%2f..", "%00", "x" * 300):
        for path in (f"/v1/claim/{other}", f"/v1/claim/{other}/status"):
            answer = shop.stack.call("GET", path)
            assert answer.status == 404, (path, answer.body)
        assert shop.stack.call("POST", f"/v1/claim/{other}", json={"address": PAYEE}).status == 404
    assert status(shop, link).json["status"] == "awaiting_claim"


def test_a_refund_with_an_address_has_no_page(shop: Shop) -> None:
    found = refund(shop, paid_invoice(shop), address=PAYEE)
    assert found["claimUrl"] is None
    assert list(services().store.every(ClaimLink)) == []


def test_nothing_stored_opens_a_link(shop: Shop) -> None:
    link = payout_link(shop, description="A prize")
    token = page_of(link).rpartition("/")[2]
    claimed(shop, link, PAYEE)
    shop.turn()
    for table in ("records", "events", "work", "ledger"):
        name = services().settings.table(table)
        items = services().client("dynamodb").scan(TableName=name)["Items"]
        assert not any(token in str(item) for item in items), table
    (record,) = services().store.every(ClaimLink)
    assert (len(record.hash), record.refund_id) == (64, link["id"])


def test_a_stranger_asks_no_more_than_others(shop: Shop) -> None:
    clock = services().clock
    clock.shift_ms -= clock.now_ms() % 60_000  # a minute begins: all are counted in this one
    answers = [shop.stack.call("GET", "/v1/claim/" + "A" * 43 + "/status", source_ip="203.0.113.9") for _ in range(LIMIT + 1)]
    assert [answers[0].status, answers[-1].status] == [404, 429]
    assert "retry-after" in answers[-1].headers


def test_hostile_claims_make_no_fault(shop: Shop) -> None:
    link = payout_link(shop)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"\xff\xfe", b"address=%00", b"address=%ff%fe", b"address=1&address=2", b"a" * 5000, b"=&=&" * 100, b"x=y"):
        answer = shop.stack.call("POST", page_of(link), body=body, headers=kind)
        assert answer.status == 400, (body, answer.body)
    for sent in (
        {"address": 7},
        {"address": ["x"]},
        {"address": None, "confirm": "x"},
        {"address": PAYEE, "confirm": {}},
        {"x": 1},
    ):
        answer = shop.stack.call("POST", page_of(link), json=sent)
        assert answer.status == 400, (sent, answer.body)
    answer = shop.stack.call("POST", page_of(link), body=b"<x/>", headers={"Content-Type": "text/xml"})
    assert answer.status == 400
    assert now(shop, link)["status"] == "awaiting_claim"


def test_a_link_needs_money_that_is_there(shop: Shop) -> None:
    answer = shop.post("/v1/payout-links", {"network": "ethereum", "coin": "eth", "amount": "2.1"})
    assert (answer.status, answer.json["error"]["code"]) == (400, "INSUFFICIENT_BALANCE")
    payout_link(shop, "1.5")
    assert shop.ask("0.6").json["error"]["code"] == "INSUFFICIENT_BALANCE", "what is frozen is spent"
    assert list(services().store.every(Refund)) == []


def test_links_are_listed_without_their_secret(shop: Shop) -> None:
    made = [payout_link(shop, "0.1", description=f"prize {n}", metadata={"n": n}) for n in range(3)]
    claimed(shop, made[1], PAYEE)
    found = shop.get("/v1/payout-links")
    assert [each["id"] for each in found["data"]] == [each["id"] for each in reversed(made)]
    assert [each["status"] for each in found["data"]] == ["awaiting_claim", "pending", "awaiting_claim"]
    assert {each["claimUrl"] for each in found["data"]} == {None}
    assert found["data"][0]["metadata"] == {"n": 2}
    one = shop.get("/v1/payout-links", limit="1", **{"id": made[0]["id"]})
    assert [each["id"] for each in one["data"]] == [made[0]["id"]]
    other = shop.stack.call("GET", f"/v1/payout-links/{made[0]['id']}", shop.stack.keys["other_merchant_test"])
    assert other.status == 404
    refund_path = shop.stack.call("GET", f"/v1/refunds/{made[0]['id']}", shop.key)
    assert refund_path.status == 404
