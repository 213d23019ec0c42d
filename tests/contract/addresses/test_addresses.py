"""Addresses over HTTP: every type and mode, reading in parts, labels, archiving, and what each costs in calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.domain.ids import NetworkId, asset_id
from chalicelib.usecases.ports.changes import Beside
from tests.support.edge import PREPARED, Edge
from tests.support.shop import PAYEE, Shop, open_shop
from tests.support.stack import Stack

NEVER = "addr_" + "0" * 26
EVM = ["ethereum", "bsc", "polygon", "arbitrum", "fantom"]


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def make(edge: Edge, key: str = "client", status: int = 201, **body: Any) -> Any:
    made = edge.call("POST", "/v1/addresses", key=key, json={"network": "ethereum", **body})
    assert made.status == status, made.body
    return made.json


def get(edge: Edge, path: str, key: str = "client", status: int = 200, **query: Any) -> Any:
    answer = edge.call("GET", f"/v1/addresses/{path}", key=key, query=query)
    assert answer.status == status, answer.body
    return answer.json


@pytest.mark.parametrize(
    ("type_", "role"),
    [
        ("user", "user"), ("default", "user"), ("hot", "hot"), ("hot-wallet", "hot"), ("cold", "cold"), ("cold-wallet", "cold"),
        ("collector", "collector"), ("tokens_collector", "collector"), ("token-collector", "collector"),
    ],
)  # fmt: skip
def test_every_type(edge, type_, role):
    more = {"address": PAYEE} if role == "cold" else {}
    if role != "user":
        refused = make(edge, type=type_, status=403, **more)
        assert refused["error"]["code"] == "INSUFFICIENT_PERMISSIONS"
    made = make(edge, "admin", type=type_, label="vault", **more)
    assert (made["type"], made["mode"], made["affectedNetworks"], made["label"]) == (role, "common", ["ethereum"], "vault")
    assert {"id", "address", "network", "balances", "createdAt"} <= made.keys()
    assert "privateKey" not in made
    for name in (made["id"], made["address"]):
        assert get(edge, name, "admin") == {**made, "totalBalanceUSD": 0.0}
    assert [a["id"] for a in edge.call("GET", "/addresses", key="admin", query={"type": type_}).json["data"]] == [made["id"]]
    get(edge, made["id"], status=404)
    get(edge, made["address"], status=404)


def test_a_wallets_address_is_refused_where_it_makes_no_sense(edge):
    assert make(edge, "admin", type="cold", status=400)["error"]["details"][0]["field"] == "address"
    assert make(edge, "admin", type="hot", address=PAYEE, status=400)["error"]["code"] == "INVALID_PARAMETER"
    assert make(edge, address=PAYEE, status=400)["error"]["code"] == "INVALID_PARAMETER"
    for mode in ("single", "cross"):
        assert make(edge, "admin", type="hot", mode=mode, coin="eth", status=400)["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("asked", "mode", "networks"),
    [
        ("common", "common", ["ethereum"]), ("universal", "common", ["ethereum"]), ("cross", "cross", EVM),
        ("single", "single", ["ethereum"]), (None, "common", ["ethereum"]),
    ],
)  # fmt: skip
def test_every_mode(edge, asked, mode, networks):
    made = make(edge, coin="usdt", **({} if asked is None else {"mode": asked}))
    assert (made["mode"], made["coin"], made["affectedNetworks"]) == (mode, "usdt", networks)
    coins = {(b["network"], b["coin"]) for b in made["balances"]}
    known = {(n, c.slug) for n in networks for c in edge.services.catalogue("test").coins_of(n)}
    assert coins == ({("ethereum", "usdt")} if mode == "single" else known)


def test_modes_that_can_not_be(edge):
    assert make(edge, mode="single", status=400)["error"]["details"][0]["field"] == "coin"
    assert make(edge, mode="single", coin="btc", status=400)["error"]["code"] == "INVALID_PARAMETER"
    assert make(edge, network="bitcoin", mode="cross", status=400)["error"]["code"] == "VALIDATION_ERROR"
    wrong = make(edge, network="nowhere", mode="many", type="tepid", coin="gold", shape="round", status=400)["error"]
    assert {problem["field"] for problem in wrong["details"]} == {"network", "mode", "type", "coin", "shape"}


def test_foreign_and_missing_addresses_look_the_same(edge):
    mine = make(edge)
    for method, suffix, body in (
        ("GET", "", None), ("PUT", "", {"label": "x"}), ("DELETE", "", None), ("GET", "/balances", None),
        ("GET", "/balances/eth", None),
    ):  # fmt: skip
        for name, missing in ((mine["id"], NEVER), (mine["address"], PAYEE)):
            foreign = edge.call(method, f"/addresses/{name}{suffix}", key="other", json=body)
            never = edge.call(method, f"/addresses/{missing}{suffix}", key="other", json=body)
            assert foreign.status == never.status == 404
            assert foreign.body.replace(name.encode(), b"") == never.body.replace(missing.encode(), b"")
        for nonsense in ("nonsense", PAYEE.replace("E", "e", 1), "0x12"):
            malformed = edge.call(method, f"/addresses/{nonsense}{suffix}", json=body)
            assert (malformed.status, malformed.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    assert "label" not in get(edge, mine["id"])


def test_label_and_metadata(edge):
    made = make(edge, label="a", metadata={"shelf": 1})

    def put(status: int = 200, **body: Any) -> Any:
        changed = edge.call("PUT", f"/v1/addresses/{made['address'].lower()}", json=body)
        assert changed.status == status, changed.body
        return changed.json

    assert (put(label="b")["label"], put(metadata={"x": None})["metadata"]) == ("b", {"x": None})
    assert put(label="b", metadata={"y": 2}) == get(edge, made["id"])
    cleared = put(label=None, metadata=None)
    assert not {"label", "metadata"} & cleared.keys()
    assert put(400)["error"]["code"] == "INVALID_PARAMETER"
    assert put(400, label=5)["error"]["details"][0]["field"] == "label"
    assert edge.call("PUT", f"/addresses/{made['id']}", key="reader", json={"label": "z"}).status == 403


def test_an_archived_address_is_hidden_and_still_there(edge):
    made, other = make(edge), make(edge, network="bitcoin")
    for _ in range(2):
        gone = edge.call("DELETE", f"/v1/addresses/{made['id']}")
        assert (gone.status, gone.json["archived"]) == (200, True)
    assert get(edge, made["id"]) == gone.json
    assert [a["id"] for a in edge.call("GET", "/addresses").json["data"]] == [other["id"]]
    assert edge.call("DELETE", f"/addresses/{other['id']}", key="reader").status == 403


def test_balances_in_parts(edge):
    made = make(edge, mode="cross")
    address = made["address"]
    network = NetworkId("test:polygon")
    edge.services.store.commit([Beside(network, address.lower(), asset_id(network, "usdt"), pending=2_500_000)])
    answer = get(edge, f"{made['id']}/balances")
    assert (answer["id"], answer["address"], answer["network"]) == (made["id"], address, "ethereum")
    assert len(answer["balances"]) == len(made["balances"])
    there = [b for b in answer["balances"] if b["unconfirmed"] != "0"]
    assert there == [get(edge, f"{address}/balances/usdt", network="polygon")]
    assert {k: there[0][k] for k in ("network", "balance", "confirmed", "unconfirmed", "frozen", "available")} == {
        "network": "polygon", "balance": "0", "confirmed": "0", "unconfirmed": "2.5", "frozen": "0", "available": "0",
    }  # fmt: skip
    assert get(edge, f"{address}/balances/usdt")["network"] == "ethereum"
    assert get(edge, f"{address}/balances/matic")["network"] == "polygon"
    assert get(edge, f"{address}/balances/matic", status=404, network="bsc")["error"]["code"] == "NOT_FOUND"
    assert get(edge, f"{address}/balances/btc", status=404)["error"]["code"] == "NOT_FOUND"
    assert get(edge, f"{address}/balances/gold", status=400)["error"]["code"] == "INVALID_PARAMETER"
    assert get(edge, f"{address}/balances/usdt", status=400, network="nowhere")["error"]["details"][0]["field"] == "network"


@pytest.mark.parametrize(
    ("network", "address", "kind"),
    [
        # Bitcoin Core and Litecoin Core, src/test/data/key_io_valid.json; EIP-55; TRON's documentation.
        ("bitcoin", "1FsSia9rv4NeEwvJ2GvXrX7LyxYspbN2mo", "p2pkh"),
        ("bitcoin", "36j4NfKv6Akva9amjWrLG6MuSQym1GuEmm", "p2sh"),
        ("bitcoin", "bc1qvyq0cc6rahyvsazfdje0twl7ez82ndmuac2lhv", "p2wpkh"),
        ("bitcoin", "bc1qyucykdlhp62tezs0hagqury402qwhk589q80tqs5myh3rxq34nwqhkdhv7", "p2wsh"),
        ("bitcoin", "bc1p83n3au0rjylefxq2nc2xh2y4jzz4pm6zxj4mw5pagdjjr2a9f36s6jjnnu", "p2tr"),
        ("litecoin", "LT2KVaAy1ppRuxRgrS5RNU3vBsy7RibPeA", "p2pkh"),
        ("litecoin", "MHrYRxAiMNBTku3eoDHwhA1LQGDjUStZW2", "p2sh"),
        ("litecoin", "ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh", "p2wpkh"),
        ("tron", "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW", "tron"),
        *((network, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "evm") for network in EVM),
        ("bsc", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "evm"),
        ("bsc", "0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED", "evm"),
        ("bsc", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", None),
        ("bitcoin", "mzK2FFDEhxqHcmrJw1ysqFkVyhUULo45hZ", None),
        ("bitcoin", "LT2KVaAy1ppRuxRgrS5RNU3vBsy7RibPeA", None),
        ("litecoin", "tltc1qzvcgmntglcuv4smv3lzj6k8szcvsrmvk0phrr9wfq8w493r096ssm2fgsw", None),
        ("tron", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", None),
    ],
)  # fmt: skip
def test_validation(edge, network, address, kind):
    answer = edge.call("POST", "/v1/addresses/validate", json={"network": network, "address": address})
    assert answer.status == 200
    assert (answer.json["valid"], answer.json["type"]) == (kind is not None, kind)
    assert (answer.json["reason"] is None) == (kind is not None)
    if kind == "evm":
        assert answer.json["normalized"] == "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def test_simultaneous_creations_give_distinct_addresses(edge):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: make(edge, network=("ethereum", "bsc")[n % 2]), range(50)))
    assert len({a["id"] for a in made}) == len({a["address"] for a in made}) == 50


@pytest.mark.parametrize("suffix", ["", "/balances", "/balances/eth"])
def test_what_reading_an_address_costs(edge, suffix):
    made = make(edge)
    edge.services.addresses._seen.clear()
    for name, first in ((made["id"], 3), (made["address"], 3)):
        calls = edge.calls()
        get(edge, f"{name}{suffix}")
        assert len(calls.made) <= first, calls.made
        calls.made.clear()
        get(edge, f"{name}{suffix}")
        assert calls.made == ["UpdateItem", "BatchGetItem"]


@pytest.fixture
def shop(stack: Stack):
    with open_shop(stack) as opened:
        yield opened


def test_what_arrives_is_unconfirmed_and_then_there(shop: Shop) -> None:
    made = shop.post("/v1/addresses", {"network": "ethereum", "coin": "usdt", "mode": "single"}).json
    assert shop.stack.call("DELETE", f"/v1/addresses/{made['id']}", shop.key).status == 200
    shop.pay(made["address"], "7", "usdt")
    shop.pay(made["address"], "0.5")
    shop.turn()

    def parts() -> tuple[str, str, str]:
        shown = shop.get(f"/v1/addresses/{made['id']}/balances/usdt")
        return shown["balance"], shown["unconfirmed"], shown["available"]

    assert parts() == ("0", "7", "0")
    shop.mine()
    shop.turn()
    assert parts() == ("7", "0", "7")
    # Archived or not, and made for this coin or not: it is the merchant's.
    assert (shop.available("usdt"), shop.available()) == ("7", "0.5")
    assert [b["balance"] for b in shop.get(f"/v1/addresses/{made['id']}")["balances"]] == ["7"]
    shop.reorg(14)
    shop.turn()
    assert parts() == ("0", "0", "0")
