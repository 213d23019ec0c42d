"""The daily limit of refunds and payout links, for merchants who pay to addresses of their whitelist alone.

A refund goes where its customer says, so the whitelist can not hold for it. Instead the merchant's signers allow an amount in US
dollars for each 24 hours (`refundDailyLimitUSD`); without it nothing is refunded while the whitelist is enforced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.catalogue.rates import Rates
from chalicelib.domain.errors import BusinessRule, DailyLimitExceeded
from chalicelib.domain.merchants.settings import MerchantSettings
from chalicelib.domain.refunds.fractions import cents_text
from chalicelib.domain.refunds.refunds import RefundsSpent
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.limits import DAY_MS, booked, used
from chalicelib.usecases.ports.changes import Change, Save

FIELD = "refundDailyLimitUSD"


@dataclass(frozen=True, slots=True)
class Counted:
    """`cents` that count towards the limit, None where there is none; the changes that count them."""

    cents: int | None = None
    changes: tuple[Change, ...] = ()


def counted(settings: MerchantSettings, spent: RefundsSpent | None, coin: Coin, units: int, rates: Rates, now: int) -> Counted:
    """Count `units` of `coin` at `now`. Raises BusinessRule where refunds are not allowed or no fresh rate is known, and
    DailyLimitExceeded."""
    if not settings.whitelist_enforced:
        return Counted()
    if settings.refund_daily_limit_usd == "0":
        raise BusinessRule(FIELD, f"whitelist_enforced is on, and {FIELD} of the merchant's settings is 0: set it to refund")
    rate = rates.fresh(coin.slug, now)
    if rate is None:
        raise BusinessRule(FIELD, f"there is no fresh rate of {coin.slug} in USD now, and the daily limit of refunds is in USD")
    cents = ceil(Fraction(rate.decimal) * units * 100 / 10**coin.decimals)
    before = spent or RefundsSpent(settings.tenant)
    already, most = used(before.day, now, DAY_MS), int(Decimal(settings.refund_daily_limit_usd) * 100)
    if already + cents > most:
        details = {
            "limit": cents_text(most),
            "used": cents_text(already),
            "requested": cents_text(cents),
            "available": cents_text(most - already),
        }
        raise DailyLimitExceeded(f"This would exceed {FIELD} of the merchant's settings", details)
    return Counted(cents, (Save(replace(next_version(before), day=booked(before.day, now, cents, DAY_MS))),))
