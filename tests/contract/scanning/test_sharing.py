"""A crowded block is shared out: whatever becomes of the messages, each payment is recorded and credited once, and none is left.

The chain is `tests.support.fake_coins`; bounds are small, so that eight payments are a crowd.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ledger import JournalEntry
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.deposits import groups
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.scanning import confirming, recording, sharing
from chalicelib.usecases.scanning.sharing import Share
from chalicelib.wiring import services
from chalicelib.workers import record
from tests.support.bundles import COIN, CONFIRMATIONS, NETWORK, Shop

CROWD = 8


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "FROM", 4)
    monkeypatch.setattr(sharing, "SHARE", 2)
    monkeypatch.setattr(groups, "MOST", 2)
    monkeypatch.setattr(recording, "_FEW", 1)
    monkeypatch.setattr(confirming, "CONFIRM_AT_ONCE", 3)


class Crowd:
    """A shop that eight pay in one block, and the messages of its polls."""

    def __init__(self, shop: Shop, patch: pytest.MonkeyPatch) -> None:
        self.shop, self.sent = shop, list[dict[str, str]]()
        made = [shop.post("/v1/invoices", currency="ltc", amount="1", network="litecoin") for _ in range(CROWD)]
        self.addresses = [invoice["address"] for invoice in made]
        for address in self.addresses:
            shop.chain.pay(address, COIN)
        shop.chain.mine()
        self.before = float(shop.available())
        self.on_message: Callable[[dict[str, str]], None] = lambda _: None
        patch.setattr(services().queues, "record", self._asked)

    def _asked(self, share: dict[str, str]) -> None:
        self.sent.append(share)
        self.on_message(share)

    def poll(self) -> Cursor:
        with in_realm("live"):
            return services().scanner(services().catalogue("live").networks["litecoin"]).poll(lambda: True)

    def deposits(self) -> list[Deposit]:
        return [deposit for deposit in services().store.every(Deposit) if deposit.address in self.addresses]

    def recorded(self) -> bool:
        found = self.deposits()
        return len(found) == CROWD and {deposit.status for deposit in found} == {"pending"}

    def credited(self) -> bool:
        posted = [entry.ref["deposit"] for entry in services().store.every(JournalEntry) if entry.kind == "deposit_credited"]
        ours = sorted(deposit.id for deposit in self.deposits())
        return sorted(id_ for id_ in posted if id_ in ours) == ours

    def confirm(self) -> None:
        """All is deep enough, and polled."""
        self.shop.chain.mine(CONFIRMATIONS)
        self.poll()
        assert self.credited() and float(self.shop.available()) == pytest.approx(self.before + CROWD)


def handle(share: dict[str, str]) -> None:
    record.handle(json.dumps(share))


@pytest.fixture
def crowd(begin: Callable[[], Shop], monkeypatch: pytest.MonkeyPatch) -> Crowd:
    return Crowd(begin(), monkeypatch)


def test_every_message_is_lost(crowd: Crowd) -> None:
    assert crowd.poll().number == crowd.shop.chain.tip() and crowd.recorded()
    assert [len(share["txids"].split(",")) for share in crowd.sent] == [2, 2, 2], "the poll begins with the first share"
    crowd.sent.clear()
    crowd.confirm()
    assert [len(share["deposits"].split(",")) for share in crowd.sent] == [2, 2, 1], "the first three are the poll's own"
    crowd.shop.whole()


def test_every_message_is_handled_at_once(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The poll then finds all but its own share in the store."""
    crowd.on_message = handle
    asked: list[int] = []
    real = services().deposits("live").__class__.detect_together

    def counted(self: Any, *args: Any) -> Any:
        asked.append(len(args[-1]))
        return real(self, *args)

    monkeypatch.setattr(services().deposits("live").__class__, "detect_together", counted)
    crowd.poll()
    assert crowd.recorded() and asked == [2, 2, 2, 2], "three by the messages, and the first by the poll"
    crowd.confirm()
    crowd.shop.whole()


def test_messages_come_late_and_twice(crowd: Crowd) -> None:
    crowd.poll()
    early = list(crowd.sent)
    for share in early:
        handle(share)
    assert crowd.recorded()
    crowd.confirm()
    for share in crowd.sent:
        handle(share)
        handle(share)
    assert crowd.credited()
    crowd.shop.whole()


def test_a_message_of_a_block_that_fell_out(crowd: Crowd) -> None:
    """Its payments are on another branch by then, or on none."""
    crowd.poll()
    crowd.shop.chain.drop(1)
    crowd.shop.chain.forget()
    crowd.shop.chain.mine(2)
    crowd.poll()
    assert {deposit.status for deposit in crowd.deposits()} == {"orphaned"}
    for share in crowd.sent:
        handle(share)
    handle(Share(NETWORK, deposits=tuple(deposit.id for deposit in crowd.deposits())).body())
    assert {deposit.status for deposit in crowd.deposits()} == {"orphaned"} and not crowd.credited()
    crowd.shop.whole()


def test_deposits_that_are_not_deep_enough_are_not_credited_by_a_message(crowd: Crowd) -> None:
    crowd.poll()
    handle(Share(NETWORK, deposits=tuple(deposit.id for deposit in crowd.deposits())).body())
    assert crowd.recorded()


def test_the_queue_is_away(crowd: Crowd) -> None:
    def down(_: dict[str, str]) -> None:
        raise Unavailable("no queue")

    crowd.on_message = down
    crowd.poll()
    assert crowd.recorded()
    crowd.confirm()
    crowd.shop.whole()


def test_other_versions_are_dropped_and_what_nobody_can_read_is_not(crowd: Crowd) -> None:
    record.handle(json.dumps({"version": "2", "network": NETWORK, "what": "else"}))
    for body in ({"network": NETWORK}, {"version": "1", "network": NETWORK, "number": "x", "epoch": "1"}):
        with pytest.raises(ValueError):
            record.handle(json.dumps(body))
    assert crowd.deposits() == []


def test_a_share_is_read_as_it_was_written() -> None:
    for share in (Share(NETWORK, 7, "0xa", 3, ("t1", "t2")), Share(NETWORK, deposits=("d1",))):
        assert Share.read(NETWORK, share.body()) == share
