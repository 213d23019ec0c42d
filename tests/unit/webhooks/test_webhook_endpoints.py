"""Registering webhooks: what is refused, what is shown, and whose they are."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chalicelib.domain.errors import BusinessRule, InvalidParameter, NotFound
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import Attempt, delivery_for
from chalicelib.domain.webhooks.endpoints import secret_problem
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.usecases.base.creation import Prepared
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.webhooks.endpoints import Shown, Webhooks
from chalicelib.usecases.webhooks.events import event_view
from chalicelib.usecases.webhooks.notices import Notices
from chalicelib.usecases.webhooks.signing_secrets import opened
from chalicelib.usecases.webhooks.views import delivery_view, endpoint_view, noticed_view
from tests.support.memory_store import HandClock, MemoryQueues, MemoryStore
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, OTHER, SHOP, an_endpoint, an_event_record

URL = "https://shop.example/hook"
SEALS = PlainSeals()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def webhooks(store: MemoryStore) -> Webhooks:
    return Webhooks(store, MemoryQueues(), HandClock(NOW), SEALS)


def test_register_read_list_and_delete(webhooks: Webhooks) -> None:
    made = webhooks.register(SHOP, URL, ["invoice.completed", "*", "invoice.completed"])
    given = webhooks.register(SHOP, URL, ["balance.updated"], "0123456789abcdef")
    first, second = made.endpoint, given.endpoint
    assert secret_problem(made.secret) is None
    assert made.secret.startswith("whsec_")
    assert given.secret == "0123456789abcdef"
    assert opened(SEALS, first, NOW) == (made.secret,) and opened(SEALS, second, NOW) == (given.secret,)
    assert first.events == ("invoice.completed", "*")
    assert webhooks.get(SHOP, first.id) == first
    assert sorted(e.id for e in webhooks.list(SHOP)) == sorted([first.id, second.id])
    webhooks.delete(SHOP, first.id)
    assert webhooks.list(SHOP) == [second]
    with pytest.raises(NotFound):
        webhooks.get(SHOP, first.id)


def test_what_belongs_to_it_commits_with_it_or_it_is_not_made(webhooks: Webhooks, store: MemoryStore) -> None:
    other = an_endpoint("wh_also")
    first, second = (webhooks.registering(SHOP, URL, ["*"]) for _ in range(2))
    made = first.commit(first.prepare(), [Save(other)]).endpoint
    assert {e.id for e in webhooks.list(SHOP)} == {made.id, "wh_also"}
    with pytest.raises(Conflict):
        second.commit(second.prepare(), [Save(other)])
    assert {e.id for e in webhooks.list(SHOP)} == {made.id, "wh_also"}


def test_a_foreign_endpoint_is_not_there(webhooks: Webhooks) -> None:
    endpoint = webhooks.register(SHOP, URL, ["*"]).endpoint
    assert webhooks.list(OTHER) == []
    for act in (webhooks.get, webhooks.delete):
        with pytest.raises(NotFound) as foreign:
            act(OTHER, endpoint.id)
        with pytest.raises(NotFound) as missing:
            act(OTHER, "wh_never")
        assert str(foreign.value) == str(missing.value)
    assert webhooks.get(SHOP, endpoint.id) == endpoint


def test_everything_wrong_is_told_at_once_and_no_secret_repeated(webhooks: Webhooks, store: MemoryStore) -> None:
    with pytest.raises(InvalidParameter) as error:
        webhooks.register(SHOP, "http://me:hunter2@10.0.0.1:22/#x", ["invoice.paid"], "tiny-secret")
    assert [p.field for p in error.value.problems] == ["url", "events", "secret"]
    assert len(error.value.problems[0].constraints) == 5
    assert "tiny-secret" not in repr(error.value.details)
    assert "hunter2" not in repr(error.value.details)
    assert store.commits == 0


@pytest.mark.parametrize(
    "events", [None, "*", [], [1], [None], ["invoice.paid"], ["*", ["*"]], {"*": 1}, ["Invoice.completed"], ""]
)
def test_events_must_be_known_names(webhooks: Webhooks, events: object) -> None:
    with pytest.raises(InvalidParameter) as error:
        webhooks.register(SHOP, URL, events)
    assert [p.field for p in error.value.problems] == ["events"]
    assert "invoice.completed" in error.value.problems[0].constraints[0]


def test_private_urls_by_setting_only(store: MemoryStore) -> None:
    local = "http://127.0.0.1:4000/hook"
    with pytest.raises(InvalidParameter):
        Webhooks(store, MemoryQueues(), HandClock(), SEALS).register(SHOP, local, ["*"])
    private = Webhooks(store, MemoryQueues(), HandClock(), SEALS, allow_private=True)
    assert private.register(SHOP, local, ["*"]).endpoint.url == local


def test_twenty_and_no_more(webhooks: Webhooks) -> None:
    for _ in range(20):
        webhooks.register(SHOP, URL, ["*"])
    with pytest.raises(BusinessRule, match="at most 20"):
        webhooks.register(SHOP, URL, ["*"])
    webhooks.register(OTHER, URL, ["*"])
    webhooks.delete(SHOP, webhooks.list(SHOP)[0].id)
    webhooks.register(SHOP, URL, ["*"])
    assert len(webhooks.list(SHOP)) == 20


def test_two_that_register_at_once_do_not_get_past_twenty(store: MemoryStore, webhooks: Webhooks) -> None:
    for _ in range(19):
        webhooks.register(SHOP, URL, ["*"])

    class Raced(MemoryStore):
        """Another request registers between this one's count and its commit."""

        def commit(self, changes: object, /) -> None:
            raced.commit = super().commit  # type: ignore[method-assign]
            webhooks.register(SHOP, URL, ["balance.updated"])
            super().commit(changes)  # type: ignore[arg-type]

    raced = Raced()
    raced.records, raced.work = store.records, store.work
    prepared: list[Prepared[Shown]] = []
    registering = Webhooks(raced, MemoryQueues(), HandClock(NOW), SEALS).registering(SHOP, URL, ["invoice.created"])

    def attempt() -> Shown:
        prepared.append(registering.prepare())
        return registering.commit(prepared[-1])

    with pytest.raises(BusinessRule):
        until_settled(attempt, registering.tries)
    assert len(webhooks.list(SHOP)) == 20
    assert [e for e in webhooks.list(SHOP) if e.events == ("invoice.created",)] == []
    assert len(prepared) == 1, "what was prepared was never committed, and the second try found no room"


