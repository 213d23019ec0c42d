"""What is recorded one after the other, and what side by side; and how it is shared out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.domain.chain import Transfer
from chalicelib.usecases.deposits.groups import Member
from chalicelib.usecases.scanning import sharing
from chalicelib.usecases.scanning.recording_lanes import by_coin, lane_of, member_lane, rounds


class _Owner:
    def __init__(self, invoice: str | None, tenant: str | None) -> None:
        self.tenant, self.invoice_id = tenant, invoice


def member(
    n: int, address: str, invoice: str | None = None, *, tenant: str | None = "mch_a:live", contract: str | None = None
) -> Member:
    owner = cast(Watched, cast(Any, _Owner(invoice, tenant)))
    return Member(Transfer("t", f"log:{n}", contract, "s", address, 1), f"d{n}", owner)


def test_a_lane_is_an_invoice_or_an_address() -> None:
    one, other = member(1, "a", "inv_1"), member(2, "b", "inv_1")
    assert member_lane(one) == member_lane(other) != member_lane(member(3, "a")) != member_lane(member(4, "b"))
    assert lane_of(one.transfer, one.owner) == member_lane(one)


def test_groups_of_a_round_do_not_meet_and_a_lane_keeps_its_order() -> None:
    groups = [
        [member(1, "a"), member(2, "b")],
        [member(3, "a"), member(4, "c")],
        [member(5, "d")],
        [member(6, "c")],
        [member(7, "b")],
    ]
    assert [[[m.id for m in group] for group in some] for some in rounds(groups)] == [
        [["d1", "d2"], ["d5"]],
        [["d3", "d4"], ["d7"]],
        [["d6"]],
    ]
    assert rounds([]) == []


def test_groups_of_one_merchant_and_coin_follow_each_other() -> None:
    a, b, token = ({"tenant": f"mch_{who}:live", "contract": what} for who, what in (("a", None), ("b", None), ("a", "0xc")))
    groups = [
        [member(n, f"{n}", **how), member(n + 10, f"{n + 10}", **how)] for n, how in enumerate((a, b, token, a, {"tenant": None}))
    ]
    alone = [[member(5, "5", **a)], [member(6, "6", **a)]]
    lanes = [[group[0].id for group in lane] for lane in by_coin([*groups, *alone])]
    assert lanes == [["d0", "d3"], ["d1"], ["d2"], ["d4"], ["d5"], ["d6"]]


def test_shares_cut_no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SHARE", 4)
    lanes = ["a", "long", "b", "long", "c", "b", "long", "d", "long", "long"]
    made = sharing.shares(list(enumerate(lanes)), lambda item: item[1])
    assert [[lane for _, lane in share] for share in made] == [["a", "c", "d"], ["b", "b"], ["long"] * 5]
