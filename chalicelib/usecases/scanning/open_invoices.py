"""The next open invoices of a network to compare, where no node traces what contracts send (`internal_transfers`).

Open invoices of all merchants lie in the order of their expiry. Fifty at a time, one merchant with a hundred thousand would keep
all other payments unseen for a day. So a poll looks at two parts:

- *the ring*: the next ones in order, so that each is looked at at last, however many one merchant has;
- *round robin*: of the next `ROWS`, by their rows alone, the first of each merchant, then the second of each, those of one in any
  order. It goes on behind all that it has read: a merchant's invoices beyond its share are left to the ring and to the next round.

Where the ring holds all invoices, the second part is empty.
"""

from __future__ import annotations

import random
from dataclasses import replace

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.scanning.internal_transfers import Reconciled
from chalicelib.domain.work import Work
from chalicelib.usecases.base.fairness import in_turn
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.invoices.invoices import work_key
from chalicelib.usecases.ports.store import Store

AT_ONCE = 50
"""Invoices of each part."""
ROWS = 4_000
"""Rows of open work that the second part reads at once: some 180 read units where there are so many, 26 polls for 100,000
invoices."""


def next_looks(store: Store, network: NetworkId, before: Reconciled) -> tuple[list[Invoice], Reconciled]:
    """The next open invoices, and the position behind them; `before` again where nothing changed."""
    ring = _behind(store, network, before.order, before.id, AT_ONCE)
    order, id = _place(ring, AT_ONCE)
    after = replace(before, order=order, id=id)
    chosen = ring
    if before.order or order:  # else the ring is all there is
        rows = _behind(store, network, before.turn_order, before.turn_id, ROWS)
        turn_order, turn_id = _place(rows, ROWS)
        after = replace(after, turn_order=turn_order, turn_id=turn_id)
        random.shuffle(rows)
        chosen = list(dict.fromkeys([*ring, *in_turn(rows, lambda work: work_key(work)[1]["tenant"])[:AT_ONCE]]))
    found: list[Invoice | None] = known_of(store, [work_key(work) for work in chosen])
    return [invoice for invoice in found if invoice is not None], after


def _behind(store: Store, network: NetworkId, order: str, id: str, limit: int) -> list[Work]:
    return store.open_work("expiry", network, after=Work("expiry", network, order, id) if order else None, limit=limit)


def _place(rows: list[Work], limit: int) -> tuple[str, str]:
    """Where the next look begins behind `rows`: at the start where they were the last."""
    return (rows[-1].order, rows[-1].id) if len(rows) == limit else ("", "")
