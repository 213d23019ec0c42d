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
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Literal

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.treasury.collections import fee_share_exceeds
from chalicelib.domain.treasury.consolidations import CoinAttempt, CoinMove, CoinMoveKind
from chalicelib.domain.treasury.hot_utxos import MOST_RATE, OwnTransaction
from chalicelib.usecases.base.kill_switch import PaymentsStopped, closed_to, put_back, rests_on_tables
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Post, Save, Still
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.coins import CoinPayer, Output
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.second_reader import CoinOrder, SecondReader
from chalicelib.usecases.ports.signing import Signed
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.replacement_bounds import out_of_bounds
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from chalicelib.usecases.transactions.utxo.orders import coin_order
from chalicelib.usecases.transactions.utxo.proofs import begun_for, move_unproved
from chalicelib.usecases.treasury.consolidation.keys import CoinKeys
from chalicelib.usecases.treasury.consolidation.parts import (
    amounts_at,
    attempt_of,
    deposits_of,
    outpoint_of,
    queue_of,
    recipient_of,
    spendable,
    unspent_of,
)
from chalicelib.usecases.wallets.utxos import coins_of

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
        self._second_of = second_of
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
        newest = move.newest
        if newest is None:
            raise LookupError(f"{move.id} has nothing to sign")
        try:
            rests_on = self._approve(network, move, newest)
        except OrderMismatch as mismatch:
            if mismatch.bytes_only and move.state == "built":
                # Nothing was signed: whoever follows it has it built anew, or lets the coins go and plans anew.
                anew = replace(move, state="waiting", newest=None, reason="its bytes were altered")
                self._store.commit([Save(anew.next(self._clock.now_ms()))])
            raise
        signed = self._signed(network, move, newest)
        now = self._clock.now_ms()
        done = replace(newest, raw=signed.raw, txid=signed.txid, signed_at=now)
        move = replace(move, state="signed", newest=done).next(now)
        ours = OwnTransaction(network.id, signed.txid, done.positions)
        self._store.commit([Save(move), Save(ours), *rests_on])
        return move

    def _signed(self, network: Network, move: CoinMove, newest: CoinAttempt) -> Signed:
        """Sign what both readers read as the move of its coins to its recipient, the change last (money rule 15). Raises
        ReadersDiffer, Unavailable."""
        payer, coins = self._payer_of(network), {coin.outpoint: coin for coin in move.inputs}
        paid = [Output(move.recipient, newest.amount)]
        if newest.change and move.wallet is not None:
            paid.append(Output(move.wallet, newest.change))
        order = coin_order(payer, newest.unsigned, unspent_of(move.inputs), paid)

        def sign(digests: Sequence[bytes]) -> Signed:
            with self._keys(move) as key:
                spent = [coins[coin.outpoint] for coin in order.inputs]
                signatures = [key(coin, digest) for coin, digest in zip(spent, digests, strict=True)]
            # Refuses a signature that is not by the key of its input's address.
            return payer.assemble(newest.unsigned, signatures)

        digests = payer.digests(newest.unsigned)
        return sign_read_twice(network, f"coin move {move.id}", self._second_of(network), order, digests, sign)

    def _approve(self, network: Network, move: CoinMove, newest: CoinAttempt) -> list[Change]:
        """What the signature rests on. Raises OrderMismatch unless the bytes do exactly what was planned, with coins of ours
        that nothing else spends (money rule 7)."""
        native = self._store.catalogue(network.realm).native(network.slug).asset
        wrong = [name for name, same in {"network": move.network == network.id, "coin": move.asset == native}.items() if not same]
        rests_on = rests_on_tables(self._store, network.realm)
        first = move.earlier[0] if move.earlier else None
        if first is None:
            wallet = recipient_of(self._store, move)
            if wallet is None:
                wrong.append("recipient")
            else:
                if closed_to(self._store, wallet):
                    raise PaymentsStopped(f"payments are stopped, and {wallet.address} was registered after that")
                rests_on.append(Still(wallet))
            wrong += self._not_ours(network, move)
        else:
            wrong += ["what it replaces"] if move.state != "signed" else []
            wrong += self._not_ours(network, move)
            wrong += move_unproved(self._payer_of(network), self._rules, network, move, first)
            held_on = begun_for(self._store, move)
            wrong += ["recipient"] if held_on is None else []
            rests_on += held_on or []
        altered = self._altered(network, move, newest)
        if wrong or altered:
            named = ", ".join([*wrong, *altered][:10])
            log.error("ALARM %s: %s differs from what was planned in %s", network.id, move.id, named)
            raise OrderMismatch(f"coin move {move.id} differs from what was planned in {named}", bytes_only=not wrong)
        return rests_on

    def _altered(self, network: Network, move: CoinMove, newest: CoinAttempt) -> list[str]:
        """In what the newest bytes are not those that its record says were built, or may not be."""
        try:
            does = attempt_of(self._payer_of(network), self._rules, network, move, newest.unsigned)
        except OrderMismatch as error:
            return [f"bytes ({error})"]
        facts = {
            "what was built": does == replace(newest, raw=None, txid=None, signed_at=0),
            "what it spends in all": does.amount + does.change + does.fee == move.total,
        }
        wrong = [name for name, same in facts.items() if not same]
        if move.earlier:
            return [*wrong, *self._not_replaced_by(move, move.earlier, newest)]
        wrong += [] if 0 < newest.fee <= MOST_RATE * newest.vsize // 1000 else ["fee's bounds"]
        return [*wrong, "fee's share"] if self._too_dear(network, move, newest) else wrong

    def _not_replaced_by(self, move: CoinMove, earlier: Sequence[CoinAttempt], made: CoinAttempt) -> list[str]:
        """Which bounds `made` breaks in place of `earlier` attempts."""
        dear = fee_share_exceeds(self._fee_percent, made.fee, move.total)
        return [*out_of_bounds(self._renewals, earlier, made.fee, made.vsize), *(["fee's share"] if dear else [])]

    def _too_dear(self, network: Network, move: CoinMove, newest: CoinAttempt) -> bool:
        """Whether the first signature would pay more to the miners than may be planned. A wallet is drained at any price of
        the day, however little it has."""
        if not fee_share_exceeds(self._fee_percent, newest.fee, move.total):
            return False
        low = self._payer_of(network).fee_rate("low")
        return move.kind != "drain" or newest.fee > self._renewals.times * low * newest.vsize // 1000

    def _not_ours(self, network: Network, move: CoinMove) -> list[str]:
        """The inputs that are no coins of ours which are reserved for this move. Of what was signed already, a block that
        fell out may have taken some back."""
        begun = bool(move.earlier)
        if move.wallet is not None:
            held = {
                c.outpoint: c.amount for c in coins_of(self._store, network, move.wallet).reserved(move.id) if begun or not c.gone
            }
            return [
                coin.outpoint
                for coin in move.inputs
                if (held.get(coin.outpoint), coin.address, coin.path) != (coin.amount, move.wallet, None)
            ]
        if move.id not in queue_of(self._store, network.id).holders:
            return ["the reservation"]
        deposits = deposits_of(self._store, move)
        owners = self._store.get_many(
            [
                (Address, {"tenant": "" if d is None else d.tenant or "", "id": "" if d is None else d.address_id or ""})
                for d in deposits
            ]
        )
        wrong = []
        for coin, deposit, address in zip(move.inputs, deposits, owners, strict=True):
            if deposit is None or address is None or not (begun or spendable(deposit)):
                wrong.append(coin.outpoint)
                continue
            known = (outpoint_of(deposit), deposit.amount, deposit.address, deposit.network, deposit.asset, address.path)
            if known != (coin.outpoint, coin.amount, coin.address, network.id, move.asset, coin.path):
                wrong.append(coin.outpoint)
        return wrong

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
        if unlike := move_unproved(payer, self._rules, network, move, newest):
            log.error("ALARM %s: %s differs from what was signed in %s", network.id, move.id, ", ".join(unlike))
            raise OrderMismatch(f"coin move {move.id} differs from what was signed in {', '.join(unlike)}")
        home = move.wallet if newest.change and move.wallet is not None else move.recipient
        try:
            plan = payer.replace(newest.unsigned, home, [], min(MOST_RATE, payer.fee_rate("normal")))
        except Refused as refused:
            log.warning("ALARM %s: %s is stuck and can not be replaced now: %s", network.id, move.id, refused)
            return self._stored(as_it_is.next(now))
        made = attempt_of(payer, self._rules, network, move, plan.unsigned)
        if self._not_replaced_by(move, (*move.earlier, newest), made):
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
