"""Looks at places of live bitcoin and litecoin. Their nodes keep no balances of addresses, so each coin that is known is asked for.

At a deposit address these are the outputs of its credited deposits, at a hot wallet those that it holds. A coin that was spent
behind our back is missing; one that came and that nobody has seen can not be found this way, which is what blocks are scanned for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from chalicelib.domain.addresses import Watched
from chalicelib.domain.bundles import Bundle
from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.domain.coins_held import HeldCoins
from chalicelib.domain.deposits import Deposit
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.reconciliation import Place, Seen
from chalicelib.domain.withdrawals import PaymentOrder
from chalicelib.usecases.addresses import watched_key
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Listed, Store
from chalicelib.usecases.sweeping import pages_of
from chalicelib.usecases.withdrawal_steps import order_of, payout_parts

MOST_COINS = 5_000
"""Deposits of one address that are asked for. Of more, the address is not compared."""
_PAGE = 500


class CoinWitness(Protocol):
    """Tells what is unspent; several nodes have to agree where there are several."""

    def vouched_unspent(self, outpoints: Sequence[str]) -> list[Unspent | None]:
        """What nodes say of outputs in blocks: None where one is spent or unknown. Raises Unavailable, also where two differ."""
        ...


class LooksAtCoins:
    """The port Looks for live networks of coins."""

    everywhere = False

    def __init__(self, network: Network, reader: ChainReader, witness: CoinWitness, store: Store, rules: AddressRules) -> None:
        self._network, self._reader, self._witness, self._store, self._rules = network, reader, witness, store, rules

    def block(self) -> int:
        return self._reader.tip()

    def form(self, contract: str | None) -> str | None:
        return contract

    def look(self, places: Sequence[Place]) -> list[Seen]:
        """Of each place, what was seen there. Raises Unavailable."""
        cursor = self._store.get(Cursor, network=self._network.id)
        if cursor is None or cursor.halted is not None or cursor.rewind_to is not None:
            raise Unavailable(f"{self._network.id} is not scanned, follows a reorganisation, or is halted")
        if self._reader.block_hash(cursor.number) != cursor.hash:
            raise Unavailable(f"{self._network.id}: the chain is not on the branch that was scanned")
        tip = self._reader.tip()
        more, in_flight, leaving, change = self._bundles()
        coins = {place.key: [*self._coins(place), *change.get(place.address, [])] for place in places}
        names = list(dict.fromkeys(name for known in coins.values() for name in known))
        told = dict(zip(names, self._witness.vouched_unspent(names), strict=True))
        keys: list[tuple[type[Any], dict[str, str]]] = [
            (WalletBalance, {"network": self._network.id, "address": p.address, "asset": p.asset}) for p in places
        ]
        ledger: list[WalletBalance | None] = self._store.get_many(keys) if keys else []
        seen = []
        for place, wallet in zip(places, ledger, strict=True):
            units = 0 if wallet is None else wallet.units
            held = sum(coin.amount for name in set(coins[place.key]) if (coin := told[name]) is not None)
            flight, left = in_flight.get(place.address, 0), leaving.get(place.address, 0)
            seen.append(Seen(place, units, flight, units + more.get(place.address, 0), held, left, tip))
        return seen

    def _coins(self, place: Place) -> list[str]:
        """The outpoints of what the ledger counts at a place, if they are not spent."""
        address = self._rules.normalize(self._network.id, place.address)
        if place.role == "hot":
            held = self._store.get(HeldCoins, network=self._network.id, wallet=address)
            return [] if held is None else [coin.outpoint for coin in held.coins if not coin.gone]
        watched: Watched | None = self._store.get(Watched, **watched_key(self._network, place.address)[1])
        owner = f"own:{self._network.realm}" if watched is None or watched.tenant is None else watched.tenant
        found: list[str] = []
        after: str | None = None
        while True:
            listed = self._store.places(Listed("tx", "address", owner, address), limit=_PAGE, after=after)
            found += [name for record in self._store.at(listed.places) if (name := self._arrived(record, address)) is not None]
            if not listed.more:
                return found
            if len(found) > MOST_COINS:
                raise Unavailable(f"{address} has more than {MOST_COINS} deposits")
            after = listed.places[-1].position

    def _arrived(self, record: object, address: str) -> str | None:
        """The outpoint of a credited deposit; lists of an address also have payments to it."""
        if not isinstance(record, Deposit) or record.status != "confirmed":
            return None
        if (record.network, record.address) != (self._network.id, address) or not record.position.startswith("out:"):
            return None
        return f"{record.txid}:{record.position.removeprefix('out:')}"

    def _bundles(self) -> tuple[dict[str, int], dict[str, int], dict[str, int], dict[str, list[str]]]:
        """By the hot wallets' addresses: what has to be there beside the ledger's, what is in flight, what of that has left, and
        the outpoints of change that the wallet does not hold yet."""
        more: dict[str, int] = defaultdict(int)
        in_flight: dict[str, int] = defaultdict(int)
        leaving: dict[str, int] = defaultdict(int)
        change: dict[str, list[str]] = defaultdict(list)
        for bundle in self._open_bundles():
            home = self._rules.storage_form(self._network.slug, bundle.wallet)
            mined = next((built for built in bundle.signed if built.txid and self._reader.receipt(built.txid)), None)
            if mined is not None and mined.change is not None and bundle.state != "settled":
                change[home].append(f"{mined.txid}:{mined.change.removeprefix('out:')}")
            keys = [(PaymentOrder, {"id": order_of(payout.tenant, payout.withdrawal)}) for payout in bundle.payouts]
            for payout, order in zip(bundle.payouts, self._store.get_many(keys) if keys else [], strict=True):
                state = "built" if order is None else order.state
                if state == "signed":
                    in_flight[home] += payout.amount
                    leaving[home] += payout.amount if mined is not None else 0
                    more[home] += payout.amount if mined is None else -bundle.share(payout.withdrawal, mined.fee)
                elif state == "built" and mined is not None:
                    more[home] -= payout.amount + bundle.share(payout.withdrawal, mined.fee)
        return more, in_flight, leaving, change

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
