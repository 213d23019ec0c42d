"""The stack of a stage's keys, apart from all else: no everyday deploy changes a key by a mistake (infra/deployer.json).

Who may change keys (infra/keys-deployer.json) reaches those alone that no alias leads to, or none but ours: an alias comes after
its key, goes before it, and counts for rights up to five minutes later. A right that asked for an alias would refuse a key that the
stack just made. Nor does an alias of ours ever come to lead to another key (kms:UpdateAlias).
https://docs.aws.amazon.com/kms/latest/developerguide/alias-authorization.html

These rights are a role's of its own, which deploys where keys change. No service role is given to CloudFormation instead: it would
be used by all later operations of the stack, whoever starts them, which is what the two roles are to prevent.
https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_UpdateStack.html (RoleARN)

A key is known by its alias, and both stay where a stack goes. So keys that stand outside of their stack are brought in by resource
import, and never made anew: nothing could open what the lost ones sealed. That is so after somebody deleted the stack, and for a
stage whose main stack held the keys: they leave it first, kept, and come in here under the same logical ids. Aliases lead to them
all the while, and no property of a table changes, since its key is given by the same ARN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.settings import APP, Settings
from infra.commands.common import CanNot
from infra.deployment.stack import Existing, Given, Stack
from infra.deployment.template_nodes import (
    KEEPING,
    KEY_TYPES,
    applies,
    compose,
    content,
    members,
    named,
    of,
    pairs,
    policy_of,
    properties_of,
    resources,
    retaining,
    type_of,
)

KEYS = Path(__file__).resolve().parents[1] / "keys.yaml"
RIGHTS = "infra/keys-deployer.json"
_DENIED = ("AccessDenied", "AccessDeniedException")


def name_of(stage: str) -> str:
    return f"{APP}-{stage}-keys"


def held(main: Stack) -> list[str]:
    """The keys and aliases that the main stack holds, by logical id, as it did before they had a stack. Raises ClientError."""
    return [logical for logical, type_ in main.holds().items() if type_ in KEY_TYPES]


def let_go(main: Stack, after: str, given: Given, tell: Callable[[str], None]) -> None:
    """Have the main stack keep its keys, and then forget them by an update to `after`, a template without them.

    An update that changes policies alone may count as none: what the stack's template does not keep is not let go, since an alias
    would be deleted, and functions find their keys by it. Safe to repeat after a cut. Raises CanNot then, and where an update is
    rolled back; botocore's ClientError.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/refactor-stacks.html
    """
    tell(f"keys leave the stack {main.name}, and stay")
    main.update(retaining(main.template(), held(main)), {})
    stands = main.template()
    if deleted := [each for each in held(main) if policy_of(stands, each) not in KEEPING]:
        raise CanNot(
            f"the stack {main.name} would delete {', '.join(deleted)}: CloudFormation has not taken the policy Retain for them, and"
            " nothing was let go. Update the stack by hand with its own template, Retain for these, and another change"
        )
    main.update(after, given)


def stand(keys: Stack, kms: Any, stage: str, money: Callable[[], str | None], tell: Callable[[str], None]) -> None:
    """Make the stack of keys, or bring it to its template, with the keys that stand already. Safe to repeat after a cut.

    `money` names something that stands and needs keys, None where nothing does. Raises CanNot where that has lost a key, a key that
    stands is not in use, or a right is missing; botocore's ClientError.
    """
    text = KEYS.read_text()
    stands = keys.stands()
    inside = keys.holds() if stands else {}
    lacking = outside(kms, stage, inside)
    if stands and not lacking and keys.template().strip() == text.strip():
        keys.protect()
        return
    if not inside:
        _demand_all(kms, stage, money)
    try:
        _demand_in_use(kms, lacking)
        if lacking:
            tell(f"the stack {keys.name} takes {len(lacking)} keys and aliases that stand already")
            keys.bring_in(text, {"Stage": stage}, lacking)
            stands = True
        if stands:
            keys.update(text, {"Stage": stage})
        else:
            keys.make(text, {"Stage": stage})
        keys.protect()
    except CanNot as error:
        raise CanNot(f"{error} (keys need the rights of {RIGHTS} beside those of infra/deployer.json)") from error
    except ClientError as error:
        if error.response["Error"]["Code"] in _DENIED:
            raise CanNot(
                f"{error}: to make or change keys, have the rights of {RIGHTS} beside those of infra/deployer.json; none of them"
                f" reaches a key with another alias than alias/{APP}-…"
            ) from error
        raise


def taken_away(keys: Stack, text: str) -> list[str]:
    """What a template of keys takes from those that use them: keys and aliases that it does not have, which leave the stack, and
    what the policies of its keys allow no more, or only under other conditions, or deny. Whether other conditions are wider or
    narrower is not looked at. Changes nothing. Raises botocore's ClientError."""
    held = keys.holds()
    if not held or (before := keys.template()).strip() == text.strip():
        return []
    known, stands = resources(text), resources(before)
    gone = [f"{logical} ({kind})" for logical, kind in sorted(held.items()) if logical not in known]
    return gone + [
        f"{said} in {logical}"
        for logical in sorted(held.keys() & known.keys() & stands.keys())
        for said in sorted(_lost(_Policy.of(stands[logical]), _Policy.of(known[logical])))
    ]


