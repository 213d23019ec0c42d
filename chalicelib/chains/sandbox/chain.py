"""One simulated network and all its changes: deposits from outside, mining, reorganisations, payments, their outcomes."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace

from chalicelib.chains.sandbox import session
from chalicelib.chains.sandbox.branch import MAX_DEPTH, View
from chalicelib.chains.sandbox.ledger import NATIVE, NONCE, STAKED, Tx, TxState
from chalicelib.chains.sandbox.mempool import Mempool, short_of
from chalicelib.chains.sandbox.reads import Ahead, Reads, not_ahead
from chalicelib.chains.sandbox.rebranch import rebranch
from chalicelib.chains.sandbox.session import Write
from chalicelib.chains.sandbox.table import SandboxTable
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.encoding.public_keys import address_of
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import InsufficientFunds, Unavailable
from chalicelib.usecases.sandbox.sandbox import Decided, MinedTx, Outcome, Reorganised, State, TooDeep

_FAUCET = hashlib.sha512(b"the outside of the simulated networks").digest()
"""Stands for a public key: the address that deposits without a sender come from. Nobody has the private key."""


class _Moved(Exception):
    """The transaction left its block while we were at it."""


class SandboxChain:
    """`block_seconds` above 0 lets the clock mine a block each so many seconds. Raises ValueError for a live network."""

    def __init__(
        self, network: Network, table: SandboxTable, clock: Clock, block_seconds: float = 0.0, ahead: Ahead = not_ahead
    ) -> None:
        self.network = network
        self.reads = Reads(network, table, clock, ahead)
        self._step = round(block_seconds * 1000)
        self._mempool = Mempool(self.reads, self._step)

    def form(self, address: str) -> str:
        """An address or contract as it is stored and compared."""
        return self.reads.form(address)

    def open(self) -> None:
        """Start the clock's mining, or give it its new pace. A new pace costs a block; nothing to do costs one read."""

        def decide(view: View) -> Write | None:
            if view.head.version == 0:
                return Write(replace(view.head, time=max(view.now, view.head.time), step=self._step, ahead=view.ahead))
            if view.head.step == self._step:
                return None
            after, stretch = view.extended(1, self._step)
            return Write(after.head, [session.closing(self.reads, after, stretch)])

        session.change(self.reads, decide)

    def catch_up(self) -> int:
        """Mine one block when the sandbox's clock was moved since the last one was written; the tip. Raises Unavailable."""

        def decide(view: View) -> Write | None:
            if view.head.ahead >= view.ahead:
                return None
            after, stretch = view.extended(1, self._step)
            return Write(after.head, [session.closing(self.reads, after, stretch)])

        session.change(self.reads, decide)
        return self.tip()

    def tip(self) -> int:
        """Number of the newest block. Raises Unavailable."""
        return self.reads.view().tip

    def deposit(
        self, recipient: str, contract: str | None, amount: int, sender: str | None = None, token: str | None = None
    ) -> MinedTx:
        """Pay `amount` units from outside (which has as much as it takes), in a block of its own. Raises Unavailable.

        The same `token` always means the same transaction: it is in the chain once, however often this is called.
        """
        if amount <= 0:
            raise ValueError("a deposit moves more than nothing")
        seed = f"deposit|{self.network.id}|{secrets.token_hex(32) if token is None else token}"
        txid = hashlib.sha256(seed.encode()).hexdigest()
        origin = address_of(self.network.slug, _FAUCET) if sender is None else sender
        tx = Tx(
            ("0x" if self.network.family == "evm" else "") + txid, self.form(origin), self.form(recipient),
            None if contract is None else self.form(contract), amount, 0, None,
        )  # fmt: skip
        self._mempool.submit(tx)
        view, state = self.reads.tx_now(tx.txid)
        place = state.place(view) if state is not None else None
        if place is None:
            raise Unavailable("a reorganisation dropped the deposit at once")
        view = self.reads.reaching(view, place.number)
        time = self.reads.time_of(view, place.number)
        return MinedTx(tx.txid, place.number, self.reads.hash_at(view, place.number, tx.txid), time, tx.sender)

    def mine(self, count: int, token: str | None = None) -> int:
        """Mine `count` blocks, what waits in the mempool first; the new tip. Raises Unavailable.

        The same `token` mines them once. What died between the mempool's blocks and the last one mines those of the mempool that
        are left, and `count` in all: a few more, never fewer.
        """
        done = self.reads.done(token)
        if done is not None:
            return int(done)
        left = count - self._mempool.drain(most=count)
        tips: list[int] = []

        def decide(view: View) -> Write | None:
            before = self.reads.done(token)
            if before is not None:
                tips[:] = [before]
                return None
            after, stretch = view.extended(left, self._step)
            tips[:] = [after.tip]
            kept = [] if token is None else [self.reads.doing(token, after.tip)]
            return Write(after.head, [*([session.closing(self.reads, after, stretch)] if left else []), *kept])

        if left > 0 or token is not None:
            session.change(self.reads, decide)
        return tips[0] if token is not None else self.tip()

    def reorganise(self, depth: int, remine: bool, token: str | None = None) -> Reorganised:
        """Replace the last `depth` blocks by one more than they were. The same `token` does it once. Raises TooDeep, Unavailable.

        Their transactions are in no block any more, or, with `remine`, in the new blocks of the same numbers.
        """

        def first(view: View) -> int:
            most = min(view.tip, MAX_DEPTH)
            if not 1 <= depth <= most:
                raise TooDeep(most)
            return view.tip - depth + 1

        return rebranch(self.reads, self._step, first, remine, token=token)

    def check(self, tx: Tx) -> None:
        """Raise InsufficientFunds when the sender can not pay for `tx` now. Raises Unavailable."""
        account = self.reads.account(tx.sender)
        short = short_of(self.reads.reaching(self.reads.view(), account.lowest()), account, tx)
        if short is not None:
            raise InsufficientFunds(short)

    def submit(self, tx: Tx) -> None:
        """Take in a wallet's payment; mined at once unless its nonce must wait. Safe to repeat. Raises Refused, Unavailable."""
        self._mempool.submit(tx)

    def stake(self, txid: str, address: str, amount: int) -> None:
        """Lock `amount` units of the native coin of `address`, mined at once. The chain does it by itself: no signature is asked
        for. The same `txid` counts once. Raises Refused (too little), Unavailable."""
        place = self.form(address)
        self._mempool.submit(Tx(txid, place, place, None, amount, 0, None, stakes=True))

    def staked(self, address: str) -> int:
        """Units that are locked at the newest block. Raises Unavailable."""
        return self.reads.value_now(self.form(address), STAKED)

    def balance(self, address: str, contract: str | None = None) -> int:
        """Units at the newest block. Raises Unavailable."""
        return self.reads.value_now(self.form(address), NATIVE if contract is None else self.form(contract))

    def nonce(self, address: str) -> int:
        """Transactions of `address` in blocks. Raises Unavailable."""
        return self.reads.value_now(self.form(address), NONCE)

    def plan(self, reference: str, outcome: Outcome) -> None:
        """The payment with this reference has `outcome` when it is broadcast. Kept for a day. Raises Unavailable."""
        self._mempool.plan(reference, outcome)

    def forget(self, reference: str) -> None:
        """Take back `plan`. Raises Unavailable."""
        self._mempool.forget(reference)

    def settle(self, txid: str, outcome: Outcome) -> State:
        """Decide the outcome of a payment: now, or when it is broadcast ("planned"). Raises Decided, Refused, Unavailable.

        A payment in a block that is not final gets its other outcome by a reorganisation from that block on, in which
        every other transaction keeps its place where it still can.
        """
        for _ in range(session.TRIES):
            view, state = self.reads.tx_now(txid)
            place = state.place(view) if state is not None else None
            if state is None or place is None:
                if (unmined := self._settle_unmined(txid, outcome)) is not None:
                    return unmined
                continue
            if outcome != "stick" and place.success == (outcome == "confirm"):
                missing = self.network.confirmations - (view.tip - place.number + 1)
                if missing > 0:
                    self.mine(missing)
                return "succeeded" if place.success else "failed"
            wanted = replace(state, stuck=outcome == "stick", fails=outcome == "fail")
            try:
                rebranch(self.reads, self._step, lambda now: self._undecided(txid, now), True, wanted)
            except _Moved:
                continue
            if outcome == "stick":
                return "stuck"
        raise Unavailable(f"{self.network.id} changes too quickly")

    def _settle_unmined(self, txid: str, outcome: Outcome) -> State | None:
        """Decide what becomes of a payment that is in no block; None: it came into one meanwhile."""
        noted = self._mempool.decide(txid, outcome)
        if noted is None:
            return "planned"
        if outcome != "stick":
            self._mempool.submit(noted.tx)
        if self._where(txid) is not None:
            return None
        return "stuck" if outcome == "stick" else "waiting"

    def _where(self, txid: str) -> int | None:
        view, state = self.reads.tx_now(txid)
        place = state.place(view) if state is not None else None
        return None if place is None else place.number

    def _undecided(self, txid: str, view: View) -> int:
        """The block that holds the payment, which is not final yet. Raises Decided, _Moved."""
        state: TxState | None = self.reads.tx(txid)
        place = state.place(self.reads.reaching(view, state.lowest())) if state is not None else None
        if place is None:
            raise _Moved
        confirmations = view.tip - place.number + 1
        if confirmations >= self.network.confirmations:
            what = "succeeded" if place.success else "failed"
            raise Decided(f"the payment {what} and has {confirmations} confirmations, which is final")
        return place.number
