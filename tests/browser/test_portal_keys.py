"""API keys and activity in the portal: a key is made, shown once, used, changed, rotated, revoked; and who did it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import ONCE, fill, go, look, press, press_key, signed_in, stored, text, wait_for

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)> {{7*7}}"


def generated(page: Browser, name: str, **more: str) -> str:
    """Generate a key in the form that is open, and put it away; the key."""
    fill(page, {"Name": name, "What it may do": "full"} | {label.replace("_", " "): value for label, value in more.items()})
    press(page, "Generate key")
    wait_for(page, "Copy your new key now")
    return stored(page)


def sign_in_again(page: Browser, key: str) -> None:
    press(page, "Sign out")
    page.wait("document.querySelector('main.alone form') !== null")
    fill(page, {"API key": key})
    press(page, "Sign in")
    page.wait("document.querySelector('.frame') !== null")


def test_a_test_key_is_made_with_a_production_key_used_and_revoked(page: Browser, service: dict[str, Any]) -> None:
    live = service["keys"]["client_live"]
    signed_in(page, service, "client_live", "/settings/keys")
    press(page, "Generate New Key")
    wait_for(page, "What it may do")
    made = generated(page, "Webshop", Environment="test")
    assert made.startswith("sk_test_")
    assert "What it did" in wait_for(page, "What it did")
    assert made not in page.run("document.documentElement.innerHTML + JSON.stringify(sessionStorage)")
    sign_in_again(page, made)
    wait_for(page, "Webshop")
    ask(service, "POST", "/addresses", {"network": "ethereum"}, made)
    go(page, "/settings/activity")
    assert "Made an address" in text(page)
    (found,) = ask(service, "GET", "/api-keys?type=test&status=active&name=Webshop", live)["data"]
    ask(service, "DELETE", f"/api-keys/{found['key_id']}", key=live)
    page.run("location.hash = '#/settings/keys'")
    assert "was revoked" in wait_for(page, "You were signed out")
    assert page.run("sessionStorage.length") == 0
    assert not [url for url in page.requests if made in url or live in url], "no secret in a URL"


@pytest.mark.sweep
def test_each_page_is_fit_for_all_widths_and_screen_readers(page: Browser, service: dict[str, Any], tmp_path: Any) -> None:
    signed_in(page, service, "client_live", "/settings/keys")
    (own,) = ask(service, "GET", "/api-keys?status=active&limit=1", "client_live")["data"]
    for path in (
        "/settings/keys",
        "/settings/keys/new",
        f"/settings/keys/{own['key_id']}",
        "/settings/keys/key_none",
        "/settings/activity",
    ):
        go(page, path)
        for width, scheme in ((1280, "light"), (390, "dark"), (390, "light")):
            look(page, width=width, scheme=scheme)
            assert axe(page) == [], (path, width, scheme)
            assert page.run("document.documentElement.scrollWidth") <= width, (path, width)
            page.screenshot(tmp_path / f"{path.strip('/').replace('/', '-')}-{width}-{scheme}.png")


@pytest.mark.sweep
def test_what_is_shown_once_survives_a_step_back(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test", "/settings/keys/new")
    wait_for(page, "What it may do")
    fill(page, {"Name": "Kept", "What it may do": "read-only"})
    press(page, "Generate key")
    wait_for(page, "Copy your new key now")
    made = page.run(ONCE)
    assert axe(page) == []
    press_key(page, "Escape")
    assert page.run(ONCE) == made, "Escape does not lose it"
    page.run("history.back()")
    page.wait(ONCE, lambda found: found == made)
    go(page, "/invoices")
    assert page.run(ONCE) == made, "the frame holds it over every page"
    press(page, "I have stored it")
    assert page.run("document.activeElement.textContent") == "Not yet", "a second Enter loses nothing"
    press(page, "Not yet")
    assert page.run(ONCE) == made
    press(page, "I have stored it")
    press(page, "Yes, close it")
    go(page, "/settings/keys/new")
    assert page.run(ONCE) is None


@pytest.mark.sweep
def test_a_hostile_name_is_text_and_its_key_is_changed_and_revoked(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test", "/settings/keys/new")
    wait_for(page, "What it may do")
    fill(page, {"What it may do": "chosen"})
    wait_for(page, "See balances")
    fill(page, {"See balances": True, "Name": HOSTILE, "IP addresses that may use it": "10.0.0.300"})
    press(page, "Generate key")
    assert "“10.0.0.300” must be an IPv4 or IPv6 address" in wait_for(page, "must be an IPv4")
    fill(page, {"IP addresses that may use it": "203.0.113.0/24", "Requests a minute": "7"})
    press(page, "Generate key")
    wait_for(page, "Copy your new key now")
    press(page, "I have stored it")
    press(page, "Yes, close it")
    assert HOSTILE in wait_for(page, "203.0.113.0/24")
    assert page.run("document.title").startswith(HOSTILE)
    assert page.run("document.querySelectorAll('main img').length") == 0
    press(page, "Change")
    wait_for(page, "Save changes")
    fill(page, {"IP addresses that may use it": "", "Requests a day": "70"})
    press(page, "Save changes")
    shown = wait_for(page, "Changed. It counts from the next request on.")
    assert "Any address" in shown and "7 a minute, 70 a day" in shown
    press(page, "Revoke")
    wait_for(page, "to go on")
    assert page.run("[...document.querySelectorAll('dialog button')].find(b => b.textContent.trim() === 'Revoke key').disabled")
    fill(page, {f"Type {HOSTILE} to go on": HOSTILE})
    press(page, "Revoke key")
    assert "Revoked" in wait_for(page, "refused from now on")
    assert not page.run("[...document.querySelectorAll('main button')].some(b => b.textContent.trim() === 'Revoke')")
    press(page, "What it did")
    wait_for(page, "Nothing matches")
    go(page, "/settings/activity")
    rows = wait_for(page, "Revoked an API key")
    assert "Changed an API key" in rows and "Made an API key" in rows


@pytest.mark.sweep
def test_who_rotates_the_own_key_goes_on_with_the_new_one(page: Browser, service: dict[str, Any]) -> None:
    key = ask(service, "POST", "/api-keys", {"name": "Mine", "permissions": ["full"]})["data"]
    signed_in(page, {**service, "keys": {"own": key["key"]}}, "own", f"/settings/keys/{key['key_id']}")
    press(page, "Rotate")
    wait_for(page, "The old key ends")
    fill(page, {"The old key ends": "0"})
    press(page, "Make the new key")
    wait_for(page, "Copy your new key now")
    made = page.run(ONCE)
    press(page, "I have stored it")
    press(page, "Yes, close it")
    wait_for(page, "Replaced by")
    assert made in page.run("Object.values(sessionStorage)")
    go(page, "/invoices")
    assert "Invoices" in text(page)
    (new,) = ask(service, "GET", "/api-keys?status=active&name=Mine", made)["data"]
    go(page, f"/settings/keys/{new['key_id']}")
    press(page, "Revoke")
    wait_for(page, "you will be signed out".replace("you", "and"))
    fill(page, {"Type Mine to go on": "Mine"})
    press(page, "Revoke key")
    wait_for(page, "You revoked the key that you were signed in with")


@pytest.mark.sweep
def test_a_key_that_only_reads_is_offered_no_change(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "read_only_test", "/settings/keys")
    assert "Generate New Key" not in text(page)
    (one, *_) = ask(service, "GET", "/api-keys?status=active")["data"]
    go(page, f"/settings/keys/{one['key_id']}")
    assert not page.run(
        "[...document.querySelectorAll('main button')].some(b => ['Change', 'Rotate', 'Revoke'].includes(b.textContent.trim()))"
    )
    go(page, "/settings/keys/new")
    wait_for(page, "This key may not see this page")
