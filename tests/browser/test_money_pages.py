"""The portal's pages about money that came in, the sandbox's tools, webhooks at length, and what strangers write on all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import fill, go, look, press, signed_in, stored, text, wait_for
from tests.support.receiver import Receiver, answer

pytestmark = [pytest.mark.browser, pytest.mark.sweep]
PAGES = ("/", "/balances", "/transactions", "/addresses", "/webhooks", "/events", "/sandbox")
HOSTILE = '<img src=x onerror="document.title=1">"\'&{{7*7}}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def mine(service: dict[str, Any]) -> dict[str, Any]:
    """The stack with a key of this test's own in the place of the shop's: a test key may ask a hundred times a minute."""
    made = ask(service, "POST", "/api-keys", {"name": "page test", "permissions": ["full"]})
    return {**service, "keys": {**service["keys"], "client_test": made["data"]["key"]}}


def closed(page: Browser) -> None:
    """Leave the open dialog as a person does."""
    page.run("document.querySelector('dialog[open] .close').click()")
    page.wait("!document.querySelector('dialog[open]')")


def submit(page: Browser) -> None:
    """Say yes in the open dialog, and wait until it is done."""
    page.run("document.querySelector('dialog [type=submit]').click()")
    page.wait("!document.querySelector('dialog[open]')")


def new_address(page: Browser, label: str, network: str = "ethereum") -> None:
    go(page, "/addresses")
    press(page, "New address")
    page.wait("document.querySelectorAll('dialog option').length > 5")
    fill(page, {"Network": network, "Label": label})
    press(page, "Make it")
    page.wait("location.hash.startsWith('#/addresses/addr_')")
    wait_for(page, "What lies on it")


def test_an_address_is_made_paid_and_archived(page: Browser, mine: dict[str, Any]) -> None:
    signed_in(page, mine, "client_test")
    new_address(page, HOSTILE)
    assert page.run("document.querySelector('h1').textContent") == HOSTILE
    address = page.run("location.hash")
    press(page, "Pay into this address")
    page.wait("document.querySelectorAll('dialog option').length > 3")
    fill(page, {"Coin": "usdt", "Amount": "12.5"})
    press(page, "Pay")
    wait_for(page, "Paid 12.5 USDT")
    closed(page)
    page.wait("document.querySelector('main').innerText", lambda shown: "Confirmed" in shown)
    assert axe(page) == []
    page.run("[...document.querySelectorAll('main td a')][0].click()")
    shown = wait_for(page, "12 of 12")
    assert "Payment in" in shown and "12.5 USDT" in shown and "$12.50" in shown
    assert axe(page) == []
    go(page, "/")
    # The figures are of the day on which it could be used: today, in the sandbox.
    page.wait("document.querySelector('.chart table') !== null")
    assert "12.5 USDT on ethereum" in page.run("document.querySelector('.chart table').textContent")
    go(page, address.removeprefix("#"))
    press(page, "Archive")
    wait_for(page, "hidden from the list for good")
    page.run("[...document.querySelectorAll('dialog button')].find(each => each.textContent === 'Archive').click()")
    wait_for(page, "Archived")
    go(page, "/addresses")
    assert HOSTILE not in text(page)


def test_a_reorganisation_takes_a_payment_back(page: Browser, mine: dict[str, Any]) -> None:
    signed_in(page, mine, "client_test")
    new_address(page, "till 2", "fantom")
    press(page, "Mine")
    page.wait("document.querySelectorAll('dialog option').length > 5")
    fill(page, {"Network": "fantom", "Blocks": "40"})
    press(page, "Mine")
    wait_for(page, "40 blocks mined on fantom")
    closed(page)
    press(page, "Pay into this address")
    page.wait("document.querySelectorAll('dialog option').length > 1")
    fill(page, {"Coin": "ftm", "Amount": "3", "Mine its confirmations at once": False})
    press(page, "Pay")
    wait_for(page, "Mine blocks to confirm it")
    closed(page)
    page.wait("document.querySelector('main').innerText", lambda shown: " of " in shown and "3 FTM" in shown)
    press(page, "Reorganise")
    page.wait("document.querySelectorAll('dialog option').length > 5")
    fill(page, {"Network": "fantom", "Depth": "20"})
    page.run("document.querySelector('dialog [type=submit]').click()")
    wait_for(page, "fell out")
    closed(page)
    page.wait("document.querySelector('main').innerText", lambda shown: "Fell out" in shown)
    page.run("[...document.querySelectorAll('main td a')][0].click()")
    wait_for(page, "A reorganisation took it out of the chain")


def test_a_withdrawal_is_stuck_and_then_confirmed(page: Browser, mine: dict[str, Any]) -> None:
    signed_in(page, mine, "client_test")
    new_address(page, "funds", "arbitrum")
    press(page, "Pay into this address")
    page.wait("document.querySelectorAll('dialog option').length > 3")
    fill(page, {"Coin": "eth", "Amount": "2"})
    press(page, "Pay")
    wait_for(page, "Paid 2 ETH")
    closed(page)
    page.wait("document.querySelector('main').innerText", lambda shown: "Confirmed" in shown)
    asked = {"network": "arbitrum", "coin": "eth", "amount": "0.5", "address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}
    headers = {"X-Api-Key": mine["keys"]["client_test"], "Content-Type": "application/json"}
    sent = {"method": "POST", "headers": headers, "body": json.dumps(asked)}
    made = page.run(f"fetch('v1/withdraws', {json.dumps(sent)}).then(reply => reply.json())")
    go(page, f"/withdrawals/{made['id']}")
    press(page, "Settle this withdrawal")
    fill(page, {"What becomes of it": "stick"})
    submit_again(page)
    page.wait("document.querySelector('dialog .notice') !== null")
    fill(page, {"What becomes of it": "confirm"})
    submit_again(page)
    page.wait(
        "document.querySelector('dialog').innerText", lambda shown: "all its confirmations." in shown or "once it is sent" in shown
    )
    closed(page)
    page.wait("document.querySelector('main').innerText", lambda shown: "Confirmed" in shown)


def submit_again(page: Browser) -> None:
    """Send the open dialog's form, which stays."""
    page.run("document.querySelector('dialog [type=submit]').click()")