@dataclass(frozen=True, slots=True)
class _Policy:
    """What a key's policy says of each action, and in the name of which statement."""

    allows: Mapping[tuple[str, Any], str]
    denies: Mapping[tuple[str, Any], str]

    @classmethod
    def of(cls, key: Any) -> _Policy:
        policy = of(properties_of(key), "KeyPolicy")
        said: dict[str, dict[tuple[str, Any], str]] = {"Allow": {}, "Deny": {}}
        for statement in () if policy is None else members(of(policy, "Statement")):
            parts = dict(pairs(statement))
            sid, effect = (str(getattr(parts.pop(name, None), "value", "")) for name in ("Sid", "Effect"))
            actions = members(parts.pop("Action", None) or compose("all others"))  # of a statement with NotAction
            rest = frozenset((name, content(part)) for name, part in parts.items())
            said[effect] |= {(str(action.value), rest): sid or "a statement without Sid" for action in actions}
        return cls(said["Allow"], said["Deny"])


def _lost(before: _Policy, after: _Policy) -> set[str]:
    still = {(action, sid) for (action, _), sid in after.allows.items()}
    lost = {(action, sid) for (action, rest), sid in before.allows.items() if (action, rest) not in after.allows}
    denied = {(action, sid) for (action, rest), sid in after.denies.items() if (action, rest) not in before.denies}
    return {f"{action} of {sid}{' as it was' * ((action, sid) in still)}" for action, sid in lost} | {
        f"{action}, by the denial of {sid}," for action, sid in denied
    }


def outside(kms: Any, stage: str, inside: Collection[str]) -> dict[str, Existing]:
    """The template's keys and aliases that stand beside what is `inside`, by logical id. Raises botocore's ClientError."""
    found = _standing(KEYS.read_text(), stage, aliases(kms))
    return {logical: each for logical, each in found.items() if logical not in inside}


def arn_of(kms: Any, stage: str, key: str = "tables") -> str:
    """The ARN of the key behind an alias of the stage. Raises CanNot where there is none, botocore's ClientError."""
    alias = Settings(stage=stage).key_alias(key)
    found = next((each for each in _listed(kms) if each["AliasName"] == alias), None)
    if found is None:
        raise CanNot(f"{alias} leads to no key")
    return f"{found['AliasArn'].rsplit(':', 1)[0]}:key/{found['TargetKeyId']}"


def aliases(kms: Any) -> dict[str, str]:
    """The ids of keys by their aliases. Raises botocore's ClientError."""
    return {each["AliasName"]: each["TargetKeyId"] for each in _listed(kms)}


def _listed(kms: Any) -> list[dict[str, str]]:
    pages = kms.get_paginator("list_aliases").paginate()
    return [each for page in pages for each in page["Aliases"] if each.get("TargetKeyId")]


def _standing(text: str, stage: str, known: Mapping[str, str]) -> dict[str, Existing]:
    """The template's aliases that stand, and the keys behind them, by logical id."""
    found = {}
    for logical, resource in resources(text).items():
        if type_of(resource) != "AWS::KMS::Alias" or not applies(text, logical, stage):
            continue
        alias = named(of(properties_of(resource), "AliasName"), stage)
        if alias in known:
            found[str(of(properties_of(resource), "TargetKeyId").value)] = Existing("AWS::KMS::Key", {"KeyId": known[alias]})
            found[logical] = Existing("AWS::KMS::Alias", {"AliasName": alias})
    return found


def _demand_in_use(kms: Any, lacking: Mapping[str, Existing]) -> None:
    """An import takes a key as it is, and an alias leads to it until it is gone: one that is being deleted would be a new stage's.

    https://docs.aws.amazon.com/kms/latest/developerguide/deleting-keys.html
    """
    for key in (each.identifier["KeyId"] for each in lacking.values() if each.type == "AWS::KMS::Key"):
        if (state := kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"]) != "Enabled":
            alias = next(name for name, led in aliases(kms).items() if led == key)
            raise CanNot(
                f"the key of {alias} is {state}, and no stack took it. As administrator, to keep it and what it sealed: aws kms"
                f" cancel-key-deletion --key-id {key}, aws kms enable-key --key-id {key}; for a new one, which opens nothing of"
                f" that: aws kms delete-alias --alias-name {alias}"
            )


def _demand_all(kms: Any, stage: str, money: Callable[[], str | None]) -> None:
    """Of a stage that has money no key is made: one that its alias does not show was lost, or lost its alias."""
    settings = Settings(stage=stage)
    wanted = {settings.key_alias(key) for key in (*settings.keys, "tables")}
    if (lost := sorted(wanted - aliases(kms).keys())) and (holder := money()):
        raise CanNot(
            f"{holder} stands, and {', '.join(lost)} leads to no key: a new key opens nothing of it. Find the one that it had (aws"
            " kms list-keys, describe-key: its description), and give it its alias by aws kms create-alias"
        )
