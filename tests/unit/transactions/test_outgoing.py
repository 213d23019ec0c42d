"""Attempts of one outgoing transaction, read off its record the same way for orders, moves and stakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.transactions.outgoing import FORGOTTEN, Attempt
from chalicelib.domain.treasury.moves import Move, Origin
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Usurped

NETWORK, TENANT, COIN = NetworkId("live:ethereum"), TenantId("mch:live"), AssetId("live:ethereum:eth")
ONE, TWO, THREE = (Attempt(f"raw{n}", f"tx{n}", 100 * n, n) for n in (1, 2, 3))
Record = PaymentOrder | Move | Stake


def order() -> PaymentOrder:
    return PaymentOrder("ord_1", NETWORK, "0xhot", 0, "wd_1", TENANT, COIN, None, "0xto", 1, "00", 1)


def move() -> Move:
    return Move.topup(Origin(NETWORK, "col_1", 1, 1), COIN, "0xhot", "0xto", 1)


def stake() -> Stake:
    return Stake("stk_1", TENANT, NETWORK, COIN, "0xhot", 1, "ENERGY", 1, unsigned="00", hash="tx1")


def kept(record: Record, attempt: Attempt) -> Attempt:
    """A stake's bytes bound no fee."""
    return replace(attempt, fee=0) if isinstance(record, Stake) else attempt


KINDS = pytest.mark.parametrize("made", [order, move, stake])


@KINDS
def test_unsigned_it_has_no_attempt(made: Callable[[], Record]) -> None:
    record = made()
    assert (record.newest, record.attempts, record.was_signed) == (None, (), False)


@KINDS
def test_the_newest_is_first_and_each_that_it_replaced_is_kept_once(made: Callable[[], Record]) -> None:
    first = made()
    once = first.signed_as(ONE)
    thrice = once.signed_as(TWO).signed_as(THREE)
    assert once.newest == kept(first, ONE) and once.attempts == (once.newest,) and once.earlier == ()
    assert thrice.attempts == tuple(kept(first, each) for each in (THREE, TWO, ONE))
    assert thrice.earlier == tuple(kept(first, each) for each in (ONE, TWO))
    assert thrice.txids == ("tx3", "tx2", "tx1") and thrice.txid == "tx3" and thrice.was_signed
    assert thrice.version == first.version + 3


@KINDS
def test_a_replacement_that_is_signed_is_not_asked_for_any_more(made: Callable[[], Record]) -> None:
    wanted = replace(made().signed_as(ONE), renew=True)
    assert not wanted.signed_as(TWO).renew


@KINDS
def test_forgotten_bytes_are_an_attempt_that_is_looked_for(made: Callable[[], Record]) -> None:
    record = made().signed_as(ONE).signed_as(Attempt(FORGOTTEN, "tx2", 0, 2))
    assert record.newest is not None and record.newest.forgotten and not record.earlier[0].forgotten
    assert record.txids == ("tx2", "tx1") and record.was_signed


@KINDS
def test_a_record_that_has_lost_a_part_was_signed_all_the_same(made: Callable[[], Record]) -> None:
    """A record that was altered."""
    twice = made().signed_as(ONE).signed_as(TWO)
    stripped = replace(twice, raw=None)
    assert stripped.newest is None and stripped.was_signed
    assert stripped.attempts == (), "by the others alone it would be lost once the newest is mined"
    assert replace(made().signed_as(ONE), earlier=()).was_signed
    for kind in (order, move):
        assert replace(kind().signed_as(ONE), txid=None).newest is None
        assert replace(kind().signed_as(ONE), txid=None).was_signed


def test_a_signature_makes_orders_and_moves_signed_and_notes_when() -> None:
    signed, moved = order().signed_as(TWO), move().signed_as(TWO)
    assert (signed.state, signed.fee, signed.signed_at) == ("signed", 200, 2)
    assert (moved.state, moved.fee, moved.signed_at, moved.updated_at) == ("signed", 200, 2, 2)
    assert stake().signed_as(TWO).touched_at == 2


def test_the_foreign_transaction_on_its_nonce_is_not_forgotten_with_a_replacement() -> None:
    usurped = Usurped(7, 1, 1)
    assert replace(order().signed_as(ONE), usurped=usurped).signed_as(TWO).usurped == usurped


def test_an_order_in_a_bundle_has_its_bytes_there() -> None:
    bundled = replace(order(), bundle="bnd_1", nonce=-1, txid="tx1", state="signed")
    assert (bundled.newest, bundled.attempts, bundled.txids) == (None, (), ("tx1",))


def test_a_stake_is_looked_for_by_its_id_before_it_is_signed() -> None:
    """A restore may have forgotten that it was."""
    waiting = stake()
    assert waiting.expected == (Attempt(FORGOTTEN, "tx1", 0, 0),)
    signed = waiting.signed_as(ONE)
    assert signed.expected == signed.attempts


def test_a_stake_that_is_made_anew_keeps_what_has_expired() -> None:
    again = stake().signed_as(ONE).rebuilt("01", "tx2")
    assert (again.newest, again.hash, again.unsigned) == (None, "tx2", "01")
    assert [attempt.txid for attempt in again.expected] == ["tx2", "tx1"]
    assert [attempt.txid for attempt in again.signed_as(TWO).attempts] == ["tx2", "tx1"]
