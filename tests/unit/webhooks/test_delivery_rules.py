"""Rules of deliveries: when the next attempt is due, what an answer means, what a receiver may ask for, and what work says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.webhooks.deliveries import (
    MAX_RETRY_AFTER_SECONDS,
    Attempt,
    Delivery,
    Due,
    delivery_for,
    delivery_key,
    delivery_work,
    due_of,
    line_of,
    line_parts,
    retry_after_seconds,
    retry_delay_ms,
)
from chalicelib.domain.work import held_order, time_lane
from tests.support.webhooks import NOW, SHOP, an_endpoint, an_event_record

BAD = Attempt(NOW, 500, 5)


def a_delivery() -> Delivery:
    return delivery_for(an_event_record(), an_endpoint("wh_1"), NOW)


def test_the_waits_are_the_published_ones_and_never_shorter() -> None:
    published = [5, 30, 120, 600, 1800, 7200, 18000, 36000]
    assert [retry_delay_ms(n, 0.0) for n in range(1, 9)] == [s * 1000 for s in published]
    assert [retry_delay_ms(n, 1.0) for n in range(1, 9)] == [s * 1200 for s in published]
    assert retry_delay_ms(9, 0.0) is None
    assert retry_delay_ms(50, 0.0) is None


def test_the_same_event_and_endpoint_give_the_same_delivery() -> None:
    assert a_delivery() == a_delivery()
    assert delivery_for(an_event_record(), an_endpoint("wh_2"), NOW).id != a_delivery().id
    assert delivery_for(an_event_record(), an_endpoint("wh_1"), NOW, "again").id != a_delivery().id
    assert delivery_key(SHOP, delivery_work(a_delivery()).id) == {"tenant": SHOP, "id": a_delivery().id}


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [(200, None, "delivered"), (204, None, "delivered"), (299, None, "delivered"), (199, None, "pending"), (300, None, "pending"),
     (302, None, "pending"), (404, None, "pending"), (500, None, "pending"), (None, "no answer", "pending"),
     (200, "the answer broke off", "pending"), (410, None, "pending")],
)  # fmt: skip
def test_the_answer_decides(status: int | None, error: str | None, expected: str) -> None:
    after = a_delivery().after(Attempt(NOW, status, 5, error=error), NOW + 7, 0.5)
    due = NOW + 7 + 5500
    assert after.status == expected
    assert (after.finished_at is None) == (expected == "pending")
    assert after.due_at == (due if expected == "pending" else NOW)
    assert after.attempts[0].next_at == (due if expected == "pending" else None)
    assert after.version == 2


def test_where_the_endpoint_is_gone_nothing_is_tried_again() -> None:
    after = a_delivery().after(Attempt(NOW, 410, 5), NOW + 7, 0.5, gone=True)
    assert (after.status, after.finished_at, after.attempts[0].next_at) == ("cancelled", NOW + 7, None)


def test_the_ninth_failure_is_the_end() -> None:
    delivery = a_delivery()
    for _ in range(8):
        delivery = delivery.after(BAD, NOW, 0.0)
        assert delivery.status == "pending"
    delivery = delivery.after(BAD, NOW, 0.0, wait=60)
    assert (delivery.status, len(delivery.attempts), delivery.attempts[-1].next_at) == ("dead", 9, None)


def test_a_receiver_may_ask_for_a_longer_wait_and_not_for_a_shorter_one() -> None:
    assert a_delivery().after(BAD, NOW, 1.0, wait=3).due_at == NOW + 6_000
    assert a_delivery().after(BAD, NOW, 1.0, wait=60).due_at == NOW + 60_000


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("36001", MAX_RETRY_AFTER_SECONDS),
        ("9" * 400, MAX_RETRY_AFTER_SECONDS),
        # The clock stands at 03:04:05.006: what is left of a second is waited for as well.
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60),
        ("Friday, 02-Jan-26 03:05:05 GMT", 60),  # RFC 850, which RFC 9110 section 5.6.7 lets a recipient accept
        ("Fri Jan  2 03:05:05 2026", 60),  # asctime
        ("Fri, 02 Jan 2026 04:05:06 +0100", 61),
        ("Fri, 02 Jan 2026 03:04:05 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER_SECONDS),
        (None, 0), ("", 0), ("-5", 0), ("1.5", 0), ("soon", 0), ("\u0661\u0662", 0), ("1e3", 0),
        ("Fri, 02 Jan 99999 03:05:05 GMT", 0), ("Fri, 32 Jan 2026 03:05:05 GMT", 0), ("Fri, 02 Jan 2026 03:05:05 +9999", 0),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: int) -> None:
    assert retry_after_seconds(header, NOW) == seconds


DATES = re.compile(r"[A-Z][a-z]{2}, \d{1,9} [A-Z][a-z]{2} \d{1,6} \d{1,3}:\d{1,3}:\d{1,3} ([+-]\d{1,12}|GMT)", re.ASCII)
"""Beyond what a date may be. ASCII: finding all digits that there are takes a second."""


@given(st.text() | st.from_regex(DATES))
def test_no_header_is_an_error(header: str) -> None:
    assert 0 <= retry_after_seconds(header, NOW) <= MAX_RETRY_AFTER_SECONDS


def test_work_says_what_it_is_about() -> None:
    delivery = a_delivery()
    first = delivery_work(delivery)
    assert (first.lane, line_parts(first.lane)) == (line_of(SHOP, "wh_1"), (SHOP, "wh_1"))
    assert (int(first.order), due_of(first.id)) == (NOW, Due(delivery.id, "evt_1", 0, scheduled=False))
    near = delivery.after(BAD, NOW + 5, 0.0)
    assert due_of(delivery_work(near).id) == Due(delivery.id, "evt_1", 1, scheduled=False)
    assert due_of(delivery_work(near.after(replace(BAD, at=near.due_at), near.due_at + 5, 0.0, wait=901)).id).scheduled
    assert not due_of(delivery_work(near.after(replace(BAD, at=near.due_at), near.due_at + 5, 0.0, wait=900)).id).scheduled


def test_what_is_held_waits_behind_all_that_is_due() -> None:
    aside = a_delivery().put_aside()
    assert delivery_work(aside).order == held_order(aside.created_at)
    assert delivery_work(aside).order > delivery_work(replace(aside, held=False, due_at=10**14)).order
    assert time_lane(delivery_work(aside)) is None and time_lane(delivery_work(a_delivery())) is not None
    assert (aside.status, aside.due_at) == ("pending", NOW)
    assert not aside.after(Attempt(NOW, 200, 1), NOW, 0.0).held
    assert not aside.cancelled("over", NOW).held


def test_hurrying_never_puts_off() -> None:
    waiting = a_delivery().after(BAD, NOW, 0.0)
    assert waiting.hurried(NOW + 1).due_at == NOW + 1
    assert waiting.hurried(NOW + 10_000).due_at == waiting.due_at
