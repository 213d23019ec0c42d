"""Signs and sends coin moves, each step stored before the next begins. What a crash leaves, `advance` goes on from:

* built: its bytes are held against the coins that are reserved for it and the wallets that are registered (money rule 7), signed,
  and stored with their txid and with "these outputs are ours", before anybody can see them (rule 5).
* signed: the places' money is booked as in flight, a few addresses per transaction; only then the bytes go to the node, as often
  as it takes. A replacement (BIP-125) is built, stored, checked and signed the same way, of the same inputs.

Deposits' coins need the seed and hot wallets' coins their keys, which two functions have: each gets a `CoinKeys` of its own, and
signs no other kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Literal

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.collections import fee_share_exceeds
from chalicelib.domain.treasury.consolidations import CoinMove, CoinMoveKind
from chalicelib.domain.treasury.hot_utxos import MOST_RATE
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Post, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import out_of_bounds
from chalicelib.usecases.transactions.utxo.proofs import unproved
from chalicelib.usecases.transactions.utxo.signing import UtxoSigning
from chalicelib.usecases.treasury.consolidation.guards import SignedMove
from chalicelib.usecases.treasury.consolidation.keys import CoinKeys
from chalicelib.usecases.treasury.consolidation.parts import (
    amounts_at,
    built,
)

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
        self._engine = UtxoSigning(store, rules, clock, payer_of, renewals, second_of)
        self._store, self._rules, self._clock, self._keys, self._kinds = store, rules, clock, keys, kinds
        self._payer_of, self._reader_of, self._renewals, self._fee_percent = payer_of, reader_of, renewals, fee_percent

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
        if move.state == "built":
            move = self._sign(network, move)
        if move.state != "signed":
            return "done"
        move = self._book(network, move)
        if move.renew:
            move = self._replaced(network, move)
        if move.newest is not None and move.newest.raw is None:
            move = self._sign(network, move)
        return self._send(network, move)

    # Signing

    def _sign(self, network: Network, move: CoinMove) -> CoinMove:
        kind = SignedMove(self._store, self._clock, self._keys, partial(self._too_dear, network), network)
        return self._engine.sign(kind, move)

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

    # Booking

    def _book(self, network: Network, move: CoinMove) -> CoinMove:
        """From now on the coins can leave their places at any time: place by place they are in flight."""
        while part := move.next_part():
            now = self._clock.now_ms()
            entry = ledger.coins_signed(move.id, move.booked, now, amounts_at(self._rules, network, move, part))
            move = replace(move, booked=move.booked + len(part)).next(now)
            self._store.commit([Save(move), Post(entry)])
        return move

    # A replacement

    def _replaced(self, network: Network, move: CoinMove) -> CoinMove:
        """Build what takes the place of the newest attempt: the same inputs, a higher fee, less for the recipient or the change."""
        newest, now = move.newest, self._clock.now_ms()
        as_it_is = replace(move, renew=False)
        payer, reader = self._payer_of(network), self._reader_of(network)
        if newest is None or newest.raw is None:
            return move
        if self._renewals.worn_out(len(move.earlier)) or any(reader.receipt(txid) is not None for txid in move.txids):
            return self._stored(as_it_is.next(now))
        if unlike := unproved(payer, self._rules, network, move, newest):
            log.error("ALARM %s: %s differs from what was signed in %s", network.id, move.id, ", ".join(unlike))
            raise OrderMismatch(f"coin move {move.id} differs from what was signed in {', '.join(unlike)}")
        home = move.wallet if newest.change and move.wallet is not None else move.recipient
        try:
            plan = payer.replace(newest.unsigned, home, [], min(MOST_RATE, payer.fee_rate("normal")))
        except Refused as refused:
            log.warning("ALARM %s: %s is stuck and can not be replaced now: %s", network.id, move.id, refused)
            return self._stored(as_it_is.next(now))
        made = built(payer, self._rules, network, move, plan.unsigned)
        dear = fee_share_exceeds(self._fee_percent, made.fee, move.total)
        if dear or out_of_bounds(self._renewals, (*move.earlier, newest), made.fee, made.vsize):
            log.warning("ALARM %s: %s is stuck, and a replacement would cost %d", network.id, move.id, made.fee)
            return self._stored(as_it_is.next(now))
        earlier = (*move.earlier, replace(newest, unsigned=""))
        return self._stored(replace(as_it_is, newest=made, earlier=earlier).next(now))

    def _stored(self, move: CoinMove) -> CoinMove:
        self._store.commit([Save(move)])
        return move

    def _send(self, network: Network, move: CoinMove) -> Literal["done", "waiting"]:
        newest = move.newest
        if newest is None or newest.raw is None:
            raise LookupError(f"{move.id} has no signed bytes")
        if put_back(self._store, network.realm) is not None:
            return "waiting"  # the poll sends it once it is known what was sent since
        try:
            self._payer_of(network).broadcast(newest.raw)
        except Refused as refused:
            # Signed bytes stay valid: only the chain decides. Sent again by the polls.
            log.warning("%s: the node refused %s for now: %s", network.id, move.id, refused)
            return "waiting"
        return "done"
