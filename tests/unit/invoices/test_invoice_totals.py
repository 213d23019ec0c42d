"""The sums behind the summary: whatever happens to invoices, in any order, they are what the invoices come to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.deposits.deposits import GREY_LISTED, HELD, Deposit
from chalicelib.domain.ids import MerchantId, NetworkId, asset_id, tenant_id
from chalicelib.domain.invoices.invoices import PAYMENTS_KEPT, Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.totals import SHARDS, Figures, InvoiceTotals, deltas, figures, figures_of, shard_key, shard_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.status import expired, paid, set_by_hand

NETWORK = NetworkId("test:ethereum")
ETH = asset_id(NETWORK, "eth")
SHOP = tenant_id(MerchantId("mch_a"), "test")
VIEWS = Views(Catalogue("test", default_networks("test"), default_coins("test")))


def invoice(amount: int = 100, usd: Quote | None = None, **more: object) -> Invoice:
    values = {
        "id": "inv_1", "tenant": SHOP, "network": NETWORK, "asset": ETH, "address": "0xa", "address_id": "addr_1",
        "amount": amount, "created_at": 0, "expires_at": 1000, "usd": usd,
    }  # fmt: skip
    return Invoice(**(values | more))  # type: ignore[arg-type]


def deposit(n: int, amount: int, late: bool = False, grey: bool = False) -> Deposit:
    return Deposit(
        f"tx_{n}", NETWORK, ETH, SHOP, f"0x{n}", "native", "0xs", "0xa", amount, n, f"0xb{n}", 0, 0, late=late,
        flags=(GREY_LISTED,) if grey else (), invoice_id="inv_1",
    )  # fmt: skip


def step(now: Invoice, paying: dict[int, Deposit], action: tuple[str, int, int]) -> Invoice:
    """What one happening makes of an invoice; one that can not happen now does nothing."""
    kind, n, amount = action
    news, old = News(0), paying.get(n)
    if kind == "expire":
        return now if now.manual_status is not None else expired(news, now, VIEWS, None)
    if kind == "by hand":
        return set_by_hand(news, now, ("completed", "cancelled", "pending")[n], "key_1", 0, VIEWS, None)
    if kind in ("seen", "seen late", "seen grey") and (old is None or old.status == "orphaned"):
        new = deposit(n, amount if old is None else old.amount, late=kind == "seen late", grey=kind == "seen grey")
    elif kind == "moved" and old is not None and old.status == "pending":
        new = replace(old, late=not old.late, block_number=old.block_number + 1)
    elif kind == "confirmed" and old is not None and old.status == "pending":
        new = replace(old, status="confirmed", flags=(*old.flags, HELD) if GREY_LISTED in old.flags else ())
    elif kind == "released" and old is not None and old.held:
        new = replace(old, flags=(GREY_LISTED,), released_at=1)
    elif kind == "orphaned" and old is not None and old.status != "orphaned":
        new = replace(old, status="orphaned", flags=tuple(flag for flag in old.flags if flag != HELD))
    else:
        return now
    paying[n] = new
    return paid(news, now, old, new, VIEWS, None)


KINDS = ("seen", "seen late", "seen grey", "moved", "confirmed", "released", "orphaned", "expire", "by hand")
ACTIONS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.integers(1, 10**37)), max_size=25)
RATES = st.none() | st.builds(Quote, st.just("USD"), st.sampled_from(["3000", "0.15", "1", "0.000000012345"]), st.just(18),
                              st.just(0), st.just("test"))  # fmt: skip


@given(lives=st.lists(st.tuples(st.integers(1, 10**38 - 1), RATES, st.booleans(), ACTIONS), min_size=1, max_size=4))
def test_the_sums_are_what_the_invoices_come_to(lives: list[tuple[int, Quote | None, bool, list[tuple[str, int, int]]]]) -> None:
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    total = Figures()
    for number, (amount, usd, auto, actions) in enumerate(lives):
        now = invoice(amount, usd, id=f"inv_{number}", auto_confirm=auto)
        history, paying = [None, now], dict[int, Deposit]()
        for action in actions:
            history.append(step(history[-1] or now, paying, action))
        for before, after in pairwise(history):
            assert after is not None
            for name, delta in deltas(before, after).items():
                sums[shard_of(after.id)][name] += delta
                assert abs(delta) < 10**38
        assert history[-1] is not None
        assert history[-1].status == history[-1].settled_status()
        total += figures(history[-1])
    shards = [InvoiceTotals(SHOP, ETH, shard, **named) for shard, named in sums.items()]
    found = Figures()
    for shard in shards:
        found += figures_of(shard)
    assert found == total


def test_what_stays_is_not_written() -> None:
    assert deltas(invoice(), replace(invoice(), description="other")) == {}
    assert deltas(invoice(), replace(invoice(), unconfirmed=100).settled()) == {}
    assert deltas(None, invoice(10**37)) == {"invoices": 1, "pending": 1, "amount_high": 10**19}


def test_a_shard_is_named_by_the_invoice_alone() -> None:
    assert shard_key(invoice()) == {"tenant": SHOP, "asset": ETH, "shard": shard_of("inv_1")}
    assert {shard_of(f"inv_{n}") for n in range(400)} == {str(n) for n in range(SHARDS)}


@pytest.mark.parametrize(
    ("value", "units", "cents"),
    [("3000", 10**18, 300_000), ("1", 5 * 10**15, 0), ("1", 15 * 10**15, 2), ("1", 25 * 10**15, 2), ("1", 25 * 10**15 + 1, 3)],
)
def test_cents_are_rounded_half_to_even(value: str, units: int, cents: int) -> None:
    assert Quote("USD", value, 18, 0, "test").cents(units) == cents


@pytest.mark.parametrize(
    ("fiat", "rate", "decimals", "units"),
    [
        ("30", "3000", 18, 10**16),
        ("10", "3", 18, 333_333_334 * 10**10),
        ("10", "3", 6, 3_333_334),
        ("0.01", "60000", 8, 17),
        ("49.90", "1", 6, 49_900_000),
        ("1", "3", 0, 1),
    ],
)
def test_a_fiat_price_is_rounded_up_to_what_can_be_typed(fiat: str, rate: str, decimals: int, units: int) -> None:
    quote = Quote("EUR", rate, decimals, 0, "test")
    assert quote.units_for(fiat) == units
    assert quote.worth(units) >= Fraction(fiat)


def test_the_newest_payments_are_shown_and_all_are_counted() -> None:
    now = invoice(10**9)
    for n in range(PAYMENTS_KEPT + 5):
        now = paid(News(0), now, None, deposit(n, 1), VIEWS, None)
    assert (len(now.payments), now.payments[-1].deposit, now.unconfirmed) == (PAYMENTS_KEPT, "tx_54", PAYMENTS_KEPT + 5)
    oldest = deposit(0, 1)
    after = paid(News(0), now, oldest, replace(oldest, status="confirmed"), VIEWS, None)
    assert (after.payments, after.confirmed) == (now.payments, 1)


def test_a_small_invoice_is_completed_by_what_is_in_a_block_but_not_from_the_grey_list() -> None:
    small = invoice(100, auto_confirm=True)
    assert paid(News(0), small, None, deposit(1, 99), VIEWS, None).status == "partial"
    assert paid(News(0), small, None, deposit(1, 100), VIEWS, None).status == "completed"
    grey = deposit(1, 100, grey=True)
    seen = paid(News(0), small, None, grey, VIEWS, None)
    assert seen.status == "confirming"
    held = replace(grey, status="confirmed", flags=(GREY_LISTED, HELD))
    assert paid(News(0), seen, grey, held, VIEWS, None).status == "confirming"
    let_go = replace(held, flags=(GREY_LISTED,), released_at=5)
    assert paid(News(0), seen, held, let_go, VIEWS, None).status == "completed"


def test_a_sender_that_comes_onto_the_grey_list_takes_the_trust_back() -> None:
    news, seen = News(0), paid(News(0), invoice(100, auto_confirm=True), None, deposit(1, 100), VIEWS, None)
    held = replace(deposit(1, 100), status="confirmed", flags=(GREY_LISTED, HELD))
    after = paid(news, seen, deposit(1, 100), held, VIEWS, None)
    assert (seen.status, after.status, [event.name for event in news.events]) == ("completed", "confirming", ["invoice.reverted"])


def test_by_hand_nothing_is_reverted() -> None:
    news = News(0)
    done = replace(invoice(), confirmed=100).settled()
    after = set_by_hand(news, done, "pending", "key_1", 7, VIEWS, None)
    assert (after.status, after.manual_by, after.manual_at, after.final, news.events) == ("pending", "key_1", 7, True, [])
    set_by_hand(news, invoice(), "completed", "key_1", 7, VIEWS, None)
    assert [event.name for event in news.events] == ["invoice.completed"]
