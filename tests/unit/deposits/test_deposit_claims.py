"""Claims: a token's log is the deposit that it was, whatever its number in the block has become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib.chains.addresses import Rules
from chalicelib.domain.catalogue.catalogue import Coin, default_networks
from chalicelib.domain.chain import Block, Receipt, Transfer
from chalicelib.domain.deposits.claims import LogClaim
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.recovery.point_in_time import stray_entry_id
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.deposits.claims import Claims
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.recovery.point_in_time import PointInTimeRecovery
from tests.support.memory_store import MemoryStore

NETWORKS = {network.slug: network for network in default_networks("live")}
ETHEREUM = NETWORKS["ethereum"]
USDT = "0x" + "5a" * 20
PAYEE = "0x" + "ab" * 20


class Reader:
    """Tells where the logs of transactions begin, as `firsts` says."""

    def __init__(self, **firsts: int) -> None:
        self.firsts = {txid(name): first for name, first in firsts.items()}
        self.asked = 0
        self.holds = block("a")

    def first_logs(self, block: Block, txids: Sequence[str]) -> dict[str, int]:
        self.asked += 1
        return {each: self.firsts[each] for each in txids}


def txid(name: str) -> str:
    return "0x" + name.encode().hex().rjust(64, "0")


def block(name: str) -> Block:
    return Block(7, txid(name), "0x" + "00" * 32, 1_000)


def moved(name: str, position: str, contract: str | None = USDT, amount: int = 5) -> Transfer:
    return Transfer(txid(name), position, contract, "0x" + "cd" * 20, PAYEE, amount)


def claims(store: Any, reader: Any, network: Any = ETHEREUM) -> Claims:
    return Claims(network, reader, store)


def named(name: str, number: int, network: Any = ETHEREUM) -> str:
    return deposit_id(network.id, txid(name), f"log:{number}")


def recorded(store: Any, id_: str, transfer: Transfer, there: Block, status: Any = "pending") -> Deposit:
    made = Deposit(
        id_, ETHEREUM.id, AssetId("live:ethereum:usdt"), TenantId("mch_a:live"), transfer.txid, transfer.position,
        transfer.sender, transfer.recipient, transfer.amount, there.number, there.hash, there.time, 1, status,
    )  # fmt: skip
    store.commit([Save(made)])
    return made


def test_a_log_that_nobody_has_seen_is_named_by_its_number() -> None:
    store, reader = MemoryStore(), Reader(pay=4)
    assert claims(store, reader).ids(block("a"), [moved("pay", "log:6")]) == [named("pay", 6)]
    assert store.get(LogClaim, network=ETHEREUM.id, txid=txid("pay")) == LogClaim(ETHEREUM.id, txid("pay"), 4)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 50), st.integers(0, 50), st.sets(st.integers(0, 20), min_size=1), st.sets(st.integers(0, 20), min_size=1))
def test_the_same_logs_are_the_same_deposits_and_others_are_others(first: int, then: int, seen: set[int], later: set[int]) -> None:
    """A transaction of many logs, some of which are ours when it is first seen, and some others when its block has changed."""
    store = MemoryStore()
    before = claims(store, Reader(pay=first)).ids(block("a"), [moved("pay", f"log:{first + n}") for n in sorted(seen)])
    after = claims(store, Reader(pay=then)).ids(block("b"), [moved("pay", f"log:{then + n}") for n in sorted(later)])
    old, new = dict(zip(sorted(seen), before, strict=True)), dict(zip(sorted(later), after, strict=True))
    assert [old[n] for n in seen & later] == [new[n] for n in seen & later]
    assert len({*before, *after}) == len(seen | later)
    assert before == [named("pay", first + n) for n in sorted(seen)]


def test_of_two_scanners_the_second_takes_the_claim_of_the_first() -> None:
    """One read the old block, one the new one; both found no claim."""
    store = MemoryStore()
    slow = claims(store, Reader(pay=0))
    get_many = store.get_many
    found: list[list[str]] = []

    def meanwhile(wanted: Any) -> Any:
        read = get_many(wanted)
        store.get_many = get_many  # type: ignore[method-assign]
        found.append(claims(store, Reader(pay=3)).ids(block("b"), [moved("pay", "log:4")]))
        return read

    store.get_many = meanwhile  # type: ignore[method-assign]
    found.append(slow.ids(block("a"), [moved("pay", "log:1")]))
    assert found == [[named("pay", 4)], [named("pay", 4)]]


def test_many_transactions_are_claimed_in_tens() -> None:
    store = MemoryStore()
    names = [f"pay{n}" for n in range(23)]
    reader = Reader(**{name: 2 * n for n, name in enumerate(names)})
    transfers = [moved(name, f"log:{2 * n + 1}") for n, name in enumerate(names)]
    before = store.commits
    ids = claims(store, reader).ids(block("a"), transfers)
    assert (store.commits - before, reader.asked) == (3, 1)
    assert claims(store, reader).ids(block("a"), transfers) == ids
    assert store.commits - before == 3


def test_what_keeps_its_place_needs_no_claim() -> None:
    store, reader = MemoryStore(), Reader()
    transfers = [moved("pay", "native", None), moved("pay", f"trace:{PAYEE}:0", None), moved("pay", f"balance:7:{PAYEE}", None)]
    ids = [deposit_id(ETHEREUM.id, t.txid, t.position) for t in transfers]
    assert (claims(store, reader).ids(block("a"), transfers), reader.asked, store.commits) == (ids, 0, 0)


@pytest.mark.parametrize("slug", ["tron", "bitcoin"])
def test_other_families_count_within_the_transaction(slug: str) -> None:
    """Also where the reader is one over several nodes, which has every method."""
    store, reader, network = MemoryStore(), Reader(pay=4), NETWORKS[slug]
    transfers = [moved("pay", "log:6"), moved("pay", "int:0", None), moved("pay", "out:1", None)]
    ids = [deposit_id(network.id, t.txid, t.position) for t in transfers]
    assert (claims(store, reader, network).ids(block("a"), transfers), reader.asked, store.commits) == (ids, 0, 0)


def test_what_is_recorded_as_this_very_log_is_that_deposit() -> None:
    """A version without claims recorded it after the transaction was claimed, from another block."""
    store = MemoryStore()
    claims(store, Reader(pay=0)).ids(block("a"), [moved("pay", "log:1")])
    seen = moved("pay", "log:6")
    mine = recorded(store, named("pay", 6), seen, block("b"))
    assert claims(store, Reader(pay=5)).ids(block("b"), [seen]) == [mine.id]
    # In a third block it is what its claim says.
    assert claims(store, Reader(pay=7)).ids(block("c"), [moved("pay", "log:8")]) == [named("pay", 1)]


def test_nodes_that_number_logs_differently_make_no_two_deposits_of_one_log(caplog: pytest.LogCaptureFixture) -> None:
    """One node said that the transaction's logs begin at 0. In truth they begin at 10."""
    store = MemoryStore()
    first = moved("pay", "log:12")
    (id_,) = claims(store, Reader(pay=0)).ids(block("a"), [first])
    recorded(store, id_, first, block("a"))
    honest = claims(store, Reader(pay=10))
    assert honest.ids(block("a"), [first]) == [id_]
    # And none of two logs: by the wrong claim the second one would be the first one's deposit.
    assert honest.ids(block("a"), [moved("pay", "log:22"), first]) == [named("pay", 22), id_]
    assert "ALARM live:ethereum: the claim of" in caplog.text


