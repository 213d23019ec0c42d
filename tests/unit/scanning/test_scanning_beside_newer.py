"""Blocks, payments and the comparison with the chain beside a record in a form that only a newer version knows."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from chalicelib.domain.chain import Block, BlockDeposits, DepositBlock, Transfer
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.scanning.internal_transfers import Reconciled
from chalicelib.domain.transactions.sightings import Seen, Sighting, by_nonce, nonce_subject
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder
from chalicelib.domain.work import WorkKind
from chalicelib.usecases.deposits import counted_rates
from chalicelib.usecases.deposits.counted_rates import UnpricedPayments
from chalicelib.usecases.deposits.native_twins import Twins, held_of
from chalicelib.usecases.ports.changes import AtEpoch, Save
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.reconciliation.in_flight import InFlightWork
from chalicelib.usecases.scanning.block_lists import to_begin
from chalicelib.usecases.scanning.deep_reorganisations import DeepReorganisations
from chalicelib.usecases.scanning.internal_transfers import InternalTransfers
from chalicelib.usecases.scanning.mempool import MempoolScan
from chalicelib.usecases.scanning.open_invoices import next_looks
from chalicelib.usecases.scanning.poison import Poison
from chalicelib.usecases.scanning.recording import Recorder
from chalicelib.usecases.scanning.sightings import SightingNotes
from chalicelib.usecases.transactions.finality import Scanned
from chalicelib.usecases.transactions.notes import Notes
from chalicelib.usecases.withdrawals.steps import order_of
from tests.support.beside_newer import (
    ALL,
    NET,
    NETWORK,
    TENANT,
    BesideNewer,
    a,
    case,
    move_key,
    payout_key,
    put,
    with_works,
    works,
)


def test_what_the_scan_noted() -> None:
    store = BesideNewer()
    ours = [by_nonce(["0x1"], "0xa", number) for number in range(3)]
    for number in (0, 2):
        seen = Sighting(NETWORK, nonce_subject("0xa", number), (Seen("0x1", 5, "0xb"),), 1)
        store.put(Sighting, seen, network=NETWORK, subject=seen.subject)
    store.put(Sighting, network=NETWORK, subject=nonce_subject("0xa", 1))
    found = Notes(NET, store, Scanned(9, 9, {})).of(ours)
    assert [note.own is not None for note in found] == [True, False, True]


def test_payments_that_left_the_mempool() -> None:
    store = with_works("glimpse")
    put(store, Deposit, "pending", lambda id: {"id": id}, txid="0x1", block_number=None, created_at=0)
    ended: list[str] = []
    looks = MagicMock(unread=[], txids={})
    mempool = case(MempoolScan, store, looks=looks, ousted=lambda *_: set(), waited_for=lambda _: 0)
    mempool._end = lambda deposit, *_: ended.append(deposit.id)
    mempool._end_gone(set(), {}, 9, lambda: True)
    assert ended == ["one", "two"]


def test_open_invoices_whose_addresses_are_compared() -> None:
    store = with_works("expiry", f"{TENANT}|")
    put(store, Invoice, "pending", payout_key)
    found, _ = next_looks(store, NETWORK, Reconciled(NETWORK))
    assert [invoice.id for invoice in found] == ["one", "two"]


@pytest.mark.parametrize("newer", [Deposit, Invoice])
def test_payments_that_wait_for_a_rate(newer: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The others have none yet; the one that can not be read is looked at by itself, where that is told."""
    store = BesideNewer()
    for id in ALL:
        deposit = a(Deposit, "pending", id=id, tenant=TENANT, invoice_id=id, flags=("unpriced",))
        store.put(Deposit, None if id == "newer" and newer is Deposit else deposit, id=id)
        invoice = a(Invoice, "pending", choosing=MagicMock())
        store.put(Invoice, None if id == "newer" and newer is Invoice else invoice, **payout_key(id))
    monkeypatch.setattr(Deposit, "unpriced", True)
    monkeypatch.setattr(counted_rates, "_rate", lambda *_: None)
    monkeypatch.setattr(store, "catalogue", lambda _: None, raising=False)
    found = case(UnpricedPayments, store, rates=None)._ready(works("unpriced"))
    assert [work.id for work in found] == ["newer"]


