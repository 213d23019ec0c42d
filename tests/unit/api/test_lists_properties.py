"""Lists against the plain thing: the same filters, order and pages over a Python list. The store is played in memory, by the
keys that `store/schema.py` and `indexes.py` give.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib.api.lists import Listing, sources, walking
from chalicelib.api.lists.addresses import ADDRESSES
from chalicelib.api.lists.fields import Like, day, instant
from chalicelib.api.lists.invoices import INVOICES
from chalicelib.api.lists.query import DEEPEST
from chalicelib.api.resources.transactions import TRANSACTIONS
from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.catalogue.catalogue import Catalogue, default_coins, default_networks
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.errors import InvalidParameter
from chalicelib.domain.ids import first_id, place_in_time
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.store.indexes import INDEXES, listed_under
from chalicelib.store.schema import partition_of, where_is
from chalicelib.usecases.ports.store import EVERYWHERE, Counted, Listed, Page, Place, Places, Span

TENANT = "mch_a:test"
CATALOGUE = Catalogue("test", default_networks("test"), default_coins("test"))
DAY = 86_400_000
ASSETS = ("test:ethereum:eth", "test:ethereum:usdt", "test:tron:usdt", "test:bitcoin:btc")


class Shelves:
    """`usecases.ports.Store`, as far as lists need it. `reads` counts round trips."""

    def __init__(self, records: list[Any]) -> None:
        self.items: dict[tuple[str, str], Any] = {}
        self.partitions: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.indexes: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
        self.reads = 0
        for record in records:
            where = where_is(type(record))
            pk, sk = where.pk(record), where.sk(record)
            self.items[pk, sk] = record
            insort(self.partitions[pk], (sk, pk))
            attributes = {**(where.indexed(record) if where.indexed else {}), "pk": pk, "sk": sk}
            for index in set(INDEXES.values()):
                if index.table == where.table and attributes.get(index.pk) and attributes.get(index.sk):
                    insort(self.indexes[index.name, attributes[index.pk]], (attributes[index.sk], pk, sk))

    def _rows(self, rows: list[Any], after: str | None, newest_first: bool, span: Span) -> list[Any]:
        self.reads += 1
        rows = [r for r in rows if (span.low is None or r[0] >= span.low) and (span.high is None or r[0] <= span.high)]
        if newest_first:
            rows = rows[::-1]
        return [r for r in rows if after is None or (r[0] < after if newest_first else r[0] > after)]

    def page(
        self,
        kind: Any,
        /,
        *,
        limit: int,
        after: Any = None,
        newest_first: bool = False,
        span: Span = EVERYWHERE,
        known_only: bool = False,
        **fields: str,
    ) -> Any:
        assert known_only, "a record in a newer form would stop the list"
        rows = self._rows(self.partitions[partition_of(kind, fields)], after, newest_first, span)
        return Page([self.items[r[1], r[0]] for r in rows[:limit]], rows[limit - 1][0] if len(rows) > limit else None)

    def _listed(self, listed: Listed) -> list[Any]:
        index = INDEXES[listed.family, listed.by]
        return self.indexes[index.name, listed_under(listed.family, listed.owner, listed.value)]

    def places(
        self, listed: Listed, /, *, limit: int, after: Any = None, newest_first: bool = False, span: Span = EVERYWHERE
    ) -> Places:
        rows = self._rows(self._listed(listed), after, newest_first, span)
        return Places([Place(*row) for row in rows[:limit]], len(rows) > limit)

    def at(self, places: Any, /, *, known_only: bool = False) -> list[Any]:
        assert known_only, "a record in a newer form would stop the list"
        self.reads += -(-len(places) // 100)
        return [self.items.get((place.pk, place.sk)) for place in places]

    def count(self, where: Any, /, *, most: int, after: Any = None, newest_first: bool = False, span: Span = EVERYWHERE) -> Counted:
        rows = self._listed(where) if isinstance(where, Listed) else self.partitions[partition_of(where[0], where[1])]
        rows = self._rows(rows, after, newest_first, span)
        return Counted(min(most, len(rows)), rows[most - 1][0] if len(rows) >= most else None)


def context(store: Shelves) -> Any:
    return SimpleNamespace(
        key=SimpleNamespace(level="client"),
        services=SimpleNamespace(store=store),
        tenant=TENANT,
        realm="test",
        charge=lambda requests: None,
        catalogue=CATALOGUE,
    )


def ident(prefix: str, at: int, n: int) -> str:
    return first_id(prefix, at) + f"{n:016d}"


TIMES = st.integers(0, 4).map(lambda hours: 20_000 * DAY + hours * 12 * 3_600_000)
SOME = st.tuples(
    TIMES, st.sampled_from(ASSETS), st.sampled_from(("pending", "partial", "completed")), st.integers(1, 4), st.booleans()
)


def invoice(n: int, at: int, asset: str, status: str, amount: int, named: bool) -> Invoice:
    network = asset.rsplit(":", 1)[0]
    return Invoice(
        id=ident("inv", at, n), tenant=TENANT, network=network, asset=asset, address=f"0xAb{n}", address_id="a",
        amount=amount * 10**7, created_at=at, expires_at=at + 1, status=status, external_id=f"Order-{n % 3}" if named else None,
    )  # type: ignore[arg-type]  # fmt: skip


def transaction(n: int, at: int, asset: str, status: str, amount: int, paid: bool) -> Deposit | Withdrawal:
    network, txid = asset.rsplit(":", 1)[0], f"0xF{n}"
    if paid:
        return Withdrawal(
            id=ident("wd", at, n), tenant=TENANT, network=network, asset=asset, amount=amount * 10**7, to_address=f"T{n % 3}",
            fee_asset="test:tron:trx", created_at=at, updated_at=at, txid=txid if amount > 1 else None,
            status={"pending": "confirming", "partial": "failed", "completed": "confirmed"}[status],
        )  # type: ignore[arg-type]  # fmt: skip
    return Deposit(
        id=f"tx_{n:026d}", network=network, asset=asset, tenant=TENANT, txid=txid, position="native", sender="0xs",
        address=f"T{n % 3}", amount=amount * 10**7, block_number=n, block_hash="0x", block_time=0, created_at=at,
        status={"pending": "pending", "partial": "orphaned", "completed": "confirmed"}[status],
    )  # type: ignore[arg-type]  # fmt: skip


def address(n: int, at: int, asset: str, status: str, amount: int, named: bool) -> Address:
    network = asset.rsplit(":", 1)[0]
    return Address(
        id=ident("addr", at, n), tenant=TENANT, network=network, address=f"0xAb{n}", mode="common", networks=("ethereum",),
        path="m", created_at=at, label=f"till {amount}" if named else None, archived=status == "partial",
    )  # type: ignore[arg-type]  # fmt: skip


COMMON = st.sampled_from(
    [
        {}, {"network": "ethereum"}, {"network[in]": "tron,bitcoin"}, {"network[ne]": "tron"}, {"createdAt[gte]": "2024-10-05"},
        {"createdAt": "2024-10-04"}, {"createdAt[lt]": "2024-10-04T12:00:00Z"},
        {"created_at[gt]": "2024-10-04", "createdAt[lte]": "2024-10-05"},
        {"createdAt[ne]": "2024-10-05"}, {"createdAt[gt]": "2024-10-06", "createdAt[lt]": "2024-10-05"},
    ]
)  # fmt: skip
OWN: dict[str, Any] = {
    "invoices": st.sampled_from(
        [
            {}, {"status": "pending"}, {"status[in]": "pending,completed"}, {"status[ne]": "pending"}, {"currency": "usdt"},
            {"currency[in]": "btc,eth", "status": "completed"}, {"externalId[like]": "order"}, {"externalId[ne]": "Order-1"},
            {"amount[gte]": "0.3"}, {"status": ["pending", "partial"], "currency[ne]": "btc"},
            {"externalId[like]": "%-2"},
        ]
    ),
    "transactions": st.sampled_from(
        [
            {}, {"status": "pending"}, {"status[in]": "failed,orphaned,confirmed"}, {"type": "withdrawal"},
            {"coin": "usdt", "status": "pending"},
            {"address": "t1"}, {"address[in]": "T1,T2", "coin[in]": "eth,usdt"}, {"hash": "0xf2"}, {"blockNumber[lt]": "6"},
        ]
    ),
    "addresses": st.sampled_from([{}, {"label[like]": "TILL%"}, {"label[ne]": "till 2"}, {"type": "user"}, {"type": "hot-wallet"}]),
}  # fmt: skip
MAKERS: dict[str, tuple[Listing, Any]] = {
    "invoices": (INVOICES, invoice),
    "transactions": (TRANSACTIONS, transaction),
    "addresses": (ADDRESSES, address),
}


def key(record: Any) -> str:
    if isinstance(record, (Deposit, Withdrawal)):
        return place_in_time(record.created_at, record.id)
    return str(record.id)


def plainly(listing: Listing, records: list[Any], query: Any) -> list[Any]:
    """What a list is, without any index."""
    found = [r for r in records if not getattr(r, "archived", False) and not (isinstance(r, Withdrawal) and r.txid is None)]
    found = [r for r in found if all(c.holds(r, CATALOGUE) for c in query.conditions)]
    sort = query.sorted_by

    def order(record: Any) -> Any:
        value = None if sort is None or sort.by == "time" else sort.read(record, CATALOGUE)
        return (value is None, 0 if value is None else value), key(record)

    return sorted(found, key=order, reverse=query.order == "desc")


@dataclass
class Walked:
    found: list[Any] = field(default_factory=list)
    pages: int = 0


def walk(listing: Listing, ctx: Any, sent: dict[str, Any]) -> Walked:
    walked = Walked()
    cursor: str | None = None
    while True:
        query = listing.model.model_validate({**sent, **({"cursor": cursor} if cursor else {})}, context=CATALOGUE)
        page, told = listing.page(ctx, query)
        walked.found += page
        walked.pages += 1
        assert told["has_next"] == (told["next_cursor"] is not None)
        assert told["has_prev"] == (cursor is not None)
        assert walked.pages < 300
        cursor = told["next_cursor"]
        if cursor is None:
            return walked


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(MAKERS)), data=st.data())
def test_a_list_is_what_a_python_list_would_be(name: str, data: Any) -> None:
    listing, make = MAKERS[name]
    records = [make(n, *facts) for n, facts in enumerate(data.draw(st.lists(SOME, max_size=25)))]
    sorts = [None, *listing.model.sorts]
    sent = {**data.draw(COMMON), **data.draw(OWN[name]), "limit": str(data.draw(st.integers(1, 7)))}
    sent |= {
        k: v
        for k, v in (("order", data.draw(st.sampled_from([None, "asc", "desc"]))), ("sort", data.draw(st.sampled_from(sorts))))
        if v
    }
    ctx = context(Shelves(records))
    query = listing.model.model_validate(sent, context=CATALOGUE)
    expected = plainly(listing, records, query)
    size = query.size
    for number in range(1, len(expected) // size + 3):
        asked = listing.model.model_validate({**sent, "page": str(number)}, context=CATALOGUE)
        found, told = listing.page(ctx, asked)
        assert found == expected[(number - 1) * size : number * size]
        assert (told["page"], told["total"], told["pages"]) == (number, len(expected), -(-len(expected) // size))
        assert (told["has_next"], told["has_prev"]) == (number * size < len(expected), number > 1)
        assert "total_capped" not in told
    assert walk(listing, ctx, sent).found == expected
    assert listing.over(ctx, query, list(expected), position=key)[0] == expected[:size]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(MAKERS)), most=st.integers(1, 8), data=st.data())
def test_a_cursor_shows_everything_once_however_little_a_request_may_look_at(
    monkeypatch: pytest.MonkeyPatch, name: str, most: int, data: Any
) -> None:
    """With limits of a few records in the place of ten thousand, every request is cut short."""
    listing, make = MAKERS[name]
    records = [make(n, *facts) for n, facts in enumerate(data.draw(st.lists(SOME, max_size=25)))]
    sent = {**data.draw(COMMON), **data.draw(OWN[name]), "limit": str(data.draw(st.integers(1, 4)))}
    sent["order"] = data.draw(st.sampled_from(["asc", "desc"]))
    with monkeypatch.context() as patch:
        patch.setattr(walking, "DEEPEST", max(most, int(sent["limit"])))
        patch.setattr(sources, "MOST_KEYS", 2 * most)
        patch.setattr(sources, "_KEYS", data.draw(st.integers(1, 5)))
        query = listing.model.model_validate(sent, context=CATALOGUE)
        assert walk(listing, context(Shelves(records)), sent).found == plainly(listing, records, query)


def many(count: int) -> Shelves:
    start = 20_000 * DAY
    return Shelves([invoice(n, start + n, ASSETS[n % 4], "pending" if n % 2 else "completed", 1, False) for n in range(count)])


def ask(store: Shelves, listing: Listing = INVOICES, **sent: str) -> tuple[list[Any], dict[str, Any]]:
    return listing.page(context(store), listing.model.model_validate(sent, context=CATALOGUE))


@pytest.fixture(scope="module")
def plenty() -> Shelves:
    return many(DEEPEST + 150)


def test_totals_stop_counting_at_ten_thousand(plenty):
    for sent in ({}, {"network[ne]": "fantom"}, {"currency[in]": "btc,eth,usdt"}):
        _, told = ask(plenty, limit="100", **sent)
        assert (told["total"], told["total_capped"], told["pages"], told["has_next"]) == (DEEPEST, True, None, True)
    exactly = many(DEEPEST)
    _, told = ask(exactly, limit="100")
    assert (told["total"], "total_capped" in told) == (DEEPEST, False)
    _, told = ask(plenty, status="pending")
    assert (told["total"], "total_capped" in told) == (DEEPEST // 2 + 75, False)


def test_a_list_of_large_records_looks_through_fewer():
    store, few = many(40), replace(INVOICES, most=10)
    found, told = ask(store, few, **{"network[ne]": "tron", "limit": "3"})
    assert (len(found), told["total"], told["total_capped"], told["has_next"]) == (3, 7, True, True)
    found, told = ask(store, few, **{"externalId[like]": "none of these"})
    assert (found, told["total"], told["has_next"]) == ([], 0, True)
    with pytest.raises(InvalidParameter, match="parameters"):
        ask(store, few, sort="amount")
    assert len(ask(many(10), few, sort="amount")[0]) == 10


def test_the_last_page_leads_on_by_cursor(plenty):
    with pytest.raises(InvalidParameter):
        ask(plenty, limit="100", page="101")
    found, told = ask(plenty, limit="100", page="100")
    assert len(found) == 100
    more, told = ask(plenty, limit="100", cursor=told["next_cursor"])
    assert [invoice.id[-16:] for invoice in more] == [f"{n:016d}" for n in range(149, 49, -1)]
    assert len(ask(plenty, limit="100", cursor=told["next_cursor"])[0]) == 50


def test_sorting_needs_a_list_that_fits(plenty):
    with pytest.raises(InvalidParameter) as caught:
        ask(plenty, sort="amount")
    assert "narrow" in caught.value.problems[0].constraints[0]
    assert len(ask(plenty, sort="amount", status="pending")[0]) == 20


@pytest.mark.parametrize(
    ("pattern", "found", "fits"),
    [
        ("der", "Order-1", True), ("DER", "Order-1", True), ("der-2", "Order-1", False), ("%der", "Order-1", False),
        ("%der%", "Order-1", True), ("or%1", "Order-1", True), ("o%r%r%", "Order-1", True), ("o%r%r%r%", "Order-1", False),
        ("or%der-1%r-1", "Order-1", False), ("%", "", True), ("a_c", "abc", False), ("a_c", "xa_cx", True), ("a%a", "a", False),
    ],
)  # fmt: skip
def test_like(pattern: str, found: str, fits: bool) -> None:
    assert Like.of(pattern).fits(found) is fits


def test_like_takes_no_longer_for_many_gaps() -> None:
    assert not Like.of("%a" * 127).fits("a" * 100 + "b" * 150)


@pytest.mark.parametrize(
    "text", ["", "2026-02-30", "2026-1-1", "20260101", "2026-01-01T25:00:00Z", "now", "0", "2026-01-01T10", "2026-01-01Z"]
)
def test_what_is_no_time(text: str) -> None:
    for read in (instant, day):
        with pytest.raises(ValueError, match="must be"):
            read(text)


def test_times() -> None:
    assert instant("2026-05-31T12:00:00+02:00") == instant("2026-05-31T10:00:00.000Z") == instant("2026-05-31 10:00")
    assert instant("2026-05-31T12:00:00 02:00") == instant("2026-05-31T10:00:00")  # a plus sign that was not encoded
    assert instant("2026-05-31T12:00:00.123456Z").low % 1000 == 123
    assert instant("2026-05-31").high - instant("2026-05-31").low == DAY
    assert instant("0001-01-01").low < 0 < instant("9999-12-31").low
