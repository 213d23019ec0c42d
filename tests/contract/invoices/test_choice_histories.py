"""Random histories of part payments over choices, locks that end, rates that move or are away, reorganisations and refunds: the
ledger has what the chains have, the invoice is what its payments come to, and no more goes back than came. SWEEP=full tries more of
them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import asset_parts, network_parts
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.money import parse_units
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.known_rates import rates_are
from tests.support.refunds import page_of
from tests.support.shop import PAYEE, Shop, open_shop
from tests.support.stack import Stack

HISTORIES = 40 if os.environ.get("SWEEP") == "full" else 1
STEPS, STEPS_BACK = 14, 10
OFFERS = [("eth", "ethereum"), ("usdt", "ethereum"), ("ltc", "litecoin")]
NETWORKS = ("ethereum", "litecoin")
POLLS = (*(f"poll_{network}" for network in NETWORKS), "relay", "payout")
PAYEES = {"ethereum": PAYEE, "litecoin": "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9"}
PARTS = {"eth": "0.004", "usdt": "9", "ltc": "0.05"}


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


class History:
    """One invoice over 300 US dollars, and whatever happens to it."""

    def __init__(self, shop: Shop, patch: pytest.MonkeyPatch, seed: int) -> None:
        self.shop, self.patch, self.dice = shop, patch, random.Random(seed)
        accept = [{"coin": coin, "network": network} for coin, network in OFFERS]
        self.set_rates()
        made = shop.post("/v1/invoices", {"fiatAmount": "300", "fiatCurrency": "USD", "accept": accept, "expiresIn": 7200})
        assert made.status == 201, made.body
        self.id, self.addresses = made.json["id"], dict[str, str]()
        self.links: list[dict[str, Any]] = []

    def step(self) -> None:
        """What payers do, and what the chains do."""
        self.dice.choice(
            [self.choose, self.choose, self.pay, self.pay, self.pay, self.poll, self.poll, self.mine, self.fork, self.wait]
        )()

    def step_back(self) -> None:
        """What is paid goes back, while more comes and some falls out."""
        self.dice.choice(
            [self.refund, self.refund, self.refund, self.claim, self.claim, self.cancel, self.pay, self.settle, self.fork]
        )()

    def set_rates(self) -> None:
        """Rates move, and now and then one is away."""
        known: list[tuple[str, str, str]] = []
        for coin, usual in (("eth", 3000), ("usdt", 1), ("ltc", 80)):
            value = Fraction(usual) * self.dice.randint(80, 120) / 100
            if self.dice.random() > 0.15:
                known.append((coin, "USD", f"{float(value):.4f}"))
        rates_are(self.patch, *known)

    def choose(self) -> None:
        coin, network = self.dice.choice(OFFERS)
        answer = self.shop.stack.call("POST", f"/v1/pay/{self.id}/choice", json={"coin": coin, "network": network})
        assert answer.status in (200, 400), answer.body
        if answer.status == 200:
            self.addresses[network] = answer.json["address"]

    def pay(self) -> None:
        """A part of the price, in a coin that its address takes, chosen or not; or a coin that does not count."""
        coin, network = self.dice.choice([*OFFERS, ("dai", "ethereum")])
        if network not in self.addresses:
            return
        found = services().catalogue("test").coins[network, coin]
        units = self.dice.randint(1, 6 * 10**6) * 10**found.decimals // (10**9 if coin == "eth" else 10**5)
        services().sandbox.deposit(found.network, self.addresses[network], found, max(1, units))

    def poll(self) -> None:
        self.shop.stack.drain(only=POLLS, hurry=True)

    def mine(self) -> None:
        network = self.dice.choice(NETWORKS)
        services().sandbox.blocks(services().catalogue("test").networks[network].id, self.dice.randint(1, 14))

    def settle(self) -> None:
        """Everything has its confirmations."""
        for network in NETWORKS:
            services().sandbox.blocks(services().catalogue("test").networks[network].id, 20)
        self.poll()

    def fork(self) -> None:
        network = services().catalogue("test").networks[self.dice.choice(NETWORKS)]
        services().sandbox.reorg(network.id, self.dice.randint(1, 6), self.dice.random() < 0.5)

    def refund(self) -> None:
        """All that is left of a coin, or a part; in its units, or at the rate of now."""
        coin, network = self.dice.choice(OFFERS)
        body = {"mode": self.dice.choice(("same", "same", "fiat")), "coin": coin, "network": network}
        body |= {"amount": "12" if body["mode"] == "fiat" else PARTS[coin]} if self.dice.random() < 0.7 else {}
        body |= {"address": PAYEES[network]} if self.dice.random() < 0.4 else {}
        answer = self.shop.post(f"/v1/invoices/{self.id}/refunds", body)
        assert answer.status in (201, 400), answer.body
        if answer.status == 201:
            self.nothing_too_much()
            self.links += [answer.json] if answer.json["claimUrl"] else []

    def nothing_too_much(self) -> None:
        """Of each coin no more goes back than came in it, and of all of them no more than their worth."""
        invoice = self.shop.get(f"/v1/invoices/{self.id}")
        taking = [one for one in self.refunds() if one["status"] not in ("failed", "expired", "cancelled")]
        same = [one for one in taking if one["mode"] == "same"]
        came = {(one["coin"], one["network"]): Fraction(one["received"]) for one in invoice["choices"]}
        for place, units in came.items():
            assert sum(Fraction(one["amount"]) for one in same if (one["coin"], one["network"]) == place) <= units
        choosing = self.invoice().choosing
        assert choosing is not None
        worth = {
            (asset_parts(one.asset)[1], network_parts(one.network)[1]): one.counted("confirmed") + one.counted("late")
            for one in choosing.choices
        }
        back = sum((Fraction(one["fiatAmount"]) for one in taking if one["mode"] == "fiat"), Fraction(0))
        back += sum((worth[place] * Fraction(one["amount"]) / came[place] for one in same
                     for place in [(one["coin"], one["network"])]), Fraction(0))  # fmt: skip
        assert back <= sum(worth.values())

    def refunds(self) -> list[dict[str, Any]]:
        return list(self.shop.get(f"/v1/invoices/{self.id}/refunds"))

    def claim(self) -> None:
        if self.links:
            link = self.links.pop(self.dice.randrange(len(self.links)))
            path, address = page_of(link), PAYEES[link["network"]]
            seen = self.shop.stack.call("POST", path, json={"address": address})
            if seen.status == 200:
                word = seen.json["confirm"]
                paid = [self.shop.stack.call("POST", path, json={"address": address, "confirm": word}).status for _ in range(2)]
                assert paid == [200, 400], "it pays once"

    def cancel(self) -> None:
        if self.links:
            link = self.links.pop(self.dice.randrange(len(self.links)))
            assert self.shop.stack.call("DELETE", f"/v1/refunds/{link['id']}", self.shop.key).json["status"] == "cancelled"

    def wait(self) -> None:
        """Locks end, and the rates are others by then."""
        assert self.shop.post("/v1/sandbox/clock", {"advance": self.dice.choice((60, 901, 1800))}).status == 201
        self.set_rates()
        self.shop.get(f"/v1/invoices/{self.id}")

    def end(self) -> None:
        """Every rate is there again, and everything has its confirmations."""
        rates_are(self.patch, *((coin, "USD", value) for coin, value in (("eth", "3000"), ("usdt", "1"), ("ltc", "80"))))
        for _ in range(3):
            self.settle()

    def invoice(self) -> Invoice:
        (found,) = [one for one in services().store.every(Invoice) if one.id == self.id]
        return found


@pytest.mark.parametrize("seed", range(4, 4 + HISTORIES))
def test_the_ledger_is_the_chain_and_the_invoice_its_payments(shop: Shop, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    history = History(shop, monkeypatch, seed)
    between = [history.choose, history.pay, history.pay, history.settle]
    for act in [history.step] * STEPS + between + [history.step_back] * STEPS_BACK:
        act()
        history.poll()
        assert audit(services().store) == []
    history.end()
    assert audit(services().store) == []
    assert [work for work in services().store.every_work() if work.kind in ("unpriced", "deposit")] == []
    on_chain = there(history)
    assert {place: units for place, units in booked(history).items() if units} == {
        p: units for p, units in on_chain.items() if units
    }
    assert {place: units for place, units in received(history).items() if units} == paid_back(history)
    counted = [d for d in services().store.every(Deposit) if d.invoice_id == history.id and d.status == "confirmed" and d.rate]
    worth = sum((d.rate.worth(d.amount) for d in counted if d.rate is not None), Fraction(0))
    invoice = history.invoice()
    assert invoice.counted("confirmed") + invoice.counted("late") == worth
    enough = invoice.counted("confirmed") >= 300
    assert (invoice.status == "completed") == enough, invoice.status
    shown: dict[str, Any] = shop.get(f"/v1/invoices/{history.id}")
    assert shown["paidPercent"] == f"{float(int(worth * 10000 / 300)) / 100:.2f}".rstrip("0").rstrip(".")


def received(history: History) -> dict[tuple[str, str], int]:
    """What the chains say that the payees have."""
    catalogue, found = services().catalogue("test"), {}
    for coin, network in OFFERS:
        known = catalogue.coins[network, coin]
        found[coin, network] = services().reader(catalogue.networks[network]).balance(PAYEES[network], known.contract)
    return found


def paid_back(history: History) -> dict[tuple[str, str], int]:
    """What the refunds say that was paid to them."""
    catalogue, found = services().catalogue("test"), dict[tuple[str, str], int]()
    for one in history.refunds():
        if one["status"] == "completed":
            place = (one["coin"], one["network"])
            units = parse_units(one["amount"], catalogue.coins[place[1], place[0]].decimals)
            found[place] = found.get(place, 0) + units
    return found


def there(history: History) -> dict[tuple[str, str], int]:
    """What the chains say that the invoice's addresses have."""
    catalogue, found = services().catalogue("test"), {}
    for network, address in history.addresses.items():
        reader = services().reader(catalogue.networks[network])
        for coin in catalogue.coins_of(network):
            found[address, coin.asset] = reader.balance(address, coin.contract)
    return found


def booked(history: History) -> dict[tuple[str, str], int]:
    """What the ledger says."""
    catalogue, found = services().catalogue("test"), {}
    for network, address in history.addresses.items():
        place = services().context(catalogue.networks[network]).form(address)
        for coin in catalogue.coins_of(network):
            balance = services().store.get(WalletBalance, network=coin.network, address=place, asset=coin.asset)
            found[address, coin.asset] = 0 if balance is None else balance.units
    return found
