"""Names of coins and networks in bodies, queries and paths: understood in any case, and answered in lower case."""

from __future__ import annotations

import pytest

from tests.support.edge import PREPARED, Edge

ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def test_bodies(edge: Edge) -> None:
    invoice = edge.call("POST", "/v1/invoices", json={"currency": "USDT", "network": "TRON", "amount": "5"})
    assert (invoice.status, invoice.json["currency"], invoice.json["network"]) == (201, "usdt", "tron"), invoice.body
    address = edge.call("POST", "/v1/addresses", json={"network": "Ethereum", "coin": "Usdt", "mode": "single"})
    assert (address.status, address.json["network"], address.json["coin"]) == (201, "ethereum", "usdt"), address.body
    edge.credit("ethereum", "eth", 10**18)
    paid = edge.call("POST", "/v1/withdraws", json={"network": "ETHEREUM", "coin": "ETH", "address": ADDRESS, "amount": "0.5"})
    assert (paid.status, paid.json["network"], paid.json["coin"]) == (201, "ethereum", "eth"), paid.body
    outputs = [{"to_address": ADDRESS, "amount": "0.1"}]
    batch = {"network": "ETHEREUM", "coin": "ETH", "outputs": outputs}
    several = edge.call("POST", "/v1/withdrawals", json={"batch_withdrawal": batch})
    assert several.json["data"]["withdrawals"][0]["coin"] == "eth", several.body
    trusted = edge.call("POST", "/v1/whitelist/addresses", json={"network": "BSC", "address": ADDRESS})
    assert trusted.json["data"]["network"] == "bsc", trusted.body
    coin = edge.call("PUT", "/v1/coins", key="admin", json={"coin": "USDT", "network": "TRON", "minValue": 1})
    assert (coin.status, coin.json["message"]) == (200, "Coin usdt on tron was updated"), coin.body


def test_what_fields_say_together_is_read_in_any_case_too(edge: Edge) -> None:
    """Rules that look at raw fields: decimals of the coin on its network, coins of a network, spellings of an address."""
    for path, body, field in (
        ("/v1/invoices", {"currency": "USDT", "network": "TRON", "amount": "0.1234567"}, "amount"),
        ("/v1/invoices", {"currency": "DAI", "network": "TRON", "amount": "1"}, "currency"),
        ("/v1/addresses", {"network": "TRON", "coin": "DAI"}, "coin"),
        ("/v1/withdrawals", {"batch_withdrawal": {"network": "TRON", "coin": "DAI", "outputs": []}}, "batch_withdrawal.coin"),
    ):
        refused = edge.call("POST", path, json=body)
        error = refused.json.get("error", refused.json)
        error = error if isinstance(error, dict) else refused.json
        assert refused.status == 400 and field in str(error["details"]), refused.body
    misspelled = edge.call("POST", "/v1/addresses/grey-list", key="admin", json={"network": "TRON", "address": ADDRESS})
    assert misspelled.status == 400 and misspelled.json["error"]["details"][0]["field"] == "address", misspelled.body


def test_queries_and_paths(edge: Edge) -> None:
    made = edge.call("POST", "/v1/invoices", json={"currency": "usdt", "amount": "5"}, query={"network": "TRON"})
    assert (made.status, made.json["network"]) == (201, "tron"), made.body
    both = {"currency": "usdt", "network": "Tron", "amount": "5"}
    assert edge.call("POST", "/v1/invoices", json=both, query={"network": "TRON"}).status == 201
    for query in ({"currency": "USDT"}, {"network": "TRON"}, {"currency[in]": "ETH, USDT"}, {"network[eq]": "Tron"}):
        assert edge.call("GET", "/v1/invoices/getAll", query=query).json["count"] == 2, query
    assert {c["network"]["network"] for c in edge.call("GET", "/v1/coins", query={"network": "TRON"}).json} == {"tron"}
    assert edge.call("GET", "/v1/withdrawals/fees", query={"coin": "ETH"}).json["data"]["coin"] == "eth"
    detail = edge.call("GET", "/v1/coins/USDT", query={"network": "TRON"}).json
    assert (detail["coin"], detail["network"]) == ("usdt", {"network": "tron"})
    assert edge.call("GET", "/v1/networks/TRON").json["id"] == "tron"
    assert edge.call("GET", "/v1/networks/last-number-block/Tron").json["network"] == "tron"
    there = edge.call("GET", f"/v1/addresses/{made.json['address']}/balances/USDT")
    assert (there.status, there.json["coin"]) == (200, "usdt"), there.body
    named = edge.call("PUT", "/v1/coins/USDT", key="admin", json={"coin": "Usdt", "network": "TRON", "minValue": 2})
    assert named.status == 200, named.body


def test_settings(edge: Edge) -> None:
    path = "/v1/invoices/configureSettings"
    wanted = {"supportedCurrencies": ["USDT", "usdt", "ETH"], "minimumAmounts": {"USDT": "2"}}
    saved = edge.call("PUT", path, json={"settings": wanted}).json["settings"]
    assert (saved["supportedCurrencies"], saved["minimumAmounts"]) == (["usdt", "eth"], {"usdt": "2"})
    twice = edge.call("PUT", path, json={"settings": {"minimumAmounts": {"USDT": "2", "usdt": "3"}}})
    assert twice.status == 400 and "only once" in str(twice.json["details"]), twice.body


def test_a_new_coin_is_stored_in_lower_case(edge: Edge) -> None:
    token = {"network": "ETHEREUM", "symbol": "GLD", "name": "Gold", "decimals": 6}
    contract = edge.call("POST", "/v1/sandbox/tokens", json=token).json["data"]["contractAddress"]
    body = {"network": "ETHEREUM", "coin": "GLD", "contractAddress": contract}
    made = edge.call("POST", "/v1/coins", key="admin", json=body)
    assert (made.status, made.json["coin"], made.json["network"]) == (201, "gld", "ethereum"), made.body


@pytest.mark.parametrize("name", ["usdⅯ", "Kas", "ＵＳＤＴ", "usdt ", ""])
def test_other_letters_are_none_of_ours(edge: Edge, name: str) -> None:
    """A Kelvin sign's lower case is a k: no letter but ASCII's stands for one of a slug."""
    assert edge.call("POST", "/v1/invoices", json={"currency": name, "amount": "1"}).status == 400
    assert edge.call("GET", "/v1/invoices/getAll", query={"currency": name}).status == 400
