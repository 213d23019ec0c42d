"""After a point-in-time restore of the tables: later transactions of ours are found on the chain, and recorded as what they
were.

For account networks. While `PaymentSwitch.put_back` stands nothing else is done in the realm. Blocks are read from the restored
cursor on, less the depth of a reorganisation. A transaction that leaves an address of ours, and that no record knows, was

* a withdrawal, where an open one has its coin, payee and amount (the oldest of several): that one gets it as its signed
  transaction, and `settlement` settles it by receipt, as it would have been;
* a move, where its recipient is ours: it becomes the signed transaction of the move that was planned, else of one that is made for
  it, and is named an `OwnTransaction`. A deposit that was recorded of it is taken back. `treasury/moves/following` settles it;
* anything else: a stray. It is listed, and posted as the operator's loss only when an operator says so.

Bytes are not known any more (`raw` is empty): what is adopted can not be sent again, so it counts as done once no reorganisation
reaches it. Nonces are allotted in the order of the chain; what the chain has used beyond is noted as `foreign`. Each block is done
before `Trace.next` passes it, and what is adopted is known: dying anywhere, and running twice, changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import SERVICE_ROLES, Address, Wallet, Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.recovery.point_in_time import Stray, Trace, stray_booked, stray_entry_id
from chalicelib.domain.transactions.outgoing import FORGOTTEN, Attempt
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import WHOLE_TRANSACTION, Move, MoveKind, Origin, move_work
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import FINAL, NonceCounter, PaymentOrder, Withdrawal
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.scanning.matching import Matcher
from chalicelib.usecases.scanning.reorganisations import batch_blocks
from chalicelib.usecases.scanning.sightings import SightingNotes
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.losses import Losses, has_nonces, sent_from
from chalicelib.usecases.wallets.lookup import retired_wallets
from chalicelib.usecases.withdrawals.steps import catalogue_views, order_id, sent_work, stepped, waited_for

log = logging.getLogger(__name__)

_SENT = ("native", "log:")
"""Positions of what an address sent itself; what contracts send on is nobody's signature."""


