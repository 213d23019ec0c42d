"""One delivery under a clock that tests move: the retry schedule, signatures, twins, crashes, 410, dead letters, cuts.

What concerns an endpoint's lease is in `test_leases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from chalicelib.domain.webhooks.deliveries import RETRY_SECONDS, Delivery, delivery_for, delivery_work
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord, WebhookEndpoint, event_record
from chalicelib.domain.webhooks.leases import BATCH, LEASE_MS
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Delete, Open, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.webhooks.delivery_attempts import Answer, Deliveries
from chalicelib.usecases.webhooks.due_sweep import DueSweep
from chalicelib.usecases.webhooks.leases import Leases
from tests.support.memory_store import Cuts, HandClock, MemoryQueues, MemoryStore
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, OTHER, SECRET, SHOP, an_endpoint, an_event, an_event_record

OK = Answer(200, b"thanks", 12)
BAD = Answer(500, b"oops", 34)
GONE = Answer(410, b"", 5)
SILENT = Answer(None, b"", 10_000, "no answer within 10 seconds")


@dataclass
class Script:
    """A sender that answers as told (the last answer stays) and can do something in the middle of sending."""

    answers: list[Answer]
    sent: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    meanwhile: Callable[[], Any] | None = None

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.sent.append((url, dict(headers), body))
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class World:
    """One endpoint, one event, one delivery that is due."""

    def __init__(self, *answers: Answer, jitter: float = 0.0) -> None:
        self.store, self.queues, self.clock = MemoryStore(), MemoryQueues(), HandClock(NOW)
        self.sender = Script(list(answers) or [OK])
        self.seals = PlainSeals()
        self.endpoint, self.event = an_endpoint("wh_1"), an_event_record()
        self.id = delivery_for(self.event, self.endpoint, NOW).id
        self.jitter = jitter
        self.turns = self.turns_on(self.store)
        self.sweep = DueSweep(self.store, self.queues, self.clock)
        self.store.commit([Save(self.endpoint), Save(self.event)])
        self.add(delivery_for(self.event, self.endpoint, NOW))

    def turns_on(self, store: Any, queues: Any = None, seals: Any = None) -> Leases:
        queues = queues or self.queues
        deliveries = Deliveries(store, self.clock, self.sender, queues, lambda: self.jitter)
        return Leases(store, queues, self.clock, deliveries, seals or self.seals, lambda jobs: [job() for job in jobs])

    def add(self, delivery: Delivery) -> None:
        self.store.commit([Save(delivery), Open(delivery_work(delivery))])

    def seal(self, secret: str, previous: str | None = None, *, of: str = "wh_1") -> None:
        """Keep the endpoint's secrets as they are kept today; `of` another endpoint, they do not open."""
        sealed, before = (None if each is None else self.seals.seal(SHOP, of, each) for each in (secret, previous))
        assert sealed is not None
        after = replace(self.endpoint, secret=sealed, previous_secret=before, previous_until=NOW + 1, sealed=True)
        self.endpoint = replace(after, version=after.version + 1)
        self.store.commit([Save(self.endpoint)])

    def take(self) -> str:
        return self.turns.take(SHOP, "wh_1")

    @property
    def delivery(self) -> Delivery:
        found = self.store.get(Delivery, tenant=SHOP, id=self.id)
        assert found is not None
        return found  # type: ignore[no-any-return]

    @property
    def stored(self) -> WebhookEndpoint:
        """The endpoint as it is stored now."""
        found = self.store.get(WebhookEndpoint, tenant=SHOP, id="wh_1")
        assert found is not None
        return found  # type: ignore[no-any-return]

    def notices(self) -> list[str]:
        return [event.name for row in self.store.all(OutboxRow) for event in row.events]

    def work(self) -> set[Any]:
        return {work for work in self.store.work if work.kind == "delivery"}

    def consistent(self) -> bool:
        """Work is open for exactly the deliveries that are pending, at the time when they are due."""
        return self.work() == {delivery_work(d) for d in self.store.all(Delivery) if d.status == "pending"}


