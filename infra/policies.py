"""The rights of each function, written once and rendered to the policy files that Chalice reads.

    python -m infra.policies            writes .chalice/policy-<function>-<stage>.json
    python -m infra.policies --check    says which of them are not what this module would write

A function may do what it uses and nothing else (money rule 10). The API can encrypt the key of a wallet that is registered, and
put the row away, or have KMS make one; it can encrypt secrets of webhooks; it can neither read a key's row nor decrypt anything:
the tables are decrypted by DynamoDB itself, under a key whose own policy allows that (`TablesKey` in template.yaml).

Who asks nodes reads the secrets of their URLs, the API too: it reads a token's contract, a stray payment, and what a payer's wallet
or a stake is built from. Before, these secrets stood in the table of networks, which it reads.
https://docs.aws.amazon.com/service-authorization/latest/reference/reference.html
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chalicelib.custody.native import STAGE_TAG, WALLET_TAG
from chalicelib.domain.work import NOTICE
from chalicelib.settings import APP, DEAD_DELIVERIES, STAGES, Settings
from chalicelib.store.indexes import INDEXES
from infra import network_rights

CHALICE = Path(__file__).parent.parent / ".chalice"

# A condition on another item of a transaction is ConditionCheckItem; conditions on what is written need no further right.
GET = ("GetItem", "BatchGetItem")
READ = (*GET, "Query")
PUT = ("PutItem",)
SAVE = (*PUT, "UpdateItem")
"""A record is put, and updated over its version before."""
INDEXED = frozenset(index.table for index in INDEXES.values())


@dataclass(frozen=True, slots=True)
class Rights:
    """What one function may do. `tables` maps a table to DynamoDB actions; `log_names` are the functions that use this policy,
    as they follow `gateway-<stage>` in a Lambda's name.
    """

    tables: Mapping[str, Sequence[str]]
    log_names: Sequence[str]
    sends: Sequence[str] = ()
    consumes: str | None = None
    signs: bool = False
    seals: bool = False
    """Encrypts the keys of wallets that are registered, and makes such keys in KMS where the stage has real money; encrypts the
    secrets of webhooks."""
    opens_webhooks: bool = False
    """Decrypts the secrets of webhooks."""
    opens_seed: bool = False
    lists: Sequence[str] = ()
    """Tables whose indexes it reads."""
    only: Mapping[str, tuple[str | tuple[str, ...], Sequence[str]]] = field(default_factory=dict)
    """More of a table, for items alone whose partition key begins with a prefix, or one of several: table to prefix and actions."""
    raises: bool = False
    """Raises the ceilings of the index pools, in AWS Systems Manager and in the pools' rows."""
    archive: Sequence[str] = ()
    """What it may do with the objects of archived payments."""
    asks_nodes: bool = False
    """Reads the secrets that the URLs of nodes refer to."""


COMPARES = ("kms:DescribeKey", "kms:GetKeyPolicy", "kms:ListGrants", "kms:ListResourceTags")
_NETWORKS = ("bitcoin", "ethereum", "tron", "bsc", "polygon", "arbitrum", "fantom", "litecoin")
_SIMULATED = (*READ, *PUT, "DeleteItem", "ConditionCheckItem")
READ_OBJECT = ("s3:GetObject",)
"""Who reads archived records reads them where their rows were. The tables' key lets S3 decrypt for whoever may read an object."""
DELIVERIES = ("deliveries", "deliveries-slow")
"""Whoever may wake an endpoint's deliveries may find it well or failing."""

