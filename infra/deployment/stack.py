"""One stack of CloudFormation: made, updated, or given what stands already by resource import. Templates go by the bucket."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from infra.commands.common import CanNot
from infra.deployment.bucket import Bucket
from infra.deployment.patience import patiently
from infra.deployment.stack_states import CHANGE_SET, Wait, change_set_waits, demand, is_missing, state_of, takes_update
from infra.deployment.template_nodes import joined, section

_TRIES = 20
_WAIT_SECONDS = 6.0
_UNCHANGED = "No updates are to be performed"
Given = Mapping[str, str | None]
"""Values of parameters; None: the one of last time."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A resource that stands outside of its stack: its type, and what identifies it there."""

    type: str
    identifier: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stack:
    formation: Any
    bucket: Bucket
    name: str
    wait: Wait = time.sleep
    protected: bool = False
    """Whether it is protected from deletion."""
    demand: Callable[[], None] = lambda: None
    """Raises CanNot where nobody may change it any more, as the lock of its stage is lost: asked before each change."""

    def state(self) -> str | None:
        """Its state, None where there is none. Raises botocore's ClientError."""
        return state_of(self.formation, self.name)

    def stands(self) -> bool:
        """Whether it takes an update, once nothing is under way. Raises CanNot for what the operator has to end, ClientError."""
        return takes_update(self.formation, self.name, self.wait)

    def template(self) -> str:
        """The template that it was last updated to, as it was sent. Raises botocore's ClientError."""
        return str(self.formation.get_template(StackName=self.name, TemplateStage="Original")["TemplateBody"])

    def holds(self) -> dict[str, str]:
        """The types of what is in it, by logical id; nothing where there is no stack. Raises botocore's ClientError."""
        return {
            each["LogicalResourceId"]: each["ResourceType"]
            for each in listed(self.formation, self.name) or ()
            if each.get("PhysicalResourceId") and not each.get("ResourceStatus", "").startswith("DELETE_")
        }

    def make(self, text: str, given: Given) -> None:
        """Make it, and wait until it stands. Raises CanNot where it does not come to stand, botocore's ClientError."""
        arguments = {**self._arguments(text, given, ()), "EnableTerminationProtection": self.protected}
        self._send(self.formation.create_stack, arguments)
        demand(self.formation, self.name, "CREATE_COMPLETE", self.wait)

    def update(self, text: str, given: Given) -> None:
        """Bring it to the template, and wait. Raises CanNot where that is rolled back, botocore's ClientError."""
        try:
            self._send(self.formation.update_stack, self._arguments(text, given, self._parameters()))
        except ClientError as error:
            if _UNCHANGED in error.response["Error"]["Message"]:
                return
            raise
        demand(self.formation, self.name, "UPDATE_COMPLETE", self.wait)

    def bring_in(self, text: str, given: Given, found: Mapping[str, Existing]) -> None:
        """Give it what stands already, by logical ids of `text`, as that describes it; a new stack where there is none.

        The template of an import holds what the stack holds and what comes in, and nothing else: an import neither makes, changes
        nor deletes anything. Each has a DeletionPolicy. Whether its properties are as the template says, nobody looks.
        Raises CanNot where CloudFormation refuses, botocore's ClientError.
        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/resource-import.html
        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/resource-import-supported-resources.html
        """
        stands = self.stands()
        base = self.template() if stands and self.holds() else None
        whole = joined(base, text, found)
        if stands and change_set_waits(self.formation, self.name, self.wait):
            self.formation.delete_change_set(StackName=self.name, ChangeSetName=CHANGE_SET)  # of a deploy that was cut
        imported = [
            {"ResourceType": each.type, "LogicalResourceId": logical, "ResourceIdentifier": dict(each.identifier)}
            for logical, each in found.items()
        ]
        arguments = {
            **self._arguments(whole, given, self._parameters() if stands else ()),
            "ChangeSetName": CHANGE_SET,
            "ChangeSetType": "IMPORT",
            "ResourcesToImport": imported,
        }
        self._send(self.formation.create_change_set, arguments)
        self._await_change_set()
        self.demand()
        self.formation.execute_change_set(StackName=self.name, ChangeSetName=CHANGE_SET)
        demand(self.formation, self.name, "IMPORT_COMPLETE", self.wait)

    def protect(self) -> None:
        """Protect it from deletion: an import has no word for that. Raises botocore's ClientError."""
        (stack,) = self.formation.describe_stacks(StackName=self.name)["Stacks"]
        if self.protected and not stack.get("EnableTerminationProtection"):
            self.formation.update_termination_protection(StackName=self.name, EnableTerminationProtection=True)

    def _send(self, call: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self.demand()
        send(call, arguments, self.wait)

    def _await_change_set(self) -> None:
        for _ in range(_TRIES * 10):
            found = self.formation.describe_change_set(StackName=self.name, ChangeSetName=CHANGE_SET)
            if found["Status"] == "CREATE_COMPLETE":
                return
            if not found["Status"].endswith(("_PENDING", "_IN_PROGRESS")):
                raise CanNot(
                    f"the stack {self.name} does not take what stands already: {found.get('StatusReason', found['Status'])}"
                )
            self.wait(_WAIT_SECONDS)
        raise CanNot(f"the import into the stack {self.name} is not ready after twenty minutes: run this again")

    def _parameters(self) -> list[str]:
        """Those that it has values of."""
        (stack,) = self.formation.describe_stacks(StackName=self.name)["Stacks"]
        return [each["ParameterKey"] for each in stack.get("Parameters", [])]

    def _arguments(self, text: str, given: Given, known: Any) -> dict[str, Any]:
        """A new stack has no previous value to use; what is not given has the template's default there.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Parameter.html
        """
        values: list[dict[str, Any]] = []
        for name in section(text, "Parameters"):
            if given.get(name) is None and name in known:
                values.append({"ParameterKey": name, "UsePreviousValue": True})
            elif name in given:
                values.append({"ParameterKey": name, "ParameterValue": given[name] or ""})
        return {"StackName": self.name, "TemplateURL": self.bucket.url(upload(self.bucket, text)), "Parameters": values}


def listed(formation: Any, name: str) -> list[dict[str, Any]] | None:
    """What a stack lists, made or not; None where there is no stack. Raises botocore's ClientError."""
    try:
        pages = formation.get_paginator("list_stack_resources").paginate(StackName=name)
        return [each for page in pages for each in page["StackResourceSummaries"]]
    except ClientError as error:
        if is_missing(error):
            return None
        raise


def send(call: Callable[..., Any], arguments: dict[str, Any], wait: Wait) -> None:
    """Call CloudFormation. In a bucket that is versioned since a moment ago it may not find the template at first.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketVersioning.html
    """
    patiently(partial(call, **arguments), _finds_no_template, partial(wait, _WAIT_SECONDS), _TRIES)


def _finds_no_template(error: Exception) -> bool:
    return isinstance(error, ClientError) and "S3 error" in error.response["Error"]["Message"]


def upload(bucket: Bucket, text: str) -> str:
    """Put a template into the bucket; its key. One text is one object, whoever sends it."""
    body = text.encode()
    key = f"templates/{hashlib.sha256(body).hexdigest()}.yaml"
    bucket.client.put_object(**bucket.whose, Key=key, Body=body)
    return key
