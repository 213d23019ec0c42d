"""One merchant's many invoices whose time is over hold up nobody else's, and are closed while there is time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.work import Work
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.invoices import expiries as invoice_expiries
from chalicelib.usecases.invoices.expiries import AT_LEAST, InvoiceExpiries
from chalicelib.usecases.invoices.invoices import expiry_work
from chalicelib.usecases.invoices.status import changed
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.wiring import services
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

HOG, HONEST = TenantId("mch_aaaaaaaaaaaaaaaa:test"), TenantId("mch_zzzzzzzzzzzzzzzz:test")
T = 1_700_000_000_000


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred invoices are many."""
    monkeypatch.setattr(invoice_expiries, "PAGE", 10)
    monkeypatch.setattr(invoice_expiries, "GLANCED", 60)
    monkeypatch.setattr(invoice_expiries, "SHARE", 3)
    monkeypatch.setattr(invoice_expiries, "AT_LEAST", 1)


def due(shop: Shop, tenant: TenantId, count: int, at: int = T) -> list[Invoice]:
    network, coin = shop.realm_network(), shop.coin("eth")
    made = [
        Invoice(f"inv_{tenant[4]}{at - T}x{n:05d}", tenant, network.id, coin.asset, "0x", "", 5, T - 10, at + n, emitted=0)
        for n in range(count)
    ]
    for invoice in made:
        services().store.commit([*changed(None, invoice), Open(expiry_work(invoice))])
    return made


def left(shop: Shop) -> list[Work]:
    return services().store.open_work("expiry", shop.realm_network().id, limit=5_000)


def times(count: int) -> Callable[[], bool]:
    """Time for so many invoices."""
    rest = [count]

    def more() -> bool:
        rest[0] -= 1
        return rest[0] >= 0

    return more


def expiries() -> InvoiceExpiries:
    return InvoiceExpiries(services().store, services().clock)


def statuses(invoices: list[Invoice]) -> set[str]:
    found = [services().store.get(Invoice, tenant=i.tenant, id=i.id) for i in invoices]
    return {invoice.status for invoice in found if invoice is not None}


def test_more_than_one_page_is_closed_in_one_run(shop: Shop) -> None:
    """200 a minute were, however much time there was."""
    hog = due(shop, HOG, 35)
    assert expiries().expire_due(shop.realm_network().id, T + 1_000) == 35
    assert (statuses(hog), left(shop)) == ({"expired"}, [])


def test_what_is_not_due_stays(shop: Shop) -> None:
    due(shop, HOG, 20)
    assert expiries().expire_due(shop.realm_network().id, T + 4) == 5
    assert len(left(shop)) == 15


def test_a_merchants_many_do_not_hold_up_anothers(shop: Shop) -> None:
    """The honest merchant's stand behind 55 of another, and there is time for 20 in all."""
    due(shop, HOG, 55)
    honest = due(shop, HONEST, 2, T + 500)
    expiries().expire_due(shop.realm_network().id, T + 1_000, times(25))
    assert statuses(honest) == {"expired"}


def test_more_than_a_run_glances_over_is_gone_through_in_several(shop: Shop) -> None:
    due(shop, HOG, 150)
    honest = due(shop, HONEST, 1, T + 500)
    runs = expiries()
    closed = 0
    for _ in range(3):
        closed += runs.expire_due(shop.realm_network().id, T + 1_000, times(8))
    assert statuses(honest) == {"expired"}
    assert closed < 50


def test_every_run_closes_some_however_late_it_is(shop: Shop) -> None:
    due(shop, HOG, 4)
    assert expiries().expire_due(shop.realm_network().id, T + 1_000, lambda: False) == 1
    assert AT_LEAST > 1


def test_one_that_fails_holds_up_nobody(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    hog = due(shop, HOG, 25)
    commit = services().store.commit

    def broken(changes: Any) -> None:
        if any(isinstance(c, Save) and getattr(c.record, "id", "") == hog[0].id for c in changes):
            raise ZeroDivisionError
        commit(changes)

    monkeypatch.setattr(services().store, "commit", broken)
    with pytest.raises(Failures):
        expiries().expire_due(shop.realm_network().id, T + 1_000)
    assert [work.id for work in left(shop)] == [f"{HOG}|{hog[0].id}"]
    monkeypatch.undo()
    expiries().expire_due(shop.realm_network().id, T + 1_000)
    assert left(shop) == []


def test_one_that_is_paid_between_the_reading_and_the_closing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many are read at once; the one that has changed is read again."""
    (invoice,) = due(shop, HOG, 1)
    store = services().store
    real, once = store.get_many, [True]

    def then_paid(wanted: Any) -> list[Any]:
        found = real(wanted)
        if once and wanted[0][0] is Invoice:
            once.clear()
            paid = replace(invoice, unconfirmed=5, version=2).settled()
            store.commit(changed(invoice, paid))
        return found

    monkeypatch.setattr(store, "get_many", then_paid)
    expiries().expire_due(shop.realm_network().id, T + 1_000)
    after = store.get(Invoice, tenant=HOG, id=invoice.id)
    assert after is not None
    assert (after.status, after.expired, after.unconfirmed, left(shop)) == ("confirming", True, 5, [])
    store.commit(changed(after, replace_paid(after)))


def replace_paid(invoice: Invoice) -> Invoice:
    """Without what the audit finds no deposit for."""
    return replace(invoice, unconfirmed=0, version=invoice.version + 1).settled()


def test_what_another_sweep_closed_meanwhile_is_tried_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two polls of one network read the same page. The later one has nothing left to do, and does not wait for it either."""
    made = due(shop, HOG, 5)
    store, network = services().store, shop.realm_network().id
    read, committed = type(store).get_many, list[int]()
    commit = type(store).commit

    def get_many(self: Any, wanted: Any) -> Any:
        found = read(self, wanted)
        if any(kind is Invoice for kind, _ in wanted) and not committed:
            monkeypatch.setattr(type(store), "get_many", read)
            expiries().expire_due(network, T + 5_000)
            committed.append(0)
        return found

    def counted(self: Any, changes: Any) -> Any:
        if committed:
            committed[0] += 1
        return commit(self, changes)

    monkeypatch.setattr(type(store), "get_many", get_many)
    monkeypatch.setattr(type(store), "commit", counted)
    expiries().expire_due(network, T + 5_000)
    assert statuses(made) == {"expired"} and left(shop) == []
    assert committed == [len(made)]
