"""One webhook endpoint with due deliveries, on a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, delivery_work, unheld_work
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint, event_record
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.webhooks.delivery_attempts import Answer, Deliveries
from chalicelib.usecases.webhooks.due_sweep import DueSweep
from chalicelib.usecases.webhooks.endpoints import Webhooks
from chalicelib.usecases.webhooks.leases import Leases
from tests.support.memory_store import HandClock, MemoryQueues, MemoryStore
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, SHOP, an_endpoint, an_event

OK = Answer(200, b"thanks", 12)
BAD = Answer(500, b"oops", 34)
HOOK = "wh_1"


@dataclass
class Script:
    """Answers as told (the last one stays); `meanwhile` happens in the middle of the next attempt, which takes `ms`."""

    clock: HandClock
    answers: list[Answer]
    ms: int = 0
    sent: list[str] = field(default_factory=list)
    meanwhile: Callable[[], Any] | None = None

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.sent.append(headers["webhook-id"])
        self.clock.pass_ms(self.ms)
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Line:
    """One endpoint with some deliveries that are due."""

    def __init__(self, count: int = 1, *answers: Answer, endpoint: WebhookEndpoint | None = None) -> None:
        self.store, self.queues, self.clock = MemoryStore(), MemoryQueues(), HandClock(NOW)
        self.sender = Script(self.clock, list(answers) or [OK])
        deliveries = Deliveries(self.store, self.clock, self.sender, self.queues, lambda: 0.0)
        self.turns = Leases(self.store, self.queues, self.clock, deliveries, PlainSeals(), lambda jobs: [job() for job in jobs])
        self.sweep = DueSweep(self.store, self.queues, self.clock)
        self.webhooks = Webhooks(self.store, self.queues, self.clock, PlainSeals())
        self.store.commit([Save(endpoint or an_endpoint(HOOK))])
        for number in range(count):
            self.add(f"evt_{number:03d}")

    def add(self, id: str) -> None:
        event = event_record(an_event(id), "2026-01-02T03:04:05.006Z", NOW)
        delivery = delivery_for(event, self.endpoint, self.clock.now)
        self.store.commit([Save(event), Save(delivery), Open(delivery_work(delivery))])

    def take(self, **how: bool) -> str:
        return self.turns.take(SHOP, HOOK, **how)

    def follow(self) -> None:
        """Do what messages ask for at once, and what those bring, until there are none: no schedule helps."""
        while self.queues.wakes:
            id, seconds = self.queues.wakes.pop(0)
            assert (id, seconds) == (HOOK, 0)
            self.take(held=self.queues.held.pop(0))

    @property
    def endpoint(self) -> WebhookEndpoint:
        found: WebhookEndpoint = self.store.get(WebhookEndpoint, tenant=SHOP, id=HOOK)
        return found

    def change(self, **fields: Any) -> None:
        endpoint = self.endpoint
        after = replace(endpoint, version=endpoint.version + 1, **fields)
        if not endpoint.paused or after.paused:
            self.store.commit([Save(after)])
        else:
            after = after.unheld(self.clock.now)
            self.store.commit([Save(after), Open(unheld_work(after))])

    @property
    def turn(self) -> Turn:
        found: Turn = self.store.get(Turn, tenant=SHOP, endpoint_id=HOOK)
        return found

    def deliveries(self, status: str | None = None) -> list[Delivery]:
        return [d for d in self.store.all(Delivery) if status in (None, d.status)]

    def notices(self) -> list[str]:
        return [event.name for row in self.store.all(OutboxRow) for event in row.events]

    def consistent(self) -> bool:
        """Work is open for exactly the deliveries that are pending, at the time when they are due."""
        kept = {work for work in self.store.work if work.kind == "delivery"}
        return kept == {delivery_work(d) for d in self.deliveries("pending")}