def test_a_log_before_the_first_one_is_nonsense() -> None:
    with pytest.raises(Unavailable, match="has no log 3"):
        claims(MemoryStore(), Reader(pay=4)).ids(block("a"), [moved("pay", "log:3")])


def test_a_loss_that_is_read_again_in_another_block_is_the_same_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """`after-restore` books what left a place of ours under the transaction and its position: once."""
    sent, store = moved("pay", "log:6"), MemoryStore()

    class Chain(Reader):
        def receipt(self, asked: str) -> Receipt:
            return Receipt(asked, True, 7, self.holds.hash, 0)

        def proven(self, there: Block, asked: Sequence[Transfer]) -> list[Transfer]:
            return list(asked)

    entries = []
    for name, first, transfer in (("a", 4, sent), ("b", 9, moved("pay", "log:11"))):
        chain = Chain(pay=first)
        chain.holds = block(name)
        nothing: Any = None
        context = NetworkContext(ETHEREUM, chain, store, Rules(), nothing)  # type: ignore[arg-type]
        reading = PointInTimeRecovery(context, nothing, nothing)
        monkeypatch.setattr(reading, "_wallets", dict)
        monkeypatch.setattr(reading._adoption, "_watched", lambda form: None)
        monkeypatch.setattr(reading, "_coin", lambda t: Coin(ETHEREUM.id, "usdt", "USDT", "Tether USD", 6, USDT))
        (stray,) = reading._adopted(block(name), txid("pay"), [transfer])
        entries.append(stray_entry_id(ETHEREUM.id, stray))
    assert entries[0] == entries[1]
