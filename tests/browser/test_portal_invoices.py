"""Invoices, payment links, their settings and their exports in the portal, as a merchant has them."""

from __future__ import annotations

import json
import time
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import fill, go, look, press, signed_in, stored, text, wait_for

pytestmark = pytest.mark.browser

WAITED = 60
UNKNOWN = "/invoices/inv_nothing"
HOSTILE = "<img src=x onerror=alert(1)>"


def api(service: dict[str, Any], method: str, path: str, body: Any = None, key: str = "client_test") -> Any:
    """What the API answers to the merchant's own program; None where it refuses."""
    try:
        return ask(service, method, path, body, key)
    except urllib.error.HTTPError:
        return None


def pay(service: dict[str, Any], invoice: dict[str, Any], amount: str) -> None:
    """As the payer, until the invoice has the money."""
    paid = {"network": "ethereum", "coin": "eth", "address": invoice["address"], "amount": amount}
    api(service, "POST", "/sandbox/deposits", paid)
    api(service, "POST", "/sandbox/blocks", {"network": "ethereum", "count": 13})
    until = time.monotonic() + WAITED
    while api(service, "GET", f"/invoices?id={invoice['id']}")["received"] == "0":
        assert time.monotonic() < until, "the payment is not credited"
        time.sleep(0.1)


