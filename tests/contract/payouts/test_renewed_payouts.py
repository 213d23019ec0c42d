"""Payments that no block takes are replaced, in whatever order things happen: whichever attempt is mined has paid, once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError

from chalicelib import wiring
from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.chains.sandbox.reader import SandboxReader
from chalicelib.domain.chain import Cursor
from chalicelib.domain.ledger import BURNT, Balance, Book, totals
from chalicelib.domain.scanning.rescans import Rescan
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, PaymentOrder
from chalicelib.store.queues import SqsQueues
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Refused, Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions import losses
from chalicelib.usecases.transactions import replacements as stuck_payments
from chalicelib.usecases.transactions.errors import OrderMismatch
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.wiring import services
from tests.support.cuts import Cutter, Died, install
from tests.support.met import met_elsewhere
from tests.support.shop import CONFIRMATIONS, ETHER, STUCK, THIRST, Kms, Shop, decide, open_shop
from tests.support.stack import Stack

QUARTER = ETHER // 4
FEE = 21_000 * 20 * 10**9
REORG_DEPTH = 64


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def stuck(shop: Shop) -> str:
    """A payment that is out and in no block."""
    withdrawal = shop.withdraw("0.25")
    decide(shop, withdrawal, "stick")
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirming"
    return withdrawal


def asked(shop: Shop) -> str:
    """The same, and its replacement is asked for; the message is in the queue."""
    withdrawal = stuck(shop)
    shop.wait(STUCK)
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)
    assert shop.order(withdrawal).renew
    return withdrawal


def confirm(shop: Shop) -> None:
    shop.mine()
    shop.turn()


def burnt(shop: Shop) -> int:
    return totals(shop.journal("withdrawal_settled") + shop.journal("settlement_reversed"))[
        Book.WHERE, BURNT, shop.coin("eth").asset
    ]


class Offered:
    """What is handed to the node. `refuse` says which of it the node refuses; all of it has to be stored before (money rule 5)."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.raws: list[str] = []
        self.refuse: set[str] = set()
        real = SandboxPayer.broadcast

        def broadcast(payer: SandboxPayer, raw: str) -> None:
            orders = list(services().store.every(PaymentOrder))
            assert any(raw == o.raw or raw in {a.raw for a in o.earlier} for o in orders), "sent and not stored"
            self.raws.append(raw)
            if raw in self.refuse or "*" in self.refuse:
                raise Refused("replacement transaction underpriced")
            real(payer, raw)

        patch.setattr(SandboxPayer, "broadcast", broadcast)


