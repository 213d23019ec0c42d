"""Metadata of a TRC-20 contract: symbol, name, decimals, as EIP-20's."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.chains.abi import DECIMALS_SELECTOR, NAME_SELECTOR, SYMBOL_SELECTOR, number_of, text_of
from chalicelib.chains.answers import Garbled
from chalicelib.chains.rpc import RpcError
from chalicelib.chains.tron.calls import Node, call_failed, constant_call, returned
from chalicelib.chains.tron.reader import MAINNET, header_of
from chalicelib.chains.tron.values import hex_address, row
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.tokens import NoToken, TokenFacts


class TronTokens:
    """Implements `usecases.ports.tokens.TokenReader`. `genesis` as in `TronReader`."""

    def __init__(self, network: Network, node: Node, genesis: str | None = MAINNET) -> None:
        self._network, self._node, self._genesis = network, node, genesis

    def facts(self, contract: str) -> TokenFacts:
        """Symbol, name and decimals of `contract` at the newest block. Raises NoToken, Unavailable."""
        try:
            genesis, account = self._node.batch(
                [
                    ("wallet/getblock", header_of(0)),
                    ("wallet/getcontract", {"value": hex_address(contract), "visible": False}),
                ]
            )
            if self._genesis is not None and row(genesis, "a block").get("blockID") != self._genesis:
                raise Garbled("the node is on another chain")
            if not row(account, "a contract").get("bytecode"):
                raise NoToken("there is no contract at this address")
            return TokenFacts(
                text_of(self._asked(contract, SYMBOL_SELECTOR), "symbol"),
                text_of(self._asked(contract, NAME_SELECTOR), "name"),
                number_of(self._asked(contract, DECIMALS_SELECTOR)),
            )
        except (RpcError, Garbled) as error:
            raise Unavailable(f"{self._network.slug}: {error}") from error

    def is_native_face(self, contract: str, decimals: int, holders: Sequence[str]) -> bool | None:
        """Never: TRX move by transactions of the protocol and by what contracts pay out of their own account; no contract of the
        TVM moves another account's, or logs a Transfer of them."""
        return False

    def _asked(self, contract: str, selector: bytes) -> bytes:
        answer = constant_call(self._node, contract, contract, selector)
        if call_failed(answer) is not None:
            raise NoToken("it does not answer symbol, name and decimals")
        return returned(answer)
