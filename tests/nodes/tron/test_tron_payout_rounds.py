"""How often a payout on Tron waits for the node."""

from __future__ import annotations

from functools import partial

import pytest

from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.nodes.rounds import Rounds, counted, fewest
from tests.nodes.tron_shops import Shop

pytestmark = pytest.mark.nodes

PAYEE = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"


def paid(shop: Shop, monkeypatch: pytest.MonkeyPatch, coin: str) -> Rounds:
    withdrawal = shop.withdraw(PAYEE, 20, coin)
    shop.stack.drain(only=("relay",))
    with counted(monkeypatch) as rounds:
        shop.stack.drain(only=("payout",))
    assert shop.call("GET", f"/v1/withdrawals/{withdrawal}")["data"]["status"] == "confirming"
    return rounds


def test_a_payout_waits_a_few_times_for_the_node(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices and resources are asked when it begins, when its bytes are built, and right before they are signed."""
    shop.paid(100)
    shop.paid(100, "usdt")
    native, tokens = (fewest(partial(paid, shop, monkeypatch, coin), rounds) for coin, rounds in (("trx", 5), ("usdt", 8)))
    assert (native.serial, tokens.serial) == (5, 8)
    for rounds in (native, tokens):
        assert rounds.methods["wallet/getchainparameters"] == rounds.methods["wallet/getaccountresource"] == 3
        assert rounds.methods["wallet/broadcasttransaction"] == 1
    assert tokens.methods["wallet/triggerconstantcontract"] == 1 + 3
    shop.confirm()
    assert audit(services().store) == []
