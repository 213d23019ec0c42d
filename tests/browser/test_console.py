"""The operator's console as a person has it: what waits is found, understood and decided about, without reading anything else."""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import fill, go, look, press, signed_in, stored, text, wait_for

pytestmark = pytest.mark.browser

Call = Callable[..., Any]
GREY = "0x52908400098527886E0F7030069857D2E4169EE7"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def call(service: dict[str, Any]) -> Call:
    """A request by a key of the stack; its answer without the envelope."""

    def send(method: str, path: str, body: Any = None, key: str = "client_test") -> Any:
        found = ask(service, method, path, body, key)
        return found["data"] if isinstance(found, dict) and "success" in found else found

    return send


@pytest.fixture
def admin(service: dict[str, Any], call: Call) -> dict[str, Any]:
    """The stack with an admin key of this test's own, as `admin`: each key has a hundred requests a minute."""
    made = call("POST", "/api-keys", {"name": "of a test", "level": "admin", "permissions": ["full"]}, "admin_test")
    return {**service, "keys": {"admin": made["key"]}}


def until(read: Callable[[], Any], seconds: float = 30) -> Any:
    """What `read` gives as soon as it gives something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = read()
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError("it never came")


def grey_listed(call: Call, address: str, network: str = "ethereum") -> None:
    """On the grey list, where the stack of this run may have it already."""
    listed = {(each["network"], each["address"].lower()) for each in call("GET", "/addresses/grey-list", key="admin_test")}
    if (network, address.lower()) not in listed:
        call("POST", "/addresses/grey-list", {"network": network, "address": address, "reason": MARKUP}, "admin_test")


def paid(call: Call, amount: str, sender: str | None = None) -> dict[str, Any]:
    """An invoice in ether that was paid; its block has its confirmations."""
    invoice = call("POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": amount})
    body = {"address": invoice["address"], "network": "ethereum", "coin": "eth", "amount": amount}
    call("POST", "/sandbox/deposits", body if sender is None else {**body, "from": sender})
    call("POST", "/sandbox/blocks", {"network": "ethereum", "count": 13})
    return dict(invoice)


def waiting(call: Call, amount: str) -> str:
    """A withdrawal that waits for the operator: its address is on the grey list."""
    grey_listed(call, GREY)

    def rich() -> bool:
        found = [each for each in call("GET", "/balances") if (each["network"], each["coin"]) == ("ethereum", "eth")]
        return any(float(each["available"]) >= float(amount) for each in found)

    if not rich():
        paid(call, "3")
        until(rich)
    made = call("POST", "/withdraws", {"network": "ethereum", "coin": "eth", "address": GREY, "amount": amount})
    return str(made["id"])


def test_a_withdrawal_that_waits_is_found_and_let_go_and_a_merchant_is_made(
    page: Browser, admin: dict[str, Any], call: Call
) -> None:
    id = waiting(call, "0.125")
    signed_in(page, admin, "admin", which="console")
    wait_for(page, "for approval")
    go(page, "/withdrawals?view=mine")
    wait_for(page, "0.125")
    go(page, f"/withdrawals/{id}")
    assert "on the grey list: that is yours to decide" in wait_for(page, "Let it go")
    press(page, "Let it go")
    assert page.run("document.querySelector('dialog button[type=submit]').disabled")
    fill(page, {f"Type {id} to go on": id})
    press(page, "Let it go")
    wait_for(page, "It goes on")
    until(lambda: call("GET", f"/withdrawals/{id}")["status"] in ("broadcasting", "confirming", "confirmed"))

    go(page, "/merchants")
    press(page, "Make a merchant")
    fill(page, {"Name": f"Acme {MARKUP}"})
    press(page, "Make")
    wait_for(page, "It has no API key yet")
    press(page, "Make its first key")
    press(page, "Make the key")
    key = stored(page)
    assert key.startswith("sk_test_") and key not in page.run("location.href")
    assert page.run("document.querySelector('h1').textContent") == f"Acme {MARKUP}"


@pytest.mark.sweep
def test_a_merchant_is_suspended_and_resumed(page: Browser, admin: dict[str, Any], call: Call) -> None:
    other = call("GET", "/merchants?name=Other Shop".replace(" ", "%20"), key="admin_test")[0]
    signed_in(page, admin, "admin", f"/merchants/{other['id']}", "console")
    wait_for(page, "Sandbox")
    press(page, "Suspend")
    fill(page, {"Reason (for other operators)": MARKUP, "Type Other Shop to go on": "Other Shop"})
    press(page, "Suspend")
    page.wait("document.querySelector('dialog') === null")
    assert MARKUP in wait_for(page, "Its API keys are refused and its withdrawals wait")
    with pytest.raises(urllib.error.HTTPError) as refused:
        call("GET", "/balances", key="other_merchant_test")
    assert refused.value.code == 403
    press(page, "Resume")
    fill(page, {"Type Other Shop to go on": "Other Shop"})
    press(page, "Resume")
    page.wait("document.querySelector('dialog') === null && !document.querySelector('main').innerText.includes('are refused')")
    assert call("GET", "/balances", key="other_merchant_test") is not None


@pytest.mark.sweep
def test_payments_are_stopped_and_let_go_on(page: Browser, admin: dict[str, Any], call: Call) -> None:
    signed_in(page, admin, "admin", "/payments", "console")
    press(page, "Stop all payments")
    fill(page, {"Reason (for other operators)": "a drill"})
    press(page, "Stop all payments")
    wait_for(page, "Payments are stopped")
    assert call("GET", "/withdrawals/switch", key="admin_test")["stopped"] is True
    go(page, "/")
    wait_for(page, "a drill")
    go(page, "/payments")
    press(page, "Let payments go on")
    fill(page, {"Type resume payments to go on": "resume payments"})
    press(page, "Let payments go on")
    wait_for(page, "Payments go out")
    assert call("GET", "/withdrawals/switch", key="admin_test")["stopped"] is False


@pytest.mark.sweep
def test_a_held_deposit_is_released(page: Browser, admin: dict[str, Any], call: Call) -> None:
    grey_listed(call, GREY)
    invoice = paid(call, "0.75", GREY)

    def held() -> Any:
        found = call("GET", "/transactions?releasable=true", key="admin_test")
        return [each for each in found if each["address"] == invoice["address"]]

    (deposit,) = until(held)
    signed_in(page, admin, "admin", "/held", "console")
    assert "Its sender is on the grey list" in wait_for(page, "0.75")
    row = "[...document.querySelectorAll('tbody tr')].find(each => each.innerText.includes('0.75'))"
    page.run(f"{row}.querySelector('td .button').click()")
    fill(page, {f"Type {deposit['id']} to go on": deposit["id"]})
    press(page, "Release")
    wait_for(page, "is available to its merchant now")
    assert call("GET", f"/invoices?id={invoice['id']}")["status"] == "completed"


@pytest.mark.sweep
def test_a_coin_is_registered_from_its_contract(page: Browser, admin: dict[str, Any]) -> None:
    signed_in(page, admin, "admin", "/coins", "console")
    press(page, "Register a coin")
    wait_for(page, "No contract at hand?")
    symbol = f"SH{time.time_ns() % 100_000}"
    fill(page, {"Network of the token": "polygon", "Symbol": symbol, "Name": MARKUP, "Decimals": "6"})
    press(page, "Issue a sandbox token")
    wait_for(page, "is issued on polygon")
    press(page, "Read the contract")
    assert MARKUP in wait_for(page, "Is this the one?")
    press(page, "Register it")
    wait_for(page, "was created on polygon")
    press(page, "Its limits and thresholds")
    wait_for(page, "Thresholds and limits")
    fill(page, {"Largest withdrawal (optional)".replace(" (optional)", ""): "12.5"})
    press(page, "Save")
    page.wait("document.querySelector('table').innerText", lambda found: "12.5" in found)
    wait_for(page, "was updated")  # still, though the form was drawn anew for the new settings


@pytest.mark.sweep
def test_chain_and_ledger_are_compared_and_lag_is_seen(page: Browser, admin: dict[str, Any], call: Call) -> None:
    signed_in(page, admin, "admin", "/solvency", "console")
    press(page, "Compare now")
    wait_for(page, "It begins within five minutes")
    until(lambda: call("GET", "/reconciliation", key="admin_test")["networks"], 60)
    go(page, "/networks")
    go(page, "/solvency")
    assert "Merchants have" in wait_for(page, "Solvent")
    go(page, "/networks")
    assert "0 blocks" in wait_for(page, "Behind")
    go(page, "/networks/ethereum?tab=rescans")
    fill(page, {"First block": "0", "Last block": "3"})
    press(page, "Order a rescan")
    wait_for(page, "Blocks 0 to 3")


PAGES = (
    "/", "/withdrawals", "/held", "/payments", "/strays", "/grey-list", "/solvency", "/wallets", "/collections", "/moves",
    "/staking", "/merchants", "/networks", "/networks/tron", "/networks/tron?tab=settings", "/networks/tron?tab=rescans",
    "/coins", "/coins/new", "/coins/tron/usdt", "/settings/keys", "/activity", "/key",
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_at_every_width(
    page: Browser, admin: dict[str, Any], call: Call, tmp_path: Path, width: int, scheme: str
) -> None:
    waiting(call, "0.0625")
    look(page, width=width, scheme=scheme)
    signed_in(page, admin, "admin", which="console")
    for path in PAGES:
        go(page, path)
        assert page.run("document.querySelector('h1').textContent") not in ("", "There is no such page"), path
        assert not page.run("Boolean(document.querySelector('main .notice.bad'))"), (path, text(page))
        assert page.run("document.documentElement.scrollWidth") <= width, path
        assert axe(page) == [], path
        page.screenshot(tmp_path / f"{path.strip('/').replace('/', '-').split('?')[0] or 'overview'}-{width}.png")


@pytest.mark.sweep
def test_what_a_key_may_not_do_is_not_shown(page: Browser, service: dict[str, Any], call: Call) -> None:
    may = ["withdrawals:read", "networks:read"]
    made = call("POST", "/api-keys", {"name": "looks only", "level": "admin", "permissions": may}, "admin_test")
    id = waiting(call, "0.03125")
    signed_in(page, {**service, "keys": {"weak": made["key"]}}, "weak", which="console")
    menu = page.run("document.querySelector('nav').innerText")
    assert "Waiting withdrawals" in menu and "Networks" in menu
    assert not {"Merchants", "Coins", "Grey list", "Held deposits"} & set(menu.split("\n"))
    go(page, f"/withdrawals/{id}")
    assert "Let it go" not in wait_for(page, "This key may not decide about withdrawals")
    go(page, "/payments")
    assert "Stop all payments" not in wait_for(page, "not throw the switch")
    go(page, "/merchants")
    wait_for(page, "This key may not see this page")


@pytest.mark.sweep
def test_it_takes_admin_keys_alone(page: Browser, service: dict[str, Any]) -> None:
    page.open(f"{service['base_url']}/console")
    page.wait("document.querySelector('main.alone form') !== null && location.pathname.length > 1")
    fill(page, {"API key": service["keys"]["client_test"]})
    press(page, "Sign in")
    wait_for(page, "it takes admin keys alone")
    assert page.run("sessionStorage.length") == 0


@pytest.mark.sweep
def test_a_tab_with_a_merchants_key_shows_nothing_of_the_console(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test")
    page.requests.clear()
    page.open(f"{service['base_url']}/console")
    wait_for(page, "Your key belongs to the portal")
    assert [url for url in page.requests if "/v1/" in url and not url.endswith(("/auth/test", "/merchant"))] == []
    press(page, "Use another key")
    page.wait("document.querySelector('main.alone form') !== null")
    assert page.run("sessionStorage.length") == 0
