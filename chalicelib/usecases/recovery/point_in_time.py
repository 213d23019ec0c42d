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

from chalicelib.domain.addresses.addresses import watched_key
from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.recovery.point_in_time import Stray, Trace
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder
from chalicelib.usecases.base.current_wallets import current_wallets
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.deposits.deposits import Deposits
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.recovery.adoption import Adoption, Placed
from chalicelib.usecases.recovery.restore_end import RestoreEnd
from chalicelib.usecases.scanning.matching import Matcher
from chalicelib.usecases.scanning.reorganisations import batch_blocks
from chalicelib.usecases.scanning.sightings import SightingNotes
from chalicelib.usecases.wallets.lookup import retired_wallets

log = logging.getLogger(__name__)

_SENT = ("native", "log:")
"""Positions of what an address sent itself; what contracts send on is nobody's signature."""


class PointInTimeRecovery:
    """Traces one account network. Nothing else may be at work on it: run it while `put_back` stands."""

    def __init__(self, context: NetworkContext, payer: ChainPayer, deposits: Deposits) -> None:
        network, reader, store = context.network, context.reader, context.store
        self._context, self._network, self._reader, self._store = context, network, reader, store
        self._payer, self._deposits = payer, deposits
        self._matcher, self._claims, self._noting = Matcher(context), Claims(network, reader, store), SightingNotes(context)
        self._adoption, self._end = Adoption(context, payer), RestoreEnd(context)
        self._known: set[str] = set()

    def trace(self, since: int, from_block: int | None = None) -> Trace:
        """Read on to the tip. `since` is when the restore began; `from_block`: the first block to read, where the cursor went on
        meanwhile. Raises Unavailable, Conflict."""
        trace = self._begun_trace(since, from_block)
        self._known = set(self._every_txid())
        self._adoption.read_open()
        contracts = self._matcher.contracts()
        while trace.next <= (tip := self._reader.tip()):
            blocks = self._reader.blocks(trace.next, min(tip, trace.next + batch_blocks(self._network) - 1), contracts)
            if not blocks:
                break
            self._noting.note(blocks)
            strays = list(trace.strays)
            for block in blocks:
                self._adoption.read_nonces(block)
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
        self._store.commit([Save(begun, anew=True)])
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
            paid = self._adoption.withdrawal_paid_by(t, self._coin(t)) if t.sender in wallets else None
            if paid is not None:
                self._adoption.adopt_payment(paid, wallets[t.sender].wallet, txid, fee)
                log.warning("%s: %s has paid %s", self._network.id, txid, paid.id)
                return []
        proven = self._reader.proven(block, moved)
        for t in proven or moved:
            move = self._adoption.open_move(t)
            if move is None and proven:
                move = self._adoption.unrecorded_move(t, self._coin(t), wallets)
            if move is not None:
                self._adoption.adopt_move(move, t, fee)
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

    def _wallets(self) -> dict[str, Placed]:
        """Service wallets by the storage form of their address."""
        form = self._context.form
        found = {form(old.address): Placed(old.wallet, False) for old in retired_wallets(self._store, self._network.id)}
        current = current_wallets(self._store, self._network.id)
        return found | {form(wallet.address): Placed(wallet, True) for wallet in current}

    def _raise_counters(self) -> None:
        """Raise the counters of nonces: the chain's used nonces are never allotted again."""
        for counter in list(self._store.every(NonceCounter)):
            if counter.network == self._network.id:
                used = self._payer.used_nonces(counter.wallet)
                if used > counter.next:
                    self._store.commit([Save(counter.caught_up(used))])

    def book_strays(self, trace: Trace) -> int:
        """As `RestoreEnd.book_strays`."""
        return self._end.book_strays(trace)

    def left(self, trace: Trace, shown: Callable[[Stray], str]) -> list[str]:
        """As `RestoreEnd.left`."""
        return self._end.left(trace, shown)
