"""Every state of the pages in every language: what is said, that it is whole, and that nobody's text becomes anything else."""

from __future__ import annotations

import gzip
import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from chalicelib.web import checkout, claim, files, link, parts
from chalicelib.web.parts import Frame
from chalicelib.web.words import LANGUAGES, words

EVIL = "</p><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e &amp; {id}"
HASH = "5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
ADDRESS = "TSBDuABDsBpKwEWtrqQVKe2BgKyMmr42UY"
NAMES = {"tron": "Tron", "bitcoin": "Bitcoin", "x": EVIL}
LOGO = "data:image/png;base64,iVBORw0KGgo="
OPEN: dict[str, Any] = {
    "amount": "1299.9",
    "received": "0",
    "unconfirmed": "0",
    "missing": "1299.9",
    "currency": "usdt",
    "symbol": "USDT",
    "network": "tron",
    "address": ADDRESS,
    "status": "pending",
    "createdAt": "2026-05-01T11:00:00.000Z",
    "expiresAt": "2026-05-01T12:00:00.000Z",
    "expiresIn": 3540,
    "confirmations": 0,
    "requiredConfirmations": 19,
    "usualSeconds": 57,
    "payments": [],
    "refunds": [],
    "delays": [],
}
TO_PAY = {"paymentUri": f"tron:{ADDRESS}?amount=1299.9"}
PAYMENT = {
    "txId": HASH,
    "coin": "usdt",
    "symbol": "USDT",
    "network": "tron",
    "amount": "100",
    "confirmations": 3,
    "requiredConfirmations": 19,
    "seenAt": "2026-05-01T11:30:00.000Z",
    "explorerUrl": f"https://tronscan.org/#/transaction/{HASH}",
}
REFUND = {"coin": "usdt", "symbol": "USDT", "network": "tron", "amount": "10.1", "createdAt": "2026-05-01T12:00:00.000Z"}
RATE = {"fiat": "EUR", "value": "0.91", "at": "2026-05-01T11:00:00.000Z", "source": "kraken"}
OFFERS = [
    {"coin": "btc", "network": "bitcoin", "symbol": "BTC", "usualSeconds": 3600, "usualFee": "0.77"},
    {"coin": "usdt", "network": "tron", "symbol": "USDT", "usualSeconds": 57, "usualFee": "0.93"},
]
CHOOSING = {
    "accept": OFFERS,
    "choices": [],
    "fiatAmount": "1199.00",
    "fiatCurrency": "EUR",
    "rate": None,
    "lockedUntil": None,
    "paidPercent": "0",
}
UNCHOSEN = CHOOSING | dict.fromkeys(("amount", "missing", "currency", "symbol", "network", "address"))
CHOSEN = CHOOSING | {"rate": RATE, "lockedUntil": "2026-05-01T11:15:00.000Z", "lockedIn": 840}
STATES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "waiting": (TO_PAY, ("Waiting for your payment", "1,299.9", ADDRESS, 'id="send" dir="ltr">1299.9<', "Usually confirmed in")),
    "choosing": (UNCHOSEN, ("Choose how to pay", "1,199.00", "Cheapest", "Quickest", "fee about 0.77 EUR", "about 1 minute")),
    "chosen": (CHOSEN | TO_PAY, ("1 USDT = 0.91 EUR", "Rate kept until", "11:15 UTC", "Pay with another coin", 'data-lock="840"')),
    "no-rate": (CHOSEN, ("There is no rate for USDT now", '<details class="others" open>')),
    "seen": (
        {"status": "confirming", "unconfirmed": "1299.9", "payments": [PAYMENT | {"confirmations": 0}]},
        (
            "Your payment has been seen",
            "Seen, waits for its first block",
            f'href="https://tronscan.org/#/transaction/{HASH}"',
        ),
    ),
    "confirming": (
        {"status": "confirming", "confirmations": 3, "payments": [PAYMENT]},
        ("3 of 19 confirmations", 'value="3" max="19"'),
    ),
    "paid": (
        {"status": "completed", "payments": [PAYMENT | {"confirmations": 19}], "fiatAmount": "1199.00", "fiatCurrency": "EUR"},
        (
            "Paid",
            "Receipt",
            "Print the receipt",
            "Confirmed",
            "inv_1",
            "1,199.00 EUR",
        ),
    ),
    "part": (
        TO_PAY | {"status": "partial", "missing": "1199.9", "unconfirmed": "100", "payments": [PAYMENT]},
        (
            "1,199.9 USDT are missing",
            "Seen, not confirmed",
            'id="send" dir="ltr">1199.9<',
        ),
    ),
    "over": ({"status": "completed", "overpaid": "10.1", "payments": [PAYMENT]}, ("10.1 USDT more than was asked",)),
    "late": ({"status": "expired", "late": "5"}, ("5 USDT came after the time was over",)),
    "late-cancelled": ({"status": "cancelled", "late": "5"}, ("5 USDT came after the shop had cancelled",)),
    "expired": ({"status": "expired", "again": "link/plk_1"}, ("The time to pay is over", "Begin anew")),
    "expired-part": (
        {"status": "expired", "received": "100", "payments": [PAYMENT | {"confirmations": 19}]},
        ("A part of the price has arrived",),
    ),
    "time-over": ({"expiresIn": 0}, ("What was sent in time still counts",)),
    "cancelled": ({"status": "cancelled", "cancelUrl": "https://shop.example/basket"}, ("Cancelled", "Back to shop.example")),
    "by-hand": ({"status": "on-hold"}, ("Status: on-hold",)),
    "refund-by-link": (
        {
            "status": "completed",
            "overpaid": "10.1",
            "refunds": [REFUND | {"status": "awaiting_claim", "by": "link", "expiresAt": "2026-05-08T12:00:00.000Z"}],
        },
        (
            "by a link of your own",
            "never shown on this page",
            "It is sent by: <bdi>a way of the shop's own",
            "2026-05-08 12:00 UTC",
        ),
    ),
    "refund-by-address": (
        {"status": "completed", "refunds": [REFUND | {"status": "processing", "by": "address", "txId": HASH}]},
        ("The refund is being paid", "the address that the shop has named"),
    ),
    **{
        f"refund-{status}": ({"status": "completed", "refunds": [REFUND | {"status": status, "by": "link"}]}, (said,))
        for status, said in (
            ("pending", "begins soon"),
            ("completed", "The refund was paid"),
            ("failed", "could not be paid"),
            ("expired", "has expired"),
            ("cancelled", "withdrawn this refund"),
        )
    },
    "halted": (
        CHOSEN | TO_PAY | {"delays": [{"network": "tron", "delay": "halted"}]},
        (
            "Tron is paused here",
            "do not send it twice",
            "You may choose another network",
        ),
    ),
    "behind": (TO_PAY | {"delays": [{"network": "tron", "delay": "behind"}]}, ("Tron is slow at the moment",)),
    "paused-offer": (
        UNCHOSEN | {"accept": [OFFERS[0] | {"delay": "halted"}, OFFERS[1]]},
        ('<button class="offer" disabled>', "paused now"),
    ),
    "misdirected": (TO_PAY | {"misdirected": [{"amount": "7", "coin": "dai", "network": "bitcoin"}]}, ("7 DAI came on Bitcoin",)),
}
SOME_LANGUAGES = [lang if lang in ("en", "ar") else pytest.param(lang, marks=pytest.mark.sweep) for lang in LANGUAGES]
"""One for each direction; `make sweep` has time for all."""
_VOID = {"meta", "base", "link", "img", "input", "br", "path", "circle"}
_KNOWN = {
    "html",
    "head",
    "title",
    "body",
    "main",
    "header",
    "section",
    "p",
    "div",
    "span",
    "bdi",
    "b",
    "i",
    "small",
    "h1",
    "h2",
    "dl",
    "dt",
    "dd",
    "ul",
    "li",
    "code",
    "time",
    "a",
    "button",
    "form",
    "label",
    "details",
    "summary",
    "progress",
    "svg",
    "noscript",
    "script",
    "style",
} | _VOID


