"""What TRC-20 contracts say of themselves, asked of the strict node."""

from __future__ import annotations

import pytest

from chalicelib.chains.tron.reader import MAINNET
from chalicelib.chains.tron.tokens import TronTokens
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.tokens import NoToken, TokenFacts
from tests.support.tron_chain import USDT, TronChain, stranger

pytestmark = pytest.mark.nodes


def test_a_token_says_what_it_is(tron: TronChain):
    assert tron.tokens.facts(USDT) == TokenFacts("USDT", "Tether USD", 6)
    old = tron.node.token(symbol="OLD", name="Old Token", decimals=18, symbol_bytes32=True)
    assert tron.tokens.facts(old) == TokenFacts("OLD", "Old Token", 18)


def test_what_is_no_token(tron: TronChain):
    with pytest.raises(NoToken, match="no contract"):
        tron.tokens.facts(stranger())
    with pytest.raises(NoToken):
        tron.tokens.facts(tron.node.call("dev/passer")["contract"])


def test_another_chains_tokens_are_not_told(tron: TronChain):
    with pytest.raises(Unavailable, match="another chain"):
        TronTokens(tron.network, tron.http, MAINNET).facts(USDT)
    with pytest.raises(Unavailable):
        TronTokens(tron.network, tron.lying("wallet/triggerconstantcontract", lambda a: {}), None).facts(USDT)
