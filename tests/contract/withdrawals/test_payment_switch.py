"""The kill switch: nothing goes out any more, from the answer on, at whatever point a payment was; everything else goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import botocore.client
import pytest

from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, Withdrawal
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from infra.cli import main
from tests.support.shop import Kms, Shop, open_shop
from tests.support.stack import Stack

OTHER = "0x52908400098527886E0F7030069857D2E4169EE7"
STUCK = 600


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def switch(shop: Shop, stopped: bool, reason: str | None = "a drill") -> dict[str, Any]:
    body = {"stopped": stopped} if reason is None else {"stopped": stopped, "reason": reason}
    answer = shop.stack.call("PUT", "/v1/withdrawals/switch", shop.stack.keys["admin_test"], json=body)
    assert answer.status == 200, answer.body
    return dict(answer.json["data"])


def at_commit(patch: pytest.MonkeyPatch, when: Callable[[Any], bool], act: Callable[[], Any], after: bool) -> list[bool]:
    """Let something happen once, right before or after a commit that saves a record like that."""
    done: list[bool] = []
    real = DynamoStore.commit

    def commit(store: DynamoStore, changes: Any) -> None:
        meant = not done and any(isinstance(change, Save) and when(change.record) for change in changes)
        if meant:
            done.append(True)
        if meant and not after:
            act()
        real(store, changes)
        if meant and after:
            act()

    patch.setattr(DynamoStore, "commit", commit)
    return done


def signs(record: Any) -> bool:
    return isinstance(record, Withdrawal) and record.status == "broadcasting"


def test_how_it_stands_is_the_operators_to_see_and_to_change(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    key = shop.stack.keys["admin_test"]
    before = shop.stack.call("GET", "/v1/withdrawals/switch", key).json["data"]
    assert before == {"stopped": False, "reason": None, "changed_at": None, "changed_by": None}
    for method, body in (("GET", None), ("PUT", {"stopped": True})):
        refused = shop.stack.call(method, "/v1/withdrawals/switch", shop.key, json=body)
        assert refused.status == 403
    wrong = shop.stack.call("PUT", "/v1/withdrawals/switch", key, json={"stopped": "yes", "reason": "", "x": 1})
    assert {p["field"] for p in wrong.json["error"]["details"]} == {"stopped", "reason", "x"}
    with caplog.at_level(logging.ERROR):
        assert switch(shop, False)["changed_at"] is None  # nothing was stopped
        thrown = switch(shop, True)
        assert (thrown["stopped"], thrown["reason"], switch(shop, True)) == (True, "a drill", thrown)
        assert switch(shop, True, "a fire")["reason"] == "a fire"
        assert switch(shop, False, None) | {"changed_at": 0} == {
            "stopped": False, "reason": None, "changed_at": 0, "changed_by": thrown["changed_by"],
        }  # fmt: skip
    lines = [r.message for r in caplog.records if "outgoing payments" in r.message]
    assert [("stopped" in line, line.rsplit(": ", 1)[1]) for line in lines] == [
        (True, "a drill"), (True, "a fire"), (False, "no reason given"),
    ]  # fmt: skip
    assert services().store.get(PaymentSwitch, realm="live") is None  # of the key's realm alone


def test_the_command_line_throws_it_too(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--stage", "local", "stop-payments", "--realm", "test", "--reason", "a drill"]) == 0
    found = services().switches.state("test")
    assert (found.stopped, found.reason, found.changed_by) == (True, "a drill", "operator")
    assert main(["--stage", "local", "resume-payments", "--realm", "test"]) == 0
    assert not services().switches.state("test").stopped
    assert capsys.readouterr().out.splitlines() == [
        "outgoing payments of the realm test are stopped", "outgoing payments of the realm test go on",
    ]  # fmt: skip


def test_withdrawals_wait_and_go_on_by_themselves_oldest_first(shop: Shop, kms: Kms) -> None:
    switch(shop, True)
    made = [shop.withdraw("0.125") for _ in range(3)]
    given_up = shop.withdraw("0.25")
    shop.turn()
    assert {(w["status"], w["pending_reason"]) for w in map(shop.withdrawal, made)} == {("pending", "halted")}
    listed = shop.get("/v1/withdrawals", pending_reason="halted")["data"]
    assert {w["id"] for w in listed} == {*made, given_up}
    versions = [shop.record(w).version for w in made]
    shop.nudge()
    assert (versions, kms.calls["Sign"]) == ([shop.record(w).version for w in made], 0)  # nobody tries in vain
    assert shop.stack.call("DELETE", f"/v1/withdrawals/{given_up}", shop.key).json["data"]["status"] == "cancelled"
    shop.credit("0.5")  # everything else goes on
    switch(shop, False)
    shop.stack.drain(only=("housekeeping",), rounds=1)
    shop.turn()
    shop.mine()
    shop.turn()
    assert {shop.withdrawal(w)["status"] for w in made} == {"confirmed"}
    nonces = [shop.order(w).nonce for w in made]
    assert (nonces, kms.calls["Sign"], shop.paid()) == (sorted(nonces), 3, 375 * 10**15)


@pytest.mark.parametrize("moment", ["before the order", "while it is signed", "before it is stored"])
def test_thrown_before_a_signature_is_stored_nothing_is_signed(shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    withdrawal = shop.withdraw("0.25")
    with monkeypatch.context() as patch:
        if moment == "while it is signed":
            done: list[bool] = []
            real = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

            def call(client: Any, operation: str, parameters: Any) -> Any:
                if operation == "Sign" and not done:
                    done.append(True)
                    switch(shop, True)
                return real(client, operation, parameters)

            patch.setattr(botocore.client.BaseClient, "_make_api_call", call)
        elif moment == "before it is stored":
            done = at_commit(patch, signs, lambda: switch(shop, True), after=False)
        else:
            done = at_commit(patch, lambda r: isinstance(r, NonceCounter), lambda: switch(shop, True), after=False)
        shop.turn()
        assert done
    shop.nudge()
    assert shop.withdrawal(withdrawal)["status"] == "processing"
    if moment == "before the order":
        assert shop.record(withdrawal).order_id is None  # it has no nonce that moves would wait behind
    else:
        assert (shop.order(withdrawal).state, shop.order(withdrawal).raw) == ("built", None)
    switch(shop, False)
    shop.nudge()
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid()) == ("confirmed", 25 * 10**16)


def test_thrown_between_signature_and_sending_it_is_kept_back(shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawal = shop.withdraw("0.25")
    with monkeypatch.context() as patch:
        assert at_commit(patch, signs, lambda: switch(shop, True), after=True) is not None
        shop.turn()
    shop.mine(2)
    shop.wait(600)
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid()) == ("broadcasting", 0)
    switch(shop, False)
    shop.turn()
    shop.mine()
    shop.turn()
    assert (shop.withdrawal(withdrawal)["status"], shop.paid(), kms.calls["Sign"]) == ("confirmed", 25 * 10**16, 1)


def test_what_is_out_is_followed_and_not_replaced(shop: Shop, kms: Kms) -> None:
    """One is in a block when it is thrown, one waits in the mempool for longer than anything is left to wait."""
    mined = shop.withdraw("0.25")
    shop.turn()
    shop.mine(1)
    stuck = shop.withdraw("0.125", address=OTHER)
    assert shop.post(f"/v1/sandbox/withdrawals/{stuck}", {"outcome": "stick"}).status == 200
    shop.turn()
    switch(shop, True)
    shop.mine()
    shop.wait(STUCK + 60)
    shop.turn()
    assert (shop.withdrawal(mined)["status"], shop.withdrawal(stuck)["status"]) == ("confirmed", "confirming")
    assert (shop.order(stuck).earlier, kms.calls["Sign"]) == ((), 2)
    switch(shop, False)
    shop.turn()
    assert (len(shop.order(stuck).earlier), kms.calls["Sign"]) == (1, 3)


def test_a_replacement_that_was_asked_for_is_not_made(shop: Shop, kms: Kms) -> None:
    stuck = shop.withdraw("0.125")
    assert shop.post(f"/v1/sandbox/withdrawals/{stuck}", {"outcome": "stick"}).status == 200
    shop.turn()
    shop.wait(STUCK + 60)
    shop.stack.drain(only=(f"poll_{shop.network}",), rounds=1)
    assert shop.order(stuck).renew
    switch(shop, True)
    shop.turn()
    assert (shop.order(stuck).earlier, kms.calls["Sign"]) == ((), 1)


def test_stakes_stop_too(stack: Stack) -> None:
    tron = Shop(stack, network="tron")
    tron.turn()
    switch(tron, True)
    asked = stack.call("POST", "/v1/networks/tron/stake", stack.keys["admin_test"], json={"amount": "1000", "resource": "ENERGY"})
    assert asked.status == 201
    tron.turn()
    assert tron.chain().staked(tron.hot().address) == 0
    switch(tron, False)
    tron.turn()
    tron.mine(19)
    tron.turn()
    (stake,) = services().store.every(Stake)
    assert (stake.status, tron.chain().staked(tron.hot().address)) == ("confirmed", 1000 * 10**6)
