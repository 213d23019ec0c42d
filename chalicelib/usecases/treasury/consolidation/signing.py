"""Signs and sends coin moves, as `transactions.utxo.engine` says: what a crash leaves, `advance` goes on from.

The places' money goes in flight a few addresses per transaction, before anything is sent. A replacement spends the same inputs.

Deposits' coins need the seed and hot wallets' coins their keys, which two functions have: each gets a `CoinKeys` of its own, and
signs no other kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Literal

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.collections import fee_share_exceeds
from chalicelib.domain.treasury.consolidations import CoinMove, CoinMoveKind
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.utxo.engine import Kind, UtxoEngine
from chalicelib.usecases.treasury.consolidation.guards import ReplacedMove, SentMove, SignedMove
from chalicelib.usecases.treasury.consolidation.keys import CoinKeys

log = logging.getLogger(__name__)


class CoinMoveSigning:
    """Needs keys: `kinds` says of which moves."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        keys: CoinKeys,
        kinds: Collection[CoinMoveKind],
        payer_of: Callable[[Network], CoinPayer],
        reader_of: Callable[[Network], ChainReader],
        renewals: RenewalRules,
        fee_percent: int,
        second_of: Callable[[Network], SecondReader[CoinOrder]],
    ) -> None:
        self._engine = UtxoEngine(store, rules, clock, payer_of, reader_of, renewals, second_of)
        self._store, self._rules, self._clock, self._keys, self._kinds = store, rules, clock, keys, kinds
        self._payer_of, self._renewals, self._fee_percent = payer_of, renewals, fee_percent

    def advance(self, network_id: NetworkId, move_id: str) -> Literal["done", "waiting"]:
        """Bring a coin move as far as its broadcast; "waiting" where the node does not take it now. Safe to repeat at any time.

        Raises OrderMismatch, LookupError, Unavailable, Conflict.
        """
        realm, slug = network_parts(network_id)
        network = self._store.catalogue(realm).networks[slug]
        return until_settled(lambda: self._advance(network, move_id))

    def _advance(self, network: Network, move_id: str) -> Literal["done", "waiting"]:
        move = self._store.get(CoinMove, network=network.id, id=move_id)
        if move is None:
            raise LookupError(f"there is no coin move {move_id} on {network.id}")
        if move.kind not in self._kinds:
            raise OrderMismatch(f"coin move {move.id} is a {move.kind}, which is not signed here")
        signed = SignedMove(self._store, self._clock, self._keys, partial(self._too_dear, network), network)
        replaced = ReplacedMove(network, self._fee_percent)
        step, _ = self._engine.advance(Kind(signed, replaced, SentMove(self._store, self._rules, self._clock, network)), move)
        return "waiting" if step == "waiting" else "done"

    def _too_dear(self, network: Network, move: CoinMove) -> bool:
        """Whether its newest attempt would pay more to the miners than may be planned. A wallet is drained at any price of the
        day, however little it has, where nothing of the drain is signed yet."""
        newest = move.latest
        if not fee_share_exceeds(self._fee_percent, newest.fee, move.total):
            return False
        if move.earlier or move.kind != "drain":
            return True
        low = self._payer_of(network).fee_rate("low")
        return newest.fee > self._renewals.times * low * newest.vsize // 1000
