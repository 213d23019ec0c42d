"""The frame of portal and console as a person has it: signing in and out, the menu, the keyboard, what may not be seen."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import fill, go, look, press, press_key, signed_in, text, wait_for

pytestmark = pytest.mark.browser


def test_signing_in_shows_what_the_key_may_see_and_signing_out_forgets_it(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test")
    assert page.run("document.activeElement.tagName + document.title") == "H1Overview · Portal"
    assert page.run("Object.values(sessionStorage).includes(" + json.dumps(service["keys"]["client_test"]) + ")")
    assert axe(page) == []
    go(page, "/key")
    assert "See balances" in text(page) and page.run("document.activeElement.textContent") == "This key"
    # What is loaded again goes on, and what is signed out is forgotten.
    page.open(page.run("location.href.replace('#', '?again#')"))
    wait_for(page, "This key")
    press(page, "Sign out")
    wait_for(page, "You are signed out")
    assert page.run("sessionStorage.length") == 0
    key = service["keys"]["client_test"]
    assert not [url for url in page.requests if key in url], "no secret in a URL"


def late(page: Browser, minutes: int) -> None:
    """The page's clock, so many minutes on."""
    page.run(f"Date.now = ((plain) => () => plain() + {minutes} * 60_000)(Date.now)")


@pytest.mark.sweep
def test_nobody_there_for_half_an_hour_is_signed_out(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test", "/key")
    late(page, 29)
    page.run("dispatchEvent(new Event('pageshow'))")
    assert "See balances" in text(page)
    # A touch counts, and the half hour begins anew.
    page.tell("Input.dispatchMouseEvent", type="mousePressed", x=600, y=400, button="left", clickCount=1)
    late(page, 29)
    page.run("dispatchEvent(new Event('pageshow'))")
    assert "See balances" in text(page)
    late(page, 2)
    page.run("dispatchEvent(new Event('pageshow'))")
    assert "Nobody touched this page for 30 minutes" in wait_for(page, "You were signed out")
    assert page.run("sessionStorage.length") == 0
    # A touch after the time does not bring the key back, and the address is still the one to go on with.
    assert page.run("location.hash") == "#/key"


@pytest.mark.sweep
def test_a_key_that_is_revoked_signs_out_at_its_next_use(page: Browser, service: dict[str, Any]) -> None:
    made = ask(service, "POST", "/api-keys", {"name": "Short-lived", "permissions": ["balances:read"]})["data"]
    signed_in(page, {**service, "keys": {"made": made["key"]}}, "made")
    # What it may not do is not shown, and its address says so.
    assert page.run("[...document.querySelectorAll('nav a')].map(a => a.textContent)") == ["Overview", "Balances"]
    go(page, "/invoices")
    assert "See invoices and payment links (invoices:read)" in wait_for(page, "This key may not see this page")
    ask(service, "DELETE", f"/api-keys/{made['key_id']}")
    go(page, "/")
    assert "This API key was revoked" in wait_for(page, "You were signed out")
    assert page.run("sessionStorage.length") == 0


@pytest.mark.sweep
def test_a_wrong_key_is_told_so_and_kept_nowhere(page: Browser, service: dict[str, Any]) -> None:
    page.open(f"{service['base_url']}/console")
    page.wait("document.querySelector('main.alone form') !== null")
    fill(page, {"API key": "nonsense"})
    press(page, "Sign in")
    wait_for(page, "does not look like an API key")
    fill(page, {"API key": "sk_test_0000000000000000"})
    press(page, "Sign in")
    wait_for(page, "does not know this key")
    fill(page, {"API key": service["keys"]["client_test"]})
    press(page, "Sign in")
    wait_for(page, "it takes admin keys alone")
    assert page.run("sessionStorage.length") == 0


@pytest.mark.sweep
def test_the_keyboard_alone_is_enough(page: Browser, service: dict[str, Any]) -> None:
    """From signing in to the menu of a phone: every stop is where one looks for it, and can be seen."""
    page.tell("Emulation.setFocusEmulationEnabled", enabled=True)
    page.open(f"{service['base_url']}/portal")
    page.wait("document.activeElement?.name === 'key'")
    page.tell("Input.insertText", text=service["keys"]["client_test"])
    press_key(page, "Enter")
    page.wait("document.activeElement?.tagName === 'H1' && document.querySelector('.frame') !== null")
    page.run("document.activeElement.blur()")
    press_key(page, "Tab")
    assert page.run("document.activeElement.className") == "skip"
    assert page.run("getComputedStyle(document.activeElement).top") == "8px", "the skip link shows itself"
    press_key(page, "Enter")
    page.wait("document.activeElement?.tagName === 'H1'")
    look(page, width=390)
    page.run("document.activeElement.blur(); document.querySelector('.skip').focus()")
    press_key(page, "Tab", 2)
    assert page.run("document.activeElement.textContent") == "Menu"
    press_key(page, "Enter")
    page.wait("document.querySelector('#menu.open') !== null")
    press_key(page, "Tab")
    assert page.run("document.activeElement.type") == "search"
    press_key(page, "Escape")
    page.wait("document.querySelector('#menu.open') === null && document.activeElement.textContent === 'Menu'")


@pytest.mark.sweep
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_frame_looks_right(page: Browser, service: dict[str, Any], tmp_path: Path, width: int, scheme: str) -> None:
    look(page, width=width, scheme=scheme)
    page.open(f"{service['base_url']}/portal")
    page.wait("document.querySelector('main.alone form') !== null")
    assert axe(page) == []
    page.screenshot(tmp_path / "sign-in.png")
    signed_in(page, service, "client_test")
    for path in ("/", "/key", "/search?q=inv_01jd2w3x4y5z6a7b8c9d0e1f2g", "/nowhere"):
        go(page, path)
        page.screenshot(tmp_path / f"{path.strip('/').partition('?')[0] or 'overview'}.png")
        assert page.run("document.documentElement.scrollWidth") <= width, path
        assert axe(page) == [], path


@pytest.mark.sweep
def test_search_finds_what_is_pasted_and_says_what_it_looked_for(page: Browser, service: dict[str, Any]) -> None:
    wanted = {"currency": "eth", "amount": "0.05", "externalId": "order <b>7</b>"}
    invoice = ask(service, "POST", "/invoices", wanted)
    signed_in(page, service, "client_test", "/search")
    own = f"#/invoices/{invoice['id']}"
    for pasted, place in ((invoice["id"], own), (invoice["address"], "#/addresses/addr_"), (wanted["externalId"], own)):
        go(page, "/search?" + urllib.parse.urlencode({"q": pasted}))
        page.wait("document.querySelector('main li a')?.hash ?? ''", lambda found, place=place: found.startswith(place))
        assert "Looked for:" in text(page)
    key = service["keys"]["client_test"]
    page.run(f"document.querySelector('.side input').value = {json.dumps(key)}")
    page.run("document.querySelector('.side form.search button').click()")
    page.wait("document.querySelector('.side .search .wrong').textContent.includes('That was an API key')")
    assert key not in page.run("location.href") and page.run("document.querySelector('.side input').value") == ""
    assert not [url for url in page.requests if key in url]


@pytest.mark.sweep
def test_a_page_in_a_frame_shows_nothing(page: Browser, service: dict[str, Any]) -> None:
    """Clickjacking: the browser refuses to draw it, also beside a page of the same origin."""
    page.open(f"{service['base_url']}/openapi/")
    page.wait("document.body?.dataset.ready")
    page.run(f"document.body.append(Object.assign(document.createElement('iframe'), {{ src: '{service['base_url']}/portal' }}))")
    page.wait("(() => { try { return document.querySelector('iframe').contentDocument === null; } catch { return true; } })()")
    page.complaints[:] = [said for said in page.complaints if "frame-ancestors" not in said and "default-src" not in said]
