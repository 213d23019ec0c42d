"""Service wallets over HTTP: registered once, read by everybody, their keys seen by nobody again; and one that pays."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.custody.records import EncryptedKey
from chalicelib.domain.addresses.addresses import RetiredWallet, Wallet, Watched
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import address_of
from chalicelib.usecases.base.current_wallets import hot_wallets
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.ports.changes import Delete
from chalicelib.usecases.wallets import service_wallets
from chalicelib.wiring import services
from infra.bootstrap import make_key
from tests.support.edge import PREPARED, Edge
from tests.support.shop import ETHER, PAYEE, Shop, open_shop
from tests.support.stack import Response, Stack

# The first key of anvil and Hardhat (words "test test ... junk") and its published address.
KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
# The private key 1: WIF and P2WPKH address as BIP-173 and every wallet have them.
ONE = "0" * 63 + "1"
WIF_OF_ONE = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn"
SEGWIT_OF_ONE = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
ORDER = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def register(edge: Edge, network: str = "ethereum", key: str = "admin", headers: Any = None, **body: Any) -> Response:
    return edge.call("POST", "/v1/addresses/service-wallets", key=key, json={"network": network, **body}, headers=headers)


def problem(answer: Response) -> tuple[str, Any]:
    assert answer.status == 400, answer.body
    details = answer.json["error"]["details"]
    return answer.json["error"]["code"], details[0]["field"] if isinstance(details, list) else details["field"]


@pytest.mark.parametrize(
    ("alias", "type_", "path"),
    [
        ("hot", "hot", "hot-wallet"), ("hot-wallet", "hot", "hot-wallet"), ("cold", "cold", "cold-wallet"),
        ("cold-wallet", "cold", "cold-wallet"), ("collector", "tokens_collector", "service-wallet"),
        ("tokens_collector", "tokens_collector", "service-wallet"), ("token-collector", "tokens_collector", "service-wallet"),
    ],
)  # fmt: skip
def test_every_type_is_registered_and_read(edge, alias, type_, path):
    assert edge.call("GET", f"/v1/addresses/{path}/ethereum").status == 404
    made = register(edge, type=alias, **({"address": PAYEE.lower()} if type_ == "cold" else {}))
    assert (made.status, made.json["type"], made.json["network"]) == (201, type_, "ethereum")
    if type_ == "cold":
        assert made.json == {"address": PAYEE, "network": "ethereum", "type": "cold", "custody": "none"}
    else:
        point = public_point(made.json["privateKey"])
        assert made.json["address"] == address_of("ethereum", point)
    for key in ("client", "reader", "admin"):
        read = edge.call("GET", f"/v1/addresses/{path}/ethereum", key=key).json
        assert (read["network"], read["walletType"], read["address"]) == ("ethereum", type_, made.json["address"])
        assert {b["coin"] for b in read["balances"]} == {"eth", "usdt", "usdc", "busd", "dai"}
    calls = edge.calls()
    edge.call("GET", f"/v1/addresses/{path}/ethereum")
    assert calls.made == ["UpdateItem", "BatchGetItem"]
    again = register(edge, type=alias, **({"address": PAYEE} if type_ == "cold" else {}))
    if type_ == "cold":
        assert problem(again) == ("VALIDATION_ERROR", "address")
        again = register(edge, type=alias, address=ADDRESS)
    read = edge.call("GET", f"/v1/addresses/{path}/ethereum").json
    assert (again.status, again.json["type"], again.json["address"]) == (201, type_, read["address"])
    assert read["address"] != made.json["address"]
    assert edge.call("GET", f"/v1/addresses/{path}/nowhere").status == 400
    assert edge.call("GET", f"/v1/addresses/{path}/bsc").status == 404


def public_point(secret: str) -> bytes:
    from coincurve import PrivateKey

    return PrivateKey(bytes.fromhex(secret)).public_key.format(compressed=False)[1:]


def test_the_cold_wallet_of_one_coin(edge):
    register(edge, type="cold", address=PAYEE)
    (only,) = edge.call("GET", "/addresses/cold-wallet/ethereum?coin=usdt").json["balances"]
    assert (only["coin"], only["balance"], only["balanceUSD"]) == ("usdt", "0", 0.0)
    for coin in ("gold", "btc"):
        assert problem(edge.call("GET", f"/addresses/cold-wallet/ethereum?coin={coin}")) == ("INVALID_PARAMETER", "coin")


@pytest.mark.parametrize(
    ("network", "secret", "address"),
    [
        ("ethereum", KEY, ADDRESS),
        ("bsc", "0x" + KEY.upper(), ADDRESS),
        ("tron", KEY, base58check.encode(b"\x41" + bytes.fromhex(ADDRESS[2:]))),
        ("bitcoin", ONE, SEGWIT_OF_ONE),
        ("bitcoin", WIF_OF_ONE, SEGWIT_OF_ONE),
    ],
)
def test_a_key_that_is_sent_is_kept_and_shown_to_nobody(edge, caplog, network, secret, address):
    caplog.set_level(logging.DEBUG, logger="chalicelib")
    made = register(edge, network, type="hot", privateKey=secret, address=address, headers={"Idempotency-Key": "k"})
    assert (made.status, made.json) == (201, {"address": address, "network": network, "type": "hot", "custody": "envelope"})
    assert secret not in caplog.text
    everything = edge.services.store.models.connection.client
    for table in ("records", "chain", "custody", "work"):
        stored = str(everything.scan(TableName=edge.services.settings.table(table))["Items"])
        assert secret.lower().removeprefix("0x") not in stored.lower()
    (row,) = edge.services.store.every(EncryptedKey)
    (wallet,) = edge.services.store.every(Wallet)
    assert (wallet.custody, wallet.key, row.context["purpose"]) == ("envelope", row.id, "wallet-key")


@pytest.mark.parametrize(
    ("network", "secret"),
    [
        ("ethereum", "0" * 64), ("ethereum", ORDER), ("ethereum", "f" * 64), ("ethereum", KEY[:-1]), ("ethereum", WIF_OF_ONE),
        ("bitcoin", WIF_OF_ONE[:-1] + "m"), ("litecoin", WIF_OF_ONE),
        ("bitcoin", "5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAnchuDf"),
        ("tron", "KEY" + KEY[3:]), ("bitcoin", " " + ONE),
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused_and_not_repeated(edge, caplog, network, secret):
    caplog.set_level(logging.DEBUG, logger="chalicelib")
    answer = register(edge, network, type="hot", privateKey=secret)
    assert problem(answer) == ("INVALID_PARAMETER", "privateKey")
    assert secret not in answer.body.decode() + caplog.text
    assert list(edge.services.store.every(Wallet)) == []


@pytest.mark.parametrize("name", ["privatekey", "private_key", "privKey_wif", "PRIVATE-KEY"])
def test_a_key_under_a_mistyped_name_is_not_repeated(edge, name):
    answer = register(edge, type="hot", **{name: KEY})
    assert answer.status == 400
    assert KEY not in answer.body.decode()


def test_what_does_not_fit_together(edge):
    assert problem(register(edge, type="cold")) == ("INVALID_PARAMETER", "address")
    both = register(edge, type="cold", address=PAYEE, privateKey=KEY)
    assert problem(both) == ("INVALID_PARAMETER", "privateKey")
    assert KEY not in both.body.decode()
    assert problem(register(edge, type="hot", address=PAYEE)) == ("INVALID_PARAMETER", "address")
    assert problem(register(edge, type="hot", address=PAYEE, privateKey=KEY)) == ("INVALID_PARAMETER", "address")
    assert problem(register(edge, type="hot", address="nonsense", privateKey=KEY)) == ("INVALID_PARAMETER", "address")
    assert problem(register(edge, type="cold", address=ADDRESS.replace("F", "f", 1))) == ("INVALID_PARAMETER", "address")
    assert problem(register(edge, type="user")) == ("INVALID_PARAMETER", "type")
    assert problem(register(edge, "nowhere", type="hot")) == ("INVALID_PARAMETER", "network")
    assert register(edge, key="client", type="hot").status == 403
    assert list(edge.services.store.every(Wallet)) == []


def test_an_address_has_one_owner_and_one_role(edge):
    deposit = edge.call("POST", "/addresses", json={"network": "ethereum"}).json["address"]
    for network in ("ethereum", "bsc"):
        assert problem(register(edge, network, type="cold", address=deposit)) == ("VALIDATION_ERROR", "address")
    assert register(edge, "ethereum", type="hot", privateKey=KEY).status == 201
    assert problem(register(edge, "ethereum", type="cold", address=ADDRESS)) == ("VALIDATION_ERROR", "address")
    assert problem(register(edge, "bsc", type="collector", privateKey=KEY)) == ("VALIDATION_ERROR", "address")
    assert register(edge, "bsc", type="hot", privateKey=KEY).status == 201
    watched = edge.services.store.get(Watched, realm="test", family="evm", address=ADDRESS.lower())
    assert (watched.role, watched.networks, watched.tenant) == ("hot", ("ethereum", "bsc"), None)


def test_a_generated_key_is_repeated_to_the_same_key_alone_and_kept_in_the_clear_nowhere(edge):
    first = register(edge, type="hot", headers={"Idempotency-Key": "once"})
    again = register(edge, type="hot", headers={"Idempotency-Key": "once"})
    assert (first.status, again.status, again.headers["idempotency-replayed"]) == (201, 201, "true")
    assert again.body == first.body
    secret = first.json["privateKey"]
    operator = edge.call("GET", "/v1/merchant", key="admin").json["data"]["id"]
    theirs = make_key(edge.services, operator, "test", "admin", ("full",), "a colleague's")
    colleague = register(edge, type="hot", headers={"Idempotency-Key": "once"}, key=theirs)
    assert problem(colleague) == ("VALIDATION_ERROR", "Idempotency-Key")
    assert secret not in colleague.body.decode()
    (stored,) = edge.services.store.every(StoredAnswer)
    assert secret not in stored.body


def at_once(edge: Edge, key: str, headers: Any = None) -> list[Response]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: register(edge, type="hot", key=key, headers=headers), range(4)))


def test_of_simultaneous_registrations_one_is_made(edge):
    answers = at_once(edge, edge.new_key(realm="live", level="admin"))
    assert sorted(answer.status for answer in answers) == [201, 400, 400, 400]
    made = next(answer for answer in answers if answer.status == 201)
    (wallet,) = edge.services.store.every(Wallet)
    (row,) = edge.services.store.every(EncryptedKey)
    assert (wallet.address, wallet.key) == (made.json["address"], row.id)


def test_of_simultaneous_ones_in_the_sandbox_one_is_in_place_and_the_others_are_replaced(edge):
    answers = at_once(edge, "admin")
    assert [answer.status for answer in answers] == [201] * 4
    (wallet,) = edge.services.store.every(Wallet)
    retired = list(edge.services.store.every(RetiredWallet))
    assert all(old.drained_at is None for old in retired), "what they have is moved"
    addresses = sorted(answer.json["address"] for answer in answers)
    assert sorted([wallet.address, *(old.address for old in retired)]) == addresses
    assert len({*addresses}) == len(list(edge.services.store.every(EncryptedKey))) == 4


def test_the_same_request_again_replaces_nothing_more(edge):
    first = register(edge, type="hot").json["address"]
    answers = at_once(edge, "admin", {"Idempotency-Key": "once"})
    assert {answer.body for answer in answers} == {answers[0].body}
    assert sorted("idempotency-replayed" in answer.headers for answer in answers) == [False, True, True, True]
    assert [old.address for old in edge.services.store.every(RetiredWallet)] == [first]
    (wallet,) = edge.services.store.every(Wallet)
    assert wallet.address == answers[0].json["address"]


def test_a_live_key_replaces_nothing_and_touches_no_sandbox(edge):
    mine = {"test": register(edge, type="hot").json["address"]}
    live = edge.new_key(realm="live", level="admin")
    mine["live"] = register(edge, type="hot", key=live).json["address"]
    for body in ({}, {"privateKey": KEY}):
        again = register(edge, type="hot", key=live, **body)
        assert problem(again) == ("VALIDATION_ERROR", "type")
        assert mine["live"] in again.body.decode()
    for key in ("client", "live"):
        assert register(edge, type="hot", key=key).status == 403
    assert {wallet.network.split(":")[0]: wallet.address for wallet in edge.services.store.every(Wallet)} == mine
    assert list(edge.services.store.every(RetiredWallet)) == []


def test_over_http_slot_0_alone_is_registered_and_replaced(edge: Edge) -> None:
    """Further hot wallets are the command line's, which knows who may add them."""
    store, network = edge.services.store, edge.services.catalogue("test").networks["ethereum"]

    def slots() -> dict[int, str]:
        return {wallet.slot: wallet.address for wallet in hot_wallets(store, network.id)}

    assert problem(register(edge, type="hot", slot=1))[1] == "slot"
    assert problem(register(edge, type="hot#1"))[1] == problem(register(edge, type="hot (slot 1)"))[1] == "type"
    assert slots() == {}
    first = register(edge, type="hot").json["address"]
    assert slots() == {0: first}
    second = edge.services.wallets.registering(None, network, "hot", by="a test", slot=1).run().wallet.address
    for refused in (0, 1):
        assert problem(register(edge, type="hot", slot=refused))[1] == "slot"
    replaced = register(edge, type="hot").json["address"]
    assert replaced != first
    assert slots() == {0: replaced, 1: second}


