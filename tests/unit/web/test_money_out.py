"""What the portal says about money that leaves: why a withdrawal waits, what is checked before one is made, who has to sign."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

from chalicelib.api.records.withdrawals import RiskFinding
from chalicelib.domain.ids import TenantId
from chalicelib.domain.refunds.status import Status
from chalicelib.domain.withdrawals.approvals import MultisigConfig, Signer, settings_text, whitelist_text
from chalicelib.domain.withdrawals.withdrawals import PendingReason, WithdrawalStatus
from chalicelib.usecases.merchants.settings import check_config
from tests.support.javascript import value
from tests.support.signing import ALICE, BOB, CAROL, multisig

pytestmark = pytest.mark.nodes


PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
NOW = 1_800_000_000_000


json_of = json.dumps


def test_every_reason_and_status_has_words_and_what_to_do() -> None:
    findings = get_args(RiskFinding.model_fields["name"].annotation)
    reasons, statuses, claims = get_args(PendingReason), get_args(WithdrawalStatus), get_args(Status)
    approval = {"reasons": ["multisig"], "required_signatures": 3, "signatures": [{}], "operator_accepted": False}
    records = [
        {
            "status": "pending",
            "pending_reason": reason,
            "network": "ethereum",
            "approval": approval,
            "risk": {"findings": [{"name": "contract"}]},
        }
        for reason in reasons
    ]
    asked = f"""(() => {{
      const records = {json_of(records)}, plain = (name) => words(name);
      return {{
        waits: records.map(waitsFor), none: waitsFor({{ status: "confirmed", pending_reason: "risk" }}),
        filters: [STATUSES, WAITS], unsaid: {json_of([*statuses])}.filter((one) => says(one) === plain(one)),
        claims: {json_of([*claims])}.filter((one) => claimSays(one) === plain(one)),
        found: findings({{ findings: {json_of([{"name": name} for name in findings])} }}),
        names: {json_of([*findings])}.map(plain), other: waitsFor({{ status: "pending", pending_reason: "new_one" }}),
      }};
    }})()"""
    names = "STATUSES, WAITS, claimSays, findings, says, waitsFor"
    found = value(f'import {{ {names} }} from "withdrawals/words.js"; import {{ words }} from "app/format.js";', asked)
    assert [set(each) for each in found["filters"]] == [set(statuses), set(reasons)], "the list filters by each"
    assert (found["none"], found["unsaid"], found["claims"]) == (None, [], [])
    for reason, said in zip(reasons, found["waits"], strict=True):
        assert said["title"] and said["words"] and said["toDo"] and not said["title"].startswith("Waits: "), reason
    assert found["waits"][0]["title"] == "Waits for 2 more signatures"
    assert not set(found["found"]) & set(found["names"])
    assert found["other"]["title"] == "Waits: New one"


ASKED = {"network": "ethereum", "coin": "eth", "amount": "2", "to_address": PAYEE, "priority": "normal"}
GOOD: dict[str, Any] = {
    "validation": {"valid": True, "normalized": PAYEE}, "balance": {"available": "10.5"}, "fees": None,
    "coin": {
        "symbol": "ETH", "decimals": 18, "settings": {"useUsdLimits": False, "minValue": 0.1, "maxValue": 5, "maxValueDaily": 20},
    },
    "settings": {"whitelist_enforced": False, "multisig_config": {"enabled": False}}, "entry": None, "before": [],
}  # fmt: skip
PAID = {"id": "wd_1", "coin": "eth", "amount": "2.0", "status": "confirmed", "created_at": "2027-01-15T07:00:00.000Z"}


def test_a_withdrawal_is_judged_before_it_is_made() -> None:
    signers = {"enabled": True, "threshold_amount": "2", "required_signatures": 2, "signers": [{"id": "alice"}, {"id": "bob"}]}
    entry = {"label": "Rent", "daily_limit": "1", "monthly_limit": "100"}
    cases: list[tuple[dict[str, Any], dict[str, Any], str, bool]] = [
        ({}, {}, "8.5 ETH are left afterwards", False),
        ({}, {}, "You pay this address for the first time", False),
        ({}, {"validation": {"valid": False, "reason": "no"}}, "This is no address of ethereum", True),
        ({}, {"validation": None}, "The address is looked at when you send", False),
        ({"amount": "11"}, {}, "The amount can not be paid", True),
        ({"amount": "0.01"}, {}, "The amount can not be paid", True),
        ({"amount": "5"}, {"balance": {"available": "4.999"}}, "There is not enough", True),
        (
            {},
            {"settings": {"whitelist_enforced": True, "multisig_config": {"enabled": False}}},
            "The address is not on your whitelist",
            True,
        ),
        ({}, {"entry": {**entry, "daily_limit": None}}, "The address is on your whitelist as “Rent”", False),
        ({}, {"entry": entry}, "It is more than this address may get in 24 hours", True),
        ({}, {"before": [PAID]}, "The same was asked for within the last day", False),
        ({}, {"before": [{**PAID, "created_at": "2027-01-10T00:00:00.000Z"}]}, "You have paid this address before", False),
        ({}, {"before": [{**PAID, "status": "cancelled"}]}, "You pay this address for the first time", False),
        ({}, {"settings": {"multisig_config": signers}}, "It will wait for 2 signatures", False),
        ({"amount": "1"}, {"settings": {"multisig_config": signers}}, "It may wait for signatures", False),
    ]
    sent = [[{**ASKED, **asked}, {**GOOD, **facts}] for asked, facts, _, _ in cases]
    one = f"([asked, facts]) => {{ const lines = judged(asked, facts, {NOW}); return [lines, hopeless(lines)]; }}"
    judge = f"{json_of(sent)}.map({one})"
    found = value('import { hopeless, judged } from "withdrawals/check.js";', judge)
    for (asked, facts, title, stops), (lines, hopeless) in zip(cases, found, strict=True):
        assert title in [line["title"] for line in lines], (asked, facts, lines)
        assert hopeless is stops, (asked, facts, lines)
        order = ["bad", "warn", "calm", "good"]
        assert [line["tone"] for line in lines] == sorted((line["tone"] for line in lines), key=order.index)


def test_who_has_to_sign_a_change() -> None:
    off = {"enabled": False, "required_signatures": 0, "signers": []}
    present = {"enabled": True, "required_signatures": 2, "signers": [one.config for one in (ALICE, BOB)]}
    after = {**present, "signers": [ALICE.config, {**BOB.config, "role": "other"}, CAROL.config]}
    replaced = {**present, "signers": [ALICE.config, {**BOB.config, "public_key": CAROL.public_key}]}
    cases = [
        (off, present, ["alice", "bob"], 0),
        (present, after, ["carol"], 2),
        (present, off, [], 2),
        (off, off, [], 0),
        (present, replaced, ["bob"], 2),
    ]
    script = f"{json_of([case[:2] for case in cases])}.map(([before, after]) => needed(before, after))"
    wants = value('import { needed } from "signing/guarded.js";', script)
    assert [(one["must"], one["many"]) for one in wants] == [case[2:] for case in cases]
    given = [["alice"], ["alice", "bob"], ["alice", "carol"], ["alice", "bob", "carol"]]
    asked = f"{json_of(given)}.map((ids) => enough({json_of(wants[1])}, ids.map((id) => ({{ signer_id: id }}))))"
    assert value('import { enough } from "signing/guarded.js";', asked) == [False, False, False, True]


def test_a_change_that_somebody_sends_is_understood_whole_or_refused() -> None:
    tenant = TenantId("mch_1:test")
    now = {"whitelist_enforced": False, "multisig_config": multisig("1", 2), "refundDailyLimitUSD": "0", "revision": 4}
    after = {"whitelist_enforced": True, "multisig_config": multisig("5", 2)}
    entry = {"address": PAYEE, "network": "ethereum", "daily_limit": None, "monthly_limit": "5"}
    good = [settings_text(tenant, 4, after), whitelist_text(tenant, 0, entry)]
    bad = [
        "", good[0].replace("mch_1", "mch_2"), settings_text(tenant, 3, after), settings_text(tenant, 4, {**after, "more": 1}),
        settings_text(tenant, 4, {"whitelist_enforced": True}), whitelist_text(tenant, 0, {**entry, "label": "x"}),
        good[1] + "\nreject",
    ]  # fmt: skip
    script = f"[...{json_of(good)}, ...{json_of(bad)}].map((text) => understood(text, {json_of(now)}, {json_of(tenant)}))"
    first, second, *refused = value('import { understood } from "signers/other_change.js";', script)
    assert first["text"] == good[0] and first["after"]["multisig_config"]["threshold_amount"] == "5"
    assert second == {"entry": entry, "text": good[1]}
    assert all("problem" in one and "text" not in one for one in refused), refused


def test_the_form_of_signers_makes_what_the_service_takes() -> None:
    pem = eddsa.import_public_key(bytes.fromhex(ALICE.public_key)).export_key(format="PEM")
    alice = {"id": " alice ", "public_key": pem, "role": " finance "}
    good = {"enabled": True, "needed": "2", "threshold": "1.50", "signers": [alice, BOB.config]}
    bad = [
        {**good, "needed": "3"}, {**good, "needed": "0"}, {**good, "threshold": "1e3"}, {**good, "signers": [alice, alice]},
        {**good, "signers": [alice, {**BOB.config, "id": "b b"}]}, {**good, "signers": [alice, {**BOB.config, "public_key": "ab"}]},
        {**good, "signers": []}, {**good, "needed": "", "signers": [alice]},
    ]  # fmt: skip
    made, *refused = value('import { read } from "signers/form.js";', f"[{json_of(good)}, ...{json_of(bad)}].map(read)")
    assert made["config"] == {
        "enabled": True, "required_signatures": 2, "total_signers": 2, "threshold_amount": "1.5",
        "signers": [ALICE.config, BOB.config],
    }  # fmt: skip
    assert all(one["problems"] and "config" not in one for one in refused)
    config = made["config"]
    check_config(MultisigConfig(**{**config, "signers": tuple(Signer(**one) for one in config["signers"])}))


def test_a_new_key_file_is_read_again() -> None:
    imports = """import { newKeyFile } from "signing/new_key.js"; import { signOnce } from "signing/ed25519.js";"""
    script = """(async () => {
      const { publicKey, file } = await newKeyFile();
      return { publicKey, text: await file.text(), made: await signOnce(file, "hello", [{ id: "me", public_key: publicKey }]) };
    })()"""
    found = value(imports, script)
    key = ECC.import_key(found["text"])
    assert key.public_key().export_key(format="raw").hex() == found["publicKey"]
    assert found["made"] == {"signer_id": "me", "signature": eddsa.new(key, "rfc8032").sign(b"hello").hex()}
