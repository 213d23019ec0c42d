"""Token contracts of a simulated network: made by developers, and those of the published catalogue, which are there from the start.

A contract is a name in the table and nothing more: each deposit of a token makes its units out of nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from chalicelib.chains.addresses import Rules
from chalicelib.chains.sandbox import session
from chalicelib.chains.sandbox.branch import View
from chalicelib.chains.sandbox.reads import Reads
from chalicelib.chains.sandbox.session import Write
from chalicelib.chains.sandbox.table import Key, Put, SandboxTable
from chalicelib.domain.catalogue.catalogue import Coin, Network, default_coins
from chalicelib.encoding.public_keys import address_of
from chalicelib.usecases.base.address_forms import tokens_by_form
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.tokens import NoToken, TokenFacts


class SandboxTokens:
    """The port TokenReader for a simulated network, and what makes its tokens. Raises ValueError for a live network."""

    def __init__(self, network: Network, table: SandboxTable, clock: Clock) -> None:
        self._reads = Reads(network, table, clock)
        self._network = network

    def make(self, facts: TokenFacts, token: str | None = None) -> str:
        """A new contract; its address in the public spelling. The same `token` means the same contract. Raises Unavailable."""
        seed = f"contract|{self._network.id}|{secrets.token_hex(32) if token is None else token}"
        # Stands for a public key, of which the address is the hash: nobody has a private key to it.
        contract = address_of(self._network.slug, hashlib.sha512(seed.encode()).digest())
        doc = {"symbol": facts.symbol, "name": facts.name, "decimals": facts.decimals}

        def decide(view: View) -> Write | None:
            return None if self._reads.table.get(self._key(contract)) else Write(view.head, [Put(self._key(contract), doc)])

        session.change(self._reads, decide)
        return contract

    def facts(self, contract: str) -> TokenFacts:
        """Symbol, name and decimals of `contract`. Raises NoToken, Unavailable."""
        coin = _published(self._network).get(self._reads.form(contract))
        if coin is not None:
            return TokenFacts(coin.symbol, coin.name, coin.decimals)
        item = self._reads.table.get(self._key(contract))
        if item is None:
            raise NoToken("there is no contract at this address; POST /v1/sandbox/tokens makes one")
        return TokenFacts(item.doc["symbol"], item.doc["name"], item.doc["decimals"])

    def is_native_face(self, contract: str, decimals: int, holders: Sequence[str]) -> bool | None:
        """Never: tokens of a simulated network are kept apart from its own coin."""
        return False

    def _key(self, contract: str) -> Key:
        return _key(self._network, self._reads.form(contract))


def is_contract(reads: Reads, network: Network, address: str) -> bool:
    """Whether a token's contract lies at `address`. Raises Unavailable."""
    form = reads.form(address)
    return form in _published(network) or reads.table.get(_key(network, form)) is not None


def _published(network: Network) -> dict[str, Coin]:
    """The tokens of the published catalogue, by the storage form of their contracts."""
    return tokens_by_form(Rules(), network, [coin for coin in default_coins("test") if coin.network == network.id])


def _key(network: Network, form: str) -> Key:
    return f"token#{network.id}#{form}", "-"
