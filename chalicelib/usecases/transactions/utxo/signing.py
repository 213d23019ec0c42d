"""Signs one attempt of a UTXO transaction, whatever its kind: the first, or a replacement (BIP-125).

The problem: two transactions of ours that pay the same and share no input can both be mined, and nobody gives the second payment
back. So nothing is signed but one of these two:

* the first attempt of a record that is built: nothing of it was signed, and its coins are reserved for it alone;
* an attempt in place of signed ones: it spends every input of the first, which the first one's own signatures prove. The chain
  takes one of them at most.

1. The kind's guards: kill switch or point-in-time restore, approval, reservation, recipient (`Grounds`).
2. The bytes are read and held against the record, and against what the record says was built (money rule 7); the number and the
   fee of attempts are bounded (rule 14).
3. Both readers sign off every input (rule 15).
4. The signed bytes, their id and "these outputs are ours" commit together, with the conditions of step 1 (rule 5). Of a first
   attempt, so does an item that is never changed (`first_signatures`): a record that was altered until it looks unsigned is
   neither signed anew nor taken apart. Whoever deletes that item too is not stopped.

A crash before step 4 leaves the record as it was: the next worker begins at step 1, with the same bytes and inputs. Of two workers
that sign at once, one commits; the other's signatures are dropped, never sent. After step 4 the record is signed for good: it is
sent, as often as it takes, and only ever replaced.

What differs raises an alarm and is not signed. Where only the bytes of a first attempt differ, and nothing was signed, it is built
anew; where only those of a replacement do, they are taken away, and `replacing` makes others of the attempt that was signed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer, Output
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.signing import Signed
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.first_signatures import first_signature, signed_before
from chalicelib.usecases.transactions.replacement_bounds import out_of_bounds
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from chalicelib.usecases.transactions.utxo.kinds import Grounds, R, SignedKind
from chalicelib.usecases.transactions.utxo.orders import coin_order
from chalicelib.usecases.transactions.utxo.proofs import unproved
from chalicelib.usecases.transactions.utxo.reading import attempt_of, unspent_by

_NAMED = 10
"""So many differences are named in one alarm."""


class UtxoSigning:
    """Needs keys: the kind opens them."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        payer_of: Callable[[Network], CoinPayer],
        renewals: RenewalRules,
        second_of: Callable[[Network], SecondReader[CoinOrder]],
    ) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._payer_of, self._renewals, self._second_of = payer_of, renewals, second_of

    def sign(self, kind: SignedKind[R], record: R) -> R:
        """Sign the newest attempt of `record`, and store its signed bytes before anybody can see them.

        Raises LookupError where there is none, OrderMismatch, PaymentsStopped, Conflict, Unavailable.
        """
        newest = record.latest
        grounds: Grounds = kind.grounds(record)
        misplaced: list[str] = self._misplaced(record)
        unlike: list[str] = [*misplaced, *grounds.unlike]
        altered: list[str] = [*self._altered(kind, record), *grounds.dear]
        if unlike or altered:
            named = ", ".join([*unlike, *altered][:_NAMED])
            kind.differs(record, named)
            if not record.earlier and not misplaced and (grounds.leaving or not unlike):
                kind.throw_away(record, grounds.leaving)
            elif record.earlier and not unlike:
                self._taken_back(kind, record)
            raise OrderMismatch(f"{kind.name} {record.id} differs from what was approved in {named}", bytes_only=not unlike)
        signed = self._signed(kind, record)
        now = self._clock.now_ms()
        done = replace(newest, raw=signed.raw, txid=signed.txid, signed_at=now)
        replaced = tuple(replace(attempt, unsigned="") for attempt in record.earlier)
        record = replace(record, state="signed", newest=done, earlier=replaced).next(now)
        ours: list[Change] = [Save(OwnTransaction(record.network, signed.txid, done.positions))] if done.positions else []
        if not record.earlier:
            ours.append(first_signature(record.id, signed.txid, now))
        self._store.commit([Save(record), *ours, *grounds.conditions])
        return record

    def _misplaced(self, record: R) -> list[str]:
        """Why what is to be signed is no attempt that the record can have in its state."""
        wrong: list[str] = [] if record.state == ("signed" if record.earlier else "built") else ["what it replaces"]
        if not record.earlier and signed_before(self._store, record.id):
            wrong.append("what was signed before")
        return wrong if record.latest.raw is None and record.latest.txid is None else [*wrong, "what was signed already"]

    def _altered(self, kind: SignedKind[R], record: R) -> list[str]:
        """In what the newest bytes are not those that the record says were built, or may not be."""
        network, newest = kind.network, record.latest
        payer = self._payer_of(network)
        try:
            made = attempt_of(payer, self._rules, network, record, newest.unsigned, kind.coins(record))
        except OrderMismatch as error:
            return [f"bytes ({error})"]
        wrong: list[str] = [] if made == replace(newest, raw=None, txid=None, signed_at=0) else ["what was built"]
        wrong += out_of_bounds(self._renewals, record.earlier, made.fee, made.vsize)
        if not record.earlier:
            return wrong
        first = record.earlier[0]
        wrong += unproved(payer, self._rules, network, record, first)
        shared = {coin.outpoint for coin in record.spends(first)} <= {coin.outpoint for coin in record.spends(made)}
        return wrong if shared else [*wrong, "the inputs of what it replaces"]

    def _taken_back(self, kind: SignedKind[R], record: R) -> None:
        """Take an altered replacement away, and ask for another one in place of the same attempt.

        Only where the first attempt and the replaced one are what was signed: else the same would be built again without end.
        """
        first, last = record.earlier[0], record.earlier[-1]
        payer, network = self._payer_of(kind.network), kind.network
        if last.unsigned and not any(unproved(payer, self._rules, network, record, each) for each in (first, last)):
            back = replace(record, newest=last, earlier=record.earlier[:-1], renew=True)
            self._store.commit([Save(back.next(self._clock.now_ms()))])

    def _signed(self, kind: SignedKind[R], record: R) -> Signed:
        """Sign what both readers read as the order. Raises ReadersDiffer, OrderMismatch, Unavailable."""
        network, newest = kind.network, record.latest
        payer = self._payer_of(network)
        paid = [Output(address, amount) for address, amount in record.pays(newest)]
        order = coin_order(payer, newest.unsigned, unspent_by(record, newest), paid)
        digests = payer.digests(newest.unsigned)
        if len(digests) != len(order.inputs):
            raise OrderMismatch(f"{kind.name} {record.id} has {len(order.inputs)} inputs and {len(digests)} digests")

        def sign(each: Sequence[bytes]) -> Signed:
            with kind.keys(record) as key:
                signatures = [key(coin.outpoint, digest) for coin, digest in zip(order.inputs, each, strict=True)]
            # Refuses a signature that is not by the key of its input's address.
            return payer.assemble(newest.unsigned, signatures)

        return sign_read_twice(network, f"{kind.name} {record.id}", self._second_of(network), order, digests, sign)
