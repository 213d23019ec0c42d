"""A merchant's settings for new invoices."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.invoices.settings import InvoiceSettings
from chalicelib.domain.invoices.terms import Terms
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.store import Store

KEPT_SECONDS = 30.0
"""As long as the catalogue and the rates: making an invoice must not cost one more read each time."""
_MOST_KEPT = 2000


class InvoiceSettingsService:
    """Safe to share between threads."""

    def __init__(self, store: Store, default_expiry: int) -> None:
        """`default_expiry` in seconds: it counts where the merchant has set none."""
        self._store, self._default_expiry = store, default_expiry
        self._kept: dict[tuple[TenantId, NetworkId], tuple[float, InvoiceSettings, bool]] = {}
        self._changes = 0
        self._lock = threading.Lock()

    def get(self, tenant: TenantId) -> InvoiceSettings:
        """The settings, those of the deployment where the merchant has none. Raises Unavailable."""
        return self._whole(self._store.get(InvoiceSettings, tenant=tenant) or InvoiceSettings(tenant))

    def change(self, tenant: TenantId, terms: Mapping[str, Any] | None = None, **fields: Any) -> InvoiceSettings:
        """Replace the fields given, whole; the others stay, those of the `terms` too. Raises Conflict, Unavailable."""

        def decide() -> InvoiceSettings:
            before = self._store.get(InvoiceSettings, tenant=tenant) or InvoiceSettings(tenant)
            after = replace(next_version(before), **fields)
            if terms:
                after = replace(after, terms=replace(before.terms or Terms(), **terms))
            self._store.commit([Save(after)])
            return self._whole(after)

        changed = until_settled(decide)
        with self._lock:
            self._changes += 1
            self._kept.clear()
        return changed

    def for_new(self, tenant: TenantId, network: NetworkId) -> tuple[InvoiceSettings, bool]:
        """The settings of a new invoice on `network`, and whether crediting is halted there: one read, kept for 30 seconds. A
        change by this process counts at once. Raises Unavailable."""
        known, now = self._kept.get((tenant, network)), time.monotonic()
        if known is None or now - known[0] > KEPT_SECONDS:
            changes = self._changes
            stored, cursor = self._store.get_many([(InvoiceSettings, {"tenant": tenant}), (Cursor, {"network": network})])
            known = (now, self._whole(stored or InvoiceSettings(tenant)), cursor is not None and cursor.halted is not None)
            with self._lock:
                # Read before a change and come back after it: what was read counts for nobody else.
                if changes == self._changes:
                    if len(self._kept) >= _MOST_KEPT:
                        self._kept.clear()
                    self._kept[tenant, network] = known
        return known[1], known[2]

    def _whole(self, settings: InvoiceSettings) -> InvoiceSettings:
        if settings.default_expiration_time is not None:
            return settings
        return replace(settings, default_expiration_time=self._default_expiry)
