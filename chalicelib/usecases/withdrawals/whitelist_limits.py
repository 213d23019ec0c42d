"""The whitelist's part in the rules of withdrawals: who may be paid at all, and the limits of each trusted address.

What was withdrawn to an address before counts towards its limits, also after they were changed, as long as it had limits then.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.errors import BusinessRule, DailyLimitExceeded
from chalicelib.domain.ids import network_parts
from chalicelib.domain.money import format_units
from chalicelib.domain.withdrawals.limits import DAY_MS, MONTH_MS, used, window_of
from chalicelib.domain.withdrawals.whitelist import limit_of
from chalicelib.usecases.withdrawals.facts import Facts, Output, Reserved


class NotWhitelisted(BusinessRule):
    """The merchant pays to addresses of its whitelist alone, and this is none."""


def check_whitelist(coin: Coin, facts: Facts, outputs: Sequence[Output], now: int, reserved: Reserved) -> None:
    """Raises NotWhitelisted, DailyLimitExceeded, and BusinessRule for a limit of 30 days. `now` in milliseconds since 1970."""
    totals: dict[str, int] = {}
    for output in outputs:
        entry = facts.entries.get(output.to_address)
        if entry is None:
            if facts.settings.whitelist_enforced and not reserved.any_address:
                raise NotWhitelisted(output.address_field, f"is not on the whitelist for {network_parts(coin.network)[1]}")
            continue
        totals[entry.address] = totals.get(entry.address, 0) + output.amount
        window = window_of(facts.spent, facts.own.get(entry.address), entry.address)
        requested = totals[entry.address]
        daily, monthly = limit_of(entry.daily_limit, coin.decimals), limit_of(entry.monthly_limit, coin.decimals)
        if daily is not None:
            check_limit(coin, "daily limit of this whitelist address", daily, used(window, now, DAY_MS), requested)
        if monthly is not None:
            _check_month(coin, output, monthly, used(window, now, MONTH_MS), requested)


def check_limit(coin: Coin, name: str, limit: int, before: int, requested: int) -> None:
    """Raises DailyLimitExceeded where `requested` units are too many after `before`."""
    if before + requested > limit:
        amounts = {"limit": limit, "used": before, "requested": requested, "available": max(0, limit - before)}
        details = {what: format_units(units, coin.decimals) for what, units in amounts.items()}
        raise DailyLimitExceeded(f"This would exceed the {name}", details)


def _check_month(coin: Coin, output: Output, limit: int, before: int, requested: int) -> None:
    if before + requested > limit:
        most, so_far, left = (format_units(units, coin.decimals) for units in (limit, before, max(0, limit - before)))
        reason = f"is over the monthly limit of this whitelist address: {most} {coin.symbol} in 30 days"
        raise BusinessRule(output.amount_field, f"{reason}, {so_far} used, {left} available")
