"""Each resource's good path, its published fields, its statuses, and what it costs in calls."""

from __future__ import annotations

import re
from typing import Any

import pytest

from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ids import NetworkId
from chalicelib.usecases.ports.changes import Save
from tests.support.edge import PREPARED, Edge

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def deposit(edge: Edge, n: int, **changes: Any) -> Deposit:
    network, txid = NetworkId("test:ethereum"), f"0x{n:064x}"
    values = {
        "id": deposit_id(network, txid, "native"), "network": network, "asset": "test:ethereum:eth", "tenant": f"{edge.shop}:test",
        "txid": txid, "position": "native", "sender": PAYEE, "address": PAYEE, "amount": 10**18, "block_number": 5,
        "block_hash": "0x1", "block_time": 0, "created_at": 1_700_000_000_000 + n,
    }  # fmt: skip
    made = Deposit(**(values | changes))
    edge.services.store.commit([Save(made)])
    return made


def test_an_invoice_from_making_to_overriding(edge):
    body = {
        "currency": "usdt", "amount": "12.50", "network": "polygon", "externalId": "order-7", "description": "Shoes",
        "redirectUrl": "https://shop.example/thanks?a=b", "expiresIn": 60,
    }  # fmt: skip
    made = edge.call("POST", "/v1/invoices", json=body)
    assert made.status == 201
    invoice = made.json
    assert (invoice["amount"], invoice["currency"], invoice["network"], invoice["status"]) == ("12.5", "usdt", "polygon", "pending")
    assert (invoice["externalId"], invoice["description"], invoice["received"]) == ("order-7", "Shoes", "0")
    assert ISO.fullmatch(invoice["createdAt"])
    assert edge.call("GET", "/invoices", query={"id": invoice["id"]}).json == invoice
    assert edge.call("GET", "/invoices/getByExternalId", query={"externalId": "order-7"}).json == invoice
    listed = edge.call("GET", "/v1/invoices/getAll").json
    assert (listed["count"], listed["data"]) == (1, [invoice])
    changed = edge.call("PUT", "/invoices", json={"invoiceId": invoice["id"], "status": "paid-in-cash"})
    assert changed.status == 201
    assert (changed.json["invoiceId"], changed.json["newStatus"]) == (invoice["id"], "paid-in-cash")
    assert edge.call("GET", "/invoices", query={"id": invoice["id"]}).json["status"] == "paid-in-cash"


def test_an_invoice_without_network_is_on_the_first_active_one(edge):
    assert edge.call("POST", "/invoices", json={"currency": "usdt", "amount": 1}).json["network"] == "ethereum"
    assert edge.call("POST", "/invoices", json={"currency": "trx", "amount": 1}).json["network"] == "tron"


def test_an_amount_sent_as_a_number_is_exact_to_the_last_digit(edge):
    made = edge.call("POST", "/invoices", body='{"currency": "eth", "amount": 0.123456789012345678}')
    assert made.json["amount"] == "0.123456789012345678"


def test_invoices_of_live_networks_without_a_node_are_refused(edge):
    response = edge.call("POST", "/invoices", key="live", json={"currency": "eth", "amount": 1})
    assert (response.status, response.json["code"]) == (400, "VALIDATION_ERROR")


def test_invoices_of_others_are_as_if_they_were_not(edge):
    made = edge.call("POST", "/invoices", json={"currency": "eth", "amount": 1, "externalId": "x"}).json
    never = "inv_" + "0" * 26
    for method, path, kwargs in (
        ("GET", "/invoices", lambda i: {"query": {"id": i}}),
        ("PUT", "/invoices", lambda i: {"json": {"invoiceId": i, "status": "completed"}}),
    ):
        foreign = edge.call(method, path, key="other", **kwargs(made["id"]))
        missing = edge.call(method, path, key="other", **kwargs(never))
        assert foreign.status == missing.status == 400
        assert foreign.body.replace(made["id"].encode(), b"") == missing.body.replace(never.encode(), b"")
    assert edge.call("GET", "/invoices/getByExternalId", key="other", query={"externalId": "x"}).status == 400
    assert edge.call("POST", "/invoices", key="other", json={"currency": "eth", "amount": 1, "externalId": "x"}).status == 201