FUNCTIONS: dict[str, Rights] = {
    "api": Rights(
        {
            # ConditionCheckItem: that the key which makes another is not revoked meanwhile.
            "tenants": (*READ, *SAVE, "ConditionCheckItem"),
            "records": (*READ, *SAVE),
            # Journal, merchants' balances, and what is on hold at an address, when an operator releases it.
            "ledger": (*READ, *SAVE),
            # Among others the counter that address indexes are taken from.
            "chain": (*READ, *SAVE, "ConditionCheckItem"),
            # Query: what waits for its payment, for the operator (GET /withdraws).
            "work": ("Query", *PUT, "DeleteItem"),
            # A test event, at the endpoint's owner's wish.
            "events": (*READ, *PUT),
            # ConditionCheckItem: that an endpoint is paused still, when something is put aside for it.
            "webhooks": (*READ, *SAVE, "DeleteItem", "ConditionCheckItem"),
            "sandbox": _SIMULATED,
        },
        log_names=("",),
        asks_nodes=True,
        lists=tuple(sorted(INDEXED - {"work"})),
        sends=("relay", "ticks", *DELIVERIES),
        archive=READ_OBJECT,
        seals=True,
        # Keys of wallets, never the seed; entries of the grey list, never a watched address.
        only={"custody": ("key#", PUT), "chain": ("grey#", ("DeleteItem",))},
    ),
    "poll": Rights(
        {
            # ConditionCheckItem: that nothing is to be collected of a deposit still.
            "records": (*GET, *SAVE, "ConditionCheckItem"),
            "ledger": (*GET, *SAVE),
            "chain": (*READ, *SAVE, "ConditionCheckItem"),
            "payouts": (*GET, *SAVE),
            "work": ("Query", *PUT, "DeleteItem"),
            "sandbox": _SIMULATED,
        },
        log_names=tuple(f"-poll_{network}" for network in _NETWORKS),
        asks_nodes=True,
        archive=READ_OBJECT,
        sends=("relay", "scans", "ticks", "record"),
        # Ranges of a backlog that are passed, never what they found.
        only={"chain": ("range#", ("DeleteItem",))},
    ),
    "scan_range": Rights(
        {
            "records": (*GET, *SAVE),
            # What waits at an address. Nothing is credited here, but a deposit may have to give way to another.
            "ledger": (*GET, *SAVE),
            "chain": (*READ, *SAVE, "ConditionCheckItem"),
            # Whether a payment to a service wallet is our own change; which coins of ours a block may spend.
            "payouts": ("BatchGetItem",),
            # Query: what is signed and not at its end, which a block may have.
            "work": ("Query", *PUT, "DeleteItem"),
        },
        log_names=("-scan_range",),
        asks_nodes=True,
        archive=READ_OBJECT,
        sends=("relay", "scans"),
        consumes="scans",
    ),
    "record": Rights(
        {
            # The parts of a poll that record and credit.
            "records": (*GET, *SAVE, "ConditionCheckItem"),
            "ledger": (*GET, *SAVE),
            "chain": (*READ, *SAVE, "ConditionCheckItem"),
            # PutItem: a UTXO of a hot wallet that is credited.
            "payouts": (*GET, *SAVE),
            "work": ("Query", *PUT, "DeleteItem"),
        },
        log_names=("-record",),
        asks_nodes=True,
        archive=READ_OBJECT,
        sends=("relay",),
        consumes="record",
    ),
    # What a poll does to credit, and no more: nothing here is planned, ordered or settled.
    "tick": Rights(
        {
            # ConditionCheckItem: that nothing is to be collected of a deposit still.
            "records": (*GET, *SAVE, "ConditionCheckItem"),
            "ledger": (*GET, *SAVE),
            "chain": (*READ, *SAVE, "ConditionCheckItem"),
            # PutItem: the coins of a hot wallet, which follow its deposits.
            "payouts": (*GET, *SAVE),
            "work": ("Query", *PUT, "DeleteItem"),
            # A simulated chain is read.
            "sandbox": READ,
        },
        log_names=("-tick",),
        asks_nodes=True,
        archive=READ_OBJECT,
        sends=("relay", "record"),
        consumes="ticks",
    ),
    "payout": Rights(
        {
            # Query: what a merchant trusts, when it pays an address for the first time.
            "records": (*READ, *SAVE),
            # ConditionCheckItem, here and of payouts: that no payment of a bundle was signed by itself meanwhile.
            "ledger": (*GET, *SAVE, "ConditionCheckItem"),
            # ConditionCheckItem: that a wallet is registered still, when a payment begins with it or coins are signed over to it,
            # and that the kill switch is not thrown.
            "chain": (*READ, "ConditionCheckItem"),
            "payouts": (*GET, *SAVE, "ConditionCheckItem"),
            # Query: what else can be paid in the same transaction, on networks of coins.
            "work": ("Query", *PUT, "DeleteItem"),
            "sandbox": _SIMULATED,
        },
        log_names=("-payout",),
        asks_nodes=True,
        sends=("relay",),
        consumes="payouts.fifo",
        lists=("records",),
        signs=True,
        # Keys of wallets, never the seed.
        only={"custody": ("key#", ("GetItem",))},
    ),
    "collect": Rights(
        {
            "records": (*GET, *SAVE),
            "ledger": (*GET, *SAVE),
            "chain": (*READ, "ConditionCheckItem"),
            "payouts": (*GET, *SAVE),
            "work": (*PUT, "DeleteItem"),
            "sandbox": _SIMULATED,
        },
        log_names=("-collect",),
        asks_nodes=True,
        archive=READ_OBJECT,
        sends=("relay",),
        consumes="collections.fifo",
        opens_seed=True,
        # The seed, never the keys of wallets.
        only={"custody": ("seed#", ("GetItem",))},
    ),
    "relay": Rights(
        {
            # Query: the open rows with earlier events of an object.
            "work": (*READ, *PUT, "DeleteItem"),
            # Query: the events of a time that is sent again. BatchWriteItem: all events of an outbox row.
            "events": (*READ, *PUT, "BatchWriteItem"),
            # ConditionCheckItem: that an endpoint is paused still, when something is put aside for it.
            "webhooks": (*READ, *SAVE, "ConditionCheckItem"),
        },
        log_names=("-relay",),
        # How many endpoints a merchant has, which tells whether those that are remembered are all.
        only={"tenants": ("tally#", GET)},
        # Its own queue: a job of redelivery goes on in another message.
        sends=("relay", *DELIVERIES, "payouts.fifo", "collections.fifo"),
        consumes="relay",
    ),
    "deliver": Rights(
        {
            "events": GET,
            # ConditionCheckItem: that an endpoint is paused, disabled, or gone still, when something is put aside or cancelled.
            "webhooks": (*GET, *SAVE, "ConditionCheckItem"),
        },
        log_names=("-deliver",),
        sends=("relay", *DELIVERIES, DEAD_DELIVERIES),
        consumes="deliveries",
        # What has to be delivered, and notices: nothing of what has to be paid, and nobody else's outbox rows. The relay looks
        # whether a notice is one. Of the chain tables the sandbox's clock alone: notices bear the time of their realm.
        only={
            "work": (("delivery#", "outbox#", f"row#{NOTICE}_", "unheld#"), ("Query", *PUT, "DeleteItem")),
            "chain": ("clock#", ("GetItem",)),
        },
        opens_webhooks=True,
    ),
    "reconciliation": Rights(
        # Which networks there are, and how far their runs are.
        {"chain": READ},
        log_names=("-reconciliation",),
        sends=("comparisons",),
    ),
    "compare": Rights(
        {
            # Which merchants there are; what they are owed is in the ledger.
            "tenants": ("Scan",),
            # Stakes, moves, and the deposits of an address on networks of coins. SAVE: a payment that no block
            # tells, as `scan_range` records one; nothing is credited here.
            "records": (*READ, *SAVE),
            # Scan: pages of it each time, through all addresses that have something. The rest: what waits at an address.
            "ledger": (*READ, *SAVE, "Scan"),
            # Scan: a page of it each time, round all watched addresses. PutItem: how far a run has come, and its report.
            "chain": (*READ, *SAVE, "ConditionCheckItem", "Scan"),
            "payouts": GET,
            # PutItem: an address whose coins may have to be collected, and what a recorded payment leaves to do.
            "work": ("Query", *PUT, "DeleteItem"),
            "sandbox": READ,
        },
        log_names=("-compare",),
        asks_nodes=True,
        archive=READ_OBJECT,
        lists=("records",),
        sends=("relay",),
        consumes="comparisons",
    ),
    # The one function that removes journal entries: no deposit is credited here, and no request answered.
    "archive": Rights(
        {
            # PutItem: stubs in the places of invoices, deposits and addresses. Nothing is saved over.
            "records": (*READ, *PUT),
            "ledger": GET,
            "chain": READ,
        },
        log_names=("-archive",),
        lists=("records",),
        archive=(*READ_OBJECT, "s3:PutObject"),
        only={
            "tenants": ("merchants#", ("Query",)),
            # Whether a coin of a UTXO network is still to be spent.
            "work": ("collectable#", ("Query",)),
            # Entries of deposits, balances of nothing, and the closing postings; no payment's entry, and no merchant's balance.
            "ledger": (("jrn#credit:", "jrn#reverse:", "jrn#unhold:", "jrn#admit:", "wal#", "closed#"), (*SAVE, "DeleteItem")),
            # How far it has come; claims of logs that nothing needs; the lists of blocks, which the deposits leave.
            "chain": (("archive#", "archived#", "block#", "blocks#", "logs#"), (*SAVE, "DeleteItem")),
        },
    ),
    "rates": Rights({"chain": (*READ, *SAVE)}, log_names=("-rates",)),
    "housekeeping": Rights(
        {
            # PutItem: the withdrawals of a batch whose function died before it had made them.
            "records": (*GET, *SAVE),
            "chain": READ,
            # BatchWriteItem: lookouts that are kept.
            "work": (*READ, *PUT, "DeleteItem", "BatchWriteItem"),
            # BatchWriteItem: as the relay, whose work it does where messages were lost.
            "events": (*GET, *PUT, "BatchWriteItem"),
            # ConditionCheckItem: that an endpoint is as it was when nothing was left that is put aside for it.
            "webhooks": (*READ, *SAVE, "ConditionCheckItem"),
        },
        log_names=("-housekeeping",),
        lists=("work",),
        sends=("relay", *DELIVERIES, "payouts.fifo", "collections.fifo"),
        # How far the index pools may go, nothing else of the chain.
        only={"chain": ("pool#", ("UpdateItem",))},
        raises=True,
    ),
}

