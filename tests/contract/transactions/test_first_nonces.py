"""The nonce that an address begins with: one node's wrong word blocks nothing for good, and never silently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.treasury.topups import PayerShort, TopUps
from chalicelib.wiring import services
from infra.cli import main
from tests.support.collected_deposits import go, later, listed, moves, only, pay, settings, settle
from tests.support.shop import Shop, open_shop


@pytest.fixture
def shop(stack) -> Iterator[Shop]:
    with open_shop(stack) as found:
        yield found


class Liar:
    """What the nodes of a network say of the transactions of every address but one, while they lie: as many as there are nodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, honest: str) -> None:
        self.words: tuple[int | None, ...] | None = None
        real = SandboxPayer.told_nonces

        def told(payer: SandboxPayer, address: str) -> tuple[int | None, ...]:
            return real(payer, address) if self.words is None or address.lower() == honest.lower() else self.words

        monkeypatch.setattr(SandboxPayer, "told_nonces", told)


def alarms(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("ALARM")]


def test_a_deposit_address_waits_with_an_alarm_while_nodes_differ_or_all_say_it_was_used(shop, monkeypatch, caplog):
    settings(shop, "eth", collectThreshold="0")
    nodes = Liar(monkeypatch, shop.hot().address)
    for words, said in (((0, 2), "the nodes differ"), ((2, 2), "none of them is ours")):
        nodes.words = words
        caplog.clear()
        pay(shop, "5", "eth") if words == (0, 2) else later(shop, 60)
        (sweep,) = moves("sweep")
        assert sweep.state == "planned" and sweep.nonce is None and any(said in one for one in alarms(caplog))
    # One node alone may say that nothing was sent, where the others are down; that something was, it may not.
    for words, nonce in (((None, 2), None), ((None, 0), 0)):
        nodes.words = words
        later(shop, 60)
        assert moves("sweep")[0].nonce == nonce
    settle(shop)
    assert only(shop)["status"] == "swept" and moves("sweep")[0].nonce == 0


def fill(address: str, *more: str) -> int:
    return main(["--stage", "local", "fill-nonces", "--realm", "test", "--network", "ethereum", "--address", address, *more])


def test_a_gap_is_an_alarm_and_an_operator_fills_it(shop, monkeypatch, caplog, capsys):
    settings(shop, "eth", collectThreshold="0")
    hot, nodes = shop.hot().address, Liar(monkeypatch, "")
    nodes.words = (2, 2)
    shop.credit("3")
    first = shop.withdraw("0.5")
    shop.turn()
    (address,) = {move.source for move in moves("sweep")}
    assert fill(address, "--accept") == 0 and fill(address, "--accept") == 1
    nodes.words = None
    later(shop, 3600)
    later(shop, 3600)
    (sweep,) = moves("sweep")
    assert (shop.order(first).nonce, sweep.nonce, sweep.state) == (2, 2, "signed")
    said = [one.getMessage() for one in caplog.records if "which nothing has" in one.getMessage()]
    assert {hot in one for one in said} == {True, False} and all("the chain waits for 0" in one for one in said)
    assert fill(hot) == 0 and fill(hot) == 0
    go(shop)
    settle(shop, 2)
    with monkeypatch.context() as short:
        short.setattr(TopUps, "plan", Mock(side_effect=PayerShort(1, 2)))
        assert fill(address) == 1 and "has 1 of 2 units" in capsys.readouterr().err
    assert len(moves("filler")) == 2
    assert fill(address) == 0
    go(shop)
    settle(shop, 2)  # the top-up for their fees is there
    later(shop, 60)
    settle(shop, 2)
    assert shop.withdrawal(first)["status"] == "confirmed" and "swept" in {one["status"] for one in listed(shop)}
    assert sorted((move.source, move.nonce) for move in moves("filler")) == sorted((at, n) for at in (hot, address) for n in (0, 1))
    assert audit(services().store) == []
