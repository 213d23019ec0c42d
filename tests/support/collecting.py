"""The treasury of one network in memory: its use cases are real, the chain is what a test says that it is.

What a chain does with moves says the test (`ends`), and the books follow. Fees are one number for all transfers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from chalicelib.chains.addresses import Rules
from chalicelib.domain.addresses.addresses import Address, Role, Wallet, Watched
from chalicelib.domain.audit.collections import collections_agree
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin, Network
from chalicelib.domain.catalogue.rates import ConstantRates, Rates
from chalicelib.domain.ids import TenantId, network_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.screening.grey_list import GreyListEntry
from chalicelib.domain.treasury.collections import Collecting, Collection
from chalicelib.domain.treasury.energy_loans import Lendable
from chalicelib.domain.treasury.moves import LOANS, Move, move_work
from chalicelib.domain.work import OutboxRow, outbox_work
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.accounts import FeeEstimate, Payment
from chalicelib.usecases.ports.changes import Change, Close, Save
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.treasury.cold_storage_accounts import Distributor
from chalicelib.usecases.treasury.collection.decisions import Action, CollectDecisions
from chalicelib.usecases.treasury.collection.fees import MoveFees
from chalicelib.usecases.treasury.collection.planning import CollectPlanning
from chalicelib.usecases.treasury.collection.run import CollectRun
from chalicelib.usecases.treasury.collection.steps import CollectSteps
from chalicelib.usecases.treasury.hot_floor import HotFloor
from chalicelib.usecases.treasury.topups import TopUps
from chalicelib.usecases.treasury.tron.energy_loans import Loans
from chalicelib.usecases.wallets.sweep_candidates import open_hint, place_id
from tests.support.memory_store import HandClock, MemoryStore

USDT, ETHER, GWEI = 10**6, 10**18, 10**9
FEE = 50_000 * GWEI
"""Of every transfer: a tenth of a dollar at the sandbox's rates."""
HOT = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"  # these are EIP-55's own examples
COLD = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"
USER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
TETHER = "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB"
MERCHANT = TenantId("test:shop")
NETWORK = network_id("test", "ethereum")


class Books(MemoryStore):
    """The store, with the catalogue of one network. `before_commit`: what happens in the middle, once."""

    def __init__(self, network: Network, coins: Sequence[Coin]) -> None:
        super().__init__()
        self.network, self.coins = network, {coin.slug: coin for coin in coins}
        self.before_commit: Any = None

    def catalogue(self, realm: str, fresh: bool = False) -> Catalogue:
        return Catalogue("test", [self.network], self.coins.values())

    def commit(self, changes: Sequence[Change], /) -> None:
        act, self.before_commit = self.before_commit, None
        if act is not None:
            act()
        super().commit(changes)


class Chain:
    """What it costs and has: what the books have, unless `has` says otherwise of the native coin of an address. `refuses`: what
    the node says of transfers of tokens. `lent`: the energy for one is there."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.fee, self.refuses, self.lent = FEE, "", False
        self.has: dict[str, int] = {}

    def cost(self, payment: Payment) -> FeeEstimate:
        if self.refuses and payment.contract is not None:
            raise Refused(self.refuses)
        return FeeEstimate(0 if self.lent and payment.contract is not None else self.fee)

    def balance(self, address: str, contract: str | None = None) -> int:
        coin = self._books.coins["eth" if contract is None else "usdt"]
        found = self._books.get(WalletBalance, network=NETWORK, address=address.lower(), asset=coin.asset)
        booked = 0 if found is None else int(found.units)
        return self.has.get(address, booked) if contract is None else booked


class Stake:
    """The node that is asked what of the hot wallet's stake can be lent."""

    def __init__(self, there: Lendable) -> None:
        self.there = there

    def lendable(self, wallet: str, receiver: str, resource: str) -> Lendable:
        return self.there


