"""Fakes at the ports of the UTXO engine: bytes are names, and keys and nodes write down that they were asked. They agree with
each other, and a test has one of them disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.transactions.utxo_attempts import Contents
from chalicelib.domain.treasury.consolidations import CoinMove, MovedCoin
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.withdrawals.bundles import Bundle, BundledPayout
from chalicelib.usecases.ports.changes import Absent, Change, Conflict
from chalicelib.usecases.ports.coins import CoinPlan, Output, ProvedCoins, Unspent
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.second_reader import Built, CoinOrder
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.transactions.utxo.engine import Kind, UtxoEngine
from chalicelib.usecases.transactions.utxo.kinds import Grounds, InputSigner, Means

NETWORK: Network = next(network for network in default_networks("live") if network.slug == "litecoin")
LTC = AssetId("live:litecoin:ltc")
COINS = (HeldCoin(f"{'a' * 64}:0", 50_000, 7), HeldCoin(f"{'b' * 64}:1", 50_000, 7))
OTHERS = (HeldCoin(f"{'c' * 64}:0", 50_000, 7), HeldCoin(f"{'d' * 64}:0", 50_000, 7))
PAID, VSIZE = 60_000, 20
CONDITION: Change = Absent(Bundle, {"id": "condition"})
TAKEN: Change = Absent(Bundle, {"id": "reservation"})

BUNDLE = Bundle(
    "record", NETWORK.id, "hot", LTC, 1, 1, payouts=(BundledPayout("wd", TenantId("mch_x:live"), "payee", PAID),), state="built"
)
MOVE = CoinMove(
    "record", NETWORK.id, "cold", LTC, "hot", "payee",
    tuple(MovedCoin(coin.outpoint, coin.amount, coin.height, "hot") for coin in COINS), PAID, "hot", 1, 1,
)  # fmt: skip
KINDS: dict[str, Any] = {"bundle": BUNDLE, "move": MOVE}
"""A record of each kind that pays the same, without an attempt."""


def outputs(fee: int, payee: str = "payee") -> tuple[tuple[str, int], ...]:
    return (payee, PAID), ("hot", 100_000 - PAID - fee)


def attempt(record: Any, name: str, fee: int, coins: Sequence[HeldCoin] = COINS, vsize: int = VSIZE) -> Any:
    """The attempt of `record` whose bytes are `name`, not signed."""
    return record.attempt_of(Contents(name, tuple(coins), outputs(fee), fee, vsize))


def signed(made: Any) -> Any:
    return replace(made, raw=f"raw {made.unsigned}", txid=f"id {made.unsigned}", signed_at=1)


def built(kind: str, fee: int = 1_000) -> Any:
    """A record that is built."""
    return replace(KINDS[kind], newest=attempt(KINDS[kind], "first", fee))


def in_flight(kind: str, **values: Any) -> Any:
    """A record whose first attempt is signed."""
    first = signed(attempt(KINDS[kind], "first", 1_000))
    return replace(KINDS[kind], **{"state": "signed", "newest": first, **values})


def replacing(kind: str, fee: int = 2_000, coins: Sequence[HeldCoin] = COINS, vsize: int = VSIZE) -> Any:
    """A record whose second attempt, with this fee, is to be signed in place of its first."""
    record = in_flight(kind)
    return replace(record, newest=attempt(record, "second", fee, coins, vsize), earlier=(record.newest,))


def plan(name: str, fee: int, coins: Sequence[HeldCoin] = COINS, payee: str = "payee", vsize: int = VSIZE) -> CoinPlan:
    """What the bytes `name` do."""
    paid = tuple(Output(*each) for each in outputs(fee, payee))
    return CoinPlan(name, tuple(coin.outpoint for coin in coins), paid, None, fee, vsize)


@dataclass
class World:
    """Store, address rules, clock, node, payer and second reader."""

    does: dict[str, CoinPlan] = field(default_factory=lambda: {"first": plan("first", 1_000), "second": plan("second", 2_000)})
    did: dict[str, CoinPlan] = field(default_factory=lambda: {"raw first": plan("first", 1_000)})
    """What signed bytes do; those that are not here are signed by other keys, or are none."""
    mined: Sequence[str] = ()
    rate: int = 10
    dropped_digests: int = 0
    other_digest: bytes | None = None
    misread: dict[str, object] = field(default_factory=dict)
    refuses: bool = False
    no_replacement: bool = False
    conflicts: bool = False
    first_signature: bool = False
    """Whether the store says that the record was signed before."""
    events: list[str] = field(default_factory=list)
    commits: list[list[Change]] = field(default_factory=list)

    def get_many(self, wanted: Sequence[tuple[type, Mapping[str, str]]]) -> list[object | None]:
        """Rows of a first signature, and nothing else."""
        return [object() if self.first_signature and key == {"owner": "record"} else None for _, key in wanted]

    def commit(self, changes: Sequence[Change]) -> None:
        if self.conflicts:
            raise Conflict(None)
        self.events.append("stored")
        self.commits.append(list(changes))

    def now_ms(self) -> int:
        return 5

    def normalize(self, network: str, text: str) -> str:
        return text

    def receipt(self, txid: str) -> object | None:
        return object() if txid in self.mined else None

    # As payer

    def fee_rate(self, priority: str) -> int:
        return self.rate

    def replace(self, unsigned: str, home: str, more: Sequence[Unspent], rate: int) -> CoinPlan:
        if self.no_replacement:
            raise Refused("too little change")
        self.events.append(f"built at {rate} from {unsigned} to {home}")
        return self.does["second"]

    def explain(self, unsigned: str) -> CoinPlan:
        if unsigned not in self.does:
            raise ValueError("no such transaction")
        return self.does[unsigned]

    def digests(self, unsigned: str) -> list[bytes]:
        each = [outpoint.encode() for outpoint in self.does[unsigned].inputs]
        return each[self.dropped_digests :]

    def evidence(self, unsigned: str) -> list[tuple[str, str]]:
        return [("", "") for _ in self.does[unsigned].inputs]

    def assemble(self, unsigned: str, signatures: Sequence[Signature]) -> Signed:
        return Signed(f"raw {unsigned}", f"id {unsigned}")

    def proved(self, raw: str, coins: Sequence[Unspent]) -> ProvedCoins:
        if raw not in self.did:
            raise ValueError("not signed by our keys")
        found = self.did[raw]
        if sorted(coin.outpoint for coin in coins) != sorted(found.inputs):
            raise ValueError("it spends other coins")
        return ProvedCoins(f"id {found.unsigned}", found.inputs, found.outputs)

    def broadcast(self, raw: str) -> None:
        if self.refuses:
            raise Refused("not now")
        self.events.append(f"sent {raw}")

    # As second reader

    def built(self, order: CoinOrder) -> Built:
        digests = [self.other_digest or each.outpoint.encode() for each in order.inputs]
        return Built(tuple(digests), {"paid": order.outputs})

    def read(self, order: CoinOrder, raw: str) -> dict[str, object]:
        return {"paid": order.outputs, "txid": raw.replace("raw", "id"), **self.misread}


@dataclass
class Asked:
    """A kind that writes down what it is asked, in the events of `world`."""

    world: World
    grounds_are: Grounds | Exception = field(default_factory=lambda: Grounds([CONDITION]))
    known: Sequence[HeldCoin] = (*COINS, *OTHERS)
    unlike: Sequence[str] = ()
    is_affordable: bool = True
    is_halted: bool = False
    books: bool = True
    network: Network = NETWORK
    name: str = "kind"

    def _event(self, event: str) -> None:
        self.world.events.append(event)

    def grounds(self, record: Any) -> Grounds:
        if isinstance(self.grounds_are, Exception):
            raise self.grounds_are
        return self.grounds_are

    def coins(self, record: Any) -> Sequence[HeldCoin]:
        return self.known

    def differs(self, record: Any, names: str) -> None:
        self._event(f"alarm: {names}")

    def throw_away(self, record: Any, leaving: Sequence[str]) -> None:
        self._event(f"built anew without {list(leaving)}")

    @contextmanager
    def keys(self, record: Any) -> Iterator[InputSigner]:
        def sign(outpoint: str, digest: bytes) -> Signature:
            self._event(f"key of {outpoint[0]}")
            return Signature(1, 1, 0)

        yield sign

    def means(self, record: Any) -> Means:
        return Means("home", "normal", self.known, unlike=self.unlike)

    def forged(self, record: Any, names: str) -> None:
        self._event(f"forged: {names}")

    def affordable(self, record: Any, fee: int) -> bool:
        return self.is_affordable

    def taken(self, record: Any) -> Sequence[Change]:
        return [TAKEN]

    def book(self, record: Any) -> Any:
        if not self.books:
            raise Conflict(None)
        self._event("booked")
        return record

    def halted(self) -> bool:
        return self.is_halted


def advanced(world: World, kind: Asked, record: Any, most: int = 5) -> tuple[str, Any]:
    """As the engine brings `record`, which may be replaced `most` times."""
    ports: Any = world
    of: Callable[[Network], Any] = lambda _: world  # noqa: E731
    engine = UtxoEngine(ports, ports, ports, of, of, RenewalRules(most=most), of)
    step, after = engine.advance(Kind(kind, kind, kind), record)
    return step, after
