"""CPU of making items of records and records of items, beside pynamodb's own way through its descriptors.

Run as a script: ``python tests/bench/bench_items.py``. Wanted: at most 80 % of pynamodb's time for both.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.update({"STAGE": "local"})

from pynamodb.attributes import AttributeContainer
from pynamodb.models import Model

from chalicelib.domain.catalogue.catalogue import Coin
from chalicelib.settings import Settings
from chalicelib.store.models import Record
from chalicelib.wiring import services
from infra.local.aws import start_aws
from tests.support.stack import first_stack

ROUNDS = 200


def milliseconds(act: Callable[[], object]) -> float:
    """CPU of one act, the least of five tries."""
    tries = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(ROUNDS):
            act()
        tries.append((time.process_time() - began) / ROUNDS * 1000)
    return min(tries)


def theirs(kind: type[Record]) -> None:
    """Have the model do as pynamodb does."""
    for name in ("_instantiate", "_set_defaults", "_set_attributes", "_container_serialize"):
        owner = Model if name in Model.__dict__ else AttributeContainer
        setattr(kind, name, owner.__dict__[name])


def main() -> None:
    first_stack(start_aws(Settings.from_environment()))
    models = services().store.models
    coins = list(services().store.every(Coin))
    raw = [models.item(coin).serialize() for coin in coins]
    kind = models.of(Coin)

    def read() -> None:
        for item in raw:
            models.record(Coin, kind.from_raw_data(item))

    def write() -> None:
        for coin in coins:
            models.item(coin).serialize()

    ours = milliseconds(read), milliseconds(write)
    theirs(Record)
    before = milliseconds(read), milliseconds(write)
    for name, mine, was in zip(("read", "write"), ours, before, strict=True):
        print(f"{name} {len(coins)} coins: {mine:.2f} ms, with pynamodb's own {was:.2f} ms ({mine / was:.0%})")
    assert all(mine <= 0.8 * was for mine, was in zip(ours, before, strict=True))


if __name__ == "__main__":
    main()
