"""What an operator can release is found without its id: deposits of all merchants, and none of it for anybody else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.merchants.merchants import ApiKey
from chalicelib.usecases.merchants.access import hash_key
from chalicelib.wiring import services
from tests.faults.left_to_newer import Left
from tests.support.shop import Shop, open_shop
from tests.support.stack import Stack

GREY = "0x52908400098527886E0F7030069857D2E4169EE7"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def releasable(shop: Shop, key: str = "admin_test", **query: str) -> Any:
    answer = shop.stack.call("GET", "/v1/transactions", shop.stack.keys[key], query={"releasable": "true", **query})
    assert answer.status == 200, answer.body
    return answer.json["data"]


def test_a_held_deposit_is_found_by_the_operator_and_gone_once_it_is_released(shop: Shop) -> None:
    admin = shop.stack.keys["admin_test"]
    listed = shop.stack.call("POST", "/v1/addresses/grey-list", admin, json={"network": "ethereum", "address": GREY})
    assert listed.status == 201
    invoice = shop.invoice("1")
    services().sandbox.deposit(shop.coin("eth").network, invoice["address"], shop.coin("eth"), 10**18, GREY)
    shop.mine()
    shop.turn()
    (found,) = releasable(shop)
    (owner,) = (key.merchant for key in services().store.every(ApiKey) if key.hash == hash_key(shop.key))
    assert (found["merchantId"], found["amount"], "held" in found["flags"]) == (owner, "1", True)
    assert releasable(shop, network="polygon") == []
    assert [each["id"] for each in releasable(shop, "client_test")] == [found["id"]]
    assert "merchantId" not in releasable(shop, "client_test")[0]
    assert releasable(shop, "other_merchant_test") == []
    assert releasable(shop, "admin_live") == []
    assert shop.stack.call("POST", f"/v1/transactions/{found['id']}/release", admin).status == 200
    assert releasable(shop) == []
    assert shop.status(invoice) == "completed"


def test_a_deposit_in_a_newer_form_keeps_no_other_from_the_operator(shop: Shop) -> None:
    admin = shop.stack.keys["admin_test"]
    shop.stack.call("POST", "/v1/addresses/grey-list", admin, json={"network": "ethereum", "address": GREY})
    addresses = [shop.invoice("1")["address"] for _ in range(2)]
    for address in addresses:
        services().sandbox.deposit(shop.coin("eth").network, address, shop.coin("eth"), 10**18, GREY)
    shop.mine()
    shop.turn()
    one, other = releasable(shop)
    left = Left(services().store.get(Deposit, id=one["id"]), "status")
    left.put("confirmed")
    left.form(1)
    assert [each["id"] for each in releasable(shop)] == [other["id"]]
    left.unform()
    assert len(releasable(shop)) == 2


def test_wallets_and_moves_are_listed_for_the_operator(shop: Shop) -> None:
    admin = shop.stack.keys["admin_test"]
    wallets = shop.stack.call("GET", "/v1/addresses/service-wallets", admin, query={"network": "ethereum"}).json
    one = shop.stack.call("GET", "/v1/addresses/hot-wallet/ethereum", admin).json
    assert [each for each in wallets if each["walletType"] == "hot"] == [one]
    networks = {each["network"] for each in shop.stack.call("GET", "/v1/addresses/service-wallets", admin).json}
    assert len(networks) == 8
    assert shop.stack.call("GET", "/v1/moves", admin).json == []
    for path in ("/v1/addresses/service-wallets", "/v1/moves", "/v1/networks/ethereum/rescan"):
        assert shop.stack.call("GET", path, shop.key).status == 403
