"""What each step of the main paths costs in calls and request units is what the table says, exactly (tests/bench/steps.py)."""

from __future__ import annotations

from dataclasses import replace

from botocore.client import BaseClient

from chalicelib.web import files
from tests.bench.accounting import accounted
from tests.bench.asking import PAGE, UNCOUNTED
from tests.bench.costs import RENEW, TABLE, Cost, differences, parsed, shown
from tests.bench.steps import measured
from tests.bench.walk import Walk, still
from tests.support.stack import Stack


def test_each_step_costs_what_the_table_says(stack: Stack) -> None:
    told = differences(parsed(TABLE.read_text(encoding="utf-8")), measured(stack))
    assert not told, "\n".join([*told, f"Where it has to cost that: {RENEW}"])


def test_counting_leaves_the_local_stack_its_direct_way(stack: Stack) -> None:
    before = BaseClient._make_api_call  # type: ignore[attr-defined]
    assert before.direct
    for units in (False, True):
        with accounted(units=units) as account:
            assert stack.call("GET", "/v1/balances", stack.keys["client_test"]).status == 200
        assert account.calls.total() >= 2 and bool(account.reads) == units
        assert BaseClient._make_api_call is before  # type: ignore[attr-defined]


def test_pages_and_files_have_no_step_as_they_call_nothing(stack: Stack) -> None:
    """But for the first one of a process, which may look up a setting."""
    html, file = {"Accept": "text/html"}, next(iter(files.files().values())).name
    pages = [route.removeprefix("GET ") for route, reason in UNCOUNTED.items() if reason == PAGE]
    for path in (page.replace("{file}", file) for page in pages):
        stack.call("GET", path, headers=html)
        with accounted() as account:
            assert stack.call("GET", path, headers=html).status == 200, path
        assert account.sent == [], path


def test_a_step_inside_another_is_left_out_of_its_cost(stack: Stack) -> None:
    walk = Walk(stack, "")

    def read() -> None:
        walk.ask("GET", "/balances")

    def both() -> None:
        read()
        walk.invoice(" that is made inside")
        read()

    def twice() -> None:
        read()
        read()

    with still():
        walk.ask("POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "1"})
        read()
        walk.step("alone", twice)
        walk.step("around", both)
    assert walk.costs["around"] == walk.costs["alone"]
    assert walk.costs["create an invoice that is made inside"].writes["records"] >= 1


def test_a_dearer_step_is_named_with_what_it_costs_more() -> None:
    cost = Cost({"GetItem": 2, "TransactWriteItems": 1}, {"records": 12, "work": 6}, {"chain": 0.5})
    dearer = replace(cost, calls=cost.calls | {"GetItem": 3}, writes=cost.writes | {"events": 2})
    costs = {"create": cost, "gone": cost}
    assert parsed(shown(costs)) == costs and differences(costs, costs) == []
    assert differences(costs, {"create": dearer, "new": cost}) == [
        "gone: no such step any more",
        "create: calls 3 → 4, DEARER (GetItem 2 → 3)",
        "create: write units 18 → 20, DEARER (events 0 → 2)",
        "new: a new step",
    ]
    assert differences({"create": dearer}, {"create": cost})[0] == "create: calls 4 → 3, cheaper (GetItem 3 → 2)"
