"""Coins: registered from their contracts, changed, shown in both units; and the tokens of the simulated networks."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from chalicelib.api.records import find
from chalicelib.chains.addresses import Rules
from chalicelib.chains.sandbox.tokens import SandboxTokens
from chalicelib.domain.catalogue.rates import STALE_MS, Rate
from chalicelib.usecases.ports.changes import Save
from tests.support.edge import PREPARED, Edge

USDT = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
NOBODY = "0x52908400098527886E0F7030069857D2E4169EE7"


@pytest.fixture
def edge(aws) -> Edge:
    made = PREPARED.edge(aws)
    made.keys["admin_live"] = made.new_key(realm="live", level="admin")
    return made


def fits(answer: str, data: Any) -> None:
    from pydantic import TypeAdapter

    TypeAdapter(find(answer)).validate_python(data, strict=False)


def token(edge: Edge, network: str = "ethereum", symbol: str = "GLD", name: str = "Gold Token", decimals: int = 6) -> str:
    made = edge.call("POST", "/v1/sandbox/tokens", json={"network": network, "symbol": symbol, "name": name, "decimals": decimals})
    assert made.status == 201, made.body
    fits("coins.SandboxContract", made.json["data"])
    found: str = made.json["data"]["contractAddress"]
    return found


def post(edge: Edge, key: str = "admin", headers: Any = None, **body: Any) -> Any:
    return edge.call("POST", "/v1/coins", key=key, headers=headers, json=body)


def put(edge: Edge, path: str = "/v1/coins", key: str = "admin", **body: Any) -> Any:
    return edge.call("PUT", path, key=key, json=body)


def get(edge: Edge, slug: str, key: str = "client", **query: str) -> Any:
    answer = edge.call("GET", f"/v1/coins/{slug}", key=key, query=query)
    assert answer.status == 200, answer.body
    fits("coins.CoinDetails", answer.json)
    return answer.json


def listing(edge: Edge, **query: str) -> Any:
    answer = edge.call("GET", "/v1/coins", key="client", query=query)
    assert answer.status == 200, answer.body
    return answer.json


def exact(edge: Edge, slug: str) -> dict[str, str]:
    """The settings of a single read, digit for digit."""
    body = edge.call("GET", f"/v1/coins/{slug}").body
    found = json.loads(body, parse_float=lambda text: text, parse_int=lambda text: text)["settings"]
    return {name: value for name, value in found.items() if isinstance(value, str)}


def refused(answer: Any, code: str, field: str | None = None) -> str:
    """The flat error's text; checks code, status, and the field where it is told."""
    assert (answer.status, answer.json["code"]) == (400, code), answer.body
    assert set(answer.json) <= {"error", "code", "details"}
    if field is not None:
        assert field in str(answer.json), answer.body
    return str(answer.json)


@pytest.mark.parametrize("network", ["ethereum", "tron", "polygon"])
def test_a_token_from_its_contract_to_its_first_balance(edge: Edge, network: str) -> None:
    contract = token(edge, network, "GLD", "Gold Token", 3)
    assert Rules().normalize(network, contract) == contract
    shown = put(edge, "/v1/coins/precreate-token", contractAddress=contract, network=network)
    assert (shown.status, shown.json) == (201, {"coin": "gld", "symbol": "GLD", "name": "Gold Token", "decimals": 3})
    assert edge.call("GET", "/v1/coins/gld").status == 400  # nothing was stored
    made = post(edge, network=network, contractAddress=contract, minValue="0.005", maxValue=10)
    assert made.status == 201
    fits("coins.Created", made.json)
    assert (made.json["coin"], made.json["network"]) == ("gld", network)
    coin = get(edge, "gld")
    assert (coin["type"], coin["status"], coin["decimals"], coin["contractAddress"]) == ("TOKEN", "ACTIVE", 3, contract)
    assert (coin["symbol"], coin["name"], coin["network"], coin["rate"]) == ("GLD", "Gold Token", {"network": network}, None)
    assert (coin["settings"]["minValue"], coin["settings"]["maxValue"], coin["settings"]["minValueUSD"]) == (0.005, 10, None)
    address = edge.call("POST", "/v1/addresses", json={"network": network}).json
    assert "gld" in {balance["coin"] for balance in address["balances"]}
    assert "gld" in {c["coin"] for c in edge.call("GET", "/v1/coins", query={"network": network}).json}


