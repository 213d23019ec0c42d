"""A merchant on a simulated bitcoin whose node has a mempool in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.domain.chain import Block, Transfer, Unmined
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.wiring import services
from tests.support.shop import Node, Shop

SATOSHIS = 10**8
CONFIRMATIONS = 6


class Pool:
    """A mempool in memory; `asked` counts the transactions that were fetched.

    `spends` and `replaceable` are of what may wait or be mined; `spent` are the outputs that blocks have spent.
    """

    def __init__(self) -> None:
        self.held: dict[str, list[Transfer]] = {}
        self.spends: dict[str, tuple[str, ...]] = {}
        self.replaceable: set[str] = set()
        self.spent: set[str] = set()
        self.asked: list[str] = []
        self.away = self.silent = False

    def waiting(self) -> frozenset[str]:
        if self.away:
            raise Unavailable("the mempool can not be read")
        return frozenset(self.held)

    def transactions(self, txids: Sequence[str]) -> list[Unmined]:
        self.asked += txids
        held = [txid for txid in txids if txid in self.held]
        return [Unmined(txid, self.held[txid], self.spends.get(txid, ()), txid in self.replaceable) for txid in held]

    def ousted(self, spends: Mapping[str, Sequence[str]]) -> set[str]:
        if self.silent:
            raise Unavailable("outputs can not be asked for")
        gone = self.spent | {each for txid in self.held for each in self.spends.get(txid, ())}
        return {txid for txid, outpoints in spends.items() if gone & set(outpoints)} - set(self.held)


class Coins:
    """A merchant on a simulated bitcoin whose node has a mempool."""

    def __init__(self, shop: Shop, node: Node, pool: Pool) -> None:
        self.shop, self.node, self.pool = shop, node, pool
        self.mined: dict[str, list[Transfer]] = {}
        node.bend(blocks=self._blocks, proven=lambda real, block, asked: [*real, *(t for t in asked if t in self._in(block.hash))])

    def _in(self, block_hash: str) -> list[Transfer]:
        return self.mined.get(block_hash, [])

    def _blocks(self, real: list[Block], *_: Any) -> list[Block]:
        return [replace(b, transfers=[*b.transfers, *self._in(b.hash)]) for b in real]

    def send(
        self, address: str, amount: int, txid: str = "ab" * 32, place: int = 0, spends: tuple[str, ...] = (), replaces: str = ""
    ) -> Transfer:
        """A transaction comes into the mempool, in the place of `replaces`."""
        self.pool.held.pop(replaces, None)
        sent = Transfer(txid, f"out:{place}", None, "", address, amount)
        self.pool.held.setdefault(txid, []).append(sent)
        self.pool.spends[txid] = spends
        return sent

    def mine(self, *sent: Transfer) -> None:
        """A block with `sent`, which wait no more."""
        self.shop.mine(1)
        (block,) = self.node._real.blocks(self.node._real.tip(), self.node._real.tip(), {})
        self.mined[block.hash] = list(sent)
        for transfer in sent:
            self.pool.held.pop(transfer.txid, None)
            self.pool.spent |= set(self.pool.spends.get(transfer.txid, ()))

    def look(self) -> None:
        """One poll, and what it has to tell."""
        self.shop.stack.drain(only=("poll_bitcoin", "relay"), rounds=1)

    def record(self, transfer: Transfer) -> Deposit:
        found = services().store.get(Deposit, id=self.id(transfer))
        assert found is not None
        return found

    def id(self, transfer: Transfer) -> str:
        return deposit_id(self.shop.realm_network().id, transfer.txid, transfer.position)

    def told(self, object_id: str) -> list[str]:
        events = self.shop.get("/v1/events", objectId=object_id)["data"]
        return [e["event"] for e in sorted(events, key=lambda e: int(e["sequence"]))]

    def confirm(self) -> None:
        self.shop.mine(CONFIRMATIONS)
        self.look()