def test_how_often_a_sandbox_wallet_is_replaced_is_bounded(edge, monkeypatch):
    monkeypatch.setattr(service_wallets, "SANDBOX_REPLACED", 2)
    assert [register(edge, type=role).status for role in ("hot", "hot", "collector", "collector")] == [201] * 4
    refused = register(edge, type="hot")
    assert problem(refused) == ("VALIDATION_ERROR", "type")
    assert "2 wallets of ethereum were replaced" in refused.body.decode()
    assert register(edge, "bsc", type="hot").status == 201
    edge.services.clock.shift_ms += 86_400_000
    assert register(edge, type="hot").status == 400, "the sandbox's clock is the developers' own"


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def test_a_wallet_that_was_registered_pays(shop: Shop) -> None:
    network = shop.realm_network().id
    services().store.commit([Delete(Wallet, {"network": network, "role": "hot"})])
    admin = shop.stack.keys["admin_test"]
    made = shop.stack.call("POST", "/v1/addresses/service-wallets", admin, {"network": "ethereum", "type": "hot"}).json
    shop.pay(made["address"], "5")
    shop.credit("1")
    withdrawal = shop.withdraw("0.75")
    shop.turn()
    shop.mine()
    shop.turn()
    shown = shop.withdrawal(withdrawal)
    assert (shown["status"], shown["from_address"]) == ("confirmed", made["address"])
    assert shop.paid() == 3 * ETHER // 4
    read = shop.get("/v1/addresses/hot-wallet/ethereum")
    left = next(b["balance"] for b in read["balances"] if b["coin"] == "eth")
    assert shop.paid(made["address"]) == round(float(left) * 1e9) * 10**9


def test_what_comes_to_the_cold_wallet_is_the_operators(shop: Shop) -> None:
    admin = shop.stack.keys["admin_test"]
    cold = {"network": "ethereum", "type": "cold", "address": PAYEE}
    assert shop.stack.call("POST", "/v1/addresses/service-wallets", admin, cold).status == 201
    shop.pay(PAYEE, "3")
    shop.mine()
    shop.turn()
    (eth,) = shop.get("/v1/addresses/cold-wallet/ethereum", coin="eth")["balances"]
    assert eth["balance"] == "3"
    (deposit,) = (d for d in services().store.every(Deposit) if d.address == PAYEE)
    assert (deposit.tenant, deposit.status) == (None, "confirmed")
    assert shop.available() == "0"