def test_clock_and_rate_are_set(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "other_merchant_test")
    press(page, "Set rate")
    page.wait("document.querySelectorAll('dialog option').length > 5")
    fill(page, {"Coin": "eth", "Worth of one coin": "2700.5"})
    press(page, "Set")
    wait_for(page, "One ETH is worth 2,700.5 USD")
    fill(page, {"Rate": "stale"})
    press(page, "Set")
    wait_for(page, "counts as too old")
    closed(page)
    press(page, "Move clock")
    fill(page, {"Forward by": "2", "Unit": "minutes"})
    page.run("document.querySelector('dialog [type=submit]').click()")
    wait_for(page, "in the sandbox now")


def test_a_webhook_is_changed_paused_rotated_and_sent_again_what_it_missed(
    page: Browser, mine: dict[str, Any], receiver: Receiver
) -> None:
    receiver.behave(answer(200, HOSTILE.encode()))
    signed_in(page, mine, "client_test", "/webhooks")
    press(page, "New webhook")
    fill(page, {"URL": receiver.url("/a"), "What it is told": "some"})
    press(page, "Make it")
    wait_for(page, "Choose at least one event")
    fill(page, {"Paid and confirmed (invoice.completed)": True})
    press(page, "Make it")
    assert stored(page).startswith("whsec_")
    wait_for(page, "Nothing was sent yet")
    press(page, "Change")
    fill(page, {"What it is told": "all"})
    press(page, "Save")
    page.wait("!document.querySelector('dialog[open]')")
    press(page, "Pause")
    wait_for(page, "Pause this webhook?")
    submit(page)
    wait_for(page, "What it is to be told is kept")
    press(page, "Go on")
    page.wait("document.querySelector('dialog[open]') !== null")
    submit(page)
    press(page, "New secret")
    press(page, "Make the secret")
    assert stored(page).startswith("whsec_")
    press(page, "Send again")
    wait_for(page, "Send the events of a time again")
    fill(page, {"From": time.strftime("%Y-%m-%dT%H:%M", time.localtime(time.time() - 86_400))})
    page.run("document.querySelector('main form [type=submit]').click()")
    wait_for(page, "It has begun")
    page.wait("document.querySelector('main').innerText", lambda shown: "Done" in shown)
    assert axe(page) == []
    press(page, "Deliveries")
    if receiver.received:
        page.wait("document.querySelector('main td a') !== null")
        page.run("document.querySelector('main td a').click()")
        wait_for(page, HOSTILE)
        page.run("history.back()")
        wait_for(page, "Send a test")
    press(page, "Delete")
    wait_for(page, "Type")
    page.run("document.querySelector('dialog .field input').focus()")
    fill(page, {f"Type {receiver.url().split('/')[2]} to go on": receiver.url().split("/")[2]})
    page.run("document.querySelector('dialog [type=submit]').click()")
    page.wait("location.hash === '#/webhooks'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_whole(page: Browser, mine: dict[str, Any], width: int, scheme: str) -> None:
    signed_in(page, mine, "client_test")
    look(page, width=width, scheme=scheme)
    for path in PAGES:
        go(page, path)
        assert axe(page) == [], path
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), path


def test_a_key_that_only_reads_is_offered_nothing_else(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "read_only_test")
    for path in PAGES[:-1]:
        go(page, path)
        buttons = page.run("[...document.querySelectorAll('main .button')].map(each => each.textContent.trim())")
        assert set(buttons) <= {"Export CSV", "All balances", "Next", "Previous", "Clear", "Show all"}, path
    go(page, "/sandbox")
    assert "sandbox:write" in text(page)


def test_a_live_key_sees_no_sandbox(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_live")
    assert page.run("document.querySelector('.sandbox')") is None
    go(page, "/sandbox")
    assert "needs a test key" in text(page)
