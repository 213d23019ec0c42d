"""A record in a form that only a newer version knows stops no other record that is read with it, and what it holds stays held."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from chalicelib.domain.addresses.addresses import group_of, seat_of
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.payout_line import BEGUN, IDLE_MS, READY, PayoutLine, behind
from chalicelib.domain.withdrawals.withdrawals import NonceUse, PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.payouts import bundle_gathering
from chalicelib.usecases.payouts.bundle_gathering import BundleGathering
from chalicelib.usecases.payouts.bundle_members import members
from chalicelib.usecases.payouts.bundle_settlement import BundleSettlement
from chalicelib.usecases.payouts.following import PaymentsOut
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.transactions.given_up import open_decisions
from chalicelib.usecases.transactions.open_nonces import open_nonces
from chalicelib.usecases.treasury.collection.run import CollectRun
from chalicelib.usecases.treasury.consolidation.following import CoinMoveFollowing
from chalicelib.usecases.treasury.consolidation.parts import open_moves
from chalicelib.usecases.treasury.consolidation.planning import CoinMovePlanning
from chalicelib.usecases.treasury.moves.following import MoveFollowing
from chalicelib.usecases.treasury.open_moves import open_moves as moves_under_way
from chalicelib.usecases.withdrawals.approvals import Approvals
from chalicelib.usecases.withdrawals.payout_line import Line
from chalicelib.usecases.withdrawals.retry_idle import IdleRetries
from chalicelib.usecases.withdrawals.steps import order_of
from tests.support.beside_newer import (
    ALL,
    NET,
    NETWORK,
    NOW,
    RESTING,
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


def test_begun_payouts_that_stand_still() -> None:
    store = with_works("payout", f"{TENANT}|", behind(BEGUN, TENANT))
    put(store, Withdrawal, "processing", payout_key, updated_at=NOW - IDLE_MS)
    found = case(IdleRetries, store)._idle(NETWORK, NOW, "")
    assert [withdrawal.id for withdrawal in found.found] == ["one", "two"]


def test_a_payout_that_is_due_to_stand_in_line() -> None:
    store = with_works("payout", f"{TENANT}|")
    put(store, Withdrawal, "pending", payout_key)
    assert case(IdleRetries, store)._put_in_line(Work("payout", NETWORK, "1", f"{TENANT}|newer"), NOW) is None
    assert store.commits == []


def test_payouts_that_join_a_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_works("payout", f"{TENANT}|", behind(READY, TENANT))
    put(store, Withdrawal, "pending", payout_key)
    candidates = MagicMock(found=[])
    monkeypatch.setattr(bundle_gathering, "Candidates", lambda *_: candidates)
    first = a(Withdrawal, "pending", id="first", tenant=TENANT, asset="test:bitcoin:btc")
    case(BundleGathering, store)._open_ones(NET, MagicMock(), first, 3)
    considered = [call.args[0] for call in candidates.consider.call_args_list]
    assert {one and one.id for one in considered} == {"first", "one", None, "two"}


def test_a_bundle_waits_as_a_whole_for_one_that_it_pays() -> None:
    """One transaction pays all of them."""
    store = BesideNewer()
    put(store, Withdrawal, "processing", payout_key)
    payouts = [MagicMock(tenant=TENANT, withdrawal=id) for id in ALL]
    with pytest.raises(TooNew):
        members(store, a(Bundle, "built", payouts=payouts))


def test_moves_that_are_followed() -> None:
    store = with_works("move")
    put(store, Move, "planned", move_key, attempts=())
    found = case(MoveFollowing, store)._out(works("move"), NOW)
    assert [(out.work.id, out.asks) for out in found] == [(id, True) for id in ALL]


@pytest.mark.parametrize(("kind", "of"), [(BundleSettlement, Bundle), (CoinMoveFollowing, CoinMove)])
def test_transactions_of_coins_that_are_followed(kind: type[Any], of: type[Any]) -> None:
    store = BesideNewer()
    put(store, of, "signed", move_key if of is CoinMove else lambda id: {"id": id})
    found = case(kind, store).records(works("bundle"))
    assert [record and record.id for record in found] == ["one", None, "two"]


@pytest.mark.parametrize("newer", [Withdrawal, PaymentOrder])
def test_payments_that_are_followed(newer: type[Any]) -> None:
    """One whose order can not be read is looked at by itself, where that is told."""
    store = BesideNewer()
    for id in ALL:
        left = id == "newer"
        withdrawal, order = a(Withdrawal, "confirming", id=id), a(PaymentOrder, "signed", created_at=NOW, round=0)
        store.put(Withdrawal, None if left and newer is Withdrawal else withdrawal, **payout_key(id))
        store.put(PaymentOrder, None if left and newer is PaymentOrder else order, id=order_of(TENANT, id))
    out = case(PaymentsOut, store, shown={}, now=NOW)
    found = out._read(works("sent", f"{TENANT}|"))
    alone = [] if newer is Withdrawal else [True]
    assert [one.asks is True for one in found if one.work.id.endswith("newer")] == alone
    assert [one.work.id for one in found if one.work.id.endswith(("one", "two"))] == [f"{TENANT}|one", f"{TENANT}|two"]


def test_decisions_to_give_up() -> None:
    store = with_works("givenup")
    put(store, GivenUp, "open", lambda id: {"id": id})
    assert [decision.id for decision in open_decisions(store, NET)] == ["one", "two"]


def test_collections_that_go_on() -> None:
    store = BesideNewer()
    put(store, Collection, "sweep_sent", lambda id: {"id": id}, sweeps=("a move",), coin="eth")
    run = case(CollectRun, store)
    found = run._records(list(ALL))
    assert [collection.id for collection in found] == ["one", "two"] and run._in_motion(list(ALL)) == 2
    store.put(Move, **move_key("a move"))
    assert run._moved(found) == ["one", "two"]


def test_withdrawals_that_wait_for_an_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    store = BesideNewer()
    put(store, Withdrawal, "pending", payout_key)
    monkeypatch.setattr(Withdrawal, "waits_for_approval", True)
    assert [one.id for one in case(Approvals, store)._read([(TENANT, id) for id in ALL])] == ["one", "two"]


@pytest.mark.parametrize("form", [False, True])
def test_deposits_that_are_collected_together(form: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint of one that is left to the newer version stays."""
    store = with_works("collectable")
    put(store, Deposit, "confirmed", lambda id: {"id": id}, flags=())
    if not form:
        store.put(Deposit, a(Deposit, RESTING, id="newer", flags=()), id="newer")
    monkeypatch.setattr(Deposit, "posted", False)
    forgotten: list[str] = []
    planning = case(CoinMovePlanning, store)
    planning._forget = lambda id, _: forgotten.append(id)
    assert planning._waiting([]) == [] and forgotten == ["one", "two"]


