"""Compares addresses on live bitcoin and litecoin. Their nodes keep no balances of addresses, so each known UTXO is asked for.

At a deposit address these are the outputs of its credited deposits, at a hot wallet those that it holds. A UTXO that was spent
behind our back is missing. A payment that no scan recorded can not be found this way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from chalicelib.domain.addresses.addresses import Watched, watched_key
from chalicelib.domain.chain import Cursor
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.reconciliation import Place, Seen, Unread
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.hot_utxos import HeldCoins
from chalicelib.domain.treasury.moves import operators
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.side_by_side import answers
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.store import Listed
from chalicelib.usecases.withdrawals.steps import order_of, payout_parts

MOST_COINS = 5_000
"""Deposits of one address that are asked for. Of more, the address is not compared: anybody can send so many small ones."""
_PAGE = 500
AT_ONCE = 10
"""Addresses whose deposits are read at a time."""


class CoinWitness(Protocol):
    """Tells which outputs are unspent; where there are several nodes, they have to agree."""

    def vouched_unspent(self, outpoints: Sequence[str]) -> list[Unspent | None]:
        """The nodes' answer about outputs in blocks: None where one is spent or unknown. Raises Unavailable, also where two
        differ."""
        ...


@dataclass
class _Way:
    """By address (storage form). The ledger's balance plus `more` has to be there. `in_flight` is what is in flight from there,
    `leaving` the part of it that has left. `change`: outpoints of change that the wallet does not hold yet."""

    more: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    in_flight: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    leaving: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    change: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class LooksAtCoins:
    """The port Looks for live UTXO networks."""

    everywhere = False

    def __init__(self, context: NetworkContext, witness: CoinWitness) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._context, self._witness = context, witness
        self.unspent: Sequence[str] = ()

    def block(self) -> int:
        return self._reader.tip()

    def form(self, contract: str | None) -> str | None:
        return contract

    def holding(self, places: Sequence[Place]) -> list[Place]:
        return list(places)

    def touched(self) -> Collection[str]:
        way = _Way()
        self._moves(way)
        return way.in_flight.keys()

    def look(self, places: Sequence[Place]) -> list[Seen | Unread]:
        """The comparison of each place. Raises Unavailable."""
        cursor = self._store.get(Cursor, network=self._network.id)
        if cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            raise Unavailable(f"{self._network.id} is not scanned, follows a reorganisation, or is halted")
        if self._reader.block_hash(cursor.number) != cursor.hash:
            raise Unavailable(f"{self._network.id}: the chain is not on the branch that was scanned")
        tip = self._reader.tip()
        way = self._bundles()
        self._moves(way)
        listed = answers(self._coins, places, AT_ONCE)
        known = {place.key: coins for place, coins in zip(places, listed, strict=True)}
        unread: list[Seen | Unread] = [
            Unread(p, tip, f"it has more than {MOST_COINS} deposits", lasting=True) for p in places if known[p.key] is None
        ]
        coins = {p.key: [*(known[p.key] or ()), *way.change.get(p.address, [])] for p in places if known[p.key] is not None}
        places = [place for place in places if place.key in coins]
        names = list(dict.fromkeys(name for known in coins.values() for name in known))
        told = dict(zip(names, self._witness.vouched_unspent(names), strict=True))
        keys: list[tuple[type[Any], dict[str, str]]] = [
            (WalletBalance, {"network": self._network.id, "address": p.address, "asset": p.asset}) for p in places
        ]
        ledger: list[WalletBalance | None] = self._store.get_many(keys) if keys else []
        self.unspent = [
            deposit_id(self._network.id, name.split(":")[0], f"out:{name.split(':')[1]}")
            for place in places
            if place.role == "user" and not way.in_flight.get(place.address)
            for name in coins[place.key]
            if told[name] is not None
        ]
        seen: list[Seen] = []
        for place, wallet in zip(places, ledger, strict=True):
            units = 0 if wallet is None else wallet.units
            held = sum(coin.amount for name in set(coins[place.key]) if (coin := told[name]) is not None)
            flight, left = way.in_flight.get(place.address, 0), way.leaving.get(place.address, 0)
            seen.append(Seen(place, units, flight, units + way.more.get(place.address, 0), held, left, tip))
        return [*seen, *unread]

    def _coins(self, place: Place) -> list[str] | None:
        """The outpoints of what the ledger counts at a place, if they are not spent; None where they are too many."""
        address = self._context.rules.normalize(self._network.id, place.address)
        if place.role == "hot":
            held = self._store.get(HeldCoins, network=self._network.id, wallet=address)
            coins = () if held is None else tuple(coin for coin in held.coins if not coin.gone)
            known = [coin.outpoint for coin in coins]
            # Payments of others there are in the ledger, also where the record has no room for them.
            if (came := self._listed(f"own:{self._network.realm}", address)) is not None:
                return [*known, *came]
            wallet = self._store.get(WalletBalance, network=self._network.id, address=place.address, asset=place.asset)
            return None if wallet is not None and wallet.units > sum(coin.amount for coin in coins) else known
        watched: Watched | None = self._store.get(Watched, **watched_key(self._network, place.address)[1])
        if watched is not None and watched.tenant is not None:
            return self._listed(watched.tenant, address)
        # Payments of others to the cold wallet, and our own moves to it.
        came, brought = (self._listed(owner, address) for owner in (f"own:{self._network.realm}", operators(self._network.realm)))
        return None if came is None or brought is None else [*came, *brought]

    def _listed(self, owner: str, address: str) -> list[str] | None:
        found: list[str] = []
        looked, after = 0, None
        while True:
            listed = self._store.places(Listed("tx", "address", owner, address), limit=_PAGE, after=after)
            found += [name for record in self._store.at(listed.places) if (name := self._arrived(record, address)) is not None]
            if not listed.more:
                return found
            looked += len(listed.places)
            if looked > MOST_COINS:
                return None
            after = listed.places[-1].position

    def _arrived(self, record: object, address: str) -> str | None:
        """The outpoint of a credited deposit, or of a coin move that is settled; lists of an address also have payments to it."""
        if isinstance(record, CoinMove):
            return f"{record.mined}:0" if record.state == "settled" and record.recipient == address else None
        if not isinstance(record, Deposit) or not record.posted:
            return None
        if (record.network, record.address) != (self._network.id, address) or not record.position.startswith("out:"):
            return None
        return f"{record.txid}:{record.position.removeprefix('out:')}"

    def _bundles(self) -> _Way:
        """The effects of bundles in flight."""
        way = _Way()
        for bundle in self._open_bundles():
            home = self._context.form(bundle.wallet)
            mined = next((built for built in bundle.signed if built.txid and self._reader.receipt(built.txid)), None)
            if mined is not None and mined.change is not None and bundle.state != "settled":
                way.change[home].append(f"{mined.txid}:{mined.change.removeprefix('out:')}")
            keys = [(PaymentOrder, {"id": order_of(payout.tenant, payout.withdrawal)}) for payout in bundle.payouts]
            for payout, order in zip(bundle.payouts, self._store.get_many(keys) if keys else [], strict=True):
                state = "built" if order is None else order.state
                if state == "signed":
                    way.in_flight[home] += payout.amount
                    way.leaving[home] += payout.amount if mined is not None else 0
                    way.more[home] += payout.amount if mined is None else -bundle.share(payout.withdrawal, mined.fee)
                elif state == "built" and mined is not None:
                    way.more[home] -= payout.amount + bundle.share(payout.withdrawal, mined.fee)
        return way

    def _moves(self, way: _Way) -> None:
        """Add the effects of UTXO moves. Their outputs to us count nowhere until they are settled: they are in flight."""
        for works in pages_of(self._store, "coinmove", self._network.id):
            for move in self._store.get_many([(CoinMove, {"network": self._network.id, "id": work.id}) for work in works]):
                if move is None or not move.in_flight:
                    continue
                mined = next((made for made in move.signed if made.txid and self._reader.receipt(made.txid)), None)
                for number, coin in enumerate(move.inputs[: move.booked]):
                    home = self._context.form(coin.address)
                    way.in_flight[home] += coin.amount
                    if mined is None:
                        way.more[home] += coin.amount
                    else:
                        way.leaving[home] += coin.amount - (0 if number else mined.fee)

    def _open_bundles(self) -> Iterable[Bundle]:
        """Those that are signed and not settled, and those some of whose payments are not: payments settle one by one."""
        names: dict[str, None] = {}
        for works in pages_of(self._store, "bundle", self._network.id):
            names |= {work.id: None for work in works}
        for works in pages_of(self._store, "sent", self._network.id):
            orders = self._store.get_many([(PaymentOrder, {"id": order_of(*payout_parts(work))}) for work in works])
            names |= {order.bundle: None for order in orders if order is not None and order.bundle is not None}
        found: list[Bundle | None] = self._store.get_many([(Bundle, {"id": id_}) for id_ in names]) if names else []
        return [bundle for bundle in found if bundle is not None and bundle.signed]
