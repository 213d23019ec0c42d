"""moto's CloudFormation, made to create the keys of `infra/keys.yaml`, to update tables, and to read templates quickly."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import yaml
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
    _quick_templates()
    _updates()
    _state.installed = True


def _quick_templates() -> None:
    """Templates are parsed by libyaml, where PyYAML has it: in Python ours takes longer than all that is made of it."""
    # Imported here: it brings every service that a template may name.
    from moto.cloudformation.models import Stack
    from moto.cloudformation.utils import yaml_tag_constructor

    slow, quick = Stack.parse_template, getattr(yaml, "CLoader", None)
    if quick is None:
        return
    loader: Any = type("Loader", (quick,), {})
    yaml.add_multi_constructor("", yaml_tag_constructor, Loader=loader)

    def parsed(template: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = yaml.load(template, Loader=loader)  # noqa: S506 - as moto does: the template is ours
        except yaml.YAMLError:
            return slow(template)
        return found

    Stack.parse_template = staticmethod(parsed)  # type: ignore[method-assign]


def _updates() -> None:
    """Have an update of a stack change its tables' protection and indexes, and forget no resource.

    moto 5.2 has no update of a table or of most others: what a new template says of them is not done, and the stack does not know
    them any more. Source: AWS CloudFormation reference, AWS::DynamoDB::Table (one index is made or removed per update).
    """
    from moto.cloudformation import parsing
    from moto.dynamodb.models.table import Table

    update = parsing.parse_and_update_resource

    def updated(logical_id: str, resource_json: Any, resources_map: Any, **named: Any) -> Any:
        before = resources_map[logical_id]
        return update(logical_id, resource_json, resources_map, **named) or before

    parsing.parse_and_update_resource = updated  # type: ignore[assignment]
    Table.update_from_cloudformation_json = classmethod(_update_table)  # type: ignore[assignment,method-assign]


def _update_table(
    cls: Any, /, original_resource: Any, cloudformation_json: Any, account_id: str, region_name: str, **kwargs: Any
) -> Any:
    from moto.cloudformation.exceptions import ValidationError
    from moto.dynamodb.models import dynamodb_backends

    properties, backend = cloudformation_json["Properties"], dynamodb_backends[account_id][region_name]
    wanted = {each["IndexName"]: each for each in properties.get("GlobalSecondaryIndexes", [])}
    known = {each.name for each in original_resource.global_indexes}
    changes = [{"Create": wanted[name]} for name in wanted if name not in known]
    changes += [{"Delete": {"IndexName": name}} for name in sorted(known - wanted.keys())]
    if len(changes) > 1:
        raise ValidationError(message="Cannot perform more than one GSI creation or deletion in a single update")
    protected = properties.get("DeletionProtectionEnabled", False)
    attributes = properties["AttributeDefinitions"]
    return backend.update_table(original_resource.name, attributes, changes, {}, "", {}, protected, None)


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
