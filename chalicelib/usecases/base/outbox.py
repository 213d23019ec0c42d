"""The outbox: events and commands that commit together with their change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.domain.ids import TenantId, new_id, next_id
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.webhooks.hooks import Hooked, InvoiceHook
from chalicelib.domain.work import Command, OutboxRow, outbox_id
from chalicelib.usecases.ports.changes import Emit


@dataclass
class News:
    """Collects the events and commands of one transaction. `at` in milliseconds since 1970."""

    at: int
    events: list[Event] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    hooks: list[Hooked] = field(default_factory=list)

    def tell(
        self,
        tenant: TenantId,
        name: str,
        object_id: str,
        sequence: int,
        data: Mapping[str, Any],
        previous: str | None = None,
        hook: InvoiceHook | None = None,
    ) -> None:
        """Add an event. `previous` is the object's status before, where it has changed; `hook` the invoice's own webhook."""
        told = data if previous is None else {**data, "previous_status": previous}
        # Lists are in the order of ids: what is told of one change stays in its order.
        id = next_id(self.events[-1].id) if self.events else new_id("evt", self.at)
        self.events.append(Event(id, tenant, name, object_id, sequence, self.at, told))
        if hook is not None and Hooked(object_id, hook) not in self.hooks:
            self.hooks.append(Hooked(object_id, hook))

    def command(self, command: Command) -> None:
        """Send `command` too; once, however many ask for it: two payments to an address need one look at it."""
        if command not in self.commands:
            self.commands.append(command)

    def emit(self, prefix: str = "out") -> Sequence[Emit]:
        """The change that puts all of it in the outbox, under an id with this prefix; no change where there is nothing to tell."""
        if not self.events and not self.commands:
            return ()
        hooks = tuple(self.hooks) or None
        id = outbox_id(new_id(prefix, self.at), self.events)
        return (Emit(OutboxRow(id, self.at, tuple(self.events), tuple(self.commands), hooks)),)
