"""The attempts of a move between our addresses: how its bytes are proved against what a move may do, and stored.

The engine (`transactions.accounts.signing`) signs and sends them. A deposit address' key opens for one signature; the key of a
service wallet signs also after the wallet was replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import LOANS, WHOLE_TRANSACTION, Move, MoveKind
from chalicelib.domain.treasury.stakes import Resource
from chalicelib.usecases.base.address_forms import account_at, same_place
from chalicelib.usecases.ports.accounts import ChainPayer, Explained, Payment
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.second_reader import Order, OrderKind
from chalicelib.usecases.ports.signing import DepositKeys, Signature, Signed, Signer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.accounts.signing import Proved
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import affordable, quoted
from chalicelib.usecases.transactions.rivals import rivals_of
from chalicelib.usecases.treasury.moves.checks import MoveChecks
from chalicelib.usecases.treasury.moves.cures import MoveCures
from chalicelib.usecases.wallets.signers import SIGN, signing_wallet

log = logging.getLogger(__name__)

_LOANS: dict[MoveKind, OrderKind] = {"delegation": "delegation", "undelegation": "undelegation"}


@dataclass(frozen=True, slots=True)
class MoveParts:
    """The parts that the attempts of all moves share. `wallets` signs for service wallets, `deposits` for deposit addresses; a
    function has what its role lets it have."""

    store: Store
    rules: AddressRules
    clock: Clock
    renewals: RenewalRules
    checks: MoveChecks
    cures: MoveCures
    wallets: Signer | None
    deposits: DepositKeys | None


class MoveAttempts:
    """Implements `Attempts` for one move."""

    others = False

    def __init__(self, parts: MoveParts, network: Network, payer: ChainPayer, move_id: str) -> None:
        """`payer` builds and explains bytes of the move's kind: a loan's are no payment's, and no payment's are a loan's."""
        self.network, self.payer, self.name = network, payer, f"move {move_id}"
        self._parts, self._store, self._checks = parts, parts.store, parts.checks

    def facts(self, record: Move) -> Order:
        kind = _LOANS.get(record.kind, "payment")
        lent: Resource | None = None if kind == "payment" else "ENERGY"
        unsigned = record.unsigned or ""
        return Order(kind, record.source, record.recipient, record.contract, record.amount, record.nonce, 0, unsigned, lent)

    def proved(self, record: Move) -> Proved:
        return self._proved(record)[0]

    def quoted(self, record: Move) -> int | None:
        if record.kind in LOANS:
            return None
        paid = Payment(record.source, record.recipient, record.contract, record.amount, record.nonce or 0)
        return quoted(self.payer, replace(paid, over=self._rivals(record)))

    def _rivals(self, record: Move) -> tuple[str, ...]:
        """What its own wallet signed with its nonce, and nothing that a record only claims: these set a fee."""
        rules, network = self._parts.rules, self.network
        try:
            found = () if record.over is None else rivals_of(self._store, self.payer, record.over)
            own = [each.unsigned for each in found if same_place(rules, network, each.signer, record.source)]
            return tuple(each for each in own if self.payer.explain(each).nonce == record.nonce)
        except (Refused, ValueError) as wrong:
            log.warning("%s: move %s names a payment that has no bytes of its wallet: %s", network.id, record.id, wrong)
            return ()

    def cure(self, record: Move, mismatch: OrderMismatch) -> None:
        """Other bytes may take the nonce, or it is given back."""
        self._parts.cures.apply(self.network, record, self.payer, mismatch)

    def altered(self, before: Move) -> list[str]:
        return []  # it is replaced by bytes that are made of its own bytes

    def differs(self, before: Move, named: str) -> None:
        log.error("ALARM %s: move %s differs from what was signed in %s", self.network.id, before.id, named)

    def renewed(self, before: Move) -> Move | None:
        try:
            return replace(before, unsigned=self.payer.renew(before.unsigned or "", "normal", before.source))
        except Refused as refused:
            log.warning("ALARM %s: move %s is stuck and can not be replaced now: %s", self.network.id, before.id, refused)
            return None

    def proved_again(self, before: Move, wanted: Move) -> Proved | None:
        proved, does = self._proved(wanted)
        if affordable(self.payer, self._parts.rules, self.network, self._parts.renewals, before, does, before.source):
            return proved
        log.warning("ALARM %s: move %s is stuck, and a replacement would cost %d", self.network.id, before.id, does.fee)
        return None

    def signature(self, record: Move, digest: bytes) -> Signature:
        network, deposits, wallets = self.network, self._parts.deposits, self._parts.wallets
        if record.path is not None and deposits is not None:
            with deposits.opened() as keys:
                try:
                    return keys.sign_as(network.id, record.source, record.path, digest)
                except ValueError as error:
                    log.error("ALARM %s: move %s can not be signed: %s", network.id, record.id, error)
                    raise OrderMismatch(f"move {record.id} can not be signed: {error}") from error
        # The wallet that the move names, also one that was replaced meanwhile: what was started with it is finished with it.
        wallet = signing_wallet(self._store, network.id, self._parts.rules.normalize(network.slug, record.source), SIGN)
        if wallet is None or wallets is None:
            log.error("ALARM %s: the wallet %s that move %s leaves is not here", network.id, record.source, record.id)
            raise OrderMismatch(f"move {record.id} leaves {record.source}, which is no wallet that pays")
        return wallets.sign(wallet, digest)

    def store(self, record: Move, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Move:
        """Its coins are in flight, and its transaction is named, so that no scanner takes it for a deposit."""
        now, network = self._parts.clock.now_ms(), self.network
        done = record.signed_as(Attempt(signed.raw, signed.txid, proved.fee, now))
        place = account_at(self._parts.rules, network, record.source)
        entry = ledger.move_signed(record.id, now, place, Amount(record.asset, record.units))
        self._store.commit([Save(done), Save(_ours(done, signed)), Post(entry), *rests_on])
        if record.over is not None:
            taken = (network.id, record.id, record.nonce or 0, record.over, record.decided)
            log.error("ALARM %s: %s takes the nonce %d of %s, as %s", *taken)
        return done

    def store_again(self, before: Move, wanted: Move, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Move:
        done = wanted.signed_as(Attempt(signed.raw, signed.txid, proved.fee, self._parts.clock.now_ms()))
        self._store.commit([Save(done), Save(_ours(done, signed)), *rests_on])
        return done

    def _proved(self, move: Move) -> tuple[Proved, Explained]:
        try:
            does = self.payer.explain(move.unsigned or "")
        except ValueError as error:
            raise self._checks.undecodable(self.network, move, str(error)) from error
        return Proved(does.fee, self._checks.demand(self.network, move, does)), does


def _ours(move: Move, signed: Signed) -> OwnTransaction:
    return OwnTransaction(move.network, signed.txid, (WHOLE_TRANSACTION,))
