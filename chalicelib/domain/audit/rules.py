"""What must be true of the whole store, whatever happened: the rules that an audit checks.

Pure: `usecases.reconciliation.audit` reads the store and hands everything over. A violation is one sentence that names the record.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from chalicelib.domain.audit.collections import collections_agree
from chalicelib.domain.audit.consolidations import coin_moves_agree
from chalicelib.domain.audit.moves import moves_agree
from chalicelib.domain.audit.stray_payments import strays_agree
from chalicelib.domain.audit.utxos import coins_agree
from chalicelib.domain.deposits.deposits import Deposit, payment_of, share_of
from chalicelib.domain.ids import AssetId
from chalicelib.domain.invoices.invoices import SUMS, Invoice
from chalicelib.domain.invoices.totals import Figures, InvoiceTotals, figures, figures_of, shard_of
from chalicelib.domain.ledger import BURNT, FEES, OUTSIDE, Balance, Book, JournalEntry, WalletBalance, in_flight, totals
from chalicelib.domain.ledger import wallet as wallet_account
from chalicelib.domain.scanning.ranges import ScanRange
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.treasury.collections import Collecting, Collection, Distribution
from chalicelib.domain.treasury.consolidations import CoinMove, ConsolidationQueue
from chalicelib.domain.treasury.hot_utxos import HeldCoins, OwnTransaction
from chalicelib.domain.treasury.moves import Move, moved_work
from chalicelib.domain.treasury.stakes import Stake, staked_work
from chalicelib.domain.webhooks.events import balance_object
from chalicelib.domain.withdrawals.batches import WithdrawalBatch
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import FINAL, NonceCounter, PaymentOrder, Withdrawal
from chalicelib.domain.work import Work


@dataclass
class Books:
    """Everything that an audit looks at."""

    journal: list[JournalEntry] = field(default_factory=list)
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
    outbox: list[str] = field(default_factory=list)
    """Ids of the outbox rows."""
    events_since: int = 0
    """Events of records made before this (milliseconds since 1970) may be forgotten already."""
    aged: bool = False
    """The deployment is older than that, so a balance's first events may be forgotten."""


def violations(books: Books) -> list[str]:
    """Everything that is wrong; empty when the books are whole."""
    sums = totals(books.journal)
    return [
        *_books_agree(sums, _taken_back(books)),
        *_balances_agree(sums, books),
        *_wallets_agree(sums, books),
        *_awaited_and_held(books),
        *_in_flight_agrees(sums, books),
        *_credited_once(books),
        *_invoices_agree(books),
        *_totals_agree(books),
        *_reserved(books),
        *_nonces(books),
        *coins_agree(
            books.held, books.bundles, books.orders, books.withdrawals, books.deposits, books.wallets, books.work, books.coin_moves
        ),
        *moves_agree(books.moves, books.own, {g.id for g in books.given_up}),
        *coin_moves_agree(
            books.coin_moves, books.consolidations, books.own, books.deposits, books.wallets, books.work, not books.outbox
        ),
        *collections_agree(books.collections, books.collecting, books.distributions, books.moves, books.work),
        *strays_agree(books.strays, books.deposits, books.withdrawals, books.work),
        *_attempts(books),
        *_obligations(books),
        *_told(books),
    ]


def _taken_back(books: Books) -> set[str]:
    """The places, in lower case, that a reorganisation took a credited deposit, or coins of our own, from: what was spent of it may
    be missing there."""
    gone = {(d.network, d.address) for d in books.deposits if d.round and d.status != "confirmed"}
    gone |= {(m.network, m.recipient) for m in books.coin_moves if m.round and m.state != "settled"}
    return {wallet_account(network, address).lower() for network, address in gone}


