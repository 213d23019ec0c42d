"""Adopts transactions that the restored tables do not know: finds the withdrawal or the move that each was, and records it as its
signed transaction. Their bytes are forgotten (`FORGOTTEN`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import Address, Wallet, Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Block, Transfer
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.outgoing import FORGOTTEN, Attempt
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import WHOLE_TRANSACTION, Move, MoveKind, Origin, move_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import FINAL, NonceCounter, PaymentOrder, Withdrawal
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.losses import Losses, has_nonces, sent_from
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id, sent_work, stepped, waited_for


@dataclass(frozen=True, slots=True)
class Placed:
    """A service wallet, and whether it is in place: not replaced by another one."""

    wallet: Wallet
    in_place: bool


class Adoption:
    """Of one account network. Every method raises Unavailable, Conflict."""

    def __init__(self, context: NetworkContext, payer: ChainPayer) -> None:
        network, reader, store = context.network, context.reader, context.store
        self._context, self._network, self._reader, self._store = context, network, reader, store
        self._clock, self._payer, self._losses = context.clock, payer, Losses(network, reader, store)
        self._nonces: dict[str, int | None] = {}
        self._payable: list[Withdrawal] = []
        self._movable: list[Move] = []

    def read_open(self) -> None:
        """Read the withdrawals and moves that a transaction may be of."""
        self._payable = [w for w in self._store.every(Withdrawal) if w.network == self._network.id and w.status not in FINAL]
        self._movable = [m for m in self._store.every(Move) if m.network == self._network.id and not m.at_rest]

    def read_nonces(self, block: Block) -> None:
        """Keep the nonces of the transactions in `block`, which are adopted next."""
        self._nonces = dict(zip(block.sent.txids, block.sent.nonces, strict=True))

    # Withdrawals.

    def withdrawal_paid_by(self, t: Transfer, coin: Coin) -> Withdrawal | None:
        """The open withdrawal that `t` has paid: signed ones that no block has first, then by age."""
        fits: list[tuple[int, int, Withdrawal]] = []
        for read in self._payable:
            if (read.asset, read.amount) != (coin.asset, t.amount) or self._context.form(read.to_address) != t.recipient:
                continue
            found = self._store.get(Withdrawal, tenant=read.tenant, id=read.id)
            if found is None or found.status in FINAL:
                continue
            order = self._store.get(PaymentOrder, id=order_id(found))
            if found.from_address is not None and self._context.form(found.from_address) != t.sender:
                continue
            if order is not None and not self._may_be(t.txid, order, order.wallet):
                continue
            fits.append((("confirming", "broadcasting", "processing", "pending").index(found.status), found.created_at, found))
        return min(fits, key=lambda each: each[:2])[2] if fits else None

    def adopt_payment(self, found: Withdrawal, wallet: Wallet, txid: str, fee: int) -> None:
        """`found` gets `txid` as its signed transaction: pending → processing → broadcasting, as if it had been signed here."""
        if found.status == "pending":
            found = self._begin(found, wallet)
        order = self._store.get(PaymentOrder, id=order_id(found))
        if order is None:
            found, order = self._order(found, wallet, txid)
        news = News(self._clock.now_ms())
        if found.status != "processing":
            again = replace(order.signed_as(Attempt(FORGOTTEN, txid, fee, news.at)), usurped=None)
            self._store.commit([Save(again), Save(replace(next_version(found), txid=txid, fee=fee, updated_at=news.at))])
            return
        _, views = catalogue_views(self._store, found)
        done = order.signed_as(Attempt(FORGOTTEN, txid, fee, news.at))
        sent = replace(found, status="broadcasting", txid=txid, fee=fee, updated_at=news.at)
        after = stepped(news, views, found, sent)
        place = ledger.wallet(self._network.id, self._context.form(order.wallet))
        entry = ledger.payment_signed(order.id, news.at, place, Amount(order.asset, order.amount))
        works = (Close(payout_work(found)), Open(sent_work(found)))
        self._store.commit([Save(done), Save(after), Post(entry), *works, *news.emit()])

    def _begin(self, before: Withdrawal, wallet: Wallet) -> Withdrawal:
        """An approval that it still waits for was given: its payment was signed."""
        news = News(self._clock.now_ms())
        _, views = catalogue_views(self._store, before)
        given = before.approval if before.approval is not None and before.approval.given else None
        after = replace(
            before, status="processing", pending_reason=None, from_address=wallet.address, slot=wallet.slot, approval=given,
            updated_at=news.at,
        )  # fmt: skip
        after = stepped(news, views, before, after)
        works: list[Change] = [*waited_for(before), Open(payout_work(after))] if before.waits_for_approval else []
        self._store.commit([Save(after), *works, *news.emit()])
        return after

    def _order(self, before: Withdrawal, wallet: Wallet, txid: str) -> tuple[Withdrawal, PaymentOrder]:
        nonce, counted = self._nonce_of(wallet.address, txid)
        now = self._clock.now_ms()
        coin = self._store.catalogue(self._network.realm).coin(self._network.slug, before.asset.rsplit(":", 1)[1])
        order = PaymentOrder(
            id=order_id(before), network=self._network.id, wallet=wallet.address, nonce=nonce, withdrawal_id=before.id,
            tenant=before.tenant, asset=before.asset, contract=None if coin is None else coin.contract,
            recipient=before.to_address, amount=before.amount, unsigned="", created_at=now,
        )  # fmt: skip
        noted = replace(next_version(before), order_id=order.id, updated_at=now)
        self._store.commit([Save(order), *counted, Save(noted)])
        return noted, order

    def _nonce_of(self, address: str, txid: str) -> tuple[int, list[Change]]:
        """The nonce that `txid` has, where its block tells it, else the next one; and the counter behind it. Others before it are
        nobody's here: what is met with them decides nothing of this one."""
        counter = self._counter(address)
        found = self._nonces.get(txid)
        nonce = counter.next if found is None else found
        if nonce < counter.next:
            return nonce, []
        foreign = counter.foreign if nonce == counter.next else (*counter.foreign, (counter.next, nonce - 1))
        return nonce, [Save(replace(next_version(counter), next=nonce + 1, foreign=foreign))]

    def _counter(self, address: str) -> NonceCounter:
        source = self._context.rules.normalize(self._network.slug, address)
        found = self._store.get(NonceCounter, network=self._network.id, wallet=source)
        return found or NonceCounter(self._network.id, source, 0, version=0)

    # Moves.

    def open_move(self, t: Transfer) -> Move | None:
        """The open move that `t` is of."""
        ends, context = (t.sender, t.recipient, t.contract), self._context
        for read in self._movable:
            if (context.form(read.source), context.form(read.recipient), context.contract_form(read.contract)) != ends:
                continue
            move = self._store.get(Move, network=read.network, id=read.id)
            if move is None or move.at_rest or not (move.bare or move.amount == t.amount):
                continue
            if self._may_be(t.txid, move, move.source):
                return move
        return None

    def _may_be(self, txid: str, record: PaymentOrder | Move, wallet: str) -> bool:
        """Whether `txid` may be another attempt of `record`: none of those that it has is in the chain, by a receipt or by the
        blocks that were read (money rule 13), and it has the same nonce, where there are nonces."""
        found, nonce = self._nonces.get(txid), record.nonce
        if has_nonces(self._network) and None not in (found, nonce) and found != nonce:
            return False
        if any(self._reader.receipt(attempt.txid) is not None for attempt in record.attempts):
            return False
        ours = sent_from(self._network, self._context.rules, self._payer, record.attempts, wallet, nonce or 0)
        tip = self._reader.tip()
        return self._losses.mined(ours, Scanned(tip, tip, {})) is None

    def unrecorded_move(self, t: Transfer, coin: Coin, wallets: Mapping[str, Placed]) -> Move | None:
        """A move to be made for `t`, whose two ends are ours; None where it was none."""
        source, recipient = (self._watched(form) for form in (t.sender, t.recipient))
        if source is None or recipient is None:
            return None
        kind = self._kind(t, source, recipient, wallets)
        path: str | None = None
        if source.role == "user" and source.tenant is not None:
            owned = self._store.get(Address, tenant=source.tenant, id=source.address_id or "")
            path = None if owned is None else owned.path
        if kind is None or (source.role == "user" and not path):
            return None
        owner, now = f"after restore {self._network.id} {t.txid}", self._clock.now_ms()
        spelled = (self._context.rules.normalize(self._network.slug, form) for form in (t.sender, t.recipient))
        origin = Origin(self._network.id, owner, 1, now)
        return Move.found(origin, kind, coin, (next(spelled), path), next(spelled), t.amount)

    def _watched(self, form: str) -> Watched | None:
        kind, key = watched_key(self._network, form)
        found: Watched | None = self._store.get(kind, **key)
        return found if found is not None and found.holds_on(self._network.slug) else None

    def _kind(self, t: Transfer, source: Watched, recipient: Watched, wallets: Mapping[str, Placed]) -> MoveKind | None:
        if t.sender == t.recipient:
            return "filler" if t.contract is None else None
        if source.role == "user":
            return "sweep" if recipient.role != "user" else None
        if recipient.role == "user":
            return "topup" if t.contract is None else None
        if recipient.role == "cold":
            return "cold"
        in_place = t.sender in wallets and wallets[t.sender].in_place
        if recipient.role == "collector" and in_place:
            return "topup" if t.contract is None else None
        return "distribution" if in_place and source.role in ("collector", "hot") else "drain"

    def adopt_move(self, move: Move, t: Transfer, fee: int) -> None:
        """`move` gets `t` as its signed transaction; one that is new is stored with it."""
        now = self._clock.now_ms()
        changes: list[Change] = [Save(OwnTransaction(move.network, t.txid, (WHOLE_TRANSACTION,)))]
        nonce = move.nonce
        if nonce is None:
            nonce, counted = self._nonce_of(move.source, t.txid)
            changes += counted
        if move.state != "signed":
            place = ledger.wallet(move.network, t.sender)
            changes.append(Post(ledger.move_signed(move.id, now, place, Amount(move.asset, t.amount))))
        if not move.version:
            changes.append(Open(move_work(move)))
        again = move.signed_as(Attempt(FORGOTTEN, t.txid, fee, now))
        done = replace(again, amount=t.amount, nonce=nonce, unsigned=move.unsigned or "", usurped=None, reason=None)
        self._store.commit([Save(done), *changes])
