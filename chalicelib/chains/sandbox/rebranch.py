"""Reorganisations: other blocks from some height on, with or without the transactions of the old ones.

The new branch's blocks, and what their transactions change, are written first, under a salt that nothing names yet: nobody
sees them. Then one conditional write of the head makes the branch valid. If the head changed in the meantime, what was
written stays behind unseen, and everything begins anew with another salt.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from chalicelib.chains.sandbox import session
from chalicelib.chains.sandbox.branch import Stretch, View
from chalicelib.chains.sandbox.ledger import NONCE, Account, Place, TxState
from chalicelib.chains.sandbox.mempool import short_of
from chalicelib.chains.sandbox.reads import Mined, Reads
from chalicelib.chains.sandbox.session import Write
from chalicelib.chains.sandbox.table import MOST_CHANGES, Delete, Put
from chalicelib.usecases.sandbox.sandbox import Reorganised


@dataclass(slots=True)
class _Branch:
    """A new branch in the making: `old` is the chain as it is, `new` as it will be, from block `first` on."""

    reads: Reads
    old: View
    new: View
    salt: str
    first: int
    time: int
    accounts: dict[str, Account] = field(default_factory=dict)
    staged: list[Put | Delete] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    remined: list[str] = field(default_factory=list)

    def account(self, address: str) -> Account:
        if address not in self.accounts:
            # Tidied as the old branch sees it, which is still the valid one: its changes stay.
            self.accounts[address] = session.tidied(self.reads, self.old, self.reads.account(address))
        return self.accounts[address]

    def fits(self, state: TxState) -> bool:
        """Whether a block of the new branch can hold it: its nonce is the next one and its sender can pay."""
        tx = state.tx
        if state.stuck:
            return False
        if tx.nonce is None and not tx.stakes:
            return True
        account = self.account(tx.sender)
        view = self.reads.reaching(self.new, account.lowest())
        return (tx.nonce is None or account.value(view, NONCE) == tx.nonce) and short_of(view, account, tx) is None

    def mine(self, number: int, state: TxState) -> TxState:
        """Put it in the block of the same number that it was in; the transaction with its new place."""
        tx, success = state.tx, not state.fails
        stretch = Stretch(number, self.first - 1, 0, 0, self.first - 1, self.time)
        block = Mined(number, self.salt, stretch, tx, success)
        self.staged.append(Put(self.reads.block_key(number, self.salt), block.to_doc()))
        for address, deltas in tx.deltas(success).items():
            self.accounts[address] = self.account(address).with_change(number, self.salt, deltas)
        self.remined.append(tx.txid)
        return state.placed(Place(number, self.salt, success), self.reads.reaching(self.old, state.lowest()))

    def drop(self, state: TxState, pool: bool) -> None:
        """Leave it out; with `pool`, a wallet's payment waits in the mempool for the next block that can hold it."""
        tx = state.tx
        self.dropped.append(tx.txid)
        if pool and tx.nonce is not None:
            self.staged.append(Put(self.reads.pool_key(tx.sender, tx.nonce), tx.txid))

    def stage(self) -> None:
        """Write what nobody sees yet, in parts, as long as the head is the one that was read. Raises Contended."""
        everything = [*self.staged, *(Put(self.reads.account_key(a), account.to_doc()) for a, account in self.accounts.items())]
        for start in range(0, len(everything), MOST_CHANGES):
            self.reads.table.write(self.reads.head_key, self.old.head.version, None, everything[start : start + MOST_CHANGES])


def rebranch(
    reads: Reads, step: int, first_of: Callable[[View], int], remine: bool, other: TxState | None = None, token: str | None = None
) -> Reorganised:
    """Replace the blocks from `first_of(view)` on. Raises Unavailable, and whatever `first_of` does.

    `other` is a transaction of those blocks as it shall be from now on: stuck, or with another success. A `token` does it once.
    """
    result: list[Reorganised] = []

    def decide(view: View) -> Write | None:
        before = reads.done(token)
        if before is not None:
            start, tip, dropped, remined = before
            result[:] = [Reorganised(start, tip, tuple(dropped), tuple(remined))]
            return None
        first = first_of(view)
        view = reads.reaching(view, first - 1)
        new, end, archived = view.forked(first, secrets.token_hex(6), step)
        branch = _Branch(reads, view, new, new.salt_at(first), first, end.time)
        last: list[Put | Delete] = [session.closing(reads, new, end)]
        last += _kept_times(reads, view, first - 1)
        last += [Put(reads.fork_key(start), salt) for start, salt in archived]
        for mined in reads.stored(view, first, view.tip):
            if mined.tx is None or mined.number > view.tip:
                continue
            state = reads.tx(mined.tx.txid) or TxState(mined.tx)
            chosen = other is not None and other.tx.txid == mined.tx.txid
            if other is not None and chosen:
                state = replace(state, stuck=other.stuck, fails=other.fails)
            kept = remine and branch.fits(state)
            if kept:
                state = branch.mine(mined.number, state)
            else:
                branch.drop(state, pool=remine)
            if kept or chosen:
                # What is told of the chosen one must not be seen before the branch is.
                (last if chosen else branch.staged).append(Put(reads.tx_key(mined.tx.txid), state.to_doc()))
        if token is not None:
            last.append(reads.doing(token, [first, new.tip, branch.dropped, branch.remined]))
        branch.stage()
        result[:] = [Reorganised(first, new.tip, tuple(branch.dropped), tuple(branch.remined))]
        return Write(new.head, last)

    session.change(reads, decide)
    return result[0]


def _kept_times(reads: Reads, view: View, kept: int) -> list[Put]:
    """What keeps the times of the blocks up to `kept` when the end of their stretch falls out."""
    if kept == 0:
        return []
    salt = view.salt_at(kept)
    if kept > view.head.height:
        head = view.head
        stretch = Stretch(kept, head.height, head.time, head.step, kept, view.grown_time(kept))
    else:
        holding = reads.stored(view, kept, kept)[0]
        if holding.number == kept:
            return []
        stretch = holding.stretch.cut(kept)
    return [Put(reads.block_key(kept, salt), Mined(kept, salt, stretch, None, False).to_doc())]
