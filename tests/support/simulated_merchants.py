"""Merchants, their endpoints and the whole way of an event to them, in simulated time: relay, turns, schedules as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from chalicelib.domain.ids import TenantId
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, delivery_work
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint, event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.work import OutboxRow, outbox_id
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Emit, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_attempts import Answer, Deliveries
from chalicelib.usecases.webhooks.due_sweep import DueSweep
from chalicelib.usecases.webhooks.endpoints import Webhooks
from chalicelib.usecases.webhooks.leases import Leases
from chalicelib.usecases.webhooks.relay import Relay
from tests.support.secrets import PlainSeals
from tests.support.simulated import SimulatedStore, Simulation, Weather
from tests.support.simulated_queues import BoundedQueues, Function, SimulatedQueues

START = 1_767_312_000_000
"""2026-01-02T00:00:00Z"""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
RELAYS = 8
HANG_MS = 10_000
"""The sender's patience: `tests/unit/webhooks/test_webhook_sender.py` shows that it has no more, whatever a receiver does."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a receiver does: answers `status` after `ms`, or none (`error`)."""

    status: int | None
    ms: int
    error: str | None = None
    retry_after: str | None = None


Behaviour = Callable[[int, int], Reply]
"""Of the time, and how many requests there were before."""


@dataclass(slots=True)
class Request:
    """What a receiver saw. `cut`: whoever sent it died before it was answered."""

    at: int
    headers: Mapping[str, str]
    body: bytes
    beside: int
    reply: Reply
    ended: int = 0
    cut: bool = True


