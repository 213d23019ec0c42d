"""Audit rules of withdrawals: reserved units, the state of each payment order, nonces and signed attempts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from chalicelib.domain.audit.books import Books
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.withdrawals.withdrawals import FINAL, PaymentOrder, Withdrawal

_ORDER_STATES: Mapping[str, Sequence[str | None]] = {
    "pending": (None,),
    "processing": (None, "built"),
    "broadcasting": ("signed",),
    "confirming": ("signed",),
    "confirmed": ("settled",),
    "failed": (None, "bounced"),
    "cancelled": (None,),
}
"""The states that a withdrawal's payment order may have, by the withdrawal's status; None: there is no order."""


def unmade(books: Books) -> dict[str, list[Withdrawal]]:
    """Withdrawals of batches that have no record of their own yet, by the name of their batch's work."""
    stored = {withdrawal.id for withdrawal in books.withdrawals}
    missing = {f"{b.tenant}|{b.id}": [m for m in b.members() if m.id not in stored] for b in books.batches}
    return {name: members for name, members in missing.items() if members}


def orders_fit(books: Books) -> Iterable[str]:
    """A withdrawal proceeds only when it is approved, and its payment order is as far as its status says."""
    orders = {order.id: order for order in books.orders}
    for withdrawal in books.withdrawals:
        order = orders.get(withdrawal.order_id or "")
        state = order.state if order is not None else None
        agreed = withdrawal.approval is None or withdrawal.approval.given
        if not agreed and withdrawal.id not in books.left and withdrawal.status not in ("pending", "failed", "cancelled"):
            yield f"withdrawal {withdrawal.id} is {withdrawal.status} and nobody approved it"
        known = withdrawal.id not in books.left and (order is None or order.id not in books.left)
        if known and state not in _ORDER_STATES[withdrawal.status]:
            yield f"withdrawal {withdrawal.id} is {withdrawal.status} and its order is {state}"


def frozen_agrees(books: Books) -> Iterable[str]:
    """A merchant's frozen balance is the sum of its open withdrawals' reservations, unstored ones of batches included, and of
    refunds that no withdrawal pays yet."""
    frozen: dict[tuple[str, str], int] = defaultdict(int)
    open_ones = (w for w in books.withdrawals if w.status not in FINAL)
    for withdrawal in chain(*unmade(books).values(), open_ones):
        frozen[withdrawal.tenant, withdrawal.asset] += withdrawal.reserved
    for refund in books.refunds:
        frozen[refund.tenant, refund.terms.asset] += refund.terms.amount if refund.reserves else 0
    for balance in books.balances:
        if balance.frozen != frozen.pop((balance.tenant, balance.asset), 0):
            yield f"{balance.tenant} {balance.asset}: frozen is {balance.frozen}, the open withdrawals say otherwise"
    for (tenant, asset), units in frozen.items():
        if units:
            yield f"{tenant} {asset}: {units} is reserved and there is no balance"


def one_order_each(books: Books) -> Iterable[str]:
    """No withdrawal has two payment orders: each could pay it."""
    per_withdrawal = Counter(order.withdrawal_id for order in books.orders)
    for withdrawal_id, count in per_withdrawal.items():
        if count > 1:
            yield f"withdrawal {withdrawal_id} has {count} orders"


def nonces_agree(books: Books) -> Iterable[str]:
    """The nonces that a wallet has used end right before its counter, without gaps and duplicates."""
    used: dict[tuple[NetworkId, str], list[int]] = defaultdict(list)
    # Withdrawals and moves of one wallet take their nonces from one counter; a deposit address has one of its own.
    for network, wallet, nonce in chain(_nonces_of_orders(books), _nonces_of_moves(books), _foreign_nonces(books)):
        used[network, wallet].append(nonce)
    following = {(c.network, c.wallet): c.next for c in books.counters}
    for (network, wallet), nonces in used.items():
        nonces.sort()
        end = following.get((network, wallet), -1)
        if nonces != list(range(end - len(nonces), end)):
            yield f"wallet {wallet} on {network}: the nonces {nonces[:20]} have holes or twins before {end}"


_Place = tuple[NetworkId, str, int]


def _fillers(books: Books) -> set[tuple[NetworkId, str, int | None]]:
    """The nonces of fillers. What was given up leaves its nonce to a filler: that both have it keeps the one from being mined
    beside the other."""
    return {(m.network, m.source, m.nonce) for m in books.moves if m.kind == "filler"}


def _nonces_of_orders(books: Books) -> Iterable[_Place]:
    fillers, given_up = _fillers(books), {g.id for g in books.given_up}
    # The same of a filler over an open payment.
    beside = {(m.over, m.network, m.source, m.nonce) for m in books.moves if m.over is not None}
    for order in books.orders:
        place = (order.network, order.wallet, order.nonce)
        if (order.id, *place) in beside or (order.withdrawal_id in given_up and place in fillers):
            continue
        if order.bundle is None and not order.unbundled:
            yield place


def _nonces_of_moves(books: Books) -> Iterable[_Place]:
    fillers, given_up = _fillers(books), {g.id for g in books.given_up}
    for move in books.moves:
        if move.id in given_up and move.kind != "filler" and (move.network, move.source, move.nonce) in fillers:
            continue
        if move.nonce is not None:
            yield move.network, move.source, move.nonce


def _foreign_nonces(books: Books) -> Iterable[_Place]:
    """Nonces that transactions which are none of this service's used up."""
    for counter in books.counters:
        for first, last in counter.foreign:
            for nonce in range(first, last + 1):
                yield counter.network, counter.wallet, nonce


def attempts_agree(books: Books) -> Iterable[str]:
    """Signed bytes belong to one order or move for ever, and a withdrawal shows one of those that may have paid it."""
    withdrawals = {withdrawal.id: withdrawal for withdrawal in books.withdrawals}
    owners: dict[str, str] = {}
    for order in books.orders:
        yield from _bytes_fit(order)
        if order.bundle is None:
            yield from _its_own(owners, "order", order.id, order.txids)
            yield from _shown_by(withdrawals.get(order.withdrawal_id), order)
    for move in books.moves:
        yield from _its_own(owners, "move", move.id, move.txids)


def _bytes_fit(order: PaymentOrder) -> Iterable[str]:
    """An order has signed bytes when it is signed and pays by itself, and only then."""
    if order.renew and order.state != "signed":
        yield f"order {order.id} is {order.state} and to be replaced"
    if order.bundle is not None:
        if order.raw is not None or order.earlier:
            yield f"order {order.id} is paid by {order.bundle} and has bytes of its own"
        return
    signed = order.state != "built"
    if (order.raw is not None) != signed or (order.txid is not None) != signed or (order.earlier and not signed):
        yield f"order {order.id} is {order.state}, and its signed bytes say otherwise"


def _its_own(owners: dict[str, str], kind: str, id_: str, txids: Sequence[str]) -> Iterable[str]:
    """No transaction is an attempt of two. `owners` by txid, to which these are added."""
    for txid in txids:
        if owners.setdefault(txid, id_) != id_ or txids.count(txid) > 1:
            yield f"{txid} is an attempt of {kind} {id_} twice, or of {owners[txid]} too"


def _shown_by(withdrawal: Withdrawal | None, order: PaymentOrder) -> Iterable[str]:
    if order.state != "built" and withdrawal is not None and withdrawal.txid not in order.txids:
        yield f"withdrawal {withdrawal.id} shows {withdrawal.txid}, which is no attempt of its order"
