"""The policy files: up to date, one per function, and none allows what its function has no business with (money rule 10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import SEED_ID, unlock_seed
from chalicelib.delivery import secrets
from chalicelib.settings import DEAD_DELIVERIES, QUEUES, STAGES, TABLES, Settings
from infra import policies
from infra.policies import COMPARES, FUNCTIONS
from tests.deploy.declared import API, CHALICE, config, consumers, function_names, function_settings, functions
from tests.support.webhooks import SHOP

MONEY_TABLES = {"ledger", "payouts", "custody"}
MAKES_KEYS = ("kms:CreateAlias", "kms:CreateKey", "kms:GetPublicKey", "kms:TagResource", *COMPARES)


def statements(function: str, stage: str = "prod", effect: str = "Allow") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CHALICE / f"policy-{function}-{stage}.json").read_text())["Statement"]
    return [statement for statement in found if statement["Effect"] == effect]


def actions(function: str, stage: str = "prod") -> set[str]:
    return {action for statement in statements(function, stage) for action in statement["Action"]}


def tables(function: str) -> set[str]:
    arns = [arn for s in statements(function) for arn in s["Resource"] if ":dynamodb:" in arn]
    return {arn.split("table/gateway-prod-")[1].split("/")[0] for arn in arns}


def policy_of(function: str) -> str:
    return "api" if function == API else "poll" if function.startswith("poll_") else function


def test_files_are_what_the_script_writes() -> None:
    assert policies.stale() == []


def test_a_changed_file_is_noticed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "CHALICE", tmp_path)
    for file, text in policies.rendered().items():
        file.write_text(text)
    assert policies.stale() == []
    (tmp_path / "policy-api-prod.json").write_text('{"Version": "2012-10-17", "Statement": []}')
    (tmp_path / "policy-forgotten-prod.json").write_text("{}")
    assert [file.name for file in policies.stale()] == ["policy-api-prod.json", "policy-forgotten-prod.json"]


@pytest.mark.parametrize("stage", STAGES)
def test_the_api_can_neither_decrypt_nor_sign_nor_read_keys(stage: str) -> None:
    """It may encrypt the key of a wallet that is registered and put the row away, and that is all it has to do with keys."""
    for statement in statements("api", stage):
        for action in statement["Action"]:
            # The secrets of node URLs, which stood in the table that it reads: see the next test.
            allowed = ("kms:Encrypt", "s3:GetObject", "secretsmanager:GetSecretValue", *MAKES_KEYS)
            assert action in allowed or action.split(":")[0] in ("dynamodb", "sqs", "logs"), action
        if any("custody" in arn for arn in statement["Resource"]):
            assert statement["Action"] == ["dynamodb:PutItem"]
            assert statement["Condition"] == {
                "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["key#*"]},
                "StringEqualsIfExists": {"dynamodb:ReturnValues": "NONE"},
            }
        assert not any("payouts" in arn for arn in statement["Resource"])


@pytest.mark.parametrize("stage", STAGES)
def test_who_asks_nodes_reads_their_secrets_and_no_others(stage: str) -> None:
    """A name ends with a hyphen and six characters in the ARN.
    https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html"""
    may = {
        (function, action, arn)
        for function in FUNCTIONS
        for statement in statements(function, stage)
        for action in statement["Action"]
        for arn in statement["Resource"]
        if action.startswith("secretsmanager:")
    }
    asking = ("api", "poll", "scan_range", "record", "tick", "payout", "collect", "compare") if stage != "demo" else ()
    mine = f"arn:aws:secretsmanager:*:*:secret:gateway-{stage}-node-*"
    assert may == {(function, "secretsmanager:GetSecretValue", mine) for function in asking}


@pytest.mark.parametrize("stage", STAGES)
def test_the_api_is_denied_what_it_is_not_given(stage: str) -> None:
    """Whatever else its role is ever given. Not DynamoDB's and Lambda's decrypting in its name: of our own keys alone."""
    assert not [f for f in FUNCTIONS if f != "api" and statements(f, stage, "Deny")]
    signs, opens = statements("api", stage, "Deny")
    assert "kms:Sign" in signs["Action"] and (signs["Resource"], "Condition" in signs) == (["*"], False)
    (names,) = opens["Condition"]["ForAnyValue:StringLike"].values()
    assert "kms:Decrypt" in opens["Action"] and names == [
        f"alias/gateway-{stage}-{key}" for key in ("data", "webhooks", "hot-*", "wallet-*")
    ]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("signs", ["payout", "collect"])
def test_what_signs_can_not_write_the_wallets_that_it_trusts(signs: str, stage: str) -> None:
    """Service wallets and watched addresses, to which moves go. What wrote them can not sign."""
    on_chain = [s for s in statements(signs, stage) if any(f"table/gateway-{stage}-chain" in arn for arn in s["Resource"])]
    allowed = {action for statement in on_chain for action in statement["Action"] if action.startswith("dynamodb:")}
    assert allowed <= {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:ConditionCheckItem"} and allowed


@pytest.mark.parametrize("stage", STAGES)
def test_no_function_can_seal_or_prove_a_backup_of_wallets(stage: str) -> None:
    for function in FUNCTIONS:
        for statement in statements(function, stage):
            if {"kms:Encrypt", "kms:Decrypt"} & set(statement["Action"]):
                purposes = ("wallet-key", "deposit-seed", "webhook-secret")
                assert statement["Condition"]["StringEquals"]["kms:EncryptionContext:purpose"] in purposes


@pytest.mark.parametrize("stage", STAGES)
def test_the_api_encrypts_nothing_but_keys_of_wallets_and_secrets_of_webhooks(stage: str) -> None:
    """Each for those that open it."""
    wallets, webhooks = [s for s in statements("api", stage) if "kms:Encrypt" in s["Action"]]
    for seals, opener in ((wallets, "payout"), (webhooks, "deliver"), (webhooks, "deliver_slow")):
        (opens,) = [s for s in statements(opener, stage) if s["Action"] == ["kms:Decrypt"]]
        assert seals["Action"] == ["kms:Encrypt"]
        assert seals["Condition"] == opens["Condition"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("delivers", ["deliver", "deliver_slow"])
def test_what_delivers_opens_secrets_of_webhooks_and_has_no_other_key(delivers: str, stage: str) -> None:
    """A receiver that takes the function over has the secrets of webhooks, and nothing that money could be moved with."""
    (opens,) = [s for s in statements(delivers, stage) if any(action.startswith("kms:") for action in s["Action"])]
    assert opens["Action"] == ["kms:Decrypt"]
    assert opens["Condition"] == {
        "ForAnyValue:StringEquals": {"kms:ResourceAliases": [f"alias/gateway-{stage}-webhooks"]},
        "StringEquals": {"kms:EncryptionContext:purpose": "webhook-secret", "kms:EncryptionContext:stage": stage},
    }


@pytest.mark.parametrize("stage", STAGES)
def test_nobody_else_uses_the_key_of_webhooks(stage: str) -> None:
    wanted = {"api": [("kms:Encrypt", "webhook-secret")]}
    wanted |= {function: [("kms:Decrypt", "webhook-secret")] for function in ("deliver", "deliver_slow")}
    for function in FUNCTIONS:
        named = [
            (action, s["Condition"]["StringEquals"]["kms:EncryptionContext:purpose"])
            for s in statements(function, stage)
            for action in s["Action"]
            if f"alias/gateway-{stage}-webhooks" in json.dumps(s)
        ]
        assert named == wanted.get(function, [])


def test_the_condition_is_what_sealing_a_webhooks_secret_really_sends() -> None:
    sent = secrets.context_of(Settings(stage="prod"), SHOP, "wh_1")
    (opens,) = [s for s in statements("deliver") if s["Action"] == ["kms:Decrypt"]]
    for name, value in opens["Condition"]["StringEquals"].items():
        assert sent[name.removeprefix("kms:EncryptionContext:")] == value
    assert sent.keys() == {"purpose", "stage", "tenant", "endpoint"}


@pytest.mark.parametrize("stage", STAGES)
def test_the_api_deletes_of_the_chains_table_the_grey_list_alone(stage: str) -> None:
    of_chain = [s for s in statements("api", stage) if any(arn.endswith("-chain") for arn in s["Resource"])]
    (deletes,) = [s for s in of_chain if "dynamodb:DeleteItem" in s["Action"]]
    assert deletes["Action"] == ["dynamodb:DeleteItem"]
    assert deletes["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": ["grey#*"]}


def test_keys_of_the_narrow_rights_are_what_the_store_writes() -> None:
    from chalicelib.custody.records import EncryptedKey
    from chalicelib.domain.screening.grey_list import GreyListEntry
    from chalicelib.store.schema import prefix_of

    assert FUNCTIONS["api"].only["custody"][0] == FUNCTIONS["payout"].only["custody"][0] == prefix_of(EncryptedKey)
    assert FUNCTIONS["collect"].only["custody"][0] == prefix_of(EncryptedSeed)
    assert FUNCTIONS["api"].only["chain"][0] == prefix_of(GreyListEntry)


@pytest.mark.parametrize("stage", STAGES)
def test_only_the_payout_function_signs_and_only_the_collect_function_opens_the_seed(stage: str) -> None:
    kms = {f: sorted(a for a in actions(f, stage) if a.startswith("kms:")) for f in FUNCTIONS}
    makes = MAKES_KEYS if stage != "demo" else ()
    rights = {"payout": ["kms:Decrypt", "kms:Sign"], "api": sorted(["kms:Encrypt", *makes]), "collect": ["kms:Decrypt"]}
    rights |= {function: ["kms:Decrypt"] for function in ("deliver", "deliver_slow")}
    assert kms == {f: rights.get(f, []) for f in FUNCTIONS}
    settings = Settings(stage=stage)
    used = {s["Action"][0]: s["Condition"] for s in statements("payout", stage) if s["Action"][0].startswith("kms:")}
    aliases = {action: next(iter(condition.values()))["kms:ResourceAliases"] for action, condition in used.items()}
    hot = [settings.key_alias(key) for key in settings.keys if key.startswith("hot-")]
    assert aliases == {
        "kms:Sign": [*hot, *([f"alias/gateway-{stage}-wallet-*"] if stage != "demo" else [])],
        "kms:Decrypt": [settings.key_alias("data")],
    }
    assert next(iter(used["kms:Sign"])) == "ForAnyValue:StringLike"
    assert used["kms:Sign"]["StringEquals"]["kms:MessageType"] == "DIGEST"
    assert used["kms:Decrypt"]["StringEquals"] == {
        "kms:EncryptionContext:purpose": "wallet-key",
        "kms:EncryptionContext:stage": stage,
    }
    (opens,) = [s for s in statements("collect", stage) if s["Action"] == ["kms:Decrypt"]]
    assert opens["Condition"] == {
        "ForAnyValue:StringEquals": {"kms:ResourceAliases": [settings.key_alias("data")]},
        "StringEquals": {"kms:EncryptionContext:purpose": "deposit-seed", "kms:EncryptionContext:stage": stage},
    }


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("delivers", ["deliver", "deliver_slow"])
def test_what_delivers_writes_no_outbox_row_but_notices(delivers: str, stage: str) -> None:
    (writes,) = [s for s in statements(delivers, stage) if any(arn.endswith("-work") for arn in s["Resource"])]
    assert writes["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["delivery#*", "outbox#*", "row#note_*", "unheld#*"]},
        "StringEqualsIfExists": {"dynamodb:ReturnValues": "NONE"},
    }


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("function", "prefix"), [("payout", "key#*"), ("collect", "seed#*")])
def test_each_reads_of_the_keys_what_it_may_open(function: str, prefix: str, stage: str) -> None:
    (reads,) = [s for s in statements(function, stage) if any("custody" in arn for arn in s["Resource"])]
    assert reads["Action"] == ["dynamodb:GetItem"]
    assert reads["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": [prefix]}


def test_the_api_makes_no_keys_but_those_that_sign_for_its_stages_wallets() -> None:
    kind = {"kms:KeySpec": "ECC_SECG_P256K1", "kms:KeyUsage": "SIGN_VERIFY"}
    by_action: dict[str, list[dict[str, Any]]] = {}
    for statement in statements("api"):
        for action in statement["Action"]:
            by_action.setdefault(action, []).append(statement)
    (makes,) = by_action["kms:CreateKey"]
    assert makes["Condition"]["StringEquals"].items() >= {**kind, "aws:RequestTag/gateway-stage": "prod"}.items()
    (reads,) = by_action["kms:GetPublicKey"]
    assert reads["Condition"] == {"StringEquals": kind}
    names = by_action["kms:CreateAlias"]
    assert {(tuple(s["Resource"]), "Condition" in s) for s in names} == {
        (("arn:aws:kms:*:*:key/*",), True),
        (("arn:aws:kms:*:*:alias/gateway-prod-wallet-*",), False),
    }
    (tags,) = by_action["kms:TagResource"]
    assert tags["Condition"]["StringEquals"] == {"aws:RequestTag/gateway-stage": "prod"}


@pytest.mark.parametrize("stage", STAGES)
def test_no_function_deletes_or_disables_a_key(stage: str) -> None:
    for function in FUNCTIONS:
        for action in actions(function, stage):
            words = ("Delete", "Deletion", "Disable", "PutKeyPolicy", "CreateGrant", "UpdateAlias")
            assert not action.startswith("kms:") or not any(word in action for word in words), (function, action)
        of_custody = {a for s in statements(function, stage) for a in s["Action"] if any("custody" in r for r in s["Resource"])}
        assert not of_custody & {"dynamodb:DeleteItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"}


def test_the_condition_is_what_custody_really_sends() -> None:
    from chalicelib.custody.envelope import context_of
    from chalicelib.domain.ids import NetworkId

    sent = context_of(Settings(stage="prod"), NetworkId("live:ethereum"), "0xabc")
    (opens,) = [s for s in statements("payout") if s["Action"] == ["kms:Decrypt"]]
    for name, value in opens["Condition"]["StringEquals"].items():
        assert sent[name.removeprefix("kms:EncryptionContext:")] == value


def test_the_condition_is_what_opening_the_seed_really_sends() -> None:
    asked: list[dict[str, str]] = []

    class Kms:
        def decrypt(self, **sent: Any) -> Any:
            asked.append(sent["EncryptionContext"])
            return {"Plaintext": bytes(64)}

    with unlock_seed(Kms(), Settings(stage="prod"), EncryptedSeed(SEED_ID, "", {}, 0)):
        pass
    (opens,) = [s for s in statements("collect") if s["Action"] == ["kms:Decrypt"]]
    assert {f"kms:EncryptionContext:{k}": v for k, v in asked[0].items()} == opens["Condition"]["StringEquals"]


def test_each_function_reaches_only_its_tables() -> None:
    reached = {function: tables(function) for function in FUNCTIONS}
    assert reached["deliver"] - {"chain"} == reached["relay"] - {"tenants"} == {"work", "events", "webhooks"}
    assert FUNCTIONS["relay"].only["tenants"][0] == "tally#", "how many endpoints there are, and no merchant or key"
    assert FUNCTIONS["deliver"].only["chain"] == ("clock#", ("GetItem",)), "how far the sandbox is ahead, and nothing of money"
    assert not reached["housekeeping"] & MONEY_TABLES
    assert not reached["poll"] & {"custody", "webhooks"}
    assert "webhooks" not in reached["payout"] | reached["collect"]
    telling = {name for name, rights in FUNCTIONS.items() if "relay" in rights.sends} - {"api", "relay", "deliver", "deliver_slow"}
    assert telling >= {"poll", "tick", "scan_range", "payout", "collect", "housekeeping"}
    for function in telling:
        rights = FUNCTIONS[function]
        assert set(rights.tables.get("tenants", ())) <= {"Scan"}, "reconciliation's; nobody else sees a merchant's keys"
        assert rights.only["tenants"] == ("tally#", ("GetItem", "ConditionCheckItem")), "whether somebody listens, and no more"
        assert rights.tables["events"] == ("PutItem",) or function == "housekeeping", "it tells, and reads nothing"
    writes = {
        (action.split(":")[1], arn.split("table/gateway-prod-")[1])
        for s in statements("compare")
        for action in s["Action"]
        for arn in s["Resource"]
        if ":dynamodb:" in arn and not action.endswith((":GetItem", ":BatchGetItem", ":Query", ":Scan"))
    }
    pending = FUNCTIONS["scan_range"].tables["records"], FUNCTIONS["scan_range"].tables["ledger"]
    assert {action for action, table in writes if table in ("records", "ledger")} == {"PutItem", "UpdateItem"}
    assert all({"PutItem", "UpdateItem"} <= set(rights) for rights in pending), "as much as whoever records what is pending"
    assert {table.split("/")[0] for _, table in writes} == {"records", "ledger", "chain", "work", "events", "tenants"}, (
        "it pays nothing"
    )
    assert {action for action, table in writes if table == "tenants"} == {"ConditionCheckItem"}
    assert tables("reconciliation") == {"chain"}
    assert {f for f in FUNCTIONS if "custody" in reached[f]} == {"payout", "collect", "api"}
    assert set().union(*reached.values()) == set(TABLES)
    assert "dynamodb:PutItem" not in {
        a for s in statements("payout") for a in s["Action"] if any("custody" in r for r in s["Resource"])
    }


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_open_ended(function: str, stage: str) -> None:
    for statement in statements(function, stage):
        assert statement["Effect"] == "Allow"
        for action in statement["Action"]:
            assert "*" not in action
            assert action not in ("dynamodb:DeleteTable", "dynamodb:UpdateTable", "sqs:PurgeQueue")
            # It reads page after page on its way round all watched addresses, the merchants and the addresses that have
            # something. Nobody else may go through a table.
            if action == "dynamodb:Scan":
                (table,) = statement["Resource"]
                through = (function, table.removeprefix(f"arn:aws:dynamodb:*:*:table/gateway-{stage}-"))
                assert through in {("compare", each) for each in ("chain", "tenants", "ledger")}
        for arn in statement["Resource"]:
            if "Condition" not in statement:
                assert f"gateway-{stage}" in arn
    others = [other for other in STAGES if other != stage]
    text = json.dumps(statements(function, stage))
    assert not any(f"gateway-{other}" in text for other in others)


@pytest.mark.parametrize("stage", STAGES)
def test_every_function_has_its_own_policy_and_size(stage: str) -> None:
    declared = config()
    assert declared["autogen_policy"] is False
    assert set(declared["stages"]) == set(STAGES)
    more = {"demo_reset"} if stage == "demo" else set()
    assert set(declared["stages"][stage]["lambda_functions"]) == set(functions()) | more
    assert set(declared["lambda_functions"]) == set(functions()) | {"demo_reset"}
    for function in functions():
        found = function_settings(stage, function)
        assert found["iam_policy_file"] == f"policy-{policy_of(function)}-{stage}.json"
        assert (CHALICE / found["iam_policy_file"]).is_file()
        assert found["environment_variables"]["STAGE"] == stage
        assert 128 <= found["lambda_memory_size"] <= 10_240
        # API Gateway gives up after 29 seconds; what is started every minute, or every five,
        # should be over when it is started again.
        assert 0 < found["lambda_timeout"] <= {API: 29, "reconciliation": 300, "compare": 300, "archive": 300}.get(function, 60)


@pytest.mark.parametrize("stage", STAGES)
def test_queues_and_logs(stage: str) -> None:
    settings = Settings(stage=stage)
    assert set(consumers(stage).values()) == {settings.queue(queue) for queue in QUEUES}
    for function, name in function_names(stage).items():
        mine = statements(policy_of(function), stage)
        receives = [arn.rsplit(":", 1)[1] for s in mine if "sqs:ReceiveMessage" in s["Action"] for arn in s["Resource"]]
        assert receives == ([consumers(stage)[function]] if function in consumers(stage) else [])
        logs = [arn for s in mine if "logs:PutLogEvents" in s["Action"] for arn in s["Resource"]]
        assert f"arn:aws:logs:*:*:log-group:/aws/lambda/{name}:*" in logs


@pytest.mark.parametrize("stage", STAGES)
def test_no_function_puts_anything_among_the_messages_that_functions_failed_on(stage: str) -> None:
    sent = {
        (function, arn.rsplit(":", 1)[1].removeprefix(f"gateway-{stage}-"))
        for function in functions()
        for s in statements(policy_of(function), stage)
        if "sqs:SendMessage" in s["Action"]
        for arn in s["Resource"]
    }
    dead = {(function, queue) for function, queue in sent if "-dead" in queue}
    assert dead == {("deliver", DEAD_DELIVERIES), ("deliver_slow", DEAD_DELIVERIES)}


@pytest.mark.parametrize("stage", STAGES)
def test_housekeeping_alone_raises_ceilings(stage: str) -> None:
    """Who gives address indexes out can raise no ceiling outside the tables: one that could would undo what guards them."""
    may = {
        (function, action, arn)
        for function in FUNCTIONS
        for statement in statements(function, stage)
        for action in statement["Action"]
        for arn in statement["Resource"]
        if action.startswith("ssm:")
    }
    mine = f"arn:aws:ssm:*:*:parameter/gateway-{stage}/pools/*"
    assert may == {("housekeeping", action, mine) for action in ("ssm:GetParameters", "ssm:PutParameter")}
    (rows,) = [s for s in statements("housekeeping", stage) if s["Sid"] == "OnlyChain"]
    assert rows["Action"] == ["dynamodb:UpdateItem"]
    assert rows["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": ["pool#*"]}


@pytest.mark.parametrize("stage", STAGES)
def test_the_archive_alone_removes_postings_and_writes_objects(stage: str) -> None:
    """And of the ledger it writes neither a merchant's balance nor a payment's entry."""
    removes, objects = set(), {}
    for function in FUNCTIONS:
        for s in statements(function, stage):
            if "dynamodb:DeleteItem" in s["Action"] and any("-ledger" in arn for arn in s["Resource"]):
                removes.add((function, *s["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]))
            if any(action.startswith("s3:") for action in s["Action"]):
                objects[function] = set(s["Action"])
                assert s["Resource"] == [f"arn:aws:s3:::gateway-{stage}-archive-*-*/payments/*"]
                assert s["Condition"] == {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}
    beginnings = ("jrn#credit:*", "jrn#reverse:*", "jrn#unhold:*", "jrn#admit:*", "wal#*", "closed#*")
    assert removes == {("archive", *beginnings)}
    assert [function for function, actions in objects.items() if "s3:PutObject" in actions] == ["archive"]
    assert not any(action.startswith("s3:Delete") or "Bypass" in action for actions in objects.values() for action in actions)


def test_settings_accept_every_stages_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBHOOKS_ALLOW_PRIVATE")  # which the tests have
    for stage, of_stage in config()["stages"].items():
        for name, value in of_stage["environment_variables"].items():
            monkeypatch.setenv(name, value)
        settings = Settings.from_environment()
        assert settings.stage == stage
        # Whoever tries the sandbox waits for blocks; the local stack and the tests say themselves how often they come.
        assert (settings.sandbox_block_seconds == 2) is (stage != "local")
        for name in of_stage["environment_variables"]:
            monkeypatch.delenv(name)


@pytest.mark.parametrize("stage", STAGES)
def test_webhooks_go_to_private_addresses_on_the_local_stack_alone(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGE", stage)
    monkeypatch.setenv("WEBHOOKS_ALLOW_PRIVATE", "false")
    assert Settings.from_environment().webhooks_private is False
    monkeypatch.setenv("WEBHOOKS_ALLOW_PRIVATE", "true")
    if stage == "local":
        assert Settings.from_environment().webhooks_private is True
    else:
        with pytest.raises(ValueError, match=f"WEBHOOKS_ALLOW_PRIVATE is 'true'; allowed on {stage}: false"):
            Settings.from_environment()
