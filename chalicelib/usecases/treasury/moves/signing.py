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
from collections.abc import Callable, Sequence
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import LOANS, WHOLE_TRANSACTION, Move, MoveKind, move_work
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.domain.withdrawals.withdrawals import Attempt, NonceCounter, NonceUse
from chalicelib.usecases.base.kill_switch import put_back, rests_on_tables
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.accounts import ChainPayer, Explained
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import Order, OrderKind, SecondReader
from chalicelib.usecases.ports.signing import DepositKeys, Signature, Signed, Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.expiry_votes import EveryNode
from chalicelib.usecases.transactions.first_nonce import NonceUnsure, counter_of
from chalicelib.usecases.transactions.losses import replaceable, sent_from
from chalicelib.usecases.transactions.replacement_bounds import affordable, worn_out
from chalicelib.usecases.transactions.rivals import settled
from chalicelib.usecases.transactions.signed_bytes import unlike_signed
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from chalicelib.usecases.treasury.moves.building import MoveBytes
from chalicelib.usecases.treasury.moves.checks import MoveChecks, MoveMismatch
from chalicelib.usecases.treasury.moves.cures import MoveCures
from chalicelib.usecases.wallets.signers import SIGN, signing_wallet

log = logging.getLogger(__name__)

MOST_REFUSALS = 5
"""A move that was refused so often before anything was signed is dropped."""
_LOANS: dict[MoveKind, OrderKind] = {"delegation": "delegation", "undelegation": "undelegation"}