def _books_agree(sums: Mapping[tuple[Book, str, AssetId], int], taken_back: Container[str]) -> Iterable[str]:
    """Assets = liabilities + operator + fees: both books say the same of what is inside and of what was burnt."""
    inside: dict[tuple[AssetId, Book], int] = defaultdict(int)
    for (book, account, asset), units in sums.items():
        if account != OUTSIDE:
            inside[asset, book] += units
        if account.startswith(("wallet:", "in_flight:")) and units < 0 and account.lower() not in taken_back:
            yield f"{account} holds {units} of {asset}: less than nothing"
    for asset in sorted({asset for asset, _ in inside}):
        where, whose = inside[asset, Book.WHERE], inside[asset, Book.WHOSE]
        if where != whose:
            yield f"{asset}: the places hold {where}, the owners {whose}"
        burnt, fees = sums.get((Book.WHERE, BURNT, asset), 0), sums.get((Book.WHOSE, FEES, asset), 0)
        if burnt != fees:
            yield f"{asset}: {burnt} was burnt, {fees} was booked as fees"


def _balances_agree(sums: Mapping[tuple[Book, str, AssetId], int], books: Books) -> Iterable[str]:
    booked = {(account, asset): units for (book, account, asset), units in sums.items() if account.startswith("merchant:")}
    for balance in books.balances:
        for purse in ("available", "frozen", "held"):
            expected = booked.pop((f"merchant:{balance.tenant}:{purse}", balance.asset), 0)
            if getattr(balance, purse) != expected:
                yield f"{balance.tenant} {balance.asset}: {purse} is {getattr(balance, purse)}, the journal says {expected}"
    for (account, asset), units in booked.items():
        yield f"{account} has {units} of {asset} in the journal and no balance"


def _wallets_agree(sums: Mapping[tuple[Book, str, AssetId], int], books: Books) -> Iterable[str]:
    booked = {(account, asset): units for (book, account, asset), units in sums.items() if account.startswith("wallet:")}
    for wallet in books.wallets:
        expected = booked.pop((f"wallet:{wallet.network}:{wallet.address}", wallet.asset), 0)
        if wallet.units != expected:
            yield f"wallet {wallet.address} {wallet.asset}: {wallet.units}, the journal says {expected}"
    for (account, asset), units in booked.items():
        yield f"{account} has {units} of {asset} in the journal and no stored balance"


def _awaited_and_held(books: Books) -> Iterable[str]:
    """What merchants and addresses are said to await (`pending`), to have on hold, and to have got in amounts that nobody sweeps
    (`small`), is what their deposits say; `aside` is how many of them are set aside."""
    said: dict[tuple[str, str], int] = {}
    for balance in books.balances:
        said[f"{balance.tenant} {balance.asset}", "pending"] = balance.pending
        said[f"{balance.tenant} {balance.asset}", "held"] = balance.held
    for wallet in books.wallets:
        # Deposits have the public spelling of their address and balances the storage form: they differ in case at most.
        name = f"wallet {wallet.address.lower()} {wallet.asset}"
        said[name, "pending"], said[name, "held"], said[name, "small"] = wallet.pending, wallet.held, wallet.small
        said[name, "aside"] = wallet.aside
    shown: dict[tuple[str, str], int] = defaultdict(int)
    for deposit in books.deposits:
        if deposit.set_aside:
            shown[f"wallet {deposit.address.lower()} {deposit.asset}", "aside"] += 1
            if deposit.held or deposit.status == "orphaned":
                yield f"deposit {deposit.id} is {deposit.status}, of {deposit.tenant}, and set aside"
            continue
        if deposit.held and (deposit.status != "confirmed" or deposit.tenant is None):
            yield f"deposit {deposit.id} is {deposit.status}, of {deposit.tenant}, and held"
        if deposit.status == "pending" or deposit.held:
            what = "held" if deposit.held else "pending"
            shown[f"wallet {deposit.address.lower()} {deposit.asset}", what] += deposit.amount
            if deposit.tenant is not None and not deposit.below_minimum:
                shown[f"{deposit.tenant} {deposit.asset}", what] += deposit.amount
        if deposit.status == "confirmed" and deposit.small:
            shown[f"wallet {deposit.address.lower()} {deposit.asset}", "small"] += deposit.amount
    for name, what in sorted({*said, *shown}):
        if said.get((name, what), 0) != shown.get((name, what), 0):
            yield f"{name}: {what} is {said.get((name, what), 0)}, its {what} deposits say {shown.get((name, what), 0)}"


