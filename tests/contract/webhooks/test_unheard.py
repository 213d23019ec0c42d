"""Events of a merchant without endpoints are stored with their change, without an outbox row; an endpoint that is registered a
moment before misses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.domain.webhooks.hooks import InvoiceHook
from chalicelib.domain.work import Command, OutboxRow, Work, as_one_item
from chalicelib.store import unheard
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.changes import Close, Conflict, Open
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.bench.accounting import accounted
from tests.support.receiver import Receiver
from tests.support.shop import Shop
from tests.support.stack import Stack
from tests.support.webhooks import NOW, SHOP

URL = "https://shop.example/hook"
HINT = Command("collectable", "test:ethereum", {"id": "0xabc|eth"})
WORK = Work("deposit", "test:ethereum", "1", "dep_1")


@pytest.fixture
def shop(stack: Stack) -> Shop:
    found = Shop(stack)
    found.open()
    return found


def rows() -> list[OutboxRow]:
    return list(services().store.every(OutboxRow))


def news(*commands: Command, events: int = 2) -> News:
    told = News(NOW)
    for sequence in range(1, events + 1):
        told.tell(SHOP, "invoice.partial", "inv_1", sequence, {"id": "inv_1", "n": sequence})
    for command in commands:
        told.command(command)
    return told


def events() -> list[tuple[str, str, int, str]]:
    found = sorted(services().store.every(EventRecord), key=lambda event: event.id)
    return [(event.tenant, event.name, event.sequence, event.body) for event in found]


def process() -> DynamoStore:
    """A store as another process of a function has it, which remembers nothing."""
    wired = services()
    return DynamoStore(wired.settings, wired.region)


def test_a_payment_leaves_what_the_relay_would_have_left(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same events and the same open work, by both ways."""

    def left() -> tuple[list[tuple[str, int]], list[str]]:
        made = shop.invoice("1")
        shop.pay(made["address"], "1")
        shop.turn()
        shop.mine()
        shop.turn()
        assert shop.status(made) == "completed"
        told = [(event.name, event.sequence) for event in sorted(services().store.every(EventRecord), key=lambda one: one.id)]
        return told, sorted(work.kind for work in services().store.every_work())

    direct = left()
    assert rows() == []
    assert audit(services().store) == []
    shop.stack.reset()
    shop.open()
    monkeypatch.setattr(unheard, "MOST_DIRECT", 0)
    assert left() == direct
    assert [name for name, _ in direct[0]].count("balance.updated") == 1


def test_nothing_is_sent_and_nothing_opened_where_nobody_listens(aws: LocalAws) -> None:
    kicked: list[str] = []
    store = DynamoStore(services().settings, services().region, lambda id, _: kicked.append(id))
    store.commit([Open(WORK), *news(HINT).emit()])
    assert (rows(), kicked) == ([], [])
    assert [(sequence, json.loads(body)["data"]["n"]) for _, _, sequence, body in events()] == [(1, 1), (2, 2)]
    assert {work.kind for work in store.every_work()} == {"deposit", "collectable"}
    store.commit([*news(HINT).emit()])
    assert len([work for work in store.every_work() if work.kind == "collectable"]) == 1, "a hint may be open already"


@pytest.mark.parametrize("how", ["queue", "notice", "hook"])
def test_what_the_relay_has_to_do_goes_by_the_outbox(aws: LocalAws, how: str) -> None:
    told = news(Command("payouts", "g", {"id": "wd_1"})) if how == "queue" else news()
    if how == "hook":
        told.tell(SHOP, "invoice.partial", "inv_1", 3, {}, hook=InvoiceHook("invwh_1", URL, "sealed", NOW))
    (emit,) = told.emit("note" if how == "notice" else "out")
    services().store.commit([emit])
    assert [row.id for row in rows()] == [as_one_item(emit.row).id]
    assert (events() == []) == (how == "notice"), "what sends webhooks may write no events"


def test_an_endpoint_registered_a_moment_before_is_told(shop: Shop) -> None:
    """By a process that knows from a moment ago that nobody listens."""
    with Receiver() as receiver:
        before = shop.invoice("1")
        shop.stack.drain(hurry=True)
        other = process()
        other.commit([*news().emit()])  # it knows now, of this merchant
        made = shop.post("/v1/webhooks", {"url": receiver.url(), "events": ["*"]})
        assert made.status == 201, made.body
        after = shop.invoice("2")
        (row,) = rows()
        assert [event.object_id for event in row.events] == [after["id"]]
        shop.stack.drain(hurry=True)
        assert [json.loads(request.body)["data"]["id"] for request in receiver.received] == [after["id"]]
        assert before["id"] != after["id"]


