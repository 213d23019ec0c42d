"""Chains and nodes at their worst: reorganisations deeper than remembered, nodes that lag, contradict themselves or lie, and
addresses that are paid on another network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.chain import Block, Cursor, Transfer
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.usecases.ports.failures import Contradiction, Halted, Unavailable
from chalicelib.usecases.scanning.leftover_rescans import PATIENCE_MS
from chalicelib.usecases.scanning.reorganisations import BATCH_BLOCKS
from chalicelib.wiring import services
from chalicelib.workers import poll
from tests.support.shop import Shop, bent_node, open_shop
from tests.support.stack import Stack

NOTHING = {"available": "0", "frozen": "0", "pending": "0"}
OTHER_HASH = "0x" + "ee" * 32


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def cursor(shop: Shop) -> Cursor:
    found = services().store.get(Cursor, network=shop.realm_network().id)
    assert found is not None
    return found


def poll_fails(shop: Shop, *kinds: type[Exception]) -> None:
    """One poll, which must say what is wrong."""
    drained = shop.stack.drain(only=("poll_ethereum",), failures="count", rounds=1)
    ((name, error),) = drained.failures
    assert name == "poll_ethereum"
    assert isinstance(error, ExceptionGroup)
    assert {type(e) for e in error.exceptions} == set(kinds)


@pytest.mark.parametrize("remine", [True, False], ids=["all-mined-again", "all-lost"])
def test_deeper_than_remembered_halts_until_resumed(shop: Shop, caplog: pytest.LogCaptureFixture, remine: bool) -> None:
    """Credited, seen and new payments alike: nothing is credited while halted, and each once after the operator's word."""
    shop.mine(60)
    shop.turn()
    first, second, third = shop.invoice(), shop.invoice(), shop.invoice()
    shop.pay(first["address"], "1")
    shop.mine()
    shop.turn()
    shop.pay(second["address"], "1")
    shop.turn()
    assert shop.balance() == {"available": "1", "frozen": "0", "pending": "1"}
    assert shop.realm_network().reorg_depth == 64
    shop.chain().reorganise(70, remine)
    shop.pay(third["address"], "1")
    shop.mine()
    for _ in range(2):
        poll_fails(shop, Halted)
    assert [r.levelno for r in caplog.records if "ALARM" in r.message and "crediting stops" in r.message] == [logging.ERROR]
    assert cursor(shop).halted
    assert shop.balance() == {"available": "1", "frozen": "0", "pending": "1"}
    assert shop.status(third) == "pending"
    services().scanner(shop.realm_network()).resume()
    shop.turn()
    shop.mine()
    shop.turn()
    paid = [True, True, True] if remine else [False, False, True]
    assert [shop.status(invoice) == "completed" for invoice in (first, second, third)] == paid
    assert shop.available() == str(sum(paid))
    credited, taken = len(shop.journal("deposit_credited")), len(shop.journal("deposit_reversed"))
    on_hand = [d for d in services().store.every(Deposit) if d.status == "confirmed" and d.network == shop.realm_network().id]
    assert credited - taken == len(on_hand)
    with pytest.raises(ValueError, match="not halted"):
        services().scanner(shop.realm_network()).resume()


