"""Payments recorded and credited in groups end as the same payments do one by one, whatever comes in between."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.contract.deposits.group_runs import INVOICES, PAYMENTS, Act, Run, Tried, opened_shop
from tests.support.shop import Shop
from tests.support.stack import Stack

EXAMPLES = 40 if os.environ.get("SWEEP") == "full" else 3

KINDS = st.sampled_from(("detect", "confirm", "orphan", "touch", "balance"))
ACTS = st.lists(
    st.tuples(
        st.sampled_from(("detect", "confirm")),
        st.lists(st.integers(0, PAYMENTS - 1), min_size=2, unique=True),
        st.none() | st.tuples(KINDS, st.integers(0, PAYMENTS - 1)),
    ),
    max_size=4,
)
SELDOM = st.integers(0, 7).map((7).__eq__)
PAID = st.lists(st.tuples(st.integers(0, INVOICES), st.integers(1, 30), SELDOM), min_size=PAYMENTS, max_size=PAYMENTS)
"""Where each payment goes (the last place is an address without an invoice), its amount, and whether its sender is grey-listed."""
EACH_ITS_OWN = [(n, 20, False) for n in range(PAYMENTS)]
MET: list[Act] = [
    ("detect", [0, 1, 2, 3], ("touch", 0)),
    ("detect", [4, 5], None),
    ("confirm", [0, 1, 2, 3], ("touch", 1)),
    ("confirm", [4, 5], ("balance", 4)),
]
"""Groups whose records, and whose balance, another worker changes between their reads and their commit."""


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    yield from opened_shop(stack)


def test_groups_end_as_single_payments_do(shop: Shop) -> None:
    met: Counter[Tried] = Counter()

    @settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
    @given(paid=PAID, acts=ACTS)
    # Another worker's turn comes in an act that commits nothing, since all of it was known.
    @example(paid=[(0, 1, False)] * PAYMENTS, acts=[("detect", [*range(PAYMENTS)], None), ("detect", [0, 1], ("orphan", 0))])
    @example(paid=EACH_ITS_OWN, acts=MET)
    def ends_alike(paid: list[tuple[int, int, bool]], acts: list[Act]) -> None:
        shop.wait(60)  # a key may ask so often in a minute
        groups, singles = Run(shop, "usdt", paid, True), Run(shop, "usdc", paid, False)
        had = {slug: shop.balance(slug) for slug in ("usdt", "usdc")}
        assert had["usdt"] == had["usdc"], "what earlier examples left is the same for both"
        for kind, chosen, rival in acts:
            for run in (groups, singles):
                with pytest.MonkeyPatch.context() as patch:
                    run.act(patch, kind, chosen, rival)
        assert groups.end() == singles.end()
        assert audit(services().store) == []
        met.update((min(members, 2), stored) for members, stored in groups.tried)

    ends_alike()
    assert met[2, True] and met[2, False], "groups were stored, and groups met a Conflict"


def test_what_is_tried_of_a_group_that_meets_a_conflict(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a member's invoice it splits into singles, at the balance the group is tried again."""
    run = Run(shop, "usdt", EACH_ITS_OWN, True)
    rivals: Tried = (0, True)
    split = [rivals, (4, False), *[(1, True)] * 4]
    for act, tried in zip(MET, (split, [(2, True)], split, [rivals, (2, False), (2, True)]), strict=True):
        run.tried.clear()
        run.act(monkeypatch, *act)
        assert run.tried == tried, act
