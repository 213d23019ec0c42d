"""An invoice whose credited payments complete it waits for no clock: the work of its expiry is closed with the last of them.

It is marked as expired then, as the clock would mark it. Should a payment fall out of the chain before the invoice's time is over,
the mark is taken back and the work opened again, in the transaction that takes the payment back. A version without this leaves the
mark: then the invoice shows as expired until the payment is in a block again, and is completed by it all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.usecases.base.open_work import is_open
from chalicelib.usecases.invoices.invoices import expiry_work
from chalicelib.usecases.ports.changes import Change, Close, Open
from chalicelib.usecases.ports.store import Store


def ended_early(before: Invoice, after: Invoice) -> tuple[Invoice, list[Change]]:
    """`after`, and the change that closes its expiry, where what is credited completes it; the same and none where the clock still
    has to come: it came already, or a payment that is not credited yet counts too."""
    waits = not before.expired and not after.expired and not after.cancelled and after.manual_status is None
    if not waits or after.status != "completed" or after.settled_status(without=after.counted("unconfirmed")) != "completed":
        return after, []
    return replace(after, expired=True), [Close(expiry_work(before))]


def open_again(store: Store, before: Invoice, now_ms: int, orphaned: Callable[[Invoice], Invoice]) -> tuple[Invoice, list[Change]]:
    """`before` as `orphaned` makes it, which takes a payment back; and the change that opens its expiry again, where that was
    closed early and its time is not over. One read for such an invoice. Raises Unavailable."""
    early = before.expired and before.status == "completed" and before.manual_status is None and now_ms < before.expires_at
    # Its work may be open still where it was a late payment that ended it.
    if not early or is_open(store, expiry_work(before)):
        return orphaned(before), []
    after = orphaned(replace(before, expired=False))
    if after.status == "completed":  # by its other payments
        return replace(after, expired=True), []
    return after, [Open(expiry_work(after))]
