"""The demo's reset: remove what visitors made, put the catalogue back, and fill the sandbox with records of every kind.

Filling goes through the use cases that requests and pollers use. The sandbox's clock begins a day and a half in the past and is
moved to the present while its history is made: that is how invoices expire and payments come late. Withdrawals are asked for,
with the outcome that the chain shall give them; the payout function pays them as it pays all others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Coin, Network, default_coins, default_networks
from chalicelib.domain.demo import SHOP
from chalicelib.domain.ids import tenant_id
from chalicelib.domain.versions import version_after
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.invoices.invoices import Wishes
from chalicelib.usecases.ports.changes import Change, Delete, Save
from chalicelib.usecases.withdrawals.facts import Output
from chalicelib.wiring import Services, services
from chalicelib.workers import poll

log = logging.getLogger(__name__)

NOTICE_SECONDS = 65.0
"""Pollers run for a minute at most and look whether a reset is at work before they begin."""
HISTORY_SECONDS = 36 * 3_600
GREY = "0x000000000000000000000000000000000000dEaD"
PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"


def run(wait: Callable[[float], None] = time.sleep) -> bool:
    """Do the reset where one is due; whether it was done. Raises any error that stops it: the next run begins it again."""
    wired = services()
    if wired.settings.stage != "demo":
        raise ValueError(f"the stage {wired.settings.stage} has no reset")
    if not wired.demo_resets.begin():
        return False
    wait(NOTICE_SECONDS)
    log.info("the demo is reset: %d items are gone", wired.wipe_demo())
    restore_catalogue(wired)
    with in_realm("test"):
        fill(wired)
    wired.demo_resets.end()
    return True


def restore_catalogue(wired: Services) -> None:
    """Networks and coins as at the first start; coins that visitors made are gone."""
    store = wired.store
    store.forget_catalogue()
    catalogue = store.catalogue("test")
    changes: list[Change] = []
    wanted: list[Network | Coin] = [*default_networks("test"), *default_coins("test")]
    for record in wanted:
        before: Network | Coin | None
        if isinstance(record, Network):
            before = catalogue.networks.get(record.slug)
        else:
            before = catalogue.coins.get((record.network.split(":")[1], record.slug))
        same = before is not None and replace(record, version=before.version) == before
        if not same:
            changes.append(Save(replace(record, version=version_after(before))))
    known = {(coin.network, coin.slug) for coin in wanted if isinstance(coin, Coin)}
    changes += [
        Delete(Coin, {"network": coin.network, "slug": coin.slug})
        for coin in catalogue.coins.values()
        if (coin.network, coin.slug) not in known
    ]
    for start in range(0, len(changes), 10):
        store.commit(changes[start : start + 10])
    store.forget_catalogue()


class _Filling:
    def __init__(self, wired: Services) -> None:
        self.wired, self.tenant = wired, tenant_id(SHOP, "test")
        self.catalogue = wired.catalogue("test")
        self.made = 0

    def network(self, slug: str) -> Network:
        return self.catalogue.networks[slug]

    def coin(self, network: str, slug: str) -> Coin:
        return self.catalogue.coins[network, slug]

    def invoice(self, network: str, coin: str, amount: int, what: str, hours: int = 1) -> str:
        """An invoice over `amount` whole coins; its address."""
        self.made += 1
        found = self.coin(network, coin)
        wishes = Wishes(f"demo-{self.made}", what, expires_in=hours * 3_600)
        made = self.wired.invoices.create(self.tenant, found, amount * 10**found.decimals, wishes)
        self.last_invoice = made.id
        return made.address or ""

    def pay(self, network: str, coin: str, address: str, amount: int, sender: str | None = None) -> None:
        found = self.coin(network, coin)
        self.wired.sandbox.deposit(found.network, address, found, amount * 10**found.decimals, sender)

    def confirmed(self, network: str) -> None:
        """Everything that is paid there becomes final."""
        self.wired.sandbox.blocks(self.network(network).id, self.network(network).confirmations)
        poll.poll(network)

    def later(self, hours: float, *networks: str) -> None:
        self.wired.sandbox_time.advance(round(hours * 3_600))
        self.wired.sandbox.catch_up()
        for network in networks:
            poll.poll(network)

    def withdraw(self, coin: Coin, amount: int, to: str, outcome: str | None = None) -> str:
        """A withdrawal of whole coins, with what the chain shall make of it; its id."""
        made = self.wired.withdrawals.create(self.tenant, coin, Output(to, amount * 10**coin.decimals))
        if outcome is not None:
            self.wired.sandbox.outcome(self.tenant, made.id, outcome)
        return made.id


def fill(wired: Services) -> None:
    """Addresses, invoices, transactions and withdrawals in every state, for the published keys' merchant."""
    wired.sandbox_time.begin(HISTORY_SECONDS)
    for network in wired.catalogue("test").networks.values():
        wired.scanner(network).start()
    wired.sandbox.fund_hot_wallets()
    here = _Filling(wired)

    # A day and a half ago: paid in full, too much, too little, too late, never; and one that was called off.
    paid = here.invoice("ethereum", "usdt", 250, "Paid in full")
    over = here.invoice("ethereum", "usdt", 100, "Paid too much")
    part = here.invoice("ethereum", "usdt", 80, "Paid in part, then its time was over")
    late = here.invoice("ethereum", "usdt", 60, "Paid when its time was over")
    here.invoice("ethereum", "usdt", 40, "Never paid")
    here.invoice("tron", "usdt", 30, "Called off")
    wired.invoices.override(here.tenant, here.last_invoice, "cancelled", "the demo")
    here.pay("ethereum", "usdt", paid, 250)
    here.pay("ethereum", "usdt", over, 130)
    here.pay("ethereum", "usdt", part, 50)
    here.confirmed("ethereum")
    here.later(2, "ethereum", "tron")
    here.pay("ethereum", "usdt", late, 60)
    here.confirmed("ethereum")

    # A day ago: a payment that a reorganisation took away, and one that is held because of whom it came from.
    orphaned = wired.addresses.create(here.tenant, here.network("ethereum"), None, "common", "Donations")
    here.pay("ethereum", "eth", orphaned.address, 3)
    poll.poll("ethereum")
    wired.sandbox.reorg(here.network("ethereum").id, 1)
    poll.poll("ethereum")
    wired.grey_list.add("test", "ethereum", GREY, "Seen in a theft", "the demo")
    here.pay("ethereum", "usdt", orphaned.address, 20, GREY)
    here.pay("ethereum", "eth", orphaned.address, 2)
    here.confirmed("ethereum")
    till = wired.addresses.create(here.tenant, here.network("litecoin"), None, "common", "Till on litecoin")
    here.pay("litecoin", "ltc", till.address, 12)
    here.confirmed("litecoin")
    for slug in ("bitcoin", "tron", "bsc"):
        wired.addresses.create(here.tenant, here.network(slug), None, "common", f"Till on {slug}")

    # Now. Litecoin's blocks come only when a visitor asks for them: what is seen there stays unconfirmed.
    here.later(HISTORY_SECONDS / 3_600 - 2, "ethereum", "tron", "litecoin")
    seen = here.invoice("litecoin", "ltc", 5, "Paid, waiting for confirmations", 24)
    some = here.invoice("litecoin", "ltc", 4, "Paid in part so far", 24)
    here.pay("litecoin", "ltc", seen, 5)
    here.pay("litecoin", "ltc", some, 1)
    here.invoice("bitcoin", "btc", 1, "Waiting for its payment", 24)
    poll.poll("litecoin")

    # Withdrawals of every outcome: made, failed, called off, waiting for approval; and one that waits for litecoin's blocks.
    usdt, ltc = here.coin("ethereum", "usdt"), here.coin("litecoin", "ltc")
    here.withdraw(usdt, 25, PAYEE, "confirm")
    here.withdraw(usdt, 35, PAYEE, "fail")
    wired.withdrawals.cancel(here.tenant, here.withdraw(usdt, 15, PAYEE))
    here.withdraw(usdt, 10, GREY)
    here.withdraw(ltc, 2, till.address)
