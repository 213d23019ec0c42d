"""Whose payment begins next at one hot wallet: merchants by turns, whatever one of them has waiting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.domain.withdrawals.withdrawals import NonceUse, Withdrawal
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.shop import IDLE, PAYEE, Shop, open_shop
from tests.support.stack import Stack


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened
        assert audit(services().store) == []


@pytest.fixture
def other(shop: Shop) -> Shop:
    friend = Shop(shop.stack, "other_merchant_test")
    friend.credit("1")
    return friend


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of withdrawals in the order in which their payment began."""
    found: list[str] = []
    real = DynamoStore.commit

    def commit(store: DynamoStore, changes: object) -> None:
        real(store, changes)  # type: ignore[arg-type]
        saved = [change.record for change in changes if isinstance(change, Save)]  # type: ignore[attr-defined]
        found.extend(w.id for w in saved if isinstance(w, Withdrawal) and w.status == "processing" and w.id not in found)

    monkeypatch.setattr(DynamoStore, "commit", commit)
    return found


def batch(shop: Shop, count: int) -> list[str]:
    outputs = [{"to_address": PAYEE, "amount": "0.001"}] * count
    body = {"batch_withdrawal": {"network": shop.network, "coin": "eth", "outputs": outputs}}
    made = shop.post("/v1/withdrawals", body)
    assert made.status == 201, made.body
    return [w["id"] for w in made.json["data"]["withdrawals"]]


def ordered(shop: Shop) -> None:
    """What was asked for is in the queue of payments, and none has begun."""
    shop.stack.drain(only=("relay",), hurry=True)


@pytest.mark.sweep
def test_a_batch_of_a_hundred_does_not_stand_before_another_merchants_payment(shop: Shop, other: Shop, begun: list[str]) -> None:
    many = batch(shop, 100)
    ordered(shop)
    single = other.withdraw("0.25")
    shop.turn()
    assert begun.index(single) < 2, f"it was number {begun.index(single) + 1}"
    assert sorted(begun) == sorted([*many, single])
    uses = sorted(use.nonce for use in services().store.every(NonceUse))
    assert uses == list(range(101))
    assert [w for w in begun if w != single] == many, "each merchant's own in the order in which they were asked for"


def test_three_merchants_take_turns(shop: Shop, other: Shop, begun: list[str]) -> None:
    third = Shop(shop.stack, "admin_test")
    third.credit("1")
    lots = {name: batch(each, 4) for name, each in (("a", shop), ("b", other), ("c", third))}
    owner = {id: name for name, ids in lots.items() for id in ids}
    ordered(shop)
    shop.turn()
    order = [owner[id] for id in begun]
    assert all(len(set(order[n : n + 3])) == 3 for n in range(0, 12, 3)), order


def test_a_payment_that_can_not_go_on_holds_up_neither_its_merchant_nor_others(
    shop: Shop, other: Shop, begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is: nothing was stored that says so, and the line goes on behind it."""
    broken, *rest = batch(shop, 3)
    ordered(shop)
    single = other.withdraw("0.25")
    real = services().payouts.pay

    def pay(tenant: object, id: str, slot: int) -> object:
        if id == broken:
            raise ValueError("nobody thought of that")
        return real(tenant, id, slot)  # type: ignore[arg-type]

    monkeypatch.setattr(services().payouts, "pay", pay)
    shop.turn()
    assert sorted(begun) == sorted([*rest, single])
    monkeypatch.undo()
    shop.nudge(IDLE)
    assert shop.withdrawal(broken)["status"] == "confirming"
