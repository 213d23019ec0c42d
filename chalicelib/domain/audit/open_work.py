"""Audit rules of open work and of events: each unfinished record has a row of work, and each change has one event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from chalicelib.domain.audit.books import Books
from chalicelib.domain.audit.refunds import told_of
from chalicelib.domain.audit.withdrawals import unmade
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.treasury.moves import moved_work
from chalicelib.domain.treasury.stakes import staked_work
from chalicelib.domain.webhooks.events import balance_object
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import Withdrawal

_OpenIds = Mapping[str, set[str]]
"""The ids of open work by its kind; a kind with none is there, and empty."""


def work_agrees(books: Books) -> Iterable[str]:
    """Every unfinished record has its row of work, and no finished one has any."""
    open_ids: dict[str, set[str]] = defaultdict(set)
    for work in books.work:
        if not books.left.intersection(work.id.split("|")):
            open_ids[work.kind].add(work.id)
    yield from _watched(books, open_ids)
    for kind, all_ids in _unfinished(books).items():
        ids = {id for id in all_ids if not books.left.intersection(id.split("|"))}
        for missing in sorted(ids - open_ids[kind]):
            yield f"{kind} {missing} is unfinished and nobody will look at it again"
        for leftover in sorted(open_ids[kind] - ids):
            yield f"{kind} {leftover} is finished and still open"
    yield from _in_line(books, open_ids)
    yield from _expiring((invoice for invoice in books.invoices if invoice.id not in books.left), open_ids)


def _unfinished(books: Books) -> dict[str, set[str]]:
    """The ids that each kind of work has open, by the records that it is for."""
    unpaid = _unpaid(books)
    return {
        "deposit": {d.id for d in books.deposits if d.status == "pending" and d.block_number is not None},
        "glimpse": {d.id for d in books.deposits if d.status == "pending" and d.block_number is None},
        "range": {r.name for r in books.ranges},
        "batch": set(unmade(books)),
        "approval": {f"{w.tenant}|{w.id}" for w in unpaid if w.waits_for_approval},
        "payout": {payout_work(w).id for w in unpaid if not w.waits_for_approval},
        "sent": {f"{w.tenant}|{w.id}" for w in books.withdrawals if w.status in ("broadcasting", "confirming")},
        "outbox": set(books.outbox),
        "rescan": {r.id for r in books.rescans if not r.done},
        "stake": {s.id for s in books.stakes if s.status == "pending"},
        "move": {m.id for m in books.moves if not m.at_rest},
        "unpriced": {d.id for d in books.deposits if d.unpriced},
        "givenup": {g.id for g in books.given_up if g.state == "open"},
    }


def _unpaid(books: Books) -> list[Withdrawal]:
    return [w for w in books.withdrawals if w.status in ("pending", "processing")]


def _watched(books: Books, open_ids: _OpenIds) -> Iterable[str]:
    """Only what was mined is watched for a reorganisation. It need not be: its work ends when its block is deep enough."""
    paid = {f"{w.tenant}|{w.id}" for w in books.withdrawals if w.status in ("confirmed", "failed") and w.order_id is not None}
    for watched in sorted({work.rsplit("|", 1)[0] for work in open_ids["settled"]} - paid):
        yield f"{watched} is watched as settled and is not"
    final = {staked_work(s).id for s in books.stakes if s.mined is not None}
    for watched in sorted(open_ids["staked"] - final):
        yield f"{watched} is watched as staked and is not"
    arrived = {moved_work(m).id for m in books.moves if m.state in ("settled", "failed")}
    for watched in sorted(open_ids["moved"] - arrived):
        yield f"{watched} is watched as moved and is not"


def _in_line(books: Books, open_ids: _OpenIds) -> Iterable[str]:
    """An open payout stands where its withdrawal's priority puts it."""
    for misplaced in sorted({payout_work(w).id for w in _unpaid(books) if payout_work(w) not in books.work} & open_ids["payout"]):
        yield f"payout {misplaced} stands elsewhere in line than its withdrawal says"


def _expiring(invoices: Iterable[Invoice], open_ids: _OpenIds) -> Iterable[str]:
    """Each invoice that can still expire has the work that expires it."""
    for invoice in invoices:
        waits = not invoice.expired and not invoice.cancelled and invoice.manual_status is None
        if waits and f"{invoice.tenant}|{invoice.id}" not in open_ids["expiry"]:
            yield f"invoice {invoice.id} is {invoice.status} and will never expire"


def events_agree(books: Books) -> Iterable[str]:
    """Every event that a record says it emitted exists once. Expired events are not missed."""
    emitted: dict[str, int] = {}
    records: list[Invoice | Deposit | Withdrawal] = [*books.invoices, *books.deposits, *books.withdrawals]
    for record in records:
        if record.tenant is not None and record.created_at >= books.events_since:
            emitted[f"{record.tenant} {record.id}"] = record.emitted
    emitted |= {f"{r.tenant} {r.id}": told_of(r, books) for r in books.refunds if r.terms.created_at >= books.events_since}
    if not books.aged:
        emitted |= {f"{b.tenant} {balance_object(b.asset)}": b.emitted for b in books.balances}
    # A deposit may change its owner in a reorganisation, and its events are counted on: one merchant is told the first ones, ...
    deposits = {deposit.id: f"{deposit.tenant} {deposit.id}" for deposit in books.deposits}
    told: dict[str, list[int]] = defaultdict(list)
    for key, found in books.sequences.items():
        told[deposits.get(key.partition(" ")[2], key)] += found
    for object_id in sorted({*emitted, *told}):
        numbers = sorted(told.get(object_id, []))
        if len(numbers) != len(set(numbers)):
            yield f"the events of {object_id} are numbered {numbers[:20]}: one is told twice"
        count = emitted.get(object_id)
        if count is not None and set(numbers) != set(range(1, count + 1)):
            yield f"the events of {object_id} are numbered {numbers[:20]}, and it emitted {count}: one is lost or invented"