def test_views_show_what_is_published_and_no_secret() -> None:
    endpoint = an_endpoint("wh_1", events=("*",))
    assert endpoint_view(endpoint, NOW) == {
        "id": "wh_1", "url": endpoint.url, "events": ["*"], "status": "active", "enabled": True,
        "createdAt": "2026-01-02T03:04:05.006Z",
    }  # fmt: skip
    gone = endpoint_view(endpoint.disabled("it answered 410 Gone", NOW + 1), NOW)
    assert (gone["enabled"], gone["disabledReason"], gone["disabledAt"]) == (
        False,
        "it answered 410 Gone",
        "2026-01-02T03:04:05.007Z",
    )
    assert endpoint.secret not in json.dumps([endpoint_view(endpoint, NOW), gone])


def test_a_delivery_shows_its_attempts() -> None:
    record = an_event_record()
    delivery = delivery_for(record, an_endpoint("wh_1"), NOW)
    delivery = delivery.after(Attempt(NOW, None, 4000, error="no connection in time"), NOW + 4000, 0.0)
    delivery = delivery.after(Attempt(NOW + 9000, 503, 12, "busy"), NOW + 9012, 0.0)
    assert delivery_view(delivery) == {
        "id": delivery.id, "webhookId": "wh_1", "eventId": record.id, "event": record.name, "status": "pending",
        "attempts": [
            {
                "at": "2026-01-02T03:04:05.006Z", "durationMs": 4000, "error": "no connection in time",
                "nextAttemptAt": "2026-01-02T03:04:14.006Z",
            },
            {
                "at": "2026-01-02T03:04:14.006Z", "responseStatus": 503, "responseBody": "busy", "durationMs": 12,
                "nextAttemptAt": "2026-01-02T03:04:44.018Z",
            },
        ],
        "lastResponseStatus": 503,
        "nextAttemptAt": "2026-01-02T03:04:44.018Z", "createdAt": "2026-01-02T03:04:05.006Z",
    }  # fmt: skip
    assert event_view(record) == json.loads(record.body)
    held = delivery_view(delivery.put_aside())
    assert held["held"] is True and "nextAttemptAt" not in held
    assert delivery_view(replace(delivery, again_id="dlv_2"))["redeliveredAs"] == "dlv_2"


