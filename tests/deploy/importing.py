"""Resource import, and what stays where a stack goes: a stand-in of ours for what moto lacks. It checks what AWS documents.

* An import takes only what exists, is in no other stack, is identified as its type is, and has a DeletionPolicy. Its template holds
  what the stack holds, unchanged, and what is imported; the outputs do not change. Properties are not compared with what stands.
  https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-manually.html
* A new stack is REVIEW_IN_PROGRESS until its change set is executed; then, and with the stack, all its change sets are gone.
  https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateChangeSet.html
* Retain and RetainExceptOnCreate keep a resource that leaves its template or whose stack goes. A stack that could not be made takes
  what is RetainExceptOnCreate away; a table that is protected it can not take away, and ends as ROLLBACK_FAILED.
  https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
* A stack that could not be made, or whose rollback failed, takes no update.
  https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
* A stack that is protected from termination is not deleted.
  https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-protect-stacks.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
from moto.cloudformation import models, parsing
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.models import ChangeSet, CloudFormationBackend, Stack
from moto.cloudformation.responses import CloudFormationResponse
from moto.core import responses
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, EmptyResult
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.kms.models import kms_backends
from moto.logs.models import logs_backends
from moto.s3.models import s3_backends

KEPT = ("Retain", "RetainExceptOnCreate")
NO_UPDATE = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED")


class _NotFound(ServiceException):
    code = "ChangeSetNotFound"


def stand_in(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Apply all of it: for good, or as long as pytest's monkeypatch says."""
    _keep(put)
    _roll_back(put)
    _protect(put)
    for name in ("create", "describe", "delete", "execute"):
        put(CloudFormationResponse, f"{name}_change_set", globals()[f"_{name}"])


def existing(type_: str, identifier: dict[str, str], account: str, region: str) -> Any:
    """moto's resource, None where there is none."""
    (name,) = identifier.values()
    if type_ == "AWS::KMS::Alias":
        return next((key.aliases[name] for key in kms_backends[account][region].keys.values() if name in key.aliases), None)
    every: dict[str, Callable[[], dict[str, Any]]] = {
        "AWS::DynamoDB::Table": lambda: dynamodb_backends[account][region].tables,
        "AWS::S3::Bucket": lambda: s3_backends[account]["aws"].buckets,
        "AWS::KMS::Key": lambda: kms_backends[account][region].keys,
        "AWS::Logs::LogGroup": lambda: logs_backends[account][region].groups,
    }
    return every[type_]().get(name)


def _create(self: CloudFormationResponse) -> ActionResult:
    backend, name = self.cloudformation_backend, self._get_param("StackName")
    assert self._get_param("ChangeSetType") == "IMPORT", "we make no other"
    known = next((stack for stack in backend.stacks.values() if stack.name == name), None)
    if known is not None and known.status.endswith("_IN_PROGRESS") and known.status != "REVIEW_IN_PROGRESS":
        raise ValidationError(message=f"Stack:{known.stack_id} is in {known.status} state and can not be updated.")
    if known is not None and _find(backend, name, self._get_param("ChangeSetName")):
        raise ValidationError(message=f"ChangeSet {self._get_param('ChangeSetName')} already exists")
    before = {} if known is None else dict(known.stack_parameters)
    values = {
        each["ParameterKey"]: before[each["ParameterKey"]] if each.get("UsePreviousValue") else each["ParameterValue"]
        for each in self._get_param("Parameters", [])
    }
    text = self._get_stack_from_s3_url(self._get_param("TemplateURL"))
    wanted = Stack.parse_template(text)
    if undeclared := sorted(values.keys() - wanted.get("Parameters", {}).keys()):
        raise ValidationError(message=f"Parameters: {undeclared} do not exist in the template")
    resources = self._get_param("ResourcesToImport")
    _examine(backend, known, wanted, resources)
    stack = known
    if stack is None:
        stack_id = models.generate_stack_id(name, backend.region_name, backend.account_id)
        stack = Stack(stack_id, name, {}, values, backend.account_id, backend.region_name)
        stack.status = "REVIEW_IN_PROGRESS"
        backend.stacks[stack_id] = stack
    id_ = models.generate_changeset_id(self._get_param("ChangeSetName"), backend.region_name, backend.account_id)
    made = ChangeSet("IMPORT", id_, self._get_param("ChangeSetName"), stack, text, values, "")
    made.status, made.execution_status = "CREATE_COMPLETE", "AVAILABLE"
    vars(made)["imported"] = resources
    backend.change_sets[id_] = made
    return ActionResult({"Id": id_, "StackId": stack.stack_id})


