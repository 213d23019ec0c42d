"""A shop on the whole service, and what can go wrong around it: nodes that answer otherwise, a key service that is away.

What the tests of unhappy paths use. `Shop` asks through the API, lets clocks and queues run, and moves the time and the chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import botocore.client
import pytest
from botocore.exceptions import EndpointConnectionError

from chalicelib.chains.sandbox.chain import SandboxChain
from chalicelib.domain.addresses.addresses import Wallet
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import parse_units
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.pump import Drained
from infra.local.queues import consumers
from tests.support.stack import Response, Stack

ETHER = 10**18
CONFIRMATIONS = 12
PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # EIP-55's own example
IDLE = 35
"""Seconds after which housekeeping asks again for a payment that stands still."""
THIRST = 125
"""Seconds after which housekeeping asks again for one that waits for liquidity."""


class Shop:
    """One merchant of the test realm. `network` is where it does business unless told otherwise."""

    def __init__(self, stack: Stack, key: str = "client_test", network: str = "ethereum") -> None:
        self.stack, self.key, self.network = stack, stack.keys[key], network

    def open(self, *credits: tuple[str, str]) -> None:
        """See hot wallets funded, and have `credits` (amounts and coins): done once for a module's tests, given back to each."""

        def make() -> None:
            self.turn()
            for amount, coin in credits:
                self.credit(amount, coin)

        self.stack.prepare((self.network, self.key, credits), make)

    # What the merchant asks for.

    def post(self, path: str, body: Any, **headers: str) -> Response:
        return self.stack.call("POST", path, self.key, json=body, headers=headers)

    def get(self, path: str, **query: str) -> Any:
        answer = self.stack.call("GET", path, self.key, query=query)
        assert answer.status == 200, answer.body
        return answer.json

    def invoice(self, amount: str = "1", coin: str = "eth", **more: Any) -> dict[str, Any]:
        made = self.post("/v1/invoices", {"currency": coin, "amount": amount, "network": self.network, **more})
        assert made.status == 201, made.body
        return dict(made.json)

    def shown(self, invoice: dict[str, Any]) -> Any:
        return self.get("/v1/invoices", id=invoice["id"])

    def status(self, invoice: dict[str, Any]) -> str:
        return str(self.shown(invoice)["status"])

    def ask(self, amount: str, coin: str = "eth", address: str = PAYEE) -> Response:
        return self.post("/v1/withdraws", {"network": self.network, "coin": coin, "address": address, "amount": amount})

    def withdraw(self, amount: str, coin: str = "eth", address: str = PAYEE) -> str:
        made = self.ask(amount, coin, address)
        assert made.status == 201, made.body
        return str(made.json["id"])

    def withdrawal(self, withdrawal_id: str) -> Any:
        return self.get(f"/v1/withdrawals/{withdrawal_id}")["data"]

    def balance(self, coin: str = "eth") -> dict[str, str]:
        """Available, frozen and pending, as the API shows them."""
        for entry in self.get("/v1/balances")["data"]:
            if (entry["network"], entry["coin"]) == (self.network, coin):
                return {name: entry[name] for name in ("available", "frozen", "pending")}
        return {"available": "0", "frozen": "0", "pending": "0"}

    def available(self, coin: str = "eth") -> str:
        return self.balance(coin)["available"]

    def told(self, object_id: str) -> Counter[str]:
        """How often each event of one record was told."""
        return Counter(event.name for event in services().store.every(EventRecord) if event.object_id == object_id)

    # What the world does.

    def coin(self, slug: str) -> Coin:
        return services().catalogue("test").coins[self.network, slug]

    def realm_network(self) -> Network:
        return services().catalogue("test").networks[self.network]

    def chain(self) -> SandboxChain:
        return services().simulated(self.realm_network().id)

    def pay(self, address: str, amount: str, coin: str = "eth") -> dict[str, Any]:
        found = self.coin(coin)
        return services().sandbox.deposit(found.network, address, found, parse_units(amount, found.decimals))

    def mine(self, count: int = CONFIRMATIONS) -> None:
        self.chain().mine(count)

    def reorg(self, depth: int, remine: bool = False) -> dict[str, Any]:
        return services().sandbox.reorg(self.realm_network().id, depth, remine)

    def wait(self, seconds: int) -> None:
        services().clock.shift_ms += seconds * 1000

    def turn(self, *more: str, failures: Any = "raise") -> Drained:
        """The network's poll and the queues, until nothing changes; `more` schedules beside them."""
        only = (f"poll_{self.network}", "relay", "payout", "collect", *more)
        return self.stack.drain(only=only, failures=failures, hurry=True)

    def nudge(self, seconds: int = IDLE) -> Drained:
        """Time passes, housekeeping looks once, and what it finds is done."""
        self.wait(seconds)
        self.stack.drain(only=("housekeeping",), rounds=1)
        return self.turn()

    def credit(self, amount: str, coin: str = "eth") -> None:
        """Give the merchant `amount`, credited."""
        before = Decimal(self.available(coin))
        self.pay(self.invoice(amount, coin)["address"], amount, coin)
        self.mine()
        self.turn()
        assert Decimal(self.available(coin)) == before + Decimal(amount)

    def messages(self, queue: str) -> list[Any]:
        """What waits in the queue of a consumer."""
        (consumer,) = (c for c in consumers(self.stack.app) if c.name == queue)
        return list(consumer.queue()._messages)

    # What stands in the store.

    def record(self, withdrawal_id: str) -> Withdrawal:
        (found,) = (w for w in services().store.every(Withdrawal) if w.id == withdrawal_id)
        return found

    def order(self, withdrawal_id: str) -> PaymentOrder:
        (found,) = (o for o in services().store.every(PaymentOrder) if o.withdrawal_id == withdrawal_id)
        return found

    def journal(self, kind: str) -> list[JournalEntry]:
        return [entry for entry in services().store.every(JournalEntry) if entry.kind == kind]

    def hot(self) -> Wallet:
        found = services().store.get(Wallet, network=self.realm_network().id, role="hot")
        assert found is not None
        return found

    def paid(self, address: str = PAYEE, coin: str = "eth") -> int:
        """What the chain itself says that an address has, in units."""
        return services().reader(self.realm_network()).balance(address, self.coin(coin).contract)


