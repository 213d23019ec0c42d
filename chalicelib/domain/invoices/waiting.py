"""Where a payer is expected to pay at any moment."""

from __future__ import annotations

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.invoices.choices import LOCKS_KEPT, Choice
from chalicelib.domain.invoices.invoices import OPEN, Invoice


def expected_since(invoice: Invoice) -> dict[NetworkId, int]:
    """The networks that an open invoice may be paid on, and since when: its creation, or the choice of a coin there. Milliseconds
    since 1970, by the clock of its realm. Empty for an invoice that waits for nothing."""
    if invoice.status not in OPEN:
        return {}
    if invoice.choosing is None:
        return {invoice.network: invoice.created_at}
    found: dict[NetworkId, int] = {}
    for choice in invoice.choosing.choices:
        since = _chosen_at(choice)
        if since is not None:
            found[choice.network] = max(since, found.get(choice.network, 0))
    return found


def _chosen_at(choice: Choice) -> int | None:
    """When somebody chose it; None where nobody did, or hours ago. Later locks are of payers who only look."""
    return choice.locks[0].since if 0 < len(choice.locks) < LOCKS_KEPT else None