def test_a_delivery_arrives() -> None:
    world = World(OK)
    assert world.take() == "done"
    assert world.delivery.status == "delivered"
    ((url, headers, body),) = world.sender.sent
    assert (url, body) == (world.endpoint.url, world.event.body.encode())
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == world.event.id
    assert headers["x-gateway-event"] == "invoice.completed"
    (attempt,) = world.delivery.attempts
    assert (attempt.at, attempt.status, attempt.duration, attempt.answer, attempt.error) == (NOW, 200, 12, "thanks", None)
    assert headers["x-gateway-delivery"] == world.id
    assert world.work() == set()
    assert world.queues.wakes == []
    assert world.take() == "idle"
    assert len(world.sender.sent) == 1


def test_what_is_sent_verifies_with_the_standard_webhooks_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime as real

    world = World(OK)
    world.take()
    ((_, headers, body),) = world.sender.sent

    class Then(real.datetime):
        @classmethod
        def now(cls, tz: real.tzinfo | None = None) -> Then:
            return cls.fromtimestamp(NOW / 1000, tz)

    monkeypatch.setattr("standardwebhooks.webhooks.datetime", Then)
    assert Webhook(SECRET).verify(body, headers) == {
        "id": "evt_1", "event": "invoice.completed", "data": {"id": "inv_1", "amount": "0.5"},
        "timestamp": "2026-01-02T03:04:05.006Z", "sequence": 1,
    }  # fmt: skip
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body, {**headers, "webhook-timestamp": str(NOW // 1000 + 1)})


def test_a_sealed_secret_signs_as_one_in_the_clear_does() -> None:
    plain, sealed = World(OK), World(OK)
    sealed.seal(SECRET)
    assert (plain.take(), sealed.take()) == ("done", "done")
    assert len(sealed.sender.sent) == 1
    assert sealed.sender.sent == plain.sender.sent
    assert plain.seals.asked == []


def test_a_secret_that_does_not_open_is_a_failed_attempt_that_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    world = World(OK)
    world.seal(SECRET, of="wh_2")
    assert world.take() == "done"
    assert world.sender.sent == []
    (attempt,) = world.delivery.attempts
    assert (attempt.status, attempt.error) == (None, "the secret of this endpoint can not be read: rotate it")
    assert "ALARM mch_shop:live: a secret of webhook endpoint wh_1 does not open" in caplog.text
    # What the merchant does then; that its previous secret does not open keeps nothing up.
    world.endpoint = world.endpoint.rotated(world.seals.seal(SHOP, "wh_1", SECRET), NOW, 86_400)
    world.store.commit([Save(world.endpoint)])
    world.clock.now = world.delivery.due_at
    world.take()
    assert world.delivery.status == "delivered"
    ((_, headers, _),) = world.sender.sent
    assert "x-gateway-signature-previous" not in headers and " " not in headers["webhook-signature"]
    assert world.consistent()


def test_where_the_key_service_is_down_no_attempt_is_counted() -> None:
    world = World(OK)
    world.seal(SECRET, SECRET[::-1])
    world.seals.down = True
    before = world.delivery
    for _ in range(3):
        with pytest.raises(Unavailable):
            world.take()
    assert (world.delivery, world.sender.sent, world.consistent()) == (before, [], True)
    world.seals.down = False
    world.take()
    assert world.delivery.status == "delivered"
    assert len(world.delivery.attempts) == 1


def test_every_failure_waits_as_published_then_it_is_dead() -> None:
    world = World(BAD)
    waits = []
    for _ in RETRY_SECONDS:
        world.take()
        assert world.consistent()
        assert world.delivery.attempts[-1].next_at == world.delivery.due_at
        waits.append(world.delivery.due_at - world.clock.now)
        world.clock.now = world.delivery.due_at - 1_001
        assert world.take() == "idle"
        world.clock.now = world.delivery.due_at
    assert waits == [s * 1000 for s in (5, 30, 120, 600, 1800, 7200, 18000, 36000)]
    # The short waits have messages, the long ones (over the 900 seconds of SQS) are left to the schedule.
    assert world.queues.wakes == [("wh_1", 5), ("wh_1", 30), ("wh_1", 120), ("wh_1", 600)]
    assert world.queues.buried == []
    world.take()
    assert world.queues.buried == [(world.id, SHOP)]
    assert (world.delivery.status, len(world.delivery.attempts), len(world.sender.sent)) == ("dead", 9, 9)
    assert world.delivery.attempts[-1].next_at is None
    assert world.work() == set()
    assert world.take() == "idle"


def test_every_long_wait_is_brought_within_the_minute_before_it_is_due() -> None:
    world = World(BAD)
    brought = []
    for _ in RETRY_SECONDS:
        world.take()
        if world.delivery.scheduled:
            world.queues.wakes.clear()
            world.clock.now = world.delivery.due_at - 91_000
            assert world.sweep.run() == 0
            world.clock.pass_ms(51_000)
            assert world.sweep.run() == 1
            brought.append(world.queues.wakes)
        world.clock.now = world.delivery.due_at
    assert brought == [[("wh_1", 40)]] * 4
    assert world.queues.failing[-1], "the endpoint fails by then: its messages go to the queue of those that do"


def test_jitter_lengthens_the_wait_and_its_message() -> None:
    world = World(BAD, jitter=1.0)
    world.take()
    assert world.delivery.due_at == NOW + 6_000
    assert world.queues.wakes == [("wh_1", 6)]


def test_a_retry_that_succeeds_signs_afresh_with_the_same_id() -> None:
    world = World(SILENT, BAD, OK)
    for expected in ("pending", "pending", "delivered"):
        world.take()
        assert world.delivery.status == expected
        world.clock.now = max(world.clock.now, world.delivery.due_at)
    headers = [h for _, h, _ in world.sender.sent]
    assert len({h["webhook-id"] for h in headers}) == 1
    assert len({h["webhook-timestamp"] for h in headers}) == 3
    assert len({h["webhook-signature"] for h in headers}) == 3
    assert [a.status for a in world.delivery.attempts] == [None, 500, 200]
    assert world.delivery.attempts[0].error == "no answer within 10 seconds"
    assert world.work() == set()


def test_only_the_beginning_of_an_answer_is_kept() -> None:
    world = World(Answer(500, "ä".encode() * 40_000, 5))
    world.take()
    assert world.delivery.attempts[0].answer == "ä" * 512


def test_bytes_that_are_no_text_are_kept_as_text() -> None:
    world = World(Answer(500, b"\xff\xfe\x00ok", 5))
    world.take()
    assert world.delivery.attempts[0].answer == "\ufffd" * 3 + "ok"


def test_twins_that_read_before_either_took_the_turn_send_once() -> None:
    world = World(OK)
    twins: list[str] = []

    class Late(MemoryStore):
        """The first of its commits comes after the other worker's whole turn."""

        def commit(self, changes: Any, /) -> None:
            if not twins:
                twins.append("running")
                twins.append(world.take())
            super().commit(changes)

    late = Late()
    late.records, late.work = world.store.records, world.store.work
    assert world.turns_on(late).take(SHOP, "wh_1") == "idle"
    assert twins == ["running", "done"]
    assert len(world.sender.sent) == 1
    assert world.delivery.status == "delivered"


def test_a_batch_whose_worker_died_is_found_by_the_sweep() -> None:
    world = World(OK)

    def crash() -> None:
        raise MemoryError

    world.sender.meanwhile = crash
    with pytest.raises(MemoryError):
        world.take()
    world.clock.pass_ms(LEASE_MS - 1)
    assert world.take() == "taken"
    world.clock.pass_ms(60_000)
    assert world.sweep.run() == 1
    world.take()
    world.clock.now = world.delivery.due_at
    world.take()
    assert [(a.at, a.status, a.error) for a in world.delivery.attempts] == [
        (NOW, None, "the attempt was interrupted"),
        (world.clock.now, 200, None),
    ]
    assert world.work() == set()


def test_a_delivery_that_kills_its_worker_every_time_ends() -> None:
    world = World(OK)

    def crash() -> None:
        world.sender.meanwhile = crash
        raise MemoryError

    world.sender.meanwhile = crash
    for _ in range(40):
        if world.delivery.status != "pending":
            break
        world.clock.now = max(world.clock.now + LEASE_MS, world.delivery.due_at)
        try:
            world.take()
        except MemoryError:
            continue
    assert (world.delivery.status, len(world.delivery.attempts)) == ("dead", 9)
    assert world.queues.buried == [(world.id, SHOP)]
    assert world.work() == set()


def test_410_disables_the_endpoint_with_a_notice() -> None:
    world = World(GONE)
    world.take()
    assert (world.delivery.status, world.delivery.reason) == ("cancelled", "the endpoint answered 410 Gone")
    assert (world.stored.enabled, world.stored.disabled_reason, world.stored.disabled_at) == (False, "it answered 410 Gone", NOW)
    assert world.notices() == ["webhook.disabled"]
    assert world.work() == set()
    assert world.queues.buried == []


def test_410_to_a_whole_batch_disables_once_and_what_waited_behind_is_cancelled() -> None:
    world = World(GONE)
    for number in range(BATCH + 3):
        event = event_record(an_event(f"evt_more{number}"), "2026-01-02T03:04:05.006Z", NOW)
        world.store.commit([Save(event)])
        world.add(delivery_for(event, world.endpoint, NOW))
    world.take()
    assert len(world.sender.sent) == BATCH
    assert world.notices() == ["webhook.disabled"]
    reasons = sorted(str(d.reason) for d in world.store.all(Delivery))
    assert reasons == ["the endpoint answered 410 Gone"] * BATCH + ["the endpoint is disabled"] * 4
    assert world.stored.version == 2
    assert world.work() == set()


def test_410_of_an_endpoint_that_was_changed_meanwhile() -> None:
    world = World(GONE)
    changed = replace(world.endpoint, events=("invoice.completed",), version=2)
    world.sender.meanwhile = lambda: world.store.commit([Save(changed)])
    world.take()
    assert world.delivery.status == "cancelled"
    assert (world.stored.enabled, world.stored.events, world.stored.version) == (False, ("invoice.completed",), 3)
    assert world.notices() == ["webhook.disabled"]


def test_410_of_an_endpoint_that_was_disabled_meanwhile_keeps_the_first_reason() -> None:
    world = World(GONE)
    world.sender.meanwhile = lambda: world.store.commit([Save(world.endpoint.disabled("by hand", NOW))])
    world.take()
    assert world.delivery.status == "cancelled"
    assert (world.stored.disabled_reason, world.stored.version) == ("by hand", 2)
    assert world.notices() == []
    assert world.work() == set()


def test_410_of_an_endpoint_that_was_deleted_meanwhile() -> None:
    world = World(GONE)
    world.sender.meanwhile = lambda: world.store.commit([Delete(WebhookEndpoint, {"tenant": SHOP, "id": "wh_1"})])
    world.take()
    assert world.delivery.status == "cancelled"
    assert world.store.all(WebhookEndpoint) == []
    assert world.notices() == []
    assert world.work() == set()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Delete(WebhookEndpoint, {"tenant": SHOP, "id": "wh_1"}), "the endpoint was deleted"),
        (Save(an_endpoint("wh_1").disabled("by hand", NOW)), "the endpoint is disabled"),
        (Delete(EventRecord, {"tenant": SHOP, "id": "evt_1"}), "the event is no longer kept"),
    ],
)
def test_nobody_to_tell_any_more(change: Any, reason: str) -> None:
    world = World(OK)
    world.store.commit([change])
    world.clock.pass_ms(60_000)
    assert world.take() == "done"
    assert world.sender.sent == []
    assert (world.delivery.status, world.delivery.reason, world.work()) == ("cancelled", reason, set())