class MoveSigning:
    """`wallets` signs for service wallets, `deposits` for deposit addresses; a function has what its role lets it have."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        payer_of: Callable[[Network], ChainPayer],
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
        every_node: EveryNode,
        second_of: Callable[[Network], SecondReader[Order] | None],
        wallets: Signer | None = None,
        deposits: DepositKeys | None = None,
        loans_of: Callable[[Network, MoveKind], ChainPayer] | None = None,
    ) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._payer_of, self._reader_of, self._renewals = payer_of, reader_of, renewals
        self._every_node, self._second_of = every_node, second_of
        self._wallets, self._deposits, self._loans_of = wallets, deposits, loans_of
        self._checks = MoveChecks(store, rules)
        self._cures, self._bytes = MoveCures(store, rules, clock), MoveBytes(store, rules, reader_of)

    def advance(self, network: NetworkId, move_id: str) -> None:
        """Bring a move as far as its broadcast. Safe to call at any time, twice, at once.

        Raises Unavailable, OrderMismatch, Conflict: to be called again later; LookupError where this function has not the key.
        """
        until_settled(lambda: self._advance(network, move_id))

    def _advance(self, network_id: NetworkId, move_id: str) -> None:
        move = self._store.get(Move, network=network_id, id=move_id)
        if move is None or move.at_rest:
            return
        if (self._wallets if move.path is None else self._deposits) is None:
            raise LookupError(f"this function has no key for move {move.id}")
        realm, slug = network_parts(network_id)
        network = self._store.catalogue(realm).networks[slug]
        ready = self._ready(network, move)
        if ready is None or put_back(self._store, network.realm) is not None:
            return  # the poll sends it once it is known what was sent since
        try:
            self._payer_of(network).broadcast(ready.raw or "")
        except Refused as refused:
            # Signed bytes stay valid: whether the chain ever takes them, it alone decides. The poll sends them again.
            log.warning("%s: the node refuses move %s for now: %s", network.id, move.id, refused)

    def _payer(self, network: Network, move: Move) -> ChainPayer:
        """What builds and explains bytes of this kind: a loan's are no payment's, and no payment's are a loan's."""
        if move.kind not in LOANS:
            return self._payer_of(network)
        if self._loans_of is None:
            raise LookupError(f"this function lends nothing: {move.id}")
        return self._loans_of(network, move.kind)

    def _ready(self, network: Network, move: Move) -> Move | None:
        """With signed bytes that can be sent; None where there are none to send now."""
        if move.state == "planned":
            built = self._built(network, move)
            return None if built is None else self._signed(network, built)
        if move.state == "built":
            if move.over is not None and settled(self._store, move.over):
                self._cures.release(network, move, self._payer(network, move), "the payment that has its nonce was mined first")
                return None
            whole = move if move.unsigned else self._rebuilt(network, move)
            return None if whole is None else self._signed(network, whole)
        return self._renewed(network, move) if move.renew else move

    def _built(self, network: Network, before: Move) -> Move | None:
        """Allot the next nonce and store the bytes that use it, in one transaction. None while that can not be."""
        tables = rests_on_tables(self._store, network.realm)
        rests_on = self._checks.destination(network, before)
        if rests_on is None:
            self._drop(before, "the recipient is no place of ours that it may go to now")
            return None
        if before.kind == "topup" and before.amount > self._checks.most_topup(network):
            self._drop(before, f"a top-up of {before.amount} is more than any transfer costs")
            return None
        if not self._checks.has_room(network, before):
            self._wait(before, "what the recipient has would come to more than 10^37 units, the most that is kept of a coin")
            return None
        try:
            counter = self._counter(network, before)
        except NonceUnsure as unsure:
            self._wait(before, str(unsure))
            return None
        payer = self._payer(network, before)
        try:
            amount, unsigned = self._bytes.of(network, payer, before, counter.next)
        except InsufficientFunds as error:
            self._wait(before, f"the source has too little: {error}")
            return None
        except Refused as refused:
            self._refused(before, str(refused))
            return None
        built = replace(
            before, state="built", nonce=counter.next, unsigned=unsigned, amount=amount, reason=None,
            updated_at=self._clock.now_ms(), version=before.version + 1,
        )  # fmt: skip
        taken = replace(counter, next=counter.next + 1, version=counter.version + 1)
        use = NonceUse(built.id, network.id, counter.wallet, counter.next)
        self._store.commit([Save(built), Save(taken), Save(use), *rests_on, *tables])
        return built

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
        built = replace(
            before, unsigned=unsigned, amount=amount, reason=None, updated_at=self._clock.now_ms(), version=before.version + 1
        )
        self._store.commit([Save(built), *rests_on])
        return built

    def _counter(self, network: Network, move: Move) -> NonceCounter:
        """Of a service wallet, the one that its withdrawals take theirs from: under the same spelling. Raises NonceUnsure."""
        source = self._rules.normalize(network.slug, move.source)
        return counter_of(self._store, network, self._payer_of(network), source, unused=move.path is not None)

    def _signed(self, network: Network, move: Move) -> Move:
        """Check the bytes against the move and the move against what may be; sign; store the signed bytes."""
        try:
            does, rests_on = self._approved(network, move)
        except MoveMismatch as mismatch:
            self._cures.apply(network, move, self._payer(network, move), mismatch)
            raise
        signed = self._sign(network, move, does)
        now = self._clock.now_ms()
        done = replace(
            move, state="signed", raw=signed.raw, txid=signed.txid, fee=does.fee, signed_at=now, updated_at=now,
            version=move.version + 1,
        )  # fmt: skip
        place = ledger.wallet(network.id, self._rules.storage_form(network.slug, move.source))
        entry = ledger.move_signed(move.id, now, place, Amount(move.asset, move.units))
        self._store.commit([Save(done), *self._ours(done, signed), Post(entry), *rests_on])
        if move.over is not None:
            log.error("ALARM %s: %s takes the nonce %d of %s, as %s", network.id, move.id, move.nonce or 0, move.over, move.decided)
        return done

    def _renewed(self, network: Network, before: Move) -> Move | None:
        """With new bytes in place of those that no block takes, stored before anything is sent: with the same nonce, checked like
        the first. None while that can not be, or need not any more. What was replaced stays: the chain may take it."""
        payer, reader = self._payer(network, before), self._reader_of(network)
        if before.raw is None or before.txid is None or before.unsigned is None:
            return None
        unlike = unlike_signed(payer, self._rules, network, before.raw, before.txid, before.unsigned, before.source)
        if unlike:
            log.error("ALARM %s: move %s differs from what was signed in %s", network.id, before.id, ", ".join(unlike))
            raise OrderMismatch(f"move {before.id} differs from what was signed in {', '.join(unlike)}")
        if worn_out(network, self._renewals, before):
            return None
        # Where no nonce forbids it, this alone keeps both from being mined: asked again here, right before the signature.
        every_node = self._every_node(network, before.asset, before.amount)
        if not payer.renewable(before.unsigned, before.txid, every_node):
            return None
        if any(reader.receipt(txid) is not None for txid in before.txids):
            return None
        attempts = [(each.txid, each.raw) for each in before.attempts]
        ours = sent_from(network, self._rules, payer, attempts, before.source, before.nonce or 0)
        if not replaceable(network, reader, self._store, ours):
            return None
        try:
            wanted = replace(before, unsigned=payer.renew(before.unsigned, "normal", before.source))
        except Refused as refused:
            log.warning("ALARM %s: move %s is stuck and can not be replaced now: %s", network.id, before.id, refused)
            return None
        does, rests_on = self._approved(network, wanted)
        if not affordable(payer, self._rules, network, self._renewals, before, does, before.source):
            log.warning("ALARM %s: move %s is stuck, and a replacement would cost %d", network.id, before.id, does.fee)
            return None
        signed = self._sign(network, wanted, does)
        now = self._clock.now_ms()
        done = replace(
            wanted, raw=signed.raw, txid=signed.txid, fee=does.fee, signed_at=now, updated_at=now, renew=False,
            earlier=(*before.earlier, Attempt(before.raw, before.txid, before.fee, before.signed_at)), version=before.version + 1,
        )  # fmt: skip
        self._store.commit([Save(done), *self._ours(done, signed), *rests_on])
        log.info("%s: %s replaces %s, which no block took", network.id, signed.txid, before.txid)
        return done

    def _approved(self, network: Network, move: Move) -> tuple[Explained, list[Change]]:
        """What the bytes do, and what their signature rests on. Raises MoveMismatch, PaymentsStopped, Unavailable."""
        tables = rests_on_tables(self._store, network.realm)
        try:
            does = self._payer(network, move).explain(move.unsigned or "")
        except ValueError as error:
            raise self._checks.undecodable(network, move, str(error)) from error
        return does, [*tables, *self._checks.demand(network, move, does)]

    def _sign(self, network: Network, move: Move, does: Explained) -> Signed:
        """Sign with the key of the source, and no other, what both readers read as the move, with the nonce that was allotted and
        the fees of its bytes (money rule 15). Raises OrderMismatch, Unavailable."""
        payer, unsigned = self._payer(network, move), move.unsigned or ""
        kind = _LOANS.get(move.kind, "payment")
        lent: Resource | None = None if kind == "payment" else "ENERGY"
        order = Order(kind, move.source, move.recipient, move.contract, move.amount, move.nonce, does.fee, unsigned, lent)

        def sign(digests: Sequence[bytes]) -> Signed:
            return payer.assemble(unsigned, self._signature(network, move, digests[0]))

        return sign_read_twice(network, f"move {move.id}", self._second_of(network), order, [payer.digest(unsigned)], sign)

    def _signature(self, network: Network, move: Move, digest: bytes) -> Signature:
        if move.path is not None and self._deposits is not None:
            with self._deposits.opened() as keys:
                try:
                    return keys.sign_as(network.id, move.source, move.path, digest)
                except ValueError as error:
                    log.error("ALARM %s: move %s can not be signed: %s", network.id, move.id, error)
                    raise OrderMismatch(f"move {move.id} can not be signed: {error}") from error
        # The wallet that the move names, also one that was replaced meanwhile: what was begun with it is finished with it.
        wallet = signing_wallet(self._store, network.id, self._rules.normalize(network.slug, move.source), SIGN)
        if wallet is None or self._wallets is None:
            log.error("ALARM %s: the wallet %s that move %s leaves is not here", network.id, move.source, move.id)
            raise OrderMismatch(f"move {move.id} leaves {move.source}, which is no wallet that pays")
        return self._wallets.sign(wallet, digest)

    def _ours(self, move: Move, signed: Signed) -> list[Change]:
        return [Save(OwnTransaction(move.network, signed.txid, (WHOLE_TRANSACTION,)))]

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
        self._store.commit([Save(replace(after, updated_at=self._clock.now_ms(), version=after.version + 1))])

    def _drop(self, before: Move, reason: str) -> None:
        """Nothing was allotted or signed, so nothing has moved: whoever planned it sees that it will not be."""
        now = self._clock.now_ms()
        dropped = replace(before, state="dropped", reason=reason[:300], updated_at=now, version=before.version + 1)
        self._store.commit([Save(dropped), Close(move_work(before))])
        log.error("ALARM %s: move %s is dropped: %s", before.network, before.id, reason)