@dataclass
class Hook:
    """An endpoint as its owner knows it. `well`: it answers every time and at once. `gone_from`: deleted or disabled, or 410."""

    tenant: TenantId
    name: str
    events: tuple[str, ...]
    behave: Behaviour
    well: bool
    id: str = ""
    secrets: list[tuple[int, str]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    open: int = 0
    most_open: int = 0
    gone_from: int | None = None
    paused: tuple[int, int] | None = None

    @property
    def url(self) -> str:
        return f"https://{self.name}.{self.tenant.removeprefix('mch_').partition(':')[0]}.example/hook"

    def wants(self, event: Event) -> bool:
        return ("*" in self.events or event.name in self.events) and event.object_id != self.id


class Merchants:
    """`dies`: the part of a function's processes that end within their first 200 ms, whatever they are at."""

    def __init__(self, seed: int = 1, weather: Weather | None = None, *, dies: float = 0.0) -> None:
        self.random = Random(seed)
        self.simulation = Simulation(START)
        self.queues = SimulatedQueues()
        # Where nobody dies nobody can see when in its time a commit took effect.
        self.bounded = BoundedQueues(self.queues, self.simulation)
        self.store = SimulatedStore(self.simulation, self.bounded.kick, answer_ms=4 if dies else 0)
        self.hooks: dict[str, Hook] = {}
        self.events: list[Event] = []
        self.schedules_failed = 0
        store, queues, clock = self.store, self.bounded, self.simulation
        seals, weather = PlainSeals(), weather or Weather(seed)
        deliveries = Deliveries(store, clock, self, queues, self.random.random)
        turns = Leases(store, queues, clock, deliveries, seals, self.simulation.together)
        # Several processes: none knows what another told.
        relays = [
            Relay(store, queues, clock, lambda seconds: clock.sleep(round(seconds * 1000)), lookouts=True) for _ in range(RELAYS)
        ]
        sweep = DueSweep(store, queues, clock)
        self.webhooks = Webhooks(store, queues, clock, seals)
        self._schedule = (relays[0].sweep, sweep.run)
        functions = self.queues
        process = Random(seed)
        functions.relay = Function(clock, weather, lambda body: process.choice(relays).tell(body["id"]), 1_000, dies=dies)

        def take(body: dict[str, Any]) -> object:
            return turns.take(body["tenant"], body["endpoint"], held="held" in body)

        functions.deliver = Function(clock, weather, take, 100, dies=dies)
        functions.deliver_slow = Function(clock, weather, take, 20, dies=dies)
        self._minute()

    @property
    def functions(self) -> tuple[Function, ...]:
        return self.queues.relay, self.queues.deliver, self.queues.deliver_slow

    @property
    def messages(self) -> int:
        return sum(function.sent for function in self.functions) + len(self.queues.buried)

    def add(self, merchant: str, name: str, *events: str, behave: Behaviour | None = None) -> Hook:
        """Register an endpoint; without `behave` it is one in health."""
        hook = Hook(TenantId(f"mch_{merchant}:live"), name, events, behave or self.well, behave is None)
        self.hooks[hook.url] = hook

        def register() -> None:
            made = self.webhooks.register(hook.tenant, hook.url, list(events))
            hook.id, hook.secrets = made.endpoint.id, [(0, made.secret)]

        self.simulation.start(register)
        self.simulation.run(self.simulation.now + 200)
        return hook

    def well(self, now: int, before: int) -> Reply:
        return Reply(200, self.random.randint(30, 120))

    def tell(self, when: int, merchant: str, *names: str) -> None:
        """The change that `names` tell of commits at `when`."""
        tenant, first, events = TenantId(f"mch_{merchant}:live"), len(self.events), []
        for number, name in enumerate(names, first):
            of = f"inv_{number}"
            events.append(Event(f"evt_{number:06d}", tenant, name, of, 1, when, {"id": of, "amount": f"0.{number}"}))
        self.events += events
        row = OutboxRow(f"out_{first:06d}", when, tuple(events))
        self.simulation.at(when, lambda: self.store.commit_now([Emit(row)]))

    def tell_of(self, when: int, merchant: str, *told: tuple[str, int], off: int = 0) -> None:
        """A change commits at `when` that tells of objects, each with the number of its event; its machine's clock is `off`."""
        tenant, first = TenantId(f"mch_{merchant}:live"), len(self.events)
        events = [
            Event(f"evt_{n:06d}", tenant, "invoice.partial", of, sequence, when, {"id": of})
            for n, (of, sequence) in enumerate(told, first)
        ]
        self.events += events
        row = OutboxRow(outbox_id(f"out_{first:06d}", events), when + off, tuple(events))
        self.simulation.at(when, lambda: self.store.commit_now([Emit(row)]))

    def at(self, when: int, act: Callable[[], object]) -> None:
        """Somebody calls the interface at `when`."""
        self.simulation.at(when, lambda: self.simulation.start(act))

    def run(self, until: int) -> None:
        self.simulation.run(until)

    def run_until_final(self, latest: int) -> None:
        """On until nothing is open, looked at every quarter of an hour. Raises AssertionError when `latest` passes before."""
        while self.store.work:
            assert self.simulation.now < latest, f"{len(self.store.work)} obligations are open still"
            self.simulation.run(self.simulation.now + 15 * MINUTE)

    def deliveries(self) -> list[Delivery]:
        return self.store.all(Delivery)

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The port Sender."""
        hook, now = self.hooks[url], self.simulation.now
        hook.open += 1
        hook.most_open = max(hook.most_open, hook.open)
        reply = hook.behave(now, len(hook.requests))
        request = Request(now, headers, body, hook.open, reply)
        hook.requests.append(request)
        try:
            self.simulation.sleep(reply.ms)
            request.cut = False
        finally:
            hook.open -= 1
            request.ended = self.simulation.now
        said = b"" if reply.status is None else b"answer"
        return Answer(reply.status, said, reply.ms, reply.error, reply.retry_after)

    def _minute(self) -> None:
        def run() -> None:
            for step in self._schedule:
                try:
                    step()
                except (Unavailable, Failures):
                    self.schedules_failed += 1

        self.simulation.start(run)
        self.simulation.at(self.simulation.now + MINUTE, self._minute)


def delays(merchants: Merchants, *, since: int = 0, until: int = 1 << 60) -> list[int]:
    """Of the endpoints in health: milliseconds from an event of that time to its first request, sorted."""
    at = {event.id: event.at for event in merchants.events}
    found = []
    for hook in merchants.hooks.values():
        if hook.well:
            first: dict[str, int] = {}
            for request in hook.requests:
                first.setdefault(request.headers["webhook-id"], request.at)
            found += [begun - at[id] for id, begun in first.items() if id in at and since <= at[id] < until]
    return sorted(found)


def part(values: list[int], of: float) -> int:
    """The value below which that part of sorted `values` lies."""
    return values[min(len(values) - 1, int(len(values) * of))]


def duplicates(merchants: Merchants) -> int:
    """Requests beyond the first that an endpoint answered well, for the same delivery."""
    good = Counter(r.headers["x-gateway-delivery"] for h in merchants.hooks.values() for r in h.requests if r.reply.status == 200)
    return sum(count - 1 for count in good.values())


def backlog(world: Merchants, hook: Hook, count: int) -> None:
    """So many deliveries that are due at once, as the relay makes them."""
    endpoint = world.store.records[WebhookEndpoint, hook.tenant, hook.id]
    now = world.simulation.now
    for n in range(count):
        event = event_record(Event(f"evt_old{n}", hook.tenant, "invoice.created", f"inv_{n}", 1, now, {"id": n}), iso(now), now)
        delivery = delivery_for(event, endpoint, now)
        world.store.commit_now([Save(event), Save(delivery), Open(delivery_work(delivery))])
    world.queues.wake(hook.tenant, hook.id)
