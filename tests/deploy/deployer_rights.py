"""infra/deployer.json, infra/keys-deployer.json, and the rights that calls to AWS need.

https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from tests.deploy.conftest import ROOT

FILE = ROOT / "infra" / "deployer.json"
OF_KEYS = ROOT / "infra" / "keys-deployer.json"
_ACTIONS = {
    # .../list_amazons3.html
    ("s3", "HeadBucket"): {"s3:ListBucket"},
    ("s3", "ListBuckets"): {"s3:ListAllMyBuckets"},
    ("s3", "ListObjectsV2"): {"s3:ListBucket"},
    ("s3", "HeadObject"): {"s3:GetObject", "s3:ListBucket"},
    ("s3", "PutPublicAccessBlock"): {"s3:PutBucketPublicAccessBlock"},
    ("s3", "PutBucketEncryption"): {"s3:PutEncryptionConfiguration"},
    ("s3", "PutBucketLifecycleConfiguration"): {"s3:PutLifecycleConfiguration"},
    # .../list_amazondynamodb.html: transactions need the rights of their parts
    ("dynamodb", "TransactGetItems"): {"dynamodb:GetItem"},
    ("dynamodb", "TransactWriteItems"): {f"dynamodb:{part}Item" for part in ("Put", "Update", "Delete", "ConditionCheck")},
    # .../list_awslambda.html
    # .../list_amazonapigatewaymanagement.html: API Gateway is given the role that it writes logs by
    ("apigateway", "UpdateAccount"): {"apigateway:PATCH", "iam:PassRole"},
    ("lambda", "CreateFunction"): {"lambda:CreateFunction", "iam:PassRole"},
    ("lambda", "UpdateFunctionConfiguration"): {"lambda:UpdateFunctionConfiguration", "iam:PassRole"},
}
_PREFIXES = {"service-quotas": "servicequotas"}
# https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-control-access-policy-language-overview.html
_METHODS = {"Get": "GET", "Import": "POST", "Create": "POST", "Update": "PATCH", "Put": "PUT", "Delete": "DELETE"}


def actions(service: str, operation: str) -> set[str]:
    """The IAM actions that an API call needs."""
    if service == "sts":
        return set()  # GetCallerIdentity needs none
    if service == "apigateway" and (service, operation) not in _ACTIONS:
        return {f"apigateway:{next(method for start, method in _METHODS.items() if operation.startswith(start))}"}
    return _ACTIONS.get((service, operation), {f"{_PREFIXES.get(service, service)}:{operation}"})


def allows(action: str, *, directly: bool = False, files: tuple[Path, ...] = (FILE,)) -> bool:
    """Whether the policies allow an action on anything; `directly`: not by way of CloudFormation alone."""
    every = [statement for file in files for statement in json.loads(file.read_text())["Statement"]]
    statements = [s for s in every if not directly or "CalledVia" not in json.dumps(s)]
    given = [each for s in statements for each in (s["Action"] if isinstance(s["Action"], list) else [s["Action"]])]
    return any(fnmatchcase(action, each) for each in given)


def permits(action: str, arn: str, context: Mapping[str, str | list[str]], *files: Path) -> bool:
    """Whether a statement allows the action on a resource, with its conditions. What the request has no value of fulfils
    `ForAllValues` alone. None of our files denies anything.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
    """
    return any(
        any(fnmatchcase(action, each) for each in _list(statement["Action"]))
        and any(fnmatchcase(arn, each) for each in _list(statement["Resource"]))
        and all(
            _holds(operator, _list(context.get(key, [])), _list(wanted))
            for operator, keys in statement.get("Condition", {}).items()
            for key, wanted in keys.items()
        )
        for file in files
        for statement in json.loads(file.read_text())["Statement"]
    )


def _holds(operator: str, found: list[str], wanted: list[str]) -> bool:
    quantity, _, kind = operator.rpartition(":")
    if kind.endswith("IfExists"):
        return not found or _holds(operator.removesuffix("IfExists"), found, wanted)
    compared = {"StringEquals": str.__eq__, "Bool": str.__eq__, "StringLike": fnmatchcase, "ArnLike": fnmatchcase}[kind]
    fits = [any(compared(each, pattern) for pattern in wanted) for each in found]
    return all(fits) if quantity == "ForAllValues" else any(fits)


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def missing(calls: list[list[str]], *besides: Path) -> list[str]:
    """The rights that these calls (service, operation) need and the deployer's policy does not give, nor those of `besides`."""
    needed = {action for service, operation in calls for action in actions(service, operation)}
    return sorted(action for action in needed if not allows(action, directly=True, files=(FILE, *besides)))
