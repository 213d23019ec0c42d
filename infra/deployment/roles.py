"""What is wrong with the roles of a stage's functions: their rights, who may take them, and what bounds them.

Chalice sets a role's one policy at each deploy, and who may take the role when it makes it. Whoever else takes the payout's role
may have its keys sign: `infra/keys.yaml` names the role, and not the function.
https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from chalice.constants import LAMBDA_TRUST_POLICY

from infra.commands.common import CanNot
from infra.deployment import code
from infra.deployment.standing import Standing


def wrong(iam: Any, found: Standing, stage: str, project: Path) -> Iterator[str]:
    """A line for each thing. Raises botocore's ClientError."""
    try:
        policies = code.policies(project, stage)
    except CanNot as error:
        yield str(error)
        return
    for name, wanted in policies.items():
        if (function := found.functions.get(name)) is None:
            continue
        said = [*_said(_rights(iam, function.role, wanted)), *_said(_others(iam, function.role))]
        yield from (f"{name}: its role {function.role} {line}" for line in dict.fromkeys(said))


def _said(lines: Iterator[str]) -> Iterator[str]:
    """The lines, and why there is not more to say."""
    try:
        yield from lines
    except ClientError as error:
        why = {"NoSuchEntity": "does not exist", "AccessDenied": f"can not be looked at: {error}"}
        if (refused := error.response["Error"]["Code"]) not in why:
            raise
        yield why[refused]


def _rights(iam: Any, role: str, wanted: dict[str, Any]) -> Iterator[str]:
    """Against the function's policy file: Chalice names a role's one policy as the role."""
    named = iam.list_role_policies(RoleName=role)["PolicyNames"]
    delete = f"aws iam delete-role-policy --role-name {role} --policy-name"
    detach = f"aws iam detach-role-policy --role-name {role} --policy-arn"
    beside = {each: f"{delete} {each}" for each in named if each != role}
    for each in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        beside[each["PolicyName"]] = f"{detach} {each['PolicyArn']}"
    if role not in named:
        yield "has no policy of that name"
    elif iam.get_role_policy(RoleName=role, PolicyName=role)["PolicyDocument"] != wanted:
        yield "has other rights than its policy file says"
    if beside:
        yield f"has rights of {', '.join(beside)} beside, and no deploy takes them: as administrator, {'; '.join(beside.values())}"


def _others(iam: Any, role: str) -> Iterator[str]:
    found = iam.get_role(RoleName=role)["Role"]
    if _statements(found["AssumeRolePolicyDocument"]) != _statements(LAMBDA_TRUST_POLICY):
        yield (
            "is not trusted to Lambda alone, and no deploy changes that: as administrator, aws iam update-assume-role-policy"
            f" --role-name {role}, with what aws iam get-role shows of another function's"
        )
    if boundary := found.get("PermissionsBoundary"):
        yield (
            f"is bounded by {boundary['PermissionsBoundaryArn']}, and may do less than its policy file says: as administrator, aws"
            f" iam delete-role-permissions-boundary --role-name {role}"
        )


def _statements(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a trust policy, however they are written: one or a list of each, an empty name."""
    every = document.get("Statement", [])
    return [
        {key: _plain(value) for key, value in each.items() if key != "Sid"}
        for each in (every if isinstance(every, list) else [every])
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value[0] if isinstance(value, list) and len(value) == 1 else value