def test_coins_of_a_move_that_can_not_be_read_are_nobodys() -> None:
    store = with_works("coinmove")
    put(store, CoinMove, "signed", move_key)
    with pytest.raises(TooNew):
        open_moves(store, NETWORK)


def test_its_nonce_stays_taken() -> None:
    store = with_works("move")
    store.work(*works("sent", f"{TENANT}|"))
    for place, id in enumerate(ALL):
        move, order = a(Move, "signed", source="0xa", nonce=place), a(PaymentOrder, "signed", wallet="0xa", nonce=10 + place)
        store.put(Move, None if id == "newer" else move, **move_key(id))
        store.put(PaymentOrder, None if id == "newer" else order, id=order_of(TENANT, id))
    store.put(NonceUse, NonceUse("newer", NETWORK, "0xa", 1), owner="newer")
    store.put(NonceUse, NonceUse("newer", NETWORK, "0xa", 11), owner=order_of(TENANT, "newer"))
    assert list(open_nonces(store, NET, "0xa")) == [0, 1, 2, 10, 11, 12]
    store.put(NonceUse, NonceUse("newer", NETWORK, "0xb", 1), owner="newer")
    assert list(open_nonces(store, NET, "0xa")) == [0, 2, 10, 11, 12]


def test_the_line_of_payouts_of_another_slot() -> None:
    store = with_works("payout", f"{TENANT}|", behind(READY, TENANT))
    names = [group_of(NETWORK, seat_of(slot)) for slot in (0, 1)]
    store.put(PayoutLine, network=names[1])
    lines = Line(store, MagicMock(now_ms=lambda: NOW))
    taken = lines.take(NetworkId(NETWORK), 0, 2)
    assert taken is not None and taken.id == f"{TENANT}|newer"
    with pytest.raises(TooNew):
        lines.take(NetworkId(NETWORK), 1, 2)


def test_moves_that_an_operator_is_shown() -> None:
    store = with_works("move")
    put(store, Move, "signed", move_key)
    assert [move.id for move in moves_under_way(store, [NET])] == ["one", "two"]
