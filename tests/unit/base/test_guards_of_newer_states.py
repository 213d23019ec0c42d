"""Nothing is signed, sent, booked or ended by a record in a state that only a newer version of the service knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_type_hints
from unittest.mock import MagicMock

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId, TenantId
from chalicelib.domain.refunds.refunds import PayoutLink, Refund
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.treasury.collections import Collection
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.versions import newer_state
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.payouts.bundle_payouts import BundlePayouts
from chalicelib.usecases.payouts.settlement import Settlement
from chalicelib.usecases.ports.failures import TooNew
from chalicelib.usecases.refunds.open_refunds import OpenRefunds
from chalicelib.usecases.stray_payments.returns import StrayReturns
from chalicelib.usecases.transactions.utxo.engine import UtxoEngine
from chalicelib.usecases.transactions.utxo.following import UtxoFollowing
from chalicelib.usecases.treasury.collection.steps import CollectSteps
from chalicelib.usecases.treasury.moves.following import MoveFollowing
from chalicelib.usecases.treasury.moves.signing import MoveSigning
from tests.support.alarms import raised
from tests.support.beside_newer import RESTING, a

NETWORK, TENANT = NetworkId("test:ethereum"), TenantId("mch_1:test")


def made(kind: type[Any], *records: Any) -> tuple[Any, MagicMock]:
    """A use case with nothing but stand-ins, whose store has these records, by their kinds."""
    case, around = object.__new__(kind), MagicMock()
    of = {type(record): record for record in records}
    around.store.get.side_effect = lambda asked, **_: of.get(asked)
    around.store.get_many.side_effect = lambda asked: [of.get(one) for one, _ in asked]
    parts = "parts signing following building gathering engine kind ordering network clock records booking"
    for name in parts.split():
        setattr(case, f"_{name}", getattr(around, name))
    case._store = around.store
    return case, around


def touched(around: MagicMock) -> list[str]:
    """What was asked of the stand-ins but to read records."""
    return [name for name, _, _ in around.mock_calls if name not in ("store.get", "store.get_many", "kind.followed")]


def _move_signing() -> tuple[Any, Callable[[], object]]:
    case, around = made(MoveSigning, a(Move))
    return around, lambda: case.advance(NETWORK, "the_1")


def _move_following() -> tuple[Any, Callable[[], object]]:
    case, around = made(MoveFollowing, a(Move, attempts=()))
    return around, lambda: case._look(Work("move", NETWORK, "", "the_1"), MagicMock())


def _utxo_engine(kind: type[Any]) -> Callable[[], tuple[Any, Callable[[], object]]]:
    def build() -> tuple[Any, Callable[[], object]]:
        case, around = made(UtxoEngine)
        return around, lambda: case.advance(around.kind, a(kind))

    return build


def _utxo_following(kind: type[Any]) -> Callable[[], tuple[Any, Callable[[], object]]]:
    def build() -> tuple[Any, Callable[[], object]]:
        case, around = made(UtxoFollowing)
        around.kind.followed.return_value = a(kind)
        return around, lambda: case._look("the_1", MagicMock())

    return build


def _bundle(which: type[Any]) -> Callable[[], tuple[Any, Callable[[], object]]]:
    def build() -> tuple[Any, Callable[[], object]]:
        states = {Withdrawal: "processing", PaymentOrder: "built", Bundle: "gathering"} | {which: RESTING}
        paid = a(Withdrawal, states[Withdrawal], tenant=TENANT, order_id="ord_1")
        order = a(PaymentOrder, states[PaymentOrder], bundle="bun_1", unbundled=False)
        case, around = made(BundlePayouts, paid, order, a(Bundle, states[Bundle]))
        return around, lambda: case.advance(around.network, TENANT, "the_1")

    return build


def _settlement() -> tuple[Any, Callable[[], object]]:
    case, around = made(Settlement, a(Withdrawal, "broadcasting", tenant=TENANT, order_id="ord_1"), a(PaymentOrder))
    return around, lambda: case._look(Work("sent", NETWORK, "", f"{TENANT}|the_1"), MagicMock())


def _collection() -> tuple[Any, Callable[[], object]]:
    case, around = made(CollectSteps, a(Collection))
    return around, lambda: case._step("the_1")


def _refund(kind: type[Any], id: str) -> Callable[[], tuple[Any, Callable[[], object]]]:
    def build() -> tuple[Any, Callable[[], object]]:
        case, around = made(OpenRefunds, a(kind, id=id))
        return around, lambda: case._look(Work("refund", NETWORK, "", f"{TENANT}|{id}"))

    return build


def _stray(of: type[Any]) -> Callable[[], tuple[Any, Callable[[], object]]]:
    def build() -> tuple[Any, Callable[[], object]]:
        stray = a(StrayPayment, RESTING if of is StrayPayment else _known(StrayPayment), owner=TENANT, return_to="0x1")
        deposit = a(Deposit, RESTING if of is Deposit else _known(Deposit))
        case, around = made(StrayReturns, stray, deposit)
        return around, lambda: case._go_on(Work("stray", NETWORK, "", "the_1"))

    return build


def _known(kind: type[Any]) -> str:
    """A state of such records that this version knows."""
    hints = get_type_hints(kind)
    return str(get_args(hints.get("status", hints.get("state")))[0])


GUARDS: dict[str, Callable[[], tuple[Any, Callable[[], object]]]] = {
    "the signing of a move": _move_signing,
    "the following of a move": _move_following,
    "the signing of a coin move": _utxo_engine(CoinMove),
    "the following of a coin move": _utxo_following(CoinMove),
    "the signing of a bundle": _utxo_engine(Bundle),
    "the following of a bundle": _utxo_following(Bundle),
    "a bundle's withdrawal": _bundle(Withdrawal),
    "a bundle's order": _bundle(PaymentOrder),
    "a bundle": _bundle(Bundle),
    "a payment in flight": _settlement,
    "a collection": _collection,
    "a refund": _refund(Refund, "ref_1"),
    "a payout link": _refund(PayoutLink, "pol_1"),
    "a stray payment": _stray(StrayPayment),
    "a stray payment's deposit": _stray(Deposit),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_it_is_left_alone(guard: str, caplog: pytest.LogCaptureFixture) -> None:
    around, step = GUARDS[guard]()
    with pytest.raises(TooNew, match=RESTING):
        step()
    assert touched(around) == []
    (alarm,) = raised(caplog)
    assert f"needs a newer version of the service: it has the state {RESTING}" in alarm


def test_records_with_a_state_say_so() -> None:
    kinds = (Move, CoinMove, Bundle, Withdrawal, PaymentOrder, Collection, Refund, PayoutLink, StrayPayment, Deposit)
    assert [newer_state(a(kind)) for kind in kinds] == [RESTING] * len(kinds)
