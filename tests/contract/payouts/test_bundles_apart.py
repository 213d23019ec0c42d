"""A bundle that is refused for good before its signature holds up nobody for good: an operator takes it apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.payouts.rebuild import made_anew
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.second_reader import Built, CoinOrder
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.usecases.transactions.give_up import NotGivenUp
from chalicelib.usecases.transactions.utxo.signing import UtxoSigning
from chalicelib.usecases.withdrawals.steps import order_id
from chalicelib.wiring import services
from chalicelib.wiring.second_readers import SecondReaders
from infra.cli import main
from tests.support.bundles import COIN, OUT, Shop, cut, die
from tests.support.fake_coins import Differs, FakeLibrary

REASON = "the library reads that recipient otherwise"


class Picky(FakeLibrary):
    """Makes another transaction of every order that pays the first recipient."""

    def built(self, order: CoinOrder) -> Built:
        odd = any(output.address == OUT[0] for output in order.outputs)
        return (Differs("order") if odd else super()).built(order)


@contextmanager
def picky() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecondReaders, "coins", lambda self, network: Picky())
        yield


def refused(shop: Shop) -> list[str]:
    """Three payments in one bundle, the first of which the library reads otherwise: nothing of it is ever signed."""
    ids = [shop.withdraw("1", 0), shop.withdraw("2", 1), shop.withdraw("3", 2)]
    shop.reborn()
    first = min(services().store.every(Withdrawal), key=lambda w: w.id)
    with in_realm("live"), pytest.raises(ReadersDiffer):
        services().payouts.pay(first.tenant, first.id)
    (bundle,) = shop.bundles()
    assert (bundle.state, len(bundle.payouts)) == ("built", 3)
    return ids


def give_up(id: str, *more: str, reason: str = REASON) -> int:
    return main(["--stage", "local", "give-up", id, "--reason", reason, "--realm", "live", *more])


def apart(shop: Shop, without: str = "") -> None:
    with in_realm("live"):
        network = services().catalogue("live").networks["litecoin"]
        services().bundle_apart(network).take_apart(shop.bundles()[0].id, "an operator", REASON, without)


def on(shop: Shop, turns: int = 3) -> None:
    for _ in range(turns):
        shop.later(2)
        shop.run()
        shop.confirm()


def test_the_refused_payment_fails_and_the_others_are_paid(
    begin: Callable[[], Shop], caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = begin()
    with picky():
        ids = refused(shop)
        (bundle,) = shop.bundles()
        assert give_up(ids[0]) == 1
        assert f"{ids[0]} is paid by {bundle.id}: give that up, --without {ids[0]}" in capsys.readouterr().err
        assert give_up(bundle.id, "--without", "wd_nobody") == 1
        assert f"{bundle.id} does not pay wd_nobody" in capsys.readouterr().err
        assert give_up(bundle.id, "--without", ids[0]) == 0
        (dead,) = shop.bundles()
        assert (dead.state, dead.newest, shop.held().reserved(bundle.id)) == ("dead", None, [])
        shop.whole()
        assert give_up(bundle.id, "--without", ids[0]) == 1
        assert "was given up before, by " in capsys.readouterr().err
        on(shop)
        assert [shop.status(each) for each in ids] == ["failed", "confirmed", "confirmed"]
    decision = services().store.get(GivenUp, id=bundle.id)
    assert decision is not None and (decision.reason, decision.state, decision.without) == (REASON, "over", ids[0])
    assert f"ALARM live:litecoin: {bundle.id} is given up, as {decision.by} decided: {REASON}" in caplog.text
    assert (shop.available(), shop.paid(0), shop.paid(1), shop.paid(2)) == ("25", 0, 2 * COIN, 3 * COIN)
    failed = next(w for w in services().store.every(Withdrawal) if w.id == ids[0])
    assert failed.failure == "the operator gave it up: nothing was signed for it"
    shop.whole()
    assert {each.state for each in shop.bundles() if each.id != bundle.id} == {"settled"}
    assert bundle.id not in {work.id for work in services().store.every_work()}


def test_without_a_name_all_wait_for_the_next_bundle(begin: Callable[[], Shop]) -> None:
    """The library was mended meanwhile: each is paid once."""
    shop = begin()
    with picky():
        ids = refused(shop)
        apart(shop)
    shop.reborn()
    on(shop)
    assert [shop.status(each) for each in ids] == ["confirmed"] * 3
    assert [shop.paid(n) for n in range(3)] == [COIN, 2 * COIN, 3 * COIN]
    shop.whole()


def test_what_is_signed_is_not_taken_apart(begin: Callable[[], Shop]) -> None:
    """Whatever its record says by then: by the row of its signature, or by the posting of an order's."""
    shop = begin()
    shop.withdraw("1", 1)
    shop.run()
    (signed,) = shop.bundles()
    with pytest.raises(NotGivenUp, match="was signed"):
        apart(shop)
    store, newest = services().store, signed.latest
    built = replace(signed, state="built", newest=replace(newest, raw=None, txid=None), version=signed.version + 1)
    store.commit([Save(built)])
    with pytest.raises(NotGivenUp, match="was signed, whatever its record says"):
        apart(shop)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chalicelib.usecases.transactions.unsigned.signed_before", lambda *_: False)
        with pytest.raises(NotGivenUp, match="it may be signed"):
            apart(shop)
        (order,) = store.every(PaymentOrder)
        (withdrawal,) = store.every(Withdrawal)
        store.commit([Save(replace(order, state="built", raw=None, txid=None, version=order.version + 1))])
        store.commit([Save(replace(withdrawal, status="processing", version=withdrawal.version + 1))])
        with pytest.raises(NotGivenUp, match="it may be signed"):
            apart(shop)
    assert shop.bundles() == [built] and store.get(FirstSignature, owner=signed.id) is not None


