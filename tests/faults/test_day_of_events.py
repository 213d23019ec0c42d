"""A day of ten thousand events on a simulated clock, a tenth of them for endpoints that fail, each in its own way, and the retries
after it. Nothing is lost, every retry comes at its time, and the log says what the receivers saw.

The code is the real one: relay, turns, deliveries, sweeps, the owner's calls. Store, queues, functions and receivers are simulated.
`pytest -s` prints the figures.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from email.utils import formatdate
from hashlib import sha256
from hmac import new as hmac
from itertools import pairwise
from random import Random

import pytest

from chalicelib.domain.webhooks.deliveries import JITTER, RETRY_SECONDS, Delivery
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.leases import BATCH, REST_SECONDS
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.webhooks.leases import EARLY_MS
from tests.support.simulated import Weather
from tests.support.simulated_merchants import (
    HANG_MS,
    HOUR,
    MINUTE,
    SECOND,
    START,
    Behaviour,
    Hook,
    Merchants,
    Reply,
    Request,
    delays,
    duplicates,
    part,
)

FULL = os.environ.get("SWEEP") == "full"
DAY = 24 * HOUR
LATE_MS = 2_000
"""How long after its time an attempt may begin, where nothing holds it up."""
NAMES = {
    "invoice.created": 25, "transaction.detected": 20, "transaction.confirmed": 20, "invoice.completed": 15,
    "balance.updated": 10, "withdrawal.completed": 6, "invoice.expired": 4,
}  # fmt: skip
OK, BAD = Reply(200, 80), Reply(500, 60)
SOME = ("invoice.completed", "withdrawal.completed")
FEW = ("invoice.expired", "webhook.failing", "webhook.disabled")


def by_turns(*replies: Reply) -> Behaviour:
    return lambda now, before: replies[before % len(replies)]


def until(hour: int, before: Reply, after: Reply = OK) -> Behaviour:
    """`before`, and `after` from that hour of the day on."""
    return lambda now, _: before if now < START + hour * HOUR else after


def asks_for_rest(status: int, seconds: int, every: int, date: bool = False) -> Behaviour:
    """Too busy with each `every`th request, and says until when: in seconds, or by a date."""

    def behave(now: int, before: int) -> Reply:
        if before % every:
            return OK
        after = formatdate((now + 50) // 1000 + seconds, usegmt=True) if date else str(seconds)
        return Reply(status, 50, retry_after=after)

    return behave


class Day:
    """Twelve merchants, forty endpoints; the first merchant has a burst of 3,000 events within a minute."""

    def __init__(self, events: int, burst: int, weather: Weather | None = None, dies: float = 0.0) -> None:
        self.world = world = Merchants(6, weather, dies=dies)
        hang = Reply(None, HANG_MS, "no answer within 10 s")
        add = world.add
        for n in range(12):
            add(f"m{n}", "all", "*")
        for n in range(15):
            add(f"m{n % 12}", f"some{n}", list(NAMES)[3 + n % 4])
        add("m1", "dead", *FEW, behave=by_turns(BAD))
        add("m0", "hangs", *FEW, behave=by_turns(hang))
        add("m2", "resets", *SOME, behave=by_turns(Reply(None, 5, "the connection was reset")))
        add("m3", "down", *SOME, behave=lambda now, _: BAD if 6 * HOUR <= now - START < 10 * HOUR else OK)
        add("m4", "busy", *SOME, behave=asks_for_rest(429, 40, 4))
        add("m5", "dated", *SOME, behave=asks_for_rest(503, 1_200, 9, date=True))
        add("m6", "gone", *SOME, behave=until(9, BAD, Reply(410, 40)))
        add("m7", "drips", *FEW, behave=by_turns(Reply(None, HANG_MS, "the answer did not end within 10 s")))
        add("m8", "third", *SOME, behave=by_turns(OK, OK, BAD))
        deleted = add("m9", "deleted", *SOME, behave=by_turns(BAD))
        paused = add("m10", "paused", *SOME, behave=by_turns(OK))
        rotated = add("m11", "rotated", *SOME, behave=by_turns(BAD, OK))
        disabled = add("m0", "disabled", *FEW, behave=until(8, OK, BAD))
        assert len(world.hooks) == 40
        self.owners_act(deleted, paused, rotated, disabled)
        self.emit(events, burst)

    def owners_act(self, deleted: Hook, paused: Hook, rotated: Hook, disabled: Hook) -> None:
        world, webhooks, h = self.world, self.world.webhooks, START
        world.at(h + 14 * HOUR, lambda: webhooks.delete(deleted.tenant, deleted.id))
        world.at(h + 12 * HOUR, lambda: webhooks.update(disabled.tenant, disabled.id, status="disabled"))
        world.at(h + 3 * HOUR, lambda: webhooks.update(paused.tenant, paused.id, status="paused"))
        world.at(h + 5 * HOUR, lambda: webhooks.update(paused.tenant, paused.id, status="active"))
        world.at(h + 7 * HOUR, lambda: self.rotate(rotated))
        deleted.gone_from, disabled.gone_from = h + 14 * HOUR, h + 12 * HOUR
        paused.paused = (h + 3 * HOUR, h + 5 * HOUR)

    def rotate(self, hook: Hook) -> None:
        shown = self.world.webhooks.rotate_secret(hook.tenant, hook.id, 2 * HOUR // 1000)
        hook.secrets.append((self.world.simulation.now, shown.secret))

    def emit(self, events: int, burst: int) -> None:
        random = Random(4)
        names, weights = list(NAMES), list(NAMES.values())
        world = self.world
        for end, spread in ((events - burst, None), (events, START + 8 * HOUR)):
            while (left := end - len(world.events)) > 0:
                # A change tells of up to three things: the payment, its invoice, the balance.
                told = random.choices(names, weights, k=min(left, random.randint(1, 3)))
                if spread is None:
                    world.tell(START + MINUTE + random.randrange(DAY - MINUTE), f"m{random.randrange(12)}", *told)
                else:
                    world.tell(spread + random.randrange(MINUTE), "m0", *told)


def assert_signed(request: Request, secrets: list[str]) -> None:
    """By exactly these, newest first. Computed here, and not by what signed."""
    h = request.headers
    text = f"{h['webhook-id']}.{h['webhook-timestamp']}.".encode() + request.body
    keys = [b64decode(secret.removeprefix("whsec_")) for secret in secrets]
    assert h["webhook-signature"].split() == [f"v1,{b64encode(hmac(key, text, sha256).digest()).decode()}" for key in keys]
    assert h["x-gateway-signature"] == "sha256=" + hmac(secrets[0].encode(), request.body, sha256).hexdigest()
    assert ("x-gateway-signature-previous" in h) == (len(secrets) == 2)


class Judge:
    """What must be true when all is over."""

    def __init__(self, world: Merchants) -> None:
        self.world = world
        self.by_id = {hook.id: hook for hook in world.hooks.values()}
        self.deliveries = world.deliveries()
        self.of = {(d.event_id, d.endpoint_id): d for d in self.deliveries}
        self.seen: dict[str, list[Request]] = defaultdict(list)
        for hook in world.hooks.values():
            for request in hook.requests:
                self.seen[request.headers["x-gateway-delivery"]].append(request)
        self.held_up = self._held_up()
        for hook in world.hooks.values():
            told = [request.ended for request in hook.requests if request.reply.status == 410]
            hook.gone_from = min(told, default=hook.gone_from)
        self.lateness: list[int] = []
        self.excused: Counter[str] = Counter()

    def lost(self) -> list[tuple[str, str]]:
        """Every event is told, to everyone who wanted it then, and nothing is open: the events that are not, and where."""
        world, lost = self.world, []
        assert world.store.work == set() and world.store.all(OutboxRow) == []
        assert not any(function.dead for function in world.functions)
        told = world.store.all(EventRecord)
        assert {event.id for event in world.events} <= {event.id for event in told}
        assert {event.name for event in told if event.object_id in self.by_id} == {"webhook.failing", "webhook.disabled"}
        for event in told:
            for hook in world.hooks.values():
                if hook.tenant != event.tenant:
                    continue
                there = (event.id, hook.id) in self.of
                # Who is there is read when the event is told, a moment after it happened, or a minute where its message was lost.
                gone = hook.gone_from is not None and event.at >= hook.gone_from
                going = hook.gone_from is not None and abs(event.at - hook.gone_from) < 2 * MINUTE
                if hook.wants(event) and not gone and not going and not there:  # type: ignore[arg-type]
                    lost.append((event.id, hook.name))
                if there:
                    assert hook.wants(event) and (not gone or going)  # type: ignore[arg-type]
        return lost

    def every_end_is_true(self) -> Counter[str]:
        for delivery in self.deliveries:
            hook, last = self.by_id[delivery.endpoint_id], delivery.attempts[-1] if delivery.attempts else None
            assert delivery.finished_at is not None
            if delivery.status == "delivered":
                assert last is not None and last.succeeded and not any(a.succeeded for a in delivery.attempts[:-1])
            elif delivery.status == "dead":
                assert len(delivery.attempts) == 9 and not any(a.succeeded for a in delivery.attempts)
                assert delivery.id in self.world.queues.buried
            else:
                assert delivery.status == "cancelled" and hook.gone_from is not None
                assert delivery.finished_at >= hook.gone_from and not any(a.succeeded for a in delivery.attempts)
                assert delivery.reason == {
                    "deleted": "the endpoint was deleted",
                    "disabled": "the endpoint is disabled",
                    "gone": "the endpoint answered 410 Gone" if last and last.status == 410 else "the endpoint is disabled",
                }.get(hook.name)
        return Counter(delivery.status for delivery in self.deliveries)

    def the_log_is_what_receivers_saw(self, *, with_deaths: bool = False) -> None:
        """To the millisecond. Where processes die, attempts are logged as interrupted, whether or not the receiver saw them."""
        for delivery in self.deliveries:
            hook, seen = self.by_id[delivery.endpoint_id], self.seen[delivery.id]
            assert {r.headers["webhook-id"] for r in seen} <= {delivery.event_id}
            assert {r.headers["x-gateway-event"] for r in seen} <= {delivery.event_name}
            assert len({r.body for r in seen}) <= 1
            logged = [a for a in delivery.attempts if a.error != "the attempt was interrupted"]
            full = [(r.at, r.reply.status, r.reply.ms, r.reply.error) for r in seen if not r.cut]
            mine = [(a.at, a.status, a.duration, a.error) for a in logged]
            if with_deaths:
                assert set(mine) <= set(full)
                assert len(seen) - len(logged) <= len(delivery.attempts) - len(logged)
            else:
                assert mine == full and len(logged) == len(delivery.attempts)
            assert hook.most_open <= BATCH

    def every_attempt_comes_at_its_time(self) -> None:
        """Not before (but for the second that clocks may differ), and two seconds after at most.

        Longer only while the endpoint is at its bound (a batch is under way there), asked to be left alone, or is paused, or where
        the queue brought the message late: at no other time is an endpoint idle for two seconds with something due for it.
        """
        for delivery in self.deliveries:
            due = delivery.created_at
            for place, attempt in enumerate(delivery.attempts):
                late = attempt.at - due
                assert late >= -EARLY_MS, (delivery, place)
                why = None if late <= LATE_MS else self._excuse(delivery, due, attempt.at)
                if place and why is None:
                    self.lateness.append(late)
                if why is not None:
                    self.excused[why] += 1
                due = attempt.next_at or 0
            for nth, (attempt, _) in enumerate(pairwise(delivery.attempts)):
                assert attempt.next_at is not None
                self._is_as_published(delivery, nth)

    def _is_as_published(self, delivery: Delivery, nth: int) -> None:
        attempt = delivery.attempts[nth]
        (request,) = [r for r in self.seen[delivery.id] if r.at == attempt.at] or [None]
        wait = ((attempt.next_at or 0) - attempt.ended) / 1000
        asked = 0.0
        if request is not None and request.reply.retry_after is not None:
            value = request.reply.retry_after
            asked = float(value) if value.isdigit() else 1_200
            assert wait >= asked - 1
        published = RETRY_SECONDS[nth]
        assert max(published, asked - 1) <= wait <= max(published * (1 + JITTER), asked + 1) + 0.001

    def who_asks_for_rest_has_it(self) -> int:
        """No request while an endpoint rests; how many rests there were."""
        rests = 0
        for hook in self.world.hooks.values():
            begun = [request.at for request in hook.requests]
            for start, end, why in self.held_up[hook.id]:
                if why == "rest":
                    rests += 1
                    assert bisect_left(begun, end) <= bisect_right(begun, start), (hook.name, start, end)
        return rests

    def each_request_is_signed_by_the_secrets_of_its_time(self) -> None:
        """Where an owner rotates: the one that was shown last, and for two hours with it the one of before."""
        for hook in self.world.hooks.values():
            if len(hook.secrets) == 1:
                continue
            (_, old), (rotated, new) = hook.secrets
            signed: Counter[tuple[int, bool]] = Counter()
            for request in hook.requests:
                if abs(request.at - rotated) <= 50:
                    continue  # read right before the rotation was committed, or right after
                after = request.at > rotated
                secrets = [old] if not after else [new, old] if request.at < rotated + 2 * HOUR else [new]
                assert_signed(request, secrets)
                signed[len(secrets), after] += 1
            assert set(signed) == {(1, False), (2, True), (1, True)}

    def _excuse(self, delivery: Delivery, due: int, begun: int) -> str:
        """Why it began late: its endpoint was held up the whole time, with no gap longer than a late attempt may be late."""
        free, reasons = due, set()
        for start, end, why in self.held_up[delivery.endpoint_id]:
            if end > due and start < begun:
                assert start - free <= LATE_MS, (delivery, due, begun, free, start, why)
                free = max(free, end)
                reasons.add(why)
        assert begun - free <= LATE_MS, (delivery, due, begun, free)
        return min(reasons, key=("paused", "rest", "queue", "bound").index)

    def _held_up(self) -> dict[str, list[tuple[int, int, str]]]:
        found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for hook in self.world.hooks.values():
            if hook.paused is not None:
                found[hook.id].append((*hook.paused, "paused"))
            for request in hook.requests:
                found[hook.id].append((request.at, request.ended, "bound"))
                after = request.reply.retry_after
                if after is not None:
                    rest = min(int(after) if after.isdigit() else REST_SECONDS, REST_SECONDS)
                    found[hook.id].append((request.ended, request.ended + rest * SECOND, "rest"))
        for function in self.world.functions:
            for body, due, came in function.delayed:
                if "endpoint" in body:
                    found[body["endpoint"]].append((due, came, "queue"))
        return {id: sorted(spans) for id, spans in found.items()}


@pytest.mark.sweep
def test_a_day_of_ten_thousand_events() -> None:
    day = Day(10_000, 3_000)
    world = day.world
    world.run(START + DAY)
    world.run_until_final(START + DAY + 22 * HOUR)
    judge = Judge(world)

    # Nothing is lost.
    assert len(world.events) == 10_000
    assert judge.lost() == []
    ends = judge.every_end_is_true()
    assert set(ends) == {"delivered", "dead", "cancelled"} and sum(ends.values()) == len(judge.deliveries)
    assert sum(not judge.by_id[d.endpoint_id].well for d in judge.deliveries) >= len(world.events) / 10

    # Every retry comes at its time.
    judge.every_attempt_comes_at_its_time()
    assert len(judge.lateness) > 3_000
    assert judge.who_asks_for_rest_has_it() > 20

    # The log tells the truth.
    judge.the_log_is_what_receivers_saw()
    assert duplicates(world) == 0
    judge.each_request_is_signed_by_the_secrets_of_its_time()

    # What is dead holds up nothing that is well.
    calm, burst = delays(world), delays(world, since=START + 8 * HOUR, until=START + 8 * HOUR + MINUTE)
    assert part(calm, 0.99) < 2_000
    assert len(burst) > 3_000 and part(burst, 0.99) < 2_000

    late, notices = sorted(judge.lateness), len(world.store.all(EventRecord)) - len(world.events)
    print(f"""