def _examine(backend: CloudFormationBackend, stack: Stack | None, wanted: dict[str, Any], resources: list[dict[str, Any]]) -> None:
    before = {} if stack is None else stack.template_dict
    own, new = before.get("Resources", {}), {each["LogicalResourceId"]: each for each in resources}
    if wanted.get("Outputs") != before.get("Outputs"):
        raise ValidationError(message="As part of the import operation, you cannot modify or add [Outputs]")
    changed = [name for name in own if wanted["Resources"].get(name) != own[name]]
    if changed or wanted["Resources"].keys() - own.keys() != new.keys():
        raise ValidationError(message=f"As part of the import operation, you cannot modify, add or delete others: {changed}")
    for logical, each in new.items():
        type_, identifier = each["ResourceType"], each["ResourceIdentifier"]
        declared = wanted["Resources"][logical]
        primary = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", type_).schema["primaryIdentifier"]
        if [f"/properties/{name}" for name in identifier] != primary or declared["Type"] != type_:
            raise ValidationError(message=f"{logical}: {type_} is identified by {primary}")
        if declared.get("DeletionPolicy") not in KEPT:
            raise ValidationError(message=f"Resources [{logical}] is missing DeletionPolicy attribute in template")
        found = existing(type_, identifier, backend.account_id, backend.region_name)
        if found is None:
            raise ValidationError(message=f"{logical}: {identifier} does not exist")
        others = [s.name for s in backend.stacks.values() if any(r is found for r in s.resource_map._parsed_resources.values())]
        if others:
            raise ValidationError(message=f"{logical}: {identifier} is in the stack {others[0]} already")


def _find(backend: CloudFormationBackend, stack: str, name: str) -> ChangeSet | None:
    return next((each for each in backend.change_sets.values() if (each.stack_name, each.change_set_name) == (stack, name)), None)


def _found(self: CloudFormationResponse) -> ChangeSet:
    name = self._get_param("ChangeSetName")
    found = _find(self.cloudformation_backend, self._get_param("StackName"), name)
    if found is None:
        raise _NotFound(f"ChangeSet [{name}] does not exist")
    return found


def _describe(self: CloudFormationResponse) -> ActionResult:
    return ActionResult(_found(self))


def _delete(self: CloudFormationResponse) -> EmptyResult:
    del self.cloudformation_backend.change_sets[_found(self).change_set_id]
    return EmptyResult()


def _execute(self: CloudFormationResponse) -> EmptyResult:
    found, backend = _found(self), self.cloudformation_backend
    stack, resources = found.stack, found.stack.resource_map
    stack.template = found.template
    stack._parse_template()
    resources._template, resources._resource_json_map = stack.template_dict, stack.template_dict["Resources"]
    stack.parameters = resources.input_parameters = found.parameters
    resources.load_parameters()
    resources.load_conditions()
    for each in vars(found)["imported"]:
        resource = existing(each["ResourceType"], each["ResourceIdentifier"], backend.account_id, backend.region_name)
        resource.logical_resource_id, resource.cf_resource_type = each["LogicalResourceId"], each["ResourceType"]
        resources._parsed_resources[each["LogicalResourceId"]] = resource
    stack.status = "IMPORT_COMPLETE"
    stack._add_stack_event("IMPORT_COMPLETE")
    _forget_change_sets(backend, stack)
    return EmptyResult()


