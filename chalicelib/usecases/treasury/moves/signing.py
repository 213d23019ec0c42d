"""Signs moves between our addresses: planned → built → signed → sent, each step stored before the next begins.

Two functions run this: `payout`, which has the keys of service wallets, and `collect`, which alone may open the seed of the deposit
addresses. What a crash leaves is always one of these, and `advance` goes on from it:

* planned: nothing was allotted. The next nonce of the source and the exact bytes are taken in one transaction (money rule 6).
* built: the same unsigned bytes are signed; of two workers that sign, one stores its signature. What may not be signed so gets
  other bytes with its nonce, or gives the nonce back (`cures`).
* signed: these bytes alone are ever sent, as often as it takes (money rule 5). They are stored together with the name of the
  transaction, so that no scanner takes it for a deposit, and with the posting source → in flight.
* to renew: no block takes the newest bytes; others with the same nonce are checked, signed and stored beside them.

What is refused before anything is allotted is tried again some times and then dropped: nothing has moved. What waits for coins
waits. What becomes of the bytes is decided by `following`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.treasury.moves import LOANS, Move, MoveKind, move_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.base.kill_switch import rests_on_tables
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.accounts import ChainPayer
from chalicelib.usecases.ports.changes import Close, Save
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.first_nonce import NonceUnsure, counter_of
from chalicelib.usecases.transactions.nonces import allotted
from chalicelib.usecases.transactions.rivals import settled
from chalicelib.usecases.treasury.moves.attempts import MoveAttempts, MoveParts
from chalicelib.usecases.treasury.moves.building import MoveBytes
from chalicelib.usecases.treasury.moves.checks import MoveMismatch

log = logging.getLogger(__name__)

MOST_REFUSALS = 5
"""A move that was refused so often before anything was signed is dropped."""


class MoveSigning:
    def __init__(
        self,
        parts: MoveParts,
        payer_of: Callable[[Network], ChainPayer],
        reader_of: Callable[[Network], ChainReader],
        signing: AccountSigning,
        loans_of: Callable[[Network, MoveKind], ChainPayer] | None = None,
    ) -> None:
        self._parts, self._store, self._rules, self._clock = parts, parts.store, parts.rules, parts.clock
        self._payer_of, self._loans_of, self._signing = payer_of, loans_of, signing
        self._checks, self._cures, self._bytes = parts.checks, parts.cures, MoveBytes(parts.store, parts.rules, reader_of)

    def advance(self, network: NetworkId, move_id: str) -> None:
        """Bring a move as far as its broadcast. Safe to call at any time, twice, at once.

        Raises Unavailable, OrderMismatch, Conflict: to be called again later; LookupError where this function has not the key.
        """
        until_settled(lambda: self._advance(network, move_id))

    def _advance(self, network_id: NetworkId, move_id: str) -> None:
        move = self._store.get(Move, network=network_id, id=move_id)
        if move is None or move.at_rest:
            return
        demand_known(move)
        if (self._parts.wallets if move.path is None else self._parts.deposits) is None:
            raise LookupError(f"this function has no key for move {move.id}")
        realm, slug = network_parts(network_id)
        network = self._store.catalogue(realm).networks[slug]
        attempts = MoveAttempts(self._parts, network, self._payer(network, move), move.id)
        ready = self._ready(attempts, move)
        if ready is not None:
            self._signing.send(attempts, ready)

    def _payer(self, network: Network, move: Move) -> ChainPayer:
        """The payer of the kind: bytes of a loan are no payment's, and bytes of a payment no loan's."""
        if move.kind not in LOANS:
            return self._payer_of(network)
        if self._loans_of is None:
            raise LookupError(f"this function lends nothing: {move.id}")
        return self._loans_of(network, move.kind)

    def _ready(self, attempts: MoveAttempts, move: Move) -> Move | None:
        """With signed bytes that can be sent; None where there are none to send now."""
        network, payer = attempts.network, attempts.payer
        self._demand_planned(move)
        if move.state == "planned":
            built = self._built(network, move)
            return None if built is None else self._signing.first(attempts, built)
        if move.state == "built":
            if move.over is not None and settled(self._store, move.over):
                self._cures.release(network, move, payer, "the payment that has its nonce was mined first")
                return None
            whole = move if move.unsigned else self._rebuilt(network, move)
            return None if whole is None else self._signing.first(attempts, whole)
        return self._signing.again(attempts, move) if move.renew else move

    def _demand_planned(self, move: Move) -> None:
        """The state is but a field of the record, which may have been altered. Raises OrderMismatch where a nonce was allotted to a
        planned move; that nothing signed is signed again, `AccountSigning.first` sees to."""
        if move.state == "planned" and move.nonce is not None:
            log.error("ALARM %s: move %s is none that may be signed, by its %s", move.network, move.id, "state")
            raise OrderMismatch(f"move {move.id} is planned, and has the nonce {move.nonce}")

    def _built(self, network: Network, before: Move) -> Move | None:
        """Allot the next nonce and store the bytes that use it, in one transaction. None while that can not be."""
        tables = rests_on_tables(self._store, network.realm)
        rests_on = self._checks.destination(network, before)
        if rests_on is None:
            self._drop(before, "the recipient is no place of ours that it may go to now")
            return None
        if not self._may_be_built(network, before):
            return None
        payer = self._payer(network, before)
        try:
            counter = self._counter(network, before)
            amount, unsigned = self._bytes.of(network, payer, before, counter.next)
        except NonceUnsure as unsure:
            self._wait(before, str(unsure))
            return None
        except InsufficientFunds as error:
            self._wait(before, f"the source has too little: {error}")
            return None
        except Refused as refused:
            self._refused(before, str(refused))
            return None
        built = replace(
            next_version(before), state="built", nonce=counter.next, unsigned=unsigned, amount=amount, reason=None,
            updated_at=self._clock.now_ms(),
        )  # fmt: skip
        self._store.commit([Save(built), *allotted(counter, built.id), *rests_on, *tables])
        return built

    def _may_be_built(self, network: Network, before: Move) -> bool:
        """Whether its amount is one that it may have; where not, it is dropped or waits."""
        if before.kind == "topup" and before.amount > self._checks.most_topup(network):
            self._drop(before, f"a top-up of {before.amount} is more than any transfer costs")
            return False
        if not self._checks.has_room(network, before):
            self._wait(before, "what the recipient has would come to more than 10^37 units, the most that is kept of a coin")
            return False
        return True

    def _rebuilt(self, network: Network, before: Move) -> Move | None:
        """Other bytes with the nonce of those that were thrown away; None where it is dropped, and its nonce given back."""
        payer = self._payer(network, before)
        try:
            rests_on = self._checks.lawful(network, before)
        except MoveMismatch as mismatch:
            self._cures.apply(network, before, payer, mismatch)
            raise
        # Fees may have fallen since.
        asked = min(before.amount, self._checks.most_topup(network)) if before.kind == "topup" else before.amount
        try:
            amount, unsigned = self._bytes.of(network, payer, replace(before, amount=asked), before.nonce or 0)
        except Refused as refused:
            if before.kind != "filler":
                self._cures.release(network, before, payer, str(refused))
            else:
                self._wait(before, f"it can not be built now: {refused}")
            return None
        built = replace(next_version(before), unsigned=unsigned, amount=amount, reason=None, updated_at=self._clock.now_ms())
        self._store.commit([Save(built), *rests_on])
        return built

    def _counter(self, network: Network, move: Move) -> NonceCounter:
        """Of a service wallet, the one that its withdrawals take theirs from: under the same spelling. Raises NonceUnsure."""
        source = self._rules.normalize(network.slug, move.source)
        return counter_of(self._store, network, self._payer_of(network), source, unused=move.path is not None)

    def _wait(self, before: Move, reason: str) -> None:
        """Nothing is lost and nothing allotted: asked for again by the poll."""
        if before.reason is None:
            log.warning("ALARM %s: move %s waits: %s", before.network, before.id, reason)
        self._note(replace(before, reason=reason[:300]))

    def _refused(self, before: Move, reason: str) -> None:
        if before.tried + 1 >= MOST_REFUSALS:
            self._drop(replace(before, tried=before.tried + 1), reason)
            return
        log.warning("%s: move %s is refused: %s", before.network, before.id, reason)
        self._note(replace(before, tried=before.tried + 1, reason=reason[:300]))

    def _note(self, after: Move) -> None:
        self._store.commit([Save(replace(next_version(after), updated_at=self._clock.now_ms()))])

    def _drop(self, before: Move, reason: str) -> None:
        """Nothing was allotted or signed, so nothing has moved; its planner sees that it is dropped."""
        now = self._clock.now_ms()
        dropped = replace(next_version(before), state="dropped", reason=reason[:300], updated_at=now)
        self._store.commit([Save(dropped), Close(move_work(before))])
        log.error("ALARM %s: move %s is dropped: %s", before.network, before.id, reason)
