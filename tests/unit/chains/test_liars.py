"""Of three nodes one lies: two that agree are believed, wherever in the order the liar is."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health
from chalicelib.chains.quorum import QuorumReader
from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.usecases.ports.failures import Unavailable

LIAR_FIRST, LIAR_SECOND = (9, 5, 5), (5, 9, 5)
NOBODY_ALIKE = (9, 5, 7)


class Coins(UtxoPayer):
    """A payer whose nodes are what they say that an output has."""

    def __init__(self, *nodes: int) -> None:
        self._network: Any = SimpleNamespace(id="live:bitcoin", slug="bitcoin")
        self._rpc: Any = nodes[0]
        self._each: Any = nodes

    def _unspent_at(self, node: Any, outpoints: Any, mempool: bool) -> list[Unspent | None]:
        return [Unspent(name, "a", node, 7) for name in outpoints]


@dataclass
class Told:
    """A reader of a node that says so of every balance but the second, of which all say the same."""

    units: int
    traces: bool | None = True

    def balances_at(self, addresses: Any, number: int, block_hash: str, contract: str | None = None) -> list[int]:
        return [self.units, 1]

    def nonces(self, addresses: Any) -> list[int]:
        return [self.units]


def readers(*units: int) -> QuorumReader:
    network: Any = SimpleNamespace(id="live:ethereum", block_time=12, agreement_usd=None)
    told: Any = [Told(each) for each in units]
    return QuorumReader(network, [NodeReader(reader, Health(n)) for n, reader in enumerate(told, 1)])


@pytest.mark.parametrize("nodes", [LIAR_FIRST, LIAR_SECOND])
def test_two_that_agree_are_believed(nodes: tuple[int, ...]) -> None:
    assert [coin and coin.amount for coin in Coins(*nodes).vouched_unspent(["00:0"])] == [5]
    assert readers(*nodes).balances_at(["0x1", "0x2"], 1, "h") == [5, 1]


@pytest.mark.parametrize("nodes", [NOBODY_ALIKE, NOBODY_ALIKE[:2]])
def test_nobody_is_where_no_two_do(nodes: tuple[int, ...]) -> None:
    with pytest.raises(Unavailable):
        Coins(*nodes).vouched_unspent(["00:0"])
    with pytest.raises(Unavailable):
        readers(*nodes).balances_at(["0x1", "0x2"], 1, "h")


def test_a_single_node_is_all_there_is() -> None:
    assert [coin and coin.amount for coin in Coins(5).vouched_unspent(["00:0"])] == [5]
