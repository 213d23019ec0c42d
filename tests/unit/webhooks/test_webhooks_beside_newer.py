"""Webhooks beside a record in a form that only a newer version knows: the others are sent, and that one is left as it is."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from chalicelib.domain.webhooks.deliveries import Delivery, line_of
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.domain.webhooks.redelivery import RedeliveryJob
from chalicelib.domain.work import Work, held_order
from chalicelib.usecases.webhooks import due_deliveries
from chalicelib.usecases.webhooks.due_deliveries import DueReads
from chalicelib.usecases.webhooks.due_messages import DueMessages
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
