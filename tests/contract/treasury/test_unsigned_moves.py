"""Moves and coin moves that are refused for good before their signature: an operator drops them, and their wallet goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.store.dynamo import DynamoStore
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.usecases.transactions.give_up import NotGivenUp
from chalicelib.wiring import services
from chalicelib.wiring.second_readers import SecondReaders
from infra.cli import main
from tests.contract.treasury.coin_treasury import Treasury
from tests.support.bundles import NETWORK
from tests.support.fake_coins import Differs
from tests.support.shop import Kms, Shop, open_shop
from tests.support.stack import Stack
from tests.support.treasury import altered, move_of, paid_address, plan

REASON = "no token of that kind can be moved"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack, ("1", "eth")) as opened:
        yield opened


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Kms:
    return Kms(monkeypatch)


def give_up(id: str, realm: str = "test", *more: str) -> int:
    return main(["--stage", "local", "give-up", id, "--reason", REASON, "--realm", realm, *more])


def built(shop: Shop, kms: Kms) -> str:
    """A top-up out of the hot wallet that has a nonce, and no signature."""
    address = paid_address(shop, "1", "eth")
    kms.away = True
    name = plan(shop, "topup", "eth", shop.hot().address, address.address, "0.01")
    shop.turn()
    move = move_of(shop, name)
    assert (move.state, move.nonce is not None, move.raw) == ("built", True, None)
    return name


def counter(shop: Shop) -> int:
    found = services().store.get(NonceCounter, network=shop.realm_network().id, wallet=shop.hot().address)
    assert found is not None
    return found.next


@pytest.mark.parametrize("behind", [False, True])
def test_its_nonce_goes_to_the_next_one_or_to_a_filler(
    shop: Shop, kms: Kms, behind: bool, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    name = built(shop, kms)
    nonce = move_of(shop, name).nonce
    waits = shop.withdraw("0.25") if behind else ""
    shop.turn()
    assert give_up(name, "test", "--without", "wd_x") == 1
    assert "--without belongs to a bundle" in capsys.readouterr().err
    assert give_up(name) == 0
    decision, move = services().store.get(GivenUp, id=name), move_of(shop, name)
    assert decision is not None and (decision.kind, decision.state, decision.reason) == ("move", "over", REASON)
    assert (move.state, move.nonce, move.reason) == ("dropped", None, f"given up by {decision.by}: {REASON}")
    assert f"move {name} is dropped, and nothing was signed for it: given up by {decision.by}: {REASON}" in caplog.text
    assert give_up(name) == 1
    assert "was given up before, by " in capsys.readouterr().err
    fillers = [each for each in services().store.every(Move) if each.kind == "filler"]
    assert [each.nonce for each in fillers] == ([nonce] if behind else [])
    assert counter(shop) == nonce + (2 if behind else 0)  # type: ignore[operator]
    assert audit(services().store) == []
    kms.away = False
    waits = waits or shop.withdraw("0.25")
    for _ in range(3):
        shop.nudge()
        shop.mine()
    shop.turn()
    assert shop.withdrawal(waits)["status"] == "confirmed"
    assert audit(services().store) == []


def test_a_signed_move_is_not_dropped_whatever_its_record_says(shop: Shop, kms: Kms) -> None:
    name = built(shop, kms)
    kms.away = False
    with in_realm("test"):
        services().wallet_moves.advance(shop.realm_network().id, name)
    signed = move_of(shop, name)
    assert signed.raw is not None
    altered(shop, name, state="built", raw=None, txid=None)
    with pytest.raises(NotGivenUp, match="was signed, whatever its record says"), in_realm("test"):
        services().unsigned_moves(shop.realm_network()).give_up(name, "an operator", REASON)
    assert give_up(name) == 1 and move_of(shop, name).state == "built"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chalicelib.usecases.transactions.unsigned.signed_before", lambda *_: False)
        assert give_up(name) == 1, "the chain has used its nonce, or the posting is there"
    altered(shop, name, state="signed", raw=signed.raw, txid=signed.txid)


def test_a_nonce_that_was_not_allotted_to_it_is_not_freed(shop: Shop, kms: Kms, capsys: pytest.CaptureFixture[str]) -> None:
    name = built(shop, kms)
    nonce = move_of(shop, name).nonce or 0
    altered(shop, name, nonce=nonce + 1)
    assert give_up(name) == 1
    assert f"was not allotted the nonce {nonce + 1}" in capsys.readouterr().err
    altered(shop, name, nonce=nonce)
    assert give_up(name) == 0


def test_of_a_signature_under_way_and_the_decision_one_is_stored(shop: Shop, kms: Kms, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signer has signed, and stores nothing before the operator has decided."""
    name = built(shop, kms)
    commit, raised = DynamoStore.commit, list[bool]()

    def late(self: DynamoStore, changes: list[object]) -> None:
        saved = [change.record for change in changes if isinstance(change, Save)]
        if not raised and any(isinstance(record, Move) and record.state == "signed" for record in saved):
            raised.append(True)
            services().unsigned_moves(shop.realm_network()).give_up(name, "an operator", REASON)
        commit(self, changes)  # type: ignore[arg-type]

    kms.away = False
    with monkeypatch.context() as patch:
        patch.setattr(DynamoStore, "commit", late)
        with in_realm("test"):
            services().wallet_moves.advance(shop.realm_network().id, name)
    assert raised and (move_of(shop, name).state, move_of(shop, name).raw) == ("dropped", None)
    assert audit(services().store) == []


def test_a_coin_move_is_dropped_and_its_coins_are_moved_anew(anew: Callable[[], Treasury]) -> None:
    treasury = anew()
    first = treasury.plan_only()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecondReaders, "coins", lambda self, network: Differs("order"))
        treasury.reborn()
        with pytest.raises(ReadersDiffer):
            treasury.run()
    assert give_up(first.id, "live") == 0
    dropped = services().store.get(CoinMove, network=NETWORK, id=first.id)
    assert dropped is not None and dropped.state == "dropped" and REASON in str(dropped.reason)
    treasury.whole()
    treasury.reborn()
    second = treasury.plan()
    assert second.id != first.id and set(second.outpoints) >= set(first.outpoints)
    treasury.confirm()
    assert treasury.moves()[-1].state == "settled"
    treasury.whole()


def test_a_signed_coin_move_is_not_dropped_whatever_its_record_says(anew: Callable[[], Treasury]) -> None:
    treasury = anew()
    treasury.plan_only()
    treasury.sign()
    (signed,) = treasury.moves()
    newest = replace(signed.latest, raw=None, txid=None)
    stripped = replace(signed, state="built", newest=newest, booked=0, version=signed.version + 1)
    services().store.commit([Save(stripped)])
    network = services().catalogue("live").networks["litecoin"]
    with pytest.raises(NotGivenUp, match="was signed, whatever its record says"), in_realm("live"):
        services().unsigned_moves(network).give_up(signed.id, "an operator", REASON)
    assert treasury.moves() == [stripped]
