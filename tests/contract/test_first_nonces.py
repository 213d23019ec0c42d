"""The nonce that an address begins with: one node's wrong word blocks nothing for good, and never silently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from tests.contract.test_collection import later, moves, only, pay, settings, settle
from tests.support.shop import Shop, open_shop


@pytest.fixture
def shop(stack) -> Iterator[Shop]:
    with open_shop(stack) as found:
        yield found


class Liar:
    """What the nodes of a network say of the transactions of every address but one, while they lie: as many as there are nodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, honest: str) -> None:
        self.words: tuple[int, ...] | None = None
        real = SandboxPayer.told_nonces

        def told(payer: SandboxPayer, address: str) -> tuple[int, ...]:
            return real(payer, address) if self.words is None or address.lower() == honest.lower() else self.words

        monkeypatch.setattr(SandboxPayer, "told_nonces", told)


def alarms(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("ALARM")]


def test_a_deposit_address_waits_with_an_alarm_while_nodes_differ_or_all_say_it_was_used(shop, monkeypatch, caplog):
    settings(shop, "eth", collectThreshold="0")
    nodes = Liar(monkeypatch, shop.hot().address)
    for words, said in (((0, 7), "the nodes differ"), ((7, 7), "none of them is ours")):
        nodes.words = words
        caplog.clear()
        pay(shop, "5", "eth") if words == (0, 7) else later(shop, 60)
        (sweep,) = moves("sweep")
        assert sweep.state == "planned" and sweep.nonce is None and any(said in one for one in alarms(caplog))
    nodes.words = None
    later(shop, 60)
    settle(shop)
    assert only(shop)["status"] == "swept" and moves("sweep")[0].nonce == 0
