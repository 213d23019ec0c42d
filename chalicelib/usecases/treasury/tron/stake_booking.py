"""Postings of stakes: recorded once their block is deep enough, reversed when it falls out of the chain all the same.

As with payments, the block is watched as deep as a reorganisation is followed. Undone, a stake is as if it had never been final:
the poll looks for its transaction again, and asks for another one only where that can never be mined.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.treasury.stakes import Stake, stake_work, staked_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.work import Work
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.given_up import WHY
from chalicelib.usecases.transactions.marks import traces_of
from chalicelib.usecases.transactions.watching import Watch, demand_over
from chalicelib.usecases.treasury.tron.stake_bytes import unlike_signed_stake

log = logging.getLogger(__name__)


class StakeBooking:
    """Books and unbooks the stakes of one network, simulated or real. Needs no key."""

    def __init__(self, context: NetworkContext, finality: Finality, node: StakingNode | None = None) -> None:
        """`node` reads signed bytes; None on a simulated network, where stakes have none."""
        self._context, self._node = context, node
        self._network, self._reader, self._finality = context.network, context.reader, finality
        self._store, self._rules, self._clock = context.store, context.rules, context.clock

    def ripen(self, before: Stake, receipt: Receipt, scanned: Scanned) -> None:
        """Book a stake that a node has in its chain, once that is deep enough and believed. Nothing is booked by a record that is
        not what was signed. Raises Conflict, Unavailable."""
        if scanned.depth(receipt.block_number) < self._network.confirmations:
            return
        if self._altered(before, [attempt for attempt in before.expected if attempt.txid == receipt.txid]):
            return
        asset = self._store.catalogue(self._network.realm).native(self._network.slug).asset
        believed = self._finality.believed(
            receipt, scanned, asset, before.amount, ours=traces_of(self._network, self._rules, before)
        )
        if believed is not None:
            self._settle(before, believed)

    def _settle(self, before: Stake, receipt: Receipt) -> None:
        """It is in the chain for good, done or failed there; either way the chain may have burnt a fee."""
        now = self._clock.now_ms()
        after = replace(
            next_version(before),
            status="confirmed" if receipt.success else "failed",
            reason=None if receipt.success else "the transaction failed on the chain",
            mined=receipt.txid,
            block_number=receipt.block_number,
            block_hash=receipt.block_hash,
            fee=receipt.fee or 0,
            renew=False,
            confirmed_at=now if receipt.success else None,
        )
        entry = self._entry(after)
        changes: list[Change] = [Save(after), Close(stake_work(before)), Open(staked_work(after))]
        self._store.commit([*changes, *([] if entry is None else [Post(entry)])])

    def give_up(self, before: Stake) -> None:
        """It will not be waited for, by an operator's decision; nothing was booked for it. It is watched on: see
        `given_up_watching`."""
        if self._altered(before, before.expected):
            return
        after = replace(next_version(before), status="failed", reason=WHY, renew=False)
        self._store.commit([Save(after), Close(stake_work(before))])

    def _altered(self, stake: Stake, attempts: Sequence[Attempt]) -> bool:
        """Whether the record is not what was signed, with an alarm."""
        node = self._node
        if node is None:
            return False
        wrong = dict.fromkeys(name for each in attempts for name in unlike_signed_stake(self._context, node, stake, each))
        if wrong:
            named = ", ".join(wrong)
            log.error("ALARM %s: stake %s differs from what was signed in %s", self._network.id, stake.id, named)
        return bool(wrong)

    def watch(self, more: Callable[[], bool]) -> None:
        """See that what was final stays in the chain; undo what does not. Raises Unavailable, Failures."""
        watch = Watch(
            "staked", "final stakes", self._network, self._reader, self._store, self._finality,
            self._undo, lambda work: self._store.commit([Close(work)]),
        )  # fmt: skip
        watch.undo_fallen(more)
        watch.let_rest(more)

    def _undo(self, work: Work) -> None:
        stake = self._store.get(Stake, network=self._network.id, id=work.id.rsplit("|", 1)[0])
        if stake is None or stake.mined is None or staked_work(stake) != work:
            demand_over(self._store, work)
            return
        log.warning("%s: the block of stake %s fell out of the chain", self._network.id, stake.id)
        now = self._clock.now_ms()
        booked = self._entry(stake)
        posts = [] if booked is None else [Post(ledger.stake_reversed(booked, stake.mined, stake.round, now))]
        after = replace(
            next_version(stake), status="pending", reason=None, mined=None, block_number=None, block_hash=None, confirmed_at=None,
            fee=0, round=stake.round + 1,
        )  # fmt: skip
        self._store.commit([Save(after), Close(work), Open(stake_work(after)), *posts])

    def _entry(self, stake: Stake) -> JournalEntry | None:
        """The posting of a stake in the chain; None where it moved nothing. Named after the transaction: one stakes once."""
        amount = stake.amount if stake.status == "confirmed" else 0
        if stake.mined is None or not (amount or stake.fee):
            return None
        address = form_of(self._rules, self._network, stake.wallet)
        return ledger.staked(
            stake.mined, stake.round, self._clock.now_ms(), self._network.realm, stake.network, address,
            Amount(stake.asset, amount), Amount(stake.asset, stake.fee),
        )  # fmt: skip
