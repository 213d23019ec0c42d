"""Our own empty transaction on the nonce of an open payment: one of the two is mined, and the payment is paid or given back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import boto3
import pytest

from chalicelib import wiring
from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.cli import main
from tests.support.cuts import Cutter, Died, When, install
from tests.support.shop import ETHER, Shop, open_shop
from tests.support.stack import Stack

QUARTER = ETHER // 4
REASON = "no block took it for a day"
STUCK = 365
"""Seconds after which what no block takes is replaced."""
DEEP = 64
"""Blocks that a reorganisation is followed."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened


FillOver = Callable[..., tuple[int, str]]


@pytest.fixture
def fill_over(capsys: pytest.CaptureFixture[str]) -> FillOver:
    """The command; its exit code, and what it said."""

    def run(id: str, reason: str = REASON, network: str = "ethereum") -> tuple[int, str]:
        capsys.readouterr()
        words = ["--stage", "local", "fill-nonces", "--realm", "test", "--network", network, "--over", id, "--reason", reason]
        code = main(words)
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def stuck(shop: Shop) -> str:
    """A payment that is out and in no block."""
    withdrawal = shop.withdraw("0.25")
    answer = shop.post(f"/v1/sandbox/withdrawals/{withdrawal}", {"outcome": "stick"})
    assert answer.status == 200, answer.body
    shop.turn()
    assert shop.withdrawal(withdrawal)["status"] == "confirming"
    return withdrawal


def filler() -> Move:
    (found,) = (move for move in services().store.every(Move) if move.kind == "filler")
    return found


def full(payer: SandboxPayer, raw: str) -> None:
    raise Refused("the pool is full")


def next_nonce(shop: Shop) -> int:
    (counter,) = (c for c in services().store.every(NonceCounter) if c.wallet == shop.hot().address)
    return counter.next


def test_the_filler_is_mined_and_the_payment_given_back_once_that_is_deep(
    shop: Shop, fill_over: FillOver, caplog: pytest.LogCaptureFixture
) -> None:
    withdrawal = stuck(shop)
    behind_it = shop.withdraw("0.25")
    shop.turn()
    code, said = fill_over(withdrawal)
    order, over = shop.order(withdrawal), filler()
    assert (code, f"{over.id} is planned on the nonce {order.nonce} of {withdrawal}" in said) == (0, True), said
    assert (over.state, over.nonce, over.source, over.recipient) == ("built", order.nonce, order.wallet, order.wallet)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirming", "0.5")
    assert filler().fee * 10 >= shop.order(withdrawal).fee * 11
    by = boto3.client("sts").get_caller_identity()["Arn"]
    assert f"ALARM test:ethereum: {over.id} takes the nonce {order.nonce} of {order.id}, as {by} decided: {REASON}" in caplog.text
    shop.mine()
    shop.turn()
    shop.nudge(STUCK)
    # Mined and final, and not yet deeper than reorganisations: nothing is given back.
    assert (filler().state, shop.withdrawal(withdrawal)["status"], shop.available()) == ("settled", "confirming", "0.5")
    shop.mine(DEEP)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.withdrawal(behind_it)["status"]) == ("failed", "confirmed")
    assert (shop.available(), shop.paid(), len(shop.journal("withdrawal_bounced"))) == ("0.75", QUARTER, 1)
    assert "somebody has the key" not in caplog.text and "not ours used the nonce" not in caplog.text
    assert f"our own {over.id}" in caplog.text
    assert audit(services().store) == []


def test_the_payment_is_mined_first_and_the_filler_ends(
    shop: Shop, fill_over: FillOver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawal = stuck(shop)
    assert fill_over(withdrawal)[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(SandboxPayer, "broadcast", full)
        shop.turn()
    assert filler().state == "signed"
    shop.chain().settle(str(shop.order(withdrawal).txid), "confirm")
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], filler().state, shop.available()) == ("confirmed", "signed", "0.75")
    shop.nudge(STUCK)
    shop.mine(DEEP)
    shop.turn()
    over = filler()
    assert (over.state, over.mined, over.usurped is not None, shop.paid()) == ("failed", None, True, QUARTER)
    assert shop.journal("withdrawal_bounced") == []
    assert "somebody has the key" not in caplog.text and "not ours used the nonce" not in caplog.text


def test_the_payment_is_mined_before_anything_is_signed_over_it(shop: Shop, fill_over: FillOver) -> None:
    """The filler is dropped, and gives back no nonce: the payment has it."""
    withdrawal = stuck(shop)
    assert fill_over(withdrawal)[0] == 0
    shop.chain().settle(str(shop.order(withdrawal).txid), "confirm")
    shop.mine()
    shop.stack.drain(only=("poll_ethereum",), rounds=1)
    assert (shop.withdrawal(withdrawal)["status"], filler().state) == ("confirmed", "built")
    after = next_nonce(shop)
    shop.turn()
    assert (filler().state, filler().nonce, next_nonce(shop)) == ("dropped", None, after)
    code, said = fill_over(withdrawal)
    assert (code, "is not open on test:ethereum" in said) == (1, True), said


