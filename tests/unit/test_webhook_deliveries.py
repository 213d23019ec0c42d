"""Deliveries under a clock that tests move: the retry schedule, twins, crashes, dead letters, and what the sweep finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from chalicelib.domain.deliveries import RETRY_SECONDS, Delivery, delivery_for, delivery_work
from chalicelib.domain.turns import LEASE_MS
from chalicelib.domain.webhooks import KEEP_SECONDS, EventRecord, WebhookEndpoint
from chalicelib.usecases.changes import Delete, Open, Save
from chalicelib.usecases.deliveries import Answer, Deliveries
from chalicelib.usecases.ports.failures import Unavailable
from tests.support.memory_store import Cuts, HandClock, MemoryQueues, MemoryStore
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, OTHER, SECRET, SHOP, an_endpoint, an_event_record

OK = Answer(200, b"thanks", 12)
BAD = Answer(500, b"oops", 34)
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
        self.deliveries = Deliveries(self.store, self.queues, self.clock, self.sender, self.queues, self.seals, lambda: jitter)
        self.store.commit([Save(self.endpoint), Save(self.event)])
        self.add(delivery_for(self.event, self.endpoint, NOW))

    def add(self, delivery: Delivery) -> None:
        self.store.commit([Save(delivery), Open(delivery_work(delivery))])

    def seal(self, secret: str, previous: str | None = None, *, of: str = "wh_1") -> None:
        """Keep the endpoint's secrets as they are kept today; `of` another endpoint, they do not open."""
        sealed, before = (None if each is None else self.seals.seal(SHOP, of, each) for each in (secret, previous))
        assert sealed is not None
        after = replace(self.endpoint, secret=sealed, previous_secret=before, previous_until=NOW + 1, sealed=True)
        self.endpoint = replace(after, version=after.version + 1)
        self.store.commit([Save(self.endpoint)])

    def attempt(self) -> str:
        return self.deliveries.attempt(SHOP, self.id)

    @property
    def delivery(self) -> Delivery:
        found = self.store.get(Delivery, tenant=SHOP, id=self.id)
        assert found is not None
        return found  # type: ignore[no-any-return]

    def consistent(self) -> bool:
        """Work is open for exactly the deliveries that are pending, at the time when they are due."""
        return self.store.work == {delivery_work(d) for d in self.store.all(Delivery) if d.status == "pending"}


def test_a_delivery_arrives() -> None:
    world = World(OK)
    assert world.attempt() == "delivered"
    ((url, headers, body),) = world.sender.sent
    assert (url, body) == (world.endpoint.url, world.event.body.encode())
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == world.event.id
    assert headers["x-gateway-event"] == "invoice.completed"
    (attempt,) = world.delivery.attempts
    assert (attempt.at, attempt.status, attempt.duration, attempt.answer, attempt.error) == (NOW, 200, 12, "thanks", None)
    assert world.store.work == set()
    assert world.queues.deliveries == []
    assert world.attempt() == "finished"
    assert len(world.sender.sent) == 1


def test_what_is_sent_verifies_with_the_standard_webhooks_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime as real

    world = World(OK)
    world.attempt()
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
    assert (plain.attempt(), sealed.attempt()) == ("delivered", "delivered")
    assert sealed.sender.sent == plain.sender.sent
    assert plain.seals.asked == []


def test_a_secret_that_does_not_open_is_a_failed_attempt_that_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    world = World(OK)
    world.seal(SECRET, of="wh_2")
    assert world.attempt() == "retry"
    assert world.sender.sent == []
    (attempt,) = world.delivery.attempts
    assert (attempt.status, attempt.error) == (None, "the secret of this endpoint can not be read: rotate it")
    assert "ALARM mch_shop:live: a secret of webhook endpoint wh_1 does not open" in caplog.text
    # What the merchant does then; that its previous secret does not open keeps nothing up.
    world.endpoint = world.endpoint.rotated(world.seals.seal(SHOP, "wh_1", SECRET), NOW, 86_400)
    world.store.commit([Save(world.endpoint)])
    world.clock.now = world.delivery.due_at
    assert world.attempt() == "delivered"
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
            world.attempt()
    assert (world.delivery, world.sender.sent, world.consistent()) == (before, [], True)
    world.seals.down = False
    assert world.attempt() == "delivered"
    assert len(world.delivery.attempts) == 1


def test_every_failure_waits_as_published_then_it_is_dead() -> None:
    world = World(BAD)
    waits = []
    for _ in RETRY_SECONDS:
        assert world.attempt() == "retry"
        assert world.consistent()
        waits.append(world.delivery.due_at - world.clock.now)
        world.clock.now = world.delivery.due_at - 1_001
        assert world.attempt() == "early"
        world.clock.now = world.delivery.due_at
    assert waits == [s * 1000 for s in (5, 30, 120, 600, 1800, 7200, 18000, 36000)]
    # The short waits have messages, the long ones (over the 900 seconds of SQS) are left to the sweep.
    assert [delay for _, _, delay in world.queues.deliveries] == [5, 30, 120, 600]
    assert world.queues.buried == []
    assert world.attempt() == "dead"
    assert world.queues.buried == [(world.id, SHOP)]
    assert (world.delivery.status, len(world.delivery.attempts), len(world.sender.sent)) == ("dead", 9, 9)
    assert world.store.work == set()
    assert world.attempt() == "finished"


