"""A second reader of Tron that disagrees."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from chalicelib.chains.tron.second_reader import TronSecondReader
from chalicelib.usecases.ports.second_reader import Built, Order, Reading

Fault = Literal["digest", "unknown field"]
FAULTS: tuple[Fault, ...] = ("digest", "unknown field")


def disagree(patch: pytest.MonkeyPatch, fault: Fault) -> list[Order]:
    """Let Tron's second reader make another digest, or find an unknown field in signed bytes. The orders that it is asked about."""
    asked: list[Order] = []
    built, read = TronSecondReader.built, TronSecondReader.read

    def built_otherwise(self: TronSecondReader, order: Order) -> Built:
        asked.append(order)
        made = built(self, order)
        return replace(made, digests=(b"\7" * 32,)) if fault == "digest" else made

    def read_otherwise(self: TronSecondReader, order: Order, raw: str) -> Reading:
        found = read(self, order, raw)
        return found | {"raw, unknown field 100": True} if fault == "unknown field" else found

    patch.setattr(TronSecondReader, "built", built_otherwise)
    patch.setattr(TronSecondReader, "read", read_otherwise)
    return asked
