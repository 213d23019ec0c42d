"""A Tron merchant whose hot wallet can stake, for all tests of a module. Modules with another one have a `started` of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.tron_shops import Shop, staking_shop


@pytest.fixture(scope="module")
def started(running_aws: LocalAws) -> Iterator[Shop]:
    """One first start for all tests of a module, which take turns with the wallet."""
    with staking_shop(running_aws) as made:
        yield made


@pytest.fixture
def shop(started: Shop) -> Iterator[Shop]:
    """After each test the store is consistent, and the ledger has what the chain has."""
    yield started
    assert audit(services().store) == []
    assert started.booked() == started.on_chain(started.hot())
