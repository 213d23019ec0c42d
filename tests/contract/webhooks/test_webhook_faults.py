"""What goes wrong while a webhook is sent, through the whole stack with real sockets, one thing a test.

Nothing is lost, the log that a merchant reads tells the truth, and duplicates carry the same id.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from chalicelib.delivery.safe_http import SafeHttpSender
from chalicelib.domain.webhooks.deliveries import Delivery
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.domain.webhooks.leases import LEASE_MS
from chalicelib.usecases.webhooks.delivery_attempts import Answer
from chalicelib.usecases.webhooks.lookouts import PERIOD_MS
from chalicelib.wiring import services
from tests.support.receiver import Behaviour, Receiver, answer, drip, reset
from tests.support.stack import Stack

HANDLERS = ("housekeeping", "relay", "deliver", "deliver_slow")
PATIENCE = 0.3
"""Seconds that a receiver has here which uses up all that it is given; `tests/unit/webhooks/test_webhook_sender.py` is about the
ten."""


class Died(BaseException):
    """The function is gone: nothing in it goes on."""


class Hook:
    """A registered endpoint, its receiver, and what has been told of it."""

    def __init__(self, stack: Stack, receiver: Receiver) -> None:
        self.stack, self.receiver = stack, receiver
        self.send: Callable[..., Answer] = SafeHttpSender(allow_private=True).send
        services().leases._deliveries._sender = self  # type: ignore[assignment]
        made = self.call("POST", "/v1/webhooks", {"url": receiver.url(), "events": ["invoice.created"]})
        self.path, self.secret = f"/v1/webhooks/{made['id']}", made["secret"]

    def call(self, method: str, path: str, json: Any = None) -> Any:
        reply = self.stack.call(method, path, self.stack.keys["client_test"], json=json)
        assert reply.status < 300, reply.body
        return reply.json.get("data", reply.json)

    def told(self) -> None:
        """An invoice is made, and all that this leads to at once."""
        self.call("POST", "/v1/invoices", {"currency": "eth", "amount": "0.5"})
        self.run()

    def run(self) -> None:
        self.stack.drain(only=HANDLERS)

    def take(self) -> str:
        """One more worker comes."""
        [endpoint] = services().store.every(WebhookEndpoint)
        return services().leases.take(endpoint.tenant, endpoint.id)

    def later(self, ms: int | None = None) -> None:
        """On until the schedule brings the next attempt, or by `ms`."""
        clock = services().clock
        if ms is None:
            [delivery] = self.deliveries()
            ms = max(0, delivery.due_at - clock.now_ms()) + 60_000
        clock.shift_ms += ms
        self.run()

    def deliveries(self) -> list[Delivery]:
        return list(services().store.every(Delivery))

    def log(self) -> tuple[str, list[tuple[int | None, str | None]]]:
        """The one delivery as its owner reads it: its status, and of each attempt the status and what went wrong."""
        [delivery] = self.call("GET", f"{self.path}/deliveries")
        return delivery["status"], [(a.get("responseStatus"), a.get("error")) for a in delivery["attempts"]]

    def nothing_is_open(self) -> bool:
        return not [work for work in services().store.every_work() if work.kind in ("delivery", "outbox")]


@pytest.fixture
def hook(stack: Stack) -> Iterator[Hook]:
    with Receiver() as receiver:
        yield Hook(stack, receiver)


def stalls(connection: Any) -> None:
    """Answers nothing, until the sender hangs up."""
    connection.recv(1)


NO_ANSWER = f"no answer within {PATIENCE:g} seconds"


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        pytest.param(stalls, None, NO_ANSWER, id="hangs"),
        pytest.param(drip(b"HTTP/1.1 2", b"0", 0.05, 30), None, NO_ANSWER, id="answers byte by byte"),
        pytest.param(reset, None, "the connection broke", id="resets"),
        pytest.param(answer(500, b"oops"), 500, None, id="500"),
    ],
)
def test_a_receiver_that_does_not_answer_well_is_asked_again_and_both_are_in_the_log(
    hook: Hook, fault: Behaviour, status: int | None, error: str | None
) -> None:
    hook.receiver.behave(fault, answer(200))
    patient = hook.send
    if error == NO_ANSWER:
        hook.send = SafeHttpSender(allow_private=True, seconds=PATIENCE).send
    hook.told()
    hook.send = patient
    state, [(said, why)] = hook.log()
    assert (state, said) == ("pending", status)
    assert why is None if error is None else why is not None and why.startswith(error)
    hook.later()
    assert hook.log() == ("delivered", [(status, why), (200, None)])
    first, second = hook.receiver.received
    assert first.body == second.body and first.headers["webhook-id"] == second.headers["webhook-id"]
    assert hook.nothing_is_open()


def test_a_function_that_dies_between_sending_and_recording_sends_again_with_the_same_id(hook: Hook) -> None:
    send = hook.send

    def and_die(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        send(url, headers, body)
        raise Died

    hook.send = and_die
    with pytest.raises(Died):
        hook.told()
    hook.send = send
    hook.later(LEASE_MS // 2)
    assert hook.deliveries() == [] and not hook.nothing_is_open()  # nobody knows yet that it died
    hook.later(60_000 + PERIOD_MS)
    assert hook.log() == ("pending", [(None, "the attempt was interrupted")])
    hook.later()
    assert hook.log() == ("delivered", [(None, "the attempt was interrupted"), (200, None)])
    first, second = hook.receiver.received
    assert first.body == second.body and first.headers["webhook-id"] == second.headers["webhook-id"]
    assert hook.nothing_is_open()


def test_a_secret_that_rotates_between_two_attempts_signs_the_second_beside_the_old_one(hook: Hook) -> None:
    hook.receiver.behave(answer(500), answer(200))
    hook.told()
    fresh = hook.call("POST", f"{hook.path}/rotate-secret", {})["secret"]
    hook.later()
    first, second = hook.receiver.received
    Webhook(hook.secret).verify(first.body, first.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(fresh).verify(first.body, first.headers)
    for secret in (hook.secret, fresh):
        Webhook(secret).verify(second.body, second.headers)
    assert second.headers["x-gateway-signature-previous"] == first.headers["x-gateway-signature"]
    assert hook.log() == ("delivered", [(500, None), (200, None)])


def test_an_endpoint_that_is_deleted_between_two_attempts_gets_no_second_and_the_delivery_says_why(hook: Hook) -> None:
    hook.receiver.behave(answer(500))
    hook.told()
    hook.call("DELETE", hook.path)
    hook.later()
    [delivery] = hook.deliveries()
    assert (delivery.status, delivery.reason) == ("cancelled", "the endpoint was deleted")
    assert [attempt.status for attempt in delivery.attempts] == [500] and len(hook.receiver.received) == 1
    assert hook.nothing_is_open()


def test_an_endpoint_that_is_deleted_while_it_is_being_asked_has_that_attempt_in_its_log(hook: Hook) -> None:
    def meanwhile(connection: Any) -> None:
        hook.call("DELETE", hook.path)
        answer(200)(connection)

    hook.receiver.behave(meanwhile)
    hook.told()
    [delivery] = hook.deliveries()
    assert (delivery.status, [attempt.status for attempt in delivery.attempts]) == ("delivered", [200])
    assert hook.nothing_is_open()


def test_a_message_that_comes_twice_at_once_sends_once(hook: Hook) -> None:
    """The second one comes while the first is being answered, and finds the turn taken."""
    outcomes = []

    def meanwhile(connection: Any) -> None:
        outcomes.append(hook.take())
        answer(200)(connection)

    hook.receiver.behave(meanwhile)
    hook.told()
    assert outcomes == ["taken"]
    assert hook.log() == ("delivered", [(200, None)]) and len(hook.receiver.received) == 1
    assert hook.nothing_is_open()


def test_a_message_that_many_workers_have_at_once_sends_once(hook: Hook) -> None:
    hook.call("POST", "/v1/invoices", {"currency": "eth", "amount": "0.5"})
    hook.stack.drain(only=["relay"])
    workers = [threading.Thread(target=hook.take) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    hook.run()
    assert hook.log() == ("delivered", [(200, None)]) and len(hook.receiver.received) == 1


def test_410_ends_the_delivery_and_what_waits_beside_it(hook: Hook) -> None:
    hook.receiver.behave(answer(500), answer(410))
    hook.told()
    hook.told()
    assert sorted((d.status, d.reason) for d in hook.deliveries() if d.status != "pending") == [
        ("cancelled", "the endpoint answered 410 Gone")
    ]
    services().clock.shift_ms += 70_000
    hook.run()
    assert {d.reason for d in hook.deliveries()} == {"the endpoint answered 410 Gone", "the endpoint is disabled"}
    assert len(hook.receiver.received) == 2 and hook.nothing_is_open()
