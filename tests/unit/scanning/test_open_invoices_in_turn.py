"""Open invoices whose addresses are compared with the chain, where no node traces: a merchant with many delays nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from chalicelib.chains.addresses import Rules
from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.invoices.invoices import expiry_work
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.scanning.internal_transfers import InternalTransfers
from tests.support.memory_store import HandClock, MemoryStore
from tests.support.webhooks import NOW

HONEST, HOSTILE = TenantId("mch_honest:live"), TenantId("mch_hostile:live")
NETWORK = next(network for network in default_networks("live") if network.slug == "arbitrum")


class Node:
    """A reader that notes what it is asked about: nothing has a balance."""

    traces = False

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def balances_at(self, addresses: Sequence[str], number: int, block_hash: str, contract: str | None = None) -> list[int]:
        self.asked.append(list(addresses))
        return [0] * len(addresses)

    def nonces(self, addresses: Sequence[str]) -> list[int]:
        return [0] * len(addresses)


class Store(MemoryStore):
    def catalogue(self, realm: str, fresh: bool = False) -> Any:
        return Catalogue("live", default_networks("live"), default_coins("live"))


class World:
    def __init__(self) -> None:
        self.store, self.node, self.made = Store(), Node(), 0
        recent = {str(number): f"0x{number}" for number in range(1, 1001)}
        self.store.commit([Save(Cursor(NETWORK.id, 1000, "0x1000", NOW, 1000, NOW, recent))])
        clock, recorder = HandClock(NOW), cast(Any, None)
        context = NetworkContext(NETWORK, cast(Any, self.node), cast(Any, self.store), Rules(), clock)
        self.booker = InternalTransfers(context, recorder)

    def invoices(self, tenant: TenantId, count: int, expires_at: int) -> list[str]:
        """So many open ones; their addresses."""
        addresses = []
        for n in range(self.made, self.made + count):
            addresses.append(f"0x{n:040x}")
            asset = AssetId(f"{NETWORK.id}:eth")
            invoice = Invoice(f"inv_{n:06d}", tenant, NETWORK.id, asset, addresses[-1], f"addr_{n}", 1, NOW, expires_at + n)
            self.store.commit([Save(invoice), Open(expiry_work(invoice))])
        self.made += count
        return addresses

    def polls_until_asked(self, wanted: Sequence[str], most: int) -> int:
        left = set(wanted)
        for poll in range(1, most + 1):
            self.booker.work(lambda: True)
            left -= set(self.node.asked[-1])
            if not left:
                return poll
        raise AssertionError(f"{len(left)} addresses were not looked at in {most} polls")


def test_open_invoices_of_a_hostile_merchant_do_not_delay_another_ones() -> None:
    """3,000 that expire before it: sixty-one polls where all wait in one line."""
    world = World()
    world.invoices(HOSTILE, 3_000, NOW + 1_000)
    paid = world.invoices(HONEST, 1, NOW + 3_600_000)
    assert world.polls_until_asked(paid, 2) == 1


def test_a_merchant_whose_invoices_are_many_has_its_share_of_the_looks() -> None:
    world = World()
    mixed: list[str] = []
    for n in range(40):
        world.invoices(HOSTILE, 99, NOW + 1_000 * n)
        mixed += world.invoices(HONEST, 1, NOW + 1_000 * n)
    world.booker.work(lambda: True)
    (asked,) = world.node.asked
    assert len(asked) == len(set(asked)) <= 100
    assert len(set(asked) & set(mixed)) >= 25  # half of the turn's fifty, and what the ring met


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 120])
def test_each_open_invoice_is_looked_at_at_last_and_none_without_need(count: int) -> None:
    world = World()
    alone = world.invoices(HOSTILE, count, NOW + 1_000)
    if count:
        world.polls_until_asked(alone, count // 50 + 1)
    world.booker.work(lambda: True)
    assert max(map(len, world.node.asked), default=0) <= (50 if count < 50 else 100)


def test_nobody_else_in_line_then_the_ring_goes_round_all() -> None:
    world = World()
    assert world.polls_until_asked(world.invoices(HOSTILE, 1_000, NOW + 1_000), 21) <= 21