def test_a_stuck_payment_is_replaced_at_a_higher_fee_and_paid_once(shop: Shop, kms: Kms) -> None:
    withdrawal = stuck(shop)
    first = shop.order(withdrawal)
    shown = shop.withdrawal(withdrawal)
    assert (shown["transaction_hash"], first.fee, first.earlier) == (first.txid, FEE, ())
    shop.wait(STUCK - 30)
    shop.turn()
    assert shop.order(withdrawal) == first
    shop.wait(30)
    shop.turn()
    second = shop.order(withdrawal)
    assert (second.nonce, second.renew, second.version) == (first.nonce, False, first.version + 2)
    assert second.fee == FEE * 9 // 8
    assert [(a.raw, a.txid, a.fee, a.at) for a in second.earlier] == [(first.raw, first.txid, FEE, first.signed_at)]
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["transaction_hash"], shown["fee"]) == ("confirming", second.txid, "0.0004725")
    assert audit(services().store) == []
    decide(shop, withdrawal, "confirm")
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["transaction_hash"], shown["fee"]) == ("confirmed", second.txid, "0.0004725")
    assert (shop.paid(), shop.available(), kms.calls["Sign"], burnt(shop)) == (QUARTER, "0.75", 2, FEE * 9 // 8)
    assert shop.told(withdrawal)["withdrawal.completed"] == 1


def test_it_ends_with_an_alarm_and_the_newest_is_sent_for_ever(
    shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    withdrawal = stuck(shop)
    for _ in range(7):
        shop.wait(3_000)
        shop.turn()
    order = shop.order(withdrawal)
    assert (len(order.earlier), order.renew, kms.calls["Sign"]) == (5, False, 6)
    assert len(set(order.txids)) == 6
    fees = [*(a.fee for a in order.earlier), order.fee]
    assert all(8 * after >= 9 * before for before, after in pairwise(fees))
    assert any("was replaced 5 times and is in no block" in r.message for r in caplog.records if r.levelname == "ERROR")
    offered = Offered(monkeypatch)
    shop.turn()
    assert set(offered.raws) == {order.raw}
    decide(shop, withdrawal, "confirm")
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid()) == ("confirmed", QUARTER)


def test_an_earlier_attempt_is_mined(shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node refuses the newest, is sent the earlier ones too, and one of those gets into a block. A reorganisation takes it out,
    and then the newest is mined: shown, counted and debited is what the chain has."""
    offered = Offered(monkeypatch)
    withdrawal = asked(shop)
    first = shop.order(withdrawal)
    offered.refuse.add("*")
    shop.turn()
    order = shop.order(withdrawal)
    assert order.earlier[0].txid == first.txid
    assert shop.withdrawal(withdrawal)["transaction_hash"] == order.txid
    offered.refuse = {str(order.raw)}
    del offered.raws[:]
    shop.turn()
    assert offered.raws[:2] == [order.raw, first.raw]
    assert shop.chain().settle(str(first.txid), "confirm") == "succeeded"
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["transaction_hash"], shown["fee"]) == ("confirmed", first.txid, "0.00042")
    assert (burnt(shop), shop.available(), shop.paid()) == (FEE, "0.75", QUARTER)
    assert not shop.order(withdrawal).renew
    assert audit(services().store) == []

    offered.refuse.clear()
    shop.reorg(CONFIRMATIONS)
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["transaction_hash"], shown["fee"]) == ("confirming", order.txid, "0.0004725")
    confirm(shop)
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["transaction_hash"], shown["fee"]) == ("confirmed", order.txid, "0.0004725")
    assert (burnt(shop), shop.available(), shop.paid(), kms.calls["Sign"]) == (FEE * 9 // 8, "0.75", QUARTER, 2)
    assert shop.told(withdrawal)["withdrawal.completed"] == 2


def test_only_the_payment_that_holds_up_the_others_is_replaced(shop: Shop, kms: Kms) -> None:
    first = stuck(shop)
    others = [shop.withdraw("0.1") for _ in range(3)]
    shop.turn()
    shop.wait(STUCK)
    shop.turn()
    assert len(shop.order(first).earlier) == 1
    assert [shop.order(other).earlier for other in others] == [(), (), ()]
    decide(shop, first, "confirm")
    confirm(shop)
    assert {shop.withdrawal(w)["status"] for w in (first, *others)} == {"confirmed"}
    assert kms.calls["Sign"] == 5


def test_two_workers_at_once_store_one_replacement(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = Offered(monkeypatch)
    withdrawal = asked(shop)
    tenant = shop.record(withdrawal).tenant

    def pay(_: int) -> None:
        with in_realm("test"):
            services().payouts.pay(tenant, withdrawal)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(pay, range(4)))
    order = shop.order(withdrawal)
    assert len(order.earlier) == 1
    assert set(offered.raws) <= {order.raw, order.earlier[0].raw}
    shop.turn()
    assert shop.order(withdrawal) == order


def test_a_message_that_is_lost_is_sent_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = asked(shop)
    with monkeypatch.context() as patch:
        patch.setattr(SqsQueues, "send", lambda *_: None)
        shop.stack.drain(only=("relay",), rounds=1)
    shop.stack.drain(only=("payout",), rounds=1)
    assert shop.order(withdrawal).earlier == ()
    shop.turn()
    assert len(shop.order(withdrawal).earlier) == 1


def test_mined_before_the_replacement_is_signed(shop: Shop, kms: Kms) -> None:
    withdrawal = asked(shop)
    txid = shop.order(withdrawal).txid
    decide(shop, withdrawal, "confirm")
    shop.turn()
    assert shop.withdrawal(withdrawal)["transaction_hash"] == txid
    assert (shop.withdrawal(withdrawal)["status"], kms.calls["Sign"]) == ("confirmed", 1)
    assert not shop.order(withdrawal).renew


def test_a_replacement_that_would_cost_too_much_is_not_signed(
    shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = SandboxPayer.renew

    def dear(payer: SandboxPayer, unsigned: str, *rest: Any) -> str:
        for _ in range(25):
            unsigned = real(payer, unsigned, *rest)
        return unsigned

    monkeypatch.setattr(SandboxPayer, "renew", dear)
    withdrawal = asked(shop)
    shop.stack.drain(only=("relay", "payout"), rounds=2)
    assert (shop.order(withdrawal).earlier, kms.calls["Sign"]) == ((), 1)
    assert any("ALARM" in r.message and "a replacement would cost" in r.message for r in caplog.records)
    # The network becomes cheaper: asked for again by itself.
    monkeypatch.setattr(SandboxPayer, "renew", real)
    shop.turn()
    assert len(shop.order(withdrawal).earlier) == 1


def test_a_replacement_that_pays_somebody_else_is_not_signed(shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    from chalicelib.chains.sandbox.payload import Unsigned

    def bent(payer: SandboxPayer, unsigned: str, *_: Any) -> str:
        return replace(Unsigned.decode(unsigned, shop.realm_network()), amount=QUARTER + 1).encode()

    monkeypatch.setattr(SandboxPayer, "renew", bent)
    withdrawal = asked(shop)
    with in_realm("test"), pytest.raises(OrderMismatch, match="amount"):
        services().payouts.pay(shop.record(withdrawal).tenant, withdrawal)
    assert (shop.order(withdrawal).earlier, kms.calls["Sign"]) == ((), 1)


def test_bytes_without_a_nonce_have_to_name_the_wallet(shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Tron, where an attempt that has expired is replaced, and only then."""
    real, expired, sender = SandboxPayer.explain, [False], [""]

    def explain(payer: SandboxPayer, unsigned: str) -> Any:
        return replace(real(payer, unsigned), nonce=None, sender=sender[0])

    withdrawal = stuck(shop)
    monkeypatch.setattr(SandboxPayer, "explain", explain)
    monkeypatch.setattr(SandboxPayer, "renewable", lambda *_: expired[0])
    monkeypatch.setattr(Losses, "lost", lambda *_: expired[0])
    for module in (losses, stuck_payments):
        monkeypatch.setattr(module, "has_nonces", lambda _: False)
    shop.wait(STUCK)
    shop.turn()
    assert not shop.order(withdrawal).renew
    expired[0] = True
    sender[0] = "0x" + "ab" * 20
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)
    with in_realm("test"), pytest.raises(OrderMismatch, match=r"in sender$"):
        services().payouts.pay(shop.record(withdrawal).tenant, withdrawal)
    assert kms.calls["Sign"] == 1
    sender[0] = shop.hot().address
    expired[0] = False
    shop.turn()  # asked for, and no longer true when it is to be signed
    assert kms.calls["Sign"] == 1
    expired[0] = True
    shop.turn()
    assert (len(shop.order(withdrawal).earlier), kms.calls["Sign"]) == (1, 2)


def test_a_foreign_transaction_with_its_nonce_is_an_alarm(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    withdrawal = stuck(shop)
    with monkeypatch.context() as patch:
        patch.setattr(SandboxPayer, "next_nonce", lambda *_: 1)
        shop.wait(STUCK)
        shop.turn()
    order = shop.order(withdrawal)
    assert (order.renew, order.earlier, shop.withdrawal(withdrawal)["status"]) == (False, (), "confirming")
    assert any("is not ours used the nonce 0" in r.message for r in caplog.records if r.levelname == "ERROR")


# The sweep: an error before a call leaves what a death after the one before it leaves; the death stays.
@pytest.mark.parametrize(("how", "when"), [("death", "after"), pytest.param("error", "before", marks=pytest.mark.sweep)])
def test_the_replacement_may_be_cut_anywhere(shop: Shop, monkeypatch: pytest.MonkeyPatch, how: Any, when: Any) -> None:
    cutter = Cutter()
    install(cutter, monkeypatch)
    offered = Offered(monkeypatch)
    withdrawal = asked(shop)
    tenant, shift = shop.record(withdrawal).tenant, services().clock.shift_ms
    state = shop.stack.snapshot()

    def pay() -> None:
        with in_realm("test"), cutter.arm():
            services().payouts.pay(tenant, withdrawal)

    cutter.set(0, how, when)
    pay()
    calls = len(cutter.trace)
    assert 5 < calls < 60
    # A check cuts every third call, `make sweep` each.
    for at in range(1, calls + 1, 1 if os.environ.get("SWEEP") == "full" else 3):
        shop.stack.restore(state)
        services().clock.shift_ms = shift
        cutter.set(at, how, when)
        del offered.raws[:]
        try:
            pay()
        except (Died, Unavailable, BotoCoreError):
            wiring.forget()
            services().clock.shift_ms = shift
        assert cutter.fired
        cutter.set(0, how, when)
        with in_realm("test"):
            services().payouts.pay(tenant, withdrawal)
        order = shop.order(withdrawal)
        assert (len(order.earlier), order.renew) == (1, False), cutter.trace
        assert set(offered.raws) <= {order.raw}
        assert shop.record(withdrawal).txid == order.txid
    assert audit(services().store) == []


def test_a_merchant_that_owes_is_paid_nothing_until_it_is_made_good(shop: Shop, kms: Kms) -> None:
    withdrawal = shop.withdraw("0.25")
    store, tenant = services().store, shop.record(withdrawal).tenant
    before = store.get(Balance, tenant=tenant, asset=shop.coin("eth").asset)
    assert before is not None
    owing = replace(before, available=-1, version=before.version + 1)
    store.commit([Save(owing)])
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["pending_reason"], kms.calls["Sign"]) == ("pending", "risk", 0)
    shop.nudge(THIRST)
    assert shop.withdrawal(withdrawal)["pending_reason"] == "risk"
    store.commit([Save(replace(before, version=owing.version + 1))])
    shop.nudge(THIRST)
    shop.turn()
    confirm(shop)
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown.get("pending_reason"), shop.paid()) == ("confirmed", None, QUARTER)


