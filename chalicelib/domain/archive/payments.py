"""A payment that may go to the archive: an invoice that is final, with its deposits, their postings, and its addresses; or a
deposit that has no invoice, with its postings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ids import Realm, TenantId, derived_id, first_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import JournalEntry, WalletBalance

DAY_MS = 86_400_000
LEAST_DAYS = 90
"""No payment is archived earlier (`ARCHIVE_AFTER_DAYS`), so of younger invoices nobody asks."""
SAID_MS = 300_000
"""How long the day that lists cover is said before anything earlier leaves them."""
_ENTRIES = ("credit", "reverse", "unhold", "admit")
"""The beginnings of the ids of a deposit's journal entries (`domain.ledger`), each with its round."""


@dataclass(frozen=True, slots=True)
class Payment:
    """All of one invoice that leaves the tables, as it was read. `empty` are its addresses' balances that have nothing; `claims`
    are no longer needed (`outlived`). Without an invoice it is one deposit, whose address lives on."""

    tenant: TenantId
    invoice: Invoice | None
    deposits: tuple[Deposit, ...]
    entries: tuple[JournalEntry, ...]
    addresses: tuple[Address, ...] = ()
    claims: tuple[LogClaim, ...] = ()
    empty: tuple[WalletBalance, ...] = ()

    @property
    def stubbed(self) -> list[Invoice | Deposit | Address]:
        """The records in whose places stubs lie."""
        return [*([] if self.invoice is None else [self.invoice]), *self.deposits, *self.addresses]


@dataclass(frozen=True, slots=True)
class ArchiveRound:
    """How far the archive has come in a realm. `before`: what was made earlier (milliseconds since 1970) may be in the archive, and
    in no list; it never goes back, and is said since `said_at`. `merchant` is the one whose invoices were looked at last, up to the
    position `after` in their list; both None at the beginning of a round. Behind them come its deposits without an invoice:
    `after` is `behind_invoices` then, and `deposits_after` the position in their list. The last one ended at `ended_at`. `large`
    counts the payments that this round found to have more rows than a transaction takes, `large_before` those of the last one."""

    realm: Realm
    before: int = 0
    said_at: int = 0
    merchant: str | None = None
    after: str | None = None
    ended_at: int = 0
    large: int = 0
    large_before: int = 0
    deposits_after: str | None = None
    version: int = 0

    @property
    def behind_invoices(self) -> str:
        """The end of what a round looks at of a merchant's invoices; a version that knows no more takes the next merchant then."""
        return first_id("inv", self.before)


def entry_ids(deposit: Deposit) -> list[str]:
    """The ids of all journal entries that a deposit can have. It is credited anew in each round, and reversed at its end."""
    return [f"{kind}:{deposit.id}:{number}" for number in range(deposit.round + 1) for kind in _ENTRIES]


def hash_name(tenant: TenantId, txid: str) -> str:
    """The name under which the ids of a merchant's archived deposits of one transaction are found."""
    return derived_id("txh", tenant, txid.lower())


def outlived(deposit: Deposit) -> bool:
    """Whether the claim of its transaction can go: its block, which is final, numbers the logs as the claim does. A claim that is
    made anew there is the same one, and so is the deposit's id."""
    return deposit.id == deposit_id(deposit.network, deposit.txid, deposit.position)


def settled_before(invoice: Invoice, deposits: Mapping[str, Deposit], cutoff: int) -> bool:
    """Whether nothing of an invoice is awaited or undecided, and the last that happened to it was before `cutoff` (milliseconds
    since 1970)."""
    if not invoice.final or any(shown.deposit not in deposits for shown in invoice.payments):
        return False
    times = [invoice.created_at, invoice.expires_at, invoice.manual_at or 0]
    return max(times) < cutoff and all(settled(deposit, cutoff) for deposit in deposits.values())


def stands_alone(deposit: Deposit) -> bool:
    """Whether it is a payment by itself: to an address of its merchant's, which is no invoice's. One that came on the wrong network
    is not, since its return names it."""
    return deposit.tenant is not None and deposit.invoice_id is None and not deposit.returned


def settled(deposit: Deposit, cutoff: int) -> bool:
    """A deposit that is credited and free, or fell out of the chain. What an operator may still release is neither, nor is a state
    that only a newer version knows."""
    if deposit.status not in ("confirmed", "orphaned"):
        return False
    if deposit.held or deposit.small or deposit.releasable or deposit.set_aside or deposit.unpriced:
        return False
    times = (deposit.created_at, deposit.block_time, deposit.confirmed_at, deposit.released_at, deposit.admitted_at)
    return max(at or 0 for at in times) < cutoff


def is_empty(balance: WalletBalance) -> bool:
    """Whether a balance at an address says nothing that its absence does not say."""
    return not (balance.units or balance.pending or balance.held or balance.small or balance.aside)