def _in_flight_agrees(sums: Mapping[tuple[Book, str, AssetId], int], books: Books) -> Iterable[str]:
    booked = {account: units for (book, account, _), units in sums.items() if account.startswith("in_flight:")}
    for order in books.orders:
        expected = order.amount if order.state == "signed" else 0
        found = booked.pop(in_flight(order.id), 0)
        if found != expected:
            yield f"order {order.id} is {order.state} and {found} is in flight, not {expected}"
    for move in books.moves:
        expected = move.units if move.state == "signed" else 0
        found = booked.pop(in_flight(move.id), 0)
        if found != expected:
            yield f"move {move.id} is {move.state} and {found} is in flight, not {expected}"
    for coin_move in books.coin_moves:
        found = booked.pop(in_flight(coin_move.id), 0)
        if found != coin_move.in_flight:
            yield f"coin move {coin_move.id} is {coin_move.state} and {found} is in flight, not {coin_move.in_flight}"
    for account, units in booked.items():
        yield f"{account} holds {units} and there is no such order, nor such a move"


def _credited_once(books: Books) -> Iterable[str]:
    credited: Counter[str] = Counter()
    # What stands of it after its reversals: in another block it may have been another amount, or of another coin.
    standing: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for entry in books.journal:
        if entry.kind in ("deposit_credited", "deposit_reversed"):
            ref = entry.ref["deposit"]
            credited[ref] += 1 if entry.kind == "deposit_credited" else -1
            standing[ref].update({key: units for key, units in entry.deltas(Book.WHERE).items() if key[0] != OUTSIDE})
    places = Counter(f"{d.network} {d.txid} {d.position}" for d in books.deposits if d.status != "orphaned")
    for place, count in places.items():
        if count > 1:
            yield f"{place} is {count} deposits"
    for deposit in books.deposits:
        expected = 1 if deposit.posted else 0
        found = credited.pop(deposit.id, 0)
        if found != expected:
            yield f"deposit {deposit.id} is {deposit.status} and stands credited {found} times"
        booked = {(asset, units) for (_, asset), units in standing[deposit.id].items() if units}
        if booked != ({(deposit.asset, deposit.amount)} if expected else set()):
            yield f"deposit {deposit.id} over {deposit.amount} was booked with another amount"
    for deposit_id in credited:
        yield f"the journal credits {deposit_id}, and there is no such deposit"


def _invoices_agree(books: Books) -> Iterable[str]:
    paid: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for deposit in books.deposits:
        for name, units in share_of(deposit).items() if deposit.invoice_id is not None else ():
            paid[deposit.invoice_id or "", deposit.asset][name] += units
    deposits = {deposit.id: deposit for deposit in books.deposits}
    for invoice in books.invoices:
        shown = paid[invoice.id, invoice.asset]
        for name in SUMS:
            if getattr(invoice, name) != shown[name]:
                yield f"invoice {invoice.id}: {name} is {getattr(invoice, name)}, its deposits say {shown[name]}"
        for payment in invoice.payments:
            deposit_ = deposits.get(payment.deposit)
            if deposit_ is None or payment != payment_of(deposit_) or deposit_.status == "orphaned" or deposit_.set_aside:
                yield f"invoice {invoice.id} shows the payment {payment.deposit}, which is another or none"
        if invoice.status != invoice.settled_status():
            yield f"invoice {invoice.id} is {invoice.status}, its payments say {invoice.settled_status()}"


def _totals_agree(books: Books) -> Iterable[str]:
    """The sums behind the summary are those over the invoices, shard by shard."""
    expected: dict[tuple[str, str, str], Figures] = defaultdict(Figures)
    for invoice in books.invoices:
        expected[invoice.tenant, invoice.asset, shard_of(invoice.id)] += figures(invoice)
    found: dict[tuple[str, str, str], Figures] = {(t.tenant, t.asset, t.shard): figures_of(t) for t in books.totals}
    for place in sorted({*expected, *found}):
        if found.get(place, Figures()) != expected[place]:
            yield f"the totals of {' '.join(place)} are {found.get(place, Figures())}, its invoices say {expected[place]}"


