"""An invoice's own webhook: an endpoint that is told of that invoice and of its refunds alone.

Whose record carries one has it in its events' outbox rows, so that the relay looks nothing up for anybody else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PREFIX = "whi"
"""The beginning of such an endpoint's id: it lies apart from those that merchants register, and is in no list of theirs."""


@dataclass(frozen=True, slots=True)
class InvoiceHook:
    """`id` names the endpoint, `secret` is sealed for it. `created_at` in milliseconds since 1970."""

    id: str
    url: str
    secret: str = field(repr=False)
    created_at: int

    @property
    def shown_url(self) -> str:
        """The URL for records that other receivers get as well: without its query, which often holds a token."""
        return self.url.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Hooked:
    """The webhook that is told of the events of one object."""

    object_id: str
    hook: InvoiceHook


def is_hook(endpoint_id: str) -> bool:
    """Whether the endpoint of that id is an invoice's own."""
    return endpoint_id.startswith(f"{PREFIX}_")
