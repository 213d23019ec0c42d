"""The pages for payers and payees in each language, width and scheme, by keyboard alone, and for people with a screen reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib.web.words import LANGUAGES, words
from tests.support.asking import ask
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import look

pytestmark = [pytest.mark.browser, pytest.mark.sweep]

_STATE = "document.querySelector('[data-part=state]').className"
_EUROS = {"fiatAmount": "1249.90", "fiatCurrency": "EUR", "description": "Order 1043: two pairs of shoes"}


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    browser.requests.clear()
    browser.complaints.clear()
    yield browser
    browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    browser.tell("Network.setExtraHTTPHeaders", headers={})
    look(browser)
    assert [said for said in browser.complaints if "400 (Bad Request)" not in said] == []
    assert {urlsplit(url).hostname for url in browser.requests if urlsplit(url).scheme != "data"} == {"127.0.0.1"}


@pytest.fixture
def invoice(service: dict[str, Any]) -> Callable[..., Any]:
    """An invoice of the merchant: over USDT on Tron, unless it is told otherwise."""

    def make(**terms: Any) -> Any:
        usual = {"currency": "usdt", "network": "tron", "amount": "1129.9", "redirectUrl": "https://shop.example/thanks"}
        return ask(service, "POST", "/invoices", terms if "fiatAmount" in terms else usual | terms)

    return make


def opened(page: Browser, url: str) -> None:
    page.open(url)
    page.wait(f"location.href === {json.dumps(url)} && document.documentElement?.classList.contains('js')")


def typed(page: Browser, words: str) -> None:
    """Search for a coin."""
    page.run("document.getElementById('query').focus(); document.getElementById('query').select()")
    page.tell("Input.insertText", text=words)


def sound(page: Browser, width: int) -> None:
    """It fits, and nobody stumbles over it."""
    assert page.run("document.documentElement.scrollWidth") <= width
    assert axe(page) == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_language_fits_a_screen_and_a_hand(
    page: Browser, invoice: Callable[..., Any], service: dict[str, Any], tmp_path: Path, lang: str
) -> None:
    page.tell("Network.setExtraHTTPHeaders", headers={"Accept-Language": lang})
    part, choice = invoice(), invoice(**_EUROS)
    paid = {"network": "tron", "coin": "usdt", "address": part["address"], "amount": "100"}
    ask(service, "POST", "/sandbox/deposits", paid)
    for name, url in (("part", part["checkoutUrl"]), ("choice", choice["checkoutUrl"])):
        for width, scheme in ((1280, "light"), (390, "dark")):
            look(page, width=width, scheme=scheme)
            opened(page, url)
            if name == "part":
                page.wait(_STATE, lambda tone: tone == "state warn")
            assert page.run("[document.documentElement.lang, document.dir]") == [lang, words(lang).direction]
            page.screenshot(tmp_path / f"{name}-{lang}-{width}.png")
            sound(page, width)


def test_the_choice_is_changed_after_a_part_payment(page: Browser, invoice: Callable[..., Any], service: dict[str, Any]) -> None:
    made = invoice(**_EUROS)
    opened(page, made["checkoutUrl"])
    typed(page, "tron usdt")
    page.run("document.querySelector('.offers form:not([hidden]) button').click()")
    address = page.wait("document.getElementById('address')?.textContent")
    page.wait("document.getElementById('lock')?.textContent.startsWith('(14:')")
    ask(service, "POST", "/sandbox/deposits", {"network": "tron", "coin": "usdt", "address": address, "amount": "500"})
    page.wait(_STATE, lambda tone: tone == "state warn")
    assert "500 USDT on Tron" in page.run("document.querySelector('[data-part=payments]').innerText")
    page.run("document.querySelector('.others').open = true")
    typed(page, "ltc")
    page.run("document.querySelector('.offers form:not([hidden]) button').click()")
    other = page.wait("document.getElementById('address')?.textContent", lambda now: now not in (None, address))
    rest = page.run("document.getElementById('send').textContent")
    ask(service, "POST", "/sandbox/deposits", {"network": "litecoin", "coin": "ltc", "address": other, "amount": rest})
    page.wait(_STATE, lambda tone: tone in ("state busy", "state good"))
    for network, blocks in (("tron", 30), ("litecoin", 10)):
        ask(service, "POST", "/sandbox/blocks", {"network": network, "count": blocks})
    page.wait(_STATE, lambda tone: tone == "state good")
    assert "1,249.90 EUR" in page.run("document.querySelector('.receipt').innerText")
    sound(page, 1280)


def test_a_new_quote_is_told_when_the_lock_ends(
    page: Browser, invoice: Callable[..., Any], service: dict[str, Any], tmp_path: Path
) -> None:
    made = invoice(**_EUROS)
    chosen = ask(service, "POST", f"/pay/{made['id']}/choice", {"coin": "eth", "network": "ethereum"})
    look(page)
    opened(page, made["checkoutUrl"])
    assert page.run("document.getElementById('send').textContent") == chosen["missing"]
    assert not page.run("document.getElementById('requoted').checkVisibility()")
    ask(service, "POST", "/sandbox/rates", {"coin": "eth", "fiat": "EUR", "value": "1000"})
    ask(service, "POST", "/sandbox/clock", {"advance": 901})
    page.wait("document.getElementById('send').textContent", lambda now: now == "1.2499")
    assert page.run("document.getElementById('requoted').checkVisibility()")
    page.wait("document.getElementById('lock').textContent.startsWith('(14:')")
    page.screenshot(tmp_path / "requoted.png")
    sound(page, 1280)
    ask(service, "POST", "/sandbox/rates", {"coin": "eth", "fiat": "EUR", "value": None})


def test_by_keyboard_alone(page: Browser, invoice: Callable[..., Any]) -> None:
    """Search, choose, copy: in the order of the page, each with its focus to be seen."""

    def press(key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            page.tell("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    def reached(script: str) -> None:
        for _ in range(12):
            press("Tab", 9)
            if page.run(f"document.activeElement.matches({json.dumps(script)})"):
                assert page.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        raise AssertionError(f"never at {script}")

    look(page)
    opened(page, invoice(**_EUROS)["checkoutUrl"])
    reached("#query")
    page.tell("Input.insertText", text="bnb smart usdc")
    page.wait("document.querySelectorAll('.offers form:not([hidden])').length === 1")
    reached(".offer")
    press("Enter", 13, "\r")
    page.wait("document.getElementById('address')?.textContent.startsWith('0x')")
    reached("a.button")
    reached("[data-copy=send]")
    reached("[data-copy=address]")
    reached("summary")


def test_without_a_script_a_search_is_a_form(page: Browser, invoice: Callable[..., Any]) -> None:
    look(page, width=390)
    url = invoice(**_EUROS)["checkoutUrl"]
    page.tell("Emulation.setScriptExecutionDisabled", value=True)
    page.open(url)
    page.wait("document.readyState === 'complete' && Boolean(document.getElementById('query'))")
    assert page.run("document.querySelector('.search button').checkVisibility()")
    page.run("document.getElementById('query').value = 'tron'; document.getElementById('search').submit()")
    page.wait("location.search === '?search=tron' && document.readyState === 'complete'")
    assert page.run(
        "[...document.querySelectorAll('.offers form:not([hidden])')].map(each => each.querySelector('b').innerText)"
    ) == [
        "TRX",
        "USDT",
    ]
    page.run("document.querySelector('.offers form:not([hidden]) button').click()")
    page.wait("Boolean(document.getElementById('address'))")


def test_links_and_claims(page: Browser, service: dict[str, Any]) -> None:
    look(page, width=390, scheme="dark")
    sold = ask(
        service,
        "POST",
        "/payment-links",
        {"name": "Two pairs of shoes", "fiatAmount": {"min": 5, "max": 50}, "fiatCurrency": "EUR"},
    )
    for url in (
        sold["url"],
        f"{service['base_url']}/link/plk_1",
        f"{service['base_url']}/claim/x",
        f"{service['base_url']}/pay/inv_1",
    ):
        page.open(url)
        page.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")
        sound(page, 390)
    page.complaints[:] = [said for said in page.complaints if "404 (Not Found)" not in said]