def test_another_spelling_of_the_contract_is_the_same_contract(edge: Edge) -> None:
    contract = token(edge)
    assert post(edge, network="ethereum", contractAddress=contract.lower()).status == 201
    assert get(edge, "gld")["contractAddress"] == contract
    refused(post(edge, network="ethereum", contractAddress="0x" + contract[2:].upper(), coin="other"), "VALIDATION_ERROR", "gld")
    refused(post(edge, network="ethereum", contractAddress=USDT, coin="other"), "VALIDATION_ERROR", "usdt")


def test_a_slug_is_taken_once_per_network(edge: Edge) -> None:
    first, second, elsewhere = token(edge), token(edge), token(edge, "bsc")
    assert post(edge, network="ethereum", contractAddress=first).status == 201
    refused(post(edge, network="ethereum", contractAddress=second), "VALIDATION_ERROR", "coin")
    assert post(edge, network="ethereum", contractAddress=second, coin="gld2", name="The other gold").status == 201
    assert get(edge, "gld2")["name"] == "The other gold"
    assert get(edge, "gld2")["symbol"] == "GLD"
    assert post(edge, network="bsc", contractAddress=elsewhere).status == 201
    assert get(edge, "gld")["network"] == {"network": "ethereum"}
    assert get(edge, "gld", network="bsc")["network"] == {"network": "bsc"}


def test_a_token_can_not_take_the_native_coins_slug(edge: Edge) -> None:
    refused(post(edge, network="ethereum", contractAddress=token(edge, symbol="ETH")), "VALIDATION_ERROR", "native")


def test_a_symbol_that_makes_no_slug(edge: Edge) -> None:
    contract = token(edge, symbol="USD₮0")
    shown = put(edge, "/v1/coins/precreate-token", contractAddress=contract, network="ethereum").json
    assert shown["coin"] == f"token-{contract[-8:].lower()}"
    assert post(edge, network="ethereum", contractAddress=contract).json["coin"] == shown["coin"]
    assert get(edge, shown["coin"])["symbol"] == "USD₮0"


def test_native_coins_are_there_and_no_other_can_be_made(edge: Edge) -> None:
    refused(post(edge, network="bitcoin"), "VALIDATION_ERROR", "btc")
    refused(post(edge, network="bitcoin", coin="doge"), "VALIDATION_ERROR", "btc")
    refused(post(edge, network="bitcoin", contractAddress=USDT), "VALIDATION_ERROR", "tokens")


def test_the_list_has_the_native_coin_of_each_network_first(edge: Edge) -> None:
    contract = token(edge, symbol="AAVE", name="Before eth in the alphabet")
    assert post(edge, network="ethereum", contractAddress=contract).status == 201
    listed = listing(edge)
    first = {found["network"]["network"]: found for found in reversed(listed)}
    assert {name for name, found in first.items() if found["contractAddress"] is not None} == set()
    assert [found["coin"] for found in listing(edge, network="ethereum")][:2] == ["eth", "aave"]


def test_a_native_coin_that_is_missing_is_made(edge: Edge) -> None:
    from chalicelib.domain.catalogue.catalogue import Coin
    from chalicelib.usecases.ports.changes import Delete

    edge.services.store.commit([Delete(Coin, {"network": "test:litecoin", "slug": "ltc"})])
    assert post(edge, network="litecoin", collectPercentageHot=12.5).json["coin"] == "ltc"
    coin = get(edge, "ltc")
    assert (coin["type"], coin["symbol"], coin["decimals"], coin["name"]) == ("NATIVE", "LTC", 8, "Litecoin")
    assert coin["settings"]["collectPercentageHot"] == 12.5


