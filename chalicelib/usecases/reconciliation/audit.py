"""The audit of the whole store: `domain.audit.rules` over all records, read by scans. For operators and tests."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

from chalicelib.domain.archive.closings import ClosingPosting
from chalicelib.domain.audit.books import Books
from chalicelib.domain.audit.rules import violations
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.totals import InvoiceTotals
from chalicelib.domain.ledger import Balance, JournalEntry, WalletBalance
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.refunds.refunds import InvoiceRefunds, PayoutLink, Refund
from chalicelib.domain.scanning.ranges import ScanRange
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.treasury.collections import Collecting, Collection, Distribution
from chalicelib.domain.treasury.consolidations import CoinMove, ConsolidationQueue
from chalicelib.domain.treasury.hot_utxos import HeldCoins, OwnTransaction
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.webhooks.endpoints import KEEP_SECONDS, EventRecord
from chalicelib.domain.withdrawals.batches import WithdrawalBatch
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder, Withdrawal
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.ports.store import Store


def read_books(store: Store, now_ms: int) -> Books:
    """Read all records. Run it while nothing else runs, or work in motion shows as a difference."""
    sequences: dict[str, set[tuple[int, str]]] = defaultdict(set)
    rows = list(store.every(OutboxRow))
    # A day less than they are kept: when exactly DynamoDB removes what has expired is its own affair.
    since = now_ms - (KEEP_SECONDS - 86_400) * 1000
    for row in rows:
        for event in row.events:
            sequences[f"{event.tenant} {event.object_id}"].add((event.sequence, event.id))
    for record in store.every(EventRecord):
        sequences[f"{record.tenant} {record.object_id}"].add((record.sequence, record.id))
    invoices = list(store.every(Invoice))
    archived = list(_archived(store, invoices))
    return Books(
        journal=[*store.every(JournalEntry), *archived],
        archived=archived,
        closings=list(store.every(ClosingPosting)),
        balances=list(store.every(Balance)),
        wallets=list(store.every(WalletBalance)),
        deposits=list(store.every(Deposit)),
        invoices=invoices,
        totals=list(store.every(InvoiceTotals)),
        withdrawals=list(store.every(Withdrawal)),
        batches=list(store.every(WithdrawalBatch)),
        orders=list(store.every(PaymentOrder)),
        counters=list(store.every(NonceCounter)),
        bundles=list(store.every(Bundle)),
        held=list(store.every(HeldCoins)),
        work=list(store.every_work()),
        rescans=list(store.every(Rescan)),
        stakes=list(store.every(Stake)),
        ranges=list(store.every(ScanRange)),
        moves=list(store.every(Move)),
        collections=list(store.every(Collection)),
        collecting=list(store.every(Collecting)),
        distributions=list(store.every(Distribution)),
        own=list(store.every(OwnTransaction)),
        coin_moves=list(store.every(CoinMove)),
        consolidations=list(store.every(ConsolidationQueue)),
        strays=list(store.every(StrayPayment)),
        given_up=list(store.every(GivenUp)),
        refunds=[*store.every(Refund), *store.every(PayoutLink)],
        refunded=list(store.every(InvoiceRefunds)),
        outbox=[row.id for row in rows],
        events_since=since,
        aged=any(merchant.created_at < since for merchant in store.every(Merchant)),
        sequences={key: [number for number, _ in seen] for key, seen in sequences.items()},
    )


def _archived(store: Store, invoices: Iterable[Invoice]) -> Iterator[JournalEntry]:
    """The entries of all objects of the archive that an invoice names; an object is one invoice's."""
    for invoice in invoices:
        for name in invoice.archives or ():
            yield from (record for record in store.kept(name) if isinstance(record, JournalEntry))


def audit(store: Store, now_ms: int | None = None) -> list[str]:
    """Every violation, as sentences; empty when the books are whole. `now_ms` in milliseconds since 1970. Raises Unavailable."""
    return violations(read_books(store, time.time_ns() // 1_000_000 if now_ms is None else now_ms))