class Treasury:
    def __init__(self, **settings: str | bool) -> None:
        network = Network(NETWORK, "Ethereum", "ETH", "evm", 1, 12, 12, 18, status="active", simulated=True)
        coins = [Coin(NETWORK, "eth", "ETH", "Ether", 18), Coin(NETWORK, "usdt", "USDT", "Tether USD", 6, TETHER)]
        self.network, self.clock, self.rules = network, HandClock(), Rules()
        self.store: Any = Books(network, coins)
        self.chain = Chain(self.store)
        self.rates: Rates = ConstantRates({("eth", "USD"): "2000", ("usdt", "USD"): "1"}, self.clock.now_ms)
        self.wallet("hot", HOT)
        self.put(HOT, "eth", 100 * ETHER)
        self.store.commit(
            [
                Save(Watched("test", "evm", USER.lower(), "user", ("ethereum",), MERCHANT, "adr_1")),
                Save(Address("adr_1", MERCHANT, NETWORK, USER, "invoice", ("ethereum",), "m/44'/60'/0'/0/7", 1)),
            ]
        )
        self.settle_for("usdt", **(settings or {"collectThreshold": "0"}))
        self.stake: Any = None  # a `Stake`, where energy can be lent as on Tron

    # What the operator does.

    def settle_for(self, coin: str, **settings: str | bool) -> None:
        before = self.store.coins[coin]
        self.store.coins[coin] = replace(before, settings={**before.settings, **settings})

    def wallet(self, role: Role, address: str) -> None:
        self.store.commit([Save(Wallet(NETWORK, role, address, "kms", "key", "", 1))])

    def decide(self, action: Action, reason: str | None = None, by: str = "key_1") -> Collection:
        return CollectDecisions(self.store, self.rules, self.clock).decide("test", self.last.id, action, reason, by)

    # What the world does.

    def put(self, address: str, coin: str, units: int, **beside: int) -> None:
        """The books and the chain have so much of it there from now on."""
        place = {"network": NETWORK, "address": address.lower(), "asset": self.store.coins[coin].asset}
        self.store.records[self.store._key(WalletBalance, place)] = WalletBalance(**place, units=units, **beside)

    def there(self, address: str, coin: str) -> int:
        return self.chain.balance(address, self.store.coins[coin].contract)

    def deposit(self, units: int, coin: str = "usdt", **beside: int) -> None:
        """It is credited, and hinted at."""
        self.put(USER, coin, self.there(USER, coin) + units, **beside)
        open_hint(self.store, NETWORK, place_id(USER.lower(), coin))

    def grey_list(self) -> GreyListEntry:
        entry = GreyListEntry("test", "ethereum", USER.lower(), USER, 1, "key_1")
        self.store.commit([Save(entry)])
        return entry

    def ends(self, state: Literal["settled", "failed", "dropped"]) -> Move:
        """The one move that is under way comes to its end."""
        (move,) = (m for m in self.store.all(Move) if not m.at_rest)
        return self.settle(move, state)

    def settle(self, move: Move, state: Literal["settled", "failed", "dropped"] = "settled") -> Move:
        after = replace(move, state=state, reason=None if state == "settled" else "so it is", version=move.version + 1)
        if state == "settled" and move.kind not in LOANS:
            coin = move.asset.split(":")[-1]
            sent = self.there(move.source, coin) - self.chain.fee if move.bare else move.amount
            after = replace(after, amount=sent, arrived=sent)
            self.put(move.source, coin, self.there(move.source, coin) - sent)
            self.put(move.recipient, coin, self.there(move.recipient, coin) + sent)
        if state != "dropped" and move.kind not in LOANS:
            self.put(move.source, "eth", max(0, self.there(move.source, "eth") - self.chain.fee))
        self.chain.lent = move.kind == "delegation" and state == "settled"
        self.store.commit([Save(after), Close(move_work(move))])
        return after

    # What the service does.

    def poll(self, seconds: int = 0) -> None:
        """`seconds` pass, the outbox is told, and collections are looked at."""
        self.clock.pass_ms(seconds * 1000)
        for row in self.store.all(OutboxRow):
            for command in row.commands:
                if command.queue == "collectable":
                    open_hint(self.store, NETWORK, command.body["id"])
            self.store.records.pop(self.store._key_of(row))
            self.store.work.discard(outbox_work(row))
        loans = None if self.stake is None else Loans(self.network, self.store, self.clock, self.stake)
        steps = CollectSteps(self.context, self._fees, loans)
        planning = CollectPlanning(self.context, self._fees)
        CollectRun(self.context, planning, steps, self._fees).work(lambda: True)
        self.whole()

    def go_on(self, *moves: str, seconds: int = 61) -> None:
        """The moves that are under way, in this order by their kinds, are settled one after the other."""
        for kind in moves:
            assert self.ends("settled").kind == kind
            self.poll(seconds)

    def distribute(self) -> None:
        Distributor(self.context, self._fees).work(lambda: True)

    def floor(self) -> None:
        HotFloor(self.context, lambda _: self.rates).look()

    @property
    def context(self) -> NetworkContext:
        chain: Any = self.chain
        return NetworkContext(self.network, chain, self.store, self.rules, self.clock)

    @property
    def topups(self) -> TopUps:
        return TopUps(self._fees)

    @property
    def _fees(self) -> MoveFees:
        node, rates = (lambda: self.chain), (lambda _: self.rates)
        return MoveFees(self.network, self.store, self.rules, self.clock, node, node, rates, 5)

    # What stands in the books.

    @property
    def hot_key(self) -> tuple[Any, ...]:
        return (Wallet, NETWORK, "hot")

    @property
    def all(self) -> list[Collection]:
        return sorted(self.store.all(Collection), key=lambda c: (c.created_at, c.ended_at is None))

    @property
    def last(self) -> Collection:
        return self.all[-1]

    @property
    def state(self) -> tuple[str, str | None]:
        return self.last.state, self.last.reason

    def moves(self, kind: str) -> list[Move]:
        return [m for m in self.store.all(Move) if m.kind == kind]

    def whole(self) -> None:
        found = collections_agree(self.all, self.store.all(Collecting), [], self.store.all(Move), list(self.store.work))
        assert list(found) == []