@pytest.mark.parametrize("path", ["POST /v1/coins", "PUT /v1/coins/precreate-token"])
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"network": "ethereum", "contractAddress": NOBODY}, "VALIDATION_ERROR"),
        ({"network": "tron", "contractAddress": "TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7"}, "VALIDATION_ERROR"),
        ({"network": "ethereum", "contractAddress": NOBODY[:-1]}, "INVALID_PARAMETER"),
        ({"network": "ethereum", "contractAddress": USDT.replace("dAC", "DAC")}, "INVALID_PARAMETER"),
        ({"network": "tron", "contractAddress": USDT}, "INVALID_PARAMETER"),
        ({"network": "nowhere", "contractAddress": USDT}, "INVALID_PARAMETER"),
        ({"network": "ethereum", "contractAddress": ""}, "INVALID_PARAMETER"),
        ({"network": "ethereum", "contractAddress": 7}, "INVALID_PARAMETER"),
        ({"contractAddress": USDT}, "INVALID_PARAMETER"),
        ({"network": "litecoin", "contractAddress": USDT}, "VALIDATION_ERROR"),
        ({"network": "ethereum", "contractAddress": USDT, "decimals": 6}, "INVALID_PARAMETER"),
    ],
)
def test_contracts_that_can_not_be(edge: Edge, path: str, sent: dict[str, Any], code: str) -> None:
    method, _, where = path.partition(" ")
    refused(edge.call(method, where, key="admin", json=sent), code)


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        ({"minValue": -1}, "VALIDATION_ERROR", "minValue"),
        ({"minValue": "-0.5"}, "VALIDATION_ERROR", "minValue"),
        ({"minValue": 5, "maxValue": 4}, "VALIDATION_ERROR", "minValue"),
        ({"maxValue": 5, "maxValueDaily": "4.9"}, "VALIDATION_ERROR", "maxValue"),
        ({"collectPercentageHot": 101}, "VALIDATION_ERROR", "collectPercentageHot"),
        ({"minValue": 0.0000001}, "INVALID_PARAMETER", "minValue"),
        ({"minValue": "1e3"}, "INVALID_PARAMETER", "minValue"),
        ({"minValue": "abc", "maxValue": [], "useUsdLimits": "yes", "other": 1}, "INVALID_PARAMETER", "useUsdLimits"),
        ({"minValue": True}, "INVALID_PARAMETER", "minValue"),
        ({"useUsdLimits": True, "minValue": "0.001"}, "INVALID_PARAMETER", "minValue"),
        ({"name": " x"}, "INVALID_PARAMETER", "name"),
        ({"name": "a\u202eb"}, "INVALID_PARAMETER", "name"),
        ({"name": ""}, "INVALID_PARAMETER", "name"),
    ],
)
def test_settings_that_can_not_be(edge: Edge, sent: dict[str, Any], code: str, field: str) -> None:
    refused(post(edge, network="ethereum", contractAddress=token(edge), **sent), code, field)
    refused(put(edge, coin="usdt", network="ethereum", **sent), code, field)
    assert get(edge, "usdt")["settings"]["minValue"] == 0


@pytest.mark.parametrize("slug", ["", "a b", "G D", "-x", "x" * 33, "é", "precreate-token", 5])
def test_slugs_that_can_not_be(edge: Edge, slug: Any) -> None:
    refused(post(edge, network="ethereum", contractAddress=token(edge), coin=slug), "INVALID_PARAMETER", "coin")


def test_every_wrong_field_is_named_at_once(edge: Edge) -> None:
    text = refused(post(edge, network="mars", coin="-a", minValue="x", status="ACTIVE"), "INVALID_PARAMETER")
    assert all(name in text for name in ("network", "coin", "minValue", "status"))