events                 {len(world.events)}, notices {notices}, lost {len(judge.lost())}
deliveries             {len(judge.deliveries)} {dict(ends)}
attempts               {sum(len(d.attempts) for d in judge.deliveries)}, duplicates {duplicates(world)}
retries at their time  {len(late)}, {late[0]} to {late[-1]} ms after it; attempts by another rule {dict(judge.excused)}
first attempt, healthy p50 {part(calm, 0.5)} ms, p99 {part(calm, 0.99)} ms, most {calm[-1]} ms
  in the burst         p50 {part(burst, 0.5)} ms, p99 {part(burst, 0.99)} ms, most {burst[-1]} ms
messages               {world.messages} {[f.sent for f in world.functions]}, invocations {[f.invocations for f in world.functions]}
commits                {world.store.commits}""")


def test_a_day_on_which_functions_die_and_store_and_queues_fail() -> None:
    """One process in ten dies within 200 ms where it is at work, one message in fifty is refused, and twice the store is down.

    Nothing is lost, no log says more than receivers saw, and duplicates carry the same id. With `SWEEP=full` it is the whole day.
    """
    day = Day(10_000 if FULL else 700, 100, Weather(8, twice=0.03, late=0.02, late_ms=90_000, refused=0.02), dies=0.1)
    world = day.world
    outages = [(START + 8 * HOUR + 20 * SECOND, 40 * SECOND), (START + 15 * HOUR, 10 * MINUTE)]
    world.store.down = lambda now: any(since <= now < since + lasts for since, lasts in outages)
    world.run(START + DAY)
    world.run_until_final(START + DAY + 26 * HOUR)
    judge = Judge(world)
    assert sum(function.deaths for function in world.functions) > 30 and world.schedules_failed > 3
    assert judge.lost() == []
    judge.every_end_is_true()
    judge.the_log_is_what_receivers_saw(with_deaths=True)
    assert duplicates(world) > 0
    print(f"deaths {[f.deaths for f in world.functions]}, failed {[f.failures for f in world.functions]}, dup {duplicates(world)}")