def used_elsewhere(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[int]]:
    """A payment whose nonce the chain says that something else used; how many are used can be changed."""
    withdrawal, used = stuck(shop), [1]
    monkeypatch.setattr(SandboxPayer, "next_nonce", lambda *_: used[0])
    shop.wait(STUCK)
    shop.turn()
    seen = shop.order(withdrawal).usurped
    assert seen is not None and (seen.used, seen.height) == (1, shop.chain().tip())
    return withdrawal, used


def test_what_a_node_says_of_its_nonce_for_a_while_changes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal, used = used_elsewhere(shop, monkeypatch)
    first = shop.order(withdrawal).usurped
    shop.mine(REORG_DEPTH - 1)
    shop.turn()
    used[0] = 0
    shop.turn()
    assert shop.order(withdrawal).usurped is None
    used[0] = 1
    shop.mine(2)
    shop.wait(2 * STUCK)  # it was replaced meanwhile
    shop.turn()
    again = shop.order(withdrawal).usurped
    assert first is not None and again is not None and again.height == first.height + REORG_DEPTH + 1
    # A reorganisation may have taken out what used it: counted anew.
    shop.reorg(1)
    shop.mine(2)
    shop.turn()
    anew = shop.order(withdrawal).usurped
    assert anew is not None and (anew.epoch, anew.height) == (again.epoch + 1, shop.chain().tip())
    shop.mine(REORG_DEPTH - 1)
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirming"
    # Whatever the node counts: what it has a receipt of is paid.
    decide(shop, withdrawal, "confirm")
    confirm(shop)
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(), shop.available()) == ("confirmed", QUARTER, "0.75")


