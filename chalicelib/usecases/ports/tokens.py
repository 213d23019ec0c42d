"""Facts of token contracts, as the contracts tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """A contract's own facts. Nobody has checked yet whether they make sense."""

    symbol: str
    name: str
    decimals: int


class NoToken(Exception):
    """There is no token at this address: no contract, or one that does not say what it is. The message says which."""


class TokenReader(Protocol):
    """Tokens of one network, as registering them needs it."""

    def facts(self, contract: str) -> TokenFacts:
        """The facts that `contract` tells of itself. Raises NoToken, Unavailable."""
        ...

    def is_native_face(self, contract: str, decimals: int, holders: Sequence[str]) -> bool | None:
        """Whether the balances of the token `contract`, which has `decimals`, are those of the network's own coin; None where no
        addresses tell it now. `holders` may have native coins. Raises NoToken (it tells no balances), Unavailable.
        """
        ...
