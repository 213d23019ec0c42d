"""What the scanner notes of our own transactions: once, before the cursor passes the block, and void with it (money rule 13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.chain import Cursor
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.domain.transactions.sightings import Sighting, by_nonce
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.scanning.rescans import Rescans
from chalicelib.usecases.transactions.finality import scanned_so_far
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.transactions.sighting_gaps import NoteGaps
from chalicelib.wiring import services
from tests.support.cuts import Cutter, Died, install
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack
from tests.support.treasury import move_of, paid_address, plan


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened


def cursor(shop: Shop) -> Cursor:
    found = services().store.get(Cursor, network=shop.realm_network().id)
    assert found is not None
    return found


def noted(shop: Shop) -> list[Sighting]:
    return [found for found in services().store.every(Sighting) if found.network == shop.realm_network().id]


def poll(shop: Shop) -> None:
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)


def met(shop: Shop, txid: str, wallet: str, nonce: int) -> Any:
    network, wired = shop.realm_network(), services()
    scanned = scanned_so_far(network, wired.reader(network), wired.store)
    ours = by_nonce((txid,), wired.rules.storage_form(network.slug, wallet), nonce)
    return Losses(network, wired.reader(network), wired.store).mined(ours, scanned)


def test_a_payment_and_a_sweep_are_noted_with_their_blocks(shop: Shop) -> None:
    address = paid_address(shop, "1", "eth")
    withdrawal = shop.withdraw("0.25")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "1", bare=True)
    for _ in range(2):
        shop.turn()
        shop.mine()
    shop.turn()
    move = move_of(shop, sweep)
    order = shop.order(withdrawal)
    for txid, wallet, nonce in ((order.txid, order.wallet, order.nonce), (move.txid, move.source, move.nonce)):
        seen = met(shop, txid or "", wallet, nonce or 0)
        assert seen is not None and seen.hash == services().reader(shop.realm_network()).block_hash(seen.number)
    before = noted(shop)
    assert len(before) == 2, "nobody else's"
    Rescans(services().store, services().clock).order(shop.realm_network(), 0, cursor(shop).number)
    poll(shop)
    assert [rescan.status for rescan in services().store.every(Rescan)] == ["completed"]
    assert noted(shop) == before, "once, however often a block is read"


def test_a_reorganisation_voids_them_and_the_new_branch_is_noted(shop: Shop) -> None:
    withdrawal = shop.withdraw("0.25")
    shop.turn()
    order = shop.order(withdrawal)
    first = met(shop, order.txid or "", order.wallet, order.nonce)
    assert first is not None
    shop.reorg(cursor(shop).number - first.number + 1, remine=False)
    shop.mine()
    poll(shop)
    second = met(shop, order.txid or "", order.wallet, order.nonce)
    assert second is None or second.hash != first.hash
    shop.turn()
    shop.mine()
    shop.turn()
    again = met(shop, order.txid or "", order.wallet, order.nonce)
    assert again is not None and again.hash != first.hash


def test_whoever_dies_in_between_notes_before_the_cursor_passes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut at every write of the poll that meets a payment: where the cursor has passed its block, the note is there."""
    cutter = Cutter()
    install(cutter, monkeypatch)
    withdrawal = shop.withdraw("0.25")
    shop.stack.drain(only=("relay", "payout"))
    order = shop.order(withdrawal)
    assert order.txid is not None
    mined_in = services().reader(shop.realm_network()).receipt(order.txid)
    assert mined_in is not None and cursor(shop).number < mined_in.block_number
    shift, state = services().clock.shift_ms, shop.stack.snapshot()
    with cutter.arm():
        poll(shop)
    writes = [n for n, name in enumerate(cutter.trace, 1) if name in ("TransactWriteItems", "PutItem", "UpdateItem")]
    for at in writes[:6]:
        for when in ("before", "after"):
            shop.stack.restore(state)
            services().clock.shift_ms = shift
            cutter.set(at, "death", when)
            try:
                with cutter.arm():
                    poll(shop)
            except Died:
                wiring.forget()
                services().clock.shift_ms = shift
            cutter.set(0, "death", when)
            if cursor(shop).number >= mined_in.block_number:
                assert met(shop, order.txid, order.wallet, order.nonce) is not None
            poll(shop)
            assert met(shop, order.txid, order.wallet, order.nonce) is not None
    assert writes


def test_blocks_without_a_transaction_cost_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many blocks as one: nothing is looked for where nobody has sent anything."""
    shop.turn()
    cutter = Cutter()
    install(cutter, monkeypatch)

    def asked(blocks: int) -> int:
        shop.mine(blocks)
        cutter.set(0, "error", "before")
        with cutter.arm():
            poll(shop)
        return len(cutter.trace)

    asked(1)
    assert asked(30) == asked(1)


def test_what_notes_begin_with_is_known_and_gaps_are_read_once(shop: Shop) -> None:
    network, wired = shop.realm_network(), services()
    at = cursor(shop)
    assert at.noted_from is not None
    wired.store.commit([Save(replace(at, noted_from=None, version=at.version + 1))])
    shop.mine(3)
    poll(shop)
    behind = cursor(shop)
    assert behind.noted_from == at.number + 1
    scanned = scanned_so_far(network, wired.reader(network), wired.store)
    for _ in range(2):
        NoteGaps(network, wired.store).close(0, scanned, wired.clock.now_ms())
    assert len(list(wired.store.every(Rescan))) == 1
    poll(shop)
    assert cursor(shop).noted_from == 0
    # One that was ordered before there were notes, or that does not reach them, changes nothing.
    shut = cursor(shop)
    wired.store.commit([Save(replace(shut, noted_from=shut.number + 1, version=shut.version + 1))])
    Rescans(wired.store, wired.clock).order(network, 0, shut.number - 1)
    poll(shop)
    assert cursor(shop).noted_from == shut.number + 1
