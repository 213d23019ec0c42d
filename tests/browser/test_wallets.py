"""A payer pays from a wallet in the browser: an EIP-6963 wallet on a simulated network, until the page says paid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.chains.abi import parse_transfer_call
from chalicelib.domain.money import format_units
from tests.support.asking import Post, poster
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.wallets import FOX, Declined, PageWallet, Refusal, evm_wallet

pytestmark = pytest.mark.browser

CHAIN = 7_357_000_001
ME = "0x" + "ab" * 20
SAID = "(document.querySelector('#wallets [role=status]')?.innerText ?? '').replace(/[\\u2068\\u2069]/g, '')"
"""Without the marks that keep names and amounts apart from the direction of the sentence."""
OFFERED = "document.querySelectorAll('#wallets .offer').length"


@pytest.fixture
def post(service: dict[str, Any]) -> Post:
    return poster(service)


class Account:
    """What a wallet answers. It pays on the sandbox's chain, as a node would take its transaction."""

    def __init__(self, post: Post) -> None:
        self.post, self.chain, self.knows, self.declines = post, 1, True, False
        self.native, self.tokens = 10**18, 10**30
        self.sent: list[dict[str, Any]] = []

    def __call__(self, method: str, params: list[Any]) -> Any:
        match method:
            case "eth_requestAccounts":
                return [ME]
            case "eth_chainId":
                return hex(self.chain)
            case "wallet_switchEthereumChain":
                if not self.knows:
                    raise Refusal(4902, "Unrecognized chain ID")
                self.chain = int(params[0]["chainId"], 16)
                return None
            case "eth_getBalance":
                return hex(self.native)
            case "eth_call":
                return "0x" + f"{self.tokens:064x}"
            case "eth_sendTransaction":
                return self.pay(params[0])
        raise Refusal(-32601, f"no method {method}")

    def pay(self, transaction: dict[str, Any]) -> str:
        if self.declines:
            raise Declined
        self.sent.append(transaction)
        recipient, units = parse_transfer_call(bytes.fromhex(transaction["data"][2:]))
        body = {"network": "ethereum", "coin": "usdt", "address": recipient, "amount": format_units(units, 6)}
        return str(self.post("/sandbox/deposits", body)["data"]["txid"])


@pytest.fixture
def account(post: Post) -> Account:
    return Account(post)


@pytest.fixture
def wallet(page: Browser, account: Account) -> Iterator[PageWallet]:
    made = evm_wallet(page, account)
    yield made
    made.remove()


def opened(page: Browser, post: Post, amount: str = "129.9") -> Any:
    invoice = post("/invoices", {"currency": "usdt", "network": "ethereum", "amount": amount})
    page.open(invoice["checkoutUrl"])
    page.wait(f"location.pathname.endsWith('{invoice['id']}') && {OFFERED} > 0")
    return invoice


def press(page: Browser, label: str) -> None:
    buttons = "[...document.querySelectorAll('#wallets button')]"
    page.run(f"{buttons}.find(b => b.innerText.replace(/[\\u2068\\u2069]/g, '').trim() === '{label}').click()")


def test_a_wallet_is_switched_to_the_network_and_pays_exactly_until_paid(
    page: Browser, post: Post, account: Account, wallet: PageWallet, tmp_path: Path
) -> None:
    invoice = opened(page, post, "129.900001")
    assert page.screenshot(tmp_path / "offered.png").stat().st_size > 10_000
    press(page, "Test Fox")
    wallet.serve(SAID, lambda said: "Switch to Ethereum" in said)
    assert "is on another network" in page.run(SAID)
    assert account.sent == [], "warned before, not after"
    assert page.run("document.activeElement.className") == "state warn"
    press(page, "Switch to Ethereum")
    wallet.serve(SAID, lambda said: "do not pay twice" in said)
    assert not page.run("document.getElementById('address').checkVisibility()"), "nobody is asked to pay twice"
    (sent,) = account.sent
    assert (sent["from"], int(sent["chainId"], 16), sent["value"]) == (ME, CHAIN, "0x0")
    recipient, units = parse_transfer_call(bytes.fromhex(sent["data"][2:]))
    assert (recipient.lower(), units) == (invoice["address"].lower(), 129_900_001)
    assert axe(page) == []
    post("/sandbox/blocks", {"network": "ethereum", "count": 30})
    page.wait("document.querySelector('.state').className === 'state good'")
    assert page.run("document.getElementById('wallets').hidden")