def test_only_the_operator_registers_and_changes(edge: Edge) -> None:
    for method, path, body in (
        ("POST", "/v1/coins", {"network": "ethereum"}),
        ("PUT", "/v1/coins/precreate-token", {"network": "ethereum", "contractAddress": USDT}),
        ("PUT", "/v1/coins", {"coin": "btc"}),
        ("PUT", "/v1/coins/btc", {}),
    ):
        answer = edge.call(method, path, json=body)
        assert (answer.status, answer.json["code"]) == (403, "INSUFFICIENT_PERMISSIONS")


def test_settings_are_exact_and_the_single_read_shows_both_units(edge: Edge) -> None:
    body = '{"coin": "eth", "network": "ethereum", "minValue": 0.123456789012345678, "approveThreshold": "1.50"}'
    assert edge.call("PUT", "/v1/coins", key="admin", body=body).status == 200
    found = exact(edge, "eth")
    assert (found["minValue"], found["minValueUSD"], found["approveThreshold"]) == ("0.123456789012345678", "370.37", "1.5")
    assert (found["maxValue"], found["maxValueUSD"]) == ("0", "0")
    listed = edge.call("GET", "/v1/coins", query={"network": "ethereum"})
    fits("list[coins.Coin]", listed.json)
    assert b"0.123456789012345678" in listed.body
    rate = get(edge, "eth")["rate"]
    assert (rate["usd"], rate["source"], rate["stale"]) == (3000, "fixed", False)


def test_limits_in_usd_are_exact_in_usd_and_follow_the_rate_in_coins(edge: Edge) -> None:
    changed = put(edge, "/v1/coins/eth", network="ethereum", useUsdLimits=True, minValue=10.5, maxValue="1500", minDepositAmount=3)
    assert changed.status == 200
    assert set(changed.json) == {"message"}
    found = exact(edge, "eth")
    assert (found["minValueUSD"], found["maxValueUSD"], found["minDepositAmountUSD"]) == ("10.5", "1500", "3")
    assert (found["minValue"], found["maxValue"], found["minDepositAmount"]) == ("0.0035", "0.5", "0.001")
    listed = next(c for c in listing(edge) if (c["coin"], c["network"]["network"]) == ("eth", "ethereum"))
    assert (listed["settings"]["useUsdLimits"], listed["settings"]["minValue"]) == (True, 10.5)


def test_a_stale_rate_is_said_to_be_stale_and_shows_no_other_unit(edge: Edge) -> None:
    store, now = edge.services.store, edge.services.clock.now_ms()
    store.commit([Save(Rate("btc", "USD", "60000.123456789", now, "kraken"))])
    assert put(edge, key="admin_live", coin="btc", minValue="0.01").status == 200
    coin = get(edge, "btc", key="live")
    assert coin["rate"] == {"usd": 60000.123456789, "at": coin["rate"]["at"], "source": "kraken", "stale": False}
    assert coin["settings"]["minValueUSD"] == 600.0
    edge.services.clock.shift_ms += STALE_MS + 60_000
    coin = get(edge, "btc", key="live")
    assert coin["rate"]["stale"] is True
    assert (coin["settings"]["minValue"], coin["settings"]["minValueUSD"]) == (0.01, None)
    assert get(edge, "ltc", key="live")["rate"] is None


def test_a_coin_is_changed_by_body_or_by_path(edge: Edge) -> None:
    assert put(edge, coin="btc", name="Bitcoin (BTC)").status == 200
    assert put(edge, "/v1/coins/btc", status="INACTIVE", maxValue="2").status == 200
    coin = get(edge, "btc")
    assert (coin["name"], coin["status"], coin["settings"]["maxValue"]) == ("Bitcoin (BTC)", "INACTIVE", 2)
    assert put(edge, "/v1/coins/btc", coin="btc", name="Bitcoin").status == 200
    refused(put(edge, "/v1/coins/btc", coin="btc"), "INVALID_PARAMETER", "must name something to change")
    refused(put(edge, "/v1/coins/btc", coin="ltc", name="x"), "INVALID_PARAMETER", "coin")
    refused(put(edge, name="x"), "INVALID_PARAMETER", "coin")
    refused(put(edge, coin="nothing", name="x"), "INVALID_PARAMETER", "coin")
    refused(put(edge, coin="btc", network="tron", name="x"), "INVALID_PARAMETER", "bitcoin")
    refused(put(edge, coin="btc", status="PAUSED"), "INVALID_PARAMETER", "status")
    refused(put(edge, coin="btc", contractAddress=USDT), "INVALID_PARAMETER", "contractAddress")
    assert edge.call("GET", "/v1/coins/nothing").status == 400


