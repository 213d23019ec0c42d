"""Metadata of an EIP-20 contract: symbol, name, decimals.

Symbol and name are strings by EIP-20, and bytes32 in tokens that are older than it (MKR, SAI).
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.chains.abi import DECIMALS_SELECTOR, NAME_SELECTOR, SYMBOL_SELECTOR, number_of, text_of
from chalicelib.chains.answers import Garbled
from chalicelib.chains.evm.faces import is_face
from chalicelib.chains.evm.quantities import data, quantity
from chalicelib.chains.evm.refusals import would_fail
from chalicelib.chains.rpc import Request, RpcError, Transport
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.tokens import NoToken, TokenFacts


class EvmTokens:
    """Implements `usecases.ports.tokens.TokenReader` over one node."""

    def __init__(self, network: Network, rpc: Transport) -> None:
        self._network, self._rpc = network, rpc

    def facts(self, contract: str) -> TokenFacts:
        """Symbol, name and decimals of `contract` at the newest block, in two round trips. Raises NoToken, Unavailable."""
        try:
            chain_id, code = self._rpc.batch([("eth_chainId", []), ("eth_getCode", [contract, "latest"])])
            if quantity(chain_id, "the chain id") != self._network.chain_id:
                raise Garbled("the node is on another chain")
            if not data(code, "a contract's code"):
                raise NoToken("there is no contract at this address")
            answers = self._rpc.batch(
                [_call(contract, selector) for selector in (SYMBOL_SELECTOR, NAME_SELECTOR, DECIMALS_SELECTOR)]
            )
            symbol, name, decimals = (data(answer, "a call's result") for answer in answers)
        except Garbled as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error
        except RpcError as error:
            if would_fail(error):
                raise NoToken("it does not answer symbol, name and decimals") from error
            raise Unavailable(f"{self._network.slug}: {error}") from error
        return TokenFacts(text_of(symbol, "symbol"), text_of(name, "name"), number_of(decimals))

    def is_native_face(self, contract: str, decimals: int, holders: Sequence[str]) -> bool | None:
        """See the port: by balances at the newest block (`faces`). Raises NoToken, Unavailable."""
        try:
            return is_face(self._rpc, contract, decimals, self._network.decimals, holders)
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error


def _call(contract: str, selector: bytes) -> Request:
    return "eth_call", [{"to": contract, "data": "0x" + selector.hex()}, "latest"]