@pytest.mark.sweep
def test_what_was_sent_is_told_after_a_reload_too(page: Browser, post: Post, account: Account, wallet: PageWallet) -> None:
    account.chain = CHAIN
    invoice = opened(page, post)
    account.pay = lambda transaction: "0x" + "5c" * 32  # type: ignore[method-assign,assignment]
    press(page, "Test Fox")
    wallet.serve(SAID, lambda said: "do not pay twice" in said)
    page.run("window.before = true")
    page.tell("Page.reload")
    page.wait(f"!window.before && ({SAID}).includes('do not pay twice')")
    assert page.run(OFFERED) == 0, "nobody is asked to pay twice"
    press(page, "It has failed in my wallet: pay again")
    page.wait(f"{OFFERED} === 1")
    assert page.run("localStorage.length + sessionStorage.length") == 0
    assert invoice["id"] in page.run("location.pathname")


@pytest.mark.sweep
def test_what_goes_wrong_is_said_and_can_be_tried_again(
    page: Browser, post: Post, account: Account, wallet: PageWallet, tmp_path: Path
) -> None:
    opened(page, post)
    account.knows = False
    press(page, "Test Fox")
    wallet.serve(SAID, lambda said: "Switch to Ethereum" in said)
    press(page, "Switch to Ethereum")
    wallet.serve(SAID, lambda said: "is simulated here" in said)
    account.chain = CHAIN
    for native, tokens, declines, wanted in (
        (1, 5_000_000, False, "This account has 5 USDT on Ethereum, and 129.9 are needed."),
        (0, 10**30, False, "no ETH for the fee"),
        (1, 10**30, True, "You have declined"),
    ):
        account.native, account.tokens, account.declines = native, tokens, declines
        press(page, "Try again")
        page.wait(f"{OFFERED} === 1")
        press(page, "Test Fox")
        wallet.serve(SAID, lambda said, wanted=wanted: wanted in said)
        page.screenshot(tmp_path / f"{wanted[:12]}.png")
    assert account.sent == []
    account.declines = False
    press(page, "Try again")
    press(page, "Test Fox")
    wallet.serve(SAID, lambda said: "do not pay twice" in said)
    assert len(account.sent) == 1


@pytest.mark.sweep
def test_an_amount_that_changes_meanwhile_is_not_paid(page: Browser, post: Post, account: Account, wallet: PageWallet) -> None:
    account.chain = CHAIN
    invoice = opened(page, post)
    connect: Callable[[str, list[Any]], Any] = account.__call__

    def slow(method: str, params: list[Any]) -> Any:
        if method == "eth_requestAccounts":
            body = {"network": "ethereum", "coin": "usdt", "address": invoice["address"], "amount": "100"}
            post("/sandbox/deposits", body)
            page.wait("document.getElementById('send')?.textContent === '29.9'")
        return connect(method, params)

    wallet._answer = slow
    press(page, "Test Fox")
    wallet.serve(SAID, lambda said: "has changed meanwhile" in said)
    assert account.sent == []


@pytest.mark.sweep
def test_a_hostile_wallet_is_text_and_an_image(page: Browser, post: Post, account: Account, tmp_path: Path) -> None:
    infos = [
        {**FOX, "name": "<img src=x onerror=alert(1)>\u202eksaMateM", "icon": "https://evil.example/pixel.png"},
        {**FOX, "name": "x" * 500, "icon": "javascript:alert(1)"},
        {**FOX, "name": {"toString": 1}, "icon": "data:text/html,<script>alert(1)</script>"},
        {**FOX, "name": "", "icon": "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'></svg>"},
    ]
    wallets = [evm_wallet(page, account, info) for info in infos]
    try:
        page.size(390, 844, phone=True)
        opened(page, post)
        page.wait(f"{OFFERED} === 4")
        names = page.run("[...document.querySelectorAll('#wallets .offer')].map(b => b.innerText.trim())")
        assert names[0] == "<img src=x onerror=alert(1)>ksaMateM"
        assert names[1] == "x" * 40
        assert page.run("[...document.querySelectorAll('#wallets img')].map(i => i.src.slice(0, 19))") == ["data:image/svg+xml,"]
        assert page.run("document.documentElement.scrollWidth") <= 390
        page.screenshot(tmp_path / "hostile.png")
        assert axe(page) == []
    finally:
        for wallet in wallets:
            wallet.remove()


def test_without_a_wallet_nothing_is_offered(page: Browser, post: Post) -> None:
    invoice = post("/invoices", {"currency": "usdt", "network": "ethereum", "amount": "5"})
    page.open(invoice["checkoutUrl"])
    page.wait("document.getElementById('wallets')?.dataset.offered === 'true'")
    assert page.run("document.getElementById('wallets').hidden")
