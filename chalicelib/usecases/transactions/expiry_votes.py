"""The nodes that have to say that a transaction has expired, for a function that signs and does not poll (money rule 13)."""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId
from chalicelib.usecases.transactions.finality import Finality
from chalicelib.usecases.transactions.losses import has_nonces
from chalicelib.usecases.transactions.node_votes import NodeVotes

EveryNode = Callable[[Network, AssetId, int], bool]
"""Whether every node has to, also one that has no vote, where so many units of a coin are at stake."""


class Hearings:
    def __init__(self, votes_of: Callable[[Network], NodeVotes], finality_of: Callable[[Network], Finality]) -> None:
        self._votes_of, self._finality_of = votes_of, finality_of

    def every_node(self, network: Network, asset: AssetId, units: int) -> bool:
        """As `EveryNode`; takes the votes as the polls have stored them. Raises Unavailable."""
        if has_nonces(network):
            return True  # nobody is asked
        self._votes_of(network).know()
        return self._finality_of(network).every_node(asset, units)
