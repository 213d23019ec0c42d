"""Closing postings say of archived entries what the journal said of them; and which payments may leave."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.archive.closings import ClosingPosting, closings_of, control_account, differing, month_of
from chalicelib.domain.archive.payments import entry_ids, outlived, settled_before
from chalicelib.domain.deposits.deposits import HELD, Deposit, deposit_id
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.invoices.invoices import Invoice, Payment
from chalicelib.domain.ledger import Book, JournalEntry, deposit_credited, deposit_reversed, totals
from chalicelib.domain.money import Amount

ETHEREUM, SHOP = NetworkId("live:ethereum"), TenantId("mch_1:live")
USDT = AssetId("live:ethereum:usdt")
NOVEMBER = 1_700_000_000_000  # 2023-11-14T22:13:20Z
SETTLED = Deposit(
    *("tx_1", ETHEREUM, USDT, SHOP, "0xaa", "log:4", "0x01", "0x02", 5, 100, "0xbb", NOVEMBER - 9, NOVEMBER),
    status="confirmed",
    invoice_id="inv_1",
    confirmed_at=NOVEMBER + 9,
)
INVOICE = Invoice(
    *("inv_1", SHOP, ETHEREUM, USDT, "0x02", "addr_1", 5, NOVEMBER - 99, NOVEMBER + 5),
    status="completed",
    confirmed=5,
    payments=(Payment("tx_1", "0xaa", 5, 100, True),),
)

entries = st.lists(
    st.builds(
        lambda n, units, at, place, back: (deposit_reversed if back else deposit_credited)(
            f"tx_{n}", 0, at, f"wallet:live:ethereum:{place}", "merchant:mch_1:live:available", Amount(USDT, units)
        ),
        st.integers(0, 10**6),
        st.integers(0, 10**40),
        st.integers(1_600_000_000_000, 1_700_000_000_000),
        st.sampled_from(["0x01", "0x02"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(entries)
def test_closing_postings_sum_up_to_what_the_entries_sum_up_to(archived: list[JournalEntry]) -> None:
    closed: Counter[tuple[str, str, str]] = Counter()
    for closing in closings_of(archived):
        assert closing.units >= 0
        closed[closing.book, closing.source, closing.asset] -= closing.units
        closed[closing.book, closing.destination, closing.asset] += closing.units
    summed: Counter[tuple[str, str, str]] = Counter()
    for (book, account, asset), units in totals(archived).items():
        summed[book.value, control_account(account), asset] += units
    assert {key: n for key, n in closed.items() if n} == {key: n for key, n in summed.items() if n}


@given(entries, entries)
def test_they_grow_by_each_payment(first: list[JournalEntry], second: list[JournalEntry]) -> None:
    grown: dict[tuple[str, ...], ClosingPosting] = {}
    for closing in (*closings_of(first), *closings_of(second)):
        place = (closing.book, *closing.key.values())
        grown[place] = grown.get(place, replace(closing, units=0, count=0)).grown(closing)
    assert list(differing(grown.values(), closings_of([*first, *second]))) == []


def test_a_difference_is_named() -> None:
    entry = deposit_credited("tx_1", 0, NOVEMBER, "wallet:live:ethereum:0x02", "merchant:mch_1:live:available", Amount(USDT, 5))
    where, whose = closings_of([entry])
    assert (where.book, where.destination, where.month, where.units) == (Book.WHERE, "wallet:live:ethereum", "2023-11", 5)
    assert len(list(differing([where], [where, whose]))) == 1
    assert len(list(differing([where, whose], [where]))) == 1
    assert len(list(differing([replace(where, units=6), whose], [where, whose]))) == 1


def test_months_are_those_of_utc() -> None:
    assert [month_of(at) for at in (1_698_796_799_999, 1_698_796_800_000)] == ["2023-10", "2023-11"]  # date -u -d @1698796800


def test_every_round_of_a_deposit_has_its_entries() -> None:
    assert entry_ids(replace(SETTLED, round=1)) == [
        *("credit:tx_1:0", "reverse:tx_1:0", "unhold:tx_1:0", "admit:tx_1:0"),
        *("credit:tx_1:1", "reverse:tx_1:1", "unhold:tx_1:1", "admit:tx_1:1"),
    ]


def test_a_claim_goes_where_it_would_be_made_the_same_again() -> None:
    """After a reorganisation the log has another number than the one that names the deposit: then the claim alone knows."""
    named = replace(SETTLED, id=deposit_id(ETHEREUM, "0xaa", "log:4"))
    assert outlived(named)
    assert not outlived(replace(named, position="log:7"))


LATER = NOVEMBER + 10


@pytest.mark.parametrize(
    ("invoice", "deposit"),
    [
        (replace(INVOICE, status="confirming"), SETTLED),
        (replace(INVOICE, status="partial"), SETTLED),
        (replace(INVOICE, expires_at=LATER), SETTLED),
        (replace(INVOICE, manual_status="paid", manual_at=LATER), SETTLED),
        (INVOICE, replace(SETTLED, status="pending")),
        (INVOICE, replace(SETTLED, flags=(HELD,))),
        (INVOICE, replace(SETTLED, flags=("below_minimum",))),
        (INVOICE, replace(SETTLED, flags=("set_aside",))),
        (INVOICE, replace(SETTLED, flags=("unpriced",))),
        (INVOICE, replace(SETTLED, confirmed_at=LATER)),
        (INVOICE, replace(SETTLED, released_at=LATER)),
        (INVOICE, replace(SETTLED, admitted_at=LATER)),
        (INVOICE, replace(SETTLED, id="tx_2")),
    ],
)
def test_what_is_open_or_young_stays(invoice: Invoice, deposit: Deposit) -> None:
    assert settled_before(INVOICE, {SETTLED.id: SETTLED}, LATER)
    assert not settled_before(invoice, {deposit.id: deposit}, LATER)


@pytest.mark.parametrize("status", ["completed", "expired", "cancelled"])
def test_what_is_final_may_go(status: str) -> None:
    assert settled_before(replace(INVOICE, status=status, payments=()), {}, LATER)
    assert settled_before(replace(INVOICE, status=status), {"tx_1": replace(SETTLED, status="orphaned")}, LATER)
