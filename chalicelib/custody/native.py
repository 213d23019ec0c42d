"""Keys of wallets that are made in KMS and never leave it (ECC_SECG_P256K1).

Each has an alias that follows from its purpose, `alias/gateway-<stage>-wallet-<realm>-<network>-<role>-<number>`. The payout
function's right to sign is limited by it, and an interrupted registration resumes there. A name proves nothing: an account that
may make keys may give one the name of the next wallet's, so an existing key of that name is compared with the expected one. A
crash between the key and its alias leaves a key without a name, found by its tags (`wallet-keys` of the command line).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from chalicelib.custody.aws import AlreadyThere, Denied, NotThere, call
from chalicelib.custody.wallets import new_kms_wallet
from chalicelib.domain.addresses.addresses import Role, Wallet
from chalicelib.domain.errors import BusinessRule
from chalicelib.domain.ids import NetworkId
from chalicelib.settings import APP, Settings

log = logging.getLogger(__name__)

STAGE_TAG, WALLET_TAG = f"{APP}-stage", f"{APP}-wallet"
"""Tags of every key that is made here: the stage, and network and role of the wallet that it was made for."""

# As those of the keys in template.yaml: bounds the key's use, and no IAM policy can widen that. Deleting it is in no statement:
# who means to has to change the policy first.
_ADMINISTRATION = (
    "kms:CreateAlias", "kms:Describe*", "kms:Enable*", "kms:List*", "kms:Put*", "kms:Update*", "kms:Revoke*", "kms:Get*",
    "kms:TagResource", "kms:UntagResource", "kms:CancelKeyDeletion",
)  # fmt: skip


def wallet_alias(settings: Settings, network: NetworkId, role: Role, number: int) -> str:
    """The alias of the `number`-th key of this wallet, from 1."""
    return settings.key_alias(f"wallet-{network.replace(':', '-')}-{role}-{number}")


def key_policy(settings: Settings, partition: str, account: str) -> dict[str, Any]:
    """The policy of a wallet's key: the payout function signs digests, the account administers, and grants are denied.

    A grant works beside the conditions of PayoutSigns: https://docs.aws.amazon.com/kms/latest/developerguide/grants.html
    """
    root = {"AWS": f"arn:{partition}:iam::{account}:root"}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Sid": "Administration", "Effect": "Allow", "Principal": root, "Action": list(_ADMINISTRATION), "Resource": "*"},
            {"Sid": "NoGrants", "Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "kms:CreateGrant", "Resource": "*"},
            {
                "Sid": "PayoutSigns",
                "Effect": "Allow",
                "Principal": root,
                "Action": "kms:Sign",
                "Resource": "*",
                "Condition": {
                    "ArnEquals": {"aws:PrincipalArn": f"arn:{partition}:iam::{account}:role/{APP}-{settings.stage}-payout"},
                    "StringEquals": {"kms:MessageType": "DIGEST", "kms:SigningAlgorithm": "ECDSA_SHA_256"},
                },
            },
        ],
    }


def renew_policy(kms: Any, settings: Settings, key: str) -> bool:
    """Give a wallet's key today's policy where it has, to the letter, the one that keys were made with before grants were denied.

    Any other policy was set by another hand and stays, for `differences` to tell. Whether it was renewed. Raises Unavailable,
    Denied. Source: AWS KMS API reference, PutKeyPolicy.
    """
    arn = str(call(kms, "describe_key", f"key {key}", KeyId=key)["KeyMetadata"]["Arn"])
    _, partition, _, _, account = arn.split(":")[:5]
    today = key_policy(settings, partition, account)
    found = json.loads(call(kms, "get_key_policy", f"key {key}", KeyId=arn, PolicyName="default")["Policy"])
    if _canonical(found) != _canonical(_before_grants_were_denied(today)):
        return False
    call(kms, "put_key_policy", f"key {key}", KeyId=arn, PolicyName="default", Policy=json.dumps(today))
    return True


def _before_grants_were_denied(today: Mapping[str, Any]) -> dict[str, Any]:
    administration, _, signs = today["Statement"]
    actions = ["kms:Create*" if action == "kms:CreateAlias" else action for action in administration["Action"]]
    return {**today, "Statement": [{**administration, "Action": actions}, signs]}


def make_wallet(kms: Any, sts: Any, settings: Settings, network: NetworkId, role: Role, number: int, now_ms: int) -> Wallet:
    """The wallet over the `number`-th key for `role` on `network`; made once, however often it is requested.

    `now_ms` in milliseconds since 1970. Raises Unavailable; LookupError for an unknown network; BusinessRule where another key than
    is made here has its name. Source: AWS KMS API reference, CreateKey, CreateAlias.
    """
    alias, chain = wallet_alias(settings, network, role, number), settings.chain(network)
    try:
        return _ours(kms, settings, alias, new_kms_wallet(kms, alias, network, role, now_ms, chain))
    except NotThere:
        pass  # the usual case
    arn = str(call(sts, "get_caller_identity", "this account")["Arn"]).split(":")
    key = str(
        call(
            kms,
            "create_key",
            f"a wallet of {network}",
            KeySpec="ECC_SECG_P256K1",
            KeyUsage="SIGN_VERIFY",
            Origin="AWS_KMS",
            Description=f"{APP} {settings.stage}: signs for a {role} wallet of {network}",
            Policy=json.dumps(key_policy(settings, arn[1], arn[4])),
            # The caller may not change the policy afterwards, which KMS would ask for; the account's administrators may.
            BypassPolicyLockoutSafetyCheck=True,
            Tags=[
                {"TagKey": STAGE_TAG, "TagValue": settings.stage},
                {"TagKey": WALLET_TAG, "TagValue": f"{network}:{role}"},
            ],
        )["KeyMetadata"]["KeyId"]
    )
    try:
        call(kms, "create_alias", f"key {key}", AliasName=alias, TargetKeyId=key)
    except AlreadyThere:
        # Another process was first: its key counts, and nobody uses this one.
        return _ours(kms, settings, alias, new_kms_wallet(kms, alias, network, role, now_ms, chain))
    return new_kms_wallet(kms, key, network, role, now_ms, chain)


def _ours(kms: Any, settings: Settings, alias: str, found: Wallet) -> Wallet:
    """The wallet over a key that had its name already. Raises BusinessRule unless it is as it would be made here."""
    try:
        wrong = differences(kms, settings, found.key, f"{found.network}:{found.role}")
    except Denied:
        # Of a key that is made here everything may be read.
        wrong = ["who may read about it"]
    if wrong:
        what = ", ".join(wrong)
        log.error("ALARM %s: the key with the name %s was not made here, it differs in %s", found.network, alias, what)
        raise BusinessRule("type", f"the KMS key {alias} was not made by this service: it differs in {what}")
    return found


def differences(kms: Any, settings: Settings, key: str, made_for: str) -> list[str]:
    """The differences between a key and one made here for `made_for` (network and role); empty where there are none.

    A grant lets others sign whatever the policy says, so it may have none. Raises Unavailable, Denied. Source: AWS KMS API
    reference, DescribeKey, GetKeyPolicy, ListGrants, ListResourceTags.
    """
    about = call(kms, "describe_key", f"key {key}", KeyId=key)["KeyMetadata"]
    key = about["Arn"]
    policy = json.loads(call(kms, "get_key_policy", f"key {key}", KeyId=key, PolicyName="default")["Policy"])
    tags = tags_of(kms, key)
    _, partition, _, _, account = key.split(":")[:5]
    facts = {
        "kind": (about.get("KeySpec"), "ECC_SECG_P256K1"),
        "use": (about.get("KeyUsage"), "SIGN_VERIFY"),
        "origin": (about.get("Origin"), "AWS_KMS"),
        "regions": (bool(about.get("MultiRegion")), False),
        "state": (about.get("KeyState"), "Enabled"),
        "policy": (_canonical(policy), _canonical(key_policy(settings, partition, account))),
        "grants": (call(kms, "list_grants", f"key {key}", KeyId=key)["Grants"], []),
        "tags": ((tags.get(STAGE_TAG), tags.get(WALLET_TAG)), (settings.stage, made_for)),
    }
    return [name for name, (found, made) in facts.items() if found != made]


def tags_of(kms: Any, key: str) -> dict[str, str]:
    """The tags of a key, by its id or ARN. Raises Unavailable, Denied."""
    return {tag["TagKey"]: tag["TagValue"] for tag in call(kms, "list_resource_tags", f"key {key}", KeyId=key)["Tags"]}


def _canonical(policy: Any) -> Any:
    """A policy without what says the same in several ways: the order of its statements and lists, and lists of one."""
    if isinstance(policy, Mapping):
        return {name: _canonical(value) for name, value in policy.items()}
    if isinstance(policy, list):
        found = sorted((_canonical(each) for each in policy), key=lambda each: json.dumps(each, sort_keys=True))
        return found[0] if len(found) == 1 else found
    return policy