def test_a_filler_outbids_a_payment_that_was_replaced_and_no_longer_is(shop: Shop, fill_over: FillOver) -> None:
    withdrawal = stuck(shop)
    shop.nudge(STUCK)
    replaced = shop.order(withdrawal)
    assert len(replaced.earlier) == 1
    shop.chain().plan(f"{withdrawal}", "stick")
    assert fill_over(withdrawal)[0] == 0
    over = filler()
    shop.chain().plan(over.id, "stick")
    shop.turn()
    assert filler().fee * 8 >= replaced.fee * 9
    for _ in range(3):
        shop.nudge(STUCK)
    assert (len(shop.order(withdrawal).earlier), shop.order(withdrawal).renew) == (1, False)
    assert filler().earlier  # it alone goes on
    shop.chain().settle(str(filler().txid), "confirm")
    shop.mine(DEEP + 12)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available(), shop.paid()) == ("failed", "1", 0)


def test_a_command_to_replace_that_was_under_way_signs_nothing_more(shop: Shop, fill_over: FillOver) -> None:
    withdrawal = stuck(shop)
    order = shop.order(withdrawal)
    assert fill_over(withdrawal)[0] == 0
    asked = shop.order(withdrawal)
    services().store.commit([Save(replace(asked, renew=True, version=asked.version + 1))])
    services().payouts.pay(order.tenant, withdrawal)
    assert shop.order(withdrawal).earlier == ()
    shop.turn()


def test_a_reorganisation_takes_the_filler_back_and_the_payment_is_mined(shop: Shop, fill_over: FillOver) -> None:
    withdrawal = stuck(shop)
    assert fill_over(withdrawal)[0] == 0
    shop.turn()
    shop.mine(20)
    shop.turn()
    assert filler().state == "settled"
    shop.chain().plan(filler().id, "stick")
    shop.reorg(25)
    assert shop.chain().nonce(shop.hot().address) == 0
    shop.chain().settle(str(shop.order(withdrawal).txid), "confirm")
    shop.mine(DEEP)
    for _ in range(3):
        shop.nudge(STUCK)
    assert (shop.withdrawal(withdrawal)["status"], shop.available(), shop.paid()) == ("confirmed", "0.75", QUARTER)
    assert (filler().state, filler().round, shop.journal("withdrawal_bounced")) == ("failed", 1, [])
    assert audit(services().store) == []


def test_what_can_not_be_named_is_refused_with_what_is_allowed(shop: Shop, fill_over: FillOver) -> None:
    for unknown in ("wd_01m81bw09sznhrd6dd82wqzhv0", "mov_nothing", "nothing"):
        code, said = fill_over(unknown)
        assert (code, "a withdrawal (wd_...) that is signed, in no block and open" in said) == (1, True), said
    waits = shop.withdraw("0.5")
    code, said = fill_over(waits)
    assert (code, "nothing is signed" in said) == (1, True), said
    shop.turn()
    code, said = fill_over(waits)
    assert (code, "in the chain" in said or "its nonce" in said) == (1, True), said
    shop.mine()
    shop.turn()
    code, said = fill_over(waits)
    assert (code, "is not open on test:ethereum" in said) == (1, True), said
    withdrawal = stuck(shop)
    code, said = fill_over(withdrawal, "")
    assert (code, "1 to 500 characters" in said) == (1, True), said
    code, said = fill_over(withdrawal, network="polygon")
    assert (code, "is not open on test:polygon" in said) == (1, True), said
    code, said = fill_over(withdrawal, network="bitcoin")
    assert code == 1
    assert [move for move in services().store.every(Move) if move.kind == "filler"] == []
    assert fill_over(withdrawal)[0] == 0
    code, said = fill_over(withdrawal)
    assert (code, f"{filler().id} has its nonce already" in said) == (1, True), said


WRITES = ("TransactWriteItems", "PutItem", "UpdateItem")


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.sweep)])
def test_who_dies_at_any_write_gives_back_once(
    shop: Shop, fill_over: FillOver, monkeypatch: pytest.MonkeyPatch, when: When
) -> None:
    """The command, what signs the filler, and the poll that gives back: each write may be the last thing that is done."""
    cutter = Cutter()
    install(cutter, monkeypatch)
    withdrawal = stuck(shop)

    def command() -> None:
        with cutter.arm():
            fill_over(withdrawal)

    def sign() -> None:
        with cutter.arm():
            shop.turn(failures="count")

    def cut_everywhere(act: Callable[[], None]) -> None:
        """Cut at each of its writes; then all of it is done by whoever comes later."""
        shift, state = services().clock.shift_ms, shop.stack.snapshot()
        cutter.set(0, "death", when)
        act()
        writes = [n for n, name in enumerate(cutter.trace, 1) if name in WRITES]
        assert writes
        # A check cuts every second write, `make sweep` each.
        for at in writes if os.environ.get("SWEEP") == "full" else writes[::2]:
            shop.stack.restore(state)
            services().clock.shift_ms = shift
            cutter.set(at, "death", when)
            try:
                act()
            except Died:
                wiring.forget()
                services().clock.shift_ms = shift
            assert cutter.fired
            cutter.set(0, "death", when)
            fill_over(withdrawal)  # again: refused where it is planned
            shop.turn(failures="count")
            shop.nudge(STUCK)
            assert audit(services().store) == []
            assert (filler().state, shop.withdrawal(withdrawal)["status"]) == ("signed", "confirming")
            shop.mine(DEEP + 12)
            shop.turn()
            assert (shop.withdrawal(withdrawal)["status"], shop.available(), shop.paid()) == ("failed", "1", 0)
            assert len(shop.journal("withdrawal_bounced")) == 1
            assert audit(services().store) == []
        shop.stack.restore(state)
        services().clock.shift_ms = shift
        cutter.set(0, "death", when)

    cut_everywhere(command)
    fill_over(withdrawal)
    cut_everywhere(sign)
