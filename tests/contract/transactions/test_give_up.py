"""What no sighting ends, an operator ends: stored with who and why, done by the poll, watched on; never what is in the chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import boto3
import pytest

from chalicelib import wiring
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.work import Work
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.scanning.scanner import Scanner
from chalicelib.wiring import services
from infra.cli import main
from tests.support.cuts import Cutter, Died, When, install
from tests.support.lying_nodes import behind
from tests.support.shop import ETHER, Shop, bent_node, open_shop
from tests.support.stack import Stack
from tests.support.treasury import move_of, paid_address, plan, same

QUARTER = ETHER // 4
REASON = "the node of that day is gone"
STUCK = 365
"""Seconds after which what no block takes is replaced."""
WATCHED = 2 * 64
"""Blocks for which what was given up is watched at least: twice what a reorganisation is followed."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened


GiveUp = Callable[..., tuple[int, str]]


@pytest.fixture
def give_up(capsys: pytest.CaptureFixture[str]) -> GiveUp:
    """The command; its exit code, and what it said."""

    def run(id: str, reason: str = REASON) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["--stage", "local", "give-up", id, "--reason", reason, "--realm", "test"])
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


def mined(shop: Shop, txid: str | None, outcome: str = "confirm") -> None:
    """A block takes it after all, and that is final."""
    shop.chain().settle(str(txid), outcome)  # type: ignore[arg-type]
    shop.mine()
    shop.turn()


def decision(id: str) -> GivenUp:
    found = services().store.get(GivenUp, id=id)
    assert found is not None
    return found


def watched(shop: Shop) -> list[Work]:
    return services().store.open_work("givenup", shop.realm_network().id)


def test_a_payment_that_no_block_takes_is_given_back_and_the_decision_kept(
    shop: Shop, give_up: GiveUp, caplog: pytest.LogCaptureFixture
) -> None:
    withdrawal = stuck(shop)
    code, said = give_up(withdrawal)
    assert (code, f"{withdrawal} is given up on test:ethereum" in said) == (0, True), said
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirming", "0.75")
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shop.available(), shop.paid()) == ("failed", "1", 0)
    kept = decision(withdrawal)
    by = boto3.client("sts").get_caller_identity()["Arn"]
    assert (kept.by, kept.reason, kept.kind, kept.state) == (by, REASON, "payout", "open")
    assert kept.txids == shop.order(withdrawal).txids
    assert f"ALARM test:ethereum: {withdrawal} is given up, as {by} decided: {REASON}" in caplog.text
    assert len(shop.journal("withdrawal_bounced")) == 1
    assert shop.told(withdrawal)["withdrawal.status_changed"] == 4