def test_an_ambiguous_slug_names_the_candidates(edge: Edge) -> None:
    text = refused(put(edge, coin="usdt", name="Tether"), "INVALID_PARAMETER", "network")
    assert "ethereum, tron, bsc, polygon, arbitrum" in text
    assert put(edge, coin="usdt", network="tron", name="Tether").status == 200
    assert (get(edge, "usdt", network="tron")["name"], get(edge, "usdt")["name"]) == ("Tether", "Tether USD")


def test_an_inactive_coin_takes_no_invoices_and_no_withdrawals(edge: Edge) -> None:
    edge.credit("ethereum", "eth", 10**18)
    put(edge, coin="eth", network="ethereum", status="INACTIVE")
    refused(edge.call("POST", "/v1/invoices", json={"currency": "eth", "network": "ethereum", "amount": 1}), "VALIDATION_ERROR")
    body = {"network": "ethereum", "coin": "eth", "amount": "0.1", "address": NOBODY}
    assert edge.call("POST", "/v1/withdraws", json=body).json["error"]["code"] == "VALIDATION_ERROR"
    put(edge, coin="eth", network="ethereum", status="ACTIVE")
    assert edge.call("POST", "/v1/withdraws", json=body).status == 201


def test_withdrawals_obey_limits_in_usd(edge: Edge) -> None:
    edge.credit("ethereum", "eth", 10**18)
    put(edge, coin="eth", network="ethereum", useUsdLimits=True, minValue=30, maxValue=300)
    body = {"network": "ethereum", "coin": "eth", "address": NOBODY}
    for amount, status in (("0.0099", 400), ("0.01", 201), ("0.1", 201), ("0.1001", 400)):
        assert edge.call("POST", "/v1/withdraws", json={**body, "amount": amount}).status == status


def test_the_same_key_registers_once(edge: Edge) -> None:
    contract = token(edge)
    headers = {"Idempotency-Key": "gold-1"}
    first = post(edge, headers=headers, network="ethereum", contractAddress=contract)
    second = post(edge, headers=headers, network="ethereum", contractAddress=contract)
    assert (first.status, second.status, second.body) == (201, 201, first.body)
    assert second.headers["idempotency-replayed"] == "true"
    refused(post(edge, headers=headers, network="ethereum", contractAddress=contract, coin="x"), "VALIDATION_ERROR")