_NO_MERCHANTS = ("relay", "deliver", "deliver_slow")
"""Who puts notices of endpoints into the outbox, or empties it, and tells nothing of a merchant's money."""


def _telling(rights: Rights) -> Rights:
    """With what it takes to store events without an outbox row: put them, and ask whether the merchant has an endpoint. Of the
    tenants' table that is the counts alone."""
    tables = rights.tables if "events" in rights.tables else {**rights.tables, "events": PUT}
    return replace(rights, tables=tables, only={**rights.only, "tenants": ("tally#", ("GetItem", "ConditionCheckItem"))})


FUNCTIONS |= {
    name: _telling(rights)
    for name, rights in FUNCTIONS.items()
    if "relay" in rights.sends and name not in _NO_MERCHANTS and "ConditionCheckItem" not in rights.tables.get("tenants", ())
}

# The same work for endpoints that fail: where its messages come from is all that differs.
FUNCTIONS["deliver_slow"] = replace(FUNCTIONS["deliver"], log_names=("-deliver_slow",), consumes="deliveries-slow")

DEMO_FUNCTIONS: dict[str, Rights] = {
    # Fills the demo through the use cases of requests and pollers, after it has emptied every table but tenants and custody;
    # of tenants it forgets how many webhooks there were, never a key.
    # There is no such function, and no such policy, on any other stage.
    "demo_reset": Rights(
        {
            "tenants": READ,
            **dict.fromkeys(
                ("records", "ledger", "chain", "payouts", "work", "events", "webhooks", "sandbox"),
                (*READ, *SAVE, "DeleteItem", "ConditionCheckItem", "Scan", "BatchWriteItem"),
            ),
        },
        log_names=("-demo_reset",),
        # Ticks: its polls are those of busy networks.
        sends=("relay", "ticks"),
        only={"tenants": ("tally#", ("DeleteItem", "ConditionCheckItem"))},
    ),
}


