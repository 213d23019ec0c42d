"""Payments at first sight: what waits in a mempool is told and shown, completes nothing, and is what its block says later.

The mempool is one of our own here: it holds what the test puts there. A real node's is in `tests/nodes`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Unmined
from chalicelib.domain.deposits.deposits import WAITS_IN_TIME_MS, Deposit
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning import mempool as module
from chalicelib.wiring import services
from chalicelib.workers import poll
from tests.support.mempools import CONFIRMATIONS, SATOSHIS, Coins

NOTHING = {"available": "0", "frozen": "0", "pending": "0"}


def test_first_seen_then_mined_then_credited(coins: Coins) -> None:
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    sent = coins.send(invoice["address"], SATOSHIS)
    coins.look()
    shown = shop.get(f"/v1/transactions/{coins.id(sent)}")["data"]
    assert {name: shown[name] for name in ("status", "blockNumber", "blockHash", "confirmations")} == {
        "status": "pending", "blockNumber": None, "blockHash": None, "confirmations": 0,
    }  # fmt: skip
    assert shop.balance("btc") == {**NOTHING, "pending": "1"}
    seen = shop.shown(invoice)
    assert (seen["status"], seen["unconfirmed"], seen["received"]) == ("confirming", "1", "0")
    assert [t["confirmations"] for t in seen["transactions"]] == [0]
    payer = shop.stack.call("GET", f"/pay/{invoice['id']}", headers={"Accept": "application/json"})
    assert payer.status == 200
    coins.look()
    coins.mine(sent)
    coins.look()
    in_block = coins.record(sent)
    assert (in_block.status, in_block.block_number is None) == ("pending", False)
    assert shop.shown(invoice)["transactions"][0]["confirmations"] == 1
    coins.confirm()
    assert (shop.balance("btc"), shop.status(invoice)) == ({**NOTHING, "available": "1"}, "completed")
    assert coins.told(coins.id(sent)) == ["transaction.detected", "transaction.confirmed"]
    assert coins.told(invoice["id"]) == ["invoice.created", "invoice.confirming", "invoice.completed"]
    assert not [w for w in services().store.every_work() if w.kind == "glimpse"]
    assert coins.pool.asked == [sent.txid]


def test_what_needs_a_block_is_not_completed_before(coins: Coins) -> None:
    """autoConfirmThreshold: as soon as the payment is in a block (decisions), and not sooner."""
    shop = coins.shop
    answer = shop.stack.call(
        "PUT", "/v1/invoices/configureSettings", shop.key, json={"settings": {"autoConfirmThreshold": 1_000_000}}
    )
    assert answer.status == 201, answer.body
    invoice = shop.invoice("0.01", "btc")
    sent = coins.send(invoice["address"], SATOSHIS // 100)
    coins.look()
    assert shop.status(invoice) == "confirming"
    coins.mine(sent)
    coins.look()
    assert (shop.status(invoice), shop.balance("btc")["available"]) == ("completed", "0")


def test_replaced_with_a_higher_fee(coins: Coins) -> None:
    """The old transaction is gone after a while; the new one is the payment, and only that one is credited."""
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    old = coins.send(invoice["address"], SATOSHIS, "aa" * 32)
    coins.look()
    coins.pool.held.clear()
    new = coins.send(invoice["address"], SATOSHIS, "bb" * 32)
    coins.look()
    assert [coins.record(t).status for t in (old, new)] == ["pending", "pending"]
    shop.wait(module.GONE_MS // 1000)
    coins.look()
    assert [coins.record(t).status for t in (old, new)] == ["orphaned", "pending"]
    assert (shop.shown(invoice)["unconfirmed"], shop.balance("btc")["pending"]) == ("1", "1")
    assert coins.told(coins.id(old)) == ["transaction.detected", "transaction.orphaned"]
    coins.mine(new)
    coins.confirm()
    assert (shop.balance("btc"), shop.status(invoice)) == ({**NOTHING, "available": "1"}, "completed")
    assert [p["hash"] for p in shop.shown(invoice)["transactions"]] == [new.txid]


COINS = ("c0" * 32 + ":0", "c1" * 32 + ":7")


def test_replaced_is_told_by_the_next_look(coins: Coins) -> None:
    """Another one spends one of its outputs: the old is gone at once, and to its invoice that was one payment all the time."""
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    old = coins.send(invoice["address"], SATOSHIS, "aa" * 32, spends=COINS)
    coins.pool.replaceable.add(old.txid)
    coins.look()
    assert shop.get(f"/v1/transactions/{coins.id(old)}")["data"]["flags"] == ["replaceable"]
    new = coins.send(invoice["address"], SATOSHIS, "bb" * 32, spends=COINS[1:], replaces=old.txid)
    coins.look()
    assert [coins.record(t).status for t in (old, new)] == ["orphaned", "pending"]
    assert coins.record(new).flags == ()
    assert (shop.balance("btc"), shop.shown(invoice)["unconfirmed"]) == ({**NOTHING, "pending": "1"}, "1")
    assert coins.told(coins.id(old)) == ["transaction.detected", "transaction.orphaned"]
    coins.mine(new)
    coins.confirm()
    assert (shop.balance("btc"), shop.status(invoice)) == ({**NOTHING, "available": "1"}, "completed")
    assert coins.told(invoice["id"]) == ["invoice.created", "invoice.confirming", "invoice.completed"]
    coins.look()
    assert coins.record(old).status == "orphaned"


def test_the_replaced_one_is_mined_after_all(coins: Coins) -> None:
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    old = coins.send(invoice["address"], SATOSHIS, "aa" * 32, spends=COINS)
    coins.pool.replaceable.add(old.txid)
    coins.look()
    new = coins.send(invoice["address"], SATOSHIS, "bb" * 32, spends=COINS, replaces=old.txid)
    coins.look()
    coins.pool.held.clear()
    coins.mine(old)
    coins.look()
    assert [coins.record(t).status for t in (old, new)] == ["pending", "orphaned"]
    assert (coins.record(old).flags, coins.record(old).spends) == ((), ())
    coins.confirm()
    assert (shop.balance("btc"), shop.status(invoice)) == ({**NOTHING, "available": "1"}, "completed")
    assert coins.told(coins.id(old)) == [
        "transaction.detected", "transaction.orphaned", "transaction.detected", "transaction.confirmed",
    ]  # fmt: skip


def test_spent_by_a_block_is_told_by_the_next_look(coins: Coins) -> None:
    """The other transaction pays nobody here, and was never seen waiting."""
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    sent = coins.send(invoice["address"], SATOSHIS, spends=COINS)
    coins.look()
    coins.pool.held.clear()
    coins.pool.spent.add(COINS[0])
    coins.pool.silent = True
    coins.mine()
    coins.look()
    assert coins.record(sent).status == "pending"
    coins.pool.silent = False
    coins.look()
    assert (coins.record(sent).status, shop.balance("btc"), shop.status(invoice)) == ("orphaned", NOTHING, "pending")


def test_what_hangs_on_an_unconfirmed_one_is_judged_by_time(coins: Coins) -> None:
    """A node that has lost its mempool knows neither: it does not say that somebody spent it."""
    coins.pool.held["c0" * 32] = []
    sent = coins.send(coins.shop.invoice("1", "btc")["address"], SATOSHIS, spends=COINS[:1])
    coins.look()
    assert coins.record(sent).spends == ()
    coins.pool.held.clear()
    coins.pool.spent.add(COINS[0])
    coins.look()
    assert coins.record(sent).status == "pending"


def test_more_is_missing_than_is_asked_for(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two questions of two outputs each, and the fifth payment is left to the next look."""
    monkeypatch.setattr(module, "_ASKED_AT_ONCE", 2)
    monkeypatch.setattr(module, "_MOST_ASKED", 4)
    address = coins.shop.invoice("5", "btc")["address"]
    sent = [coins.send(address, SATOSHIS, f"a{n}" * 32, spends=(f"{n:064x}:0",)) for n in range(5)]
    coins.look()
    coins.pool.held.clear()
    coins.pool.spent |= {f"{n:064x}:0" for n in range(5)}
    coins.look()
    assert sorted(coins.record(t).status for t in sent) == ["orphaned"] * 4 + ["pending"]
    coins.look()
    assert {coins.record(t).status for t in sent} == {"orphaned"}


