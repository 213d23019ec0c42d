"""Networks: what is shown of them and to whom, and how the operator changes them."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.api.records import find
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.errors import BusinessRule
from chalicelib.usecases.catalogue.networks import Networks
from chalicelib.usecases.catalogue.node_urls import may_be_a_node
from chalicelib.usecases.ports.changes import Save
from infra.bootstrap import correct_networks, make_catalogue
from tests.support.edge import PREPARED, Edge

SECRET = "https://user:hunter2@node.example/v3/abcdef"


@pytest.fixture
def edge(aws) -> Edge:
    made = PREPARED.edge(aws)
    made.keys["admin_live"] = made.new_key(realm="live", level="admin")
    return made


def put(edge: Edge, key: str = "admin", **body: Any) -> Any:
    return edge.call("PUT", "/v1/networks", key=key, json=body)


def fits(answer: str, data: Any) -> None:
    from pydantic import TypeAdapter

    TypeAdapter(find(answer)).validate_python(data, strict=False)


def test_networks_are_listed_in_the_order_of_the_catalogue(edge):
    listed = edge.call("GET", "/v1/networks").json
    fits("list[networks.Network]", listed)
    assert [n["network"] for n in listed] == [
        "bitcoin", "ethereum", "tron", "bsc", "polygon", "arbitrum", "fantom", "litecoin",
    ]  # fmt: skip
    ethereum = listed[1]
    assert ethereum == {
        "id": "ethereum", "network": "ethereum", "name": "Ethereum", "symbol": "ETH", "isTestnet": True, "confirmations": 12,
        "blockTime": 12, "status": "active", "lastBlock": None,
    }  # fmt: skip
    assert len(edge.call("GET", "/networks?limit=3").json) == 3
    assert edge.call("GET", "/networks", key="live").json[1]["isTestnet"] is False
    assert edge.call("GET", "/networks", key="live").json[1]["status"] == "inactive"


def test_confirmations_are_bounded_by_what_a_cursor_has_room_for(edge):
    """10,000 were allowed: the cursor of such a network, with 20,001 hashes, could not be stored, and the network stood still."""
    refused = put(edge, "admin_live", network="ethereum", confirmationBlocks=2_001)
    assert refused.status == 400
    (problem,) = refused.json["error"]["details"]
    assert problem["field"] == "confirmationBlocks"
    assert "2000" in str(problem["constraints"])
    assert put(edge, "admin_live", network="ethereum", confirmationBlocks=2_000).json["confirmationBlocks"] == 2_000
    with pytest.raises(BusinessRule, match="must be from 1 to 2000"):
        Networks(edge.services.store).change(edge.services.catalogue("live").networks["ethereum"].id, {"confirmations": 2_001})


def test_more_confirmations_of_before_the_bound_stay_and_are_remembered_no_deeper(edge):
    """What an operator once chose is not lowered by an upgrade, and does not keep other settings from being changed."""
    store = edge.services.store
    before = store.get(Network, id="live:ethereum")
    store.commit([Save(replace(before, confirmations=10_000, version=before.version + 1))])
    changed = put(edge, "admin_live", network="ethereum", name="Mainnet")
    assert (changed.status, changed.json["confirmationBlocks"], changed.json["name"]) == (200, 10_000, "Mainnet")
    after = store.get(Network, id="live:ethereum")
    assert (after.confirmations, after.reorg_depth) == (10_000, 4_000)


def test_preparing_a_stage_again_corrects_block_times_of_before(edge):
    store = edge.services.store
    for realm in ("live", "test"):
        before = store.get(Network, id=f"{realm}:bsc")
        store.commit([Save(replace(before, block_time=3, agreement_usd=77, version=before.version + 1))])
    make_catalogue(edge.services)
    for realm in ("live", "test"):
        after = store.get(Network, id=f"{realm}:bsc")
        assert (after.block_time, after.agreement_usd, after.version) == (0.45, 77, before.version + 2)
    assert edge.call("GET", "/v1/networks/bsc").json["blockTime"] == 0.45
    assert correct_networks(edge.services) == []


def test_one_network_shows_its_configuration_and_urls_to_admins_alone(edge):
    shown = edge.call("GET", "/networks/ethereum").json
    fits("networks.NetworkDetails", shown)
    assert {"slug", "chainId", "explorerUrl", "confirmationBlocks", "gasLimit", "features"} <= shown.keys()
    assert not {"rpcUrl", "wsUrl"} & shown.keys()
    admin = edge.call("GET", "/networks/ethereum", key="admin").json
    fits("networks.NetworkDetails", admin)
    assert (admin["rpcUrl"], admin["wsUrl"]) == (None, None)
    assert edge.call("GET", "/networks/dogecoin").json["error"]["code"] == "INVALID_PARAMETER"


def test_block_infos(edge):
    one = edge.call("GET", "/networks/last-number-block/ethereum").json
    assert one == {"network": "ethereum", "lastBlockNumber": None, "timestamp": None}
    every = edge.call("GET", "/networks/last-number-blocks").json
    fits("list[networks.BlockInfo]", every)
    assert (len(every), every[1]) == (8, one)
    assert edge.call("GET", "/networks/last-number-block/nowhere").status == 400


def test_an_operator_changes_a_live_network(edge):
    changed = put(
        edge, "admin_live", network="ethereum", name="Ethereum mainnet", status="active", confirmationBlocks=20, rpcUrl=SECRET,
        wsUrl="wss://node.example/ws", explorerUrl="https://explorer.example/eth", gasLimit=25_000,
    )  # fmt: skip
    assert changed.status == 200
    fits("networks.NetworkDetails", changed.json)
    assert (changed.json["rpcUrl"], changed.json["wsUrl"], changed.json["gasLimit"]) == (SECRET, "wss://node.example/ws", 25_000)
    assert (changed.json["status"], changed.json["confirmations"], changed.json["confirmationBlocks"]) == ("active", 20, 20)
    client = edge.call("GET", "/networks/ethereum", key="live")
    assert "hunter2" not in client.body.decode()
    assert (client.json["name"], client.json["explorerUrl"]) == ("Ethereum mainnet", "https://explorer.example/eth")
    assert put(edge, "admin_live", network="ethereum", status="inactive", rpcUrl=None).json["rpcUrl"] is None
    assert put(edge, "admin_live", network="ethereum").status == 400, "nothing to change"
    assert edge.call("GET", "/networks/ethereum", key="live").json["name"] == "Ethereum mainnet"
    assert edge.call("GET", "/networks/ethereum").json["name"] == "Ethereum"


def test_everything_wrong_is_named_at_once_and_no_secret_is_repeated(edge, caplog):
    wrong = put(
        edge, "admin_live", network="ethereum", name="", status="ACTIVE", confirmationBlocks=0, rpcUrl="ftp://x:hunter2@y",
        wsUrl="https://hunter2.example", explorerUrl="https://u:p@x.example/", gasLimit=1, colour="red",
    )  # fmt: skip
    assert (wrong.status, wrong.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    assert {problem["field"] for problem in wrong.json["error"]["details"]} == {
        "name", "status", "confirmationBlocks", "rpcUrl", "wsUrl", "explorerUrl", "gasLimit", "colour",
    }  # fmt: skip
    assert "hunter2" not in wrong.body.decode() + caplog.text
    nulls = put(edge, network="ethereum", name=None, status=None, confirmationBlocks=None)
    assert {p["field"] for p in nulls.json["error"]["details"]} == {"name", "status", "confirmationBlocks"}
    for url in ("https://", "https://a b", "https://x:99999", "//x", "https://x/#a", "https://ü.example", "x" * 3000, 5, ""):
        assert put(edge, "admin_live", network="ethereum", rpcUrl=url).json["error"]["code"] == "INVALID_PARAMETER", url
    assert put(edge, "admin_live", network="nowhere").status == 400


@pytest.mark.parametrize(
    ("key", "body", "field"),
    [
        ("admin_live", {"network": "ethereum", "status": "active"}, "rpcUrl"),
        ("admin_live", {"network": "bitcoin", "status": "active"}, "rpcUrl"),
        ("admin", {"network": "ethereum", "rpcUrl": SECRET}, "rpcUrl"),
        ("admin", {"network": "ethereum", "wsUrl": "wss://node.example"}, "wsUrl"),
    ],
)
def test_what_does_not_go_together_is_refused(edge, key, body, field):
    refused = put(edge, key, **body)
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert refused.json["error"]["details"]["field"] == field
    assert "hunter2" not in refused.body.decode()


def test_an_active_network_can_not_lose_its_node(edge):
    assert put(edge, "admin_live", network="bsc", rpcUrl=SECRET, status="active").status == 200
    assert put(edge, "admin_live", network="bsc", rpcUrl=None).json["error"]["code"] == "VALIDATION_ERROR"


def test_clients_change_nothing(edge):
    assert put(edge, "client", network="ethereum", name="Mine").json["error"]["code"] == "INSUFFICIENT_PERMISSIONS"


def test_two_changes_at_once_both_hold(edge):
    answers: list[int] = []
    bodies = ({"name": "Ethereum A"}, {"gasLimit": 30_000}, {"confirmationBlocks": 30})
    threads = [threading.Thread(target=lambda b=body: answers.append(put(edge, network="ethereum", **b).status)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = edge.services.store.get(Network, id="test:ethereum")
    assert answers == [200] * 3
    assert (found.name, found.gas_limit, found.confirmations) == ("Ethereum A", 30_000, 30)


def test_a_change_between_reading_and_writing_is_kept(edge, monkeypatch):
    store = edge.services.store
    commit = store.commit

    def late(changes: Any) -> None:
        monkeypatch.setattr(store, "commit", commit)
        before = store.get(Network, id="test:ethereum")
        from dataclasses import replace

        commit([Save(replace(before, name="Renamed meanwhile", version=before.version + 1))])
        commit(changes)

    monkeypatch.setattr(store, "commit", late)
    changed = put(edge, network="ethereum", gasLimit=40_000).json
    assert (changed["name"], changed["gasLimit"]) == ("Renamed meanwhile", 40_000)


REFUSED = (
    "169.254.169.254", "169.254.170.2:80", "169.254.169.254.", "2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "169.254.43518",
    "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]",
    "0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]", "127.0.0.1:9001", "[::1]:9001", "localhost:9001", "0", "127.1", "[::127.0.0.1]",  # noqa: S104
)  # fmt: skip


@pytest.mark.parametrize("host", REFUSED)
def test_a_deployed_stage_calls_nothing_beside_itself(edge, host):
    edge.services.networks = Networks(edge.services.store, deployed=True)
    for field, scheme in (("rpcUrl", "http"), ("wsUrl", "wss")):
        refused = put(edge, "admin_live", network="ethereum", **{field: f"{scheme}://user:pass@{host}/latest"})
        assert refused.status == 400, host
        assert refused.json["error"]["code"] in ("VALIDATION_ERROR", "INVALID_PARAMETER")
    edge.services.networks = Networks(edge.services.store, deployed=False)
    assert put(edge, "admin_live", network="ethereum", rpcUrl="http://127.0.0.1:8545").status == 200


@pytest.mark.parametrize(
    "host", ["10.0.3.7:8545", "192.168.1.9", "172.31.0.1", "[fd12:3456::1]:8545", "node.internal", "node.example", "1.2.3.4"]
)
def test_nodes_may_run_in_the_operators_own_network(edge, host):
    edge.services.networks = Networks(edge.services.store, deployed=True)
    assert put(edge, "admin_live", network="ethereum", rpcUrl=f"http://{host}").status == 200


def test_several_nodes_are_set_and_shown_to_admins_alone(edge):
    urls = [SECRET, "https://other.example/key/abcdefgh"]
    made = put(edge, "admin_live", network="ethereum", rpcUrls=urls, agreementUsd=1000, status="active", tracing="on", auditUsd=5)
    assert made.status == 200, made.body
    fits("networks.NetworkDetails", made.json)
    assert (made.json["rpcUrl"], made.json["rpcUrls"], made.json["agreementUsd"], made.json["auditUsd"]) == (SECRET, urls, 1000, 5)
    assert (
        not {"rpcUrls", "agreementUsd", "finalityTag", "tracing"} & edge.call("GET", "/networks/ethereum", key="live").json.keys()
    )
    first = put(edge, "admin_live", network="ethereum", rpcUrl="https://third.example").json
    assert first["rpcUrls"] == ["https://third.example", urls[1]], "the others stay"
    stored = edge.services.store.get(Network, id="live:ethereum")
    assert (stored.rpc_url, stored.more_rpc_urls) == ("https://third.example", (urls[1],))
    final = put(edge, "admin_live", network="ethereum", finalityTag="finalized", finalityUsd=50_000).json
    assert (final["finalityTag"], final["finalityUsd"], final["agreementUsd"], final["tracing"]) == (
        "finalized",
        50_000,
        1000,
        "on",
    )
    none = put(edge, "admin_live", network="ethereum", finalityTag=None, finalityUsd=None, agreementUsd=None, rpcUrls=[SECRET])
    assert (none.json["finalityTag"], none.json["agreementUsd"], none.json["rpcUrls"]) == (None, None, [SECRET])


def test_a_second_node_has_to_agree_unless_the_operator_says_otherwise(edge):
    urls = [SECRET, "https://b.example"]

    def agreement(**body):
        answer = put(edge, "admin_live", network="ethereum", **body)
        assert answer.status == 200, answer.body
        return answer.json["agreementUsd"]

    assert agreement(rpcUrls=[SECRET], agreementUsd=None) is None
    assert agreement(rpcUrls=urls) == 1000
    assert agreement(agreementUsd=None) is None
    assert agreement(rpcUrls=[*urls, "https://c.example"]) is None
    assert agreement(rpcUrls=[SECRET]) is None
    assert agreement(rpcUrls=urls, agreementUsd=50) == 50
    assert agreement(rpcUrls=[SECRET], agreementUsd=None) is None
    assert agreement(rpcUrls=urls) == 1000
    assert agreement(rpcUrls=[SECRET]) is None


@pytest.mark.parametrize(
    ("key", "body", "field"),
    [
        ("admin_live", {"network": "ethereum", "rpcUrls": [SECRET], "agreementUsd": 1}, "agreementUsd"),
        ("admin_live", {"network": "ethereum", "agreementUsd": 1}, "agreementUsd"),
        ("admin_live", {"network": "bitcoin", "auditUsd": 1}, "auditUsd"),
        ("admin", {"network": "ethereum", "auditUsd": 1}, "auditUsd"),
        ("admin_live", {"network": "ethereum", "rpcUrls": [SECRET, SECRET]}, "rpcUrls"),
        ("admin_live", {"network": "ethereum", "rpcUrls": [SECRET, "https://b.example"], "rpcUrl": "https://b.example"}, "rpcUrl"),
        ("admin_live", {"network": "bitcoin", "finalityTag": "safe", "finalityUsd": 1}, "finalityTag"),
        ("admin_live", {"network": "ethereum", "finalityTag": "safe"}, "finalityUsd"),
        ("admin_live", {"network": "ethereum", "finalityUsd": 5}, "finalityUsd"),
        ("admin_live", {"network": "tron", "tracing": "on"}, "tracing"),
        ("admin", {"network": "ethereum", "rpcUrls": [SECRET]}, "rpcUrl"),
        ("admin", {"network": "ethereum", "agreementUsd": 5}, "agreementUsd"),
        ("admin", {"network": "ethereum", "finalityTag": "safe", "finalityUsd": 1}, "finalityTag"),
    ],
)
def test_settings_of_nodes_that_do_not_go_together(edge, key, body, field):
    refused = put(edge, key, **body)
    assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert refused.json["error"]["details"]["field"] == field
    assert "hunter2" not in refused.body.decode()


def test_malformed_settings_of_nodes(edge):
    wrong = put(
        edge, "admin_live", network="ethereum", rpcUrls=["ftp://hunter2"], agreementUsd=-1, finalityTag="latest", finalityUsd="1",
        tracing=None,
    )  # fmt: skip
    assert (wrong.status, wrong.json["error"]["code"]) == (400, "INVALID_PARAMETER")
    named = {problem["field"].partition("[")[0].partition(".")[0] for problem in wrong.json["error"]["details"]}
    assert named == {"rpcUrls", "agreementUsd", "finalityTag", "finalityUsd", "tracing"}
    assert "hunter2" not in wrong.body.decode()
    for urls in ([], ["https://a.example"] * 9, "https://a.example"):
        assert put(edge, "admin_live", network="ethereum", rpcUrls=urls).json["error"]["code"] == "INVALID_PARAMETER"


def test_the_second_of_two_nodes_can_not_be_left_without_a_first(edge):
    assert put(edge, "admin_live", network="ethereum", rpcUrls=[SECRET, "https://b.example"]).status == 200
    assert put(edge, "admin_live", network="ethereum", rpcUrl=None).json["error"]["code"] == "VALIDATION_ERROR"
    assert put(edge, "admin_live", network="ethereum", rpcUrls=None).json["rpcUrls"] == []


def test_names_that_lead_inside_are_refused_where_they_are_set(edge):
    names = {"inside.example": ["169.254.169.254"], "mixed.example": ["1.2.3.4", "fd00:ec2::254"], "fine.example": ["10.0.0.7"]}
    edge.services.networks = Networks(edge.services.store, deployed=True, resolve=lambda host: names.get(host, []))
    for host in ("inside.example", "mixed.example"):
        for body in ({"rpcUrl": f"https://{host}/x"}, {"rpcUrls": ["https://fine.example", f"https://{host}"]}):
            refused = put(edge, "admin_live", network="ethereum", **body)
            assert (refused.status, refused.json["error"]["code"]) == (400, "VALIDATION_ERROR")
    for host in ("fine.example", "not.known.here"):
        assert put(edge, "admin_live", network="ethereum", rpcUrl=f"https://{host}").status == 200


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1%eth0", "127.0.0.1", "::1", "::ffff:169.254.1.1", "no address"])
def test_connections_are_not_made_to_what_is_no_node(address):
    assert may_be_a_node(address) is False
    assert may_be_a_node("10.1.2.3") is may_be_a_node("2001:db8::1") is True