def test_an_endpoint_that_rests_shows_until_when() -> None:
    endpoint, turn = an_endpoint("wh_1"), Turn(SHOP, "wh_1", ttl=0, rests_until=NOW + 60_000)
    assert endpoint_view(endpoint, NOW, turn)["restsUntil"] == "2026-01-02T03:05:05.006Z"
    assert "restsUntil" not in endpoint_view(endpoint, NOW + 60_000, turn)
    assert "failures" not in endpoint_view(endpoint, NOW, turn)
    assert endpoint_view(endpoint, NOW, replace(turn, failures=3))["failures"] == 3
    assert "failures" not in endpoint_view(replace(endpoint, fresh_at=NOW), NOW, replace(turn, failures=3))
    assert "restsUntil" not in endpoint_view(replace(endpoint, fresh_at=NOW), NOW, turn), "it has another URL since"


def test_a_notice_does_not_show_the_query_of_the_url() -> None:
    endpoint = replace(an_endpoint("wh_1"), url="https://shop.example/hook?token=s3cret&x=1")
    assert noticed_view(endpoint, NOW) == {**endpoint_view(endpoint, NOW), "url": "https://shop.example/hook"}
    told = [Notices(lambda _: HandClock(NOW)).failing(endpoint, NOW, NOW)]
    told.append(Notices(lambda _: HandClock(NOW)).turned_off(endpoint, "it answered 410 Gone", NOW))
    assert [type(change).__name__ for changes in told for change in changes] == ["Save", "Emit"] * 2
    assert not [emit for _, emit in told if "s3cret" in repr(emit)]


def test_a_notice_bears_the_time_of_its_realm() -> None:
    ahead = {"live": HandClock(NOW), "test": HandClock(NOW + 86_400_000)}
    for tenant, day in (("mch_1:live", "02"), ("mch_1:test", "03")):
        endpoint = replace(an_endpoint("wh_1"), tenant=TenantId(tenant))
        _, emit = Notices(lambda realm: ahead[realm]).turned_off(endpoint, "it answered 410 Gone", NOW)
        (event,) = emit.row.events  # type: ignore[union-attr]
        assert iso(event.at).startswith(f"2026-01-{day}") and event.id > new_id("evt", event.at - 1)
        assert event.data["disabledAt"].startswith("2026-01-02"), "endpoints are on the machines' time"
        assert event.data["previous_status"] == "active"


def test_an_endpoint_that_fails_shows_since_when() -> None:
    failing = replace(an_endpoint("wh_1"), failing_since=NOW)
    assert endpoint_view(failing, NOW)["failingSince"] == "2026-01-02T03:04:05.006Z"
    assert "failingSince" not in endpoint_view(failing.disabled("by hand", NOW), NOW)
    assert endpoint_view(replace(failing, paused=True), NOW)["status"] == "paused"