def test_one_of_two_at_once_registers_the_contract(edge: Edge) -> None:
    contract = token(edge)
    answers: list[int] = []

    def register(slug: str) -> None:
        answers.append(post(edge, network="ethereum", contractAddress=contract, coin=slug).status)

    threads = [threading.Thread(target=register, args=(f"gold-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201, 400, 400, 400]
    edge.services.store.forget_catalogue()
    named = [c for c in edge.services.catalogue("test").coins_of("ethereum") if c.contract == contract]
    assert len(named) == 1


def test_a_network_that_can_not_be_asked(edge: Edge) -> None:
    """Live networks without a node, with one that nobody speaks to, and with one that is not there."""
    from dataclasses import replace

    from chalicelib.domain.catalogue.catalogue import Network

    text = refused(post(edge, key="admin_live", network="ethereum", contractAddress=NOBODY), "VALIDATION_ERROR", "network")
    assert "not active" in text
    store = edge.services.store
    for slug, contract in (("ethereum", NOBODY), ("tron", "TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7")):
        before = store.get(Network, id=f"live:{slug}")
        assert before is not None
        url = "http://user:hunter2@127.0.0.1:1/"
        store.commit([Save(replace(before, status="active", rpc_url=url, version=before.version + 1))])
        store.forget_catalogue()
        text = refused(post(edge, key="admin_live", network=slug, contractAddress=contract), "VALIDATION_ERROR", "network")
        assert "hunter2" not in text and "127.0.0.1" not in text


def test_sandbox_tokens_are_made_once_per_key_and_only_where_there_are_any(edge: Edge) -> None:
    body = {"network": "ethereum", "symbol": "GLD", "name": "Gold", "decimals": 0}
    headers = {"Idempotency-Key": "t-1"}
    first, second = (edge.call("POST", "/v1/sandbox/tokens", json=body, headers=headers) for _ in range(2))
    assert first.json["data"] == second.json["data"]
    assert token(edge) != token(edge)
    for wrong, code in (
        ({**body, "network": "bitcoin"}, "VALIDATION_ERROR"),
        ({**body, "decimals": 37}, "INVALID_PARAMETER"),
        ({**body, "symbol": "x" * 33}, "INVALID_PARAMETER"),
        ({**body, "symbol": "a\u0007"}, "VALIDATION_ERROR"),
        ({"network": "ethereum"}, "INVALID_PARAMETER"),
    ):
        answer = edge.call("POST", "/v1/sandbox/tokens", json=wrong)
        assert (answer.status, answer.json["error"]["code"]) == (400, code)
    assert edge.call("POST", "/v1/sandbox/tokens", key="live", json=body).status == 403


def test_another_process_knows_a_coin_that_it_is_asked_about(edge: Edge) -> None:
    """Its catalogue was read before the coin was registered."""
    before = edge.services.catalogue("test")
    post(edge, network="ethereum", contractAddress=token(edge))
    assert ("ethereum", "gld") not in before.coins
    found = before.coin("ethereum", "gld")
    assert found is not None and found.decimals == 6


FACE = "0x0000000000000000000000000000000000001010"


@pytest.mark.parametrize("spelled", [FACE, FACE.upper().replace("X", "x"), "0x" + "FFFFFFFF" * 4 + "FFFFFFFE"])
def test_the_own_coin_of_a_network_is_no_token(edge: Edge, spelled: str) -> None:
    """Known faces, in every spelling: on their network alone."""
    for answer in (
        post(edge, network="polygon", contractAddress=spelled),
        post(edge, network="polygon", contractAddress=spelled, coin="pol"),
        put(edge, "/v1/coins/precreate-token", network="polygon", contractAddress=spelled),
    ):
        text = refused(answer, "VALIDATION_ERROR", "contractAddress")
        assert "matic, the own coin of polygon" in text
    if spelled == FACE:
        assert "there is no contract" in refused(post(edge, network="bsc", contractAddress=spelled), "VALIDATION_ERROR")


@pytest.mark.parametrize(("says", "field"), [(True, "contractAddress"), (None, "network")])
def test_balances_that_follow_the_own_coin(edge: Edge, monkeypatch: pytest.MonkeyPatch, says: bool | None, field: str) -> None:
    contract, asked = token(edge), []

    def face(_: Any, *about: Any) -> bool | None:
        asked.append(about)
        return says

    monkeypatch.setattr(SandboxTokens, "is_native_face", face)
    for answer in (
        post(edge, network="ethereum", contractAddress=contract),
        put(edge, "/v1/coins/precreate-token", network="ethereum", contractAddress=contract),
    ):
        refused(answer, "VALIDATION_ERROR", field)
    assert [(about[0], about[1]) for about in asked] == [(contract, 6)] * 2
    monkeypatch.undo()
    assert post(edge, network="ethereum", contractAddress=contract).status == 201
