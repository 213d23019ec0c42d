"""The mempool: a node's rules for nonces, funds and replacement, and outcomes planned beforehand.

The rules and their words follow geth's pool (core/txpool/errors.go), for every family alike.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from chalicelib.chains.sandbox import session
from chalicelib.chains.sandbox.branch import View
from chalicelib.chains.sandbox.ledger import NONCE, Account, Tx, TxState
from chalicelib.chains.sandbox.reads import Reads
from chalicelib.chains.sandbox.session import Write
from chalicelib.chains.sandbox.table import Delete, Item, Key, Put
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.sandbox.sandbox import Outcome

PLAN_MS = 24 * 3_600_000


def short_of(view: View, account: Account, tx: Tx) -> str | None:
    """The reason why `account` can not pay for `tx`, in a node's words; None when it can. `view` reaches down to the account's
    changes."""
    for coin, needed in tx.needs().items():
        has = account.value(view, coin)
        if has < needed:
            what = f"token {coin}: transfer amount exceeds balance" if coin else "insufficient funds for fee and amount"
            return f"{what}: has {has}, needs {needed}"
    return None


class Mempool:
    """Takes payments in and mines them. `step`: milliseconds per block that the clock mines, 0 for none."""

    def __init__(self, reads: Reads, step: int) -> None:
        self._reads, self._step = reads, step

    def submit(self, tx: Tx) -> None:
        """Take `tx` in, mine it at once if nothing holds it back, then what waited for it. Safe to repeat. Raises Refused."""
        session.change(self._reads, lambda view: self._take(view, tx))
        if tx.nonce is not None:
            self.drain(tx.sender)

    def _take(self, view: View, tx: Tx) -> Write | None:
        reads = self._reads
        state = reads.tx(tx.txid)
        if state is not None and state.place(reads.reaching(view, state.lowest())):
            return None
        if tx.stakes:
            account = reads.account(tx.sender)
            short = short_of(reads.reaching(view, account.lowest()), account, tx)
            if short is not None:
                raise Refused(short)
        if tx.nonce is None:
            return session.mining(reads, view, state or TxState(tx), self._step)
        changes: list[Put | Delete] = []
        on_top = 0
        if state is None:
            plan = self._plan_for(view, tx)
            outcome = None if plan is None else plan.doc
            replaces = self._rival(tx)
            if outcome is None and replaces is not None and replaces.tx.reference == tx.reference is not None:
                # The same payment at another fee: what was decided about it holds on, until it is decided otherwise.
                state = TxState(tx, stuck=replaces.stuck, fails=replaces.fails)
            else:
                state = TxState(tx, stuck=outcome == "stick", fails=outcome == "fail")
            if plan is not None:
                changes.append(Delete(plan.key))
                on_top = 0 if state.stuck else reads.network.confirmations - 1
        held_back = self._admit(view, tx) or state.stuck
        if not held_back:
            write = session.mining(reads, view, state, self._step, on_top)
            write.changes += changes
            return write
        if reads.pooled(tx.sender, tx.nonce) == tx.txid and not changes:
            return None
        changes += [Put(reads.tx_key(tx.txid), state.to_doc()), Put(reads.pool_key(tx.sender, tx.nonce), tx.txid)]
        return Write(view.head, changes)

    def _admit(self, view: View, tx: Tx) -> bool:
        """Whether an earlier nonce of the sender is still missing. Raises Refused."""
        reads = self._reads
        nonce = tx.nonce or 0
        account = reads.account(tx.sender)
        view = reads.reaching(view, account.lowest())
        next_nonce = account.value(view, NONCE)
        if nonce < next_nonce:
            raise Refused(f"nonce too low: next nonce {next_nonce}, tx nonce {nonce}")
        short = short_of(view, account, tx)
        if short is not None:
            raise Refused(short)
        rival = self._rival(tx)
        if rival is not None and tx.fee * 10 < rival.tx.fee * 11:
            raise Refused("replacement transaction underpriced")
        return nonce > next_nonce

    def _rival(self, tx: Tx) -> TxState | None:
        """The other payment with the same nonce that is in the pool."""
        other = self._reads.pooled(tx.sender, tx.nonce or 0)
        return None if other is None or other == tx.txid else self._reads.tx(other)

    def drain(self, sender: str | None = None, most: int = 1_000) -> int:
        """Mine what waits and may be mined now, of one sender or of all, `most` at the most; how many blocks that made."""
        reads = self._reads
        mined = 0
        for txid in list(reads.pool(sender)):
            if mined >= most:
                break
            state = reads.tx(txid)
            if state is None or state.stuck or state.tx.nonce is None:
                continue
            account = reads.account(state.tx.sender)
            view = reads.reaching(reads.view(), account.lowest())
            if state.tx.nonce != account.value(view, NONCE) or short_of(view, account, state.tx):
                continue
            try:
                session.change(reads, partial(self._take, tx=state.tx))
            except Refused:
                # The sender's funds went elsewhere since the look above: it waits on.
                continue
            mined += 1
        return mined

    def decide(self, txid: str, outcome: Outcome) -> TxState | None:
        """Record the outcome of a payment that is in no block: now when it is known, else when it is broadcast.

        The payment as it is noted; None when it is not known yet.
        """
        known: list[TxState] = []

        def decide(view: View) -> Write | None:
            known.clear()
            state = self._reads.tx(txid)
            if state is None:
                key = self._plan_key(f"tx#{txid}")
                return Write(view.head, [Put(key, outcome, view.now + PLAN_MS)])
            noted = replace(state, stuck=outcome == "stick", fails=outcome == "fail")
            known.append(noted)
            if noted == state or state.place(self._reads.reaching(view, state.lowest())):
                return None
            return Write(view.head, [Put(self._reads.tx_key(txid), noted.to_doc())])

        session.change(self._reads, decide)
        return known[0] if known else None

    def plan(self, reference: str, outcome: Outcome) -> None:
        """The new payment with this reference has `outcome`, and no other one, however alike it is."""
        key = self._plan_key(f"pay#{reference}")
        session.change(self._reads, lambda view: Write(view.head, [Put(key, outcome, view.now + PLAN_MS)]))

    def forget(self, reference: str) -> None:
        """Take back `plan`."""
        key = self._plan_key(f"pay#{reference}")
        session.change(self._reads, lambda view: Write(view.head, [Delete(key)]))

    def _plan_key(self, name: str) -> Key:
        return f"plan#{self._reads.network.id}", name

    def _plan_for(self, view: View, tx: Tx) -> Item | None:
        """The outcome planned for a new payment: by its id, else by its reference."""
        names = [f"tx#{tx.txid}", *([f"pay#{tx.reference}"] if tx.reference is not None else ())]
        found = (self._reads.table.get(self._plan_key(name)) for name in names)
        return next((item for item in found if item is not None and (item.expires or 0) > view.now), None)
