"""A wallet takes the place of another one: what was begun is finished with the old key, everything new is done with the new one,
and the old one is drained, however often it is replaced and wherever the functions die.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from chalicelib import wiring
from chalicelib.domain.addresses.addresses import Address, Observed, RetiredWallet, Wallet
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import NetworkId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.treasury.moves import Move
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.wallets.lookup import wallet_at
from chalicelib.wiring import services
from infra import cli
from tests.support.cuts import Cutter, Died, install
from tests.support.reconciling import suspected
from tests.support.rotation import BITCOIN, ETHEREUM, drain, replace_hot, replaced, retired
from tests.support.shop import PAYEE, STUCK, Shop, decide, open_shop
from tests.support.stack import Stack

# The first key of anvil and Hardhat; an address of EIP-55's examples.
THIEF_KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
THIEF = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


@pytest.fixture
def plain(stack: Stack) -> Iterator[Shop]:
    """A shop where there is one coin."""
    with open_shop(stack) as opened:
        opened.network = "bitcoin"
        yield opened


def hot(network: NetworkId = ETHEREUM) -> Wallet:
    found = services().store.get(Wallet, network=network, role="hot")
    assert found is not None
    return found


RESEND_SECONDS = 5 * 60
"""Within this time a poll sends again what was signed by a function that died before it sent it."""


def units(address: str, coin: str = "eth") -> int:
    network = ETHEREUM if address.startswith("0x") else BITCOIN
    asset = services().catalogue("test").coins[network.split(":")[1], coin].asset
    found = services().store.get(WalletBalance, network=network, address=address.lower(), asset=asset)
    return 0 if found is None else found.units


def test_what_was_begun_is_finished_with_the_old_key_and_the_rest_is_moved(shop: Shop) -> None:
    old = hot()
    shop.credit("3")
    started = shop.withdraw("1")
    shop.turn()
    assert shop.withdrawal(started)["status"] == "confirming"
    made = replace_hot(shop)
    new = hot()
    assert (new.address, new.custody) == (made, "envelope")
    assert new.address != old.address
    assert wallet_at(services().store, ETHEREUM, old.address) == old
    fresh = shop.withdraw("0.5")
    drain(shop, old.address)
    shop.nudge(125)
    shop.mine()
    shop.turn()
    done, later = shop.withdrawal(started), shop.withdrawal(fresh)
    assert (done["status"], done["from_address"]) == ("confirmed", old.address)
    assert (later["status"], later["from_address"]) == ("confirmed", new.address)
    moved = {(m.asset.rsplit(":", 1)[1], m.kind, m.recipient) for m in services().store.every(Move)}
    assert moved == {(coin, "drain", new.address) for coin in ("eth", "usdt", "usdc", "busd", "dai")}
    assert (units(old.address, "usdt"), units(new.address, "usdt") > 0) == (0, True)
    assert shop.stack.call("DELETE", f"/v1/addresses/{new.address}", shop.stack.keys["admin_test"]).status == 400


# The sweep: the rotation above leaves a begun payment to the old key in the same way, and stays.
@pytest.mark.sweep
def test_a_test_key_replaces_one_and_what_it_began_is_finished(shop: Shop, stack: Stack) -> None:
    old, admin, path = hot(), shop.stack.keys["admin_test"], "/v1/addresses/service-wallets"
    shop.credit("3")
    started = shop.withdraw("1")
    shop.turn()
    made = stack.call("POST", path, admin, {"network": "ethereum", "type": "hot-wallet", "privateKey": THIEF_KEY})
    assert (made.status, made.json["address"], made.json["type"]) == (201, hot().address, "hot")
    assert hot().address != old.address
    fresh = shop.withdraw("0.5")
    drain(shop, old.address)
    shop.nudge(125)
    shop.mine()
    shop.turn()
    done, later = shop.withdrawal(started), shop.withdrawal(fresh)
    assert (done["status"], done["from_address"]) == ("confirmed", old.address)
    assert (later["status"], later["from_address"]) == ("confirmed", hot().address)
    assert (units(old.address, "usdt"), units(hot().address, "usdt") > 0) == (0, True)
    back = stack.call("POST", path, admin, {"network": "ethereum", "type": "hot"})
    assert back.status == 201
    again = stack.call("POST", path, admin, {"network": "ethereum", "type": "hot", "privateKey": THIEF_KEY})
    assert "not used again" in str(again.json)
    drain(shop, made.json["address"])
    assert audit(services().store) == []


def test_what_arrives_later_is_moved_too(plain: Shop) -> None:
    old = hot(BITCOIN)
    replace_hot(plain)
    drain(plain, old.address)
    before = units(hot(BITCOIN).address, "btc")
    plain.pay(old.address, "2", "btc")
    plain.mine()
    plain.turn()
    assert retired(old.address).drained_at is None, "it is open again"
    drain(plain, old.address)
    assert units(hot(BITCOIN).address, "btc") > before + 19 * 10**7


def test_replaced_twice_at_once(plain: Shop) -> None:
    first = hot(BITCOIN)
    before = units(first.address, "btc")
    second = replace_hot(plain)
    plain.turn()
    third = replace_hot(plain)
    drain(plain, first.address, second)
    assert hot(BITCOIN).address == third
    assert units(third, "btc") > before * 99 // 100


def test_an_address_that_was_replaced_does_not_come_back_and_nothing_to_replace_is_said(shop: Shop) -> None:
    key = "2".rjust(64, "0")
    replace_hot(shop, private_key=key)
    with pytest.raises(BusinessRule, match="already"):
        replace_hot(shop, private_key=key)
    replace_hot(shop)
    with pytest.raises(BusinessRule, match="not used again"):
        replace_hot(shop, private_key=key)
    for role, more in (("collector", {}), ("cold", {"address": PAYEE})):
        with pytest.raises(BusinessRule, match="could be replaced"):
            replaced(shop, role, **more)  # type: ignore[arg-type]


def test_a_service_wallets_address_is_not_archived_while_it_has_something(plain: Shop) -> None:
    admin = plain.stack.keys["admin_test"]
    bootstrapped = hot(BITCOIN).address
    first = replace_hot(plain)
    path = f"/v1/addresses/{first}"
    assert plain.stack.call("DELETE", path, admin).json["error"]["code"] == "VALIDATION_ERROR"
    drain(plain, bootstrapped)
    replace_hot(plain)
    assert "not empty" in str(plain.stack.call("DELETE", path, admin).json)
    drain(plain, first)
    assert plain.stack.call("DELETE", path, admin).json["archived"] is True


def test_a_cold_wallet_and_a_collector_are_replaced_too(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    admin = shop.stack.keys["admin_test"]
    for body in ({"type": "cold", "address": PAYEE}, {"type": "collector"}):
        assert shop.stack.call("POST", "/v1/addresses/service-wallets", admin, {"network": "ethereum", **body}).status == 201
    collector = services().store.get(Wallet, network=ETHEREUM, role="collector")
    assert collector is not None
    shop.pay(collector.address, "40", "usdt")
    shop.mine()
    shop.turn()
    words = ["--stage", "local", "rotate", "ethereum", "--realm", "test", "--type"]
    assert cli.main([*words, "cold", "--address", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"]) == 0
    assert cli.main([*words, "tokens_collector", "--merchant", "mch_nobody"]) == 1
    assert cli.main([*words, "tokens_collector"]) == 0
    assert "privateKey" not in capsys.readouterr().out
    assert cli.main([*words, "cold"]) == 1
    assert "required" in capsys.readouterr().err
    assert retired(PAYEE).drained_at is not None, "its owner moves what it has"
    drain(shop, collector.address)
    new = services().store.get(Wallet, network=ETHEREUM, role="collector")
    assert new is not None and units(new.address, "usdt") == 40 * 10**6
    kinds = {move.kind for move in services().store.every(Move)}
    assert kinds == {"topup", "drain"}, "the collector had nothing for the fee"
    (remains,) = retired(collector.address).remains
    assert remains.units == units(collector.address) > 0, "a part of the top-up is not worth its fee"
    shop.pay(collector.address, "0.0015")
    shop.mine()
    shop.turn()
    assert retired(collector.address).drained_at is None
    drain(shop, collector.address)
    assert units(collector.address) < remains.units, "more than two fees of its own coin, less than those of a token"


def test_a_top_up_for_what_is_drained_leaves_the_hot_wallets_floor(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    admin = shop.stack.keys["admin_test"]
    body = {"type": "collector", "network": "ethereum"}
    assert shop.stack.call("POST", "/v1/addresses/service-wallets", admin, body).status == 201
    collector = services().store.get(Wallet, network=ETHEREUM, role="collector")
    assert collector is not None
    shop.pay(collector.address, "40", "usdt")
    shop.mine()
    shop.turn()
    assert cli.main(["--stage", "local", "rotate", "ethereum", "--realm", "test", "--type", "tokens_collector"]) == 0

    def floor(text: str) -> None:
        coin = {"coin": "eth", "network": "ethereum", "hotFloor": text}
        assert shop.stack.call("PUT", "/v1/coins", admin, json=coin).status == 200

    floor("100000000")
    shop.wait(65)
    shop.turn()
    assert not list(services().store.every(Move)) and "units for the fee of its tokens" in caplog.text
    floor("0")
    shop.wait(3_600)
    drain(shop, collector.address)
    assert {move.kind for move in services().store.every(Move)} == {"topup", "drain"}


def test_who_has_an_admin_key_moves_nothing_to_a_wallet_of_theirs(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    """Over HTTP no live wallet is replaced. A first one of its kind is told; nothing goes to it while payments are stopped."""
    admin, path, rich = shop.stack.keys["admin_test"], "/v1/addresses/service-wallets", hot()
    words = ["--stage", "local", "stop-payments", "--realm", "test", "--reason"]
    assert cli.main([*words, "a key is out"]) == 0
    for wanted in ({"type": "hot", "privateKey": THIEF_KEY}, {"type": "cold", "address": THIEF}):
        sent = {"network": "ethereum", "replace": True, **wanted}
        refused = shop.stack.call("POST", path, admin, sent)
        assert (refused.status, refused.json["error"]["details"][0]["field"]) == (400, "replace")
    live, taking = shop.stack.keys["admin_live"], {"network": "ethereum", "type": "hot"}
    assert shop.stack.call("POST", path, live, taking).status == 201
    refused = shop.stack.call("POST", path, live, {**taking, "privateKey": THIEF_KEY})
    assert (refused.status, refused.json["error"]["details"]["field"]) == (400, "type")
    assert hot() == rich
    before = units(rich.address)
    assert shop.stack.call("POST", path, admin, {"network": "ethereum", "type": "cold", "address": THIEF}).status == 201
    (told,) = [line for line in caplog.messages if "cold wallet was registered" in line]
    assert told.startswith(f"ALARM test:ethereum: the cold wallet was registered: {THIEF} (its key: none), by key_")
    assert (
        shop.stack.call("PUT", "/v1/coins", admin, {"coin": "eth", "network": "ethereum", "hotCeiling": "0.000001"}).status == 200
    )
    for _ in range(2):
        shop.turn()
        shop.mine()
    assert cli.main([*words, "the same again, for another reason"]) == 0
    shop.turn()
    (move,) = [move for move in services().store.every(Move) if move.kind == "cold"]
    assert (move.state, move.nonce, units(rich.address), shop.paid(THIEF)) == ("planned", None, before, 0)
    assert cli.main(["--stage", "local", "resume-payments", "--realm", "test"]) == 0
    shop.wait(61)
    shop.turn()
    (move,) = [move for move in services().store.every(Move) if move.kind == "cold"]
    assert move.state == "signed", "now the operator has looked"


def test_a_key_that_somebody_has_replaces_one_by_its_own_word_alone(
    shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = hot()
    words = ["--stage", "local", "rotate", "ethereum", "--realm", "test", "--type", "hot"]
    monkeypatch.setattr("sys.stdin", io.StringIO(THIEF_KEY + "\n"))
    merchant = next(iter(services().store.every(Merchant))).id
    assert cli.main([*words, "--import", "--merchant", merchant]) == 0
    assert hot().address == "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert [a.type for a in services().store.every(Address) if a.address == hot().address] == ["hot"]
    (told,) = [line for line in caplog.messages if "wallet was replaced" in line]
    assert told.startswith("ALARM test:ethereum: the hot wallet was replaced: ")
    assert told.endswith(f"{hot().address} instead of {old.address} (its key was sent), by the command rotate")


def test_what_the_chain_has_is_shown_beside_the_ledger(shop: Shop) -> None:
    shop.turn()
    read = shop.get("/v1/addresses/hot-wallet/ethereum")
    assert read["custody"] == "native" and read["observedAt"] is not None
    assert all(balance["onChainBalance"] == balance["balance"] for balance in read["balances"])
    shop.pay(hot().address, "1.5")
    shop.wait(1)  # a busy machine takes seconds itself
    shop.turn()
    assert services().store.get(Observed, network=ETHEREUM).version == 1, "once a minute"  # type: ignore[union-attr]
    shop.wait(60)
    shop.turn()
    ether = next(b for b in shop.get("/v1/addresses/hot-wallet/ethereum")["balances"] if b["coin"] == "eth")
    assert Decimal(ether["onChainBalance"]) == Decimal(ether["balance"]) + Decimal("1.5")


def test_a_stuck_payment_is_replaced_with_the_old_key(shop: Shop) -> None:
    """What no fee will need is with the new wallet long before; the rest follows when the payment is in a block."""
    old = hot()
    shop.credit("1")
    stuck = shop.withdraw("0.25")
    decide(shop, stuck, "stick")
    shop.turn()
    new = replace_hot(shop)
    shop.wait(STUCK)
    shop.turn()
    order = shop.order(stuck)
    assert (order.wallet, len(order.earlier)) == (old.address, 1)
    drains = [move for move in services().store.every(Move) if move.asset.endswith(":eth")]
    assert [(move.bare, move.recipient) for move in drains] == [(False, new)]
    decide(shop, stuck, "confirm")
    shop.turn()
    drain(shop, old.address)
    shown = shop.withdrawal(stuck)
    assert (shown["status"], shown["from_address"]) == ("confirmed", old.address)


class Writes(Cutter):
    """Counts transactions of the store alone."""

    def around(self, name: str, call: Callable[[], Any], error: Exception) -> Any:
        return super().around(name, call, error) if name == "TransactWriteItems" else call()


def test_wherever_a_rotation_dies_everything_is_moved_and_paid_once(
    plain: Shop, monkeypatch: pytest.MonkeyPatch, stack: Stack
) -> None:
    """A payment is signed and not mined while its wallet is replaced; each write of what follows is the last of its process."""
    old = hot(BITCOIN)
    plain.credit("3", "btc")
    paid = plain.withdraw("1", "btc", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    plain.turn()
    there = units(old.address, "btc")
    begun, cutter = stack.snapshot(), Writes()
    shift = services().clock.shift_ms
    install(cutter, monkeypatch)

    def survive(step: Callable[[], Any]) -> Any:
        for _ in range(2):
            try:
                with cutter.arm():
                    return step()
            except Died:
                wiring.forget()
                services().clock.shift_ms = shift
        raise AssertionError("died twice of one cut")

    def rotate() -> None:
        # The command, given again where it died: the operator looks first whether it was done.
        survive(lambda: None if hot(BITCOIN).address != old.address else replace_hot(plain))
        for _ in range(4):
            survive(lambda: plain.turn(failures="count"))
            plain.mine()

    def check() -> None:
        plain.wait(RESEND_SECONDS)
        drain(plain, old.address)
        assert len(list(services().store.every(RetiredWallet))) == 1
        shown = plain.withdrawal(paid)
        assert (shown["status"], shown["from_address"]) == ("confirmed", old.address)
        fees = there - units(old.address, "btc") - units(hot(BITCOIN).address, "btc")
        moves = list(services().store.every(Move))
        assert sum(m.arrived or 0 for m in moves) == units(hot(BITCOIN).address, "btc")
        assert 0 <= fees < 10**6
        assert audit(services().store) == []

    rotate()
    check()
    count = len(cutter.trace)
    assert count >= 8
    every = 1 if os.environ.get("SWEEP") == "full" else count // 3 + 1
    for at in range(1, count + 1, every):
        stack.restore(begun)
        services().clock.shift_ms = shift
        cutter.set(at, "death", "after" if at % 2 else "before")
        rotate()
        assert cutter.fired
        check()


def test_wherever_the_draining_of_tokens_dies_they_are_moved_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, stack: Stack
) -> None:
    """A collector with tokens and nothing for their fee: a top-up, then the tokens. Each write is the last of its process."""
    admin, path = stack.keys["admin_test"], "/v1/addresses/service-wallets"
    body = {"network": "ethereum", "type": "collector"}
    old = stack.call("POST", path, admin, body).json["address"]
    shop.pay(old, "40", "usdt")
    shop.mine()
    shop.turn()
    replaced(shop, "collector")
    begun, cutter, shift = stack.snapshot(), Writes(), services().clock.shift_ms
    install(cutter, monkeypatch)

    def run() -> None:
        for _ in range(3):
            try:
                with cutter.arm():
                    shop.turn(failures="count")
            except Died:
                wiring.forget()
                services().clock.shift_ms = shift
            shop.mine()

    def check() -> None:
        shop.wait(65)  # a lost command is given again
        drain(shop, old)
        new = services().store.get(Wallet, network=ETHEREUM, role="collector")
        assert new is not None and units(new.address, "usdt") == shop.paid(new.address, "usdt") == 40 * 10**6
        assert sorted(move.kind for move in services().store.every(Move)) == ["drain", "topup"]
        assert units(old) == shop.paid(old) and audit(services().store) == [] == suspected(shop)

    run()
    check()
    count = len(cutter.trace)
    assert count >= 8
    every = 1 if os.environ.get("SWEEP") == "full" else count // 2 + 1
    for at in range(2, count + 1, every):
        stack.restore(begun)
        services().clock.shift_ms = shift
        cutter.set(at, "death", "after" if at % 2 else "before")
        run()
        assert cutter.fired
        check()
