"""The audit's input, read from the store by `usecases.reconciliation.audit`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from chalicelib.domain.archive.closings import ClosingPosting
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.totals import InvoiceTotals
from chalicelib.domain.ledger import Balance, JournalEntry, WalletBalance
from chalicelib.domain.refunds.refunds import InvoiceRefunds, Refund
from chalicelib.domain.scanning.ranges import ScanRange
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.treasury.collections import Collecting, Collection, Distribution
from chalicelib.domain.treasury.consolidations import CoinMove, ConsolidationQueue
from chalicelib.domain.treasury.hot_utxos import HeldCoins, OwnTransaction
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.versions import newer_state
from chalicelib.domain.withdrawals.batches import WithdrawalBatch
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder, Withdrawal
from chalicelib.domain.work import Work


@dataclass
class Books:
    """All records that an audit checks."""

    journal: list[JournalEntry] = field(default_factory=list)
    """Archived entries too."""
    archived: list[JournalEntry] = field(default_factory=list)
    """Those of `journal` that the archive has."""
    closings: list[ClosingPosting] = field(default_factory=list)
    balances: list[Balance] = field(default_factory=list)
    wallets: list[WalletBalance] = field(default_factory=list)
    deposits: list[Deposit] = field(default_factory=list)
    invoices: list[Invoice] = field(default_factory=list)
    totals: list[InvoiceTotals] = field(default_factory=list)
    withdrawals: list[Withdrawal] = field(default_factory=list)
    batches: list[WithdrawalBatch] = field(default_factory=list)
    orders: list[PaymentOrder] = field(default_factory=list)
    counters: list[NonceCounter] = field(default_factory=list)
    bundles: list[Bundle] = field(default_factory=list)
    held: list[HeldCoins] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    sequences: dict[str, list[int]] = field(default_factory=dict)
    """Sequence numbers of all events told or about to be told, by the object they are about."""
    rescans: list[Rescan] = field(default_factory=list)
    stakes: list[Stake] = field(default_factory=list)
    ranges: list[ScanRange] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    collections: list[Collection] = field(default_factory=list)
    collecting: list[Collecting] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    own: list[OwnTransaction] = field(default_factory=list)
    coin_moves: list[CoinMove] = field(default_factory=list)
    consolidations: list[ConsolidationQueue] = field(default_factory=list)
    strays: list[StrayPayment] = field(default_factory=list)
    given_up: list[GivenUp] = field(default_factory=list)
    refunds: list[Refund] = field(default_factory=list)
    """Payout links too."""
    refunded: list[InvoiceRefunds] = field(default_factory=list)
    outbox: list[str] = field(default_factory=list)
    """Ids of the outbox rows."""
    events_since: int = 0
    """Events of records made before this (milliseconds since 1970) may be forgotten already."""
    aged: bool = False
    """The deployment is older than that, so a balance's first events may be forgotten."""

    @cached_property
    def left(self) -> frozenset[str]:
        """The ids of the records in a state that only a newer version of the service knows: which work they have, that version
        says."""
        some: Iterable[Any] = chain(
            self.deposits, self.invoices, self.withdrawals, self.orders, self.bundles, self.stakes, self.moves
        )
        more: Iterable[Any] = chain(self.collections, self.coin_moves, self.strays, self.given_up, self.refunds)
        return frozenset(record.id for record in chain(some, more) if newer_state(record) is not None)
