"""A daily run compares every address that has something, and one of seven parts of the emptied ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from chalicelib.chains.sandbox.ledger import Tx
from chalicelib.domain import reconciliation
from chalicelib.domain.ids import AssetId, NetworkId, tenant_id
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.reconciliation import (
    EVERY_MS,
    MOST_PASSES,
    PARTS,
    CoinSums,
    Comparison,
    ComparisonReport,
    Place,
    part_after,
)
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation import walk
from chalicelib.usecases.reconciliation.accounts import LooksAtNow
from chalicelib.wiring import services
from chalicelib.wiring.reconciliation import ReconciliationWiring
from tests.support.reconciling import THIEF, USDT, run_of, run_through, sums
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.stack import Stack

DAYS = 3
"""Of these weeks."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as made:
        yield made


def steal(shop: Shop, address: str, units: int) -> None:
    """Whoever has the key moves tokens, and the service knows nothing of it."""
    chain, contract = shop.chain(), shop.coin("usdt").contract
    source, nonce = chain.form(address), chain.nonce(address)
    assert contract is not None
    chain.submit(
        Tx(f"0x{random.Random(f'{source}{nonce}').randbytes(32).hex()}", source, THIEF, chain.form(contract), units, 0, nonce)
    )


def a_day(shop: Shop) -> ComparisonReport:
    """The next daily run."""
    shop.wait(EVERY_MS // 1000 + 1)
    return run_through(shop)


def state(shop: Shop) -> Comparison:
    found = services().store.get(Comparison, network=shop.realm_network().id)
    assert found is not None
    return found


class Everywhere(LooksAtNow):
    """Asks of every address, as live EVM networks are: those that have something are then compared."""

    everywhere = True

    def __init__(self, context: NetworkContext) -> None:
        super().__init__(context)
        self.asked: list[str] = []

    def holding(self, places: Sequence[Place]) -> list[Place]:
        self.asked += {place.address for place in places}
        return [place for place in places if self._held(place)]


def weekly(shop: Shop, patch: pytest.MonkeyPatch) -> Everywhere:
    """Looks that note who was asked for; pages are small."""
    looks = Everywhere(services().context(shop.realm_network()))
    patch.setattr(walk, "ENOUGH", 2)
    for module in (walk, reconciliation):
        patch.setattr(module, "PARTS", DAYS)
    patch.setattr(ReconciliationWiring, "comparison", lambda self, network: looks)
    return looks


def test_a_week_looks_at_each_emptied_address_and_a_day_at_each_that_has_something(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = weekly(shop, monkeypatch)
    shop.credit("1.5")
    shop.credit("20", "usdt")
    empty = {shop.chain().form(shop.invoice("1")["address"]) for _ in range(6)}
    assert a_day(shop).clean and state(shop).part is None, "the first run looks at all"
    days = []
    for number in range(DAYS):
        looks.asked = []
        found = a_day(shop)
        assert state(shop).part == number and found.complete and found.clean
        eth, usdt = sums(found, "eth"), sums(found, "usdt")
        assert (eth.owed, usdt.owed) == (15 * ETHER // 10, 20 * USDT) and eth.solvent and usdt.solvent
        assert eth.held == eth.expected >= eth.owed and usdt.held == usdt.expected >= usdt.owed
        days.append(empty.intersection(looks.asked))
    assert set().union(*days) == empty and sum(map(len, days)) == len(empty), "each of them on one day"
    a_day(shop)
    assert state(shop).part == 0


def test_networks_that_answer_one_by_one_are_compared_in_parts_too(shop: Shop) -> None:
    shop.credit("1.5")
    a_day(shop)
    for _ in range(2):
        found = a_day(shop)
        assert found.clean and sums(found, "eth").solvent and sums(found, "eth").held >= sums(found, "eth").owed == 15 * ETHER // 10


def test_what_is_stolen_is_found_on_any_day(shop: Shop) -> None:
    shop.credit("20", "usdt")
    a_day(shop)
    assert a_day(shop).clean
    (lying,) = (w for w in services().store.every(WalletBalance) if w.asset.endswith("m:usdt") and w.units == 20 * USDT)
    steal(shop, lying.address, 20 * USDT)
    found = a_day(shop)
    assert [each.address for each in found.differences] == [lying.address] and state(shop).part == 1


def test_what_nobody_recorded_is_found_within_a_week(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    weekly(shop, monkeypatch)
    address = shop.chain().form(shop.invoice("1")["address"])
    a_day(shop)
    reader = services().reader(shop.realm_network())
    balance = reader.balance
    more = {address: 7}
    monkeypatch.setattr(reader, "balance", lambda at, contract=None: balance(at, contract) + (0 if contract else more.get(at, 0)))
    found = [len(a_day(shop).differences) for _ in range(DAYS)]
    assert sorted(found) == [0] * (DAYS - 1) + [1]


@contextmanager
def owing_all_of(shop: Shop, wallet: str) -> Iterator[None]:
    """Merchants are owed what lies at the wallet, so that the operator has nothing there."""
    held = shop.chain().balance(wallet, shop.coin("usdt").contract)
    known = {balance.tenant for balance in services().store.every(Balance)}
    tenant = next(t for m in services().store.every(Merchant) if (t := tenant_id(m.id, "test")) not in known)
    owing = Balance(tenant, shop.coin("usdt").asset, available=held, version=1)
    services().store.commit([Save(owing)])
    yield
    services().store.commit([Save(replace(owing, available=0, version=2))])


@pytest.mark.parametrize(("missing", "solvent", "passes"), [(0, True, 2), (5_001, False, 1)])
def test_what_is_swept_while_a_run_reads_is_not_missed_at_both_ends(
    shop: Shop, missing: int, solvent: bool, passes: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The hot wallet is read before the sweep and the address after it: the run goes again before it says that money is gone."""
    shop.credit("5000", "usdt")
    shop.credit("5001", "usdt")
    asked = {"coin": "usdt", "network": "ethereum", "collectThreshold": "0"}
    assert shop.stack.call("PUT", "/v1/coins", shop.stack.keys["admin_test"], json=asked).status == 200
    services().store.forget_catalogue()
    assert a_day(shop).clean
    lying = {w.units: w.address for w in services().store.every(WalletBalance) if w.asset.endswith("m:usdt") and w.units}
    if missing:
        steal(shop, lying[5_001 * USDT], missing * USDT)
    with owing_all_of(shop, shop.hot().address):
        shop.wait(EVERY_MS // 1000 + 1)
        run = run_of(shop)
        assert run.begin()
        while not state(shop).looked:
            run.step()
        for _ in range(12):
            shop.stack.drain(only=("poll_ethereum", "relay", "payout", "collect"), hurry=True, rounds=1)
            shop.mine(12)
            shop.wait(60)
            if any(m.kind == "sweep" and m.state == "settled" for m in services().store.every(Move)):
                break
        caplog.clear()
        found = run_through(shop)
    coin = sums(found, "usdt")
    assert (coin.solvent, state(shop).passes) == (solvent, passes), coin
    assert ("are owed, and" in caplog.text) is not solvent


def test_a_run_that_swept_enough_in_every_pass_proves_nothing() -> None:
    """Neither that all is there, nor that it is not."""
    usdt = AssetId("test:ethereum:usdt")
    short = CoinSums(usdt, held=90, owed_before=100, owed=100)
    network = NetworkId("test:ethereum")
    for passes, unsure in ((1, True), (MOST_PASSES, False)):
        run = Comparison(network, "rec", 0, 0, passes=passes, sums=(short,)).sweeping({usdt: 10})
        assert (run.sums[0].solvent, run.unsure) == (None, unsure)
    run = Comparison(network, "rec", 0, 0, sums=(short,)).sweeping({usdt: 9})
    assert (run.sums[0].solvent, run.unsure) == (False, False)


def test_an_address_from_where_something_is_in_flight_is_no_emptied_one(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what is on its way would be in no sum, and merchants' money would seem to be missing."""
    looks = weekly(shop, monkeypatch)
    shop.credit("1.5")
    (there,) = {w.address for w in services().store.every(WalletBalance) if w.units == 15 * ETHER // 10}
    emptied = walk.Walk(services().context(shop.realm_network()), looks, 500)
    kept = {"after": "=", "part": 0, "phase": "walk"}
    begun = replace(Comparison(shop.realm_network().id, "rec", 0, 0), **kept)

    def seen() -> set[str]:
        found, at = set(), begun
        while True:
            stop = emptied.step(at)
            found |= {place.address for place in stop.places}
            if stop.next is None:
                return found
            at = replace(begun, after=stop.next)

    assert seen() == {there}
    monkeypatch.setattr(WalletBalance, "emptied", property(lambda self: True))
    assert seen() == set()
    monkeypatch.setattr(looks, "touched", lambda: {there})
    assert seen() == {there}
    others: set[str] = set()
    for part in range(DAYS):
        others |= {place.address for place in emptied.step(replace(begun, part=part, after="@")).places}
    assert there not in others, "it is not compared twice"


def test_a_run_that_an_older_version_went_on_with_begins_anew(shop: Shop) -> None:
    """It writes neither the part nor that it knows of parts: what it went through is not all that a sum is made of."""
    shop.credit("1.5")
    a_day(shop)
    shop.wait(EVERY_MS // 1000 + 1)
    run = run_of(shop)
    assert run.begin()
    for _ in range(3):
        run.step()
    mine = state(shop)
    assert mine.phase == "walk" and mine.part == 0 and mine.after
    older = replace(mine, after="", phase="again", part=None, kept=0, version=mine.version + 1)
    services().store.commit([Save(older)])
    run.step()
    assert (state(shop).part, state(shop).sums[0].places) == (None, 0)
    while run.step() != "idle":
        pass
    found = services().store.get(ComparisonReport, network=shop.realm_network().id)
    assert found is not None and found.clean and sums(found, "eth").held >= 15 * ETHER // 10


def test_a_part_that_could_not_be_compared_comes_again() -> None:
    run = Comparison(NetworkId("test:ethereum"), "rec", 0, 0, part=3)
    assert (part_after(None), part_after(replace(run, part=None)), part_after(run)) == (None, 0, 4)
    assert part_after(replace(run, part=PARTS - 1)) == 0 and part_after(replace(run, trouble="no node")) == 3


def test_a_page_where_nearly_each_address_has_something_is_read_in_smaller_steps(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can send something to many addresses: what one step finds is stored in one transaction."""
    looks = weekly(shop, monkeypatch)
    for _ in range(6):
        shop.invoice("1")
    monkeypatch.setattr(looks, "holding", list)
    monkeypatch.setattr(walk, "LARGER", 1000)
    walked = walk.Walk(services().context(shop.realm_network()), looks, 3)
    begun = Comparison(shop.realm_network().id, "rec", 0, 0, part=0, phase="walk", after="@")

    def rounds() -> tuple[int, int, int]:
        state, found, most, steps = begun, 0, 0, 0
        while state.after.startswith("@"):
            stop = walked.step(state)
            found, most, steps = found + len(stop.places), max(most, len(stop.places)), steps + 1
            assert stop.next is not None
            state = replace(state, after=stop.next)
        return found, most, steps

    parts = []
    for part in range(DAYS):
        begun = replace(begun, part=part)
        found, most, steps = rounds()
        assert steps == 1 and most == found
        parts.append(found)
    begun = replace(begun, part=parts.index(max(parts)))
    monkeypatch.setattr(walk, "MOST_PLACES", max(parts) - 1)
    found, most, steps = rounds()
    assert found == max(parts) > most and steps > 1