def test_a_bundle_whose_coin_is_spent_may_be_out_and_stands(begin: Callable[[], Shop]) -> None:
    """Whatever the store says: a restore may have forgotten the signature, and its row."""
    shop = begin()
    with picky():
        refused(shop)
    coin = shop.held().reserved(shop.bundles()[0].id)[0]
    shop.chain.steal(coin.outpoint)
    with pytest.raises(NotGivenUp, match="may be signed and sent"):
        apart(shop)
    assert shop.bundles()[0].state == "built"


@pytest.mark.parametrize("first", ["signature", "decision"])
def test_of_a_signature_under_way_and_the_decision_one_is_stored(begin: Callable[[], Shop], first: str) -> None:
    shop = begin()
    with picky():
        ids = refused(shop)
    shop.reborn()
    record = next(w for w in services().store.every(Withdrawal) if w.id == ids[0])
    real, raised = UtxoSigning._signed, []

    def sign() -> None:
        with in_realm("live"):
            services().payouts.pay(record.tenant, record.id)

    def beside(self: UtxoSigning, *given: object) -> object:
        """The key has signed, and nothing is stored yet."""
        made = real(self, *given)  # type: ignore[arg-type]
        if not raised:
            raised.append(True)
            apart(shop)
        return made

    if first == "signature":
        sign()
        with pytest.raises(NotGivenUp):
            apart(shop)
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(UtxoSigning, "_signed", beside)
            sign()
        assert shop.bundles()[0].state == "dead" and not shop.chain.pool
    on(shop)
    assert [shop.status(each) for each in ids] == ["confirmed"] * 3
    assert [shop.paid(n) for n in range(3)] == [COIN, 2 * COIN, 3 * COIN]
    shop.whole()


def test_an_altered_order_waits_for_an_operator(begin: Callable[[], Shop], caplog: pytest.LogCaptureFixture) -> None:
    shop = begin()
    with picky():
        ids = refused(shop)
        store = services().store
        record = next(w for w in store.every(Withdrawal) if w.id == ids[1])
        order = store.get(PaymentOrder, id=order_id(record))
        assert order is not None
        store.commit([Save(replace(order, recipient=OUT[0], version=order.version + 1))])
        apart(shop, ids[0])
        on(shop)
        assert f"{ids[1]} leaves {shop.bundles()[0].id}, its order was altered: see rebuild-order" in caplog.text
        assert [shop.status(each) for each in ids] == ["failed", "processing", "confirmed"]
        record = next(w for w in store.every(Withdrawal) if w.id == ids[1])
        made_anew(store, services().catalogue("live"), record)
        on(shop)
    assert [shop.status(each) for each in ids] == ["failed", "confirmed", "confirmed"]
    assert (shop.paid(0), shop.paid(1)) == (0, 2 * COIN)
    shop.whole()


def test_who_dies_anywhere_leaves_it_to_the_next_poll(begin: Callable[[], Shop]) -> None:
    """At every third commit, and with `SWEEP=full` at each, of the command and of the poll that lets the payments go."""
    at, ids = 0, list[str]()

    def act(shop: Shop) -> None:
        apart(shop, ids[0])
        shop.run()

    fired = True
    while fired:
        at += 1 if os.environ.get("SWEEP") == "full" else 3
        shop = begin()
        with picky():
            ids[:] = refused(shop)
            fired = cut(shop, at, die, act)
            if shop.bundles()[0].state != "dead":
                apart(shop, ids[0])
            on(shop)
        assert [shop.status(each) for each in ids] == ["failed", "confirmed", "confirmed"], at
        assert (shop.available(), shop.paid(0), shop.paid(1), shop.paid(2)) == ("25", 0, 2 * COIN, 3 * COIN)
        shop.whole()
    assert at > 5