def policy(function: str, stage: str) -> dict[str, Any]:
    """The IAM policy of one function in one stage. Region and account stay open: a role reaches no further than its account."""
    rights, settings = {**FUNCTIONS, **DEMO_FUNCTIONS}[function], Settings(stage=stage)
    logs = _allow(
        "Logs",
        ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"),
        [f"arn:aws:logs:*:*:log-group:/aws/lambda/{APP}-{stage}{name}:*" for name in rights.log_names],
    )
    statements = [logs, *_tables(rights, settings), *_messages(rights, settings)]
    if function == "api":
        statements += _uses_no_key(settings)
    return {"Version": "2012-10-17", "Statement": [*statements, *_custody(rights, settings), *network_rights.rights(stage)]}


def _tables(rights: Rights, settings: Settings) -> list[dict[str, Any]]:
    """What a function may do with each table: everywhere, or with the keys of a few beginnings alone."""
    statements = []
    for table, actions in rights.tables.items():
        arn = f"arn:aws:dynamodb:*:*:table/{settings.table(table)}"
        indexes = [f"{arn}/index/*"] if table in rights.lists else []
        statements.append(_allow(f"Table{table.capitalize()}", [f"dynamodb:{action}" for action in actions], [arn, *indexes]))
    for table, (beginning, actions) in rights.only.items():
        prefixes = (beginning,) if isinstance(beginning, str) else beginning
        arn = f"arn:aws:dynamodb:*:*:table/{settings.table(table)}"
        statements.append(
            _allow(f"Only{table.capitalize()}", [f"dynamodb:{action}" for action in actions], [arn])
            # What was there before is not told either (ReturnValues ALL_OLD).
            # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
            | {
                "Condition": {
                    "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{prefix}*" for prefix in prefixes]},
                    "StringEqualsIfExists": {"dynamodb:ReturnValues": "NONE"},
                }
            }
        )
    return statements


