"""moto's CloudFormation, made to create the keys that `infra/template.yaml` describes."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from moto.kms.models import Key, kms_backends

_state = SimpleNamespace(installed=False)


def repair_cloudformation() -> None:
    """Make AWS::KMS::Key heed KeySpec and KeyUsage, and store its policy as text. May be called again.

    moto 5.2 makes every key of a template a symmetric one, so nothing could sign with it, and it stores the policy as a
    dict, which its own KMS then fails to read. Source: AWS CloudFormation reference, AWS::KMS::Key.
    """
    if _state.installed:
        return
    # Replaced for the class as a whole: moto finds the method by its name.
    Key.create_from_cloudformation_json = classmethod(_create)  # type: ignore[assignment,method-assign]
    _state.installed = True


def _create(
    cls: type[Key], /, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **kwargs: Any
) -> Key:
    properties = cloudformation_json["Properties"]
    key = kms_backends[account_id][region_name].create_key(
        policy=json.dumps(properties["KeyPolicy"]),
        key_usage=properties.get("KeyUsage", "ENCRYPT_DECRYPT"),
        key_spec=properties.get("KeySpec", "SYMMETRIC_DEFAULT"),
        description=properties.get("Description"),
        tags=properties.get("Tags", []),
    )
    key.key_rotation_status = properties.get("EnableKeyRotation", False)
    key.enabled = properties.get("Enabled", True)
    return key