def test_invoices_are_filtered_and_paged(edge):
    ids = [edge.call("POST", "/invoices", json={"currency": coin, "amount": 1}).json["id"] for coin in ("eth", "btc") * 3]
    edge.call("PUT", "/invoices", json={"invoiceId": ids[0], "status": "paid"})

    def found(**query: Any) -> list[int]:
        return sorted(ids.index(invoice["id"]) for invoice in edge.call("GET", "/invoices/getAll", query=query).json["data"])

    assert found(currency="btc") == [1, 3, 5]
    assert found(status="paid") == [0]
    assert (
        found(status=["paid", "pending"])
        == found(status="paid,pending")
        == found(**{"status[]": ["paid", "pending"]})
        == list(range(6))
    )
    assert found(**{"from": "2100-01-01"}) == []
    assert found(to="2100-01-01") == list(range(6))
    page = edge.call("GET", "/invoices/getAll", query={"perPage": 4, "page": 2}).json
    assert ([ids.index(i["id"]) for i in page["data"]], page["count"]) == ([1, 0], 6)
    assert page["meta"]["pagination"] == {
        "page": 2, "limit": 4, "total": 6, "pages": 2, "has_next": False, "has_prev": True, "next_cursor": None,
    }  # fmt: skip


def test_addresses(edge):
    made = edge.call("POST", "/v1/addresses", json={"network": "ethereum", "label": "till 3", "metadata": {"shelf": 1.5}})
    assert made.status == 201
    address = made.json
    assert (address["type"], address["mode"], address["affectedNetworks"]) == ("user", "common", ["ethereum"])
    assert {balance["coin"] for balance in address["balances"]} == {"eth", "usdt", "usdc", "busd", "dai"}
    assert set(address["balances"][0]) == {"coin", "symbol", "network", "balance", "balanceUSD", "contractAddress"}
    for name in (address["id"], address["address"], address["address"].lower()):
        assert edge.call("GET", f"/addresses/{name}").json == {**address, "totalBalanceUSD": 0}
    listed = edge.call("GET", "/addresses").json
    assert (listed["success"], listed["data"], listed["meta"]["pagination"]["total"]) == (True, [address], 1)
    assert edge.call("GET", f"/addresses/{PAYEE}").status == 404
    assert edge.call("GET", "/addresses/nonsense").status == 400
    wrong_checksum = PAYEE.replace("E", "e", 1)
    assert edge.call("GET", f"/addresses/{wrong_checksum}").status == 400


def test_modes_and_types_of_addresses(edge):
    single = edge.call("POST", "/addresses", json={"network": "ethereum", "coin": "usdt", "mode": "single"}).json
    assert (single["mode"], single["coin"], [b["coin"] for b in single["balances"]]) == ("single", "usdt", ["usdt"])
    cross = edge.call("POST", "/addresses", json={"network": "ethereum", "mode": "cross"}).json
    assert set(cross["affectedNetworks"]) == {"ethereum", "bsc", "polygon", "arbitrum", "fantom"}
    assert edge.call("POST", "/addresses", json={"network": "ethereum", "mode": "universal"}).json["mode"] == "common"
    assert edge.call("POST", "/addresses", json={"network": "bitcoin", "mode": "cross"}).json["error"]["code"] == "VALIDATION_ERROR"
    assert edge.call("POST", "/addresses", json={"network": "ethereum", "type": "default"}).json["type"] == "user"
    assert edge.call("POST", "/addresses", json={"network": "ethereum", "type": "hot"}).status == 403


@pytest.mark.parametrize(
    ("network", "address", "valid", "kind"),
    [
        ("ethereum", PAYEE, True, "evm"),
        ("ethereum", PAYEE.replace("E", "e", 1), False, None),
        ("bitcoin", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", True, "p2wpkh"),  # BIP-173
        ("bitcoin", "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", False, None),
        ("tron", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", True, "tron"),
        ("litecoin", "", False, None),
        ("bitcoin", "x" * 1000, False, None),
    ],
)
def test_validating_an_address_is_200_either_way(edge, network, address, valid, kind):
    response = edge.call("POST", "/addresses/validate", json={"network": network, "address": address})
    assert response.status == 200
    assert (response.json["valid"], response.json["type"], response.json["address"]) == (valid, kind, address)
    assert (response.json["reason"] is None) == valid
    assert (response.json["normalized"] is None) != valid


def test_many_addresses_are_validated_in_their_order(edge):
    asked = [PAYEE.lower(), "x", PAYEE, PAYEE.replace("E", "e", 1)]
    found = edge.call("POST", "/addresses/validate", json={"network": "ethereum", "addresses": asked}).json
    assert found["network"] == "ethereum"
    assert [one["address"] for one in found["results"]] == asked
    assert [one["valid"] for one in found["results"]] == [True, False, True, False]
    for text, one in zip(asked, found["results"], strict=True):
        assert edge.call("POST", "/addresses/validate", json={"network": "ethereum", "address": text}).json == one


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({}, "address"),
        ({"address": PAYEE, "addresses": [PAYEE]}, "address"),
        ({"address": None}, "address"),
        ({"addresses": None}, "addresses"),
        ({"addresses": []}, "addresses"),
        ({"addresses": [PAYEE] * 101}, "addresses"),
        ({"addresses": [PAYEE, 5]}, "addresses.1"),
    ],
)
def test_one_address_or_several(edge, sent, field):
    answer = edge.call("POST", "/addresses/validate", json={"network": "ethereum", **sent})
    assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    assert [problem["field"] for problem in answer.json["error"]["details"]] == [field]


