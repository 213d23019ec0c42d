"""Withdrawals that somebody has to agree to: who can, with what, and that nothing is paid before."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.domain.greylist import GreyListEntry
from chalicelib.usecases.changes import Save
from tests.support.edge import PREPARED, Edge
from tests.support.signing import ALICE, BOB, CAROL, MALLORY, Signer, multisig

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # these are EIP-55's own examples
GREY = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
ETHER = 10**18
NOBODY = "01" + "00" * 31  # a point of small order


@pytest.fixture
def edge(aws) -> Iterator[Edge]:
    made = PREPARED.edge(aws)
    made.credit("ethereum", "eth", 10 * ETHER)
    yield made
    assert made.violations() == []


def ask(edge: Edge, amount: str, to: str = PAYEE) -> Any:
    made = edge.call("POST", "/withdrawals", json={"network": "ethereum", "coin": "eth", "amount": amount, "to_address": to})
    assert made.status == 201, made.body
    return made.json["data"]


def decide(edge: Edge, what: str, withdrawal: str, signer: Signer | None = None, key: str = "client", **more: Any) -> Any:
    body = {"id": withdrawal, **more}
    if signer is not None:
        text = edge.call("GET", f"/withdrawals/{withdrawal}").json["data"]["approval"]["signing_text"]
        body = {"signer_id": signer.name, "signature": signer.sign(text), **body}
    return edge.call("PUT", f"/v1/withdrawals/request/{what}", key=key, json=body)


def field(response: Any) -> str:
    assert (response.status, response.json["error"]["code"]) == (400, "VALIDATION_ERROR"), response.body
    return response.json["error"]["details"]["field"]


def settings(edge: Edge, **body: Any) -> Any:
    return edge.call("PUT", "/v1/merchant/settings", json=body)


def suspect(edge: Edge, address: str = GREY) -> None:
    edge.services.store.commit([Save(GreyListEntry("test", "ethereum", address.lower(), address, 0, "key_1"))])


def works(edge: Edge) -> Counter[str]:
    return Counter(work.kind for work in edge.services.store.every_work() if work.kind != "outbox")


def requests(edge: Edge, key: str = "client", query: str = "") -> list[str]:
    return [w["id"] for w in edge.call("GET", f"/v1/withdrawals/requests{query}", key=key).json["data"]]


def test_two_signatures_of_three(edge: Edge) -> None:
    assert settings(edge, multisig_config=multisig("1")).status == 200
    assert "approval" not in ask(edge, "0.999999999999999999")
    made = ask(edge, "1")
    assert (made["status"], made["pending_reason"]) == ("pending", "approval")
    assert made["approval"] == {
        "reasons": ["multisig"], "given": False, "required_signatures": 2, "signers": ["alice", "bob", "carol"], "signatures": [],
        "operator_accepted": False, "signing_text": f"{made['id']}\nethereum\neth\n1\n{PAYEE}",
    }  # fmt: skip
    assert works(edge) == {"payout": 1, "approval": 1}
    first = decide(edge, "accept", made["id"], ALICE)
    assert (first.status, first.json["data"]["pending_reason"]) == (200, "approval")
    assert decide(edge, "accept", made["id"], ALICE).json["data"] == first.json["data"]
    assert [s["signer_id"] for s in first.json["data"]["approval"]["signatures"]] == ["alice"]
    # Not even the operator stands for a signature.
    assert field(decide(edge, "accept", made["id"], key="admin")) == "signature"
    assert works(edge) == {"payout": 1, "approval": 1}
    second = decide(edge, "accept", made["id"], BOB, key="admin").json["data"]
    assert (second["status"], second.get("pending_reason"), second["approval"]["given"]) == ("pending", None, True)
    assert works(edge) == {"payout": 2}
    assert requests(edge) == requests(edge, "admin") == []
    assert decide(edge, "accept", made["id"], BOB).json["data"] == second
    assert field(decide(edge, "accept", made["id"], CAROL)) == "id"
    assert field(decide(edge, "reject", made["id"], CAROL)) == "id"


def test_signatures_that_do_not_count(edge: Edge) -> None:
    settings(edge, multisig_config=multisig("0"))
    made, another = ask(edge, "1"), ask(edge, "1")
    text = made["approval"]["signing_text"]
    wrong = [
        ({"signer_id": "alice", "signature": BOB.sign(text)}, "signature"),
        ({"signer_id": "alice", "signature": ALICE.sign(another["approval"]["signing_text"])}, "signature"),
        ({"signer_id": "alice", "signature": ALICE.sign(text + "\n")}, "signature"),
        ({"signer_id": "alice", "signature": ALICE.sign(text + "\nreject")}, "signature"),
        ({"signer_id": "alice", "signature": "00" * 64}, "signature"),
        ({"signer_id": "alice", "signature": "abc"}, "signature"),
        ({"signer_id": "mallory", "signature": MALLORY.sign(text)}, "signer_id"),
        ({"signature": ALICE.sign(text)}, "signer_id"),
        ({"signer_id": "alice"}, "signature"),
        ({}, "signature"),
    ]
    for body, named in wrong:
        assert field(decide(edge, "accept", made["id"], **body)) == named
    spelled = base64.b64encode(bytes.fromhex(ALICE.sign(text))).decode()
    assert decide(edge, "accept", made["id"], signer_id="alice", signature=spelled).status == 200
    invalid = edge.call("PUT", "/withdrawals/request/accept", json={"signature": 5, "x": 1})
    assert {p["field"] for p in invalid.json["error"]["details"]} == {"id", "signature", "x"}


def test_the_configuration_of_its_creation_counts(edge: Edge) -> None:
    settings(edge, multisig_config=multisig("1"))
    made = ask(edge, "1")
    now = edge.call("GET", "/merchant/settings").json["data"]
    after = {"multisig_config": {**multisig("1", 1), "signers": [MALLORY.config], "total_signers": 1}}
    assert signed_change(edge, now, after, ALICE, BOB).status == 200
    assert field(decide(edge, "accept", made["id"], MALLORY)) == "signer_id"
    for signer in (BOB, CAROL):
        assert decide(edge, "accept", made["id"], signer).status == 200
    assert works(edge) == {"payout": 1}


def test_the_operator_agrees_to_what_is_on_the_grey_list(edge: Edge) -> None:
    suspect(edge)
    made = ask(edge, "1", GREY.lower())
    assert (made["pending_reason"], made["approval"]["reasons"]) == ("approval", ["grey_list"])
    assert works(edge) == {"approval": 1}
    assert field(decide(edge, "accept", made["id"])) == "signature"
    assert field(decide(edge, "accept", made["id"], ALICE)) == "signer_id"
    accepted = decide(edge, "accept", made["id"], key="admin")
    assert (accepted.status, accepted.json["data"]["approval"]["operator_accepted"]) == (200, True)
    assert decide(edge, "accept", made["id"], key="admin").json["data"] == accepted.json["data"]
    assert works(edge) == {"payout": 1}


def test_both_have_to_agree_where_both_are_asked(edge: Edge) -> None:
    suspect(edge)
    settings(edge, multisig_config=multisig("1", 1))
    made = ask(edge, "1", GREY)
    assert made["approval"]["reasons"] == ["multisig", "grey_list"]
    assert decide(edge, "accept", made["id"], key="admin").json["data"]["approval"]["given"] is False
    assert works(edge) == {"approval": 1}
    assert decide(edge, "accept", made["id"], CAROL).json["data"]["approval"]["given"] is True
    assert works(edge) == {"payout": 1}


def test_an_address_that_is_listed_before_the_last_has_agreed(edge: Edge) -> None:
    settings(edge, multisig_config=multisig("1", 2))
    made = ask(edge, "1", GREY)
    assert made["approval"]["reasons"] == ["multisig"]
    decide(edge, "accept", made["id"], ALICE)
    suspect(edge)
    signed = decide(edge, "accept", made["id"], BOB).json["data"]
    assert (signed["pending_reason"], signed["approval"]["given"]) == ("approval", False)
    assert (signed["approval"]["reasons"], works(edge)) == (["multisig", "grey_list"], {"approval": 1})
    accepted = decide(edge, "accept", made["id"], key="admin").json["data"]
    assert (accepted["approval"]["given"], accepted["approval"]["operator_accepted"], works(edge)) == (True, True, {"payout": 1})
    # Said again, it stays as it is.
    assert decide(edge, "accept", made["id"], BOB).json["data"] == accepted
    # The operator may be the first to see it, too.
    other = ask(edge, "1", PAYEE)
    suspect(edge, PAYEE)
    first = decide(edge, "accept", other["id"], key="admin").json["data"]["approval"]
    assert (first["reasons"], first["operator_accepted"], first["given"]) == (["multisig", "grey_list"], True, False)


def test_a_signature_is_not_the_word_of_whoever_sends_it(edge: Edge) -> None:
    """An operator's tool that hands on what a signer signed has not looked at the grey list."""
    suspect(edge)
    settings(edge, multisig_config=multisig("1", 1))
    made = ask(edge, "1", GREY)
    handed_on = decide(edge, "accept", made["id"], ALICE, key="admin").json["data"]
    assert (handed_on["pending_reason"], handed_on["approval"]["operator_accepted"]) == ("approval", False)
    assert [s["signer_id"] for s in handed_on["approval"]["signatures"]] == ["alice"]
    assert works(edge) == {"approval": 1}
    assert decide(edge, "accept", made["id"], key="admin").json["data"]["approval"]["given"] is True
    assert works(edge) == {"payout": 1}