class Reader(HTMLParser):
    """Reads a page as a browser does, and refuses whatever ours never has."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _KNOWN, tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("style", "srcdoc"), (tag, name)
            if name in ("href", "src", "action"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag == "script":
            assert dict(attrs).keys() == {"type", "src"}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [] and len(set(reader.ids)) == len(reader.ids)
    for target in reader.links:
        assert re.match(
            r"(openapi/[a-z-]+\.[0-9a-f]{12}\.|pay/|link/|claim/|https?://|tron:|data:image/png;base64,|/api/$)", target
        ), target
    return reader


def frame(lang: str = "en", **shop: str) -> Frame:
    return Frame("/api", words(lang), False, parts.shop_of({"shop": shop}))


def shown(state: str, **more: Any) -> dict[str, Any]:
    return {**OPEN, "description": "Order 1042", **STATES[state][0], **more}


@pytest.mark.parametrize("state", STATES)
def test_a_state_says_what_is_the_case(state: str) -> None:
    text = checkout.page(frame(), checkout.Visit("inv_1", shown(state), "{}", NAMES))
    read(text)
    plain = " ".join(html.unescape(text).split())
    for said in STATES[state][1]:
        assert said in plain, said
    assert ("Open in wallet" in text) == ("paymentUri" in STATES[state][0])
    assert ("http-equiv" in text) == (shown(state)["status"] not in ("completed", "expired", "cancelled"))
    assert ("overpaid" in STATES[state][0] and "more than was asked" not in text) == (state == "refund-by-link")


def test_all_of_the_price_is_asked_for_only_while_nothing_came_in() -> None:
    for state, label in (("waiting", "Pay"), ("part", "Price"), ("paid", "Price"), ("expired", "Price")):
        text = checkout.page(frame(), checkout.Visit("inv_1", shown(state), "{}", NAMES))
        assert f'<p class="label" data-part="label">{label}' in text, state


@pytest.mark.parametrize("lang", SOME_LANGUAGES)
def test_every_state_is_whole_in_every_language(lang: str) -> None:
    """Also with hostile text wherever a merchant, a payer, a token's contract or an explorer's setting can put some."""
    evil: dict[str, Any] = {"description": EVIL, "redirectUrl": f"https://x.example/{EVIL}", "cancelUrl": f"javascript:{EVIL}"}
    for state in STATES:
        plain = read(checkout.page(frame(lang), checkout.Visit("inv_1", shown(state), "{}", NAMES)))
        assert not any(re.search(r"\{\w+\}", text) for text in plain.words), state
        hostile = shown(state, **evil) | {"symbol": EVIL, "network": "x", "again": "link/x"}
        hostile["payments"] = [{**PAYMENT, "symbol": EVIL, "network": "x", "txId": EVIL, "explorerUrl": f"javascript:{EVIL}"}]
        hostile["delays"], hostile["currency"] = [{"network": "x", "delay": "behind"}], None
        if "accept" in hostile:
            hostile |= {"accept": [{**OFFERS[0], "coin": EVIL, "network": "x", "symbol": EVIL}] * 9}
        visit = checkout.Visit(EVIL.replace("/", ""), hostile, EVIL, NAMES, EVIL, EVIL)
        assert "alert(1)" in "".join(read(checkout.page(frame(lang, name=EVIL, logo=f"{LOGO}{EVIL}", color=EVIL), visit)).words)


@pytest.mark.parametrize("lang", SOME_LANGUAGES)
def test_claims_and_links_are_whole_in_every_language(lang: str) -> None:
    base = {
        "amount": "10.1",
        "symbol": EVIL,
        "network": "tron",
        "description": EVIL,
        "expiresAt": "2026-05-08T12:00:00.000Z",
        "address": EVIL,
    }
    for status in ("awaiting_claim", "pending", "processing", "completed", "failed", "expired", "cancelled"):
        for typed in (claim.Typed(), claim.Typed(EVIL, None, EVIL), claim.Typed(EVIL, "word")):
            record = base | {"status": status, "transactionHash": HASH, "explorerUrl": f"data:{EVIL}"}
            assert "alert(1)" in "".join(read(claim.page(frame(lang, name=EVIL), "token", record, EVIL, typed)).words)
    for status in ("active", "sold_out", "expired"):
        for price in (
            {"amount": {"min": "5", "max": "5000"}, "currency": "usdt", "network": EVIL},
            {"fiatAmount": "49.90", "fiatCurrency": "EUR"},
        ):
            sold = {"name": EVIL, "description": EVIL, "status": status, **price}
            assert "alert(1)" in "".join(read(link.page(frame(lang), "plk_1", sold, link.Typed(EVIL, EVIL))).words)
    for page in (checkout.unknown(frame(lang)), claim.unknown(frame(lang)), link.unknown(frame(lang))):
        read(page)


def test_the_readers_language_and_direction() -> None:
    text = checkout.page(frame("ar"), checkout.Visit("inv_1", shown("part"), "{}", NAMES))
    assert '<html lang="ar" dir="rtl">' in text and f'<code id="address" dir="ltr">{ADDRESS}</code>' in text
    german = checkout.page(frame("de"), checkout.Visit("inv_1", shown("waiting"), "{}", NAMES))
    assert "1.299,9" in german and 'id="send" dir="ltr">1299.9<' in german, "what is copied stays as wallets take it"


def test_the_shop_is_shown() -> None:
    own = frame(name="Schuhhaus Müller", logo=LOGO, color="#ffcc00")
    text = checkout.page(own, checkout.Visit("inv_1", shown("waiting"), "{}", NAMES))
    read(text)
    assert f'<img class="logo" src="{LOGO}" alt=""' in text and "Schuhhaus Müller" in text
    (style,) = re.findall(r"<style>(.*?)</style>", text)
    assert f"'sha256-{parts._hash(style)}'" in parts.policy(own.shop) and "unsafe" not in parts.policy(own.shop)
    assert "<header" not in checkout.page(frame(), checkout.Visit("inv_1", shown("waiting"), "{}", NAMES))


def test_searching_hides_the_others_without_a_script() -> None:
    many = [{**OFFERS[1], "coin": f"c{n}", "symbol": f"C{n}"} for n in range(8)]
    record = shown("choosing", accept=[OFFERS[0], *many])
    text = checkout.page(frame(), checkout.Visit("inv_1", record, "{}", NAMES, "TRON c3"))
    assert text.count("hidden><input") == 8 and 'value="TRON c3"' in text and 'id="none" role="status" hidden' in text
    assert 'data-text="c3 c3 tron tron"><input' in text and "http-equiv" not in text, "nothing is loaded while somebody reads"
    nothing = checkout.page(frame(), checkout.Visit("inv_1", record, "{}", NAMES, "doge"))
    assert nothing.count("hidden><input") == 9 and 'id="none" role="status">No coin matches' in nothing


def test_the_page_is_small() -> None:
    """30 KiB and five requests before address and QR code, the shop's logo apart; and nothing that the page waits for is data."""
    coins = [{**OFFERS[n % 2], "coin": f"coin{n}", "symbol": f"COIN{n}", "usualFee": f"{n}.17"} for n in range(22)]
    for lang in ("en", "ru"):
        record = shown("chosen", accept=coins, payments=[PAYMENT], description="Two pairs of shoes, size 42, in black")
        text = checkout.page(frame(lang, name="Schuhhaus Müller", color="#ffcc00"), checkout.Visit("inv_1", record, "{}", NAMES))
        named = set(re.findall(r'(?:src|href)="openapi/([^"]+)"', text))
        loaded = named | {file for script in checkout.SCRIPTS for file in files.needed(script)}
        sent = [text, *(file.text for name in sorted(loaded) if (file := files.by_name(name)) is not None)]
        sizes = [len(gzip.compress(each.encode(), 6)) for each in sent]
        assert len(sent) == 1 + len(loaded) <= 5, sorted(loaded)
        assert sum(sizes) <= 30 * 1024, (lang, sizes)


def test_no_coin_is_called_quickest_that_is_slower_than_the_chosen_one() -> None:
    third = {"coin": "eth", "network": "x", "symbol": "ETH", "usualSeconds": 144, "usualFee": "0.9"}
    text = checkout.page(frame(), checkout.Visit("inv_1", shown("chosen", accept=[*OFFERS, third]), "{}", NAMES))
    assert "Cheapest" in text and "Quickest" not in text