def test_withdrawals_in_both_forms(edge):
    edge.credit("ethereum", "eth", 3 * 10**18)
    a = edge.call("POST", "/v1/withdraws", json={"network": "ethereum", "coin": "eth", "amount": "1", "address": PAYEE})
    assert (a.status, a.json["status"], a.json["to_address"]) == (201, "pending", PAYEE)
    b = edge.call(
        "POST", "/v1/withdrawals",
        json={"network": "ethereum", "coin": "eth", "amount": 0.5, "to_address": PAYEE.lower(), "priority": "urgent",
              "metadata": {"n": 1}},
    )  # fmt: skip
    assert (b.status, b.json["success"]) == (201, True)
    record = b.json["data"]
    assert (record["amount"], record["to_address"], record["priority"], record["metadata"]) == ("0.5", PAYEE, "urgent", {"n": 1})
    assert ISO.fullmatch(record["estimated_confirmation_time"])
    balance = edge.call("GET", "/balances").json["data"]
    assert [(x["coin"], x["balance"], x["available"], x["frozen"]) for x in balance] == [("eth", "3", "1.5", "1.5")]
    assert edge.call("GET", f"/withdrawals/{a.json['id']}").json["data"]["id"] == a.json["id"]
    assert [w["id"] for w in edge.call("GET", "/withdrawals").json["data"]] == [record["id"], a.json["id"]]
    cancelled = edge.call("DELETE", f"/withdrawals/{a.json['id']}")
    assert (cancelled.status, cancelled.json["data"]["status"]) == (200, "cancelled")
    again = edge.call("DELETE", f"/withdrawals/{a.json['id']}")
    assert (again.status, again.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert [w["id"] for w in edge.call("GET", "/withdrawals?status=cancelled").json["data"]] == [a.json["id"]]
    for method in ("GET", "DELETE"):
        assert edge.call(method, f"/withdrawals/{a.json['id']}", key="other").status == 404


def test_withdrawals_that_can_not_be(edge):
    edge.credit("ethereum", "eth", 10**18)
    body = {"network": "ethereum", "coin": "eth", "amount": "1", "to_address": PAYEE}
    poor = edge.call("POST", "/withdrawals", json={**body, "amount": "1.000000000000000001"})
    assert poor.json["error"]["code"] == "INSUFFICIENT_BALANCE"
    assert poor.json["error"]["details"] == {"requested": "1.000000000000000001", "available": "1", "coin": "eth"}
    wrong = edge.call("POST", "/withdrawals", json={**body, "to_address": PAYEE[:-1]})
    assert (wrong.status, wrong.json["error"]["code"]) == (400, "INVALID_ADDRESS")
    assert wrong.json["error"]["details"] == {"address": PAYEE[:-1], "network": "ethereum"}
    assert (
        edge.call("POST", "/withdrawals", json={**body, "from_address_id": "addr_1"}).json["error"]["code"] == "INVALID_PARAMETER"
    )
    assert edge.call("POST", "/withdrawals", json={**body, "priority": "asap"}).json["error"]["code"] == "INVALID_PARAMETER"
    assert edge.call("GET", "/balances").json["data"][0]["frozen"] == "0"


def test_the_operator_sees_pending_withdrawals_of_all_merchants(edge):
    edge.credit("ethereum", "eth", 10**18)
    made = edge.call("POST", "/withdraws", json={"network": "ethereum", "coin": "eth", "amount": "1", "address": PAYEE}).json
    listed = edge.call("GET", "/v1/withdraws", key="admin")
    assert [w["id"] for w in listed.json["data"]] == [made["id"]]
    edge.call("DELETE", f"/withdrawals/{made['id']}")
    assert edge.call("GET", "/v1/withdraws", key="admin").json["data"] == []


def test_coins_and_networks(edge):
    coins = edge.call("GET", "/v1/coins").json
    assert len(coins) == 22
    assert [c["network"]["network"] for c in coins if c["coin"] == "usdt"] == ["ethereum", "tron", "bsc", "polygon", "arbitrum"]
    assert {c["coin"] for c in edge.call("GET", "/coins?network=bsc").json} == {"bnb", "usdt", "usdc", "busd", "dai"}
    assert len(edge.call("GET", "/coins?limit=3").json) == 3
    one = edge.call("GET", "/coins/usdt?network=tron").json
    assert (one["type"], one["contractAddress"], one["decimals"]) == ("TOKEN", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", 6)
    assert one["settings"]["minValueUSD"] == 0
    networks = edge.call("GET", "/v1/networks").json
    assert [n["network"] for n in networks] == ["bitcoin", "ethereum", "tron", "bsc", "polygon", "arbitrum", "fantom", "litecoin"]
    assert all(n["isTestnet"] and n["status"] == "active" for n in networks)
    assert not any(n["isTestnet"] for n in edge.call("GET", "/networks", key="live").json)
    assert "rpcUrl" not in edge.call("GET", "/networks/bsc").json
    assert "rpcUrl" in edge.call("GET", "/networks/bsc", key="admin").json
    assert edge.call("GET", "/networks/last-number-block/bsc").json["network"] == "bsc"
    assert len(edge.call("GET", "/networks/last-number-blocks").json) == 8


def test_webhooks(edge):
    made = edge.call("POST", "/v1/webhooks", json={"url": "http://127.0.0.1:8099/hook", "events": ["invoice.completed"]})
    assert made.status == 201
    hook = made.json["data"]
    assert len(hook["secret"]) >= 16
    for path in (f"/webhooks/{hook['id']}", "/webhooks"):
        assert hook["secret"] not in edge.call("GET", path).body.decode()
    assert [h["id"] for h in edge.call("GET", "/webhooks").json["data"]] == [hook["id"]]
    assert edge.call("GET", f"/webhooks/{hook['id']}", key="other").status == 404
    assert edge.call("DELETE", f"/webhooks/{hook['id']}", key="other").status == 404
    assert edge.call("DELETE", f"/webhooks/{hook['id']}").status == 200
    assert edge.call("GET", f"/webhooks/{hook['id']}").status == 404
    short = edge.call("POST", "/webhooks", json={"url": "http://127.0.0.1:8099/hook", "events": ["*"], "secret": "hunter2"})
    assert short.status == 400
    assert "hunter2" not in short.body.decode()


def test_transactions(edge):
    made = [deposit(edge, n) for n in range(3)]
    foreign = deposit(edge, 9, tenant=f"{edge.other}:test")
    listed = edge.call("GET", "/v1/transactions").json
    assert [t["id"] for t in listed["data"]] == [d.id for d in reversed(made)]
    assert listed["meta"]["pagination"]["total"] == 3
    one = edge.call("GET", f"/transactions/{made[1].id}").json["data"]
    assert (one["hash"], one["amount"], one["status"], one["type"]) == (made[1].txid, "1", "pending", "deposit")
    assert edge.call("GET", f"/transactions/{made[1].txid}").json["data"] == one
    for name in (foreign.id, foreign.txid, "tx_nothing", "0xabc"):
        assert edge.call("GET", f"/transactions/{name}").status == 404
    first = edge.call("GET", "/transactions?limit=2").json
    second = edge.call("GET", "/transactions", query={"limit": 2, "cursor": first["meta"]["pagination"]["next_cursor"]}).json
    assert [t["id"] for t in first["data"] + second["data"]] == [d.id for d in reversed(made)]


def test_the_merchant_and_health(edge):
    merchant = edge.call("GET", "/v1/merchant").json["data"]
    assert (merchant["id"], merchant["name"], merchant["environment"]) == (edge.shop, "Shop", "test")
    assert edge.call("GET", "/health", key=None).json["status"] == "ok"


BUDGET = [
    ("GET", "/invoices?id={invoice}", None, 2),
    ("GET", "/withdrawals/{withdrawal}", None, 2),
    ("GET", "/coins/usdt", None, 2),
    ("GET", "/networks/bsc", None, 2),
    ("GET", "/balances", None, 3),  # what is awaited lies beside the totals of invoices
    ("GET", "/merchant", None, 2),
    ("GET", "/withdrawals", None, 2),
    ("GET", "/invoices/getAll", None, 2),
    ("POST", "/addresses", {"network": "ethereum"}, 3),
    ("POST", "/invoices", {"currency": "eth", "amount": "1"}, 3),
    ("POST", "/withdrawals", {"network": "ethereum", "coin": "eth", "amount": "0.1", "to_address": PAYEE}, 4),
]


@pytest.mark.parametrize(("method", "path", "body", "most"), BUDGET)
def test_round_trips_of_a_warm_request(edge, method, path, body, most):
    edge.credit("ethereum", "eth", 10**18)
    names = {
        "invoice": edge.call("POST", "/invoices", json={"currency": "eth", "amount": 1}).json["id"],
        "withdrawal": edge.call("POST", "/withdrawals", json=BUDGET[-1][2]).json["data"]["id"],
    }
    calls = edge.calls()
    response = edge.call(method, path.format(**names), json=body)
    assert response.status in (200, 201)
    assert len(calls.made) <= most, calls.made
    assert calls.made[0] == "UpdateItem"