@pytest.mark.parametrize("by", ["admin", "signer", "signer-bare"])
def test_a_rejected_one_gives_its_money_back(edge: Edge, by: str) -> None:
    settings(edge, multisig_config=multisig("1"))
    made = ask(edge, "4")
    decide(edge, "accept", made["id"], ALICE)
    assert field(decide(edge, "reject", made["id"])) == "signature"
    text = made["approval"]["signing_text"] + ("\nreject" if by == "signer" else "")
    sent = {"key": "admin"} if by == "admin" else {"signer_id": "bob", "signature": BOB.sign(text)}
    rejected = decide(edge, "reject", made["id"], reason="who is this?", **sent)
    assert rejected.status == 200, rejected.body
    record = rejected.json["data"]
    assert (record["status"], record["failure_reason"]) == ("failed", "rejected: who is this?")
    (balance,) = edge.call("GET", "/balances").json["data"]
    assert (balance["available"], balance["frozen"]) == ("10", "0")
    assert works(edge) == {}
    assert decide(edge, "reject", made["id"], reason="again", **sent).json["data"] == record
    assert field(decide(edge, "accept", made["id"], BOB)) == "id"
    assert field(edge.call("DELETE", f"/withdrawals/{made['id']}")) == "status"


def test_a_waiting_one_can_be_cancelled(edge: Edge) -> None:
    settings(edge, multisig_config=multisig("1"))
    made = ask(edge, "4")
    assert edge.call("DELETE", f"/withdrawals/{made['id']}").json["data"]["status"] == "cancelled"
    assert works(edge) == {}
    assert requests(edge) == requests(edge, "admin") == []
    assert field(decide(edge, "accept", made["id"], ALICE)) == "id"
    assert field(decide(edge, "reject", made["id"], key="admin")) == "id"


