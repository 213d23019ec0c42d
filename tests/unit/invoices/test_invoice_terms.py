"""What is forgiven: shortfalls up to a tolerance, and late payments. Exact at the limit, and always what the payments give."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.deposits.deposits import GREY_LISTED, HELD, Deposit, share_of
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import MerchantId, NetworkId, asset_id, tenant_id
from chalicelib.domain.invoices.invoices import SUMS, Invoice
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.settings import InvoiceSettings
from chalicelib.domain.invoices.terms import Terms
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.status import expired, paid

NETWORK = NetworkId("test:ethereum")
ETH = asset_id(NETWORK, "eth")
SHOP = tenant_id(MerchantId("mch_a"), "test")
VIEWS = Views(Catalogue("test", default_networks("test"), default_coins("test")))
ETHER = 10**18
USD = Quote("USD", "3000", 18, 0, "test")


def invoice(amount: int = ETHER, **more: object) -> Invoice:
    values = {
        "id": "inv_1", "tenant": SHOP, "network": NETWORK, "asset": ETH, "address": "0xa", "address_id": "addr_1",
        "amount": amount, "created_at": 0, "expires_at": 1000, "usd": USD,
    }  # fmt: skip
    return Invoice(**(values | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("terms", "usd", "least"),
    [
        (Terms("1"), USD, 99 * ETHER // 100),
        (Terms("1"), None, 99 * ETHER // 100),
        (Terms("10"), USD, 9 * ETHER // 10),
        (Terms("0.0001"), USD, ETHER - 10**12),
        (Terms("1", "30"), USD, 99 * ETHER // 100),
        (Terms("1", "3"), USD, 999 * ETHER // 1000),
        (Terms("1", "1"), USD, ETHER - 333_333_333_333_333),  # a third: what is forgiven is rounded down to units
        (Terms("1", "0"), USD, ETHER),
        (Terms("1", "30"), None, ETHER),  # nobody knows whether it is little
        (Terms("0", "30"), USD, ETHER),
    ],
)
def test_the_smaller_of_both_is_forgiven_and_not_a_unit_more(terms: Terms, usd: Quote | None, least: int) -> None:
    one = invoice(terms=terms, usd=usd)
    assert replace(one, confirmed=least).settled_status() == "completed"
    assert replace(one, unconfirmed=least).settled_status() == "confirming"
    assert replace(one, confirmed=least - 1).settled_status() == "partial"
    done = replace(one, confirmed=least).settled()
    assert (done.missing, done.shortfall, done.overpaid) == (0, ETHER - least, 0)
    open_ = replace(one, confirmed=least - 1).settled()
    assert (open_.missing, open_.shortfall, open_.to_send) == (ETHER - least + 1, 0, ETHER - least + 1)


@pytest.mark.parametrize(
    ("late_payments", "facts", "status"),
    [
        ("manual", {"late": ETHER}, "expired"),
        ("accept", {"late": ETHER}, "completed"),
        ("accept", {"late_unconfirmed": ETHER}, "confirming"),
        ("accept", {"confirmed": ETHER // 2, "late": ETHER // 2}, "completed"),
        ("accept", {"unconfirmed": ETHER // 2, "late": ETHER // 2}, "confirming"),
        ("accept", {"confirmed": ETHER // 2, "late": ETHER // 2 - ETHER // 50}, "completed"),  # the tolerance of 2 %
        ("accept", {"confirmed": ETHER // 2, "late": ETHER // 2 - ETHER // 50 - 1}, "expired"),
        ("acceptWithinPercent", {"late": ETHER * 95 // 100}, "completed"),
        ("acceptWithinPercent", {"late": ETHER * 95 // 100 - 1}, "expired"),
        ("acceptWithinPercent", {"confirmed": ETHER // 2, "late": ETHER // 2 * 95 // 100}, "completed"),
        ("acceptWithinPercent", {"confirmed": ETHER // 2, "late": ETHER // 2 * 95 // 100 - 1}, "expired"),
        ("acceptWithinPercent", {"confirmed": ETHER // 2, "late_unconfirmed": ETHER // 2}, "confirming"),
        ("accept", {"late": ETHER, "cancelled": True}, "cancelled"),
        ("acceptWithinPercent", {"late": ETHER, "cancelled": True}, "cancelled"),
        ("accept", {"late": ETHER, "manual_status": "on-hold"}, "on-hold"),
        ("accept", {}, "expired"),
    ],
)
def test_late_money_counts_as_the_terms_say(late_payments: str, facts: dict[str, object], status: str) -> None:
    terms = Terms("2", None, late_payments, "5")  # type: ignore[arg-type]
    assert replace(invoice(terms=terms, expired=True), **facts).settled_status() == status  # type: ignore[arg-type]


def test_the_worth_at_its_time_decides_where_the_price_is_in_fiat() -> None:
    """3,000 USD were one ether. Half of it came in time; the coin has lost a tenth since."""
    terms, cheap = Terms(late_payments="acceptWithinPercent", late_payments_percent="5"), Quote("USD", "2700", 18, 5, "test")
    one = replace(invoice(terms=terms, priced=USD, expired=True), confirmed=ETHER // 2).settled()
    for units, status in ((ETHER // 2, "expired"), (527_777_777_777_777_777, "expired"), (527_777_777_777_777_778, "confirming")):
        late = replace(deposit(1, units, late=True), rate=cheap)
        after = paid(News(0), one, None, late, VIEWS, None)
        assert after.status == status, units
        assert paid(News(0), after, late, replace(late, status="orphaned"), VIEWS, None).late_worth is None
    unknown = deposit(1, 10 * ETHER, late=True)
    assert paid(News(0), one, None, unknown, VIEWS, None).status == "expired", "without a rate it is worth nothing"


def test_a_late_payment_is_told_before_what_it_does() -> None:
    news, late = News(0), deposit(1, ETHER, late=True)
    one = invoice(terms=Terms(late_payments="accept"))
    seen = paid(news, one, None, late, VIEWS, None)
    done = paid(news, seen, late, replace(late, status="confirmed"), VIEWS, None)
    told = [event.name for event in news.events]
    assert told == ["invoice.late_payment", "invoice.confirming", "invoice.completed"]
    assert done.expired, "its block came after its time"
    back = paid(news, done, replace(late, status="confirmed"), replace(late, status="orphaned"), VIEWS, None)
    assert (back.status, news.events[-1].name) == ("expired", "invoice.reverted")


def test_own_terms_stand_before_the_settings() -> None:
    plain = InvoiceSettings(SHOP)
    lenient = replace(plain, terms=Terms("1", "5", "accept", "3"))
    assert plain.terms_with({}) is None and plain.terms_with({"tolerance_percent": "0"}) is None
    assert lenient.terms_with({}) == lenient.terms
    assert lenient.terms_with({"tolerance_percent": "2"}) == Terms("2", "5", "accept", "3")
    assert lenient.terms_with({"tolerance_percent": "0", "late_payments": "manual"}) is None
    with pytest.raises(BusinessRule):
        replace(plain, supported_currencies=("btc",)).demand("eth", 1, 18)


def deposit(n: int, amount: int, late: bool = False, grey: bool = False) -> Deposit:
    return Deposit(
        f"tx_{n}", NETWORK, ETH, SHOP, f"0x{n}", "native", "0xs", "0xa", amount, n, f"0xb{n}", 0, 0, late=late,
        flags=(GREY_LISTED,) if grey else (), invoice_id="inv_1",
    )  # fmt: skip


def step(now: Invoice, paying: dict[int, Deposit], action: tuple[str, int, int, str | None]) -> Invoice:
    """What one happening makes of an invoice; one that can not happen now does nothing."""
    kind, n, amount, rate = action
    news, old = News(0), paying.get(n)
    if kind == "expire":
        return expired(news, now, VIEWS, None)
    if kind == "cancel":
        return replace(now, cancelled=True).settled()
    if kind in ("seen", "seen late", "seen grey") and (old is None or old.status == "orphaned"):
        new = deposit(n, amount if old is None else old.amount, kind == "seen late" or now.cancelled, kind == "seen grey")
        kept = None if old is None else old.rate
        new = replace(new, rate=kept or (Quote("USD", rate, 18, 0, "test") if new.late and rate else None))
    elif kind == "moved" and old is not None and old.status == "pending":
        new = replace(old, late=not old.late, block_number=(old.block_number or 0) + 1)
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


def expected(now: Invoice, paying: dict[int, Deposit]) -> str:
    """The status that the payments give, worked out from them alone, in whole numbers."""
    terms = now.terms or Terms()
    sums = {name: sum(share_of(one).get(name, 0) for one in paying.values()) for name in SUMS}
    bps = int(Fraction(terms.tolerance_percent) * 100)
    forgiven = Fraction(now.amount * bps, 10_000)
    if terms.tolerance_max_usd is not None:
        forgiven = min(forgiven, Fraction(terms.tolerance_max_usd) * 10**18 / 3000)
    late_bps = int(Fraction(terms.late_payments_percent) * 100)

    def worth(name: str) -> Fraction:
        found = Fraction(0)
        for one in paying.values():
            units = share_of(one).get(name, 0)
            rate = Fraction(3000) if now.priced is None else Fraction(one.rate.value) if one.rate else Fraction(0)
            found += units * rate / 3000
        return found

    def enough(in_time: int, late: int, late_worth: Fraction) -> bool:
        if in_time + forgiven >= now.amount:
            return True
        if terms.late_payments == "accept":
            return in_time + late + forgiven >= now.amount
        return terms.late_payments == "acceptWithinPercent" and late_worth * 10_000 >= (now.amount - in_time) * (10_000 - late_bps)

    if now.cancelled:
        return "cancelled"
    trusted = sums["unconfirmed"] - sums["doubtful"] if now.auto_confirm else 0
    if any(enough(sums["confirmed"] + more, sums["late"], worth("late")) for more in (0, trusted)):
        return "completed"
    seen, late = sums["confirmed"] + sums["unconfirmed"], sums["late"] + sums["late_unconfirmed"]
    if enough(seen, late, worth("late") + worth("late_unconfirmed")):
        return "confirming"
    return "expired" if now.expired else "partial" if seen else "pending"


KINDS = ("seen", "seen late", "seen late", "seen grey", "moved", "confirmed", "released", "orphaned", "expire", "cancel")
UNITS = st.sampled_from([ETHER * n // 200 for n in (1, 9, 10, 90, 91, 99, 100, 180, 190, 198, 199, 200, 210)]) | st.integers(
    1, 2 * ETHER
)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 3), UNITS, st.sampled_from(["3000", "2700", "3150.5", None])), max_size=25
)
TERMS = st.none() | st.builds(
    Terms,
    st.sampled_from(["0", "0.5", "1", "10"]),
    st.sampled_from([None, "0", "1", "15", "1000"]),
    st.sampled_from(["manual", "accept", "acceptWithinPercent"]),
    st.sampled_from(["0", "0.5", "5", "50"]),
)


@settings(max_examples=300, deadline=None)
@given(terms=TERMS, fiat=st.booleans(), auto=st.booleans(), actions=ACTIONS)
def test_an_invoice_is_always_what_its_payments_give(
    terms: Terms | None, fiat: bool, auto: bool, actions: list[tuple[str, int, int, str | None]]
) -> None:
    """Whatever is seen, moves, falls out, comes back, expires or is cancelled."""
    now = invoice(terms=terms, priced=USD if fiat else None, auto_confirm=auto)
    paying: dict[int, Deposit] = {}
    for action in actions:
        now = step(now, paying, action)
        assert (now.status, now.settled_status()) == (expected(now, paying), now.status)
        assert {name: getattr(now, name) for name in SUMS} == {
            name: sum(share_of(one).get(name, 0) for one in paying.values()) for name in SUMS
        }
        assert now.missing >= now.to_send and (now.status != "completed" or now.missing == 0)
        assert not (now.shortfall and now.overpaid) and (not now.shortfall or now.status == "completed")
        assert now.to_send == 0 or now.status in ("pending", "partial")
    for n, old in list(paying.items()):
        if old.status != "orphaned":
            now = paid(News(0), now, old, replace(old, status="orphaned"), VIEWS, None)
            paying[n] = replace(old, status="orphaned")
    assert not any(getattr(now, name) for name in SUMS) and now.late_worth is None and now.payments == ()
