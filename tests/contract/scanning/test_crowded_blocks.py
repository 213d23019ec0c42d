"""Blocks with more payments to us than there is time for, or than an item of the table holds: nobody else waits for them.

The chain is `tests.support.fake_coins`, as in `test_bundles`; limits are small, so that few payments are a crowd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.chain import Block, BlockDeposits, Cursor
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import derived_id
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.domain.versions import next_version
from chalicelib.usecases.base import fairness as crowds
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.coins import Output
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning import confirming, recording
from chalicelib.usecases.scanning import reorganisations as forks
from chalicelib.usecases.scanning import scanner as scan
from chalicelib.usecases.scanning.block_lists import deposits_of, list_deposits
from chalicelib.wiring import services
from chalicelib.workers import poll
from tests.support.bundles import COIN, CONFIRMATIONS, NETWORK, Shop
from tests.support.fake_coins import Tx

CROWD = 36
DUST = 2_940


@pytest.fixture
def shop(begin: Callable[[], Shop]) -> Shop:
    return begin()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ten payments are many."""
    for module in (scan, confirming):
        monkeypatch.setattr(module, "MOST_AT_ONCE", 10)
    monkeypatch.setattr(confirming, "MOST_TO_ONE", 3)
    for module in (recording, forks):
        monkeypatch.setattr(module, "AT_LEAST", 12)
    yield


def invoice(shop: Shop, amount: str) -> Any:
    return shop.post("/v1/invoices", currency="ltc", amount=amount, network="litecoin")


def crowd(shop: Shop, address: str, count: int = CROWD) -> None:
    """Someone pays dust to an address, many times in one transaction."""
    tx = Tx(shop.chain._hash("crowd"), (), tuple(Output(address, DUST) for _ in range(count)))
    shop.chain.pool[tx.txid] = tx


def at(address: str) -> list[Deposit]:
    return [deposit for deposit in services().store.every(Deposit) if deposit.address == address]


def scanned(more: Callable[[], bool] = lambda: False) -> Cursor:
    """One poll's scan; by default of one that is late from the start."""
    with in_realm("live"):
        return services().scanner(services().catalogue("live").networks["litecoin"]).poll(more)


def rescanned() -> None:
    with in_realm("live"):
        poll._rescan(services().catalogue("live").networks["litecoin"], lambda: True)


def test_whoever_is_paid_beside_a_crowd_is_credited_on_time(shop: Shop) -> None:
    """The merchant is the same, and so is the block; the crowd was there first."""
    before = shop.available()
    crowded, victim = invoice(shop, "1"), invoice(shop, "3")
    crowd(shop, crowded["address"])
    shop.chain.pay(victim["address"], 3 * COIN)
    shop.chain.mine(CONFIRMATIONS)
    shop.run()
    assert [deposit.status for deposit in at(victim["address"])] == ["confirmed"]
    cursor = services().store.get(Cursor, network=NETWORK)
    assert cursor is not None and cursor.number == shop.chain.tip()
    assert len(at(crowded["address"])) == 9  # of the merchant's ten the victim has one
    rescanned()
    assert len(at(crowded["address"])) == CROWD
    shop.run()
    assert {deposit.status for deposit in at(crowded["address"])} == {"confirmed"}
    assert float(shop.available()) == pytest.approx(float(before) + 3 + CROWD * DUST / COIN)
    assert not [work for work in services().store.every_work() if work.kind in ("rescan", "deposit")]
    shop.whole()