def _unmade(books: Books) -> dict[str, list[Withdrawal]]:
    """Withdrawals of batches that are not stored by themselves yet, by the name of their batch's work."""
    stored = {withdrawal.id for withdrawal in books.withdrawals}
    missing = {f"{b.tenant}|{b.id}": [m for m in b.members() if m.id not in stored] for b in books.batches}
    return {name: members for name, members in missing.items() if members}


def _reserved(books: Books) -> Iterable[str]:
    frozen: dict[tuple[str, str], int] = defaultdict(int)
    for members in _unmade(books).values():
        for member in members:
            frozen[member.tenant, member.asset] += member.reserved
    orders = {order.id: order for order in books.orders}
    for withdrawal in books.withdrawals:
        if withdrawal.status not in FINAL:
            frozen[withdrawal.tenant, withdrawal.asset] += withdrawal.reserved
        order = orders.get(withdrawal.order_id or "")
        state = order.state if order is not None else None
        fits = {
            "pending": (None,),
            "processing": (None, "built"),
            "broadcasting": ("signed",),
            "confirming": ("signed",),
            "confirmed": ("settled",),
            "failed": (None, "bounced"),
            "cancelled": (None,),
        }
        agreed = withdrawal.approval is None or withdrawal.approval.given
        if not agreed and withdrawal.status not in ("pending", "failed", "cancelled"):
            yield f"withdrawal {withdrawal.id} is {withdrawal.status} and nobody approved it"
        if state not in fits[withdrawal.status]:
            yield f"withdrawal {withdrawal.id} is {withdrawal.status} and its order is {state}"
    for balance in books.balances:
        if balance.frozen != frozen.pop((balance.tenant, balance.asset), 0):
            yield f"{balance.tenant} {balance.asset}: frozen is {balance.frozen}, the open withdrawals say otherwise"
    for (tenant, asset), units in frozen.items():
        yield f"{tenant} {asset}: {units} is reserved and there is no balance"


def _nonces(books: Books) -> Iterable[str]:
    used: dict[tuple[str, str], list[int]] = defaultdict(list)
    # What was given up leaves its nonce to a filler: that both have it keeps the one from being mined beside the other.
    fillers = {(m.network, m.source, m.nonce) for m in books.moves if m.kind == "filler"}
    given_up = {g.id for g in books.given_up}
    # The same of a filler over an open payment.
    beside = {(m.over, m.network, m.source, m.nonce) for m in books.moves if m.over is not None}
    for order in books.orders:
        place = (order.network, order.wallet, order.nonce)
        if (order.id, *place) in beside or (order.withdrawal_id in given_up and place in fillers):
            continue
        if order.bundle is None and not order.unbundled:
            used[order.network, order.wallet].append(order.nonce)
    # Withdrawals and moves of one wallet take their nonces from one counter; a deposit address has one of its own.
    for move in books.moves:
        if move.id in given_up and move.kind != "filler" and (move.network, move.source, move.nonce) in fillers:
            continue
        if move.nonce is not None:
            used[move.network, move.source].append(move.nonce)
    following: dict[tuple[str, str], int] = {(c.network, c.wallet): c.next for c in books.counters}
    per_withdrawal = Counter(order.withdrawal_id for order in books.orders)
    for withdrawal_id, count in per_withdrawal.items():
        if count > 1:
            yield f"withdrawal {withdrawal_id} has {count} orders"
    for counter in books.counters:
        for first, last in counter.foreign:
            used[counter.network, counter.wallet] += range(first, last + 1)
    for (network, wallet), nonces in used.items():
        nonces.sort()
        end = following.get((network, wallet), -1)
        if nonces != list(range(end - len(nonces), end)):
            yield f"wallet {wallet} on {network}: the nonces {nonces[:20]} have holes or twins before {end}"


