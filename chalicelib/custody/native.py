"""Keys of wallets that are made in KMS and never leave it (ECC_SECG_P256K1).

Each has an alias that follows from what it is for, `alias/gateway-<stage>-wallet-<realm>-<network>-<role>-<number>`: it is what the
payout function's right to sign is limited by, and where a registration that died goes on. Whoever died between the key and its
alias leaves a key that nothing names, and that is found by its tags (`wallet-keys` of the command line).
"""

from __future__ import annotations

import json
from typing import Any

from chalicelib.custody.aws import AlreadyThere, NotThere, call
from chalicelib.custody.wallets import new_kms_wallet
from chalicelib.domain.addresses import Role, Wallet
from chalicelib.domain.ids import NetworkId
from chalicelib.settings import APP, Settings

STAGE_TAG, WALLET_TAG = f"{APP}-stage", f"{APP}-wallet"
"""Tags of every key that is made here: the stage, and network and role of the wallet that it was made for."""

# As those of the keys in template.yaml: bounds the key's use, and no IAM policy can widen that. Deleting it is in no statement:
# who means to has to change the policy first.
_ADMINISTRATION = (
    "kms:Create*", "kms:Describe*", "kms:Enable*", "kms:List*", "kms:Put*", "kms:Update*", "kms:Revoke*", "kms:Get*",
    "kms:TagResource", "kms:UntagResource", "kms:CancelKeyDeletion",
)  # fmt: skip


def wallet_alias(settings: Settings, network: NetworkId, role: Role, number: int) -> str:
    """The alias of the `number`-th key of this wallet, from 1."""
    return settings.key_alias(f"wallet-{network.replace(':', '-')}-{role}-{number}")


def key_policy(settings: Settings, partition: str, account: str) -> dict[str, Any]:
    """Who may do what with a wallet's key: the payout function signs digests, the account administers."""
    root = {"AWS": f"arn:{partition}:iam::{account}:root"}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Sid": "Administration", "Effect": "Allow", "Principal": root, "Action": list(_ADMINISTRATION), "Resource": "*"},
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


def make_wallet(kms: Any, sts: Any, settings: Settings, network: NetworkId, role: Role, number: int, now_ms: int) -> Wallet:
    """The wallet over the `number`-th key that is made for `role` on `network`; made once, however often it is asked for.

    `now_ms` in milliseconds since 1970. Raises Unavailable; LookupError for an unknown network. Source: AWS KMS API reference,
    CreateKey, CreateAlias.
    """
    alias, chain = wallet_alias(settings, network, role, number), settings.chain(network)
    try:
        return new_kms_wallet(kms, alias, network, role, now_ms, chain)
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
        key = alias  # somebody else was first: with their key, while this one is used by nobody
    return new_kms_wallet(kms, key, network, role, now_ms, chain)
