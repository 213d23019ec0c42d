"""Who is told of a merchant's events: its endpoints, read together with an outbox row. Touches work and webhooks, and the count of
a merchant's endpoints.

Which endpoints there are is remembered. That holds only while their count, which registering and removing one changes, is as it was
then; what they are is read each time. So nothing is missed that a query would find, for one call less. The message that names the
row is sent after its commit: all of this is read when the row's events are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.domain.ids import TenantId
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.domain.work import OutboxRow, is_one_item
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.webhooks.endpoints import endpoints_of

REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Read:
    """An outbox row, None where it is gone, and its merchant's endpoints as they were stored after it; None where they have to be
    read."""

    row: OutboxRow | None
    endpoints: list[WebhookEndpoint] | None = None


class Listeners:
    """What it remembers is of one process. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[TenantId, tuple[Tally, tuple[str, ...]]] = {}

    def with_row(self, outbox_id: str, tenant: TenantId | None) -> Read:
        """A row, and the endpoints of `tenant`, who is said to be its merchant, where the row's events are stored. Raises
        Unavailable, and TooNew where an endpoint has a form that only a newer version knows: whether the events are for it is not
        known, and a row that is told is told to nobody else. The row waits for that version."""
        if tenant is None or not is_one_item(outbox_id):
            return Read(self._store.get(OutboxRow, id=outbox_id))
        known, ids = self._known.get(tenant, (None, ()))
        wanted: list[tuple[type[Any], dict[str, str]]] = [
            (OutboxRow, {"id": outbox_id}),
            (Tally, {"tenant": tenant, "of": "webhooks"}),
            *((WebhookEndpoint, {"tenant": tenant, "id": id}) for id in ids),
        ]
        row, tally, *found = self._store.get_many(wanted)
        if row is None or not row.apart or row.tenant != tenant:
            return Read(row)
        if tally is None or tally != known or tally.count != len(found) or None in found:
            # Behind the count: where one is registered or removed in between, the count is another than is remembered.
            found = endpoints_of(self._store, tenant)
            self._remember(tenant, tally, found)
        return Read(row, found)

    def _remember(self, tenant: TenantId, tally: Tally | None, found: list[WebhookEndpoint]) -> None:
        if tally is None:
            return
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[tenant] = (tally, tuple(endpoint.id for endpoint in found))
