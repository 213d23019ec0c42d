"""Fees, and what a node's words mean."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.fees import MULTIPLIERS, Fees, credible, fees_for, gas_limit, replacing
from chalicelib.chains.evm.receipts import first_log
from chalicelib.chains.evm.refusals import known_already, not_taken, would_fail
from chalicelib.chains.rpc import RpcError

GWEI = 10**9


def test_multipliers_are_the_published_ones() -> None:
    assert {priority: float(factor) for priority, factor in MULTIPLIERS.items()} == {
        "low": 0.8,
        "normal": 1.0,
        "high": 1.5,
        "urgent": 2.0,
    }


def test_fees_of_a_chain_with_a_base_fee() -> None:
    assert fees_for("ethereum", "normal", 10 * GWEI, 2 * GWEI) == Fees(max_fee=22 * GWEI, tip=2 * GWEI)
    assert fees_for("ethereum", "urgent", 10 * GWEI, 2 * GWEI) == Fees(max_fee=24 * GWEI, tip=4 * GWEI)
    # Rounded up, so that a tip of one wei stays one.
    assert fees_for("ethereum", "low", 7, 1) == Fees(max_fee=15, tip=1)
    assert fees_for("arbitrum", "high", 10**7, 0) == Fees(max_fee=2 * 10**7, tip=0)


def test_fees_of_a_chain_without_a_base_fee() -> None:
    assert fees_for("fantom", "high", None, 100 * GWEI) == Fees(max_fee=150 * GWEI, tip=None)


def test_a_low_priority_stays_above_what_the_network_drops() -> None:
    assert fees_for("polygon", "low", 0, 30 * GWEI).tip == 30 * GWEI
    assert fees_for("polygon", "low", 0, 100 * GWEI).tip == 80 * GWEI
    assert fees_for("bsc", "low", 0, GWEI // 10).tip == GWEI // 10


def test_a_replacement_pays_an_eighth_more_of_both_prices() -> None:
    """Geth wants a tenth more of each (core/txpool/legacypool, list.go), bor and some others an eighth."""
    old = Fees(max_fee=22 * GWEI + 1, tip=2 * GWEI)
    assert replacing(old, Fees(GWEI, GWEI // 10)) == Fees(24_750_000_002, 2_250_000_000)
    assert replacing(old, Fees(100 * GWEI, 3 * GWEI)) == Fees(100 * GWEI, 3 * GWEI)
    # A price of nothing, or of one wei, is raised too.
    assert replacing(Fees(1, 0), Fees(0, 0)) == Fees(2, 1)
    # What was legacy stays legacy, though the chain has a base fee by now; and the other way round.
    assert replacing(Fees(8, None), Fees(100, 3)) == Fees(100, None)
    assert replacing(Fees(800, 80), Fees(100, None)) == Fees(900, 90)


def test_gas_limits() -> None:
    assert gas_limit(21_000, None, 150_000) == gas_limit(21_000, 21_000, 150_000) == 21_000
    assert gas_limit(50_001, 21_000, 150_000) == 60_002
    assert gas_limit(21_001, 100_000, 150_000) == 100_000
    # A floor above what a payment may take would fail every one of them.
    assert gas_limit(21_000, 100_000_000, 150_000) == 150_000
    assert gas_limit(200_000, None, 150_000) == 240_000


def test_fees_that_no_transfer_costs() -> None:
    assert credible("ethereum", 100_000 * 500 * GWEI)
    assert not credible("ethereum", 10**18)
    assert credible("polygon", 10**18)


# Words of geth, bor, erigon, nethermind, besu, nitro and anvil, from their sources.
KNOWN = [
    "already known", "ALREADY_EXISTS: already known", "AlreadyKnown", "transaction already imported", "known transaction: 0xab",
    "Known transaction",
]  # fmt: skip
NOT_TAKEN = [
    "nonce too low", "nonce too low: next nonce 5, tx nonce 4", "OldNonce", "Nonce too low", "INTERNAL_ERROR: insufficient funds",
    "insufficient funds for gas * price + value", "Insufficient funds for gas * price + value", "transaction underpriced",
    "transaction underpriced: gas tip cap 1, minimum needed 25000000000", "replacement transaction underpriced",
    "could not replace existing tx", "ReplacementNotAllowed", "Replacement fee too low: same nonce",
    "intrinsic gas too low", "exceeds block gas limit", "max fee per gas less than block base fee", "invalid chain id for signer",
    "tx fee (1.50 ether) exceeds the configured cap (1.00 ether)", "FeeTooLow, EffectivePriorityFeePerGas too low",
]  # fmt: skip
UNDECIDED = [
    "internal error", "txpool is full", "nonce too high", "request timed out", "header not found", "missing trie node 0xab",
    "too many requests", "the method eth_sendRawTransaction does not exist/is not available", "unauthorized", "",
]  # fmt: skip
WOULD_FAIL = [
    "execution reverted", "execution reverted: sender is blacklisted", "VM execution error.", "gas required exceeds allowance (0)",
    "insufficient funds for transfer", "out of gas", "invalid opcode: INVALID", "EVM error: StackUnderflow", "EVM error OutOfFunds",
]  # fmt: skip


@pytest.mark.parametrize("words", KNOWN)
def test_known_already(words: str) -> None:
    assert known_already(RpcError(-32000, words))
    assert not not_taken(RpcError(-32000, words))


@pytest.mark.parametrize("words", NOT_TAKEN)
def test_not_taken(words: str) -> None:
    error = RpcError(-32000, words)
    assert not_taken(error)
    assert not known_already(error)


@pytest.mark.parametrize("words", UNDECIDED)
def test_what_is_not_understood_decides_nothing(words: str) -> None:
    error = RpcError(-32000, words)
    assert not known_already(error)
    assert not not_taken(error)
    assert not would_fail(error)


@pytest.mark.parametrize("words", WOULD_FAIL)
def test_would_fail(words: str) -> None:
    assert would_fail(RpcError(-32000, words))


def test_geths_code_for_a_revert() -> None:
    assert would_fail(RpcError(3, "custom error 0x12345678"))


@pytest.mark.parametrize(
    ("numbers", "first"), [(["0x4"], 4), (["0x4", "0x5", "0x6"], 4), (["0x6", "0x4", "0x5"], 4)], ids=["one", "some", "unsorted"]
)
def test_where_the_logs_of_a_transaction_begin(numbers: list[str], first: int) -> None:
    assert first_log({"logs": [{"logIndex": number} for number in numbers]}) == first


@pytest.mark.parametrize(
    "logs", [[], None, [{}], [{"logIndex": "0x4"}, {"logIndex": "0x6"}], [{"logIndex": "0x4"}, {"logIndex": "0x4"}]]
)
def test_logs_that_do_not_follow_one_another_tell_no_beginning(logs: Any) -> None:
    """One between others is missing: the place of those behind it would be another log's."""
    with pytest.raises(Garbled):
        first_log({"logs": logs})
