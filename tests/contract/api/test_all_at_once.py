"""Everything that is wrong with a body is told at once, whichever part of the service is the one that knows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.edge import PREPARED, Edge

COLD = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's example of an address in capitals alone
LONG = "x" * 501
CASES: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("POST", "/webhooks", {"url": "x", "events": [], "secret": 1, "zz": 1}, {"url", "events", "secret", "zz"}),
    ("POST", "/webhooks", {"url": "https://shop.example/#part", "zz": 1}, {"url", "events", "zz"}),
    ("PUT", "/webhooks/wh_x", {"url": 5, "events": ["none"], "enabled": 1}, {"url", "events", "enabled"}),
    ("POST", "/webhooks/wh_x/rotate-secret", {"overlap": -1, "secret": "short"}, {"overlap", "secret"}),
    ("POST", "/addresses/grey-list", {"network": "tron", "address": "0x1", "reason": LONG}, {"address", "reason"}),
    ("DELETE", "/addresses/grey-list", {"network": "tron", "address": "0x1", "zz": 1}, {"address", "zz"}),
    (
        "POST", "/coins", {"network": "ethereum", "contractAddress": "0x1", "coin": "USDT!", "minValue": "x"},
        {"contractAddress", "coin", "minValue"},
    ),
    ("PUT", "/coins/precreate-token", {"network": "tron", "contractAddress": "0x1", "zz": 1}, {"contractAddress", "zz"}),
    ("POST", "/addresses", {"network": "ethereum", "type": "cold", "label": LONG}, {"address", "label"}),
    ("POST", "/addresses", {"network": "ethereum", "type": "cold", "address": "0x1", "label": LONG}, {"address", "label"}),
    ("POST", "/addresses", {"network": "ethereum", "type": "hot", "address": COLD, "mode": "x"}, {"address", "mode"}),
    ("POST", "/addresses", {"network": "ethereum", "address": COLD, "label": LONG}, {"address", "label"}),
    ("POST", "/addresses/service-wallets", {"network": "ethereum", "type": "cold", "zz": 1}, {"address", "zz"}),
    (
        "POST", "/addresses/service-wallets", {"network": "ethereum", "type": "cold", "address": "0x1", "privateKey": "1"},
        {"address", "privateKey"},
    ),
    ("POST", "/addresses/service-wallets", {"network": "doge", "type": "hot", "address": "0x1"}, {"address", "network"}),
]  # fmt: skip


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


@pytest.mark.parametrize(("method", "path", "body", "fields"), CASES)
def test_all_wrong_fields_are_named(edge: Edge, method: str, path: str, body: dict[str, Any], fields: set[str]) -> None:
    answer = edge.call(method, path, key="admin", json=body)
    error = answer.json if path.startswith("/coins") else answer.json["error"]
    assert (answer.status, error["code"]) == (400, "INVALID_PARAMETER")
    details = error["details"]
    named = re.findall(r"(?:^|; )(\w+): ", details) if isinstance(details, str) else [problem["field"] for problem in details]
    assert (set(named), len(named)) == (fields, len(fields))


def test_a_client_is_told_that_it_may_not_before_what_is_wrong_with_a_wallet(edge: Edge) -> None:
    assert edge.call("POST", "/addresses", json={"network": "ethereum", "type": "cold"}).status == 403
