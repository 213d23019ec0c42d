"""The page to pay on as a customer has it: in a real browser, on the running stack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.asking import Post, poster
from tests.support.browser import Browser

pytestmark = pytest.mark.browser

_STATE = "document.querySelector('.state').className"


@pytest.fixture
def post(service: dict[str, Any]) -> Post:
    return poster(service)


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """What the page asked for and what it complained of is looked at after every test."""
    browser.requests.clear()
    browser.complaints.clear()
    browser.size(1280, 900)
    yield browser
    browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    browser.tell("Emulation.setEmulatedMedia", features=[])
    assert browser.complaints == []
    assert {urlsplit(url).hostname for url in browser.requests} == {"127.0.0.1"}


def usdt(post: Post, amount: str = "129.9") -> Any:
    wanted = {"currency": "usdt", "network": "tron", "amount": amount, "description": "Order 1042: two pairs of shoes"}
    return post("/invoices", {**wanted, "redirectUrl": "https://shop.example/thanks"})


def pay(post: Post, invoice: Any, amount: str) -> None:
    post("/sandbox/deposits", {"network": "tron", "coin": "usdt", "address": invoice["address"], "amount": amount})


def is_open(page: Browser, invoice: Any) -> None:
    page.open(invoice["checkoutUrl"])
    page.wait(f"location.pathname.endsWith('{invoice['id']}') && document.getElementById('left')?.textContent.includes(':')")


def test_it_follows_the_payment_without_being_loaded_again(page: Browser, post: Post, tmp_path: Path) -> None:
    invoice = usdt(post)
    is_open(page, invoice)
    page.run("window.before = 'still here'")
    assert page.run(_STATE) == "state calm"
    assert page.run("document.getElementById('address').textContent") == invoice["address"]
    assert page.run("document.querySelector('.qr svg path').getBBox().width") > 20
    assert page.screenshot(tmp_path / "pending.png").stat().st_size > 20_000

    pay(post, invoice, "100")
    page.wait(_STATE, lambda tone: tone == "state warn")
    assert page.run("document.getElementById('send').textContent") == "29.9"
    pay(post, invoice, "29.9")
    page.wait(_STATE, lambda tone: tone in ("state busy", "state good"))
    assert not page.run("Boolean(document.getElementById('address'))")
    post("/sandbox/blocks", {"network": "tron", "count": 30})
    page.wait(_STATE, lambda tone: tone == "state good")
    assert page.run("document.querySelector('.info a.button').href") == "https://shop.example/thanks"
    assert page.run("document.title").endswith("Paid")
    assert page.run("window.before") == "still here"
    assert page.run("document.cookie + localStorage.length + sessionStorage.length") == "00"
    assert page.screenshot(tmp_path / "paid.png").stat().st_size > 10_000


def test_the_address_is_copied(page: Browser, post: Post, service: dict[str, Any]) -> None:
    invoice = usdt(post)
    page.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.tell("Emulation.setFocusEmulationEnabled", enabled=True)
    is_open(page, invoice)
    page.run("document.querySelector('[data-copy=address]').click()")
    page.wait("document.querySelector('[data-copy=address]').textContent === 'Copied'")
    assert page.run("navigator.clipboard.readText()") == invoice["address"]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.sweep)])
def test_it_looks_right_in_a_hand_by_day_and_by_night(page: Browser, post: Post, tmp_path: Path, scheme: str) -> None:
    page.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.size(390, 844, phone=True)
    is_open(page, usdt(post, "123456789012.345678"))
    page.screenshot(tmp_path / f"{scheme}.png")
    assert page.run("document.documentElement.scrollWidth") <= 390
    light = page.run("getComputedStyle(document.querySelector('.card')).backgroundColor === 'rgb(255, 255, 255)'")
    assert light == (scheme == "light")


def test_without_javascript_everything_needed_is_there(page: Browser, post: Post) -> None:
    invoice = usdt(post)
    page.tell("Emulation.setScriptExecutionDisabled", value=True)
    page.open(invoice["checkoutUrl"])
    page.wait(f"location.pathname.endsWith('{invoice['id']}') && document.readyState === 'complete'")
    text = page.run("document.body.innerText")
    for there in (invoice["address"], "129.9", "Tron", "59 minutes", "Waiting for your payment"):
        assert there in text
    assert "Copy" not in text, "a button that does nothing"
    assert page.run("document.querySelector('meta[http-equiv=refresh]')?.content") == "15"


def choosable(post: Post) -> Any:
    accept = [{"coin": "usdt", "network": "tron"}, {"coin": "btc", "network": "bitcoin"}]
    return post("/invoices", {"fiatAmount": "49.90", "fiatCurrency": "EUR", "accept": accept, "description": "Order 1043"})


@pytest.mark.parametrize("script", [False, True], ids=["without-script", "with-script"])
def test_a_coin_is_chosen_by_a_plain_form(page: Browser, post: Post, tmp_path: Path, script: bool) -> None:
    page.tell("Emulation.setScriptExecutionDisabled", value=not script)
    page.size(390, 844, phone=True)
    page.open(choosable(post)["checkoutUrl"])
    page.wait("document.querySelectorAll('form').length === 2")
    assert "49.90 EUR" in page.run("document.querySelector('.amount').innerText")
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.screenshot(tmp_path / "choosing.png").stat().st_size > 10_000
    page.run("document.querySelector('form button').click()")
    page.wait("Boolean(document.getElementById('address'))")
    address = page.run("document.getElementById('address').innerText")
    assert page.run("document.querySelectorAll('form').length") == 1, "the other coin can be chosen still"
    assert page.screenshot(tmp_path / "chosen.png").stat().st_size > 10_000
    if script:
        # The page that answers the form follows the payment as well.
        pay(post, {"address": address}, "60")
        page.wait(f"{_STATE}.includes('busy')")
        assert not page.run("Boolean(document.querySelector('form'))")