def test_who_sees_what_waits(edge: Edge) -> None:
    settings(edge, multisig_config=multisig("1"))
    made = [ask(edge, "1")["id"] for _ in range(3)]
    ask(edge, "0.5")
    assert requests(edge) == requests(edge, "admin") == made[::-1]
    assert requests(edge, query="?limit=2&order=asc") == requests(edge, "admin", "?limit=2&order=asc") == made[:2]
    assert requests(edge, "admin", "?limit=2&page=2") == requests(edge, query="?limit=2&page=2") == made[:1]
    assert requests(edge, "other") == []
    listed = edge.call("GET", "/v1/withdraws", key="admin").json["data"]
    assert Counter(w.get("pending_reason") for w in listed) == {"approval": 3, None: 1}
    for method, path in (("PUT", "accept"), ("PUT", "reject")):
        foreign = edge.call(method, f"/withdrawals/request/{path}", key="other", json={"id": made[0]})
        assert (foreign.status, foreign.json["error"]["code"]) == (404, "NOT_FOUND")
        assert edge.call(method, f"/withdrawals/request/{path}", key="reader", json={"id": made[0]}).status == 403
    assert decide(edge, "accept", "wd_nothing", key="admin").status == 404
    assert field(decide(edge, "accept", ask(edge, "0.5")["id"])) == "id"


def test_at_once_they_are_accepted_once(edge: Edge) -> None:
    settings(edge, multisig_config=multisig("1"))
    made = ask(edge, "1")
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda s: decide(edge, "accept", made["id"], s).status, (ALICE, BOB, CAROL) * 2))
    assert set(answers) <= {200, 400}
    assert answers.count(200) >= 4
    found = edge.call("GET", f"/withdrawals/{made['id']}").json["data"]
    assert len(found["approval"]["signatures"]) == 2
    assert works(edge) == {"payout": 1}


def test_accepted_and_cancelled_at_once_it_is_one_of_both(edge: Edge) -> None:
    suspect(edge)
    for _ in range(4):
        made = ask(edge, "1", GREY)["id"]
        with ThreadPoolExecutor(3) as pool:
            jobs = [
                pool.submit(decide, edge, "accept", made, key="admin"),
                pool.submit(edge.call, "DELETE", f"/withdrawals/{made}"),
                pool.submit(decide, edge, "reject", made, key="admin"),
            ]
            assert all(job.result().status in (200, 400) for job in jobs)
        assert edge.call("GET", f"/withdrawals/{made}").json["data"]["status"] in ("pending", "cancelled", "failed")
        assert edge.violations() == []


