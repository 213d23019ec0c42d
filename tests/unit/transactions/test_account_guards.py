"""Guards of the account engine that no nonce and no single kind gives: the second reader, an attempt that may not have expired, the
fee of the first attempt, and the nonces that a stranger used. Each by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import AssetId
from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.outgoing import Attempt, Outgoing
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.ports.accounts import Explained, Opened
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.second_reader import Built, Order
from chalicelib.usecases.ports.signing import Signature, Signed
from chalicelib.usecases.transactions.accounts.losing import Losing
from chalicelib.usecases.transactions.accounts.signing import AccountSigning, Proved
from chalicelib.usecases.transactions.errors import OrderMismatch, ReadersDiffer
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.replacement_bounds import affordable
from chalicelib.usecases.transactions.signed_bytes import unlike_signed

NETWORKS = {network.slug: network for network in default_networks("live")}
ETHEREUM, TRON = NETWORKS["ethereum"], NETWORKS["tron"]
ETH, AGREED = AssetId("live:ethereum:eth"), Built((b"bytes",), {"amount": 5})


@dataclass(frozen=True)
class Record(Outgoing):
    id: str = "record"
    asset: AssetId = ETH
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
    """A kind, its payer, the store, the node and the second reader, all of which agree; a test has one of them disagree."""

    network: Network = ETHEREUM
    others: bool = True
    name: str = "kind record"
    library: Built = AGREED
    reads: dict[str, object] = field(default_factory=lambda: {"amount": 5, "txid": "id"})
    heard_by: list[bool] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    rows: dict[str, str] = field(default_factory=dict)
    """Rows of first signatures: the id of what was signed by the owner."""
    stored: list[Change] = field(default_factory=list)

    @property
    def payer(self) -> Kind:
        return self

    # As kind

    def facts(self, record: Record) -> Order:
        return Order("payment", "wallet", "recipient", None, record.amount, 7, 0, record.unsigned or "")

    def proved(self, record: Record) -> Proved:
        return Proved(3)

    def quoted(self, record: Record) -> None:
        return None

    def altered(self, before: Record) -> list[str]:
        return []

    def differs(self, before: Record, named: str) -> None:
        self.events.append(f"alarm: {named}")

    def renewed(self, before: Record) -> Record | None:
        return before

    def proved_again(self, before: Record, wanted: Record) -> Proved | None:
        return self.proved(wanted)

    def signature(self, record: Record, digest: bytes) -> Signature:
        self.events.append("signed")
        return Signature(1, 1, 0)

    def store(self, record: Record, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Record:
        self.events.append("stored")
        self.stored += rests_on
        return record.signed_as(Attempt(signed.raw, signed.txid, proved.fee, 3))

    def store_again(self, before: Record, wanted: Record, signed: Signed, proved: Proved, rests_on: Sequence[Change]) -> Record:
        return self.store(wanted, signed, proved, rests_on)

    # As payer

    def digest(self, unsigned: str) -> bytes:
        return unsigned.encode()

    def assemble(self, unsigned: str, signature: Signature) -> Signed:
        return Signed(f"signed {unsigned}", "id")

    def opened(self, raw: str) -> Opened:
        return Opened("bytes", "newest", "wallet")

    def renewable(self, unsigned: str, txid: str, every_node: bool = True) -> bool:
        self.heard_by.append(every_node)
        return True

    def lifetime(self, raw: str, txid: str) -> None:
        return None

    # As store, address rules and node

    def get(self, record: type, /, **key: str) -> Cursor | None:
        return None

    def get_many(self, wanted: Sequence[tuple[type, dict[str, str]]]) -> list[FirstSignature | None]:
        named = [key["owner"] if kind is FirstSignature else "" for kind, key in wanted]
        return [FirstSignature(owner, self.rows[owner], 1) if owner in self.rows else None for owner in named]

    def now_ms(self) -> int:
        return 5

    def storage_form(self, slug: str, address: str) -> str:
        return address

    def receipt(self, txid: str) -> None:
        return None

    def tip(self) -> int:
        return 100

    def headers(self, low: int, high: int) -> list[object]:
        return []

    # As second reader

    def built(self, order: Order) -> Built:
        self.orders.append(order)
        return self.library

    def read(self, order: Order, raw: str) -> dict[str, object]:
        return self.reads


STUCK = Record(raw="signed bytes", txid="newest")
STEPS: dict[str, Callable[[AccountSigning, Any], object]] = {
    "first": lambda engine, kind: engine.first(kind, Record()),
    "again": lambda engine, kind: engine.again(kind, STUCK),
}


def engine(kind: Kind, second: bool = True, every_node: bool = True) -> AccountSigning:
    made: Any = kind
    reader: Any = kind if second else None
    return AccountSigning(made, made, made, lambda _: made, RenewalRules(), lambda *_: every_node, lambda _: reader)


@pytest.mark.parametrize("step", list(STEPS))
def test_both_readers_have_the_order_with_its_fee(step: str) -> None:
    kind = Kind()
    assert STEPS[step](engine(kind), kind) is not None
    assert kind.events == ["signed", "stored"]
    assert kind.orders == [Order("payment", "wallet", "recipient", None, 5, 7, 3, "bytes")]


@pytest.mark.parametrize("step", list(STEPS))
def test_what_the_second_reader_reads_otherwise_is_not_signed_or_not_stored(step: str) -> None:
    kind = Kind(library=Built((b"other bytes",), {"amount": 5}))
    with pytest.raises(ReadersDiffer, match="digests"):
        STEPS[step](engine(kind), kind)
    assert kind.events == []
    kind = Kind(reads={"amount": 6, "txid": "id"})
    with pytest.raises(ReadersDiffer, match="amount"):
        STEPS[step](engine(kind), kind)
    assert kind.events == ["signed"]
    kind = Kind()
    with pytest.raises(LookupError, match="no second reader"):
        STEPS[step](engine(kind, second=False), kind)
    assert kind.events == []


def test_without_a_nonce_nothing_is_replaced_that_may_still_be_mined() -> None:
    """On Tron two attempts of one order can both be mined: every one of them has to have expired by the blocks."""
    kind = Kind(TRON, rows={"record#1": "newest"})
    assert engine(kind).again(kind, STUCK) is None
    assert kind.events == [] and kind.heard_by == [True]


@pytest.fixture
def expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt on record has expired."""
    monkeypatch.setattr("chalicelib.usecases.transactions.accounts.signing.replaceable", lambda *_: True)