# The sweep: an error before a call leaves what a death after the one before it leaves; the death stays.
@pytest.mark.parametrize(("how", "when"), [("death", "after"), pytest.param("error", "before", marks=pytest.mark.sweep)])
def test_giving_back_what_can_never_be_mined_may_be_cut_anywhere(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, how: Any, when: Any
) -> None:
    cutter = Cutter()
    install(cutter, monkeypatch)
    withdrawal, used = used_elsewhere(shop, monkeypatch)
    used[0] = 2
    order = shop.order(withdrawal)
    met_elsewhere(shop.realm_network(), order.wallet, 0, 1)
    shop.mine(REORG_DEPTH - 1)
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirming"
    shop.mine(1)
    shift, state = services().clock.shift_ms, shop.stack.snapshot()

    def poll() -> None:
        with cutter.arm():
            shop.stack.drain(only=(f"poll_{shop.network}",), rounds=2, failures="count")

    cutter.set(0, how, when)
    poll()
    writes = [n for n, name in enumerate(cutter.trace, 1) if name in ("TransactWriteItems", "PutItem", "UpdateItem")]
    assert len(writes) == 4, "the cursor, the nonces, the watch, the payment"
    for at in writes:
        shop.stack.restore(state)
        services().clock.shift_ms = shift
        cutter.set(at, how, when)
        try:
            poll()
        except Died:
            wiring.forget()
            services().clock.shift_ms = shift
        assert cutter.fired
        cutter.set(0, how, when)
        shop.turn()
        counter = services().store.get(NonceCounter, network=order.network, wallet=order.wallet)
        assert counter is not None and (counter.next, counter.foreign) == (2, ((1, 1),))
        assert (shop.order(withdrawal).state, shop.withdrawal(withdrawal)["status"], shop.available()) == ("bounced", "failed", "1")
        assert audit(services().store) == []