def test_an_invoice_from_the_form_to_its_refund(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test", "/invoices/new")
    name = f"order-{time.monotonic_ns()}"
    fill(
        page,
        {
            "Price in": "coin",
            "Amount in coin units": "0.05",
            "Coin": "eth@ethereum",
            "Your own id": name,
            "What it is for": HOSTILE,
        },
    )
    press(page, "Make the invoice")
    wait_for(page, "Send this link to the payer")
    invoice = api(service, "GET", f"/invoices/getByExternalId?externalId={name}")
    assert invoice["checkoutUrl"] in text(page)
    assert page.run("document.activeElement.textContent") == "The invoice is made", "the focus is at what is new"
    pay(service, invoice, "0.06")
    go(page, f"/invoices?externalId={name}")
    assert "Completed" in text(page) and HOSTILE in text(page)
    press(page, name)
    wait_for(page, "You can deliver")
    wait_for(page, "$180.00 fixed")
    press(page, "Refund")
    wait_for(page, "Empty: what was overpaid")
    press(page, "Check")
    wait_for(page, "What was overpaid")
    press(page, "Refund")
    assert "/api/claim/" in stored(page)
    assert page.run("document.activeElement.tagName") == "H1"
    assert "/api/claim/" not in page.run("document.documentElement.innerHTML")
    press(page, "Back to the invoice")
    assert "Awaiting claim" in wait_for(page, "The payer names an address until")
    assert "/api/claim/" not in text(page), "nobody can show the link again"
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.sweep
def test_every_page_at_every_width_by_day_and_by_night(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    made = api(
        service, "POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "0.05", "description": HOSTILE * 9}
    )
    offers = [{"coin": "eth", "network": "ethereum"}, {"coin": "usdt", "network": "tron"}]
    chosen = api(
        service, "POST", "/invoices", {"fiatAmount": "49.90", "fiatCurrency": "EUR", "accept": offers, "metadata": {"a": HOSTILE}}
    )
    api(service, "POST", f"/pay/{chosen['id']}/choice", offers[1])
    link = api(service, "POST", "/payment-links", {"name": HOSTILE, "fiatAmount": {"min": "5", "max": "50"}, "fiatCurrency": "EUR"})
    pay(service, made, "0.02")
    paths = [
        "/invoices", "/invoices?status=cancelled&externalId=none", "/invoices/new", f"/invoices/{made['id']}",
        f"/invoices/{made['id']}?tab=timeline", f"/invoices/{made['id']}?tab=refunds", f"/invoices/{made['id']}/refund",
        f"/invoices/{chosen['id']}?tab=more", "/payment-links", "/payment-links/new", f"/payment-links/{link['id']}",
        "/settings/invoices", "/settings/checkout", UNKNOWN,
    ]  # fmt: skip
    wrong = []
    looks = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
    for place, (width, scheme) in enumerate(looks):
        if place:
            look(page)  # on a phone it is in the menu
            press(page, "Sign out")
            page.wait("sessionStorage.length === 0")
        signed_in(page, service, "client_test")
        look(page, width=width, scheme=scheme)
        for path in paths:
            go(page, path)
            page.screenshot(tmp_path / f"{path.strip('/').replace('/', '-').replace('?', '-')}-{width}-{scheme}.png")
            wide = page.run("document.documentElement.scrollWidth")
            said = page.run("document.querySelector('main [role=alert]')?.innerText ?? ''") if path != UNKNOWN else ""
            found = axe(page)
            if wide > width or found or said:
                wrong.append((path, width, scheme, wide, said, found))
    assert wrong == []
    assert page.run("document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.sweep
def test_an_invoice_that_leaves_the_coin_open_is_paid_from_the_strip(page: Browser, service: dict[str, Any]) -> None:
    made = api(service, "POST", "/invoices", {"fiatAmount": "20", "fiatCurrency": "USD"})
    signed_in(page, service, "client_test", f"/invoices/{made['id']}")
    press(page, "Pay this invoice")
    wait_for(page, "chooses a coin first")
    fill(page, {"Coin": "eth@ethereum"})
    press(page, "Choose this coin")
    wait_for(page, "Mine its confirmations at once")
    press(page, "Pay")
    page.wait("document.querySelector('main').innerText.includes('It is paid. You can deliver.')")


@pytest.mark.sweep
def test_more_time_a_status_by_hand_and_a_cancellation(page: Browser, service: dict[str, Any]) -> None:
    made = api(service, "POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "0.05"})
    signed_in(page, service, "client_test", f"/invoices/{made['id']}")
    press(page, "More time")
    fill(page, {"Minutes from now": "99999999"})
    press(page, "Give more time")
    wait_for(page, "2592000")  # the API's own bound, at the field
    fill(page, {"Minutes from now": "600"})
    press(page, "Give more time")
    page.wait("document.querySelector('dialog[open]') === null")
    assert api(service, "GET", f"/invoices?id={made['id']}")["expiresAt"] > made["expiresAt"]
    press(page, "Cancel")
    wait_for(page, "cancelled for good")
    press(page, "Not now")
    press(page, "Cancel")
    press(page, "Cancel the invoice")
    wait_for(page, "It was cancelled")
    press(page, "Set status")
    fill(page, {"Status": "completed"})
    press(page, "Set the status")
    wait_for(page, "Nothing is credited for it")
    press(page, "Set status")
    fill(page, {"Status": "other", "Its name": "written_off"})
    press(page, "Set the status")
    wait_for(page, "Written off")
    assert api(service, "GET", f"/invoices?id={made['id']}")["status"] == "written_off"


@pytest.mark.sweep
def test_a_payment_link_is_made_changed_and_deleted(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test", "/payment-links/new")
    press(page, "Make the payment link")
    wait_for(page, "Name is required")
    page.wait("document.activeElement.name === 'name'")  # the first wrong field has the focus
    fill(page, {"Name": "Shoes", "Who names the amount": "payer"})
    fill(page, {"Amount: at least": "5", "Amount: at most": "50", "Currency": "EUR", "The payer pays in": "some"})
    fill(page, {"Tether USD (USDT on tron)": True, "Pieces": "3"})
    press(page, "Make the payment link")
    wait_for(page, "The payment link is made")
    link = page.run("location.hash.split('/').pop().split('?')[0]")
    assert api(service, "GET", f"/payment-links/{link}")["accept"] == [{"coin": "usdt", "network": "tron"}]
    press(page, "Change")
    wait_for(page, "Invoices that are open stay as they are")
    fill(page, {"Pieces": "0"})
    press(page, "Save")
    wait_for(page, "Nothing is left")
    assert api(service, "GET", f"/payment-links/{link}")["fiatAmount"] == {"min": "5", "max": "50"}
    press(page, "Delete")
    press(page, "Delete")
    wait_for(page, "New payment link")
    assert api(service, "GET", f"/payment-links/{link}") is None


@pytest.mark.sweep
def test_settings_of_invoices_and_of_the_checkout(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test", "/settings/invoices")
    fill(page, {"Forgiven shortfall in percent": "99"})
    press(page, "Save")
    wait_for(page, "must be 0 to 10")
    fill(page, {"Forgiven shortfall in percent": "1.5", "Least amounts": "btc 0.0001"})
    press(page, "Save")
    wait_for(page, "New invoices obey this")
    settings = api(service, "GET", "/invoices/configureSettings")["settings"]
    assert (settings["tolerancePercent"], settings["minimumAmounts"]) == (1.5, {"btc": "0.0001"})
    go(page, "/settings/checkout")
    fill(page, {"Name": "Shoes & Co", "Colour": "blue"})
    press(page, "Save")
    page.wait("document.activeElement.name === 'color'")
    fill(page, {"Colour": "#123456", "Sites that may show the pages in a frame": "https://shop.example"})
    press(page, "Save")
    wait_for(page, "within 30 seconds")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="300"><circle cx="150" cy="150" r="140" fill="red"/></svg>'
    page.run(f"""(() => {{ const input = document.querySelector('input[type=file]'); const files = new DataTransfer();
        files.items.add(new File([{json.dumps(svg)}], 'logo.svg', {{ type: 'image/svg+xml' }})); input.files = files.files;
        input.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()""")
    wait_for(page, "as a PNG of 512 by 171 pixels")
    shop = api(service, "GET", "/merchant/settings")["data"]["shop"]
    assert (shop["name"], shop["color"], shop["frameAncestors"]) == ("Shoes & Co", "#123456", ["https://shop.example"])
    assert shop["logo"].startswith("iVBORw0KGgo")
    press(page, "Remove the logo")
    wait_for(page, "The logo is gone")
    assert api(service, "GET", "/merchant/settings")["data"]["shop"]["logo"] is None


@pytest.mark.sweep
def test_an_export_is_saved_waits_for_the_limit_and_goes_on(page: Browser, service: dict[str, Any]) -> None:
    for _ in range(3):
        api(service, "POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "0.05", "description": "=1+1"})
    signed_in(page, service, "client_test", "/invoices")
    # What would be saved is caught, and the first two answers are those of a busy and of a broken service.
    page.run("""(() => {
        window.saved = []; const make = URL.createObjectURL;
        URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return 'about:blank#'; };
        HTMLAnchorElement.prototype.click = function () { window.file = this.download; };
        const ask = window.fetch; let count = 0;
        window.fetch = (url, options) => {
            if (!String(url).includes('limit=100')) return ask(url, options);
            count += 1;
            const said = (code) => JSON.stringify({ error: 'not now', code });
            const answer = (status, code, headers) => Promise.resolve(new Response(said(code), { status, headers }));
            if (count === 1) return answer(429, 'RATE_LIMIT_EXCEEDED', { 'Retry-After': '1' });
            if (count === 2) return answer(403, 'INSUFFICIENT_PERMISSIONS', {});
            return ask(url, options);
        };
    })()""")
    press(page, "Export CSV")
    wait_for(page, "has used up its requests for now")
    wait_for(page, "stopped after 0 rows")
    go(page, "/payment-links")
    press(page, "Go on")
    wait_for(page, "exported")
    page.wait("window.saved.length === 1")
    lines = page.run("window.saved[0]").split("\r\n")
    assert "fiatValueSource" in lines[0]
    assert len(lines) - 2 >= 3
    assert "'=1+1" in page.run("window.saved[0]")
    assert page.run("window.file").startswith("invoices-")


@pytest.mark.sweep
def test_an_export_of_several_pages_has_each_invoice_once(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    wanted = {"currency": "usdc", "network": "polygon", "amount": "5"}
    made = [api(service, "POST", "/invoices", wanted)["id"] for _ in range(230)]
    signed_in(page, service, "client_test", "/invoices?currency=usdc&network=polygon")
    body = json.dumps(wanted)
    # Before each page but the first another invoice arrives.
    page.run(f"""(() => {{
        const ask = window.fetch;
        window.fetch = async (url, options) => {{
            if (String(url).includes('cursor=')) await ask('v1/invoices', {{ method: 'POST', body: {json.dumps(body)},
                headers: {{ 'X-Api-Key': {json.dumps(service["keys"]["client_test"])}, 'Content-Type': 'application/json' }} }});
            return ask(url, options);
        }};
    }})()""")
    page.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    press(page, "Export CSV")
    wait_for(page, "230 rows of invoices exported")
    until = time.monotonic() + WAITED
    while not (saved := list(tmp_path.glob("invoices-*.csv"))):
        assert time.monotonic() < until, "the browser saved no file"
        time.sleep(0.05)
    rows = [line.split(",")[0] for line in saved[0].read_text("utf-8-sig").split("\n")[1:-1]]
    assert rows == made[::-1], "newest first, none twice, none lost"


def test_lists_and_exports_say_from_which_day_on_they_have_everything(
    page: Browser, service: dict[str, Any], tmp_path: Path
) -> None:
    api(service, "POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "0.05"})
    signed_in(page, service, "client_test", "/invoices")
    words = "This list has everything from 19 Oct 2025 (UTC) on"
    assert words not in text(page), "nothing was ever archived here"
    # The stack is too young to archive anything: its answers, as a service's whose archive has begun.
    page.run("""(() => {
        const ask = window.fetch;
        window.asked = [];
        window.fetch = async (url, options) => {
            window.asked.push(String(url));
            const answer = await ask(url, options);
            if (!/v1[/](invoices[/]getAll|transactions)/.test(String(url))) return answer;
            const body = await answer.json();
            body.meta.pagination.covers_from = '2025-10-19';
            return new Response(JSON.stringify(body), { status: answer.status, headers: answer.headers });
        };
    })()""")
    page.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    go(page, "/transactions")
    wait_for(page, words)
    go(page, "/invoices?createdAt.lte=2024-12-31")
    assert "Nothing matches" in wait_for(page, words), "that is when it matters most"
    for path, width in (("/invoices", 390), ("/invoices?createdAt.gte=2025-10-18", 1280)):
        look(page, width=width)
        go(page, path)
        wait_for(page, words)
        page.screenshot(tmp_path / f"invoices-archived-{width}.png")
        assert axe(page) == []
        assert page.run("document.documentElement.scrollWidth") <= width
        press(page, "Export CSV")
        wait_for(page, "Start")
        assert words in text(page), "before anything is saved"
        page.screenshot(tmp_path / f"invoices-archived-export-{width}.png")
        assert axe(page) == []
        assert [url for url in page.run("window.asked") if "limit=100" in url] == []
        press(page, "Not now")
    press(page, "Export CSV")
    press(page, "Start")
    assert words in wait_for(page, "of invoices exported"), "and with the file"
    press(page, "Close")
    go(page, "/invoices?createdAt.gte=2025-10-19")
    wait_for(page, words)
    press(page, "Export CSV")
    wait_for(page, "of invoices exported")
    assert page.run("document.querySelector('dialog[open]') === null"), "all days that were asked for are there"
    assert page.run("[...document.querySelectorAll('.notice')].some((each) => each.innerText.includes('has everything'))") is False


@pytest.mark.sweep
def test_a_key_that_may_only_read_is_offered_nothing_else(page: Browser, service: dict[str, Any]) -> None:
    made = api(service, "POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "0.05"})
    signed_in(page, service, "read_only_test", "/invoices")
    assert "New invoice" not in text(page)
    go(page, f"/invoices/{made['id']}")
    shown = page.run("[...document.querySelectorAll('main button')].map((each) => each.textContent)")
    assert not {"More time", "Cancel", "Set status", "Refund"} & set(shown)
    go(page, "/invoices/new")
    assert "invoices:create" in text(page)
    go(page, "/settings/invoices")
    assert "may look, and not change" in text(page)