def signatures(network: Network, rows: dict[str, str], step: Callable[[AccountSigning, Kind], object]) -> list[object]:
    kind = Kind(network, rows=rows)
    assert step(engine(kind), kind) is not None and kind.events == ["signed", "stored"]
    return [change.record for change in kind.stored if isinstance(change, Save)]


@pytest.mark.usefixtures("expired")
def test_each_attempt_without_a_nonce_commits_with_a_row_of_its_own() -> None:
    once, twice = {"record#1": "newest"}, {"record#1": "first", "record#2": "newest"}
    assert signatures(TRON, {}, STEPS["first"]) == [FirstSignature("record#1", "id", 5)]
    assert signatures(TRON, once, STEPS["again"]) == [FirstSignature("record#2", "id", 5)]
    assert signatures(TRON, twice, lambda engine, kind: engine.again(kind, REPLACED_ONCE)) == [FirstSignature("record#3", "id", 5)]
    assert signatures(ETHEREUM, {}, STEPS["first"]) == signatures(ETHEREUM, {}, STEPS["again"]) == []


REPLACED_ONCE = replace(STUCK, earlier=(Attempt("first bytes", "first", 1, 1),))


@pytest.mark.usefixtures("expired")
@pytest.mark.parametrize(
    ("record", "rows"),
    [
        (STUCK, {"record#1": "newest", "record#2": "later"}),
        (STUCK, {"record": "newest", "record#2": "later"}),
        (STUCK, {"record#1": "another"}),
        (STUCK, {}),
        (REPLACED_ONCE, {"record#1": "first", "record#2": "newest", "record#3": "later"}),
        (REPLACED_ONCE, {"record#1": "first", "record#2": "another"}),
        (REPLACED_ONCE, {"record#1": "another", "record#2": "newest"}),
        (REPLACED_ONCE, {"record#2": "newest"}),
        (REPLACED_ONCE, {"record#1": "first"}),
        (REPLACED_ONCE, {"record": "first"}),
    ],
    ids=[
        "put back", "put back, signed before there were rows", "never signed so", "never signed", "put back to the second",
        "second never signed so", "first never signed so", "first never signed", "second never signed",
        "replaced before there were rows",
    ],
)  # fmt: skip
def test_an_order_without_a_nonce_whose_attempts_are_not_all_that_were_signed_is_not_replaced(
    record: Record, rows: dict[str, str]
) -> None:
    """An attempt that the record has lost may be mined: those that it has have expired."""
    kind = Kind(TRON, rows=rows)
    with pytest.raises(OrderMismatch, match="in its attempts"):
        engine(kind).again(kind, record)
    assert kind.events == ["alarm: its attempts"]


@pytest.mark.usefixtures("expired")
@pytest.mark.parametrize(("record", "rows"), [(STUCK, {}), (REPLACED_ONCE, {"record#2": "newest"})])
def test_a_first_attempt_that_was_signed_before_there_were_rows_is_replaced(record: Record, rows: dict[str, str]) -> None:
    kind = Kind(TRON, rows={"record": "first", **rows})
    assert engine(kind).again(kind, record) is not None and kind.events == ["signed", "stored"]


@pytest.mark.parametrize("every_node", [True, False])
def test_the_payer_hears_as_many_nodes_as_the_amount_needs(every_node: bool) -> None:
    kind = Kind()
    assert engine(kind, every_node=every_node).again(kind, STUCK) is not None
    assert kind.heard_by == [every_node]


def test_bytes_that_nobody_can_read_are_not_replaced() -> None:
    made: Any = Signatures(readable=False)
    assert unlike_signed(made, made, ETHEREUM, "raw", "newest", "unsigned", "wallet") == ["signed bytes"]


