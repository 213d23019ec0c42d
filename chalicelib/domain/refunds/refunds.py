"""Refunds and payout links: money of a merchant that is reserved for somebody, and their states.

A refund has an address from the start, or a claim link that takes one; a payout link is a claim link without an invoice. Once the
address is known, the reservation becomes an ordinary withdrawal, and from then on the withdrawal alone says how far it is: what
both have in common (`Terms`) is stored with it. So a withdrawal and its refund can not disagree, whatever dies in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.refunds.status import StoredStatus
from chalicelib.domain.webhooks.hooks import InvoiceHook
from chalicelib.domain.work import Work, time_order

Mode = Literal["same", "fiat"]
MODES: tuple[Mode, ...] = ("same", "fiat")
DEFAULT_EXPIRY = 7 * 86_400
"""Seconds in which a link can be claimed, unless its merchant says otherwise."""
MOST_OF_AN_INVOICE = 100
"""Refunds that one invoice may have, whatever became of them."""
ORDERING_MS = 15_000
"""How long the request that made a refund with an address is left alone with it."""
_SEPARATOR = "|"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a refund or a payout link is for. It never changes.

    `amount` is reserved, in units of `asset`; `fiat_amount` (plain decimal) the price in `fiat` that it was made from. `text` is
    the merchant's word to who is paid. Times in milliseconds since 1970; no `expires_at` where the address came with the request.
    `hook` is its invoice's own webhook, which is told of it too. `sent_by` says how the merchant sends the claim link; its payer
    reads it on the invoice's page.
    """

    network: NetworkId
    asset: AssetId
    amount: int
    created_at: int
    invoice_id: str | None = None
    mode: Mode | None = None
    fiat: str | None = None
    fiat_amount: str | None = None
    text: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    expires_at: int | None = None
    hook: InvoiceHook | None = None
    sent_by: str | None = None


@dataclass(frozen=True, slots=True)
class Refund:
    """A refund of an invoice. `counted`: its worth in cents of a US dollar, where it counts towards the merchant's daily limit.

    `withdrawal_id` names the withdrawal that pays it, from the moment when the address is known. `token` is the hash of its link.
    """

    tenant: TenantId
    id: str
    terms: Terms
    status: StoredStatus
    address: str | None = None
    withdrawal_id: str | None = None
    failure: str | None = None
    counted: int | None = None
    token: str | None = None
    emitted: int = 1
    version: int = 1

    @property
    def reserves(self) -> bool:
        """Whether its amount is frozen by itself: before its withdrawal has taken the reservation over."""
        return self.status in ("awaiting_claim", "ordered")


@dataclass(frozen=True, slots=True)
class PayoutLink(Refund):
    """A claim link without an invoice."""


@dataclass(frozen=True, slots=True)
class Repays:
    """What a withdrawal pays: the refund or payout link `id`, with its terms. `told` counts the events about it."""

    id: str
    terms: Terms
    told: int


@dataclass(frozen=True, slots=True)
class InvoiceRefunds:
    """The refunds of one invoice, by their ids, oldest first. Every new one rests on its version: two at once can not both take
    what is left."""

    tenant: TenantId
    invoice_id: str
    ids: tuple[str, ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True)
class ClaimLink:
    """Finds the refund or payout link of a token, by the token's hash."""

    hash: str
    tenant: TenantId
    refund_id: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class RefundsSpent:
    """Refunds and payout links of one merchant in a day, as a window (`domain.withdrawals.limits`) of cents of a US dollar."""

    tenant: TenantId
    day: tuple[tuple[int, int], ...] = ()
    version: int = 0


def event_family(refund_id: str) -> str:
    """The first part of the names of a record's events."""
    return "payout_link" if refund_id.startswith("pol_") else "refund"


def kind_of(refund_id: str) -> type[Refund]:
    """The type of the record with that id."""
    return PayoutLink if refund_id.startswith("pol_") else Refund


def refund_work(refund: Refund) -> Work:
    """The obligation that an open one has: to order its withdrawal, or to expire in time. In the lane of its network."""
    at = refund.terms.created_at + ORDERING_MS if refund.terms.expires_at is None else refund.terms.expires_at
    return Work("refund", refund.terms.network, time_order(at), f"{refund.tenant}{_SEPARATOR}{refund.id}")


def refund_key(work: Work) -> tuple[type[Refund], dict[str, str]]:
    """The key of the record that an obligation is about."""
    tenant, refund_id = work.id.split(_SEPARATOR)
    return kind_of(refund_id), {"tenant": tenant, "id": refund_id}
