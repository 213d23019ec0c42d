"""What a merchant received of a coin per day, as answers show it."""

from __future__ import annotations

from typing import Any

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.deposits.received import DAY_MS, Day, decoded
from chalicelib.domain.ledger import Balance
from chalicelib.domain.money import format_units
from chalicelib.domain.times import iso
from chalicelib.usecases.base.views import Views


def received(balance: Balance, coin: Coin, views: Views, now_ms: int, days: int) -> dict[str, Any]:
    """The figures of the last `days` days, the last of which is that of `now_ms` (milliseconds since 1970)."""
    if balance.received is None:
        return {"since": None, "days": []}
    kept, today = decoded(balance.received), now_ms // DAY_MS
    shown = [_shown(number, day, coin, views) for number, day in kept.by_day() if today - days < number <= today and day.units]
    return {"since": iso(kept.since), "days": shown}


def _shown(number: int, day: Day, coin: Coin, views: Views) -> dict[str, Any]:
    worth = day.cents / 100 if day.cents else views.usd(coin, day.units)
    return {"day": iso(number * DAY_MS)[:10], "amount": format_units(day.units, coin.decimals), "amountUSD": worth}
