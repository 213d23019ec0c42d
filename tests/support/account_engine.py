"""A kind of transaction, its order and the world around the account engine, in memory: all agree, and a test has one disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import AssetId, Realm
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.transactions.outgoing import Attempt, Outgoing
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.usecases.ports.accounts import Opened
from chalicelib.usecases.ports.changes import Change, Still
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.second_reader import Built, Order
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.transactions.accounts.signing import AccountSigning, Proved
from chalicelib.usecases.transactions.errors import OrderMismatch

SIMULATED: Network = next(network for network in default_networks("test") if network.slug == "ethereum")
OTHERS, OURS = True, False
_ETH, _SIGNED = AssetId("test:ethereum:eth"), Opened("bytes", "newest", "wallet")


@dataclass(frozen=True)
class Record(Outgoing):
    """An order, unsigned unless it has `raw` and `txid`."""

    id: str = "record"
    asset: AssetId = _ETH
    amount: int = 5
    unsigned: str | None = "bytes"
    raw: str | None = None
    txid: str | None = None
    earlier: tuple[Attempt, ...] = ()

    @property
    def newest(self) -> Attempt | None:
        return Attempt.stored(self.raw, self.txid, 2, 2)

    def signed_as(self, attempt: Attempt) -> Record:
        return replace(self, raw=attempt.raw, txid=attempt.txid, earlier=self.replaced)


@dataclass
class Kind:
    """Payer, signer and kind in one. `events` has what they did, `stored` what the last signature rests on."""

    others: bool = OTHERS
    network: Network = SIMULATED
    name: str = "kind record"
    opens: Opened = _SIGNED
    wrong: Sequence[str] = ()
    mismatch: OrderMismatch | None = None
    renews: bool = True
    takes: bool = True
    refuses: bool = False
    costs: bool = True
    quote: int | None = 1
    events: list[str] = field(default_factory=list)
    stored: Sequence[Change] = ()
    heard_by: list[bool] = field(default_factory=list)
    """Whether every node was asked, each time that a replacement was thought of."""

    @property
    def payer(self) -> Kind:
        return self

    # As kind

    def facts(self, record: Record) -> Order:
        return Order("payment", "wallet", "recipient", None, record.amount, 7, 0, record.unsigned or "")

    def proved(self, record: Record) -> Proved:
        self.events.append("proved")
        if self.mismatch is not None:
            raise self.mismatch
        return Proved(3, [Still(PaymentSwitch("test", version=9))])

    def quoted(self, record: Record) -> int | None:
        return self.quote

    def cure(self, record: Record, mismatch: OrderMismatch) -> None:
        self.events.append("cured")

    def altered(self, before: Record) -> list[str]:
        return list(self.wrong)

    def differs(self, before: Record, named: str) -> None:
        self.events.append(f"alarm: {named}")

    def renewed(self, before: Record) -> Record | None:
        return replace(before, unsigned="other bytes") if self.takes else None

    def proved_again(self, before: Record, wanted: Record) -> Proved | None:
        return self.proved(wanted) if self.costs else None

    def signature(self, record: Record, digest: bytes) -> Signature:
        self.events.append(f"signed {digest.decode()}")
        return Signature(1, 1, 0)

    def store(self, record: Record, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Record:
        self.events.append("stored")
        self.stored = rests_on
        return record.signed_as(Attempt(signed.raw, signed.txid, proved.fee, 3))

    def store_again(self, before: Record, wanted: Record, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Record:
        return self.store(wanted, signed, proved, rests_on)

    # As payer

    def digest(self, unsigned: str) -> bytes:
        return unsigned.encode()

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        return Signed(f"signed {unsigned}", "id")

    def opened(self, raw: str) -> Opened:
        return self.opens

    def broadcast(self, raw: str) -> None:
        if self.refuses:
            raise Refused("not now")
        self.events.append(f"sent {raw}")

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        self.heard_by.append(every_node)
        return self.renews

    def lifetime(self, raw: str, txid: str) -> None:
        return None


@dataclass
class World:
    """Store, address rules, clock and node. `mined` ids have a receipt; `posted` are ids of postings and owners of rows that say
    that an order was signed; `rows` has the ids that first signatures were made under, by owner."""

    switch: PaymentSwitch | None = None
    mined: Sequence[str] = ()
    posted: Sequence[str] = ()
    rows: Mapping[str, str] = field(default_factory=dict)
    realm: Realm = "test"

    def get(self, kind: type, **key: Any) -> PaymentSwitch | None:
        assert kind is Cursor or (kind is PaymentSwitch and key == {"realm": self.realm})
        return self.switch if kind is PaymentSwitch else None

    def get_many(self, wanted: Sequence[tuple[type[Any], dict[str, str]]]) -> list[object | None]:
        return [self._signed(kind, key) for kind, key in wanted]

    def _signed(self, kind: type[Any], key: dict[str, str]) -> object | None:
        if key.get("id") in self.posted or key.get("owner") in self.posted:
            return object()
        owner = key["owner"] if kind is FirstSignature else ""
        return FirstSignature(owner, self.rows[owner], 1) if owner in self.rows else None

    def now_ms(self) -> int:
        return 5

    def storage_form(self, slug: str, address: str) -> str:
        return address

    def receipt(self, txid: str) -> object | None:
        return object() if txid in self.mined else None

    def tip(self) -> int:
        return 100

    def headers(self, low: int, high: int) -> list[object]:
        return []


@dataclass
class Library:
    """A second reader that reads as ordered; `digest` and `reads` are of one that does not."""

    digest: bytes | None = None
    reads: dict[str, object] = field(default_factory=lambda: {"amount": 5, "txid": "id"})
    orders: list[Order] = field(default_factory=list)

    def built(self, order: Order) -> Built:
        self.orders.append(order)
        return Built((order.unsigned.encode() if self.digest is None else self.digest,), {"amount": 5})

    def read(self, order: Order, raw: str) -> dict[str, object]:
        return self.reads


def account_engine(world: World, library: Library | None = None, most: int = 5, every_node: bool = True) -> AccountSigning:
    """`most` replacements of one order."""
    made: Any = world
    second: Any = library
    return AccountSigning(made, made, made, lambda _: made, RenewalRules(most=most), lambda *_: every_node, lambda _: second)
