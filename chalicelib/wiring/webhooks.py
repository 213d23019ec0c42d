"""Webhooks: endpoints, and the delivery of events to them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chalicelib.usecases.ports.secrets import Sealer
    from chalicelib.usecases.webhooks.delivery_lookup import DeliveryReads
    from chalicelib.usecases.webhooks.due_sweep import DueSweep
    from chalicelib.usecases.webhooks.endpoints import Webhooks
    from chalicelib.usecases.webhooks.hooks import InvoiceHooks
    from chalicelib.usecases.webhooks.leases import Leases
    from chalicelib.usecases.webhooks.redelivery import Redelivery
    from chalicelib.usecases.webhooks.redelivery_run import RedeliveryRun
    from chalicelib.usecases.webhooks.relay import Relay
    from chalicelib.usecases.webhooks.test_event import EventTests
    from chalicelib.wiring.parts import Parts


class WebhookWiring:
    """Everything here runs on the machine's clock, in both realms."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @cached_property
    def webhooks(self) -> Webhooks:
        from chalicelib.usecases.webhooks.endpoints import Webhooks

        parts = self._parts
        return Webhooks(parts.store, parts.queues, parts.clock, self._sealer, allow_private=parts.settings.webhooks_private)

    @cached_property
    def invoice_hooks(self) -> InvoiceHooks:
        from chalicelib.usecases.webhooks.hooks import InvoiceHooks

        return InvoiceHooks(self._parts.clock, self._sealer, self.webhooks)

    @cached_property
    def _sealer(self) -> Sealer:
        from chalicelib.delivery.secrets import KmsSealer

        return KmsSealer(lambda: self._parts.client("kms"), self._parts.settings)

    @cached_property
    def delivery_reads(self) -> DeliveryReads:
        from chalicelib.usecases.webhooks.delivery_lookup import DeliveryReads

        return DeliveryReads(self._parts.store)

    @cached_property
    def test_events(self) -> EventTests:
        from chalicelib.usecases.webhooks.test_event import EventTests

        return EventTests(self._parts.store, self._parts.queues, self._parts.clock, self._parts.realm_clock)

    @cached_property
    def redelivery(self) -> Redelivery:
        from chalicelib.usecases.webhooks.redelivery import Redelivery

        return Redelivery(self._parts.store, self._parts.queues, self._parts.clock, self._parts.realm_clock)

    @cached_property
    def relay(self) -> Relay:
        from chalicelib.usecases.webhooks.relay import Relay

        parts = self._parts
        return Relay(parts.store, parts.queues, parts.clock, lookouts=parts.settings.lookouts)

    @cached_property
    def leases(self) -> Leases:
        from chalicelib.delivery.safe_http import SafeHttpSender
        from chalicelib.delivery.secrets import KmsOpener
        from chalicelib.usecases.webhooks.delivery_attempts import Deliveries
        from chalicelib.usecases.webhooks.leases import Leases
        from chalicelib.usecases.webhooks.notices import Notices

        parts = self._parts
        sender = SafeHttpSender(allow_private=parts.settings.webhooks_private)
        opener = KmsOpener(lambda: parts.client("kms"), parts.settings)
        deliveries = Deliveries(parts.store, parts.clock, sender, parts.queues, notices=Notices(parts.clock_of))
        return Leases(parts.store, parts.queues, parts.clock, deliveries, opener)

    @cached_property
    def redelivery_run(self) -> RedeliveryRun:
        from chalicelib.usecases.webhooks.redelivery_run import RedeliveryRun

        return RedeliveryRun(self._parts.store, self._parts.queues, self._parts.clock)

    @cached_property
    def delivery_sweep(self) -> DueSweep:
        from chalicelib.usecases.webhooks.due_sweep import DueSweep
        from chalicelib.usecases.webhooks.leases import in_threads

        return DueSweep(self._parts.store, self._parts.queues, self._parts.clock, in_threads)
