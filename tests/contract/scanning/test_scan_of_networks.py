"""What an operator is shown of the networks' scans: lag, halts, and the nodes as polls stored them. Other keys see none of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.chain import Cursor
from chalicelib.domain.ids import network_id
from chalicelib.domain.scanning.node_reports import NetworkReport, NodeReport
from chalicelib.usecases.base.retries import Failures
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services
from chalicelib.workers import poll
from tests.support.stack import Stack

ETHEREUM = network_id("live", "ethereum")
SECRET = "c0ffee-secret-key"


def networks(stack: Stack, key: str) -> dict[str, Any]:
    answer = stack.call("GET", "/v1/networks", stack.keys[key])
    assert answer.status == 200, answer.body
    return {each["network"]: each for each in answer.json}


def test_lag_halts_and_nodes_are_the_operator_s_to_see(stack: Stack) -> None:
    at = services().clock.now_ms()
    node = NodeReport(1, "4f", "failing", 130, 84, "the node answers HTTP 502", at)
    cursor = Cursor(ETHEREUM, 100, "0xaa", at - 60_000, 120, at, halted="a fork deeper than what is remembered")
    services().store.commit([Save(cursor), Save(NetworkReport(ETHEREUM, at, 130, (node,)))])
    found = networks(stack, "admin_live")
    scan = found["ethereum"]["scan"]
    assert (scan["tip"], scan["lagBlocks"], scan["halted"]) == (130, 30, "a fork deeper than what is remembered")
    assert [(each["number"], each["state"], each["height"], each["latencyMs"]) for each in scan["nodes"]] == [
        (1, "failing", 130, 84)
    ]
    assert scan["nodes"][0]["error"] == "the node answers HTTP 502"
    assert found["bitcoin"]["scan"] == {
        "tip": None, "lagBlocks": None, "lastBlockAt": None, "halted": None, "rewindingTo": None, "backlogTo": None,
        "polledAt": None, "nodes": [],
    }  # fmt: skip
    assert stack.call("GET", "/v1/networks/ethereum", stack.keys["admin_live"]).json["scan"] == scan
    for key in ("client_live", "client_test", "read_only_test"):
        assert all("scan" not in each for each in networks(stack, key).values())
    assert networks(stack, "admin_test")["ethereum"]["scan"]["lagBlocks"] == 0


def test_a_poll_that_reaches_no_node_says_so_and_names_no_url(stack: Stack) -> None:
    wired = services()
    before = wired.catalogue("live").networks["bsc"]
    after = replace(before, status="active", rpc_url=f"http://127.0.0.1:9/{SECRET}", version=before.version + 1)
    wired.store.commit([Save(after)])
    wired.store.forget_catalogue()
    with pytest.raises(Failures):
        poll.run("bsc")
    report = wired.store.get(NetworkReport, network=after.id)
    assert report is not None
    assert (report.tip, report.nodes[0].state, report.nodes[0].latency_ms) == (None, "silent", None)
    assert SECRET not in repr(report)
    scan = networks(stack, "admin_live")["bsc"]["scan"]
    (shown,) = scan["nodes"]
    assert scan["lagBlocks"] is None
    assert shown["error"].startswith("the node can not be reached")
