"""Builds what takes the place of a stuck UTXO attempt, whatever its kind: all of its inputs, a higher fee (BIP-125)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.hot_utxos import MOST_RATE
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer, CoinPlan
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import out_of_bounds
from chalicelib.usecases.transactions.utxo.kinds import Means, R, ReplacedKind
from chalicelib.usecases.transactions.utxo.proofs import unproved
from chalicelib.usecases.transactions.utxo.reading import attempt_of

log = logging.getLogger(__name__)


class UtxoReplacing:
    """Signs nothing."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        payer_of: Callable[[Network], CoinPayer],
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
    ) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._payer_of, self._reader_of, self._renewals = payer_of, reader_of, renewals

    def replaced(self, kind: ReplacedKind[R], record: R) -> R:
        """`record` with an unsigned attempt in place of its newest, stored; or without the wish for one, where it is not to be had.

        The newest attempt is proved by its signatures before any coin is taken for another. Raises OrderMismatch, with an alarm,
        where it is not what was signed; Conflict, Unavailable.
        """
        network: Network = kind.network
        newest = record.latest
        if newest.txid is None or newest.raw is None:
            return record
        payer: CoinPayer = self._payer_of(network)
        if self._renewals.worn_out(len(record.earlier)) or self._known(network, record):
            return self._unreplaced(record)
        means: Means = kind.means(record)
        self._prove(kind, record, means)
        try:
            rate = min(MOST_RATE, payer.fee_rate(means.priority))
            plan: CoinPlan = payer.replace(newest.unsigned, means.home, means.more, rate)
        except Refused as refused:
            log.warning("ALARM %s: %s is stuck and can not be replaced now: %s", network.id, record.id, refused)
            return self._unreplaced(record)
        made = attempt_of(payer, self._rules, network, record, plan.unsigned, means.known)
        if out_of_bounds(self._renewals, (*record.earlier, newest), made.fee, made.vsize):
            log.warning("ALARM %s: %s is stuck, and a replacement would cost %d", network.id, record.id, made.fee)
            return self._unreplaced(record)
        if not kind.affordable(record, made.fee):
            return self._unreplaced(record)
        # With its unsigned bytes until the replacement is signed: should that be altered before, another is built of them.
        record = replace(record, newest=made, earlier=(*record.earlier, newest), renew=False).next(self._clock.now_ms())
        self._store.commit([Save(record), *kind.taken(record)])
        return record

    def _prove(self, kind: ReplacedKind[R], record: R, means: Means) -> None:
        newest, network = record.latest, kind.network
        unlike = list(means.unlike)
        unlike += unproved(self._payer_of(network), self._rules, network, record, newest)
        if unlike:
            kind.forged(record, ", ".join(unlike))
            raise OrderMismatch(f"{record.id} differs from what was signed in {', '.join(unlike)}")

    def _known(self, network: Network, record: R) -> bool:
        """Whether the node has one of its attempts in a block."""
        reader = self._reader_of(network)
        return any(reader.receipt(txid) is not None for txid in record.txids)

    def _unreplaced(self, record: R) -> R:
        record = replace(record, renew=False).next(self._clock.now_ms())
        self._store.commit([Save(record)])
        return record