def test_the_twin_of_a_payment_that_can_not_be_read_is_held() -> None:
    """The payment may be credited: if both were, it would be twice."""
    store = BesideNewer()
    native = Transfer("0x1", "trace:1", None, "0xa", "0xb", 5)
    token = native._replace(position="log:1", contract="0xc")
    twins = [Twins(native, token, "tok")]
    held = held_of(store, NET, twins, {})
    assert held == {token}
    store.put(Deposit, id=deposit_id(NETWORK, "0x1", "log:1"))
    held = held_of(store, NET, twins, {})
    assert held == {native}


def test_its_transactions_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the newer version finds what became of them, and the scan goes on."""
    store = with_works("move")
    put(store, Move, "signed", move_key, source="0xa", txid="0x1")
    store.put(NonceUse, NonceUse("newer", NETWORK, "0xb", 1), owner="newer")
    notes = case(SightingNotes, store, wallets=list)
    notes._context.form = str
    assert notes._senders() == {"0xa", "0xb"}
    store.work(*works("bundle"))
    put(store, Bundle, "signed", lambda id: {"id": id})
    monkeypatch.setattr(Bundle, "signed", [MagicMock(inputs=[MagicMock(outpoint="0x1:0")])])
    assert notes._coins() == {"0x1:0"}


@pytest.mark.parametrize(("kind", "lane"), [(Move, "move"), (PaymentOrder, "sent")])
def test_a_comparison_is_not_made_without_it(kind: type[Any], lane: WorkKind) -> None:
    store = with_works(lane, f"{TENANT}|" if kind is PaymentOrder else "")
    if kind is Move:
        put(store, Move, "planned", move_key)
    else:
        put(store, PaymentOrder, "built", lambda id: {"id": order_of(TENANT, id)})
    with pytest.raises(TooNew):
        case(InFlightWork, store).read()


def test_a_block_that_fell_out_may_hold_a_deposit_that_can_not_be_read() -> None:
    store = BesideNewer()
    store.put(BlockDeposits, BlockDeposits(NETWORK, "0xb", ALL, parts=1), network=NETWORK, hash="0xb")
    for id in ALL:
        store.put(Deposit, a(Deposit, "orphaned", id=id, block_hash="0xb"), id=id)
    deep = case(DeepReorganisations, store)
    assert not deep._holds(DepositBlock(NETWORK, 5, "0xb"))
    store.put(Deposit, id="newer")
    assert deep._holds(DepositBlock(NETWORK, 5, "0xb"))


@pytest.mark.parametrize("newer", ["nothing", "the block's row", "its list", "a deposit"])
def test_the_list_of_a_block_begins(newer: str) -> None:
    """Not beside a deposit or a list that can not be read: each is there. The row by height says no more than that it is."""
    store = BesideNewer()
    key = {"network": str(NETWORK), "hash": "0xb"}
    if newer == "the block's row":
        store.put(DepositBlock, **key, number="5")
    if newer == "its list":
        store.put(BlockDeposits, **key)
    if newer == "a deposit":
        store.put(Deposit, id="newer")
    begins = to_begin(store, NETWORK, Block(5, "0xb", "", 0, []), ALL, 3)
    begun = [AtEpoch(NETWORK, 3), Save(BlockDeposits(NETWORK, "0xb", ALL, epoch=3, parts=1))]
    assert begins == (begun if newer in ("nothing", "the block's row") else None)
    assert len(store.commits) == (newer == "nothing"), "the row by height, where there is none"


def test_payments_of_a_block_that_are_not_stored_yet() -> None:
    """The one that can not be read is come to by itself, where that is told."""
    store = BesideNewer()
    ids = [*ALL, *(str(number) for number in range(10))]
    for id in ids:
        store.put(Deposit, a(Deposit, "pending", id=id, block_hash="0xb", position="native"), id=id)
    store.put(Deposit, id="newer")
    recorder = case(Recorder, store)
    block = Block(5, "0xb", "", 0, [])
    known = MagicMock(poison=Poison(NETWORK, block), read={})
    paid = [(id, Transfer(id, "native", None, "0xa", "0xc", 5)) for id in ids]
    assert recorder._missing(block, paid, known) == {"newer"}
    assert known.poison.failures == []


def test_a_surplus_is_not_told_beside_what_can_not_be_read() -> None:
    """It may be that very payment, or a move on its way. Addresses that neither may touch are compared all the same."""
    store = with_works("deposit", order=f"{5:015d}")
    put(store, Deposit, "pending", lambda id: {"id": id})
    put(store, Move, "signed", move_key)
    transfers = case(InternalTransfers, store)
    assert transfers._pending(9) is None
    assert transfers._busy(9) == set()
    store.work(*works("move"))
    assert transfers._busy(9) is None
