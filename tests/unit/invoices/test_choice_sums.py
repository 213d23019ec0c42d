"""Invoices whose payer chooses: whatever payments, locks and reorganisations do, an invoice is what its payments come to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.deposits.deposits import GREY_LISTED, HELD, UNPRICED, Deposit, counted_share
from chalicelib.domain.ids import AssetId, MerchantId, NetworkId, asset_id, asset_parts, tenant_id
from chalicelib.domain.invoices.choices import LOCKS_KEPT, Accepted, Choice, Choosing
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.invoices.quotes import Quote, exact, floor_percent
from chalicelib.domain.invoices.totals import deltas
from chalicelib.domain.money import MAX_DIGITS
from chalicelib.store.codec import plain, shaped
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.invoices.status import paid

SHOP = tenant_id(MerchantId("mch_a"), "test")
ETHEREUM, BITCOIN, BSC = NetworkId("test:ethereum"), NetworkId("test:bitcoin"), NetworkId("test:bsc")
DECIMALS: dict[AssetId, int] = {
    asset_id(ETHEREUM, "eth"): 18, asset_id(ETHEREUM, "usdt"): 6, asset_id(BSC, "usdt"): 18, asset_id(BITCOIN, "btc"): 8,
}  # fmt: skip
ASSETS = list(DECIMALS)
DAI = asset_id(ETHEREUM, "dai")
VIEWS = Views(Catalogue("test", default_networks("test"), default_coins("test")))
RATES = ("0.9", "3120.55", "60000", "0.333333333333333333", "1")


def quote(asset: AssetId, value: str) -> Quote:
    return Quote("EUR", value, DECIMALS[asset], 0, "test")


def open_invoice(price: str = "49.90") -> Invoice:
    accept = tuple(Accepted(asset, decimals) for asset, decimals in DECIMALS.items())
    return Invoice(
        id="inv_1", tenant=SHOP, network=ETHEREUM, asset=ASSETS[0], address=None, address_id=None, amount=0, created_at=0,
        expires_at=10**9, choosing=Choosing("EUR", price, accept, ETHEREUM), fiat_amount=price,
    )  # fmt: skip


def family(asset: AssetId) -> str:
    return "bitcoin" if asset_parts(asset)[0] == BITCOIN else "evm"


def chosen(invoice: Invoice, asset: AssetId, value: str, now: int) -> Invoice:
    """The invoice with a choice, as `Choices` makes it."""
    choosing = invoice.choosing
    assert choosing is not None
    own = family(asset)
    choice = choosing.choice(asset) or Choice(asset, DECIMALS[asset], own, f"at-{own}", f"addr-{own}")
    choice = choice if choice.is_locked(now) else choice.locked(quote(asset, value), now, 900)
    choosing = replace(choosing.with_choice(choice), latest=asset)
    assert choice.quote is not None
    return replace(
        invoice, choosing=choosing, asset=asset, network=asset_parts(asset)[0], address=choice.address,
        amount=choice.quote.units_worth(invoice.price),
    )  # fmt: skip


def deposit(n: int, asset: AssetId, units: int, *, late: bool = False, grey: bool = False) -> Deposit:
    return Deposit(
        f"tx_{n}", asset_parts(asset)[0], asset, SHOP, f"0x{n}", "native", "0xs", f"at-{family(asset)}", units, n, f"0xb{n}", 0, 0,
        late=late, flags=(GREY_LISTED,) if grey else (), invoice_id="inv_1",
    )  # fmt: skip


def priced(invoice: Invoice, seen: Deposit, at: int, fresh: str | None) -> Deposit:
    """A deposit with its rate, as `counted_rates` decides it."""
    choosing = invoice.choosing
    assert choosing is not None
    choice = choosing.choice(seen.asset)
    found = None if choice is None else choice.quote_at(at)
    if found is None and fresh is not None and seen.asset in DECIMALS:
        found = quote(seen.asset, fresh)
    waits = found is None and seen.asset in DECIMALS
    return replace(seen, rate=found, flags=(*seen.flags, UNPRICED) if waits else seen.flags)


def is_its_payments(invoice: Invoice, deposits: dict[int, Deposit]) -> None:
    """The invoice has the sums, payments and status that its deposits say."""
    choosing = invoice.choosing
    assert choosing is not None
    units: dict[tuple[str, str], int] = defaultdict(int)
    worth: dict[str, Fraction] = defaultdict(Fraction)
    for one in deposits.values():
        share = counted_share(one)
        for name in share.units if one.asset in DECIMALS else ():
            units[one.asset, name] += share.units[name]
            worth[name] += share.worth(name)
    found = {(choice.asset, name): value for choice in choosing.choices for name, value in choice.units.items()}
    assert found == {place: value for place, value in units.items() if value}
    for name in ("unconfirmed", "confirmed", "late", "late_unconfirmed", "doubtful"):
        assert choosing.total(name) == worth[name]
    assert {p.deposit for p in invoice.payments} == {
        one.id for one in deposits.values() if one.status != "orphaned" and one.asset in DECIMALS
    }
    assert {p.deposit for p in invoice.misdirected or ()} == {
        one.id for one in deposits.values() if one.status != "orphaned" and one.asset not in DECIMALS
    }
    price, confirmed, seen = Fraction(choosing.price), worth["confirmed"], worth["confirmed"] + worth["unconfirmed"]
    if confirmed >= price:
        assert invoice.status == "completed"
    elif seen >= price:
        assert invoice.status == "confirming"
    else:
        assert invoice.status in ("pending", "partial", "expired")
    for choice in choosing.choices:
        if choice.quote is None or invoice.status == "completed":
            continue
        missing = invoice.missing_in(choice)
        assert seen + choice.quote.worth(missing) >= price, "who pays what is missing has paid"
        assert not missing or seen + choice.quote.worth(missing - choice.quote.step) < price


ACTION = st.tuples(
    st.sampled_from(["choose", "seen", "seen late", "seen grey", "wrong coin", "confirmed", "orphaned", "back", "priced", "moved"]),
    st.integers(0, 5),
    st.sampled_from(range(len(ASSETS))),
    st.integers(1, 10**9),
    st.sampled_from([*RATES, None]),
    st.integers(0, 2000),
)


Action = tuple[str, int, int, int, str | None, int]


def first_seen(invoice: Invoice, action: Action, now: int) -> Deposit | None:
    """A payment that comes now, where its coin has an address."""
    kind, n, which, amount, value, _ = action
    assert invoice.choosing is not None
    asset, served = ASSETS[which], {choice.family for choice in invoice.choosing.choices}
    if kind == "wrong coin" and "evm" in served:
        return deposit(n, DAI, amount)
    if not kind.startswith("seen") or family(asset) not in served:
        return None
    units = amount * 10 ** max(0, DECIMALS[asset] - 9)
    return priced(invoice, deposit(n, asset, units, late=kind == "seen late", grey=kind == "seen grey"), now, value)


def happened(invoice: Invoice, action: Action, now: int, old: Deposit) -> Deposit | None:
    """What becomes of a payment; None where that can not happen to it now."""
    kind, _, _, _, value, _ = action
    if kind == "confirmed" and old.status == "pending":
        return replace(old, status="confirmed", flags=(*old.flags, HELD) if GREY_LISTED in old.flags else old.flags)
    if kind == "orphaned" and old.status != "orphaned":
        return replace(old, status="orphaned", flags=tuple(flag for flag in old.flags if flag == GREY_LISTED))
    if kind == "back" and old.status == "orphaned":
        return replace(old, status="pending") if old.rate else priced(invoice, replace(old, status="pending"), now, value)
    if kind == "priced" and old.unpriced and value is not None:
        return replace(old, rate=quote(old.asset, value), flags=tuple(flag for flag in old.flags if flag != UNPRICED))
    if kind == "moved" and old.status == "pending":
        return replace(old, late=not old.late, block_number=(old.block_number or 0) + 1)
    return None


@given(price=st.sampled_from(["0.01", "49.9", "100", "3120.55"]), actions=st.lists(ACTION, max_size=40))
def test_an_invoice_is_what_its_payments_come_to(price: str, actions: list[Action]) -> None:
    now, invoice, deposits = 0, open_invoice(price), dict[int, Deposit]()
    for action in actions:
        kind, n, which, _, value, seconds = action
        now += seconds * 1000
        if kind == "choose":
            invoice = chosen(invoice, ASSETS[which], value or "1", now)
            continue
        old = deposits.get(n)
        new = first_seen(invoice, action, now) if old is None else happened(invoice, action, now, old)
        if new is None:
            continue
        before = None if old is None or old.status == "orphaned" else old
        deposits[n] = new
        invoice = shaped(Invoice, plain(paid(News(0), invoice, before, new, VIEWS, 100)))
        is_its_payments(invoice, deposits)
    for n, old in deposits.items():
        if old.status != "orphaned":
            deposits[n] = replace(old, status="orphaned", flags=())
            invoice = paid(News(0), invoice, old, deposits[n], VIEWS, 100)
    is_its_payments(invoice, deposits)
    assert invoice.choosing is not None
    assert all(choice.chosen and not choice.units and not choice.worth for choice in invoice.choosing.choices)
    assert (invoice.payments, invoice.choosing.paid_in, invoice.misdirected) == ((), (), None)


def test_locks_hold_their_time_and_no_other() -> None:
    eth = ASSETS[0]
    choice = Choice(eth, 18, "evm", "0xa", "addr_1").locked(quote(eth, "1"), 100_000, 900)
    again = choice.locked(quote(eth, "2"), 2_000_000, 900)

    def held(at: int) -> str | None:
        found = again.quote_at(at)
        return None if found is None else found.value

    assert (held(100_000), held(1_000_000), held(1_000_001)) == ("1", "1", None)
    assert (held(2_000_000), held(2_900_000), held(2_900_001)) == ("2", "2", None)
    # A block may say that it is a little older than a payment in it.
    assert (held(1_940_000), held(1_939_999), held(40_000), held(39_999)) == ("2", None, "1", None)
    opened = replace(again, opened=True)
    assert opened.quote_at(0) == quote(eth, "1"), "nobody could pay to an address before it was made"


def test_old_locks_are_forgotten() -> None:
    eth = ASSETS[0]
    choice = Choice(eth, 18, "evm", "0xa", "addr_1")
    for n in range(LOCKS_KEPT + 5):
        choice = choice.locked(quote(eth, str(n + 1)), n * 1_000_000, 900)
    assert len(choice.locks) == LOCKS_KEPT
    assert choice.quote == quote(eth, str(LOCKS_KEPT + 5))
    # What was paid at a lock that is forgotten counts at the rate of now, and not at the oldest one that is left.
    assert replace(choice, opened=True).quote_at(1_000_000) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(Fraction(0), "0"), (Fraction(100), "100"), (Fraction(1, 8), "0.125"), (Fraction(10**40 + 1, 10**30), f"{10**10}.{'1':0>30}")],
)
def test_exact_decimals(value: Fraction, text: str) -> None:
    assert exact(value) == text
    assert Fraction(text) == value


def test_no_rates_make_a_sum_too_long_to_be_stored() -> None:
    """Rates from 10^-12 to 10^12, as a merchant may set them in its sandbox."""
    invoice = chosen(open_invoice("1"), asset_id(BSC, "usdt"), "0.000000000003", 0)
    assert invoice.choosing is not None
    invoice = replace(invoice, choosing=replace(invoice.choosing, usd=Quote("USD", f"{10**24}", 0, 0, "test")))
    ether = deposit(1, ASSETS[0], 10**37 - 1)
    ether = replace(ether, status="confirmed", rate=quote(ASSETS[0], f"{10**12}"))
    moved = deltas(invoice, paid(News(0), invoice, None, ether, VIEWS, 100))
    assert {"received_high", "usd_received_high"} <= moved.keys()
    assert all(len(str(abs(number))) <= MAX_DIGITS for number in moved.values()), moved


def test_a_third_is_no_decimal() -> None:
    with pytest.raises(ArithmeticError):
        exact(Fraction(1, 3))


def test_percent_is_rounded_down() -> None:
    assert floor_percent(Fraction(1), Fraction(3)) == "33.33"
    assert floor_percent(Fraction(99999), Fraction(100000)) == "99.99"
    assert floor_percent(Fraction(3), Fraction(2)) == "150"


def test_a_plain_invoice_is_stored_as_before() -> None:
    fields = {"choosing", "misdirected"}
    stored = {name: value for name, value in plain(Invoice(
        id="inv_1", tenant=SHOP, network=ETHEREUM, asset=ASSETS[0], address="0xa", address_id="addr_1", amount=1, created_at=0,
        expires_at=1,
    )).items() if value is not None}  # fmt: skip
    assert not fields & stored.keys()
