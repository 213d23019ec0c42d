"""Invariants of the whole store: the rules that an audit checks, one module per subject.

Pure: `usecases.reconciliation.audit` reads the store and hands everything over. A violation is one sentence that names the record.
"""

from __future__ import annotations

from chalicelib.domain.archive.closings import closings_of, differing
from chalicelib.domain.audit.books import Books
from chalicelib.domain.audit.collections import collections_agree
from chalicelib.domain.audit.consolidations import coin_moves_agree
from chalicelib.domain.audit.deposits import credited_once, days_agree, pending_and_held_agree
from chalicelib.domain.audit.invoices import invoices_agree, late_worth_agrees, totals_agree
from chalicelib.domain.audit.ledger import balances_agree, books_agree, in_flight_agrees, taken_back, wallets_agree
from chalicelib.domain.audit.moves import moves_agree
from chalicelib.domain.audit.open_work import events_agree, work_agrees
from chalicelib.domain.audit.refunds import claimed_once, invoices_name_refunds, refund_work_agrees
from chalicelib.domain.audit.stray_payments import strays_agree
from chalicelib.domain.audit.utxos import coins_agree
from chalicelib.domain.audit.withdrawals import attempts_agree, frozen_agrees, nonces_agree, one_order_each, orders_fit
from chalicelib.domain.ledger import totals


def violations(books: Books) -> list[str]:
    """Every violation, one sentence each; empty when the store is consistent."""
    sums = totals(books.journal)
    return [
        *books_agree(sums, taken_back(books)),
        *balances_agree(sums, books),
        *wallets_agree(sums, books),
        *differing(books.closings, closings_of(books.archived)),
        *pending_and_held_agree(books),
        *in_flight_agrees(sums, books),
        *credited_once(books),
        *days_agree(books),
        *invoices_agree(books),
        *late_worth_agrees(books),
        *totals_agree(books),
        *orders_fit(books),
        *frozen_agrees(books),
        *one_order_each(books),
        *nonces_agree(books),
        *coins_agree(
            books.held, books.bundles, books.orders, books.withdrawals, books.deposits, books.wallets, books.work, books.coin_moves
        ),
        *moves_agree(books.moves, books.own, {g.id for g in books.given_up}),
        *coin_moves_agree(
            books.coin_moves, books.consolidations, books.own, books.deposits, books.wallets, books.work, not books.outbox
        ),
        *collections_agree(books.collections, books.collecting, books.distributions, books.moves, books.work),
        *strays_agree(books.strays, books.deposits, books.withdrawals, books.work),
        *claimed_once(books),
        *invoices_name_refunds(books),
        *refund_work_agrees(books),
        *attempts_agree(books),
        *work_agrees(books),
        *events_agree(books),
    ]
