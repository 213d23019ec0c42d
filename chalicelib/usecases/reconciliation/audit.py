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

READ = (
    Balance,
    Bundle,
    ClosingPosting,
    CoinMove,
    Collecting,
    Collection,
    ConsolidationQueue,
    Deposit,
    Distribution,
    EventRecord,
    GivenUp,
    HeldCoins,
    Invoice,
    InvoiceRefunds,
    InvoiceTotals,
    JournalEntry,
    Merchant,
    Move,
    NonceCounter,
    OutboxRow,
    OwnTransaction,
    PaymentOrder,
    PayoutLink,
    Refund,
    Rescan,
    ScanRange,
    Stake,
    StrayPayment,
    WalletBalance,
    Withdrawal,
    WithdrawalBatch,
)
"""The kinds of records that are audited, beside open work."""


def read_books(store: Store, now_ms: int) -> Books:
    """Read all records. Run it while nothing else runs, or work in motion shows as a difference."""
    sequences: dict[str, set[tuple[int, str]]] = defaultdict(set)
    every = store.every_of(READ)
    rows = every[OutboxRow]
    # A day less than they are kept: when exactly DynamoDB removes what has expired is its own affair.
    since = now_ms - (KEEP_SECONDS - 86_400) * 1000
    for row in rows:
        for event in row.events:
            sequences[f"{event.tenant} {event.object_id}"].add((event.sequence, event.id))
    for record in every[EventRecord]:
        sequences[f"{record.tenant} {record.object_id}"].add((record.sequence, record.id))
    invoices = every[Invoice]
    archived = list(_archived(store, [*invoices, *every[Deposit]]))
    return Books(
        journal=[*every[JournalEntry], *archived],
        archived=archived,
        closings=every[ClosingPosting],
        balances=every[Balance],
        wallets=every[WalletBalance],
        deposits=every[Deposit],
        invoices=invoices,
        totals=every[InvoiceTotals],
        withdrawals=every[Withdrawal],
        batches=every[WithdrawalBatch],
        orders=every[PaymentOrder],
        counters=every[NonceCounter],
        bundles=every[Bundle],
        held=every[HeldCoins],
        work=list(store.every_work()),
        rescans=every[Rescan],
        stakes=every[Stake],
        ranges=every[ScanRange],
        moves=every[Move],
        collections=every[Collection],
        collecting=every[Collecting],
        distributions=every[Distribution],
        own=every[OwnTransaction],
        coin_moves=every[CoinMove],
        consolidations=every[ConsolidationQueue],
        strays=every[StrayPayment],
        given_up=every[GivenUp],
        refunds=[*every[Refund], *every[PayoutLink]],
        refunded=every[InvoiceRefunds],
        outbox=[row.id for row in rows],
        events_since=since,
        aged=any(merchant.created_at < since for merchant in every[Merchant]),
        sequences={key: [number for number, _ in seen] for key, seen in sequences.items()},
    )


def _archived(store: Store, named: Iterable[Invoice | Deposit]) -> Iterator[JournalEntry]:
    """The entries of all objects of the archive that an invoice or a deposit names."""
    for name in dict.fromkeys(name for record in named for name in record.archives or ()):
        yield from (record for record in store.kept(name) if isinstance(record, JournalEntry))


def audit(store: Store, now_ms: int | None = None) -> list[str]:
    """Every violation, as sentences; empty when the books are whole. `now_ms` in milliseconds since 1970. Raises Unavailable."""
    return violations(read_books(store, time.time_ns() // 1_000_000 if now_ms is None else now_ms))
