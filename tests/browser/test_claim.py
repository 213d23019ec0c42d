"""The page of a claim link as its payee has it: in a real browser, without JavaScript."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib.encoding import base58check
from tests.support.asking import ask
from tests.support.browser import Browser

pytestmark = pytest.mark.browser

PAYEE = base58check.encode(b"\x41" + bytes(range(20)))
WAITED = 60


def post(service: dict[str, Any], path: str, body: Any) -> Any:
    """A POST of the merchant, by the test key; None where it is refused."""
    try:
        return ask(service, "POST", path, body)
    except urllib.error.HTTPError:
        return None


@pytest.fixture
def link(service: dict[str, Any]) -> str:
    """A payout link, once its merchant has the money for it."""
    invoice = post(service, "/invoices", {"currency": "trx", "network": "tron", "amount": "500"})
    paid = {"network": "tron", "coin": "trx", "address": invoice["address"], "amount": "500"}
    post(service, "/sandbox/deposits", paid)
    post(service, "/sandbox/blocks", {"network": "tron", "count": 30})
    wanted = {"network": "tron", "coin": "trx", "amount": "99.5", "description": "Prize of <May>"}
    until = time.monotonic() + WAITED
    while (made := post(service, "/payout-links", wanted)) is None:
        assert time.monotonic() < until, "the merchant has no money"
        time.sleep(0.5)
    return str(made["claimUrl"])


def test_a_payee_is_paid_by_a_plain_form(browser: Browser, link: str, tmp_path: Path) -> None:
    browser.requests.clear()
    browser.complaints.clear()
    browser.size(390, 844, phone=True)
    browser.tell("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(link)
        browser.wait("document.readyState === 'complete' && Boolean(document.getElementById('address'))")
        assert "Prize of <May>" in browser.run("document.body.innerText")
        assert browser.run("document.documentElement.scrollWidth") <= 390
        assert browser.screenshot(tmp_path / "asked.png").stat().st_size > 10_000
        browser.run("document.getElementById('address').value = 'nothing'; document.querySelector('form').submit()")
        browser.wait("Boolean(document.querySelector('[role=alert]'))")
        assert "Not an address of tron" in browser.run("document.querySelector('[role=alert]').innerText")
        browser.run(f"document.getElementById('address').value = '{PAYEE}'; document.querySelector('form').submit()")
        browser.wait(f"document.querySelector('code')?.innerText === '{PAYEE}'")
        assert browser.screenshot(tmp_path / "shown.png").stat().st_size > 10_000
        browser.run("document.querySelector('form button').click()")
        browser.wait("['It is on its way', 'It is being paid', 'Paid'].includes(document.querySelector('h1')?.innerText)")
        assert not browser.run("Boolean(document.querySelector('form'))")
        browser.screenshot(tmp_path / "claimed.png")
    finally:
        browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    # The page that refuses an address says so by its status too.
    assert [said for said in browser.complaints if "400 (Bad Request)" not in said] == []
    assert {urlsplit(url).hostname for url in browser.requests} == {"127.0.0.1"}