def _messages(rights: Rights, settings: Settings) -> list[dict[str, Any]]:
    """The queues that a function sends to and is started by, the ceilings that it raises, and archived payments."""
    statements = []
    if rights.sends:
        statements.append(_allow("Sends", ("sqs:GetQueueUrl", "sqs:SendMessage"), [_queue(settings, q) for q in rights.sends]))
    if rights.raises:
        # No other function: one that gives indexes out could take the guard against giving them out twice along with its tables.
        # https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-paramstore-access.html
        parameters = [f"arn:aws:ssm:*:*:parameter{settings.ceiling_parameter('*')}"]
        statements.append(_allow("RaisesCeilings", ("ssm:GetParameters", "ssm:PutParameter"), parameters))
    if rights.archive:
        # Bucket names are unique in the world: one of this name in another account is not ours.
        # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-resourceaccount
        objects = _allow("Archive", rights.archive, [f"arn:aws:s3:::{settings.archive_bucket('*', '*')}/payments/*"])
        statements.append(objects | {"Condition": {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}})
    if rights.consumes is not None:
        # What Lambda's poller does in the function's name. Source: AWSLambdaSQSQueueExecutionRole.
        actions = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
        statements.append(_allow("Consumes", actions, [_queue(settings, rights.consumes)]))
    return statements


def _custody(rights: Rights, settings: Settings) -> list[dict[str, Any]]:
    """What a function may do with keys and secrets."""
    statements = []
    if rights.seals:
        statements.append(_allow("SealsWalletKeys", ("kms:Encrypt",), ["arn:aws:kms:*:*:key/*"]) | _for_wallet_keys(settings))
        statements.append(_allow("SealsWebhookSecrets", ("kms:Encrypt",), ["arn:aws:kms:*:*:key/*"]) | _for_webhooks(settings))
        statements += _makes_keys(settings) if "live" in settings.realms else []
    if rights.signs:
        statements += _keys(settings)
    if rights.opens_seed:
        # No signature of KMS and no wallet's key: the seed of the deposit addresses alone.
        statements.append(_allow("OpensSeed", ("kms:Decrypt",), ["arn:aws:kms:*:*:key/*"]) | _for(settings, "deposit-seed"))
    if rights.opens_webhooks:
        statements.append(_allow("OpensWebhookSecrets", ("kms:Decrypt",), ["arn:aws:kms:*:*:key/*"]) | _for_webhooks(settings))
    if rights.asks_nodes and "live" in settings.realms:
        # Under the account's key aws/secretsmanager, with which node-secret makes them, nobody needs a right to KMS beside it.
        # https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html
        secrets = [f"arn:aws:secretsmanager:*:*:secret:{settings.node_secret('*')}"]
        statements.append(_allow("ReadsNodeSecrets", ("secretsmanager:GetSecretValue",), secrets))
    return statements


def _makes_keys(settings: Settings) -> list[dict[str, Any]]:
    """Make keys that sign over secp256k1, tagged and named as this stage's wallets; never use, change or delete one.

    No condition of IAM reads the policy that a new key is made with. So whoever has this role can make keys that others may use,
    and give one the name of a wallet's next key: `custody/native.py` compares what it finds under such a name.

    The new key is told apart by its kind: its tags and aliases count for rights only minutes later.
    https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html
    """
    kind = {"kms:KeySpec": "ECC_SECG_P256K1", "kms:KeyUsage": "SIGN_VERIFY"}
    tagged = {"StringEquals": {f"aws:RequestTag/{STAGE_TAG}": settings.stage}}
    tags = {"ForAllValues:StringEquals": {"aws:TagKeys": [STAGE_TAG, WALLET_TAG]}}
    keys = ["arn:aws:kms:*:*:key/*"]
    made = {"StringEquals": {**kind, "kms:KeyOrigin": "AWS_KMS", **tagged["StringEquals"]}, "Bool": {"kms:MultiRegion": "false"}}
    return [
        _allow("MakesWalletKeys", ("kms:CreateKey",), ["*"]) | {"Condition": made},
        _allow("TagsWalletKeys", ("kms:TagResource",), keys) | {"Condition": {**tagged, **tags}},
        _allow("NamesWalletKeys", ("kms:CreateAlias", "kms:GetPublicKey"), keys) | {"Condition": {"StringEquals": kind}},
        # What has the name of a wallet's next key already is compared with what would be made.
        _allow("ComparesWalletKeys", COMPARES, keys) | {"Condition": {"StringEquals": kind}},
        _allow("NamesThemSo", ("kms:CreateAlias",), [f"arn:aws:kms:*:*:{settings.wallet_aliases}"]),
    ]