def test_jitter_lengthens_the_wait_and_its_message() -> None:
    world = World(BAD, jitter=1.0)
    world.attempt()
    assert world.delivery.due_at == NOW + 6_000
    assert world.queues.deliveries == [(world.id, SHOP, 6)]


def test_a_retry_that_succeeds_signs_afresh_with_the_same_id() -> None:
    world = World(SILENT, BAD, OK)
    for expected in ("retry", "retry", "delivered"):
        assert world.attempt() == expected
        world.clock.now = max(world.clock.now, world.delivery.due_at)
    headers = [h for _, h, _ in world.sender.sent]
    assert len({h["webhook-id"] for h in headers}) == 1
    assert len({h["webhook-timestamp"] for h in headers}) == 3
    assert len({h["webhook-signature"] for h in headers}) == 3
    assert [a.status for a in world.delivery.attempts] == [None, 500, 200]
    assert world.delivery.attempts[0].error == "no answer within 10 seconds"
    assert world.store.work == set()


def test_only_the_beginning_of_an_answer_is_kept() -> None:
    world = World(Answer(500, "ä".encode() * 40_000, 5))
    world.attempt()
    assert world.delivery.attempts[0].answer == "ä" * 512


def test_bytes_that_are_no_text_are_kept_as_text() -> None:
    world = World(Answer(500, b"\xff\xfe\x00ok", 5))
    world.attempt()
    assert world.delivery.attempts[0].answer == "\ufffd\ufffd\x00ok"


def test_a_twin_message_does_not_send_at_the_same_time() -> None:
    world = World(OK)
    twin: list[str] = []
    world.sender.meanwhile = lambda: twin.append(world.attempt())
    assert world.attempt() == "delivered"
    assert twin == ["busy"]
    assert len(world.sender.sent) == 1


def test_twins_that_read_before_either_claimed_send_once() -> None:
    world = World(OK)
    twins: list[str] = []

    class Late(MemoryStore):
        """The first of two commits comes after the other worker's whole attempt."""

        def commit(self, changes: Any, /) -> None:
            if not twins:
                twins.append("running")
                twins.append(world.attempt())
            super().commit(changes)

    late = Late()
    late.records, late.work = world.store.records, world.store.work
    slow = Deliveries(late, world.queues, world.clock, world.sender, world.queues, world.seals, lambda: 0.0)
    assert slow.attempt(SHOP, world.id) == "busy"
    assert twins == ["running", "delivered"]
    assert len(world.sender.sent) == 1
    assert world.delivery.status == "delivered"


def test_an_attempt_that_outlives_its_lease_does_not_undo_the_next_one() -> None:
    world = World(BAD, OK)
    outcomes: list[str] = []

    def overtake() -> None:
        world.clock.pass_ms(LEASE_MS)
        outcomes.append(world.attempt())  # counts the first one as interrupted
        world.clock.now = world.delivery.due_at
        outcomes.append(world.attempt())

    world.sender.meanwhile = overtake
    assert world.attempt() == "busy"
    assert outcomes == ["retry", "retry"]
    assert [a.error for a in world.delivery.attempts] == ["the attempt was interrupted", None]
    assert world.consistent()


def test_a_crash_in_the_middle_counts_as_a_failure_and_comes_again() -> None:
    world = World(OK)

    def crash() -> None:
        raise MemoryError

    world.sender.meanwhile = crash
    with pytest.raises(MemoryError):
        world.attempt()
    assert world.attempt() == "busy"
    world.clock.pass_ms(LEASE_MS - 1)
    assert world.attempt() == "busy"
    world.clock.pass_ms(60_000)
    assert world.deliveries.sweep() == 1
    assert world.attempt() == "retry"
    world.clock.now = world.delivery.due_at
    assert world.attempt() == "delivered"
    first = world.delivery.attempts[0]
    assert (first.at, first.status, first.error) == (NOW, None, "the attempt was interrupted")
    assert world.store.work == set()


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
            world.attempt()
        except MemoryError:
            continue
    assert (world.delivery.status, len(world.delivery.attempts)) == ("dead", 9)
    assert world.queues.buried == [(world.id, SHOP)]
    assert world.store.work == set()


def test_410_disables_the_endpoint() -> None:
    world = World(Answer(410, b"", 5))
    assert world.attempt() == "cancelled"
    endpoint = world.store.get(WebhookEndpoint, tenant=SHOP, id="wh_1")
    assert endpoint is not None
    assert (endpoint.enabled, endpoint.disabled_reason, endpoint.disabled_at) == (False, "it answered 410 Gone", NOW)
    assert world.store.work == set()
    assert world.queues.buried == []