def signed_change(edge: Edge, now: Any, after: dict[str, Any], *signers: Signer) -> Any:
    """Change the settings with signatures over the text of docs/operating.md, made here by hand."""
    wanted = {name: after.get(name, now[name]) for name in ("multisig_config", "whitelist_enforced")}
    body = json.dumps(wanted, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text = f"settings\n{edge.shop}:test\n{now['revision']}\n{body}"
    return settings(edge, **after, signatures=[{"signer_id": s.name, "signature": s.sign(text)} for s in signers])


def test_settings(edge: Edge) -> None:
    first = edge.call("GET", "/v1/merchant/settings").json["data"]
    nobody = {"enabled": False, "required_signatures": 0, "total_signers": 0, "threshold_amount": "0", "signers": []}
    assert first == {"whitelist_enforced": False, "multisig_config": nobody, "revision": 0, "updated_at": None}
    changed = settings(edge, whitelist_enforced=True).json["data"]
    assert (changed["whitelist_enforced"], changed["multisig_config"], changed["revision"]) == (True, nobody, 1)
    config = multisig("2.50")
    key = base64.b64encode(bytes.fromhex(ALICE.public_key)).decode()
    config["signers"] = [{**ALICE.config, "public_key": key}, BOB.config, CAROL.config]
    changed = settings(edge, multisig_config=config).json["data"]
    assert changed["multisig_config"] == {**multisig("2.5")}
    assert edge.call("GET", "/v1/merchant/settings").json["data"] == changed
    assert edge.call("GET", "/v1/merchant/settings", key="other").json["data"] == first
    assert edge.call("GET", "/v1/merchant/settings", key="live").json["data"] == first
    assert edge.call("PUT", "/merchant/settings", key="reader", json={"whitelist_enforced": False}).status == 403
    assert edge.call("GET", "/merchant/settings", key="reader").status == 200


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"required_signatures": 4}, "multisig_config.required_signatures"),
        ({"required_signatures": 0}, "multisig_config.required_signatures"),
        ({"total_signers": 2}, "multisig_config.total_signers"),
        ({"signers": [ALICE.config, BOB.config, {**CAROL.config, "id": "bob"}]}, "multisig_config.signers.2.id"),
        ({"signers": [ALICE.config, BOB.config, {**BOB.config, "id": "carol"}]}, "multisig_config.signers.2.public_key"),
        ({"signers": [{**ALICE.config, "public_key": NOBODY}, BOB.config, CAROL.config]}, "multisig_config.signers.0.public_key"),
    ],
)  # fmt: skip
def test_configurations_that_nobody_could_fulfil(edge: Edge, change: dict[str, Any], named: str) -> None:
    assert field(settings(edge, multisig_config={**multisig(), **change})) == named


def test_malformed_settings_are_named_all_at_once(edge: Edge) -> None:
    config = {**multisig(), "threshold_amount": "-1", "signers": [{"id": "", "public_key": "zz"}], "more": 1}
    answer = settings(edge, whitelist_enforced="yes", multisig_config=config)
    assert answer.json["error"]["code"] == "INVALID_PARAMETER"
    assert {p["field"] for p in answer.json["error"]["details"]} == {
        "whitelist_enforced", "multisig_config.threshold_amount", "multisig_config.signers.0.id",
        "multisig_config.signers.0.public_key", "multisig_config.more",
    }  # fmt: skip
    assert settings(edge).json["error"]["details"][0]["field"] == "body"


def test_signers_guard_the_settings(edge: Edge) -> None:
    """A stolen key with every permission can switch nothing off."""
    settings(edge, multisig_config=multisig("1"))
    now = edge.call("GET", "/merchant/settings").json["data"]
    off = {"multisig_config": {**multisig("1"), "enabled": False}}
    assert field(settings(edge, **off)) == "signatures"
    assert field(signed_change(edge, now, off, ALICE)) == "signatures"
    assert field(signed_change(edge, now, off, ALICE, ALICE)) == "signatures"
    assert field(signed_change(edge, now, off, ALICE, MALLORY)) == "signatures.1.signer_id"
    more = {"multisig_config": multisig("1000")}
    assert field(settings(edge, **more)) == "signatures"
    # Protecting more needs nobody; what protects stays.
    assert settings(edge, whitelist_enforced=True).json["data"]["revision"] == 2
    assert field(settings(edge, whitelist_enforced=False)) == "signatures"
    # Signed for the revision before.
    assert field(signed_change(edge, now, off, ALICE, BOB)) == "signatures.0.signature"
    now = edge.call("GET", "/merchant/settings").json["data"]
    assert signed_change(edge, now, {"whitelist_enforced": False}, CAROL, BOB).status == 200
    assert field(signed_change(edge, now, {"whitelist_enforced": False, **off}, CAROL, BOB)) == "signatures.0.signature"
    now = edge.call("GET", "/merchant/settings").json["data"]
    assert signed_change(edge, now, off, CAROL, BOB).json["data"]["multisig_config"]["enabled"] is False
    assert settings(edge, multisig_config={"enabled": False}).status == 200
