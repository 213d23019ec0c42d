"""One scenario on all eight networks, each on its node: an invoice is paid, falls out of the chain before it is credited and comes
back, is credited; a withdrawal goes out; then a reorganisation takes both the payment and the withdrawal out of the chain, after
both were final. In the end everything is paid once, and the books are whole. Through the HTTP interface, the schedules and the
queues alone; KMS signs. A check goes through it on a network of each family, and `make sweep` on all eight.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from infra.local.aws import LocalAws
from tests.nodes.grounds import Ground, ground_of
from tests.nodes.merchants import Merchant, open_shop

pytestmark = pytest.mark.nodes

NETWORKS = NETWORK_ORDER if os.environ.get("SWEEP") == "full" else ("ethereum", "litecoin")


@pytest.fixture(params=NETWORKS)
def merchant(request: pytest.FixtureRequest, aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Merchant]:
    ground = ground_of(request.param)
    try:
        yield open_shop(aws, ground, monkeypatch)
    finally:
        ground.stop()


def test_paid_reorganised_credited_withdrawn_reorganised_again(merchant: Merchant) -> None:
    ground = merchant.ground
    made = merchant.bill(20)
    ground.pay(made["address"], merchant.units(20))
    ground.mine()
    merchant.run()
    assert merchant.invoice(made) == ("confirming", "0")

    # Before it is credited, its block falls out.
    ground.reorganise(2)
    merchant.run()
    assert merchant.invoice(made) == (fallen_out(ground), "0")
    ground.pay_again(made["address"], merchant.units(20))
    merchant.confirm()
    assert merchant.invoice(made) == ("completed", merchant.shown(20))
    assert merchant.available() == merchant.shown(20)

    # Money goes out.
    before = ground.received(ground.out)
    name = merchant.withdraw(5)
    merchant.run()
    assert merchant.withdrawal(name)["status"] == "confirming"
    merchant.confirm()
    paid = merchant.withdrawal(name)
    assert paid["status"] == "confirmed"
    assert ground.received(ground.out) - before == merchant.units(5)
    assert merchant.available() == merchant.shown(15)

    # What was final falls out: the payment and the withdrawal.
    ground.reorganise(2 * merchant.network.confirmations + 3)
    merchant.run()
    merchant.run()
    assert merchant.invoice(made) == (fallen_out(ground), "0")
    assert merchant.available() == "-" + merchant.shown(5)
    assert merchant.withdrawal(name)["status"] == "confirming"
    body = {"network": merchant.slug, "coin": merchant.coin, "address": ground.out, "amount": merchant.shown(2)}
    refused = merchant.call("POST", "/v1/withdraws", 400, json=body)
    assert refused["error"]["code"] == "INSUFFICIENT_BALANCE"

    # Both come back, once. On Tron the withdrawal names a block that is gone: it expires, and is made anew.
    services().clock.shift_ms += ground.wait_out()
    merchant.run()
    ground.pay_again(made["address"], merchant.units(20))
    merchant.confirm()
    merchant.confirm()
    assert merchant.invoice(made) == ("completed", merchant.shown(20))
    assert merchant.available() == merchant.shown(15)
    again = merchant.withdrawal(name)
    assert again["status"] == "confirmed"
    assert (again["transaction_hash"] == paid["transaction_hash"]) == (merchant.slug != "tron")
    assert ground.received(ground.out) - before == merchant.units(5)
    assert audit(services().store) == []


def fallen_out(ground: Ground) -> str:
    """What becomes of an invoice whose payment's block fell out: where the payment waits in the mempool again, it is seen there."""
    return "confirming" if ground.waits() else "pending"