def test_what_a_node_says_of_its_nonce_gives_nothing_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long, by every node's word: no block that was scanned has another transaction with it (money rule 13)."""
    withdrawal, _ = used_elsewhere(shop, monkeypatch)
    for _ in range(3):
        shop.mine(REORG_DEPTH)
        shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirming", "0.75")


def test_a_nonce_that_may_come_back_is_waited_for(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The payment is lost, and what used the next nonce is not as deep yet: the counter passes over both, or over none."""
    withdrawal, used = used_elsewhere(shop, monkeypatch)
    wallet = shop.order(withdrawal).wallet
    met_elsewhere(shop.realm_network(), wallet, 0)
    shop.mine(5)
    shop.turn()
    used[0] = 2
    met_elsewhere(shop.realm_network(), wallet, 1)
    shop.mine(REORG_DEPTH - 5)
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirming"
    shop.mine(5)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("failed", "1")
    counter = services().store.get(NonceCounter, network=shop.realm_network().id, wallet=wallet)
    assert counter is not None and (counter.next, counter.foreign) == (2, ((1, 1),))


def test_what_was_met_in_a_block_is_never_lost_nor_replaced(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Null receipts, and every node says that its nonce is used: by this very payment."""
    withdrawal = shop.withdraw("0.25")
    shop.turn()
    order = shop.order(withdrawal)
    real = SandboxReader.receipt
    monkeypatch.setattr(SandboxReader, "receipt", lambda *_: None)
    for _ in range(3):
        shop.wait(STUCK)
        shop.mine(REORG_DEPTH)
        shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.order(withdrawal).txids) == ("confirming", order.txids)
    assert "no node tells its receipt" in caplog.text and "a transaction that is not ours" not in caplog.text
    monkeypatch.setattr(SandboxReader, "receipt", real)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(), shop.available()) == ("confirmed", QUARTER, "0.75")


def test_an_upgrade_in_the_middle_reads_the_blocks_before_it_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What used the nonce is in a block that was passed before there were notes."""
    used_elsewhere(shop, monkeypatch)
    cursor = services().store.get(Cursor, network=shop.realm_network().id)
    assert cursor is not None
    services().store.commit([Save(replace(cursor, noted_from=None, version=cursor.version + 1))])
    shop.mine(REORG_DEPTH)
    shop.turn()
    met = services().store.get(Cursor, network=shop.realm_network().id)
    assert met is not None and met.noted_from is not None and met.noted_from <= cursor.number
    assert [r.status for r in services().store.every(Rescan)] == ["completed"]
    shop.turn()
    assert len(list(services().store.every(Rescan))) == 1
