"""Several nodes in front of a shop's network, of which each may lie, lead or be silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chalicelib.chains.node_comparison import NodeReader
from chalicelib.chains.providers import Health
from chalicelib.chains.quorum import QuorumReader
from chalicelib.domain.chain import Receipt
from chalicelib.usecases.ports.failures import Unanswered
from chalicelib.wiring import services
from tests.support.delegating import Delegating
from tests.support.shop import CONFIRMATIONS, Shop

Saying = Callable[[str, Receipt | None], Receipt | None]


@dataclass
class Liar(Delegating):
    """A reader: the real node until `ahead` or `says` is set. Blocks above the real tip are made up."""

    real: Any
    health: Health
    ahead: int = 0
    says: Saying | None = None
    gone: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def tip(self) -> int:
        self._ask()
        return int(self.real.tip()) + self.ahead

    def _ask(self) -> None:
        """As `chains.providers.Heard` does it with a transport."""
        if self.gone:
            self.health.unheard()
            raise Unanswered("gone")
        self.health.heard()

    def block_hash(self, number: int) -> str | None:
        found: str | None = self.real.block_hash(number)
        return found if found is not None or not self.ahead else f"0x{number:064x}"

    def receipt(self, txid: str) -> Receipt | None:
        self._ask()
        real: Receipt | None = self.real.receipt(txid)
        return real if self.says is None else self.says(txid, real)


@dataclass
class Nodes:
    real: Any
    all: list[Liar]

    @property
    def liar(self) -> Liar:
        return self.all[-1]


def behind(shop: Shop, patch: pytest.MonkeyPatch, count: int, agreement: int | None = 1_000) -> Nodes:
    """Let the shop's network be read through `count` nodes."""
    wired = services()
    network = replace(shop.realm_network(), agreement_usd=agreement)
    real, old = wired.reader(network), wired.reader
    nodes = Nodes(real, [Liar(real, Health(n)) for n in range(1, count + 1)])
    seen: list[Any] = [NodeReader(node, node.health) for node in nodes.all]  # type: ignore[arg-type]
    reader: Any = QuorumReader(network, seen) if count > 1 else nodes.liar
    patch.setattr(wired.wiring.chains, "reader", lambda asked: reader if asked.id == network.id else old(asked))
    judge = wired.finality
    patch.setattr(wired.wiring.transactions, "finality", lambda asked: judge(network if asked.id == network.id else asked))
    return nodes


def failing(nodes: Nodes) -> Saying:
    """Failed, in a block that was scanned and is as deep as is asked for."""

    def says(txid: str, real: Receipt | None) -> Receipt | None:
        number = nodes.real.tip() - CONFIRMATIONS if real is None else real.block_number
        return Receipt(txid, False, number, nodes.real.block_hash(number), 0)

    return says
