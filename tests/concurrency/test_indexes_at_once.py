"""Address indexes that many processes take at once, while two housekeepings raise the ceiling: each once, none above it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import boto3
import pytest

from chalicelib.domain.addresses.index_pools import STEP, Indexes
from chalicelib.usecases.ports.failures import Exhausted
from chalicelib.wiring import services
from tests.concurrency.conftest import at_once
from tests.support.index_pools import parameter, row
from tests.support.stack import Stack

pytestmark = pytest.mark.nodes

POOL = "test:litecoin"


def test_no_index_is_taken_twice_and_none_above_the_ceiling(on_dynamodb: Stack) -> None:
    store, before = services().store, row("litecoin")
    ceiling = before.count + 470
    store.change_index_pool(POOL, before, replace(before, ceiling=ceiling))
    boto3.client("ssm").put_parameter(Name=parameter("litecoin"), Value=str(ceiling), Overwrite=True)
    answers = at_once([partial(store.reserve_indexes, POOL, 50) for _ in range(30)])
    taken = [answer for answer in answers if isinstance(answer, Indexes)]
    assert len(taken) == 10
    assert all(isinstance(answer, Exhausted) for answer in answers if not isinstance(answer, Indexes))
    given = [index for each in taken for index in range(each.first, each.end)]
    assert sorted(given) == list(range(before.count, ceiling))

    # The same while it is raised: some are left, and too few.
    full = row("litecoin")
    store.change_index_pool(POOL, full, replace(full, ceiling=full.count + 10_000))
    boto3.client("ssm").put_parameter(Name=parameter("litecoin"), Value=str(full.count + 10_000), Overwrite=True)
    keep = partial(services().ceilings.keep, "test")
    takes = [partial(store.reserve_indexes, POOL, 50) for _ in range(40)]
    answers = at_once([keep, *takes[:20], keep, *takes[20:], keep])
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    more = [index for each in answers if isinstance(each, Indexes) for index in range(each.first, each.end)]
    assert len(more) == len(set(more)) == 40 * 50
    assert set(more).isdisjoint(given)
    after = row("litecoin")
    # A housekeeping that slept may record an older ceiling behind a newer one: the highest counts (`index_ceilings.py`).
    assert max(more) < after.count <= (after.ceiling or 0) <= (services().ceilings.recorded("test", "litecoin") or 0)
    assert full.count + 10_000 + STEP <= (after.ceiling or 0) <= full.count + 10_000 + 4 * STEP