def _uses_no_key(settings: Settings) -> list[dict[str, Any]]:
    """No signature, and nothing of this stage's secrets, whatever else the role is ever given, and whatever a key's policy allows.

    Decrypting is denied for our own keys by name: the tables' key is used through DynamoDB in the role's name, and Lambda opens a
    function's environment so.
    """
    named = [settings.key_alias(name) for name in ("data", "webhooks", "hot-*")] + [settings.wallet_aliases]
    return [
        _deny("SignsNothing", ("kms:Sign", "kms:PutKeyPolicy", "kms:ImportKeyMaterial", "kms:UpdateAlias", "kms:DeleteAlias")),
        _deny("OpensNothing", ("kms:Decrypt", "kms:ReEncryptFrom", "kms:CreateGrant"))
        | {"Condition": {"ForAnyValue:StringLike": {"kms:ResourceAliases": named}}},
    ]


def _deny(sid: str, actions: Sequence[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Deny", "Action": list(actions), "Resource": ["*"]}


def _keys(settings: Settings) -> list[dict[str, Any]]:
    """Sign digests with the hot keys and those that were made for wallets, open the keys of imported wallets. Not the deposit
    seed: its purpose is another one.

    A key's ARN is not known before it is made, so keys are told apart by their aliases.
    https://docs.aws.amazon.com/kms/latest/developerguide/alias-authorization.html
    """
    hot = [settings.key_alias(key) for key in settings.keys if key.startswith("hot-")]
    hot += [settings.wallet_aliases] if "live" in settings.realms else []
    keys = ["arn:aws:kms:*:*:key/*"]
    return [
        _allow("Signs", ("kms:Sign",), keys)
        | {
            "Condition": {
                "ForAnyValue:StringLike": {"kms:ResourceAliases": hot},
                "StringEquals": {"kms:MessageType": "DIGEST", "kms:SigningAlgorithm": "ECDSA_SHA_256"},
            }
        },
        _allow("OpensWalletKeys", ("kms:Decrypt",), keys) | _for_wallet_keys(settings),
    ]


def _for_wallet_keys(settings: Settings) -> dict[str, Any]:
    return _for(settings, "wallet-key")


def _for_webhooks(settings: Settings) -> dict[str, Any]:
    return _for(settings, "webhook-secret", key="webhooks")


def _for(settings: Settings, purpose: str, *, key: str = "data") -> dict[str, Any]:
    """One key, for secrets of this stage and purpose alone."""
    return {
        "Condition": {
            "ForAnyValue:StringEquals": {"kms:ResourceAliases": [settings.key_alias(key)]},
            "StringEquals": {
                "kms:EncryptionContext:purpose": purpose,
                "kms:EncryptionContext:stage": settings.stage,
            },
        }
    }


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def _queue(settings: Settings, name: str) -> str:
    return f"arn:aws:sqs:*:*:{settings.queue(name)}"


def path(function: str, stage: str) -> Path:
    return CHALICE / f"policy-{function}-{stage}.json"


def rendered() -> dict[Path, str]:
    """Every policy file and what belongs in it."""
    wanted = [(function, stage) for function in FUNCTIONS for stage in STAGES] + [(function, "demo") for function in DEMO_FUNCTIONS]
    return {path(*each): json.dumps(policy(*each), indent=2) + "\n" for each in wanted}


def stale() -> list[Path]:
    """Policy files that are not what `rendered` gives, those that belong to no function included."""
    wanted = rendered()
    wrong = [file for file, text in wanted.items() if not file.exists() or file.read_text() != text]
    return sorted(wrong + [file for file in CHALICE.glob("policy-*.json") if file not in wanted])


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the IAM policy files of the functions.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not up to date")
    if parser.parse_args().check:
        wrong = stale()
        if wrong:
            raise SystemExit("not up to date, run python -m infra.policies: " + ", ".join(file.name for file in wrong))
        return
    for file, text in rendered().items():
        file.write_text(text)


if __name__ == "__main__":
    main()
