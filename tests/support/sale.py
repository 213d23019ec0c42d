"""A merchant on a litecoin in memory whom many pay in one block, and the messages of its polls."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import JournalEntry
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.coins import Output
from chalicelib.wiring import services
from chalicelib.workers import poll, record
from tests.support.bundles import COIN, Shop
from tests.support.fake_coins import Tx

UNITS = COIN // 100


class Sale:
    """A merchant that many pay in one block, and the messages of its polls, which nobody handles by themselves."""

    def __init__(self, shop: Shop, patch: pytest.MonkeyPatch, payments: int, together: bool = False) -> None:
        """`together`: one transaction pays all."""
        self.shop, self.payments, self.sent = shop, 0, list[dict[str, str]]()
        self.addresses = [shop.post("/v1/addresses", network="litecoin")["address"] for _ in range(payments // 10)]
        self.pay(payments, together)
        self.before = float(shop.available())
        self.on_message: Callable[[dict[str, str]], None] = lambda _: None
        patch.setattr(services().queues, "record", self._asked)

    def pay(self, payments: int, together: bool = False) -> None:
        """So many pay in one block."""
        self.payments += payments
        to = [self.addresses[n % len(self.addresses)] for n in range(payments)]
        if together:
            tx = Tx(self.shop.chain._hash("disperse"), (), tuple(Output(address, UNITS) for address in to))
            self.shop.chain.pool[tx.txid] = tx
        for address in to if not together else ():
            self.shop.chain.pay(address, UNITS)
        self.shop.chain.mine()

    def _asked(self, share: dict[str, str]) -> None:
        self.sent.append(share)
        self.on_message(share)

    def scan(self) -> Cursor:
        """What a tick does, and a poll first: no rescan."""
        with in_realm("live"):
            return services().scanner(services().catalogue("live").networks["litecoin"]).poll(lambda: True)

    def rescan(self) -> None:
        with in_realm("live"):
            poll._rescan(services().catalogue("live").networks["litecoin"], lambda: True)

    def deposits(self, status: str) -> int:
        ours = [deposit for deposit in services().store.every(Deposit) if deposit.address in self.addresses]
        return sum(deposit.status == status for deposit in ours)

    def credited_once(self) -> None:
        posted = [entry.ref["deposit"] for entry in services().store.every(JournalEntry) if entry.kind == "deposit_credited"]
        assert len(posted) == len(set(posted)) and self.deposits("confirmed") == self.payments
        assert float(self.shop.available()) == pytest.approx(self.before + self.payments * UNITS / COIN)
        self.shop.whole()


def handle(share: dict[str, str]) -> None:
    record.handle(json.dumps(share))


def names(share: dict[str, str]) -> list[tuple[str, str]]:
    """The payments that a message names."""
    return list(zip(share["txids"].split(","), share["positions"].split(","), strict=True))
