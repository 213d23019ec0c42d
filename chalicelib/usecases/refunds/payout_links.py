"""Payout links: claim links without an invoice, for payouts to people whose address is not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.refunds.refunds import DEFAULT_EXPIRY, PayoutLink, Terms
from chalicelib.usecases.base.creation import Creation
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.cancelling import Cancelling
from chalicelib.usecases.refunds.making import Made, Making, Wanted, new_link
from chalicelib.usecases.refunds.refund_reads import Shown, found, listed


@dataclass(frozen=True, slots=True)
class LinkWishes:
    """What is asked for beside the amount. `expires_in` in seconds."""

    description: str | None = None
    expires_in: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    gateway_url: str | None = None
    """The beginning of links where the deployment has no PUBLIC_URL."""


class PayoutLinks:
    def __init__(self, store: Store, clock: Clock, making: Making, cancelling: Cancelling, public_url: str | None = None) -> None:
        self._store, self._clock, self._making = store, clock, making
        self._cancelling, self._public_url = cancelling, public_url

    def creating(self, tenant: TenantId, coin: Coin, units: int, wishes: LinkWishes) -> Creation[Made]:
        """Freeze `units` of `coin`, and make a link for them. It or a try raises BusinessRule, DailyLimitExceeded,
        InsufficientBalance, Unavailable."""
        now = self._clock.now_ms()
        terms = Terms(
            network=coin.network,
            asset=coin.asset,
            amount=units,
            created_at=now,
            text=wishes.description,
            metadata=wishes.metadata,
            expires_at=now + (wishes.expires_in or DEFAULT_EXPIRY) * 1000,
        )
        wanted = Wanted(new_id("pol", now), tenant, coin, terms, new_link(self._public_url or wishes.gateway_url))
        return Creation(self._store, lambda: self._making.prepared(wanted))

    def get(self, tenant: TenantId, link_id: str) -> Shown:
        """Raises NotFound, also for another merchant's link."""
        return found(self._store, tenant, link_id, PayoutLink)

    def shown(self, links: list[PayoutLink]) -> list[Shown]:
        """Each with its withdrawal, in one read: as `refund_reads.listed`."""
        return listed(self._store, links)

    def cancel(self, tenant: TenantId, link_id: str) -> Shown:
        """Give its money back before it is paid. Raises NotFound, BusinessRule."""
        return self._cancelling.cancel(tenant, link_id, PayoutLink)