def test_where_a_scan_begins_is_known_without_reading_a_block(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many blocks as a reorganisation is followed have megabytes each, and a minute may not be enough for their traces."""
    shop.mine(100)
    shop.turn()
    shop.chain().reorganise(70, True)
    poll_fails(shop, Halted)
    node = bent_node(shop, monkeypatch)
    read: list[tuple[Any, ...]] = []
    node.bend(blocks=lambda real, *asked: read.append(asked), headers=lambda real, *asked: read.append(asked) or real)
    scanner, tip = services().scanner(shop.realm_network()), node.tip()
    number = min(map(int, cursor(shop).recent)) - 1
    scanner.resume(number)
    stands = cursor(shop)
    assert read == [(max(0, number - 64), number)]
    assert (stands.number, stands.hash, stands.halted) == (number, node.block_hash(number), None)
    assert stands.recent == {str(n): node.block_hash(n) for n in range(max(0, number - 64), number + 1)}
    node.mend()
    shop.turn()
    assert cursor(shop).number == tip


def test_a_node_behind_what_was_scanned_loses_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    shop.mine(5)
    shop.turn()
    before = cursor(shop)
    node = bent_node(shop, monkeypatch)
    short = before.number - 5
    node.bend(
        tip=lambda _: short,
        block_hash=lambda real, number: real if number <= short else None,
        blocks=lambda real, *_: [b for b in real if b.number <= short],
    )
    shop.mine()
    poll_fails(shop, Unavailable)
    assert cursor(shop) == before
    assert (shop.status(invoice), shop.available()) == ("confirming", "0")
    node.mend()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("completed", "1")


def test_a_node_that_forgets_a_block_below_its_tip_loses_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    shop.turn()
    before = cursor(shop)
    node = bent_node(shop, monkeypatch)
    node.bend(block_hash=lambda real, number: None)
    shop.mine()
    poll_fails(shop, Unavailable)
    assert (cursor(shop), shop.available()) == (before, "0")
    node.mend()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("completed", "1")


def each(change: Callable[[int, Block], Block]) -> Callable[..., list[Block]]:
    return lambda real, *_: [change(place, block) for place, block in enumerate(real)]


LIES: dict[str, Callable[..., Any]] = {
    "first-parent": each(lambda place, block: replace(block, parent_hash=OTHER_HASH) if place == 0 else block),
    "later-parent": each(lambda place, block: replace(block, parent_hash=OTHER_HASH) if place == 3 else block),
    "later-hash": each(lambda place, block: replace(block, hash=OTHER_HASH) if place == 3 else block),
    "number": each(lambda place, block: replace(block, number=block.number + 1)),
    "later-number": each(lambda place, block: replace(block, number=block.number - 1) if place == 3 else block),
    "order": lambda real, *_: list(reversed(real)),
    "a-gap": lambda real, *_: [block for place, block in enumerate(real) if place != 2],
}


@pytest.mark.parametrize("lie", LIES)
def test_blocks_that_are_no_chain_are_not_taken(lie: str, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cursor(shop)
    invoice = shop.invoice()
    shop.mine(2)
    shop.pay(invoice["address"], "1")
    shop.mine()
    node = bent_node(shop, monkeypatch)
    node.bend(blocks=LIES[lie])
    for _ in range(2):
        poll_fails(shop, Unavailable)
    assert cursor(shop) == before
    assert (shop.status(invoice), shop.balance()) == ("pending", NOTHING)
    node.mend()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("completed", "1")
    assert len([d for d in services().store.every(Deposit) if d.invoice_id == invoice["id"]]) == 1


def test_a_payment_that_no_receipt_proves_is_not_seen(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    shop.mine()
    bent_node(shop, monkeypatch).bend(proven=lambda real, *_: [])
    shop.turn()
    assert (shop.status(invoice), shop.balance()) == ("pending", NOTHING)


def test_a_node_that_contradicts_itself_holds_up_a_block_for_half_an_hour(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then the other payments of the block go on, and what is in doubt stays open until the node says one thing."""
    doubted, beside = shop.invoice("1"), shop.invoice("2")
    shop.pay(doubted["address"], "1")
    height = shop.pay(beside["address"], "2")["blockNumber"]
    node = bent_node(shop, monkeypatch)
    ours = services().rules.storage_form("ethereum", doubted["address"])

    def contradicts(real: list[Transfer], _: Block, asked: list[Transfer]) -> list[Transfer]:
        if any(t.recipient == ours for t in asked):
            raise Contradiction("a receipt lacks a log that was told")
        return real

    node.bend(proven=contradicts)
    before = cursor(shop)
    for _ in range(2):
        poll_fails(shop, Contradiction)
    assert (cursor(shop), shop.status(beside), shop.balance()) == (before, "pending", NOTHING)
    services().clock.shift_ms += PATIENCE_MS + 1
    shop.mine()
    shop.stack.drain(only=("poll_ethereum",), failures="count", rounds=3)
    assert cursor(shop).number > height
    assert (shop.status(doubted), shop.status(beside), shop.available()) == ("pending", "completed", "2")
    assert "is left to a rescan" in caplog.text and "ALARM test:ethereum" in caplog.text
    (waiting,) = [r for r in services().store.every(Rescan) if not r.done]
    # It fails with every poll, and is not left over a second time.
    poll_fails(shop, Contradiction)
    assert [r for r in services().store.every(Rescan) if not r.done] == [waiting]
    node.mend()
    shop.turn()
    shop.mine()
    shop.turn()
    assert (shop.status(doubted), shop.available()) == ("completed", "3")
    assert all(r.done for r in services().store.every(Rescan))


@pytest.mark.parametrize("blocks_above", [12, 40, 120], ids=["just-due", "long-due", "no-longer-remembered"])
@pytest.mark.parametrize("answer", [OTHER_HASH, None], ids=["another", "none"])
def test_another_hash_when_it_is_to_be_credited(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, answer: str | None, blocks_above: int
) -> None:
    invoice = shop.invoice()
    height = shop.pay(invoice["address"], "1")["blockNumber"]
    shop.turn()
    shop.mine(blocks_above)
    node = bent_node(shop, monkeypatch)
    # The cursor must not stand on that very block, or it is a reorganisation that the node tells of.
    node.bend(tip=lambda real: height + 1)
    shop.turn()
    assert cursor(shop).number == height + 1
    node.mend()
    node.bend(block_hash=lambda real, number: answer if number == height else real)
    shop.turn()
    assert cursor(shop).number == height + blocks_above
    assert (shop.status(invoice), shop.balance()) == ("confirming", {"available": "0", "frozen": "0", "pending": "1"})
    node.mend()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("completed", "1")


def test_a_cross_address_receives_on_every_evm_network(shop: Shop) -> None:
    made = shop.post("/v1/addresses", {"network": "ethereum", "mode": "cross"})
    assert made.status == 201, made.body
    bsc = Shop(shop.stack, network="bsc")
    bsc.turn()
    bsc.pay(made.json["address"], "2", "bnb")
    bsc.pay(made.json["address"], "30", "usdt")
    shop.pay(made.json["address"], "40", "usdt")
    bsc.mine(15)
    shop.mine()
    bsc.turn()
    shop.turn()
    assert (bsc.available("bnb"), bsc.available("usdt"), shop.available("usdt")) == ("2", "30", "40")


def test_a_common_address_receives_on_its_network_alone(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    address = shop.post("/v1/addresses", {"network": "ethereum", "mode": "common"}).json["address"]
    bsc = Shop(shop.stack, network="bsc")
    bsc.turn()
    bsc.pay(address, "40", "usdt")
    bsc.mine(15)
    bsc.turn()
    assert (bsc.balance("usdt"), shop.balance("usdt")) == (NOTHING, NOTHING)
    assert any("ALARM" in r.message and "which receives on ethereum" in r.message for r in caplog.records)
    shop.pay(address, "40", "usdt")
    shop.mine()
    shop.turn()
    assert (bsc.balance("usdt"), shop.available("usdt")) == (NOTHING, "40")


def test_a_scan_that_slept_through_a_reorganisation_changes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read a block; while it sleeps, another poll follows the reorganisation that drops that very block."""
    shop.mine(3)
    shop.turn()
    invoice = shop.invoice()
    shop.pay(invoice["address"], "1")
    node = bent_node(shop, monkeypatch)
    slept: list[bool] = []

    def asleep(real: Any, *_: Any) -> Any:
        if not slept:
            slept.append(True)
            shop.reorg(3)
            shop.mine(2)
            services().scanner(shop.realm_network()).poll(lambda: True)
        return real

    node.bend(proven=asleep)
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    node.mend()
    assert slept
    assert [d for d in services().store.every(Deposit) if d.invoice_id == invoice["id"]] == []
    shop.mine()
    shop.turn()
    assert (shop.status(invoice), shop.balance()) == ("pending", NOTHING)


def test_a_poll_begins_nothing_new_when_its_time_is_over(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor stands where the last whole batch ended; the next poll goes on from there and loses nothing."""
    invoice = shop.invoice()
    before = cursor(shop).number
    shop.mine(3 * BATCH_BLOCKS)
    shop.pay(invoice["address"], "1")
    shop.mine()
    monkeypatch.setattr(poll, "SECONDS", -1.0)
    drained = shop.stack.drain(only=("poll_ethereum",), rounds=1)
    assert not drained.failures
    assert cursor(shop).number == before + BATCH_BLOCKS
    monkeypatch.undo()
    shop.turn()
    assert (shop.status(invoice), shop.available()) == ("completed", "1")