def test_a_registration_between_the_look_and_the_commit_is_seen(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    wired, store = services(), process()
    asked = DynamoStore.get

    def get(self: DynamoStore, kind: type[Any], /, **key: str) -> Any:
        found = asked(self, kind, **key)
        if self is store and kind is Tally:
            wired.webhooks.register(SHOP, URL, ["*"])
        return found

    monkeypatch.setattr(DynamoStore, "get", get)
    store.commit([Open(WORK), *news(HINT).emit()])
    assert len(rows()) == 1 and len(events()) == 2
    assert {work.kind for work in store.every_work()} == {"deposit", "outbox"}
    store.commit([Close(WORK), *news().emit()])
    assert len(rows()) == 2, "it remembers that somebody listens"


def test_the_last_endpoint_gone_nobody_listens_again(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    wired, now = services(), [1000.0]
    monkeypatch.setattr(unheard.time, "monotonic", lambda: now[0])
    endpoint = wired.webhooks.register(SHOP, URL, ["*"]).endpoint
    store = process()
    store.commit([*news().emit()])
    wired.webhooks.delete(SHOP, endpoint.id)
    store.commit([*news().emit()])
    assert len(rows()) == 2, "it may not know yet"
    now[0] += unheard.LISTENS_SECONDS
    store.commit([*news().emit()])
    assert (len(rows()), len(events())) == (2, 6)


def refusing(monkeypatch: pytest.MonkeyPatch, reason: Callable[[dict[str, Any]], str]) -> list[int]:
    """The next transaction with a condition on the count is refused for `reason` of each item; how many items each one has."""
    sent: list[int] = []
    real = BaseClient._make_api_call

    def call(self: BaseClient, operation: str, arguments: dict[str, Any]) -> Any:
        if operation == "TransactWriteItems":
            sent.append(len(arguments["TransactItems"]))
            if len(sent) == 1:
                error: Any = {"Error": {"Code": "TransactionCanceledException", "Message": "x"}}
                error["CancellationReasons"] = [{"Code": reason(item)} for item in arguments["TransactItems"]]
                raise ClientError(error, operation)
        return real(self, operation, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return sent


def test_who_meets_at_the_count_goes_by_the_outbox(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = refusing(monkeypatch, lambda item: "TransactionConflict" if "ConditionCheck" in item else "None")
    store = process()
    store.commit([Open(WORK), *news().emit()])
    assert sent == [4, 4]
    assert len(rows()) == 1 and len(events()) == 2


@pytest.mark.parametrize("one_item", [False, True])
def test_many_events_go_by_the_outbox_in_one_row(aws: LocalAws, one_item: bool) -> None:
    """And say nothing of who listens: the next few are stored directly again. The relay stores the same."""
    store, relayed = process(), services().relay
    few, many = news(events=unheard.FEW_EVENTS), news(events=unheard.FEW_EVENTS + 1)
    with accounted() as account:
        for told in (few, many, few_again := news(events=1)):
            store.commit([replace(change, row=as_one_item(change.row)) if one_item else change for change in told.emit()])
    assert account.calls["dynamodb:GetItem"] == 1 and few_again is not None
    (row,) = rows()
    assert (len(row.events), row.apart, len(events())) == (unheard.FEW_EVENTS + 1, None, unheard.FEW_EVENTS + 1)
    assert all(event.data for event in row.events)
    assert relayed.tell(row.id) and rows() == []
    assert sorted(sequence for _, _, sequence, _ in events()) == sorted([*range(1, 9), *range(1, 10), 1])


def test_too_many_items_say_nothing_of_who_listens(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a transaction goes by the outbox, and the next one asks nobody again."""
    monkeypatch.setattr(unheard, "MOST_DIRECT", 0)
    store = process()
    with accounted() as account:
        for _ in range(2):
            store.commit(news().emit())
    assert len(rows()) == 2
    assert account.calls["dynamodb:GetItem"] == 1


def test_who_meets_elsewhere_tries_the_same_again(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = refusing(monkeypatch, lambda item: "None" if "ConditionCheck" in item else "TransactionConflict")
    process().commit([Open(WORK), *news().emit()])
    assert sent == [4, 4]
    assert rows() == [] and len(events()) == 2


def test_another_condition_counts_before_that_one(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens: the change itself does not fit, and is decided again."""
    store = process()
    store.commit([Open(WORK)])
    refusing(monkeypatch, lambda item: "None" if "EventRecord" in str(item) else "ConditionalCheckFailed")
    with pytest.raises(Conflict) as caught:
        store.commit([Open(WORK), *news().emit()])
    assert caught.value.change == Open(WORK)
    assert rows() == [] and events() == []


def test_an_altered_count_keeps_no_payment_up(aws: LocalAws) -> None:
    def altered(_: object) -> Tally:
        raise LookupError

    (emit,) = news().emit()
    assert unheard.Listeners(altered).direct([emit]) is None
