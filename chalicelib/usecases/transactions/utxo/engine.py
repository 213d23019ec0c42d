"""The engine of outgoing UTXO transactions: signs, books, replaces and sends one, whatever its kind.

The problem: a transaction that was signed can be mined for as long as its inputs are unspent, whatever nodes say of it now. If the
same is paid again with other inputs, both can be mined, and nobody gives the second payment back. So there is one record for each,
with all of its attempts; every attempt spends the inputs of the first (BIP-125), so that the chain takes one of them at most; and
only another transaction on one of those inputs, deep in the chain, ends a record (`following`).

Each step is stored before the next begins. What a crash leaves at each, the next worker goes on from:

1. built: coins reserved, bytes exact. `signing` holds them against the order, and signs. A crash leaves the same bytes, unsigned;
   signatures that were not stored were never sent.
2. signed, not booked: the signed bytes are stored, and were not sent. A crash leaves them, and some of the money in flight: the
   kind books the rest. Nothing is sent before all of it is in flight.
3. signed, booked: the bytes go to the node, as often as it takes, by any worker. A crash leaves what may have been sent: it counts
   as sent.
4. stuck (`renew`): `replacing` proves the newest attempt by its signatures, and stores one that costs more beside it, with the
   coins that it takes. A crash leaves an unsigned attempt beside signed ones: step 1's rules sign it, within bounds on number and
   fee. Each signed attempt stays in the record: whichever is mined has paid.

A message that comes twice, or late, finds the step done and goes on to the next; of two workers, one commits. Before each signature
and each send the kind asks for the kill switch, or for a point-in-time restore.

The kinds are bundles of payments (`payouts/bundle_payouts`) and moves between wallets of ours (`treasury/consolidation/signing`).
How each comes to be built, what it books, and what its settlement means stay with them: no other kind has those steps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.usecases.base.newer_states import demand_known
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.utxo.kinds import R, ReplacedKind, SentKind, SignedKind
from chalicelib.usecases.transactions.utxo.replacing import UtxoReplacing
from chalicelib.usecases.transactions.utxo.signing import UtxoSigning

log = logging.getLogger(__name__)

Step = Literal["over", "sent", "waiting"]
"""`over`: nothing is left to sign or send; `waiting`: it is signed, and not sent now."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[R]):
    """One record's part in each step."""

    signed: SignedKind[R]
    replaced: ReplacedKind[R]
    sent: SentKind[R]


class UtxoEngine:
    """Needs keys: the kinds open them."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        payer_of: Callable[[Network], CoinPayer],
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
        second_of: Callable[[Network], SecondReader[CoinOrder]],
    ) -> None:
        self._payer_of = payer_of
        self._signing = UtxoSigning(store, rules, clock, payer_of, renewals, second_of)
        self._replacing = UtxoReplacing(store, rules, clock, payer_of, reader_of, renewals)

    def advance(self, kind: Kind[R], record: R) -> tuple[Step, R]:
        """Bring a record that is built or signed as far as its broadcast. Safe to repeat at any time.

        Raises OrderMismatch, PaymentsStopped, LookupError, Conflict, Unavailable.
        """
        demand_known(record)
        if record.state == "built":
            record = self._signing.sign(kind.signed, record)
        if record.state != "signed":
            return "over", record
        record = kind.sent.book(record)
        if record.renew:
            record = self._replacing.replaced(kind.replaced, record)
        if record.latest.raw is None:
            record = self._signing.sign(kind.signed, record)
        return ("sent" if self._sent(kind.sent, record) else "waiting"), record

    def _sent(self, kind: SentKind[R], record: R) -> bool:
        newest = record.latest
        if newest.raw is None or newest.txid is None:
            raise LookupError(f"{record.id} has no signed bytes")
        if kind.halted():
            return False  # since it was signed: the poll sends it once that is over
        try:
            self._payer_of(kind.network).broadcast(newest.raw)
        except Refused as refused:
            # Signed bytes stay valid: whether they are ever mined, only the chain decides. Sent again by the polls.
            log.warning("%s: the node refused %s for now: %s", kind.network.id, record.id, refused)
            return False
        return True
