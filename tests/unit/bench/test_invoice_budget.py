"""A paid invoice's budget holds for what it costs, and not for what is left of that when it is rounded."""

from __future__ import annotations

from tests.bench.bench_invoice import BUDGETS, Price, over


def test_what_is_over_the_budget_by_a_part_of_a_unit_is_over() -> None:
    (units, calls), _ = BUDGETS
    assert over(Price({"records": units - 8, "work": 8}, {}, calls), units, calls) == []
    assert over(Price({"records": units - 8, "work": 8.4}, {}, calls), units, calls) == ["90.400 write units of 90"]
    assert over(Price({"records": units}, {}, calls + 0.1), units, calls) == ["22.100 calls of 22"]
    third = sum(10 / 3 for _ in range(27))
    assert over(Price({"records": third}, {}, 1), units, calls) == [], "a quotient's last digit is no unit"