class PointInTimeRecovery:
    """Traces one account network. Nothing else may be at work on it: run it while `put_back` stands."""

    def __init__(self, context: NetworkContext, payer: ChainPayer, deposits: Deposits) -> None:
        network, reader, store = context.network, context.reader, context.store
        self._context, self._network, self._reader, self._store = context, network, reader, store
        self._clock, self._payer, self._deposits = context.clock, payer, deposits
        self._matcher = Matcher(context)
        self._claims = Claims(network, reader, store)
        self._noting, self._losses = SightingNotes(context), Losses(network, reader, store)
        self._known: set[str] = set()
        self._nonces: dict[str, int | None] = {}
        self._payable: list[Withdrawal] = []
        self._movable: list[Move] = []

    def trace(self, since: int, from_block: int | None = None) -> Trace:
        """Read on to the tip. `since` is when the restore began; `from_block`: the first block to read, where the cursor went on
        meanwhile. Raises Unavailable, Conflict."""
        trace = self._begun_trace(since, from_block)
        self._known = set(self._every_txid())
        self._payable = [w for w in self._store.every(Withdrawal) if w.network == self._network.id and w.status not in FINAL]
        self._movable = [m for m in self._store.every(Move) if m.network == self._network.id and not m.at_rest]
        contracts = self._matcher.contracts()
        while trace.next <= (tip := self._reader.tip()):
            blocks = self._reader.blocks(trace.next, min(tip, trace.next + batch_blocks(self._network) - 1), contracts)
            if not blocks:
                break
            self._noting.note(blocks)
            strays = list(trace.strays)
            for block in blocks:
                self._nonces = dict(zip(block.sent.txids, block.sent.nonces, strict=True))
                for txid, moved in self._unknown(block).items():
                    strays += self._adopted(block, txid, moved)
                    self._known.add(txid)
            after = replace(next_version(trace), next=blocks[-1].number + 1, strays=tuple(dict.fromkeys(strays)))
            self._store.commit([Save(after)])
            trace = after
            del blocks, block  # they are large, and the next ones are read beside them
        self._raise_counters()
        return trace

    def _begun_trace(self, since: int, from_block: int | None) -> Trace:
        network, known = self._network.id, self._store.get(Trace, network=self._network.id)
        if known is not None and known.since == since and (from_block is None or from_block >= known.first):
            return known
        cursor = self._store.get(Cursor, network=network)
        stood = 0 if cursor is None else max(0, cursor.number - self._network.reorg_depth + 1)
        first = from_block if from_block is not None and (cursor is None or from_block < stood) else stood
        begun = Trace(network, since, first, first, version=version_after(known))
        if known is not None and known.since == since:
            begun = replace(begun, strays=known.strays)
        self._store.commit([Save(begun)])
        return begun

    def _every_txid(self) -> Iterable[str]:
        """Every transaction that a record here knows as its own."""
        for order in self._store.every(PaymentOrder):
            if order.network == self._network.id:
                yield from order.txids
        for move in self._store.every(Move):
            if move.network == self._network.id:
                yield from move.txids
        for stake in self._store.every(Stake):
            if stake.network == self._network.id:
                yield from stake.txids

    def _unknown(self, block: Block) -> dict[str, list[Transfer]]:
        """The transfers of a block that leave addresses of ours with a key here, by transaction, where no record knows it. Tokens'
        logs of nothing are left out: on most contracts anybody can write those."""
        senders = sorted({t.sender for t in block.transfers if t.txid not in self._known and t.amount})
        found = self._store.get_many([watched_key(self._network, sender) for sender in senders])
        ours = {sender for sender, watched in zip(senders, found, strict=True) if watched is not None and watched.role != "cold"}
        grouped: dict[str, list[Transfer]] = {}
        for t in block.transfers:
            if t.sender in ours and t.amount and t.txid not in self._known and t.position.startswith(_SENT):
                grouped.setdefault(t.txid, []).append(t)
        return grouped

    def _adopted(self, block: Block, txid: str, moved: list[Transfer]) -> list[Stray]:
        """Adopt a transaction; its stray transfers, none once a record has it. Raises Unavailable."""
        receipt = self._reader.receipt(txid)
        if receipt is None or receipt.block_hash != block.hash:
            raise Unavailable(f"{self._network.id}: the node says otherwise of {txid} than its block {block.number} does")
        fee, wallets = receipt.fee or 0, self._wallets()
        for t in moved:
            paid = self._withdrawal_paid_by(t) if t.sender in wallets else None
            if paid is not None:
                self._adopt_payment(paid, wallets[t.sender][0], txid, fee)
                log.warning("%s: %s has paid %s", self._network.id, txid, paid.id)
                return []
        proven = self._reader.proven(block, moved)
        for t in proven or moved:
            move = self._open_move(t) or self._unrecorded_move(t, wallets) if proven else self._open_move(t)
            if move is not None:
                self._adopt_move(move, t, fee)
                self._noting.note([block])  # its address has a signed move only now
                for deposit in self._claims.ids(block, proven):
                    self._deposits.orphan(self._network, deposit, block.hash, block.number)
                log.warning("%s: %s was %s %s", self._network.id, txid, move.kind, move.id)
                return []
        # By the same position in every block: read again after a reorganisation, it is the same loss.
        named = list(zip(proven, self._claims.positions(block, proven), strict=True)) or [(t, t.position) for t in moved[:1]]
        return [
            Stray(txid, position, self._coin(t).asset, t.sender, t.recipient, t.amount if proven else 0, block.number)
            for t, position in named
        ]

    def _coin(self, t: Transfer) -> Coin:
        return self._context.native() if t.contract is None else self._matcher.contracts()[t.contract]

    def _wallets(self) -> dict[str, tuple[Wallet, bool]]:
        """Service wallets by the storage form of their address, and whether each is in place."""
        form = self._context.form
        found = {form(old.address): (old.wallet, False) for old in retired_wallets(self._store, self._network.id)}
        for role in SERVICE_ROLES:
            wallet = wallet_of(self._store, self._network.id, role)
            if wallet is not None:
                found[form(wallet.address)] = (wallet, True)
        return found

    # Withdrawals.

    def _withdrawal_paid_by(self, t: Transfer) -> Withdrawal | None:
        """The open withdrawal that `t` has paid: signed ones that no block has first, then by age."""
        asset = self._coin(t).asset
        fits: list[tuple[int, int, Withdrawal]] = []
        for read in self._payable:
            if (read.asset, read.amount) != (asset, t.amount) or self._context.form(read.to_address) != t.recipient:
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

    def _adopt_payment(self, found: Withdrawal, wallet: Wallet, txid: str, fee: int) -> None:
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
            before, status="processing", pending_reason=None, from_address=wallet.address, approval=given, updated_at=news.at
        )
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

    def _open_move(self, t: Transfer) -> Move | None:
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

    def _unrecorded_move(self, t: Transfer, wallets: dict[str, tuple[Wallet, bool]]) -> Move | None:
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
        return Move.found(origin, kind, self._coin(t), (next(spelled), path), next(spelled), t.amount)

    def _watched(self, form: str) -> Watched | None:
        kind, key = watched_key(self._network, form)
        found: Watched | None = self._store.get(kind, **key)
        return found if found is not None and found.holds_on(self._network.slug) else None

    def _kind(self, t: Transfer, source: Watched, recipient: Watched, wallets: dict[str, tuple[Wallet, bool]]) -> MoveKind | None:
        if t.sender == t.recipient:
            return "filler" if t.contract is None else None
        if source.role == "user":
            return "sweep" if recipient.role != "user" else None
        if recipient.role == "user":
            return "topup" if t.contract is None else None
        if recipient.role == "cold":
            return "cold"
        in_place = t.sender in wallets and wallets[t.sender][1]
        if recipient.role == "collector" and in_place:
            return "topup" if t.contract is None else None
        return "distribution" if in_place and source.role == "collector" else "drain"

    def _adopt_move(self, move: Move, t: Transfer, fee: int) -> None:
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

    # Nonces, strays, and what is left.

    def _raise_counters(self) -> None:
        """Raise the counters of nonces: the chain's used nonces are never allotted again."""
        for counter in list(self._store.every(NonceCounter)):
            if counter.network == self._network.id:
                used = self._payer.used_nonces(counter.wallet)
                if used > counter.next:
                    self._store.commit([Save(counter.caught_up(used))])

    def book_strays(self, trace: Trace) -> int:
        """Record stray transactions as the operator's loss, where no reorganisation reaches them; their number. Raises
        Unavailable."""
        booked, paid = 0, set()
        native = self._context.native().asset
        for stray in trace.strays:
            first = stray.txid not in paid
            paid.add(stray.txid)
            if self._is_booked(stray) or not self._deep(stray.block_number):
                continue
            receipt = self._reader.receipt(stray.txid)
            if receipt is None:
                continue
            fee = Amount(AssetId(native), receipt.fee or 0) if first else None
            entry = stray_booked(self._network.id, self._network.realm, stray, fee, self._clock.now_ms())
            self._store.commit([Post(entry)])
            booked += 1
        return booked

    def _is_booked(self, stray: Stray) -> bool:
        return self._store.get(JournalEntry, id=stray_entry_id(self._network.id, stray)) is not None

    def _deep(self, number: int) -> bool:
        cursor = self._store.get(Cursor, network=self._network.id)
        return cursor is not None and cursor.number - number + 1 >= self._network.reorg_depth

    def left(self, trace: Trace, shown: Callable[[Stray], str]) -> list[str]:
        """The obstacles to going on, one sentence each; `shown` renders a stray. Raises Unavailable."""
        found = []
        if trace.next <= self._reader.tip():
            found.append(f"blocks from {trace.next} on are not read yet")
        for stray in trace.strays:
            if not self._is_booked(stray):
                found.append(f"nothing asked for {shown(stray)}: --book-unmatched books it as the operator's loss")
        for order in self._store.every(PaymentOrder):
            if order.network == self._network.id:
                found += self._not_final(order, trace.since)
        for move in self._store.every(Move):
            if move.network == self._network.id:
                found += self._not_final(move, trace.since)
        return found

    def _not_final(self, record: PaymentOrder | Move, since: int) -> list[str]:
        """Why what was found since, whose bytes are forgotten, is not behind us yet."""
        newest = record.newest
        if newest is None or not newest.forgotten or newest.at < since:
            return []
        if record.state == "signed":
            return [f"{newest.txid} is not settled yet"]
        receipt = self._reader.receipt(newest.txid)
        final = receipt is not None and self._deep(receipt.block_number)
        return [] if final else [f"{newest.txid} is not as deep as reorganisations are followed yet"]
