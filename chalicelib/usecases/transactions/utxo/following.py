"""Follows signed UTXO transactions until nothing can change them any more. Needs no key: it sends bytes that are signed.

The problem: a second payment with other inputs is safe only once the first can never be mined, and no node can say that. So the
chain alone ends a record (money rules 8 and 13):

* an attempt is in a block, deep enough, by quorum: the kind settles it, in one transaction. That two are is an alarm.
* its block falls out of the chain: the kind undoes its settlement, and the same bytes are sent again. A settled record is watched
  as deep as reorganisations are followed; then its work ends.
* in no block for too long: the function that signs is asked for a replacement, a bounded number of times.
* dead: deeper than a reorganisation is followed, another transaction was met that spends an input of every attempt, and every node
  denies them (`CoinAttempts.fate`); or an operator gave it up. The kind gives back what it had. It is watched for as many blocks
  again: if the chain has it after all, an operator is told.

A record is settled or dead only where it is what was signed, and dead only where that is proved: any of its fields may have been
altered, and what was given back for a transaction that is mined would be paid twice.

Each of these commits by itself, on the version of the record that was read. A crash leaves the record as it was, or as it is to be;
its open work stays until the last step, and the next poll goes on. Polls that run at once conflict, and one commits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, Literal, Protocol

from chalicelib.domain.chain import Receipt
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.withdrawals import Priority
from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.notes import Notes
from chalicelib.usecases.transactions.round_robin import Asking
from chalicelib.usecases.transactions.sorting import Out, Sorted
from chalicelib.usecases.transactions.utxo.attempts import CoinAttempts
from chalicelib.usecases.transactions.utxo.kinds import R
from chalicelib.usecases.transactions.utxo.proofs import unproved

log = logging.getLogger(__name__)

Due = Literal["always", "by chain", "never"]


class FollowedKind(Protocol[R]):
    """The records of one kind on one network. What a method does, it commits; it raises Unavailable, Conflict."""

    name: str

    def records(self, works: Sequence[Work]) -> Sequence[R | None]: ...

    def due(self, record: R) -> Due:
        """When one that is not settled is looked at: `by chain` where blocks and time decide."""
        ...

    def followed(self, id: str) -> R | None:
        """The record, where the chain decides on it. Of another one it does what is due, and gives None."""
        ...

    def priority(self, record: R) -> Priority: ...

    def in_flight(self, record: R) -> bool:
        """Whether all of it is booked. Where it is not, the function that signs goes on with it."""
        ...

    def halted(self) -> bool:
        """Whether nothing of its kind is sent now, or taken for lost."""
        ...

    def ask(self, record: R, changes: Sequence[Change]) -> None:
        """Ask the function that signs to go on with it; `changes` commit with that."""
        ...

    def settle(self, record: R, txid: str, receipt: Receipt) -> None: ...

    def unsettle(self, record: R) -> None: ...

    def finish(self, record: R) -> None:
        """No reorganisation reaches it."""
        ...

    def die(self, record: R) -> None: ...

    def owes(self, record: R) -> bool:
        """Whether a dead one still has something to give back."""
        ...

    def bury(self, record: R) -> bool:
        """Give back what a dead one still has; whether that was all done before."""
        ...

    def forget(self, record: R) -> None:
        """End the work of one that was watched long enough after its death."""
        ...


class UtxoFollowing(Generic[R]):
    """One kind on one network."""

    def __init__(
        self,
        context: NetworkContext,
        payer: CoinPayer,
        renewals: RenewalRules,
        finality: Finality,
        broadcast: Callable[[str], None],
        answers: Answers,
        kind: FollowedKind[R],
    ) -> None:
        """`broadcast` as in `CoinAttempts`."""
        self._network, self._store, self._clock = context.network, context.store, context.clock
        self._renewals, self._finality, self._answers = renewals, finality, answers
        self._payer, self._rules = payer, context.rules
        self._attempts = CoinAttempts(context, payer, finality, broadcast, answers)
        self._kind: FollowedKind[R] = kind
        self.waits_for_scan = False
        """As in `Settlement`."""

    def follow(self, lanes: Sequence[WorkKind], more: Callable[[], bool]) -> int:
        """Look at the records that are due, and at some of the others (`transactions.sorting`); how many.

        Stops when `more` says so. Raises Unavailable, Failures.
        """
        self.waits_for_scan = False
        with Each(f"{self._network.id}: {self._kind.name}") as each:
            return sum([self._lane(lane, more, each) for lane in lanes])

    def _lane(self, lane: WorkKind, more: Callable[[], bool], each: Each) -> int:
        found, scanned, now = Sorted(), None, self._clock.now_ms()
        for works in pages_of(self._store, lane, self._network.id):
            scanned = scanned or self._finality.scanned()
            records = self._kind.records(works)
            outs = [self._out(work, record, scanned, now) for work, record in zip(works, records, strict=True)]
            found.add([out for out in outs if out is not None], Notes(self._network, self._store, scanned), now)
        if scanned is None:
            return 0
        self.waits_for_scan |= found.ripens
        due, quiet = found.by_place()
        at = scanned
        asking = Asking(self._network, self._store, self._clock, lane)
        return asking.take(
            due, quiet, more, lambda work: each.take(work.id, partial(until_settled, partial(self._look, work.id, at)))
        )

    def _out(self, work: Work, record: R | None, scanned: Scanned, now: int) -> Out | None:
        """None for one that nothing is to be done about: settled, watched, and still in the chain."""
        if record is None:
            return Out(work, asks=True)
        if record.state == "settled":
            number = record.block_number or 0
            stands = self._answers.hash_at(number, scanned) == record.block_hash
            return None if stands and number > scanned.height - self._network.reorg_depth else Out(work, asks=True)
        due = self._kind.due(record)
        if due != "by chain":
            return None if due == "never" else Out(work, asks=True)
        return self._attempts.out(work, record, self._needed(record), overdue=self._overdue(record, now))

    def _look(self, id: str, scanned: Scanned) -> None:
        record = self._kind.followed(id)
        if record is None:
            return
        demand_known(record)
        if record.state == "signed":
            self._await(record, scanned)
        elif record.state == "settled":
            self._watch(record, scanned)
        elif self._died(record, scanned) and self._kind.bury(record) and self._attempts.watched_enough(record, scanned):
            self._kind.forget(record)

    def _needed(self, record: R) -> list[str]:
        """The coins that each of its attempts spends: those of the first."""
        return [coin.outpoint for coin in record.spends(record.signed[-1])]

    # In the chain, or not

    def _await(self, record: R, scanned: Scanned) -> None:
        found, somewhere = self._attempts.mined(record, scanned)
        if found is not None:
            txid, receipt = found
            self._count(record, txid, receipt, scanned)
            return
        if somewhere or not self._kind.in_flight(record) or self._kind.halted():
            return
        fate, record = self._attempts.fate(record, self._needed(record), scanned)
        if fate == "possible":
            self._ask_to_replace(record)
        elif fate == "dead" and not self._altered(record, record.txids):
            self._kind.die(record)

    def _died(self, record: R, scanned: Scanned) -> bool:
        """Whether a record that says that it is dead is, while it has something to give back: it may have been altered."""
        if not self._kind.owes(record):
            return True
        if scanned.unsure or self._altered(record, record.txids):
            return False
        if self._attempts.proved_dead(record, self._needed(record), scanned):
            return True
        log.error("ALARM %s: %s differs from what was signed in its state: it can be mined", self._network.id, record.id)
        return False

    def _altered(self, record: R, txids: Sequence[str]) -> bool:
        """Whether one of these attempts is not what was signed, with an alarm."""
        each = (unproved(self._payer, self._rules, self._network, record, record.attempt(txid)) for txid in txids)
        wrong = dict.fromkeys(name for names in each for name in names)
        if wrong:
            named = ", ".join(wrong)
            log.error("ALARM %s: %s differs from what was signed in %s", self._network.id, record.id, named)
        return bool(wrong)

    def _count(self, record: R, txid: str, receipt: Receipt, scanned: Scanned) -> None:
        if scanned.depth(receipt.block_number) < self._network.confirmations:
            self.waits_for_scan |= scanned.tip - receipt.block_number + 1 >= self._network.confirmations
            self._attempts.doubted(record, None)
            return
        if not self._kind.in_flight(record) or self._altered(record, [txid]):
            return
        believed = self._finality.believed(receipt, scanned, record.asset, record.total)
        if believed is not None:
            self._kind.settle(record, txid, believed)

    def _watch(self, record: R, scanned: Scanned) -> None:
        """See that it stays in the chain as deep as a reorganisation is followed; undo its settlement when it does not."""
        number = record.block_number or 0
        found = self._answers.hash_at(number, scanned)
        if found is None:
            return  # the node is behind, or a shorter branch has won for a moment
        if found != record.block_hash:
            log.warning("%s: the block that settled %s fell out of the chain", self._network.id, record.id)
            self._kind.unsettle(record)
        elif number <= scanned.height - self._network.reorg_depth:
            self._kind.finish(record)

    # Stuck

    def _ask_to_replace(self, record: R) -> None:
        newest, now = record.newest, self._clock.now_ms()
        if newest is None:
            return
        changes: list[Change] = []
        if newest.raw is not None and not record.renew:
            if not self._overdue(record, now):
                return
            replaced = len(record.earlier)
            if self._renewals.worn_out(replaced):
                log.error("ALARM %s: %s was replaced %d times and is in no block", self._network.id, record.id, replaced)
                return
            changes.append(Save(replace(record, renew=True).next(now)))
        self._kind.ask(record, changes)  # at every poll until it is done: a command may be lost

    def _overdue(self, record: R, now: int) -> bool:
        waited = now - max(0 if record.newest is None else record.newest.signed_at, record.updated_at)
        return waited >= self._renewals.patience(self._kind.priority(record), self._network.block_time, len(record.earlier))
