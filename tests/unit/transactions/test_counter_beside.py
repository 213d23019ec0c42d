"""The counter of a wallet, and what is asked of its next nonce at the same time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.domain.withdrawals.withdrawals import NonceCounter
from chalicelib.usecases.ports.failures import Refused, Unavailable
from chalicelib.usecases.transactions.first_nonce import NonceUnsure, counter_beside

NETWORK = next(network for network in default_networks("live") if network.slug == "ethereum")


@dataclass
class World:
    """A store and a payer: what is counted, and what the nodes say."""

    counter: NonceCounter | None
    used: int = 0
    told: tuple[int | None, ...] = (0, 0)
    asked: list[int] = field(default_factory=list)
    barrier: threading.Barrier | None = None

    def get(self, kind: type, **key: Any) -> NonceCounter | None:
        return self.counter

    def next_nonce(self, address: str) -> int:
        self._meet()
        return self.used

    def told_nonces(self, address: str) -> tuple[int | None, ...]:
        return self.told

    def ask(self, nonce: int) -> str:
        self.asked.append(nonce)
        self._meet()
        return f"bytes of {nonce}"

    def _meet(self) -> None:
        if self.barrier is not None:
            self.barrier.wait()

    def beside(self) -> tuple[NonceCounter, Any]:
        parts: Any = self
        return counter_beside(parts, NETWORK, parts, "0xa", self.ask)


def counted(following: int) -> NonceCounter:
    return NonceCounter(NETWORK.id, "0xa", following, version=1)


def test_both_are_asked_at_the_same_time() -> None:
    counter, told = World(counted(7), used=7, barrier=threading.Barrier(2, timeout=10)).beside()
    assert (counter.next, told()) == (7, "bytes of 7")


def test_where_the_chain_is_ahead_nothing_that_was_built_counts() -> None:
    world = World(counted(7), used=8)
    with pytest.raises(Unavailable, match="ahead of the nonces"):
        world.beside()


def test_where_the_chain_is_ahead_a_refusal_does_not_count_either() -> None:
    """It would end the payment and give the money back, which is perhaps paid."""

    class Refusing(World):
        def ask(self, nonce: int) -> str:
            raise Refused("it would fail")

    with pytest.raises(Unavailable, match="ahead of the nonces"):
        Refusing(counted(7), used=8).beside()
    _, told = Refusing(counted(7), used=7).beside()
    with pytest.raises(Refused):
        told()


def test_a_first_nonce_is_agreed_before_anything_is_asked_of_it() -> None:
    world = World(None, told=(3, 4))
    with pytest.raises(NonceUnsure):
        world.beside()
    assert world.asked == []
    counter, told = World(None, told=(3, 3)).beside()
    assert (counter.next, told()) == (3, "bytes of 3")