def test_410_of_an_endpoint_that_was_changed_meanwhile() -> None:
    world = World(Answer(410, b"", 5))
    changed = replace(world.endpoint, events=("invoice.completed",), version=2)
    world.sender.meanwhile = lambda: world.store.commit([Save(changed)])
    assert world.attempt() == "cancelled"
    endpoint = world.store.get(WebhookEndpoint, tenant=SHOP, id="wh_1")
    assert endpoint is not None
    assert (endpoint.enabled, endpoint.events, endpoint.version) == (False, ("invoice.completed",), 3)


def test_410_of_an_endpoint_that_was_disabled_meanwhile_keeps_the_first_reason() -> None:
    world = World(Answer(410, b"", 5))
    world.sender.meanwhile = lambda: world.store.commit([Save(world.endpoint.disabled("by hand", NOW))])
    assert world.attempt() == "cancelled"
    endpoint = world.store.get(WebhookEndpoint, tenant=SHOP, id="wh_1")
    assert endpoint is not None
    assert (endpoint.disabled_reason, endpoint.version) == ("by hand", 2)
    assert world.store.work == set()


def test_410_of_an_endpoint_that_was_deleted_meanwhile() -> None:
    world = World(Answer(410, b"", 5))
    world.sender.meanwhile = lambda: world.store.commit([Delete(WebhookEndpoint, {"tenant": SHOP, "id": "wh_1"})])
    assert world.attempt() == "cancelled"
    assert world.store.all(WebhookEndpoint) == []
    assert world.store.work == set()


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
    assert world.attempt() == "cancelled"
    assert world.sender.sent == []
    assert (world.delivery.status, world.delivery.reason, world.store.work) == ("cancelled", reason, set())


def test_anothers_delivery_is_not_there() -> None:
    world = World(OK)
    assert world.deliveries.attempt(OTHER, world.id) == "finished"
    assert world.sender.sent == []


def test_a_lost_message_is_found_after_a_minute() -> None:
    world = World(OK)
    world.clock.pass_ms(59_999)
    assert world.deliveries.sweep() == 0
    world.clock.pass_ms(1)
    assert world.deliveries.sweep() == 1
    assert world.queues.deliveries == [(world.id, SHOP, 0)]


def test_long_waits_are_found_as_soon_as_they_are_over() -> None:
    world = World(BAD)
    while world.delivery.due_at - world.clock.now <= 900_000:
        world.clock.now = world.delivery.due_at
        world.attempt()
    world.queues.deliveries.clear()
    world.clock.now = world.delivery.due_at - 1
    assert world.deliveries.sweep() == 0
    world.clock.pass_ms(1)
    assert world.deliveries.sweep() == 1
    assert world.queues.deliveries == [(world.id, SHOP, 0)]


def test_the_sweep_leaves_a_running_attempt_alone() -> None:
    world = World(OK)
    world.clock.pass_ms(3_600_000)
    swept: list[int] = []
    world.sender.meanwhile = lambda: swept.append(world.deliveries.sweep())
    world.attempt()
    assert swept == [0]


def test_a_retry_without_a_queue_is_left_to_the_sweep() -> None:
    world = World(BAD)
    world.queues.down = True
    assert world.attempt() == "retry"
    assert world.consistent()
    world.queues.down = False
    world.clock.now = world.delivery.due_at + 60_000
    assert world.deliveries.sweep() == 1


def test_a_death_that_can_not_be_told_comes_again() -> None:
    world = World(BAD)
    for _ in RETRY_SECONDS:
        world.attempt()
        world.clock.now = world.delivery.due_at
    world.queues.down = True
    with pytest.raises(Unavailable):
        world.attempt()
    world.queues.down = False
    world.clock.pass_ms(LEASE_MS + 60_000)
    assert world.deliveries.sweep() == 1
    assert world.attempt() == "dead"
    assert world.queues.buried == [(world.id, SHOP)]
    assert world.store.work == set()


def test_the_work_of_a_forgotten_delivery_is_closed_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    world = World(OK)
    world.store.commit([Delete(Delivery, {"tenant": SHOP, "id": world.id})])
    world.clock.pass_ms(KEEP_SECONDS * 1000)
    assert world.deliveries.sweep() == 0
    assert world.store.work == set()
    assert "metric=delivery_lost" in caplog.text


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after"])
def test_cut_at_any_call_it_is_still_delivered(after: bool) -> None:
    cut = 0
    while True:
        cut += 1
        world = World(BAD, OK)
        cuts = Cuts(cut, after=after)
        world.seal(SECRET)
        queues, seals = cuts.around(world.queues), cuts.around(world.seals)
        faulty = Deliveries(cuts.around(world.store), queues, world.clock, world.sender, queues, seals, lambda: 0.0)
        for _ in range(20):
            if world.delivery.status != "pending":
                break
            for act in (faulty.sweep, partial(faulty.attempt, SHOP, world.id)):
                try:
                    act()
                except Unavailable:
                    assert world.consistent()
            world.clock.pass_ms(LEASE_MS + 61_000)
        assert world.delivery.status == "delivered", f"cut {cut}"
        assert world.store.work == set()
        if cuts.calls < cut:
            break
    assert cut > 15
