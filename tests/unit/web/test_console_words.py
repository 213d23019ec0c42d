"""What the console says of withdrawals, networks and rescans, and who may decide: as the API tells of them."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest

from chalicelib.domain.scanning.node_reports import NodeState
from chalicelib.domain.screening.risk import WEIGHTS
from chalicelib.domain.treasury.collections import STATES
from chalicelib.domain.withdrawals.withdrawals import PendingReason
from chalicelib.web import files
from infra.cli import _parser
from tests.support.javascript import value

pytestmark = pytest.mark.nodes


COMMAND = re.compile(r"python -m infra\.cli ([^<`]+)")
WORDS = 'import * as words from "console/words.js";'
NOW = 1_767_225_600_000


def said(*calls: tuple[Any, ...]) -> list[Any]:
    """What each function says to its arguments: (name, *arguments). One process for all of them."""
    asked = [f"words.{name}({', '.join(json.dumps(each) for each in rest)})" for name, *rest in calls]
    return list(value(WORDS, f"[{', '.join(asked)}]"))


def approval(*reasons: str, **more: Any) -> dict[str, Any]:
    known = {"given": False, "operator_accepted": False, "required_signatures": 2, "signatures": [], "signers": ["a", "b"]}
    return {"reasons": list(reasons), **known, **more}


def test_every_reason_of_the_service_has_words() -> None:
    reasons, states = get_args(PendingReason), get_args(NodeState)
    assert value(WORDS, "words.REASONS.slice().sort()") == sorted(reasons)
    for found in said(*(("waitOf", {"pending_reason": reason}) for reason in reasons)):
        assert found["title"] and len(found["words"]) > 20, found
    assert not set(said(*(("findingOf", {"name": name}) for name in WEIGHTS))) & set(WEIGHTS)
    assert said(*(("toneOfNode", state) for state in states)) == ["good", "warn", "warn", "bad", "calm"]


DECISIONS: list[tuple[dict[str, Any], bool, bool]] = [
    ({"pending_reason": "approval", "approval": approval("grey_list")}, True, True),
    ({"pending_reason": "risk", "approval": approval("risk")}, True, True),
    ({"pending_reason": "approval", "approval": approval("multisig")}, False, True),
    ({"pending_reason": "approval", "approval": approval("multisig", "grey_list", operator_accepted=True)}, False, True),
    ({"pending_reason": "liquidity", "approval": approval("grey_list", given=True)}, False, False),
    ({"pending_reason": "fees"}, True, True),
    ({"pending_reason": "risk"}, False, False),
    ({"pending_reason": "halted"}, False, False),
    ({"pending_reason": "suspended"}, False, False),
]


def test_who_may_decide_about_a_withdrawal() -> None:
    for name, place in (("mayAccept", 1), ("mayReject", 2)):
        assert said(*((name, row[0]) for row in DECISIONS)) == [row[place] for row in DECISIONS]


def test_a_debt_is_told_from_a_risk() -> None:
    signed = approval("multisig", signatures=[{"signer_id": "a"}])
    owes, risk, missing = said(
        ("waitOf", {"pending_reason": "risk"}),
        ("waitOf", {"pending_reason": "risk", "approval": approval("risk")}),
        ("waitOf", {"pending_reason": "approval", "approval": signed}),
    )
    assert "owes" in owes["title"] and "decision" in risk["title"]
    assert "1 signature of the merchant's signers is missing" in missing["words"]


def network(**scan: Any) -> dict[str, Any]:
    known = {"halted": None, "rewindingTo": None, "backlogTo": None, "lagBlocks": 0, "polledAt": None, "nodes": [], "tip": 10}
    return {"status": "active", "lastBlock": 10, "blockTime": 12, "scan": known | scan}


STANDINGS: list[tuple[dict[str, Any], str, str]] = [
    (network(), "Well", "good"),
    (network() | {"status": "inactive"}, "Inactive", "calm"),
    (network() | {"lastBlock": None}, "Not begun", "warn"),
    (network(halted="too deep", lagBlocks=500), "Halted", "bad"),
    (network(rewindingTo=5), "Reorganisation", "warn"),
    (network(lagBlocks=3), "Well", "good"),
    (network(lagBlocks=100), "Behind", "warn"),
    (network(lagBlocks=1) | {"blockTime": 600}, "Well", "good"),
    (network(polledAt="2025-12-31T23:50:00.000Z"), "Not polled", "bad"),
    (network(polledAt="2025-12-31T23:59:00.000Z"), "Well", "good"),
    (network(nodes=[{"state": "silent"}, {"state": "silent"}]), "No node answers", "bad"),
    (network(nodes=[{"state": "well"}, {"state": "resting"}]), "Node trouble", "warn"),
    (network(nodes=[{"state": "well"}, {"state": "unasked"}]), "Well", "good"),
]


def test_how_a_network_stands() -> None:
    told = said(*(("standing", found, NOW) for found, _, _ in STANDINGS))
    assert [(each["state"], each["tone"]) for each in told] == [(state, tone) for _, state, tone in STANDINGS]


def test_progress_of_a_rescan() -> None:
    asked = {"fromBlock": 10, "toBlock": 19, "scannedTo": None, "status": "pending"}
    running, done = asked | {"scannedTo": 14, "status": "running"}, asked | {"scannedTo": 19, "status": "completed"}
    assert said(("part", asked), ("part", running), ("part", done)) == [0, 50, 100]


def test_a_collection_is_decided_as_its_status_allows() -> None:
    decided = dict(zip(STATES, said(*(("collectionDecisions", state) for state in STATES)), strict=True))
    assert {state: found for state, found in decided.items() if found} == {
        "waits_for_approval": ["approve", "reject", "retry"], "waiting": ["retry"], "parked": ["retry", "reject"],
    }  # fmt: skip


def test_why_a_deposit_is_held() -> None:
    flags = [["held", "grey_listed"], ["held", "native_twin"], ["below_minimum"], ["set_aside"]]
    told = said(*(("heldFor", each) for each in flags))
    assert all(word in each for word, each in zip(("grey list", "twice", "smallest", "Set aside"), told, strict=True))


PLACES = {
    "${merchant.id}": "mch_1", "${realmOf(me)}": "live", "${network.network}": "tron", "${wallet.network}": "tron",
    "${type}": "hot", "${where}": "--realm live --network tron", "STAGE": "prod", "AMOUNT": "1", "USD": "5", "SLUG": "tron",
}  # fmt: skip


def test_the_commands_that_it_names_are_those_of_the_command_line() -> None:
    named = [each for file in sorted((files.STATIC / "console").glob("*.js")) for each in COMMAND.findall(file.read_text("utf-8"))]
    assert len(named) > 8
    for command in named:
        words = command
        for place, word in PLACES.items():
            words = words.replace(place, word)
        assert "$" not in words
        assert _parser().parse_args(words.split()).stage == "prod", words