def test_a_late_poll_goes_on_in_the_middle_of_a_block(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little time every run has, each gets further, and none reads one by one what is known."""
    monkeypatch.setattr(scan, "MOST_AT_ONCE", 1_000)
    crowded = invoice(shop, "1")
    crowd(shop, crowded["address"])
    shop.chain.mine()
    stood = shop.chain.tip() - 1
    for run in range(1, CROWD // 12 + 1):
        cursor = scanned()
        assert len(at(crowded["address"])) == 12 * run
        assert cursor.number == (stood if run < CROWD // 12 else stood + 1)
    listed = [ids for _, ids in deposits_of(services().store, NETWORK, [cursor.hash])]
    assert sorted(key for ids in listed for key in ids) == sorted(deposit.id for deposit in at(crowded["address"]))
    assert [len(ids) for ids in listed] == [12, 12, 12]
    shop.whole()


def test_a_crowd_does_not_keep_others_from_being_credited(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is due; there is time for four, and it takes three."""
    for module in (scan, confirming):
        monkeypatch.setattr(module, "MOST_AT_ONCE", 1_000)
    crowded = invoice(shop, "1")
    crowd(shop, crowded["address"])
    victim = invoice(shop, "3")
    shop.chain.mine()
    shop.chain.pay(victim["address"], 3 * COIN)
    shop.chain.mine()
    scanned(lambda: True)
    shop.chain.mine(CONFIRMATIONS - 1)
    time = iter([True] * 5 + [False] * 5)
    scanned(lambda: next(time))
    assert [deposit.status for deposit in at(victim["address"])] == ["confirmed"]
    assert [deposit.status for deposit in at(crowded["address"])].count("confirmed") == 3


def test_a_late_rescan_goes_on_in_the_middle_of_a_block(shop: Shop) -> None:
    crowded = invoice(shop, "1")
    crowd(shop, crowded["address"])
    shop.chain.mine()
    scanned()
    time = iter([True] + [False] * 100)
    with in_realm("live"):
        poll._rescan(services().catalogue("live").networks["litecoin"], lambda: next(time))
    assert len(at(crowded["address"])) == 10 + 12
    (ordered,) = services().store.every(Rescan)
    assert not ordered.done
    rescanned()
    assert len(at(crowded["address"])) == CROWD


def test_a_crowd_falls_out_with_its_block_in_as_many_runs_as_it_takes(shop: Shop) -> None:
    """Nothing is scanned or credited before the last of it is orphaned, and mined again it is credited once."""
    before, count = shop.available(), 26
    crowded = invoice(shop, "1")
    crowd(shop, crowded["address"], count)
    shop.chain.mine(CONFIRMATIONS)
    shop.run()
    rescanned()
    shop.run()
    shop.chain.drop(CONFIRMATIONS)
    left = count
    while left > 12:
        with pytest.raises(Unavailable, match="goes on"):
            scanned()
        left -= 12
        assert len([d for d in at(crowded["address"]) if d.status == "orphaned"]) == count - left
    assert audit(services().store) == []
    shop.chain.mine(CONFIRMATIONS)
    for _ in range(3):
        shop.run()
        rescanned()
    assert {(d.status, d.round) for d in at(crowded["address"])} == {("confirmed", 1)}
    assert float(shop.available()) == pytest.approx(float(before) + count * DUST / COIN)
    shop.whole()


def test_lists_of_every_version_are_read_and_gone_on_with(shop: Shop) -> None:
    """A version without epochs stored up to 2,000 ids in a part, and no count. What it adds to a list of ours loses the count."""
    store = services().store
    ids = [derived_id("tx", str(n)) for n in range(2_150)]
    old, new = (Block(7, hash_ * 32, "", 0) for hash_ in ("aa", "bb"))
    store.commit([Save(BlockDeposits(NETWORK, old.hash, tuple(ids[:2_000])))])
    store.commit([Save(BlockDeposits(NETWORK, old.hash, (ids[2_000],), 1))])
    places = list_deposits(store, NETWORK, old, ids, 0)
    assert [places[ids[n]] for n in (0, 1_999, 2_000, 2_011, 2_012, 2_149)] == [0, 0, 1, 1, 2, 13]
    assert list_deposits(store, NETWORK, new, ids[:30], 0) == {key: n // 12 for n, key in enumerate(ids[:30])}
    first = store.get(BlockDeposits, network=NETWORK, hash=new.hash)
    assert first is not None
    assert (first.parts, first.epoch) == (3, 0)
    by_old = replace(next_version(first), deposits=(*first.deposits, ids[30]), parts=None, epoch=0)
    store.commit([Save(by_old)])
    assert list_deposits(store, NETWORK, new, ids[:40], 0)[ids[39]] == 3
    for block, listed in (old, ids), (new, ids[:40]):
        found = [key for _, part in deposits_of(store, NETWORK, [block.hash, "cc" * 32]) for key in part]
        assert sorted(found) == sorted(listed)


def test_the_first_of_everybody_comes_first() -> None:
    assert crowds.in_turn(list("aaabbca"), str) == list("abcabaa")
    assert crowds.shared_out(list("abcabaa"), str, 2) == (list("abcab"), list("aa"))
    assert crowds.shared_out(list("abc"), str, 1) == (list("abc"), [])
