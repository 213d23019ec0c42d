"""An invoice with several payments goes to the archive as a whole; one with more rows than a transaction takes stays, and is told.

On moto alone: DynamoDB Local takes ten items a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.archive.payments import DAY_MS, SAID_MS
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import TenantId
from chalicelib.usecases.archive import old_payments
from chalicelib.usecases.ports.changes import FEW_ITEMS, Stub
from chalicelib.wiring import services
from chalicelib.workers import archive as worker
from tests.support.archive import Attic, open_attic
from tests.support.collected_deposits import settings

OFFERS = [{"coin": "eth", "network": "ethereum"}, {"coin": "usdt", "network": "ethereum"}]
MANY = 27
"""Payments of one invoice: a stub, an entry and a name each are more than 80 items."""


@pytest.fixture
def attic(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attic]:
    with open_attic(stack, monkeypatch) as found:
        yield found


def test_three_payments_in_two_coins_one_of_them_released(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(attic, "usdt", minDepositAmount="5")
    made = attic.post("/v1/invoices", {"fiatAmount": "90", "fiatCurrency": "USD", "accept": OFFERS, "externalId": "order-3"}).json
    invoice = attic.stack.call("POST", f"/v1/pay/{made['id']}/choice", json=OFFERS[0]).json | {"id": made["id"]}
    for amount, coin in (("0.02", "eth"), ("30", "usdt"), ("1", "usdt")):
        attic.pay(invoice["address"], amount, coin)
        attic.mine()
        attic.turn()
    (small,) = (d for d in services().store.every(Deposit) if d.amount == 10**6 and d.tenant is not None)
    released = attic.stack.call("POST", f"/v1/transactions/{small.id}/release", attic.stack.keys["admin_test"])
    assert released.status == 200, released.body
    attic.turn()
    listed = attic.get(f"/v1/transactions/address/{invoice['address']}")["data"]
    assert {each["invoiceId"] for each in listed} == {made["id"]}
    paths = [f"/v1/invoices/{made['id']}", f"/v1/transactions/address/{invoice['address']}"]
    paths += [f"/v1/transactions/{each['id']}" for each in listed]
    before = attic.answers(paths)
    attic.a_year_later()
    sent: list[Any] = []
    commit = services().store.commit
    with monkeypatch.context() as patch:
        patch.setattr(services().store, "commit", lambda changes: [sent.append(changes), commit(changes)])
        assert attic.archive() == 1
    (whole,) = (changes for changes in sent if any(isinstance(change, Stub) for change in changes))
    assert len(whole) > FEW_ITEMS
    assert attic.kept() == {each["id"] for each in listed}
    assert attic.answers(paths) == before


def test_one_that_is_too_large_stays_and_is_told_once(
    attic: Attic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    invoice = attic.invoice(str(MANY), "usdt")
    for _ in range(MANY):
        attic.pay(invoice["address"], "1", "usdt")
    attic.mine()
    attic.turn()
    assert attic.status(invoice) == "completed"
    attic.a_year_later()

    def told() -> list[str]:
        caplog.clear()
        for seconds in (0, SAID_MS // 1000):
            attic.wait(seconds)
            worker.run()
        assert attic.kept() == set()
        return [line for line in caplog.messages if "ALARM" in line]

    assert told() == ["ALARM archive test: 1 payments have too many rows and stay"]
    assert f"{invoice['id']} of {attic.tenant()}" in caplog.text
    attic.wait(DAY_MS // 1000)
    assert told() == [], "there are not more of them than a day ago"
    assert invoice["id"] in caplog.text, "another round has looked"
    monkeypatch.setattr(old_payments, "MOST_ITEMS", MANY - 1)
    asked = TenantId(attic.tenant()), invoice["id"], services().clock.now_ms() - DAY_MS
    assert services().archiving.archive(*asked) == "large", "the list of its address is not read to its end"
