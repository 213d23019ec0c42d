"""What real contracts say of themselves, and what contracts say that are no tokens."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest

from chalicelib.chains.abi import text_of
from chalicelib.chains.evm.tokens import EvmTokens
from chalicelib.chains.rpc import JsonRpc
from chalicelib.usecases.catalogue.coins import facts_problem
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.tokens import NoToken, TokenFacts
from infra.local.tokens import deploy, encode, mined, send
from tests.nodes.conftest import Chain

pytestmark = pytest.mark.nodes


def answering(rpc: JsonRpc, answer: bytes) -> str:
    """A contract that answers every call with the same bytes; its address.

    By hand, from the EVM's opcodes (ethereum.github.io/yellowpaper, appendix H): both its constructor and its code copy what
    stands behind them into memory and return it. PUSH2 size, DUP1, PUSH1 12, PUSH0 (as PUSH1 0), CODECOPY, PUSH1 0, RETURN.
    """

    def returning(tail: bytes) -> bytes:
        return b"\x61" + len(tail).to_bytes(2) + b"\x80\x60\x0c\x60\x00\x39\x60\x00\xf3" + tail

    receipt = mined(rpc, send(rpc, None, data="0x" + returning(returning(answer)).hex()))
    assert receipt["status"] == "0x1"
    return str(receipt["contractAddress"])


def test_strings_and_bytes32(chain: Chain) -> None:
    tokens = EvmTokens(chain.network, chain.rpc)
    assert tokens.facts(chain.usdt) == TokenFacts("USDT", "Tether USD", 6)
    assert tokens.facts(chain.usdc) == TokenFacts("USDC", "USD Coin", 6)
    old = deploy(chain.rpc, "OldToken", b"MKR", "Maker", 18)
    assert tokens.facts(old) == TokenFacts("MKR", "Maker", 18)
    odd = deploy(chain.rpc, "StandardToken", "USD₮0", "A name of more than thirty-two bytes, in two words", 0)
    assert tokens.facts(odd) == TokenFacts("USD₮0", "A name of more than thirty-two bytes, in two words", 0)


def test_bytes32_by_hand_is_symbol_name_and_a_number_that_no_coin_can_have(chain: Chain) -> None:
    facts = EvmTokens(chain.network, chain.rpc).facts(answering(chain.rpc, b"MKR".ljust(32, b"\0")))
    assert (facts.symbol, facts.name) == ("MKR", "MKR")
    assert facts_problem(facts) == "its decimals are more than 36"


def test_what_is_no_token(chain: Chain) -> None:
    tokens = EvmTokens(chain.network, chain.rpc)
    nonsense = {
        "no contract": "0x" + secrets.token_hex(20),
        "symbol, name": deploy(chain.rpc, "Relay"),
        "has no symbol": answering(chain.rpc, b""),
        "is no string": answering(chain.rpc, b"\x01" * 64),
        "is no text": answering(chain.rpc, b"\xff" * 32),
        "too long": answering(chain.rpc, b"\0" * 5000),
        "no decimals": answering(chain.rpc, encode(("AB",))),
    }
    for words, contract in nonsense.items():
        with pytest.raises(NoToken, match=words):
            tokens.facts(contract)


def test_a_node_of_another_chain_is_not_believed(chain: Chain) -> None:
    with pytest.raises(Unavailable):
        EvmTokens(replace(chain.network, chain_id=56), chain.rpc).facts(chain.usdt)


@pytest.mark.parametrize(
    "answer",
    [b"\0" * 31, b"\0" * 63, (64).to_bytes(32) + b"\0" * 64, (32).to_bytes(32) + (2**255).to_bytes(32) + b"\0" * 32,
     (32).to_bytes(32) + (33).to_bytes(32) + b"x" * 32],
    ids=["short", "half a head", "another offset", "a huge length", "longer than it is"],
)  # fmt: skip
def test_strings_that_the_abi_does_not_know(answer: bytes) -> None:
    with pytest.raises(NoToken):
        text_of(answer, "symbol")


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (TokenFacts("", "Name", 1), "its symbol is empty"),
        (TokenFacts("  ", "Name", 1), "its symbol is empty"),
        (TokenFacts("S" * 33, "Name", 1), "its symbol has more than 32 characters"),
        (TokenFacts("A\0B", "Name", 1), "its symbol has characters that can not be shown"),
        (TokenFacts("\u202eTDSU", "Name", 1), "its symbol has characters that can not be shown"),
        (TokenFacts("A", "N" * 101, 1), "its name has more than 100 characters"),
        (TokenFacts("A", "Name\n", 1), "its name has characters that can not be shown"),
        (TokenFacts("A", "Name", 37), "its decimals are more than 36"),
        (TokenFacts("A", "Name", 36), None),
    ],
)
def test_what_can_not_be_shown_or_counted_with(facts: TokenFacts, problem: str | None) -> None:
    assert facts_problem(facts) == problem