def test_anothers_delivery_is_not_there() -> None:
    world = World(OK)
    assert world.turns.take(OTHER, "wh_1") == "idle"
    assert world.sender.sent == []


def test_the_sweep_disturbs_no_attempt_that_is_running() -> None:
    world = World(OK)
    world.clock.pass_ms(3_600_000)
    swept: list[object] = []

    def sweep() -> None:
        swept.append(world.sweep.run())
        swept.append(world.take())  # the message of the sweep

    world.sender.meanwhile = sweep
    assert world.take() == "done"
    assert swept == [1, "taken"]
    assert len(world.sender.sent) == 1 and len(world.delivery.attempts) == 1


def test_a_retry_without_a_queue_is_left_to_the_sweep() -> None:
    world = World(BAD)
    world.queues.down = True
    assert world.take() == "done"
    assert world.consistent()
    world.queues.down = False
    world.clock.now = world.delivery.due_at + 60_000
    assert world.sweep.run() == 1


def test_a_death_is_told_before_it_is_recorded() -> None:
    world = World(BAD)
    for _ in RETRY_SECONDS:
        world.take()
        world.clock.now = world.delivery.due_at
    before = world.delivery
    world.queues.down = True
    with pytest.raises(Unavailable):
        world.take()
    assert world.delivery == before
    assert world.consistent()
    world.queues.down = False
    world.clock.pass_ms(LEASE_MS + 60_000)
    assert world.sweep.run() == 1
    world.take()
    assert (world.delivery.status, len(world.delivery.attempts)) == ("dead", 9)
    assert world.queues.buried == [(world.id, SHOP)]
    assert world.work() == set()


