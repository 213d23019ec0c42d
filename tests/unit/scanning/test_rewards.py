"""What a block gives to an address of ours without a transaction: read from the block itself, and told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from chalicelib.chains.evm.parsing import parse_block
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.chain import Block, Reward
from chalicelib.usecases.scanning.rewards import tell_rewards

MINER, STAKER = "0x95222290dd7278aa3ddd389cc1e1d165cc4bafe5", "0xb9d7934878b5fb9610b3fe8a5e441e8fad7e293f"
WITHDRAWAL = {"index": "0x11", "validatorIndex": "0xb0a97", "address": STAKER, "amount": "0xe6b6b2"}
"""As ethereum/execution-apis has it (schemas/withdrawal.yaml); the amount is in gwei (EIP-4895)."""


def block(**more: Any) -> dict[str, Any]:
    names = {"number": "0x7", "hash": "0x" + "aa" * 32, "parentHash": "0x" + "bb" * 32, "timestamp": "0x64"}
    return {**names, "transactions": [], **more}


def test_withdrawals_and_the_fees_of_a_block() -> None:
    read = parse_block(block(miner=MINER.replace("b", "B"), withdrawals=[WITHDRAWAL, {**WITHDRAWAL, "index": "0x12"}]), 7)
    assert (read.transfers, read.rewards) == (
        [],
        [
            Reward("the fees of block 7", MINER, None),
            Reward("withdrawal 17", STAKER, 15_120_050 * 10**9),
            Reward("withdrawal 18", STAKER, 15_120_050 * 10**9),
        ],
    )


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"miner": None, "withdrawals": None},
        {"miner": "nobody"},
        {"withdrawals": [{}]},
        {"withdrawals": 7},
        {"withdrawals": ["0x1"]},
    ],
)
def test_no_scan_waits_for_what_moves_nothing(odd: dict[str, Any]) -> None:
    assert parse_block(block(**odd), 7).rewards == []


def test_what_is_ours_is_told(caplog: pytest.LogCaptureFixture) -> None:
    network = next(network for network in default_networks("live") if network.slug == "ethereum")
    rewards = [Reward("the fees of block 7", MINER, None), Reward("withdrawal 17", STAKER, 5), Reward("coinbase ab", "ltc1x", 9)]
    tell_rewards(network, Block(7, "0xaa", "0xbb", 0, rewards=rewards), {STAKER, MINER})
    told = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in told] == [logging.ERROR] * 2
    for (_, line), words in zip(told, (("fees of block 7", MINER), ("withdrawal 17", STAKER, "5 units")), strict=True):
        assert line.startswith("ALARM live:ethereum: ")
        assert all(word in line for word in words)
