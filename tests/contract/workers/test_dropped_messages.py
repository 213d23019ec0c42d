"""Messages that only a newer version reads are dropped, and the schedules find what they asked for.

Scans, shares of a block and ticks only hurry what the polls do: test_backlog.py, test_sharing.py and test_ticks.py lose them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.domain.reconciliation import ComparisonReport
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.work import OutboxRow
from chalicelib.store.queues import SqsQueues
from chalicelib.wiring import services
from infra.local.queues import consumers
from tests.support.collected_deposits import settings
from tests.support.receiver import Receiver
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

WORKERS = ("poll_ethereum", "relay", "deliver", "deliver_slow", "payout", "collect", "compare", "housekeeping", "reconciliation")
MINUTES = 6


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("2", "eth")) as found:
        settings(found, "usdt", collectThreshold="0")
        yield found


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def asked_by_next(queue: str, patch: pytest.MonkeyPatch) -> list[Any]:
    """From here on the messages of a queue are of a kind that a newer version sends; what they say."""
    found: list[Any] = []
    send = SqsQueues._send

    def sent(self: SqsQueues, name: str, body: dict[str, Any], **more: Any) -> None:
        if name == queue:
            found.append(body)
            body = {"version": "next", "asks": body}
        send(self, name, body, **more)

    patch.setattr(SqsQueues, "_send", sent)
    return found


def dead(shop: Shop) -> list[Any]:
    queues = [consumer.queue().dead_letter_queue for consumer in consumers(shop.stack.app)]
    return [message.body for queue in queues if queue is not None for message in queue._messages]


def minute(shop: Shop) -> None:
    shop.wait(65)
    shop.stack.drain(only=WORKERS, hurry=True, rounds=3)
    shop.mine()


def delivered(receiver: Receiver) -> bool:
    told = {json.loads(request.body)["id"] for request in receiver.received}
    (paid,) = (event.id for event in services().store.every(EventRecord) if event.name == "withdrawal.created")
    return paid in told


Done = Callable[[Shop, Receiver, str], bool]
DONE: dict[str, Done] = {
    "relay": lambda shop, receiver, _: not list(services().store.every(OutboxRow)) and delivered(receiver),
    "deliveries": lambda shop, receiver, _: delivered(receiver),
    "payouts.fifo": lambda shop, receiver, id: shop.withdrawal(id)["status"] == "confirmed",
    "collections.fifo": lambda shop, receiver, _: [c.state for c in services().store.every(Collection)] == ["swept"],
    "comparisons": lambda shop, receiver, _: any(r.network == "test:ethereum" for r in services().store.every(ComparisonReport)),
}


CHECKED = ("relay", "payouts.fifo", "collections.fifo")
"""Those of each check; the others are of the sweep."""


@pytest.mark.parametrize("queue", [pytest.param(name, marks=() if name in CHECKED else pytest.mark.sweep) for name in DONE])
def test_the_schedules_find_the_work(queue: str, shop: Shop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.post("/v1/webhooks", {"url": receiver.url(), "events": ["*"]}).status == 201
    with monkeypatch.context() as patch:
        asked = asked_by_next(queue, patch)
        withdrawal = shop.withdraw("0.5")
        invoice = shop.invoice("500", "usdt")
        shop.pay(invoice["address"], "500", "usdt")
        for _ in range(3):  # no handler raises here
            shop.mine()
            shop.stack.drain(only=[name for name in WORKERS if name != "housekeeping"], hurry=True, rounds=2)
        assert asked
        assert not DONE[queue](shop, receiver, withdrawal)
    for _ in range(MINUTES):
        if DONE[queue](shop, receiver, withdrawal):
            break
        minute(shop)
    assert DONE[queue](shop, receiver, withdrawal)
    assert dead(shop) == []