def _attempts(books: Books) -> Iterable[str]:
    """Signed bytes belong to one order or move for ever, and a withdrawal shows one of those that may have paid it."""
    withdrawals = {withdrawal.id: withdrawal for withdrawal in books.withdrawals}
    owners: dict[str, str] = {}
    for order in books.orders:
        if order.renew and order.state != "signed":
            yield f"order {order.id} is {order.state} and to be replaced"
        if order.bundle is not None:
            if order.raw is not None or order.earlier:
                yield f"order {order.id} is paid by {order.bundle} and has bytes of its own"
            continue
        signed = order.state != "built"
        if (order.raw is not None) != signed or (order.txid is not None) != signed or (order.earlier and not signed):
            yield f"order {order.id} is {order.state}, and its signed bytes say otherwise"
        for txid in order.txids:
            if owners.setdefault(txid, order.id) != order.id or order.txids.count(txid) > 1:
                yield f"{txid} is an attempt of order {order.id} twice, or of {owners[txid]} too"
        withdrawal = withdrawals.get(order.withdrawal_id)
        if signed and withdrawal is not None and withdrawal.txid not in order.txids:
            yield f"withdrawal {withdrawal.id} shows {withdrawal.txid}, which is no attempt of its order"
    for move in books.moves:
        for txid in move.txids:
            if owners.setdefault(txid, move.id) != move.id or move.txids.count(txid) > 1:
                yield f"{txid} is an attempt of move {move.id} twice, or of {owners[txid]} too"


def _obligations(books: Books) -> Iterable[str]:
    """Whatever is unfinished has its row of work, and nothing finished has one."""
    open_ids: dict[str, set[str]] = defaultdict(set)
    for work in books.work:
        open_ids[work.kind].add(work.id)
    unpaid = [w for w in books.withdrawals if w.status in ("pending", "processing")]
    expected = {
        "deposit": {d.id for d in books.deposits if d.status == "pending" and d.block_number is not None},
        "glimpse": {d.id for d in books.deposits if d.status == "pending" and d.block_number is None},
        "range": {r.name for r in books.ranges},
        "batch": set(_unmade(books)),
        "approval": {f"{w.tenant}|{w.id}" for w in unpaid if w.waits_for_approval},
        "payout": {payout_work(w).id for w in unpaid if not w.waits_for_approval},
        "sent": {f"{w.tenant}|{w.id}" for w in books.withdrawals if w.status in ("broadcasting", "confirming")},
        "outbox": set(books.outbox),
        "rescan": {r.id for r in books.rescans if not r.done},
        "stake": {s.id for s in books.stakes if s.status == "pending"},
        "move": {m.id for m in books.moves if not m.at_rest},
        "givenup": {g.id for g in books.given_up if g.state == "open"},
    }
    paid = {f"{w.tenant}|{w.id}" for w in books.withdrawals if w.status in ("confirmed", "failed") and w.order_id is not None}
    for watched in sorted({work.rsplit("|", 1)[0] for work in open_ids["settled"]} - paid):
        yield f"{watched} is watched as settled and is not"
    final = {staked_work(s).id for s in books.stakes if s.mined is not None}
    for watched in sorted(open_ids["staked"] - final):
        yield f"{watched} is watched as staked and is not"
    arrived = {moved_work(m).id for m in books.moves if m.state in ("settled", "failed")}
    for watched in sorted(open_ids["moved"] - arrived):
        yield f"{watched} is watched as moved and is not"
    for kind, ids in expected.items():
        for missing in sorted(ids - open_ids[kind]):
            yield f"{kind} {missing} is unfinished and nobody will look at it again"
        for leftover in sorted(open_ids[kind] - ids):
            yield f"{kind} {leftover} is finished and still open"
    for misplaced in sorted({payout_work(w).id for w in unpaid if payout_work(w) not in books.work} & open_ids["payout"]):
        yield f"payout {misplaced} stands elsewhere in line than its withdrawal says"
    for invoice in books.invoices:
        waits = not invoice.expired and invoice.manual_status is None
        if waits and f"{invoice.tenant}|{invoice.id}" not in open_ids["expiry"]:
            yield f"invoice {invoice.id} is {invoice.status} and will never expire"


def _told(books: Books) -> Iterable[str]:
    """Every event that a record says it emitted is there, once. Events that are forgotten by age are not missed."""
    emitted: dict[str, int] = {}
    records: list[Invoice | Deposit | Withdrawal] = [*books.invoices, *books.deposits, *books.withdrawals]
    for record in records:
        if record.tenant is not None and record.created_at >= books.events_since:
            emitted[f"{record.tenant} {record.id}"] = record.emitted
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
