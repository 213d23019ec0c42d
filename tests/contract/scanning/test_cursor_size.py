"""The cursor of a network is one item of DynamoDB, however many confirmations its operator asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import MOST_CONFIRMATIONS, Network
from chalicelib.domain.chain import Cursor
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from tests.support.stack import Stack

ITEM = 400 * 1024
"""docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""
HEIGHT = 10**12 - 1
"""Longer than any chain's height: Arbitrum, the fastest here, has nine digits and gets a tenth in 2030."""


def worth(attributes: dict[str, dict[str, Any]]) -> int:
    """Bytes that DynamoDB counts: names and values in UTF-8; a number is one byte for two digits and one more, at most 21
    (docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html)."""
    sizes = {"S": lambda text: len(text.encode()), "N": lambda _: 21, "BOOL": lambda _: 1}
    return sum(len(name) + sizes[kind](value) for name, typed in attributes.items() for kind, value in typed.items())


def fullest(network: Network) -> Cursor:
    """Everything that a cursor can have, at once: all that it remembers, the note of a reorganisation, a halt, ranges, notes."""
    hashes = {str(n): f"0x{n:064x}" for n in range(HEIGHT - network.reorg_depth - 300, HEIGHT + 1)}
    cursor = Cursor(network.id, HEIGHT - 1, "", 10**13, HEIGHT, 10**13, recent=hashes, epoch=10**9, version=10**9)
    passed = cursor.behind({str(HEIGHT): f"0x{HEIGHT:064x}"}, 10**13, HEIGHT + 10**6, network.reorg_depth, 10**13)
    return replace(passed, rewind_to=HEIGHT, halted="h" * 1_000, ranges_to=HEIGHT, noted_from=1)


@pytest.mark.parametrize("confirmations", [12, MOST_CONFIRMATIONS, 10_000])
def test_a_cursor_with_everything_on_it_fits_in_an_item(stack: Stack, confirmations: int) -> None:
    """10,000 were allowed: 20,001 hashes, 1.7 MB. They may still be stored."""
    store = services().store
    network = replace(services().catalogue("live").networks["arbitrum"], confirmations=confirmations)
    cursor = replace(fullest(network), version=1)
    assert len(cursor.recent) == network.reorg_depth + 1 <= 2 * MOST_CONFIRMATIONS + 1
    item = store.models.item(cursor)
    assert worth(item.serialize()) < 0.9 * ITEM
    store.commit([Save(cursor)])
    assert store.get(Cursor, network=network.id) == cursor
