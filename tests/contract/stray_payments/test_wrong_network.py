"""The right address on another EVM network: invoices are watched on all of them, and nobody withdraws to where nobody watches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.domain.addresses.addresses import Watched
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.support.shop import PAYEE, Shop
from tests.support.stack import Stack

EVM = ["ethereum", "bsc", "polygon", "arbitrum", "fantom"]


def scanned(*shops: Shop) -> None:
    """What was paid is in deep blocks, and found and credited by the polls."""
    for shop in shops:
        shop.mine(shop.realm_network().confirmations)
    polls = tuple(f"poll_{shop.network}" for shop in shops)
    for _ in range(2):
        shops[0].stack.drain(only=polls, rounds=1)
    shops[0].stack.drain(only=("relay",))


@pytest.mark.parametrize("mode", ["single", "common", "cross"])
def test_an_invoice_is_paid_on_the_wrong_network(stack: Stack, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Credited, listed and told, whatever mode addresses have by default; and no part of the invoice."""
    monkeypatch.setattr(services(), "settings", replace(services().settings, addresses_mode=mode))
    shop, elsewhere = Shop(stack), Shop(stack, network="polygon")
    invoice = shop.invoice("1")
    paid = [elsewhere.pay(invoice["address"], "2", coin) for coin in ("matic", "usdt")]
    paid.append(shop.pay(invoice["address"], "7", "usdt"))  # another known coin of the right network
    scanned(shop, elsewhere)
    assert (elsewhere.available("matic"), elsewhere.available("usdt"), shop.available("usdt")) == ("2", "2", "7")
    shown = shop.shown(invoice)
    assert (shown["status"], shown["received"]) == ("pending", "0")
    for each in paid:
        (listed,) = shop.get("/v1/transactions", hash=each["txid"])["data"]
        assert (listed["status"], listed["network"], listed["address"]) == ("confirmed", each["network"], invoice["address"])
        assert shop.told(listed["id"]) == {"transaction.detected": 1, "transaction.confirmed": 1}
    assert shop.told(invoice["id"]) == {"invoice.created": 1}
    # The right payment completes it as ever.
    shop.pay(invoice["address"], "1")
    scanned(shop)
    assert shop.status(invoice) == "completed"
    address = shop.get(f"/v1/addresses/{invoice['address']}")
    assert (address["mode"], address["affectedNetworks"]) == ("cross", EVM)
    assert audit(services().store) == []


@pytest.mark.parametrize("slug", ["bitcoin", "tron"])
def test_off_evm_an_invoice_has_an_address_of_its_network(stack: Stack, slug: str) -> None:
    shop = Shop(stack, network=slug)
    invoice = shop.invoice("1", shop.realm_network().symbol.lower())
    address = shop.get(f"/v1/addresses/{invoice['address']}")
    assert (address["mode"], address["affectedNetworks"]) == ("common", [slug])


def test_a_network_that_becomes_active_later(stack: Stack) -> None:
    """What invoices were made before counts there from its first block on."""
    shop, fantom = Shop(stack), Shop(stack, network="fantom")
    before = fantom.realm_network()
    services().store.commit([Save(replace(before, status="inactive", version=before.version + 1))])
    services().store.forget_catalogue()
    invoice = shop.invoice("1")
    services().store.commit([Save(replace(before, status="active", version=before.version + 2))])
    services().store.forget_catalogue()
    fantom.pay(invoice["address"], "3", "ftm")
    scanned(fantom)
    assert fantom.available("ftm") == "3"


def test_a_withdrawal_to_where_an_address_of_ours_is_not_watched(stack: Stack) -> None:
    """Refused when asked for, alone and in a batch, whosever address it is; a text says what helps."""
    shop, other = Shop(stack), Shop(stack, "other_merchant_test")
    shop.credit("5")
    elsewhere = Shop(stack, network="polygon").post("/v1/addresses", {"network": "polygon", "mode": "common"}).json["address"]
    theirs = other.post("/v1/addresses", {"network": "bsc", "mode": "common"}).json["address"]
    for address in (elsewhere, elsewhere.lower(), theirs):
        refused = shop.ask("1", address=address)
        assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR"), refused.body
        assert refused.json["error"]["details"]["field"] == "address"
        assert "not watched on ethereum" in refused.json["error"]["details"]["reason"]
    outputs = [{"to_address": PAYEE, "amount": "1"}, {"to_address": elsewhere, "amount": "1"}]
    batch = shop.post("/v1/withdrawals", {"batch_withdrawal": {"network": "ethereum", "coin": "eth", "outputs": outputs}})
    assert batch.json["error"]["code"] == "VALIDATION_ERROR"
    assert batch.json["error"]["details"]["field"] == "batch_withdrawal.outputs.1.to_address"
    assert "not watched on ethereum" in batch.json["error"]["details"]["reason"]
    assert shop.balance() == {"available": "5", "frozen": "0", "pending": "0"}
    # Where it is watched it may be paid.
    here = shop.post("/v1/addresses", {"network": "ethereum", "mode": "cross"}).json["address"]
    assert shop.ask("1", address=here).status == 201


def test_one_that_was_accepted_before_fails_when_begun(stack: Stack) -> None:
    """Nothing is signed, and the money is available again."""
    shop = Shop(stack)
    shop.credit("5")
    made = shop.post("/v1/addresses", {"network": "ethereum", "mode": "cross"}).json["address"]
    withdrawal = shop.withdraw("2", address=made)
    watched = services().store.get(Watched, realm="test", family="evm", address=made.lower())
    assert watched is not None
    services().store.commit([Save(replace(watched, networks=("polygon",), version=watched.version + 1))])
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown.get("hash")) == ("failed", None)
    assert "not watched on ethereum" in str(shown)
    assert shop.balance() == {"available": "5", "frozen": "0", "pending": "0"}
    assert audit(services().store) == []