def test_one_that_is_mined_after_all_was_paid_by_its_merchant(
    shop: Shop, give_up: GiveUp, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever kept the bytes may send them at any time: the merchant pays what it ordered, also with what it has spent since."""
    withdrawal = stuck(shop)
    give_up(withdrawal)
    shop.turn()
    shop.withdraw("1")
    shop.turn()
    assert shop.available() == "0"
    mined(shop, shop.order(withdrawal).txid)
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert shown["status"] == "confirmed"
    assert (shop.available(), shop.paid() >= QUARTER) == ("-0.25", True)
    assert f"{withdrawal} was given up by" in caplog.text
    assert "is less than nothing now" in caplog.text
    assert (decision(withdrawal).state, watched(shop)) == ("mined", [])


def test_one_that_fails_on_the_chain_after_all_burns_its_fee_in_the_books(shop: Shop, give_up: GiveUp) -> None:
    withdrawal = stuck(shop)
    give_up(withdrawal)
    shop.turn()
    mined(shop, shop.order(withdrawal).txid, "fail")
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available(), shop.paid()) == ("failed", "1", 0)
    assert (decision(withdrawal).state, watched(shop)) == ("mined", [])
    assert len(shop.journal("withdrawal_bounced")) == 2


def test_a_move_is_given_up_and_taken_back_when_it_is_mined(shop: Shop, give_up: GiveUp, caplog: pytest.LogCaptureFixture) -> None:
    address = paid_address(shop, "1", "eth")
    sweep = plan(shop, "sweep", "eth", address, shop.hot().address, "0.5")
    shop.chain().plan(sweep, "stick")
    shop.turn()
    assert give_up(sweep)[0] == 0
    shop.turn()
    given = move_of(shop, sweep)
    assert (given.state, given.mined, decision(sweep).kind) == ("failed", None, "move")
    assert same(shop, address.address, "eth") == ETHER
    mined(shop, given.txid)
    shop.turn()
    assert (move_of(shop, sweep).state, decision(sweep).state) == ("settled", "mined")
    same(shop, address.address, "eth")
    assert f"{sweep} was given up by" in caplog.text


def test_what_is_in_the_chain_is_never_given_up(shop: Shop, give_up: GiveUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a block that was scanned, whatever nodes say; in one that a node tells of; and where one with a vote does not answer."""
    withdrawal = stuck(shop)
    shop.chain().settle(str(shop.order(withdrawal).txid), "confirm")
    node = bent_node(shop, monkeypatch)
    code, said = give_up(withdrawal)
    assert (code, "a node tells" in said) == (1, True), said
    node.bend(receipt=lambda real, txid: None)
    shop.turn(failures="count")
    code, said = give_up(withdrawal)
    assert (code, "was met in block" in said) == (1, True), said
    monkeypatch.undo()
    shop.mine()
    shop.turn()
    code, said = give_up(withdrawal)
    assert (code, "it is confirmed" in said) == (1, True), said
    assert services().store.get(GivenUp, id=withdrawal) is None


def test_a_silent_node_is_waited_for(shop: Shop, give_up: GiveUp, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = stuck(shop)
    nodes = behind(shop, monkeypatch, 2)
    nodes.all[1].gone = True
    code, said = give_up(withdrawal)
    assert (code, "does not answer" in said) == (1, True), said
    nodes.all[1].gone = False
    assert give_up(withdrawal)[0] == 0
    nodes.all[1].gone = True
    shop.turn(failures="count")
    assert shop.withdrawal(withdrawal)["status"] == "confirming"
    nodes.all[1].gone = False
    shop.turn(failures="count")
    assert shop.withdrawal(withdrawal)["status"] == "failed"


def test_the_chain_may_be_first(shop: Shop, give_up: GiveUp) -> None:
    """It is mined between the decision and the poll: then it was paid, and nothing is given back."""
    withdrawal = stuck(shop)
    assert give_up(withdrawal)[0] == 0
    mined(shop, shop.order(withdrawal).txid)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirmed", "0.75")
    assert (shop.journal("withdrawal_bounced"), decision(withdrawal).state, watched(shop)) == ([], "mined", [])


@pytest.mark.parametrize("when", ["at once", "after the poll"])
def test_twice_is_refused_and_gives_back_once(shop: Shop, give_up: GiveUp, when: str) -> None:
    withdrawal = stuck(shop)
    assert give_up(withdrawal)[0] == 0
    if when == "after the poll":
        shop.turn()
    code, said = give_up(withdrawal, "again")
    assert (code, f"was given up before, by {decision(withdrawal).by}: {REASON}" in said) == (1, True), said
    shop.turn()
    assert (shop.available(), len(shop.journal("withdrawal_bounced"))) == ("1", 1)


def test_what_can_not_be_given_up_is_refused_with_the_reason(shop: Shop, give_up: GiveUp) -> None:
    for unknown in ("wd_01m81bw09sznhrd6dd82wqzhv0", "mov_nothing", "bun_nothing", "nothing"):
        code, said = give_up(unknown)
        assert (code, f"there is no withdrawal, move, stake, bundle or coin move {unknown}" in said) == (1, True), said
    waits = shop.withdraw("0.5")
    code, said = give_up(waits)
    assert (code, "nothing is signed" in said) == (1, True), said
    shop.turn()
    shop.mine()
    shop.turn()
    code, said = give_up(waits)
    assert (code, "it is confirmed" in said) == (1, True), said
    withdrawal = stuck(shop)
    code, said = give_up(withdrawal, "")
    assert (code, "1 to 500 characters" in said) == (1, True), said
    assert list(services().store.every(GivenUp)) == []


def test_a_halted_or_lagging_network_only_waits(shop: Shop, give_up: GiveUp) -> None:
    withdrawal = stuck(shop)
    shop.mine(40)
    code, said = give_up(withdrawal)
    assert (code, "wait for the rest" in said) == (1, True), said
    shop.turn()
    assert give_up(withdrawal)[0] == 0


def test_the_nonce_goes_to_a_filler_and_ends_the_watch(shop: Shop, give_up: GiveUp, capsys: pytest.CaptureFixture[str]) -> None:
    """Until then any later payment of the wallet waits, and what was given up may be mined at any time."""
    withdrawal = stuck(shop)
    behind_it = shop.withdraw("0.25")
    shop.turn()
    give_up(withdrawal)
    shop.turn()
    shop.mine(WATCHED + 1)
    shop.turn()
    assert [work.id for work in watched(shop)] == [withdrawal]
    words = ["--stage", "local", "fill-nonces", "--realm", "test", "--network", shop.network, "--address", shop.hot().address]
    assert main(words) == 0
    assert f"nonces are filled: {shop.order(withdrawal).nonce};" in capsys.readouterr().out
    for _ in range(4):  # the filler outbids what waits with its nonce
        shop.nudge(STUCK)
        shop.mine()
    shop.mine(64)
    shop.turn()
    assert shop.withdrawal(behind_it)["status"] == "confirmed"
    assert (watched(shop), decision(withdrawal).state) == ([], "over")
    assert shop.withdrawal(withdrawal)["status"] == "failed"


WRITES = ("TransactWriteItems", "PutItem", "UpdateItem")


@pytest.mark.parametrize("when", ["before", "after"])
def test_who_dies_at_any_write_gives_back_once(shop: Shop, give_up: GiveUp, monkeypatch: pytest.MonkeyPatch, when: When) -> None:
    """The command, the poll that carries it out, and the one that takes it back: each write may be the last thing that is done."""
    cutter = Cutter()
    install(cutter, monkeypatch)
    withdrawal = stuck(shop)

    def poll() -> None:
        with cutter.arm():
            shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1, failures="count")

    def command() -> None:
        with cutter.arm():
            give_up(withdrawal)

    def settle() -> None:
        shop.chain().settle(str(shop.order(withdrawal).txid), "confirm")
        shop.mine()
        shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)
        poll()

    def cut_everywhere(act: Callable[[], None], first: Callable[[], None]) -> None:
        """Do `first`, then `act`, cut at each of its writes; then all of it is done by whoever comes later."""
        shift, state = services().clock.shift_ms, shop.stack.snapshot()
        cutter.set(0, "death", when)
        first()
        act()
        for at in [n for n, name in enumerate(cutter.trace, 1) if name in WRITES]:
            shop.stack.restore(state)
            services().clock.shift_ms = shift
            cutter.set(0, "death", when)
            first()
            cutter.set(at, "death", when)
            try:
                act()
            except Died:
                wiring.forget()
                services().clock.shift_ms = shift
            assert cutter.fired
            cutter.set(0, "death", when)
            if services().store.get(GivenUp, id=withdrawal) is None:
                give_up(withdrawal)
            shop.turn()
            assert audit(services().store) == []
            assert (shop.available(), len(shop.journal("withdrawal_bounced"))) == ("1", 1)
            settle()
            shop.turn()
            assert (shop.withdrawal(withdrawal)["status"], shop.available(), shop.paid()) == ("confirmed", "0.75", QUARTER)
            assert (len(shop.journal("settlement_reversed")), decision(withdrawal).state) == (1, "mined")
            assert audit(services().store) == []

    cut_everywhere(command, lambda: None)
    cut_everywhere(poll, lambda: None)


@pytest.mark.parametrize("scans", ["at once", "a while later"])
def test_one_that_is_mined_long_after_was_paid_all_the_same(
    shop: Shop, give_up: GiveUp, monkeypatch: pytest.MonkeyPatch, scans: str
) -> None:
    """What was given up is looked at before the new blocks are scanned: that its nonce is used by then says nothing of by whom."""
    withdrawal = stuck(shop)
    give_up(withdrawal)
    shop.turn()
    shop.mine(WATCHED)
    shop.turn()
    assert decision(withdrawal).state == "open"
    if scans == "a while later":  # a poll that had no time for the scan, or whose scan failed
        with monkeypatch.context() as patch:
            patch.setattr(Scanner, "advance", away)
            shop.chain().settle(str(shop.order(withdrawal).txid), "confirm")
            shop.mine(1)
            shop.turn(failures="count")
    mined(shop, shop.order(withdrawal).txid)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.available()) == ("confirmed", "0.75")
    assert (decision(withdrawal).state, watched(shop)) == ("mined", [])


def away(*_: object) -> None:
    raise Unavailable("the scan has no time")