def _forget_change_sets(backend: CloudFormationBackend, stack: Stack) -> None:
    for id_ in [id_ for id_, each in backend.change_sets.items() if each.stack_id == stack.stack_id]:
        del backend.change_sets[id_]


def _keep(put: Callable[[Any, str, Any], None]) -> None:
    update, delete = parsing.ResourceMap.update, parsing.ResourceMap.delete

    def updated(self: parsing.ResourceMap, template: dict[str, Any], parameters: dict[str, Any] | None = None) -> None:
        gone = [name for name in self._resource_json_map if name not in template["Resources"]]
        for name in gone:
            if self._resource_json_map[name].get("DeletionPolicy") in KEPT:
                self._parsed_resources.pop(name, None)
                del self._resource_json_map[name]
        update(self, template, parameters)
        for name in gone:  # moto remembers it, and would not make it again
            self._parsed_resources.pop(name, None)

    def deleted(self: parsing.ResourceMap) -> None:
        for name in [name for name, each in self._resource_json_map.items() if each.get("DeletionPolicy") in KEPT]:
            self._parsed_resources.pop(name, None)
            del self._resource_json_map[name]
        delete(self)

    put(parsing.ResourceMap, "update", updated)
    put(parsing.ResourceMap, "delete", deleted)


def _roll_back(put: Callable[[Any, str, Any], None]) -> None:
    create = Stack.create_resources

    def created(self: Stack) -> None:
        try:
            create(self)
        except Exception as error:  # noqa: BLE001 - whatever moto can not make
            self._add_stack_event("CREATE_FAILED", str(error))
            made = {name: each for name, each in self.resource_map._parsed_resources.items() if hasattr(each, "cf_resource_type")}
            for name, resource in made.items():
                if isinstance(resource, Table) and resource.deletion_protection_enabled:
                    continue
                self.resource_map._delete_resource(resource, self.resource_map._resource_json_map[name])
                del self.resource_map._parsed_resources[name]
            stays = any(isinstance(each, Table) for each in self.resource_map._parsed_resources.values())
            self.status = "ROLLBACK_FAILED" if stays else "ROLLBACK_COMPLETE"
            self.resource_map._resource_json_map = {n: j for n, j in self.resource_map._resource_json_map.items() if n not in made}
            for name in [n for n in self.resource_map._resource_json_map if n not in self.resource_map._parsed_resources]:
                self.resource_map._parsed_resources[name] = None

    update = CloudFormationBackend.update_stack

    def updated(self: CloudFormationBackend, name: str, *given: Any, **named: Any) -> Any:
        stack = self.get_stack(name)
        if stack.status in NO_UPDATE:
            raise ValidationError(message=f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated.")
        return update(self, name, *given, **named)

    put(Stack, "create_resources", created)
    put(CloudFormationBackend, "update_stack", updated)


def _protect(put: Callable[[Any, str, Any], None]) -> None:
    delete = CloudFormationBackend.delete_stack

    def deleted(self: CloudFormationBackend, name_or_stack_id: str) -> None:
        stack = self.get_stack(name_or_stack_id)
        if stack.enable_termination_protection:
            raise ValidationError(message=f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
        _forget_change_sets(self, stack)
        delete(self, stack.stack_id)

    def protected(self: CloudFormationResponse) -> ActionResult:
        stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
        stack.enable_termination_protection = self._get_param("EnableTerminationProtection") in (True, "true")
        return ActionResult({"StackId": stack.stack_id})

    put(CloudFormationBackend, "delete_stack", deleted)
    put(CloudFormationResponse, "update_termination_protection", protected)
    # The local stack's repairs have the names of a service's actions looked up once, maybe before this one was there.
    getattr(responses.method_names_from_class, "cache_clear", lambda: None)()  # type: ignore[attr-defined]
