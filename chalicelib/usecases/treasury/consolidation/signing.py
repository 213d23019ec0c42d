"""Signs and sends coin moves, as `transactions.utxo.engine` says: what a crash leaves, `advance` goes on from.

The places' money goes in flight a few addresses per transaction, before anything is sent. A replacement spends the same inputs.

Deposits' coins need the seed and hot wallets' coins their keys, which two functions have: each gets a `CoinKeys` of its own, and
signs no other kind.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.treasury.consolidations import CoinMove, CoinMoveKind
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.utxo.engine import Kind, UtxoEngine
from chalicelib.usecases.treasury.consolidation.guards import FeeShare, ReplacedMove, SentMove, SignedMove
from chalicelib.usecases.treasury.consolidation.keys import CoinKeys


class CoinMoveSigning:
    """Needs keys: `kinds` says of which moves."""

    def __init__(
        self,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        keys: CoinKeys,
        kinds: Collection[CoinMoveKind],
        share: FeeShare,
        engine: UtxoEngine,
    ) -> None:
        self._store, self._rules, self._clock = store, rules, clock
        self._keys, self._kinds, self._share, self._engine = keys, kinds, share, engine

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
        signed = SignedMove(self._store, self._clock, self._keys, self._share, network)
        replaced, sent = ReplacedMove(network, self._share, self._clock), SentMove(self._store, self._rules, self._clock, network)
        step, _ = self._engine.advance(Kind(signed, replaced, sent), move)
        return "waiting" if step == "waiting" else "done"
