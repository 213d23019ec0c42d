"""The pump: that schedules fire and messages arrive as on AWS, in the background and in a drain, whatever the handlers do."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from chalice.app import Chalice, Rate

from infra.local.aws import LocalAws
from infra.local.pump import Pump, drain
from infra.local.queues import consumers, schedules
from infra.local.recursion import LIMIT, RecursiveInvocation


class Shop:
    """An app with two schedules and the three queues; `told` is what its handlers were told, and `on` changes what they do."""

    def __init__(self, aws: LocalAws) -> None:
        self.told: list[tuple[str, str]] = []
        self.records: list[dict[str, Any]] = []
        self.on: dict[str, Callable[[str], Any]] = {}
        self.sqs = boto3.client("sqs")
        self._name = aws.settings.queue
        self.app = Chalice("shop", configure_logs=False)

        @self.app.schedule(Rate(1, unit=Rate.MINUTES))
        def poll_bitcoin(event: Any) -> Any:
            assert (event.source, event.detail_type, event.resources[0][:15]) == (
                "aws.events",
                "Scheduled Event",
                "arn:aws:events:",
            )
            return self._tell("poll_bitcoin", "")

        @self.app.schedule(Rate(1, unit=Rate.MINUTES))
        def housekeeping(event: Any) -> Any:
            return self._tell("housekeeping", "")

        for name, queue in (("relay", "relay"), ("deliver", "deliveries"), ("payout", "payouts.fifo")):
            self._consumer(name, aws.settings.queue(queue))

    def _consumer(self, name: str, queue: str) -> None:
        def handle(event: Any) -> Any:
            (record,) = event
            self.records.append(record.to_dict())
            return self._tell(name, record.body)

        self.app.on_sqs_message(queue=queue, batch_size=1, name=name)(handle)

    def _tell(self, name: str, body: str) -> Any:
        self.told.append((name, body))
        return self.on[name](body) if name in self.on else None

    def send(self, queue: str, *bodies: str, group: str | None = None, delay: int = 0) -> None:
        for body in bodies:
            fifo = {"MessageGroupId": group, "MessageDeduplicationId": body} if group else {}
            more = {"DelaySeconds": delay} if delay else {}
            self.sqs.send_message(QueueUrl=self._url(queue), MessageBody=body, **fifo, **more)

    def send_to_group(self, queue: str, body: str, group: str, delay: int) -> None:
        self.sqs.send_message(QueueUrl=self._url(queue), MessageBody=body, MessageGroupId=group, DelaySeconds=delay)

    def bodies(self, name: str) -> list[str]:
        return [body for told, body in self.told if told == name]

    def left(self, queue: str) -> list[str]:
        """Bodies of what is in a queue, visible or not."""
        from infra.local.queues import Consumer

        return [m.body for m in Consumer("test", self._name(queue), 1, lambda event, context: None).queue()._messages]

    def _url(self, queue: str) -> str:
        return str(self.sqs.get_queue_url(QueueName=self._name(queue))["QueueUrl"])


@pytest.fixture
def shop(aws: LocalAws) -> Shop:
    return Shop(aws)


def fail(times: int = 10**9) -> Callable[[str], None]:
    """A handler that fails so often and then works."""
    left = [times]

    def handler(body: str) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(f"no luck with {body!r}")

    return handler


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


# ---- Draining ---------------------------------------------------------------------------------------------------------------


def test_a_drain_fires_the_schedules_and_empties_the_queues(shop: Shop) -> None:
    shop.send("relay", "a", "b")
    shop.send("payouts.fifo", "p", group="wallet")
    done = drain(shop.app)
    assert done.settled
    assert (shop.bodies("relay"), shop.bodies("payout")) == (["a", "b"], ["p"])
    assert shop.told[:2] == [("poll_bitcoin", ""), ("housekeeping", "")]
    assert (shop.left("relay"), shop.left("payouts.fifo")) == ([], [])


def test_a_drain_goes_on_with_what_handlers_send(shop: Shop) -> None:
    shop.on["relay"] = lambda body: shop.send("deliveries", f"{body} delivered")
    shop.send("relay", "a")
    assert drain(shop.app).settled
    assert shop.bodies("deliver") == ["a delivered"]


def test_records_look_like_those_of_sqs(shop: Shop, aws: LocalAws) -> None:
    shop.send("payouts.fifo", "p", group="wallet")
    shop.send("relay", "a", "b")
    drain(shop.app)
    payout = next(record for record in shop.records if record["body"] == "p")
    assert payout["eventSourceARN"].endswith(f":{aws.settings.queue('payouts.fifo')}")
    assert (payout["eventSource"], payout["attributes"]["MessageGroupId"]) == ("aws:sqs", "wallet")
    assert payout["attributes"]["ApproximateReceiveCount"] == "1"
    assert len({record["messageId"] for record in shop.records}) == 3
    assert len({record["receiptHandle"] for record in shop.records}) == 3


def test_reversed_takes_the_newest_first_but_keeps_groups_in_order(shop: Shop) -> None:
    shop.send("relay", "a", "b", "c")
    shop.send("payouts.fifo", "1", "2", group="x")
    shop.send("payouts.fifo", "3", "4", group="y")
    drain(shop.app, order="reversed")
    assert shop.bodies("relay") == ["c", "b", "a"]
    paid = shop.bodies("payout")
    assert paid[0] == "3"
    assert paid.index("1") < paid.index("2")
    assert paid.index("3") < paid.index("4")
    assert shop.told[0][0] == "payout"
    assert [name for name, _ in shop.told if name in ("poll_bitcoin", "housekeeping")][:2] == ["housekeeping", "poll_bitcoin"]


def test_twice_gives_each_message_twice(shop: Shop) -> None:
    shop.send("relay", "a", "b")
    drain(shop.app, order="twice")
    assert shop.bodies("relay") == ["a", "a", "b", "b"]


def test_late_gives_each_message_again_at_the_end(shop: Shop) -> None:
    shop.on["relay"] = lambda body: shop.send("deliveries", body) if shop.bodies("relay").count(body) == 1 else None
    shop.send("relay", "a", "b")
    assert drain(shop.app, order="late").settled
    assert shop.bodies("relay") == ["a", "b", "a", "b"]
    assert shop.bodies("deliver") == ["a", "b", "a", "b"]


def test_a_failure_ends_a_drain_and_the_message_is_still_there(shop: Shop) -> None:
    shop.on["relay"] = fail(1)
    shop.send("relay", "a")
    with pytest.raises(OSError, match="no luck"):
        drain(shop.app)
    assert drain(shop.app).settled
    assert shop.bodies("relay") == ["a", "a"]


def test_a_chain_of_messages_is_stopped_as_lambda_stops_it(shop: Shop) -> None:
    """The function that wakes itself is called sixteen times; the next message is tried in vain, and ends in the dead letters."""
    shop.on["relay"] = lambda body: shop.send("relay", f"{body}+")
    shop.send("relay", "a")
    done = drain(shop.app, failures="count", rounds=40)
    assert shop.bodies("relay") == ["a" + "+" * n for n in range(LIMIT)]
    assert {type(error) for _, error in done.failures} == {RecursiveInvocation} and len(done.failures) == 5
    assert shop.left("relay") == [] and shop.left("relay-dead") == ["a" + "+" * LIMIT]


def test_a_schedule_begins_a_new_chain(shop: Shop) -> None:
    """Whatever the message said: what counts is who sent it."""
    left = iter(range(20))
    shop.on["relay"] = lambda body: None
    shop.on["housekeeping"] = lambda _: shop.send("relay", "on") if next(left, None) is not None else None
    assert drain(shop.app, rounds=40).calls["relay"] == 20


def test_two_functions_that_wake_each_other_are_one_chain(shop: Shop) -> None:
    shop.on |= {"relay": lambda body: shop.send("deliveries", body), "deliver": lambda body: shop.send("relay", body)}
    shop.send("relay", "a")
    drain(shop.app, failures="count", rounds=40)
    assert len(shop.bodies("relay")) + len(shop.bodies("deliver")) == LIMIT


def test_counted_failures_are_tried_again_and_end_in_the_dead_letters(shop: Shop) -> None:
    shop.on |= {"relay": fail(), "deliver": fail(2), "poll_bitcoin": fail(1)}
    shop.send("relay", "bad")
    shop.send("deliveries", "late")
    done = drain(shop.app, failures="count")
    assert done.settled
    assert shop.bodies("deliver") == ["late"] * 3
    assert shop.bodies("relay") == ["bad"] * 5
    assert shop.left("relay-dead") == ["bad"]
    assert sorted(name for name, _ in done.failures) == ["deliver"] * 2 + ["poll_bitcoin"] + ["relay"] * 5


def test_what_a_handler_reports_as_failed_comes_back(shop: Shop) -> None:
    shop.on["relay"] = lambda body: {"batchItemFailures": [{"itemIdentifier": shop.records[-1]["messageId"]}]}
    shop.send("relay", "a")
    done = drain(shop.app, failures="count")
    assert shop.bodies("relay") == ["a"] * 5
    assert len(done.failures) == 5
    assert shop.left("relay-dead") == ["a"]


class Batches:
    """An app whose only consumer takes ten messages and reports those whose body says so; `given` is each batch that it got."""

    def __init__(self, shop: Shop, aws: LocalAws) -> None:
        self.given: list[list[str]] = []
        self.app = Chalice("batches", configure_logs=False)

        @self.app.on_sqs_message(queue=aws.settings.queue("relay"), batch_size=10)
        def relay(event: Any) -> Any:
            records = [record.to_dict() for record in event]
            self.given.append([record["body"] for record in records])
            bad = [record["messageId"] for record in records if record["body"].startswith("bad")]
            wrong = ["nobody's"] if "wrong" in self.given[-1] else []
            return {"batchItemFailures": [{"itemIdentifier": each} for each in bad + wrong]}


def test_of_a_batch_only_what_failed_comes_back(shop: Shop, aws: LocalAws) -> None:
    batches = Batches(shop, aws)
    shop.send("relay", "a", "bad", "c")
    done = drain(batches.app, failures="count", batch=10)
    assert batches.given == [["a", "bad", "c"]] + [["bad"]] * 4
    assert (shop.left("relay"), shop.left("relay-dead"), len(done.failures)) == ([], ["bad"], 5)


def test_an_answer_about_foreign_messages_fails_the_batch(shop: Shop, aws: LocalAws) -> None:
    batches = Batches(shop, aws)
    shop.send("relay", "a", "wrong")
    with pytest.raises(ValueError, match="nobody's"):
        drain(batches.app, batch=10)
    assert shop.left("relay") == ["a", "wrong"]


def test_in_the_background_what_failed_waits_for_its_timeout(shop: Shop, aws: LocalAws) -> None:
    batches = Batches(shop, aws)
    shop.send("relay", "a", "bad", "c")
    pump = Pump(batches.app)
    pump.start()
    until(lambda: shop.left("relay") == ["bad"])
    shop.send("relay", "d")
    until(lambda: len(batches.given) == 2 and shop.left("relay") == ["bad"])
    pump.stop()
    assert batches.given == [["a", "bad", "c"], ["d"]]
    (hidden,) = consumers(batches.app)[0].queue()._messages
    assert not hidden.visible
    assert hidden.visible_at - time.time() * 1000 > 60_000, "the queue's visibility timeout is three minutes"
    assert pump.failures == {}


def test_a_group_on_a_standard_queue_is_no_order(shop: Shop, aws: LocalAws) -> None:
    """AWS's fair queues: MessageGroupId says whose message it is. A group's messages are given out at once, and delays are allowed.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
    """
    batches = Batches(shop, aws)
    for body, delay in (("now 1", 0), ("later", 900), ("now 2", 0)):
        shop.send_to_group("relay", body, group="mch_a", delay=delay)
    (consumer,) = consumers(batches.app)
    first = consumer.receive(1)
    assert [message.body for message in first] == ["now 1"]
    second = consumer.receive()
    assert [message.body for message in second] == ["now 2"], "though one of its group is at work"
    consumer.delete([*first, *second])
    assert shop.left("relay") == ["later"]
    drain(batches.app, hurry=True)
    assert batches.given == [["later"]]


def test_a_process_that_dies_leaves_its_message_for_the_next(shop: Shop) -> None:
    class Died(BaseException):
        pass

    def die(body: str) -> None:
        raise Died

    shop.on["relay"] = die
    shop.send("relay", "a")
    with pytest.raises(Died):
        drain(shop.app, failures="count")
    del shop.on["relay"]
    drain(shop.app)
    assert shop.bodies("relay") == ["a", "a"]
    assert shop.left("relay") == []


def test_delayed_messages_wait_unless_hurried(shop: Shop) -> None:
    shop.send("deliveries", "later", delay=900)
    assert drain(shop.app).settled
    assert shop.bodies("deliver") == []
    drain(shop.app, hurry=True)
    assert shop.bodies("deliver") == ["later"]


def test_only_some_handlers_can_be_called(shop: Shop) -> None:
    shop.send("relay", "a")
    drain(shop.app, only=["housekeeping"])
    assert {name for name, _ in shop.told} == {"housekeeping"}


def test_a_drain_without_end_is_bounded_and_says_so(shop: Shop) -> None:
    shop.on["poll_bitcoin"] = lambda body: shop.send("relay", "again")
    done = drain(shop.app, rounds=4)
    assert not done.settled
    assert done.rounds == 4


# ---- In the background ------------------------------------------------------------------------------------------------------


def test_the_pump_fires_and_feeds_until_it_is_stopped(shop: Shop) -> None:
    pump = Pump(shop.app, {"poll_bitcoin": 0.05, "housekeeping": 30})
    pump.start()
    shop.send("relay", "a")
    until(lambda: shop.bodies("relay") == ["a"] and len(shop.bodies("poll_bitcoin")) >= 2)
    until(lambda: shop.left("relay") == [])
    pump.stop()
    until(lambda: not any(thread.name == "pump" for thread in threading.enumerate()))
    assert len(shop.bodies("housekeeping")) == 1
    told = len(shop.told)
    shop.send("relay", "b")
    time.sleep(0.2)
    assert len(shop.told) == told


def test_a_slow_webhook_delays_no_payout(shop: Shop) -> None:
    gate = threading.Event()
    shop.on["deliver"] = lambda body: gate.wait(10)
    pump = Pump(shop.app, {"poll_bitcoin": 30, "housekeeping": 30})
    pump.start()
    shop.send("deliveries", *(f"slow {n}" for n in range(20)))
    until(lambda: len(shop.bodies("deliver")) == 8)
    shop.send("payouts.fifo", "p", group="wallet")
    until(lambda: shop.bodies("payout") == ["p"])
    assert len(shop.bodies("deliver")) == 8
    gate.set()
    until(lambda: len(shop.bodies("deliver")) == 20)
    pump.stop()


def test_a_wallets_payouts_go_one_after_the_other_and_wallets_side_by_side(shop: Shop) -> None:
    running: set[str] = set()
    together: set[tuple[str, ...]] = set()

    first_of_each = threading.Barrier(2)

    def pay(body: str) -> None:
        running.add(body)
        if body.endswith("1"):
            first_of_each.wait(30)
        together.add(tuple(sorted(running)))
        time.sleep(0.15)
        running.discard(body)

    shop.on["payout"] = pay
    for wallet in ("x", "y"):
        shop.send("payouts.fifo", f"{wallet}1", f"{wallet}2", group=wallet)
    pump = Pump(shop.app, {"poll_bitcoin": 30, "housekeeping": 30})
    pump.start()
    until(lambda: shop.left("payouts.fifo") == [])
    pump.stop()
    assert sorted(shop.bodies("payout")[:2]) == ["x1", "y1"]
    assert ("x1", "y1") in together
    assert not any({"x1", "x2"} <= set(names) or {"y1", "y2"} <= set(names) for names in together)


def test_failures_are_counted_and_logged_in_one_line_each(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.on |= {"relay": fail(), "poll_bitcoin": fail()}
    pump = Pump(shop.app, {"poll_bitcoin": 0.05, "housekeeping": 30})
    with caplog.at_level(logging.WARNING):
        pump.start()
        shop.send("relay", "a")
        until(lambda: pump.failures["poll_bitcoin"] >= 3 and pump.failures["relay"] == 1)
        pump.stop()
    lines = [record.getMessage() for record in caplog.records if record.name == "infra.local.pump"]
    assert sorted(line.split(" ")[0] for line in lines) == ["poll_bitcoin", "relay"]
    assert all("OSError: no luck" in line and "\n" not in line for line in lines)
    # As on AWS, the message waits for its visibility timeout.
    assert (shop.left("relay"), shop.bodies("relay")) == (["a"], ["a"])


def test_a_quiet_schedule_rests_and_wakes_when_something_is_written(
    shop: Shop, aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.local.pump.QUIET_SECONDS", 600.0)
    pump = Pump(shop.app, {"poll_bitcoin": 0.05, "housekeeping": 30})
    pump.start()
    until(lambda: len(shop.bodies("poll_bitcoin")) == 1)
    time.sleep(0.7)
    assert len(shop.bodies("poll_bitcoin")) == 1
    boto3.client("dynamodb").put_item(TableName=aws.settings.table("records"), Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    until(lambda: len(shop.bodies("poll_bitcoin")) == 2)
    pump.stop()


# ---- The deployed clock -----------------------------------------------------------------------------------------------------


def test_the_deployed_clock_fires_each_minute_whether_the_last_run_has_ended_or_not(shop: Shop) -> None:
    """The pump is asked what is due, in a time of the test's own: no thread of it runs."""
    app = shop.app

    @app.schedule(Rate(5, unit=Rate.MINUTES))
    def archive(event: Any) -> Any:
        return shop._tell("archive", "")

    assert [(schedule.name, schedule.seconds) for schedule in schedules(app)] == [
        ("poll_bitcoin", 60.0),
        ("housekeeping", 60.0),
        ("archive", 300.0),
    ]
    pump = Pump(app, deployed=True)
    release, began = threading.Event(), threading.Semaphore(0)

    def stuck(body: str) -> None:
        began.release()
        release.wait(30)

    shop.on["poll_bitcoin"] = stuck
    now = 1_000.0
    for second in range(125):
        pump._tick(now + second)
    for _ in range(3):
        assert began.acquire(timeout=30)
    release.set()
    until(lambda: not pump._running)
    assert [name for name, _ in shop.told].count("poll_bitcoin") == 3
    assert [name for name, _ in shop.told].count("housekeeping") == 3
    assert [name for name, _ in shop.told].count("archive") == 1


def test_a_schedule_that_is_no_rate_is_an_error(shop: Shop) -> None:
    @shop.app.schedule("cron(0 12 * * ? *)")
    def noon(event: Any) -> Any:
        return None

    with pytest.raises(ValueError, match="is no rate"):
        schedules(shop.app)
