"""Refunds and payout links with the withdrawals that pay them, and what is refunded of an invoice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.refunds.fractions import covered, credited_of
from chalicelib.domain.refunds.refunds import InvoiceRefunds, Refund, Terms, kind_of
from chalicelib.domain.refunds.status import GIVEN_BACK, status_of
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.open_work import is_open
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import settled_work


@dataclass(frozen=True, slots=True)
class Shown:
    """A refund or a payout link, and the withdrawal that pays it, None before there is one."""

    refund: Refund
    withdrawal: Withdrawal | None = None

    @property
    def status(self) -> str:
        return status_of(self.refund.status, None if self.withdrawal is None else self.withdrawal.status)


def found(store: Store, tenant: TenantId, refund_id: str, kind: type[Refund]) -> Shown:
    """Raises NotFound, also for another merchant's."""
    refund = store.get(kind, tenant=tenant, id=refund_id) if kind_of(refund_id) is kind else None
    if refund is None:
        raise NotFound(f"There is no {refund_id[:80]}", {"id": refund_id[:80]})
    return with_withdrawals(store, [refund])[0]


def with_withdrawals(store: Store, refunds: Sequence[Refund]) -> list[Shown]:
    """Each with its withdrawal, in one read. Raises TooNew for one in a form that only a newer version knows: whether it is
    paid decides how much may still be given back."""
    wanted = _paying(refunds)
    paid = dict(zip(wanted, store.get_many(list(wanted.values())) if wanted else [], strict=True))
    return [Shown(refund, paid.get(refund.id)) for refund in refunds]


def listed(store: Store, refunds: Sequence[Refund]) -> list[Shown]:
    """The same for a list: one whose withdrawal has such a form is there without it. Left out, it might be paid once more."""
    wanted = _paying(refunds)
    paid = dict(zip(wanted, known_of(store, list(wanted.values())) if wanted else [], strict=True))
    return [Shown(refund, paid.get(refund.id)) for refund in refunds]


def of_invoice(store: Store, tenant: TenantId, invoice_id: str) -> list[Shown]:
    """The invoice's refunds, oldest first, as `listed`. Raises NotFound, also for another merchant's invoice."""
    _, row = _invoice(store, tenant, invoice_id)
    return listed(store, known_refunds(store, tenant, row.ids))


def known_refunds(store: Store, tenant: TenantId, ids: Sequence[str]) -> list[Refund]:
    """The refunds with these ids, without those in a form that only a newer version knows."""
    found = known_of(store, _keys(tenant, ids)) if ids else []
    return [refund for refund in found if refund is not None]


def _paying(refunds: Sequence[Refund]) -> dict[str, tuple[type[Any], dict[str, str]]]:
    """The key of the withdrawal that pays each refund, by the refund's id."""
    return {
        refund.id: (Withdrawal, {"tenant": refund.tenant, "id": refund.withdrawal_id})
        for refund in refunds
        if refund.status == "claimed" and refund.withdrawal_id is not None
    }


def _keys(tenant: TenantId, ids: Sequence[str]) -> list[tuple[type[Any], dict[str, str]]]:
    return [(kind_of(name), {"tenant": tenant, "id": name}) for name in ids]


def _invoice(store: Store, tenant: TenantId, invoice_id: str) -> tuple[Invoice, InvoiceRefunds]:
    invoice, row = store.get_many(
        [(Invoice, {"tenant": tenant, "id": invoice_id}), (InvoiceRefunds, {"tenant": tenant, "invoice_id": invoice_id})]
    )
    if invoice is None:
        raise NotFound(f"No invoice {invoice_id[:80]}", {"id": invoice_id[:80]})
    return invoice, row or InvoiceRefunds(tenant, invoice_id)


@dataclass(frozen=True, slots=True)
class Refunded:
    """An invoice, the row that new refunds of it rest on, and its refunds, oldest first."""

    invoice: Invoice
    row: InvoiceRefunds
    refunds: tuple[Shown, ...]
    taking: tuple[Terms, ...]
    """The terms of those that take a part of what is credited."""


def refunded(store: Store, tenant: TenantId, invoice_id: str) -> Refunded:
    """Raises NotFound, also for another merchant's invoice."""
    invoice, row = _invoice(store, tenant, invoice_id)
    records = store.get_many(_keys(tenant, row.ids)) if row.ids else []
    shown = with_withdrawals(store, [record for record in records if record is not None])
    return Refunded(invoice, row, tuple(shown), tuple(each.refund.terms for each in shown if _takes(store, each)))


def is_covered(store: Store, refund: Refund) -> bool:
    """Whether the payments that `refund` gives back are still in the chain, as far as it and its invoice's other refunds need them.
    Nothing is read for a payout link. Raises NotFound, Unavailable."""
    if refund.terms.invoice_id is None:
        return True
    known = refunded(store, refund.tenant, refund.terms.invoice_id)
    return covered(credited_of(known.invoice), known.taking)


def _takes(store: Store, shown: Shown) -> bool:
    """Whether it takes a part of its invoice. A payout that failed in a block takes it until no reorganisation can undo that: its
    bytes would be sent again."""
    if shown.status not in GIVEN_BACK:
        return True
    withdrawal = shown.withdrawal
    if withdrawal is None or withdrawal.status != "failed" or withdrawal.block_number is None:
        return False
    return is_open(store, settled_work(withdrawal, withdrawal.block_number, withdrawal.block_hash or ""))
