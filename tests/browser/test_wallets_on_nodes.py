"""A payer's wallets pay real nodes from the checkout, until it says paid: anvil by EIP-6963, the Tron node by TronLink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.chains.rpc import JsonRpc
from infra.local.nodes import mine
from infra.local.tron.process import Http
from tests.support.asking import Post, poster
from tests.support.browser import Browser
from tests.support.running import Running, free_port
from tests.support.tron import Customer
from tests.support.wallets import Declined, PageWallet, Refusal, evm_wallet, tron_wallet

pytestmark = [pytest.mark.browser, pytest.mark.nodes, pytest.mark.sweep]

SAID = "(document.querySelector('#wallets [role=status]')?.innerText ?? '').replace(/[\\u2068\\u2069]/g, '')"
OFFERED = "document.querySelectorAll('#wallets .offer').length"
SEEN = "['state busy', 'state good'].includes(document.querySelector('.state').className)"
PAID = "document.querySelector('.state').className === 'state good'"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A stack with real nodes."""
    running = Running(tmp_path_factory.mktemp("nodes"), free_port(), NODES="1")
    try:
        yield running.wait_until_up()
    finally:
        running.end()


@pytest.fixture
def post(live: dict[str, Any]) -> Post:
    return poster(live, "client_live")


def opened(page: Browser, post: Post, **wanted: str) -> Any:
    invoice = post("/invoices", wanted)
    page.open(invoice["checkoutUrl"])
    page.wait(f"location.pathname.endsWith('{invoice['id']}') && {OFFERED} > 0")
    return invoice


def press(page: Browser) -> None:
    page.run("document.querySelector('#wallets .offer').click()")


class NodeWallet:
    """A wallet whose accounts the node itself has, as anvil does: what it is asked for it asks the node."""

    def __init__(self, rpc: JsonRpc, account: str) -> None:
        self.rpc, self.account, self.chain = rpc, account, int(rpc.call("eth_chainId"), 16)
        self.sent: list[str] = []

    def __call__(self, method: str, params: list[Any]) -> Any:
        match method:
            case "eth_requestAccounts":
                return [self.account]
            case "eth_chainId":
                return hex(self.chain)
            case "eth_sendTransaction":
                self.sent.append(str(self.rpc.call(method, params)))
                return self.sent[-1]
            case "eth_getBalance" | "eth_call":
                return self.rpc.call(method, params)
        raise Refusal(-32601, f"no method {method}")


@pytest.fixture
def evm(page: Browser, live: dict[str, Any]) -> Iterator[tuple[PageWallet, NodeWallet]]:
    rpc = JsonRpc(live["nodes"]["ethereum"])
    answers = NodeWallet(rpc, rpc.call("eth_accounts")[0])
    wallet = evm_wallet(page, answers)
    yield wallet, answers
    wallet.remove()


@pytest.mark.parametrize(("coin", "amount"), [("eth", "0.012345678901234567"), ("usdt", "12.345678")])
def test_an_evm_wallet_pays_a_real_node(
    page: Browser, post: Post, evm: tuple[PageWallet, NodeWallet], tmp_path: Path, coin: str, amount: str
) -> None:
    wallet, answers = evm
    opened(page, post, currency=coin, network="ethereum", amount=amount)
    press(page)
    wallet.serve(SAID, lambda said: "do not pay twice" in said)
    (hash_,) = answers.sent
    assert page.run("document.querySelector('#wallets a').href") == f"https://etherscan.io/tx/{hash_}"
    page.screenshot(tmp_path / "sent.png")
    page.wait(SEEN)
    assert page.run("document.getElementById('wallets').hidden")
    mine(answers.rpc, 12)
    page.wait(PAID)
    page.screenshot(tmp_path / "paid.png")


def test_an_empty_account_is_told_and_nothing_is_sent(page: Browser, post: Post, evm: tuple[PageWallet, NodeWallet]) -> None:
    wallet, answers = evm
    answers.account = "0x" + "5a" * 20
    opened(page, post, currency="usdt", network="ethereum", amount="5")
    press(page)
    wallet.serve(SAID, lambda said: "This account has 0 USDT on Ethereum, and 5 are needed." in said)
    assert answers.sent == []


class Link:
    """TronLink with a real key, which signs what it is given and asks no node."""

    def __init__(self, customer: Customer) -> None:
        self.customer, self.declines = customer, False

    def __call__(self, method: str, params: list[Any]) -> Any:
        match method:
            case "eth_requestAccounts":
                return [self.customer.address]
            case "eth_chainId":
                return "0x2b6653dc"
            case "sign":
                if self.declines:
                    raise Declined
                return self.customer.signed(params[0])
        raise Refusal(-32601, f"no method {method}")


class Remote:
    """The Tron node of the stack, as a customer asks it."""

    def __init__(self, url: str) -> None:
        self.http = Http(url)

    def call(self, path: str, **params: Any) -> Any:
        return self.http.call(path, params)

    def faucet(self, address: str, amount: str, coin: str) -> None:
        self.call("dev/faucet", address=address, amount=amount, coin=coin)


@pytest.fixture
def link(page: Browser, live: dict[str, Any]) -> Iterator[tuple[PageWallet, Link]]:
    node: Any = Remote(live["nodes"]["tron"])
    answers = Link(Customer(node))
    wallet = tron_wallet(page, answers)
    yield wallet, answers
    wallet.remove()


@pytest.mark.parametrize("coin", ["usdt", "trx"])
def test_tronlink_signs_and_the_service_sends(
    page: Browser, post: Post, link: tuple[PageWallet, Link], tmp_path: Path, coin: str
) -> None:
    wallet, answers = link
    node: Any = answers.customer.node
    opened(page, post, currency=coin, network="tron", amount="12.5")
    if coin == "usdt":
        press(page)
        wallet.serve(SAID, lambda said: "has too little" in said)
        page.screenshot(tmp_path / "poor.png")
        page.run("document.querySelector('#wallets button').click()")
        page.wait(f"{OFFERED} === 1")
    for held, amount in (("TRX", "100"), ("USDT", "20")):
        node.faucet(answers.customer.address, amount, held)
    node.call("dev/mine", count=1)
    answers.declines = True
    press(page)
    wallet.serve(SAID, lambda said: "You have declined in TronLink" in said)
    answers.declines = False
    page.run("document.querySelector('#wallets button').click()")
    page.wait(f"{OFFERED} === 1")
    press(page)
    wallet.serve(SAID, lambda said: "do not pay twice" in said)
    assert page.run("document.querySelector('#wallets a').href").startswith("https://tronscan.org/#/transaction/")
    page.screenshot(tmp_path / "sent.png")
    page.wait(SEEN)
    node.call("dev/mine", count=19)
    page.wait(PAID)
    # No script of the page asked anybody but the service (the fixture `page` looks at each request).
    assert page.run("document.getElementById('wallets').hidden")