# The fee of a replacement


DOES = Explained(1, 7, "recipient", None, 5, fee=100)


@dataclass
class Signatures:
    """A payer, by what signed bytes were made of and do."""

    signer: str = "wallet"
    txid: str = "first"
    did: Explained = DOES
    readable: bool = True

    def opened(self, raw: str) -> Opened:
        if not self.readable:
            raise ValueError("no transaction")
        return Opened("unsigned", self.txid if raw == "first bytes" else "newest", self.signer)

    def explain(self, unsigned: str) -> Explained:
        return self.did

    def storage_form(self, slug: str, address: str) -> str:
        return address


REPLACED = Record(
    raw="bytes", txid="newest", earlier=(Attempt("first bytes", "first", 9_999, 1), Attempt("second bytes", "2", 9_999, 2))
)


def costs(payer: Signatures, fee: int, record: Record = REPLACED) -> bool:
    made: Any = payer
    return affordable(made, made, ETHEREUM, RenewalRules(times=10), record, replace(DOES, fee=fee, gas=3), "wallet")


def test_a_replacement_is_measured_by_what_was_signed_first_and_not_by_the_record() -> None:
    assert costs(Signatures(), 1_000) and not costs(Signatures(), 1_001)
    alone = replace(REPLACED, earlier=())
    assert costs(Signatures(), 1_000, alone) and not costs(Signatures(), 1_001, alone)


@pytest.mark.parametrize(
    "payer",
    [
        Signatures(signer="thief"),
        Signatures(txid="another"),
        Signatures(readable=False),
        *(
            Signatures(did=replace(DOES, **other))
            for other in ({"amount": 6}, {"recipient": "thief"}, {"contract": "c"}, {"nonce": 8}, {"chain_id": 2})
        ),
    ],
    ids=["signer", "id", "no bytes", "amount", "recipient", "contract", "nonce", "chain"],
)
def test_a_first_attempt_that_is_not_ours_or_does_something_else_measures_nothing(
    payer: Signatures, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(OrderMismatch, match="its first attempt"):
        costs(payer, 100)
    assert "ALARM live:ethereum: record differs from what was signed in its first attempt" in caplog.text


# Nonces that a stranger used


@dataclass
class Chain:
    """Store, node and blocks around a lost move."""

    counter: NonceCounter | None
    used_to: int | None
    told: tuple[int | None, ...] = (8, None)
    watched: GivenUp | None = None
    commits: list[list[Change]] = field(default_factory=list)

    def get(self, record: type, /, **key: str) -> object | None:
        return {NonceCounter: self.counter, GivenUp: self.watched}.get(record)

    def commit(self, changes: Sequence[Change]) -> None:
        self.commits.append(list(changes))

    def storage_form(self, slug: str, address: str) -> str:
        return address.lower()

    def used(self, sender: str, nonce: int, scanned: Scanned) -> int | None:
        assert (sender, nonce) == ("wallet", 8)
        return self.used_to


WATCH = GivenUp("record", ETHEREUM.id, "move", "", "the service", "lost", 1, 100, ("newest",))
COUNTER = NonceCounter(ETHEREUM.id, "Wallet", 8)


def begun(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> bool:
    made: Any = chain
    record: Any = type("Lost", (), {"id": "record", "nonce": 7})()
    monkeypatch.setattr("chalicelib.usecases.transactions.accounts.losing.by_whom", lambda *_: "a stranger")
    return Losing(ETHEREUM, made, made, made, made, lambda wallet: chain.told).begin(record, "Wallet", WATCH, Scanned(100, 100, {}))


def test_a_loss_waits_for_nonces_that_may_come_back(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    chain = Chain(COUNTER, None)
    assert not begun(chain, monkeypatch)
    assert chain.commits == [] and "ALARM" not in caplog.text


@pytest.mark.parametrize("told", [(7, 8), (7,), (None,), ()])
def test_a_loss_that_not_every_node_counts_is_waited_for(
    told: tuple[int | None, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The sighting may be a row that somebody wrote: the nonce is used once nodes have a transaction with it."""
    chain = Chain(COUNTER, 10, told=told)
    assert not begun(chain, monkeypatch) and chain.commits == []
    assert "ALARM live:ethereum: record is lost by what was scanned, and a node has no transaction with its nonce 7" in caplog.text


@pytest.mark.parametrize(("used", "passed"), [(8, False), (10, True)])
def test_a_loss_is_an_alarm_passes_over_used_nonces_and_is_watched_on(
    used: int, passed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Chain(COUNTER, used)
    assert begun(chain, monkeypatch)
    saved = [change.record for changes in chain.commits for change in changes if isinstance(change, Save)]
    assert saved == [*([COUNTER.caught_up(10)] if passed else []), WATCH]
    assert "ALARM live:ethereum: record can never be mined, its nonce 7 was used by a stranger" in caplog.text


def test_a_loss_that_is_watched_is_not_watched_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(None, None, watched=WATCH)
    assert begun(chain, monkeypatch) and chain.commits == []
