"""A test event for one endpoint, whatever it subscribes to. It goes the way of all others."""

from __future__ import annotations

from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.times import iso
from chalicelib.domain.webhooks.deliveries import delivery_for, delivery_work
from chalicelib.domain.webhooks.endpoints import TEST_EVENT, event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.queues import Queues
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.endpoints import endpoint_and_turn, wake
from chalicelib.usecases.webhooks.making import Sent, check_enabled, turning_on


class EventTests:
    """`realm_clock` is the time that events bear."""

    def __init__(self, store: Store, queues: Queues, clock: Clock, realm_clock: Clock) -> None:
        self._store, self._queues = store, queues
        self._clock, self._realm_clock = clock, realm_clock

    def creating(self, tenant: TenantId, id: str) -> Creation[Sent]:
        """Prepare to send the endpoint a `webhook.test` event, the way that all others take; it bears its realm's time, as they do.

        A try raises NotFound, BusinessRule.
        """

        def prepare() -> Prepared[Sent]:
            endpoint, turn = endpoint_and_turn(self._store, tenant, id)
            check_enabled(endpoint)
            if endpoint.paused:
                raise BusinessRule("id", f"this webhook is paused: let it go on first, {turning_on(endpoint)}")
            now, at = self._clock.now_ms(), self._realm_clock.now_ms()
            event_id = new_id("evt", at)
            event = event_record(Event(event_id, tenant, TEST_EVENT, event_id, 1, at, {"webhookId": id}), iso(at), now)
            delivery = delivery_for(event, endpoint, now)
            return Prepared(Sent(delivery, endpoint, turn), [Save(event), Save(delivery), Open(delivery_work(delivery))])

        return Creation(self._store, prepare, lambda sent: wake(self._queues, sent.endpoint))
