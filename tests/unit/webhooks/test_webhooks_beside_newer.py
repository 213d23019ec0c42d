"""Webhooks beside a record in a form that only a newer version knows: the others are sent, and that one is left as it is."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import MagicMock

import pytest

from chalicelib.domain.webhooks.deliveries import Delivery, delivery_for, delivery_work, line_of
from chalicelib.domain.webhooks.endpoints import EventRecord, WebhookEndpoint, event_record
from chalicelib.domain.webhooks.leases import Turn
from chalicelib.domain.webhooks.parcels import parcels_of
from chalicelib.domain.webhooks.redelivery import RedeliveryJob
from chalicelib.domain.work import Work, held_order
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.webhooks import due_deliveries
from chalicelib.usecases.webhooks.due_deliveries import DueReads
from chalicelib.usecases.webhooks.due_messages import DueMessages
from chalicelib.usecases.webhooks.recording import Recording
from chalicelib.usecases.webhooks.redelivery_run import RedeliveryRun
from tests.support.beside_newer import (
    ALL,
    NOW,
    TENANT,
    BesideNewer,
    a,
    case,
    payout_key,
    put,
)
from tests.support.webhooks import SHOP, an_endpoint, an_event


def test_endpoints_that_are_woken() -> None:
    store = BesideNewer()
    put(store, WebhookEndpoint, "active", payout_key)
    found = case(DueMessages, store).endpoints([f"{TENANT}|{id}" for id in ALL])
    assert [endpoint and endpoint.id for endpoint in found.values()] == ["one", None, "two"]


def test_redeliveries_that_stand_still() -> None:
    """None of those that can not be read is taken for gone."""
    store = BesideNewer()
    store.work(*[Work("redelivery", "0", str(place), f"{TENANT}|{id}") for place, id in enumerate(ALL)])
    put(store, RedeliveryJob, "running", payout_key, tenant=TENANT, touched_at=0)
    assert case(RedeliveryRun, store).sweep() == 2
    assert store.commits == []


def test_deliveries_that_waited_for_a_month(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that can not be read is neither ended nor forgotten."""
    endpoint = a(WebhookEndpoint, "active", tenant=TENANT, id="wh_1")
    store, line = BesideNewer(), line_of(TENANT, "wh_1")
    rows = {id: Work("delivery", line, held_order(place), f"{id}~0") for place, id in enumerate(ALL)}
    store.work(*rows.values())
    monkeypatch.setattr(due_deliveries, "delivery_key", lambda tenant, id: {"tenant": tenant, "id": id.partition("~")[0]})
    monkeypatch.setattr(due_deliveries, "delivery_work", lambda delivery: rows["one" if delivery.id == "one" else "newer"])
    put(store, Delivery, "pending", payout_key)
    reads, ended, forgotten = case(DueReads, store), list[str](), list[str]()
    reads._cancel = lambda _, delivery, why: ended.append(delivery.id)
    reads._forget = lambda _, row, delivery: forgotten.append(delivery.id)
    reads._outlived(MagicMock(), endpoint, NOW)
    assert (ended, forgotten) == (["one"], ["two"])


@pytest.mark.parametrize("packed", [False, True])
def test_the_batch_of_a_worker_that_died(packed: bool) -> None:
    """Of what a newer version has recorded meanwhile nothing is recorded again, and the rest of the line goes on."""
    store, at, endpoint = BesideNewer(), NOW, an_endpoint("wh_1")
    events = [event_record(an_event(f"evt_{id}"), "2026-01-02T03:04:05.006Z", at) for id in ALL]
    made = [delivery_for(event, endpoint, at) for event in events]
    for event, delivery in zip(events, made, strict=True):
        store.put(EventRecord, event, tenant=SHOP, id=event.id)
        if not packed:
            store.put(Delivery, delivery, tenant=SHOP, id=delivery.id)
    newer = made[1]
    store.put(Delivery, tenant=SHOP, id=newer.id)
    (parcel,) = parcels_of([(replace(delivery, version=0), f"inv_{id}") for id, delivery in zip(ALL, made, strict=True)])
    hand = (parcel.work.id,) if packed else tuple(delivery_work(delivery).id for delivery in made)
    recording, closed = case(Recording, store, deliveries=MagicMock()), list[Work]()
    recording._deliveries.interrupted = lambda delivery, _: MagicMock(delivery=delivery)
    recording._store.close = closed.append
    sent, known = recording.interrupted(replace(Turn(SHOP, "wh_1", ttl=0), hand=hand))
    others = {made[0].id, made[2].id}
    assert {one.delivery.id for one in sent} == {one.id for one in known} == others
    assert closed == ([parcel.work] if packed else [])
    if packed:
        store.put(EventRecord, tenant=SHOP, id=events[0].id)
        with pytest.raises(TooNew):
            recording.interrupted(replace(Turn(SHOP, "wh_1", ttl=0), hand=hand))
