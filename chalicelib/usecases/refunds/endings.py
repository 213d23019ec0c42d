"""The end of a refund or a payout link that no withdrawal pays yet: its money is available again, once.

The record's version and its open work are both conditions: of an expiry, a cancellation and a claim at once, one commits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ids import network_parts
from chalicelib.domain.ledger import Balance
from chalicelib.domain.money import Amount
from chalicelib.domain.refunds.refunds import Refund, RefundsSpent, event_family, refund_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.limits import DAY_MS, returned
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import views_now
from chalicelib.usecases.ports.changes import Change, Close, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import moved

GivenBack = Literal["failed", "expired", "cancelled"]
MOST_WORDS = 300


def give_back(
    store: Store,
    rates_of: RatesOf,
    before: Refund,
    status: Literal["failed", "expired", "cancelled"],
    now: int,
    why: str | None = None,
) -> Refund:
    """End `before`, which reserves its amount, at `now` (milliseconds since 1970). Raises Conflict, Unavailable."""
    terms = before.terms
    balance, spent = store.get_many(
        [(Balance, {"tenant": before.tenant, "asset": terms.asset}), (RefundsSpent, {"tenant": before.tenant})]
    )
    news = News(now)
    views = views_now(store.catalogue(network_parts(terms.network)[0]), rates_of, now)
    after = replace(
        next_version(before),
        status=status,
        failure=None if why is None else why[:MOST_WORDS],
        withdrawal_id=None,
        emitted=before.emitted + 1,
    )
    name = f"{event_family(after.id)}.{status}"
    news.tell(after.tenant, name, after.id, after.emitted, views.refund(after), hook=terms.hook)
    entry = ledger.refund_released(before.id, now, before.tenant, Amount(terms.asset, terms.amount))
    money = moved(store, news, views, balance or Balance(before.tenant, terms.asset), entry)
    changes: list[Change] = [Save(after), Close(refund_work(before)), *money, *_uncounted(before, spent, now)]
    store.commit([*changes, *news.emit()])
    return after


def _uncounted(refund: Refund, spent: RefundsSpent | None, now: int) -> list[Change]:
    """The change after which it counts towards no daily limit."""
    if not refund.counted or spent is None or refund.terms.created_at <= now - DAY_MS:
        return []
    return [Save(replace(next_version(spent), day=returned(spent.day, refund.terms.created_at, refund.counted)))]
