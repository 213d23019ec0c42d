"""Every route of the API has its cost in costs.md, or a reason why it has none."""

from __future__ import annotations

import pytest

from tests.bench.asking import UNCOUNTED, route_of, routes
from tests.bench.costs import TABLE, parsed


def test_each_route_is_a_step_or_has_a_reason() -> None:
    asked = {route for cost in parsed(TABLE.read_text(encoding="utf-8")).values() for route in cost.asked}
    assert routes() - asked == set(UNCOUNTED)
    assert asked <= routes()
    assert all(len(reason) > 10 for reason in UNCOUNTED.values())


def test_a_path_is_its_route_and_a_fixed_one_before_one_with_names() -> None:
    assert route_of("GET", "/v1/addresses/hot-wallet/bsc?coin=usdt") == "GET /addresses/hot-wallet/{network}"
    assert route_of("GET", "/v1/addresses/0x5a") == "GET /addresses/{address}"
    assert route_of("GET", "/v1/invoices/summary") == "GET /invoices/summary"
    assert route_of("GET", "/v1/invoices/inv_1") == "GET /invoices/{id}"
    with pytest.raises(LookupError):
        route_of("POST", "/v1/invoices/summary")