@contextmanager
def open_shop(stack: Stack, *credits: tuple[str, str]) -> Iterator[Shop]:
    """A shop that was opened with `credits` (`Shop.open`); at the end the books must be whole."""
    shop = Shop(stack)
    shop.open(*credits)
    yield shop
    assert audit(services().store) == []


class Node:
    """A reader whose answers pass through what the test puts there; the rest is the real one's.

    A method set to a function `f` answers `f(the real answer, *arguments)`.
    """

    def __init__(self, real: Any) -> None:
        self._real = real
        self._bent: dict[str, Callable[..., Any]] = {}

    def bend(self, **answers: Callable[..., Any]) -> None:
        self._bent.update(answers)

    def mend(self) -> None:
        self._bent.clear()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        bent = self._bent.get(name)
        return real if bent is None else lambda *arguments: bent(real(*arguments), *arguments)


def bent_node(shop: Shop, patch: pytest.MonkeyPatch) -> Node:
    """Put a `Node` in front of the shop's network for this test."""
    wired = services()
    network = shop.realm_network()
    node = Node(wired.reader(network))
    real = wired.reader
    patch.setattr(wired.wiring.chains, "reader", lambda asked: node if asked.id == network.id else real(asked))
    return node


def with_also(node: Node, extra: list[Transfer], block_hash: str) -> None:
    """Let the block of that hash hold `extra` too, and prove them."""

    def blocks(real: list[Block], *_: Any) -> list[Block]:
        return [replace(b, transfers=[*b.transfers, *extra]) if b.hash == block_hash else b for b in real]

    def proven(real: list[Transfer], block: Block, asked: list[Transfer]) -> list[Transfer]:
        return [*real, *(t for t in asked if t in extra and block.hash == block_hash)]

    node.bend(blocks=blocks, proven=proven)


class Kms:
    """Counts what is asked of KMS, and is away while `away` is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.away = False
        self.calls: Counter[str] = Counter()
        real = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

        def call(client: Any, operation: str, parameters: Any) -> Any:
            if client.meta.service_model.service_name == "kms":
                self.calls[operation] += 1
                if self.away:
                    raise EndpointConnectionError(endpoint_url="kms")
            return real(client, operation, parameters)

        patch.setattr(botocore.client.BaseClient, "_make_api_call", call)


def as_operator(shop: Shop, method: str, path: str, **body: Any) -> Any:
    answer = shop.stack.call(method, path, shop.stack.keys["admin_test"], json=body)
    assert answer.status in (200, 201), answer.body
    return answer.json


STUCK = 365
"""Seconds after which a payment on ethereum at the priority normal counts as stuck."""


def decide(shop: Shop, withdrawal: str, outcome: str) -> None:
    answer = shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": outcome})
    assert answer.status == 200, answer.body
