"""Withdrawals that somebody has to agree to: who can, with what, and that nothing is paid before."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.ids import TenantId
from chalicelib.domain.screening.grey_list import GreyListEntry
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.ports.changes import Save
from tests.support.edge import PREPARED, Edge
from tests.support.signing import ALICE, BOB, CAROL, MALLORY, Signer, agreed, enabled, multisig

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


def enable(edge: Edge, threshold: str = "1", required: int = 2) -> Any:
    return enabled(lambda body: settings(edge, **body), threshold, required)


def suspect(edge: Edge, address: str = GREY) -> None:
    edge.services.store.commit([Save(GreyListEntry("test", "ethereum", address.lower(), address, 0, "key_1"))])


def works(edge: Edge) -> Counter[str]:
    return Counter(work.kind for work in edge.services.store.every_work() if work.kind != "outbox")


def requests(edge: Edge, key: str = "client", query: str = "") -> list[str]:
    return [w["id"] for w in edge.call("GET", f"/v1/withdrawals/requests{query}", key=key).json["data"]]


def test_two_signatures_of_three(edge: Edge) -> None:
    enable(edge)
    assert "approval" not in ask(edge, "0.999999999999999999")
    made = ask(edge, "1")
    assert (made["status"], made["pending_reason"]) == ("pending", "approval")
    assert made["approval"] == {
        "reasons": ["multisig"], "given": False, "required_signatures": 2, "signers": ["alice", "bob", "carol"], "signatures": [],
        "signer_keys": [{"id": s.name, "public_key": s.public_key} for s in (ALICE, BOB, CAROL)],
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
    enable(edge, "0")
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
    enable(edge, "1")
    made = ask(edge, "1")
    now = edge.call("GET", "/merchant/settings").json["data"]
    after = {"multisig_config": {**multisig("1", 1), "signers": [MALLORY.config], "total_signers": 1}}
    assert signed_change(edge, now, after, ALICE, BOB, MALLORY).status == 200
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
    enable(edge, "1", 1)
    made = ask(edge, "1", GREY)
    assert made["approval"]["reasons"] == ["multisig", "grey_list"]
    assert decide(edge, "accept", made["id"], key="admin").json["data"]["approval"]["given"] is False
    assert works(edge) == {"approval": 1}
    assert decide(edge, "accept", made["id"], CAROL).json["data"]["approval"]["given"] is True
    assert works(edge) == {"payout": 1}


def test_an_address_that_is_listed_before_the_last_has_agreed(edge: Edge) -> None:
    enable(edge, "1", 2)
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
    enable(edge, "1", 1)
    made = ask(edge, "1", GREY)
    handed_on = decide(edge, "accept", made["id"], ALICE, key="admin").json["data"]
    assert (handed_on["pending_reason"], handed_on["approval"]["operator_accepted"]) == ("approval", False)
    assert [s["signer_id"] for s in handed_on["approval"]["signatures"]] == ["alice"]
    assert works(edge) == {"approval": 1}
    assert decide(edge, "accept", made["id"], key="admin").json["data"]["approval"]["given"] is True
    assert works(edge) == {"payout": 1}


@pytest.mark.parametrize("by", ["admin", "signer", "signer-bare"])
def test_a_rejected_one_gives_its_money_back(edge: Edge, by: str) -> None:
    enable(edge, "1")
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


def test_an_acceptance_is_no_rejection(edge: Edge) -> None:
    """The bytes that a signer agreed with go through other hands: whoever keeps them can not refuse the withdrawal in its name."""
    enable(edge, "1")
    made = ask(edge, "4")
    text = made["approval"]["signing_text"]
    agreed_with = ALICE.sign(text)
    assert decide(edge, "accept", made["id"], signer_id="alice", signature=agreed_with).status == 200
    spelled = base64.b64encode(bytes.fromhex(agreed_with)).decode()
    for bytes_ in (agreed_with, agreed_with.upper(), spelled, malleable(agreed_with)):
        refused = decide(edge, "reject", made["id"], signer_id="alice", signature=bytes_)
        assert field(refused) == "signature"
    assert edge.call("GET", f"/withdrawals/{made['id']}").json["data"]["status"] == "pending"
    # Another signer's bare text is a rejection still: it is published, and nobody stored those bytes as an acceptance.
    rejected = decide(edge, "reject", made["id"], signer_id="bob", signature=BOB.sign(text))
    assert (rejected.status, rejected.json["data"]["status"]) == (200, "failed")
    assert field(decide(edge, "reject", made["id"], signer_id="alice", signature=agreed_with)) == "signature"


def test_who_agreed_rejects_with_the_sixth_line(edge: Edge) -> None:
    enable(edge, "1")
    made = ask(edge, "4")
    decide(edge, "accept", made["id"], ALICE)
    text = made["approval"]["signing_text"]
    rejected = decide(edge, "reject", made["id"], signer_id="alice", signature=ALICE.sign(f"{text}\nreject"))
    assert (rejected.status, rejected.json["data"]["status"]) == (200, "failed")


def test_an_acceptance_of_the_same_key_is_no_rejection_by_another_name(edge: Edge) -> None:
    """Settings refuse a key that two signers share; a withdrawal of before that rule may have one."""
    enable(edge, "1")
    made = ask(edge, "4")
    stored = edge.services.withdrawals.stored(TenantId(f"{edge.shop}:test"), made["id"])
    approval = stored.approval
    assert approval is not None
    twins = tuple(replace(s, public_key=ALICE.public_key) if s.id == "bob" else s for s in approval.signers)
    edge.services.store.commit([Save(replace(stored, approval=replace(approval, signers=twins), version=stored.version + 1))])
    decide(edge, "accept", made["id"], ALICE)
    again = decide(edge, "reject", made["id"], signer_id="bob", signature=ALICE.sign(made["approval"]["signing_text"]))
    assert field(again) == "signature"


def malleable(signature: str) -> str:
    """The same signature with S + L in the place of S, which RFC 8032 section 5.1.7 refuses."""
    raw = bytes.fromhex(signature)
    order = 2**252 + 27742317777372353535851937790883648493
    return (raw[:32] + (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")).hex()


def test_a_waiting_one_can_be_cancelled(edge: Edge) -> None:
    enable(edge, "1")
    made = ask(edge, "4")
    assert edge.call("DELETE", f"/withdrawals/{made['id']}").json["data"]["status"] == "cancelled"
    assert works(edge) == {}
    assert requests(edge) == requests(edge, "admin") == []
    assert field(decide(edge, "accept", made["id"], ALICE)) == "id"
    assert field(decide(edge, "reject", made["id"], key="admin")) == "id"


def test_who_sees_what_waits(edge: Edge) -> None:
    enable(edge, "1")
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
    assert field(decide(edge, "accept", ask(edge, "0.25")["id"])) == "id"


def test_at_once_they_are_accepted_once(edge: Edge) -> None:
    enable(edge, "1")
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
    limit = after.get("refundDailyLimitUSD", now["refundDailyLimitUSD"])
    wanted |= {} if limit == "0" else {"refundDailyLimitUSD": limit}
    body = json.dumps(wanted, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text = f"settings\n{edge.shop}:test\n{now['revision']}\n{body}"
    return settings(edge, **after, signatures=[{"signer_id": s.name, "signature": s.sign(text)} for s in signers])


def test_settings(edge: Edge) -> None:
    first = edge.call("GET", "/v1/merchant/settings").json["data"]
    nobody = {"enabled": False, "required_signatures": 0, "total_signers": 0, "threshold_amount": "0", "signers": []}
    shop = {"name": None, "color": None, "logo": None, "frameAncestors": []}
    rest = {"refundDailyLimitUSD": "0", "shop": shop, "revision": 0, "updated_at": None}
    assert first == {"whitelist_enforced": False, "multisig_config": nobody, **rest}
    changed = settings(edge, whitelist_enforced=True).json["data"]
    assert (changed["whitelist_enforced"], changed["multisig_config"], changed["revision"]) == (True, nobody, 1)
    config = multisig("2.50")
    key = base64.b64encode(bytes.fromhex(ALICE.public_key)).decode()
    config["signers"] = [{**ALICE.config, "public_key": key}, BOB.config, CAROL.config]
    changed = agreed(lambda body: settings(edge, **body), {"multisig_config": config}, ALICE, BOB, CAROL).json["data"]
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
    enable(edge, "1")
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
    now = edge.call("GET", "/v1/merchant/settings").json["data"]
    assert field(settings(edge, refundDailyLimitUSD="500")) == "signatures"
    assert signed_change(edge, now, {"refundDailyLimitUSD": "500"}, CAROL, BOB).json["data"]["refundDailyLimitUSD"] == "500"
    assert field(signed_change(edge, now, {"whitelist_enforced": False, **off}, CAROL, BOB)) == "signatures.0.signature"
    now = edge.call("GET", "/merchant/settings").json["data"]
    assert signed_change(edge, now, off, CAROL, BOB).json["data"]["multisig_config"]["enabled"] is False
    assert settings(edge, multisig_config={"enabled": False}).status == 200


def test_who_becomes_a_signer_agrees_to_it(edge: Edge) -> None:
    """No key locks its merchant out with signers of its own making, or with keys that nobody has."""
    config = {"multisig_config": multisig("0", 1)}
    writer = edge.new_key("write")
    refused = edge.call("PUT", "/merchant/settings", key=writer, json=config)
    assert (refused.status, refused.json["error"]["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
    assert refused.json["error"]["details"]["required"] == "withdrawals:write"
    assert edge.call("PUT", "/merchant/settings", key=writer, json={"whitelist_enforced": True}).status == 200

    def send(body: dict[str, Any]) -> Any:
        return settings(edge, **body)

    now = edge.call("GET", "/merchant/settings").json["data"]
    assert field(send(config)) == "signatures"
    assert field(signed_change(edge, now, config, ALICE, BOB)) == "signatures"
    assert field(signed_change(edge, now, config, ALICE, BOB, MALLORY)) == "signatures.2.signer_id"
    assert signed_change(edge, now, config, ALICE, BOB, CAROL).status == 200
    # Another signer: one of the present ones agrees, and the new one; a new key under an old name is somebody new.
    other = Signer("bob", 9)
    changed = {"multisig_config": {**multisig("0", 1), "signers": [ALICE.config, other.config, CAROL.config]}}
    for signers in ((), (ALICE,), (BOB,), (other,)):
        now = edge.call("GET", "/merchant/settings").json["data"]
        assert field(signed_change(edge, now, changed, *signers)) == "signatures"
    assert signed_change(edge, now, changed, BOB, other).status == 200
    # A threshold needs the present ones alone; switching it off and on again, everybody.
    assert agreed(send, {"multisig_config": {**changed["multisig_config"], "threshold_amount": "5"}}, other).status == 200
    assert agreed(send, {"multisig_config": {"enabled": False}}, CAROL).status == 200
    assert field(agreed(send, changed, ALICE, other)) == "signatures"


@pytest.mark.parametrize("name", ["", "a b", "Zoë", "😀", "a\n", "x" * 65, "a/b"])
def test_signers_are_named_in_ascii(edge: Edge, name: str) -> None:
    answer = settings(edge, multisig_config={**multisig(), "signers": [{**ALICE.config, "id": name}, BOB.config, CAROL.config]})
    assert answer.json["error"]["code"] == "INVALID_PARAMETER"
    assert [p["field"] for p in answer.json["error"]["details"]] == ["multisig_config.signers.0.id"]


def test_signers_guard_the_whitelist(edge: Edge) -> None:
    """A stolen key can trust nobody new, and give nobody more."""

    def add(body: dict[str, Any]) -> Any:
        return edge.call("POST", "/whitelist/addresses", json={"network": "ethereum", **body})

    known = add({"address": PAYEE, "daily_limit": "2", "monthly_limit": "5"}).json["data"]
    enable(edge)
    assert field(add({"address": GREY})) == "signatures"
    assert field(agreed(add, {"address": GREY}, ALICE)) == "signatures"
    made = agreed(add, {"address": GREY, "daily_limit": "1.0", "label": "Rent"}, ALICE, CAROL)
    assert (made.status, made.json["data"]["daily_limit"]) == (201, "1")

    def change(body: dict[str, Any]) -> Any:
        return edge.call("PUT", f"/whitelist/addresses/{known['id']}", json=body)

    for more in ({"daily_limit": "2.1"}, {"monthly_limit": None}, {"daily_limit": "0", "label": "x"}):
        assert field(change(more)) == "signatures"
    assert edge.call("GET", f"/whitelist/addresses/{known['id']}").json["data"] == known
    assert change({"label": "Bank", "daily_limit": "1.5"}).status == 200
    # By hand, after docs/operating.md: the entry has been stored twice.
    body = f'{{"address":"{PAYEE}","daily_limit":"3","monthly_limit":"5","network":"ethereum"}}'
    text = f"whitelist\n{edge.shop}:test\n2\n{body}"
    signatures = [{"signer_id": s.name, "signature": s.sign(text)} for s in (ALICE, BOB)]
    assert change({"daily_limit": "3", "signatures": signatures}).json["data"]["daily_limit"] == "3"
    assert change({"daily_limit": "1"}).status == 200
    # Signatures are for one change, not for its repetition.
    assert field(change({"daily_limit": "3", "signatures": signatures})) == "signatures.0.signature"
    assert edge.call("DELETE", f"/whitelist/addresses/{known['id']}").status == 200
    assert field(add({"address": PAYEE})) == "signatures"
    assert agreed(add, {"address": PAYEE}, BOB, CAROL).status == 201
    assert change({"signatures": signatures}).json["error"]["code"] == "INVALID_PARAMETER"


def test_small_withdrawals_do_not_add_up_past_the_threshold(edge: Edge) -> None:
    enable(edge)
    first = ask(edge, "0.4")
    assert [("approval" in w) for w in (first, ask(edge, "0.5"))] == [False, False]
    waiting = ask(edge, "0.1", GREY)
    assert waiting["approval"]["reasons"] == ["multisig"]
    assert "approval" not in ask(edge, "0.09")
    # What signers sign does not count, and what is cancelled counts no more.
    edge.call("DELETE", f"/withdrawals/{waiting['id']}")
    assert "approval" in ask(edge, "0.01")
    edge.call("DELETE", f"/withdrawals/{first['id']}")
    sent = {"network": "ethereum", "coin": "eth", "outputs": [{"to_address": PAYEE, "amount": "0.1"}] * 6}
    made = edge.call("POST", "/withdrawals", json={"batch_withdrawal": sent}).json["data"]["withdrawals"]
    assert ["approval" in w for w in made] == [False] * 4 + [True] * 2
    edge.services.clock.shift_ms += 24 * 3600 * 1000
    assert "approval" not in ask(edge, "0.9")


def test_the_largest_answer_is_stored_and_repeated(edge: Edge) -> None:
    """A hundred withdrawals, each of which twenty signers with the longest names have to sign."""
    signers = [Signer(f"{n:02d}{'x' * 62}", 20 + n) for n in range(20)]
    config = {
        "enabled": True, "required_signatures": 20, "total_signers": 20, "threshold_amount": "0",
        "signers": [{**s.config, "role": "😀" * 64} for s in signers],
    }  # fmt: skip
    assert agreed(lambda body: settings(edge, **body), {"multisig_config": config}, *signers).status == 200
    outputs = [{"to_address": PAYEE, "amount": f"0.0{n:03d}00000000000001"} for n in range(1, 101)]
    sent = {"batch_withdrawal": {"network": "ethereum", "coin": "eth", "outputs": outputs}}
    first, again = (edge.call("POST", "/withdrawals", json=sent, headers={"Idempotency-Key": "large"}) for _ in range(2))
    assert first.status == 201
    assert len(first.body) > 200_000
    assert (again.body, again.headers["idempotency-replayed"]) == (first.body, "true")
    (stored,) = edge.services.store.every(StoredAnswer)
    assert stored.packed
    assert len(stored.body) < 60_000
    assert len(edge.call("GET", "/withdrawals?limit=100").json["data"]) == 100
