"""Guards of the account engine that no nonce and no single kind gives: the second reader, an attempt that may not have expired, the
fee of the first attempt, and the nonces that a stranger used. Each by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.transactions.replacements import RenewalRules
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.accounts import Explained, Opened
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.second_reader import Order
from chalicelib.usecases.transactions.accounts.losing import Losing
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.transactions.errors import OrderMismatch, ReadersDiffer
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.replacement_bounds import affordable
from chalicelib.usecases.transactions.signed_bytes import unlike_signed
from tests.support.account_engine import Kind, Library, Record, World, account_engine

NETWORKS = {network.slug: network for network in default_networks("live")}
ETHEREUM, TRON = NETWORKS["ethereum"], NETWORKS["tron"]


STUCK = Record(raw="signed bytes", txid="newest")
STEPS: dict[str, Callable[[AccountSigning, Any], object]] = {
    "first": lambda engine, kind: engine.first(kind, Record()),
    "again": lambda engine, kind: engine.again(kind, STUCK),
}
BYTES = {"first": "bytes", "again": "other bytes"}


def live(network: Network = ETHEREUM) -> Kind:
    return Kind(network=network)


def engine(library: Library | None = None, every_node: bool = True, rows: Mapping[str, str] | None = None) -> AccountSigning:
    return account_engine(World(realm="live", rows=rows or {}), library, every_node=every_node)


@pytest.mark.parametrize("step", list(STEPS))
def test_both_readers_have_the_order_with_its_fee(step: str) -> None:
    kind, library = live(), Library()
    assert STEPS[step](engine(library), kind) is not None
    assert kind.events == ["proved", f"signed {BYTES[step]}", "stored"]
    assert library.orders == [Order("payment", "wallet", "recipient", None, 5, 7, 3, BYTES[step])]


@pytest.mark.parametrize("step", list(STEPS))
def test_what_the_second_reader_reads_otherwise_is_not_signed_or_not_stored(step: str) -> None:
    kind = live()
    with pytest.raises(ReadersDiffer, match="digests"):
        STEPS[step](engine(Library(digest=b"yet other bytes")), kind)
    assert kind.events == ["proved"]
    kind = live()
    with pytest.raises(ReadersDiffer, match="amount"):
        STEPS[step](engine(Library(reads={"amount": 6, "txid": "id"})), kind)
    assert kind.events == ["proved", f"signed {BYTES[step]}"]
    kind = live()
    with pytest.raises(LookupError, match="no second reader"):
        STEPS[step](engine(), kind)
    assert kind.events == ["proved"]


def test_without_a_nonce_nothing_is_replaced_that_may_still_be_mined() -> None:
    """On Tron two attempts of one order can both be mined: every one of them has to have expired by the blocks."""
    kind = live(TRON)
    assert engine(Library(), rows={"record#1": "newest"}).again(kind, STUCK) is None
    assert kind.events == [] and kind.heard_by == [True]


@pytest.fixture
def expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt on record has expired."""
    monkeypatch.setattr("chalicelib.usecases.transactions.accounts.signing.replaceable", lambda *_: True)


def signatures(network: Network, rows: dict[str, str], step: Callable[[AccountSigning, Kind], object]) -> list[object]:
    kind = live(network)
    assert step(engine(Library(), rows=rows), kind) is not None and kind.events[-1] == "stored"
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
    kind = live(TRON)
    with pytest.raises(OrderMismatch, match="in its attempts"):
        engine(Library(), rows=rows).again(kind, record)
    assert kind.events == ["alarm: its attempts"]


@pytest.mark.usefixtures("expired")
@pytest.mark.parametrize(("record", "rows"), [(STUCK, {}), (REPLACED_ONCE, {"record#2": "newest"})])
def test_a_first_attempt_that_was_signed_before_there_were_rows_is_replaced(record: Record, rows: dict[str, str]) -> None:
    kind = live(TRON)
    assert engine(Library(), rows={"record": "first", **rows}).again(kind, record) is not None
    assert kind.events == ["proved", "signed other bytes", "stored"]


@pytest.mark.parametrize("every_node", [True, False])
def test_the_payer_hears_as_many_nodes_as_the_amount_needs(every_node: bool) -> None:
    kind = live()
    assert engine(Library(), every_node=every_node).again(kind, STUCK) is not None
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
    losing = Losing(NetworkContext(ETHEREUM, made, made, made, made), made, lambda wallet: chain.told)
    return losing.begin(record, "Wallet", WATCH, Scanned(100, 100, {}))


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