@pytest.mark.parametrize(
    ("age", "lost"), [(KEEP_SECONDS * 1000 - 1_000, True), (KEEP_SECONDS * 1000, False)], ids=["too early", "at its time"]
)
def test_the_work_of_a_forgotten_delivery_is_closed_and_reported(caplog: pytest.LogCaptureFixture, age: int, lost: bool) -> None:
    world = World(OK)
    world.store.commit([Delete(Delivery, {"tenant": SHOP, "id": world.id})])
    world.clock.pass_ms(age)
    assert world.sweep.run() == 1
    assert world.take() == "done"
    assert world.work() == set()
    assert world.sender.sent == []
    assert ("metric=delivery_lost" in caplog.text) == lost


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_everything_is_still_delivered(after: bool) -> None:
    """Two deliveries, each of which fails once; one call of the store, a queue or the key service fails besides."""
    cut = 0
    while True:
        cut += 1
        world = World(BAD, BAD, OK)
        event = event_record(an_event("evt_2"), "2026-01-02T03:04:05.006Z", NOW)
        world.store.commit([Save(event)])
        world.add(delivery_for(event, world.endpoint, NOW))
        world.seal(SECRET)
        cuts = Cuts(cut, after=after)
        store, queues, seals = cuts.around(world.store), cuts.around(world.queues), cuts.around(world.seals)
        faulty = world.turns_on(store, queues, seals)
        sweep = DueSweep(store, queues, world.clock)
        for _ in range(20):
            if not world.work():
                break
            for act in (sweep.run, lambda faulty=faulty: faulty.take(SHOP, "wh_1")):
                try:
                    act()
                except (Unavailable, Failures):
                    assert world.consistent()
            world.clock.pass_ms(LEASE_MS + 61_000)
        assert [d.status for d in world.store.all(Delivery)] == ["delivered"] * 2, f"cut {cut}"
        assert world.work() == set()
        ids = [headers["webhook-id"] for _, headers, _ in world.sender.sent]
        for delivery in world.store.all(Delivery):
            assert 1 <= ids.count(delivery.event_id) <= len(delivery.attempts) <= 3, "whatever was sent is in the log"
        if cuts.calls < cut:
            break
    assert cut > 15
