"""Signs and sends our transactions on account networks: the guards of payouts, moves (loans among them) and stakes.

The problem: a payment that is signed twice may be paid twice. Its bytes are out of our hands once a node has them, no answer of a
node takes them back, and the process may die between any two lines. So

1. the record of the order is stored before a key is asked, with its nonce, which was allotted to it alone (on Tron: its expiry),
   and with its exact unsigned bytes;
2. the switches are read: what pays others rests on the kill switch, what stays ours on the point-in-time guard (`_rests_on`);
3. the bytes are proved against the order, and the order against what was approved (`Attempts.proved`); of first bytes the fee is
   held against that of equal ones built now, by the node's word: it may be `RenewalRules.times` of it. Where fees have risen since
   they were built they go on, where they fell by more they are built anew;
4. both readers make the same digest of the order, the key signs it, and both read the signed bytes alike (`two_readers`);
5. the signed bytes are stored, in one transaction with their posting, on the condition that nobody touched a switch since 2.
   Of two workers that sign one stores; what is not stored is never sent. The first signature of an order commits with an item
   that is never changed (`first_signatures`): an order whose record was altered until it looks unsigned is not signed anew. Where
   it has no nonce (Tron), nothing else refuses that, and each attempt commits with such an item, by its number. Whoever deletes
   these items too, or writes over them, with rights on the tables, is not stopped;
6. what is stored is sent, as often as it takes, after the switches were asked once more (`send`).

A crash up to 5 leaves the order unsigned, and the next try begins at 2 with the same bytes. A crash after 5 leaves signed bytes,
which the poll sends: whoever sends them sends the same ones.

A replacement (`again`) is a second signature of one order, the moment of danger. It is made only where at most one of all attempts
can ever be mined, by signed bytes, the items of 5, blocks and nodes: a record may be altered, or put back to what it once was:

* the newest attempt is what the wallet's own key signed, and under the id on record: so it has the nonce that the new one gets;
* without nonces (Tron) the attempts on record are all that were ever signed, by the items of 5, and every one has expired, by
  every node's word and by the blocks (`losses.replaceable`). The gap: an order that had been replaced before there were such items
  can be put back to its first attempt, which is believed without one where the order's first signature is there;
* no attempt has a receipt; the order was replaced less often than it may be; the new fee stays within its bound.

Then steps 2 to 6, and what was replaced is kept beside it: whichever of them the chain takes, that one has paid.

Trusted are the wallets and watched addresses of the table `chain`: whoever can write these rows can have moves go to an address of
his own, a cold wallet's without a bound, and top-ups each within its bound and without one for a day. The functions that sign
(`payout`, `collect`) have no right to write that table; the API, the polls and the block scans have (`infra.policies`).

A kind says what an order is made of and what its signature posts (`Attempts`). What a receipt and a loss mean for it, it says where
it is followed. To stop a signature of every kind, a guard goes into `_signed`.

The engine stops where kinds have nothing in common. What is paid, and out of what, each builds by itself (`payouts.orders`,
`moves.building`, `tron.staking`); and only a stake's replacement is made of its record, so only stakes answer in `altered`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.usecases.base.kill_switch import put_back, rests_on, rests_on_tables, stopped
from chalicelib.usecases.base.side_by_side import meanwhile
from chalicelib.usecases.ports.accounts import Opened
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import Order, SecondReader
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.expiry_votes import EveryNode
from chalicelib.usecases.transactions.first_signatures import attempt_signature, signed_before, unlike_attempts
from chalicelib.usecases.transactions.losses import Lifetimes, has_nonces, replaceable, sent_from
from chalicelib.usecases.transactions.replacement_bounds import OutSigned, worn_out
from chalicelib.usecases.transactions.signed_bytes import unlike_signed
from chalicelib.usecases.transactions.two_readers import sign_read_twice

log = logging.getLogger(__name__)


class Signs(Lifetimes, Protocol):
    """What the engine needs of a `ChainPayer` or a `StakingNode`."""

    def digest(self, unsigned: str) -> bytes: ...

    def assemble(self, unsigned: str, signature: Signature) -> Signed: ...

    def opened(self, raw: str) -> Opened: ...

    def broadcast(self, raw: str) -> None: ...

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool: ...


class Ordered(OutSigned, Protocol):
    """The record of one order: `PaymentOrder`, `Move`, `Stake`."""

    @property
    def asset(self) -> AssetId: ...

    @property
    def amount(self) -> int: ...

    @property
    def newest(self) -> Attempt | None: ...

    @property
    def was_signed(self) -> bool: ...

    @property
    def unsigned(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Proved:
    """Bytes that do what was approved: the most that they can cost, in units of the native coin, and the conditions of the store
    that their signature rests on, beside the switches."""

    fee: int
    rests_on: Sequence[Change] = ()


R = TypeVar("R", bound=Ordered)
P = TypeVar("P", bound=Proved)


class Attempts(Protocol[R, P]):
    """One kind of transaction, for one order. Every method but `facts`, `altered` and `differs` may raise Unavailable."""

    @property
    def network(self) -> Network: ...

    @property
    def payer(self) -> Signs: ...

    @property
    def others(self) -> bool:
        """Whether its money leaves our wallets: the kill switch then stops it."""
        ...

    @property
    def name(self) -> str:
        """The order in alarms."""
        ...

    def facts(self, record: R) -> Order:
        """The order by its approved records, with the newest bytes and without a fee."""
        ...

    def proved(self, record: R) -> P:
        """Raises OrderMismatch, with an alarm, unless the unsigned bytes do exactly what was approved (money rule 7)."""
        ...

    def quoted(self, record: R) -> int | None:
        """The most that equal bytes could cost if they were built now, in units of the native coin; None where bytes of this kind
        state no fee (Tron's stakes and loans pay by their size), or as `replacement_bounds.quoted`. Asked in another thread while
        `proved` runs: it changes nothing, and reads nothing that `proved` notes."""
        ...

    def cure(self, record: R, mismatch: OrderMismatch) -> None:
        """Let an order go on that `proved` refused and that nothing was signed for, or end it. Raises Conflict."""
        ...

    def altered(self, before: R) -> list[str]:
        """In what `before` is not what its signed bytes do, where the bytes of a replacement are made of the record."""
        ...

    def differs(self, before: R, named: str) -> None:
        """The alarm that a record differs from what was signed in what is `named`."""
        ...

    def renewed(self, before: R) -> R | None:
        """`before` with other unsigned bytes, of the same nonce or of a new expiry; None where the chain would refuse them."""
        ...

    def proved_again(self, before: R, wanted: R) -> P | None:
        """As `proved`, of a replacement; None, with an alarm, where it would cost more than it may (money rule 14)."""
        ...

    def signature(self, record: R, digest: bytes) -> Signature:
        """By the key of the order's own wallet or address, and no other. Raises OrderMismatch."""
        ...

    def store(self, record: R, signed: Signed, proved: P, rests_on: Sequence[Change]) -> R:
        """Commit the first attempt of `record` with what it posts, and with `rests_on`: conditions, and on Tron the attempt's own
        item. Raises Conflict."""
        ...

    def store_again(self, before: R, wanted: R, signed: Signed, proved: P, rests_on: Sequence[Change]) -> R:
        """Commit the replacement with `rests_on`, as `store`, and keep the attempt that it replaces. Raises Conflict."""
        ...


class AccountSigning:
    """For every account network. Holds no key: an order's `Attempts` do."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
        every_node: EveryNode,
        second_of: Callable[[Network], SecondReader[Order] | None],
    ) -> None:
        self._store, self._rules, self._clock, self._reader_of = store, rules, clock, reader_of
        self._renewals, self._every_node, self._second_of = renewals, every_node, second_of

    def first(self, attempts: Attempts[R, P], record: R) -> R:
        """Sign and store the first attempt. Raises OrderMismatch, PaymentsStopped, Conflict, Unavailable."""
        if record.was_signed or signed_before(self._store, record.id):
            # Its state was altered, or its bytes were taken away. A first attempt asks nobody whether another one can be mined.
            log.error("ALARM %s: %s was signed before, and is to be signed for the first time", attempts.network.id, attempts.name)
            raise OrderMismatch(f"{attempts.name} was signed before")
        rests = self._rests_on(attempts)
        try:
            # Both ask nodes, at the same time: what either says is no older at the signature than one after the other.
            with meanwhile(lambda: attempts.quoted(record)) as quoted:
                proved = attempts.proved(record)
            self._demand_priced(attempts, quoted(), proved.fee)
        except OrderMismatch as mismatch:
            attempts.cure(record, mismatch)
            raise
        signed = self._signed(attempts, record, proved)
        return attempts.store(record, signed, proved, [*proved.rests_on, *rests, *self._numbered(attempts, record, 1, signed)])

    def again(self, attempts: Attempts[R, P], before: R) -> R | None:
        """Sign and store what replaces the newest attempt; None while that can not be, or need not any more. Raises as `first`."""
        network, payer = attempts.network, attempts.payer
        newest = before.newest
        if newest is None:
            return None
        facts = attempts.facts(before)
        unlike = unlike_signed(payer, self._rules, network, newest.raw, newest.txid, facts.unsigned, facts.sender)
        if unlike := [*unlike, *attempts.altered(before)]:
            named = ", ".join(unlike)
            attempts.differs(before, named)
            raise OrderMismatch(f"{attempts.name} differs from what was signed in {named}")
        if worn_out(network, self._renewals, before) or not self._replaceable(attempts, before, newest, facts):
            return None
        wanted = attempts.renewed(before)
        if wanted is None:
            return None
        rests = self._rests_on(attempts)
        proved = attempts.proved_again(before, wanted)
        if proved is None:
            return None
        signed = self._signed(attempts, wanted, proved)
        numbered = self._numbered(attempts, before, len(before.earlier) + 2, signed)
        done = attempts.store_again(before, wanted, signed, proved, [*proved.rests_on, *rests, *numbered])
        log.info("%s: %s replaces %s, which no block took", network.id, signed.txid, newest.txid)
        return done

    def send(self, attempts: Attempts[R, P], record: R) -> bool:
        """Send the newest stored bytes, unless a switch forbids it by now or the node refuses them; whether they went. Raises
        Unavailable.

        Signed bytes stay valid: whether the chain ever takes them, it alone decides. The poll sends them again.
        """
        network, newest = attempts.network, record.newest
        if newest is None or newest.forgotten:
            return False
        if stopped(self._store, network.realm) if attempts.others else put_back(self._store, network.realm) is not None:
            return False
        try:
            attempts.payer.broadcast(newest.raw)
        except Refused as refused:
            log.warning("%s: the node refuses %s for now: %s", network.id, attempts.name, refused)
            return False
        return True

    def _demand_priced(self, attempts: Attempts[R, P], quoted: int | None, fee: int) -> None:
        """Raises OrderMismatch, with an alarm, where first bytes may cost far more than equal ones do now (`quoted`)."""
        if quoted is None or fee <= quoted * self._renewals.times:
            return
        most = quoted * self._renewals.times
        log.error("ALARM %s: %s may cost %d, and %d is the most by the fees of now", attempts.network.id, attempts.name, fee, most)
        raise OrderMismatch(f"{attempts.name} may cost {fee}, and {most} is the most", bytes_only=True)

    def _numbered(self, attempts: Attempts[R, P], record: R, number: int, signed: Signed) -> list[Change]:
        """What refuses, where no nonce does, that attempt `number` is signed twice."""
        if has_nonces(attempts.network):
            return []
        return [attempt_signature(record.id, number, signed.txid, self._clock.now_ms())]

    def _rests_on(self, attempts: Attempts[R, P]) -> list[Change]:
        realm = attempts.network.realm
        return rests_on(self._store, realm) if attempts.others else rests_on_tables(self._store, realm)

    def _replaceable(self, attempts: Attempts[R, P], before: R, newest: Attempt, facts: Order) -> bool:
        """Whether no node objects to another attempt, none has one in a block, and another one can not be mined beside them.

        Where no nonce forbids that, this alone does: asked again here, right before the signature. Raises OrderMismatch.
        """
        network, payer = attempts.network, attempts.payer
        if not has_nonces(network) and unlike_attempts(self._store, before.id, [*before.earlier, newest]):
            attempts.differs(before, "its attempts")
            raise OrderMismatch(f"{attempts.name} differs from what was signed in its attempts")
        if not payer.renewable(facts.unsigned, newest.txid, self._every_node(network, before.asset, before.amount)):
            return False
        reader = self._reader_of(network)
        if any(reader.receipt(attempt.txid) is not None for attempt in before.attempts):
            return False
        ours = sent_from(network, self._rules, payer, before.attempts, facts.sender, facts.nonce or 0)
        return replaceable(network, reader, self._store, ours)

    def _signed(self, attempts: Attempts[R, P], record: R, proved: P) -> Signed:
        """Signed where both readers agree (money rule 15). Raises ReadersDiffer, OrderMismatch, Unavailable."""
        order, payer = replace(attempts.facts(record), fee=proved.fee), attempts.payer

        def sign(digests: Sequence[bytes]) -> Signed:
            return payer.assemble(order.unsigned, attempts.signature(record, digests[0]))

        second = self._second_of(attempts.network)
        return sign_read_twice(attempts.network, attempts.name, second, order, [payer.digest(order.unsigned)], sign)
