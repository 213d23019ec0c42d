"""Which blocks are final is asked once in a run, however many deposits wait for it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.catalogue.rates import no_rates
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import AssetId
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.scanning.quorum import LargePayments

LITECOIN = next(network for network in default_networks("live") if network.slug == "litecoin")


@pytest.mark.parametrize("away", [False, True])
def test_a_run_asks_once_which_blocks_are_final(away: bool) -> None:
    told: list[str] = []

    class Reader:
        def final(self, tag: str) -> int:
            told.append(tag)
            if away:
                raise Unavailable("no answer")
            return 7

    network = replace(LITECOIN, finality_usd=1, finality_tag="finalized", agreement_usd=None)
    clock = SimpleNamespace(now_ms=lambda: 0)
    context = SimpleNamespace(network=network, reader=Reader(), store=None, clock=clock, coins=lambda: [])
    large = LargePayments(cast(Any, context), no_rates)

    def paid(block: int) -> Deposit:
        return Deposit("d", network.id, AssetId("x"), None, "t", "0", "s", "r", 1, block, "0xb", 0, 0, "pending")  # type: ignore[arg-type]

    for run in (1, 2):
        large.begin()
        assert [large.may_credit(paid(block)) for block in (6, 7, 8)] == ([False] * 3 if away else [True, True, False])
        assert len(told) == run
