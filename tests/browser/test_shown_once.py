"""What is shown once is held over every page until a person says that it is stored: each kind that no other test here makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import ONCE, fill, go, look, press, press_key, signed_in, stored, text, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.sweep]
WARNED = "!window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"


def held(page: Browser, tmp_path: Path, name: str) -> str:
    """What is shown now. It is there at every width, and neither Escape nor the menu nor a step back takes it away."""
    shown = str(page.wait(ONCE))
    for width, scheme in ((1280, "light"), (390, "dark"), (1280, "dark"), (390, "light")):
        look(page, width=width, scheme=scheme)
        assert axe(page) == [], (name, width, scheme)
        assert page.run("document.documentElement.scrollWidth") <= width
        page.screenshot(tmp_path / f"{name}-{width}-{scheme}.png")
    look(page)
    assert page.wait(WARNED), "the browser asks before the tab is left"
    here = page.run("location.hash")
    press_key(page, "Escape", 2)
    go(page, "/key")
    assert page.run(ONCE) == shown
    page.run("history.back()")
    page.wait("location.hash", lambda found: found == here)
    assert page.run(ONCE) == shown
    return shown


def test_the_secret_of_an_invoices_own_webhook(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    signed_in(page, service, "client_test", "/invoices/new")
    wait_for(page, "Links for the payer")
    fill(page, {"Price in": "coin", "Amount in coin units": "0.05", "Coin": "eth@ethereum"})
    fill(page, {"Links for the payer, webhook, rules, metadata": True})
    page.wait("document.body.innerText", lambda found: "Webhook of this invoice alone" in found)
    fill(page, {"Webhook of this invoice alone": "https://shop.example/hook"})
    press(page, "Make the invoice")
    secret = held(page, tmp_path, "invoice-secret")
    assert secret.startswith("whsec_") and stored(page) == secret
    page.wait(WARNED, lambda asked: not asked)
    assert secret not in page.run("document.documentElement.innerHTML + location.href + JSON.stringify(sessionStorage)")


def test_the_private_key_of_a_sandbox_wallet(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    signed_in(page, {**service, "keys": {"admin": service["keys"]["admin_test"]}}, "admin", "/wallets", "console")
    press(page, "Register a wallet")
    wait_for(page, "The key is made here")
    fill(page, {"Network": "polygon", "What for": "tokens_collector"})
    press(page, "Register")
    secret = held(page, tmp_path, "wallet-key")
    assert "The private key of a sandbox wallet" in text(page)
    assert stored(page) == secret
    assert "Collector" in text(page)
    assert page.run("document.activeElement.tagName") == "H1", "the focus is somewhere in the page"
    assert secret not in page.run("document.documentElement.innerHTML + location.href + JSON.stringify(sessionStorage)")


def test_a_webhooks_secret_and_its_next_one(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    signed_in(page, service, "client_test", "/webhooks")
    press(page, "New webhook")
    fill(page, {"URL": "https://shop.example/once"})
    press(page, "Make it")
    page.wait("/^#.webhooks.[^/]+$/.test(location.hash)")
    first = held(page, tmp_path, "webhook-secret")
    assert stored(page) == first
    wait_for(page, "Nothing was sent yet")
    press(page, "New secret")
    press(page, "Make the secret")
    assert stored(page) not in ("", first)
    assert page.run("document.querySelector('dialog[open]') === null")