def test_double_spent_and_gone(coins: Coins) -> None:
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    sent = coins.send(invoice["address"], SATOSHIS)
    coins.look()
    coins.pool.held.clear()
    coins.mine()
    coins.look()
    shop.wait(module.GONE_MS // 1000 - 60)
    coins.look()
    assert coins.record(sent).status == "pending"
    shop.wait(60)
    coins.look()
    assert (coins.record(sent).status, shop.balance("btc"), shop.status(invoice)) == ("orphaned", NOTHING, "pending")
    assert coins.told(invoice["id"]) == ["invoice.created", "invoice.confirming", "invoice.reverted"]
    # It comes back after all, and is mined.
    back = coins.send(invoice["address"], SATOSHIS)
    coins.look()
    assert coins.record(back).status == "pending"
    coins.mine(back)
    coins.confirm()
    assert (shop.balance("btc"), shop.status(invoice)) == ({**NOTHING, "available": "1"}, "completed")
    assert coins.told(coins.id(sent)) == [
        "transaction.detected", "transaction.orphaned", "transaction.detected", "transaction.confirmed",
    ]  # fmt: skip


def test_away_for_a_moment_is_not_gone(coins: Coins) -> None:
    """Another provider, or one that was restarted, does not have everything in its mempool."""
    sent = coins.send(coins.shop.invoice("1", "btc")["address"], SATOSHIS)
    coins.look()
    for _ in range(3):
        held, coins.pool.held = coins.pool.held, {}
        coins.look()
        assert coins.record(sent).missing_since is not None
        coins.pool.held = held
        coins.shop.wait(module.GONE_MS // 1000 - 1)
        coins.look()
        assert coins.record(sent).missing_since is None
    assert coins.told(coins.id(sent)) == ["transaction.detected"]


def test_reorganised_into_the_mempool_and_mined_again(coins: Coins) -> None:
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    sent = coins.send(invoice["address"], SATOSHIS)
    coins.look()
    coins.mine(sent)
    coins.confirm()
    assert shop.balance("btc")["available"] == "1"
    coins.mined.clear()
    coins.pool.held[sent.txid] = [sent]
    shop.chain().reorganise(CONFIRMATIONS + 1, False)
    coins.look()
    coins.look()
    assert (coins.record(sent).status, coins.record(sent).block_number) == ("pending", None)
    assert shop.balance("btc") == {**NOTHING, "pending": "1"}
    coins.mine(sent)
    coins.confirm()
    assert (shop.balance("btc"), shop.status(invoice)) == ({**NOTHING, "available": "1"}, "completed")
    assert coins.told(coins.id(sent)) == [
        "transaction.detected", "transaction.confirmed", "transaction.orphaned", "transaction.detected", "transaction.confirmed",
    ]  # fmt: skip


@pytest.mark.parametrize(("waits_ms", "status"), [(3600 * 1000, "completed"), (WAITS_IN_TIME_MS + 3600 * 1000, "expired")])
def test_seen_in_time_is_in_time(coins: Coins, waits_ms: int, status: str) -> None:
    """A payer who paid in time is not late because blocks are slow; who offers too little to be mined holds no price open."""
    shop = coins.shop
    invoice = shop.invoice("1", "btc", expiresIn=1800)
    sent = coins.send(invoice["address"], SATOSHIS)
    coins.look()
    shop.wait(waits_ms // 1000)
    shop.mine(1)
    coins.look()
    assert shop.status(invoice) == "confirming"
    coins.mine(sent)
    coins.confirm()
    assert (shop.status(invoice), shop.balance("btc")["available"]) == (status, "1")
    assert ("invoice.late_payment" in coins.told(invoice["id"])) is (status == "expired")


def test_seen_too_late(coins: Coins) -> None:
    shop = coins.shop
    invoice = shop.invoice("1", "btc", expiresIn=1800)
    shop.wait(1801)
    shop.mine(1)
    coins.look()
    assert shop.status(invoice) == "expired"
    sent = coins.send(invoice["address"], SATOSHIS)
    coins.look()
    assert (shop.status(invoice), coins.record(sent).late) == ("expired", True)
    coins.mine(sent)
    coins.confirm()
    assert (shop.status(invoice), shop.shown(invoice)["received"]) == ("expired", "1")
    assert coins.told(invoice["id"]) == ["invoice.created", "invoice.expired", "invoice.late_payment"]


def test_a_flood_is_read_bit_by_bit_and_what_is_new_first(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FETCHED", 4)
    monkeypatch.setattr(module, "FETCHED_AT_ONCE", 2)
    for number in range(10):
        coins.pool.held[f"{number:064x}"] = []
    coins.look()
    assert len(coins.pool.asked) == 4
    sent = coins.send(coins.shop.invoice("1", "btc")["address"], SATOSHIS)
    coins.look()
    assert coins.pool.asked[4] == sent.txid
    assert coins.record(sent).status == "pending"
    coins.look()
    coins.look()
    assert sorted(coins.pool.asked) == sorted(set(coins.pool.asked)) == sorted(coins.pool.held)


def test_a_flood_to_one_address_keeps_nobody_waiting(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many outputs to one address, read with a payment to another: a few are told, the block has the rest."""
    monkeypatch.setattr(module, "MOST_TO_ONE", 3)
    crowded, other = coins.shop.invoice("1", "btc")["address"], coins.shop.invoice("2", "btc")["address"]
    crowd = [coins.send(crowded, 600, "cd" * 32, place) for place in range(12)]
    sent = coins.send(other, SATOSHIS)
    coins.look()
    assert coins.record(sent).status == "pending"
    assert [services().store.get(Deposit, id=coins.id(each)) is not None for each in crowd] == [True] * 3 + [False] * 9
    coins.mine(sent, *crowd)
    coins.confirm()
    assert {coins.record(each).status for each in (sent, *crowd)} == {"confirmed"}
    assert audit(services().store) == []


def test_late_in_a_flood_the_rest_is_read_the_next_time(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_LEAST", 2)
    crowd = [coins.send(coins.shop.invoice("1", "btc")["address"], 600, f"{n:064x}") for n in range(5)]
    network = coins.shop.realm_network()
    scan = services().mempool_scan(network)
    assert scan is not None
    for told in (2, 4, 5):
        scan.look(lambda: services().scanner(network).poll(lambda: True))
        scan.read(lambda: False, lambda: False)
        assert len([each for each in crowd if services().store.get(Deposit, id=coins.id(each))]) == told


def test_what_waits_for_the_operators_wallets_is_left_to_its_block(coins: Coins) -> None:
    sent = coins.send(coins.shop.hot().address, SATOSHIS)
    coins.look()
    assert services().store.get(Deposit, id=coins.id(sent)) is None
    coins.mine(sent)
    coins.look()
    assert coins.record(sent).tenant is None


def test_a_mempool_that_can_not_be_read_holds_up_no_block(coins: Coins, caplog: pytest.LogCaptureFixture) -> None:
    shop = coins.shop
    unpaid = shop.invoice("1", "btc", expiresIn=1800)
    sent = coins.send(shop.invoice("1", "btc")["address"], SATOSHIS)
    coins.pool.away = True
    coins.mine(sent)
    shop.mine(CONFIRMATIONS)
    shop.wait(1801)
    shop.mine(1)
    with caplog.at_level(logging.WARNING):
        shop.stack.drain(only=("poll_bitcoin", "relay"), rounds=2, failures="count")
    assert shop.balance("btc")["available"] == "1"
    assert shop.status(unpaid) == "expired", "how far blocks were scanned decides, not the mempool"
    assert "the mempool can not be read" in caplog.text


def test_two_outputs_of_one_transaction_and_dust(coins: Coins) -> None:
    shop = coins.shop
    first, second = shop.invoice("1", "btc"), shop.invoice("2", "btc")
    sent = [coins.send(first["address"], SATOSHIS, place=0), coins.send(second["address"], 2 * SATOSHIS, place=1)]
    coins.look()
    assert shop.balance("btc")["pending"] == "3"
    coins.mine(*sent)
    coins.confirm()
    assert [shop.status(i) for i in (first, second)] == ["completed", "completed"]


def test_a_payment_seen_by_two_at_once_is_one(coins: Coins) -> None:
    """The block and the mempool of another process: whoever is second finds what the first one stored."""
    shop = coins.shop
    sent = coins.send(shop.invoice("1", "btc")["address"], SATOSHIS)
    coins.mine(sent)
    coins.look()
    coins.pool.held[sent.txid] = [sent]  # a lagging node still has it
    coins.look()
    assert coins.record(sent).block_number is not None
    assert coins.told(coins.id(sent)) == ["transaction.detected"]


@pytest.fixture
def minimum(coins: Coins) -> Iterator[None]:
    """Half a coin, in the operator's settings."""
    for amount in ("0.5", "0"):
        body = {"coin": "btc", "network": "bitcoin", "minDepositAmount": amount}
        answer = coins.shop.stack.call("PUT", "/v1/coins", coins.shop.stack.keys["admin_test"], json=body)
        assert answer.status == 200, answer.body
        if amount == "0.5":
            yield


@pytest.mark.usefixtures("minimum")
def test_the_first_sight_of_a_small_payment_decides_whose_it_is(coins: Coins) -> None:
    """The invoice is open when it is seen, and no longer when it is in a block."""
    shop = coins.shop
    invoice = shop.invoice("1", "btc", expiresIn=60)
    sent = coins.send(invoice["address"], SATOSHIS // 10)
    coins.look()
    assert (shop.status(invoice), coins.record(sent).flags, shop.balance("btc")["pending"]) == ("partial", (), "0.1")
    shop.wait(120)
    shop.mine(2)
    coins.look()
    assert shop.status(invoice) == "expired"
    coins.mine(sent)
    coins.look()
    coins.confirm()
    assert (shop.available("btc"), coins.record(sent).flags, shop.status(invoice)) == ("0.1", (), "expired")


@pytest.mark.usefixtures("minimum")
def test_a_release_of_what_waits_to_be_in_a_block(coins: Coins) -> None:
    shop = coins.shop
    address = shop.post("/v1/addresses", {"network": "bitcoin"}).json["address"]
    sent = coins.send(address, SATOSHIS // 10)
    coins.look()
    assert (coins.record(sent).flags, shop.balance("btc")) == (("below_minimum",), NOTHING)
    answer = shop.stack.call("POST", f"/v1/transactions/{coins.id(sent)}/release", shop.stack.keys["admin_test"])
    assert (answer.status, shop.balance("btc")["pending"]) == (200, "0.1")
    assert audit(services().store) == []
    coins.mine(sent)
    coins.look()
    coins.confirm()
    assert (shop.available("btc"), coins.record(sent).flags) == ("0.1", ())


class Pace:
    """A clock for a poll, which a slow node moves; `steps` says when what was done, in seconds."""

    def __init__(self, coins: Coins, patch: pytest.MonkeyPatch, seconds_a_batch: float) -> None:
        self.now, self.steps = 0.0, dict[str, float]()
        wired, real = services(), coins.pool.transactions

        def transactions(txids: Sequence[str]) -> list[Unmined]:
            self.now += seconds_a_batch
            return real(txids)

        def scanner(network: Network) -> Any:
            found = real_scanner(network)
            patch.setattr(found, "advance", self._timed("scan", found.advance))
            patch.setattr(found, "confirm", self._timed("confirm", found.confirm))
            return found

        real_scanner = wired.scanner
        patch.setattr(coins.pool, "transactions", transactions)
        patch.setattr(wired, "scanner", scanner)
        patch.setattr(time, "monotonic", lambda: self.now)

    def _timed(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            self.steps.setdefault(name, self.now)
            return step(*arguments)

        return timed


def test_a_full_mempool_holds_up_no_crediting(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 transactions wait, the node takes 0.3 s for a batch, and the process is new."""
    shop = coins.shop
    paid = coins.send(shop.invoice("1", "btc")["address"], SATOSHIS)
    coins.mine(paid)
    shop.mine(CONFIRMATIONS)
    coins.pool.held.update({f"{number:064x}": [] for number in range(20_000)})
    pace = Pace(coins, monkeypatch, 0.3)
    with contextlib.suppress(Exception):
        poll.poll("bitcoin")
    assert shop.balance("btc") == {**NOTHING, "available": "1"}
    assert pace.steps == {"scan": 0.0, "confirm": 0.0}
    assert 0 < len(coins.pool.asked) <= (0.75 * poll.SECONDS * poll.READING / 0.3 + 1) * module.FETCHED_AT_ONCE
    assert pace.now < poll.SECONDS * poll.READING + 0.31


def test_a_full_mempool_is_read_over_many_polls_and_each_transaction_once(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more new ones than a poll can read: the older ones have their part, and none is read twice."""
    monkeypatch.setattr(module, "MOST_FETCHED", 16)
    monkeypatch.setattr(module, "FETCHED_AT_ONCE", 4)
    first = [f"{number:064x}" for number in range(40)]
    coins.pool.held.update({txid: [] for txid in first})
    for turn in range(14):
        coins.look()
        coins.pool.held.update({f"{turn:032x}{number:032x}": [] for number in range(100, 120)})
    assert set(first) <= set(coins.pool.asked)
    assert len(coins.pool.asked) == len(set(coins.pool.asked))


def test_a_process_that_starts_anew_begins_elsewhere(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FETCHED", 20)
    coins.pool.held.update({f"{number:064x}": [] for number in range(100)})
    network, wired = coins.shop.realm_network(), services()
    for _ in range(60):
        fresh = module.MempoolScan(wired.context(network), coins.pool, wired.deposits(network.realm), module.Looks())
        fresh.look(lambda: wired.scanner(network).advance(lambda: True))
        fresh.read(lambda: True, lambda: True)
        if len(set(coins.pool.asked)) == 100:
            break
    assert len(set(coins.pool.asked)) == 100


def test_a_batch_that_can_not_be_read_is_not_the_first_of_every_poll(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FETCHED", 4)
    monkeypatch.setattr(module, "FETCHED_AT_ONCE", 4)
    coins.pool.held.update({f"{number:064x}": [] for number in range(12)})
    real, bad = coins.pool.transactions, f"{7:064x}"

    def transactions(txids: Sequence[str]) -> list[Unmined]:
        found = real(txids)
        if bad in txids:
            raise Unavailable("one of them can not be read")
        return found

    monkeypatch.setattr(coins.pool, "transactions", transactions)
    for _ in range(4):
        coins.shop.stack.drain(only=("poll_bitcoin",), rounds=1, failures="count")
    assert set(coins.pool.asked) == set(coins.pool.held)


def test_what_was_seen_stays_while_its_replacement_may_be_unread(coins: Coins, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mempool is full and was read in part. What is ousted is orphaned once all is read, or after a while."""
    shop = coins.shop
    invoice = shop.invoice("1", "btc")
    old = coins.send(invoice["address"], SATOSHIS, "aa" * 32, spends=COINS)
    other = coins.send(shop.invoice("1", "btc")["address"], SATOSHIS, "a1" * 32)
    coins.look()
    monkeypatch.setattr(module, "MOST_FETCHED", 0)
    new = coins.send(invoice["address"], SATOSHIS, "bb" * 32, spends=COINS, replaces=old.txid)
    coins.look()
    assert [coins.record(t).status for t in (old, other)] == ["pending", "pending"]
    assert shop.status(invoice) == "confirming"
    monkeypatch.setattr(module, "MOST_FETCHED", 2_000)
    coins.look()
    assert [coins.record(t).status for t in (old, new, other)] == ["orphaned", "pending", "pending"]
    assert shop.status(invoice) == "confirming"


def test_what_is_gone_is_ended_bit_by_bit_and_what_only_waits_for_its_time_last(
    coins: Coins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood that goes away at once must not keep a poll from its end."""
    monkeypatch.setattr(module, "AT_LEAST", 2)
    shop = coins.shop
    sent = [coins.send(shop.invoice("1", "btc")["address"], 600, f"{n:064x}") for n in range(6)]
    coins.look()
    coins.pool.held.clear()
    network = shop.realm_network()

    def late_poll() -> list[int]:
        found = services().mempool_scan(network)
        assert found is not None
        found.look(lambda: services().scanner(network).advance(lambda: True))
        found.read(lambda: False, lambda: False)
        records = [coins.record(each) for each in sent]
        return [
            sum(d.missing_since is not None and d.status == "pending" for d in records),
            sum(d.status == "orphaned" for d in records),
        ]

    assert [late_poll() for _ in range(3)] == [[2, 0], [4, 0], [6, 0]]
    shop.wait(module.GONE_MS // 1000)
    shop.mine(1)
    assert [late_poll() for _ in range(3)] == [[4, 2], [2, 4], [0, 6]]
