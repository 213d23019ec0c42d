"""Invoices: a request to be paid, and the rule that gives its status from what the chain has shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId

AutomaticStatus = Literal["pending", "partial", "confirming", "completed", "expired", "cancelled"]


@dataclass(frozen=True, slots=True)
class Invoice:
    """Amounts in units of `asset`, times in milliseconds since 1970.

    `unconfirmed` and `confirmed` are payments that came in time, `late` and `late_unconfirmed` those after expiry.
    `expired` is set once, when the time passes unpaid. `manual_status` is an override by hand: automatic transitions stop.
    """

    id: str
    tenant: TenantId
    network: NetworkId
    asset: AssetId
    address: str
    address_id: str
    amount: int
    created_at: int
    expires_at: int
    status: str = "pending"
    external_id: str | None = None
    description: str | None = None
    redirect_url: str | None = None
    unconfirmed: int = 0
    confirmed: int = 0
    late: int = 0
    late_unconfirmed: int = 0
    expired: bool = False
    cancelled: bool = False
    manual_status: str | None = None
    manual_by: str | None = None
    manual_at: int | None = None
    emitted: int = 0
    version: int = 1

    @property
    def received(self) -> int:
        """Everything that has been credited for it, in time or late, in units."""
        return self.confirmed + self.late

    @property
    def overpaid(self) -> int:
        return max(0, self.confirmed - self.amount)

    def settled_status(self) -> str:
        """The status that the payments give now. Enough money in time beats expiry and cancellation; a manual status beats all."""
        if self.manual_status is not None:
            return self.manual_status
        if self.confirmed >= self.amount:
            return "completed"
        if self.confirmed + self.unconfirmed >= self.amount:
            return "confirming"
        if self.cancelled:
            return "cancelled"
        if self.expired:
            return "expired"
        return "partial" if self.confirmed + self.unconfirmed > 0 else "pending"

    def settled(self) -> Invoice:
        """This invoice with the status its payments give."""
        return replace(self, status=self.settled_status())

    @property
    def final(self) -> bool:
        """Nothing more is awaited: it does not count as pending."""
        return self.status in ("completed", "expired", "cancelled") or self.manual_status is not None


@dataclass(frozen=True, slots=True)
class ExternalId:
    """Makes a merchant's own id of an invoice unique, and finds the invoice by it."""

    tenant: TenantId
    value: str
    invoice_id: str
    version: int = 1
