"""CloudFormation as far as optional stacks need it: moto makes neither domains, firewalls, budgets nor our network of a template.

It checks what AWS checks of parameters before anything is made, and makes nothing.
https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import boto3
import yaml
from botocore.exceptions import ClientError

from tests.deploy.template_text import Loader


class Formation:
    """A client of it. `outputs` are values of a template's outputs, which are their names otherwise; `steps` is how often a stack
    that was changed is still in progress. A stack of the state `stuck` has that until it is deleted."""

    def __init__(self, steps: int = 1) -> None:
        self.stacks: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, str]] = []
        self.outputs: dict[str, str] = {}
        self.steps, self.asked = steps, list[str]()

    def create_stack(self, **arguments: Any) -> None:
        name, template = self._begin("CreateStack", arguments)
        if name in self.stacks:
            raise _refusal("CreateStack", f"Stack [{name}] already exists", "AlreadyExistsException")
        self.stacks[name] = self._changed("CreateStack", arguments, template, {}, "CREATE")

    def update_stack(self, **arguments: Any) -> None:
        name, template = self._begin("UpdateStack", arguments)
        before = self._known("UpdateStack", name)
        after = self._changed("UpdateStack", arguments, template, before["values"], "UPDATE")
        if (after["values"], after["text"]) == (before["values"], before["text"]):
            raise _refusal("UpdateStack", "No updates are to be performed.")
        self.stacks[name] = after

    def delete_stack(self, StackName: str) -> None:
        self.asked.append("DeleteStack")
        if StackName in self.stacks:
            self.stacks[StackName].update(state="DELETE", left=self.steps)
            self.stacks[StackName].pop("stuck", None)

    def update_termination_protection(self, **_: Any) -> None: ...

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        """Of resources: a stack whose making was rolled back has none."""
        return [{"StackResourceSummaries": []}]

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        stack = self._known("DescribeStacks", StackName)
        stack["left"] -= 1
        if stack["state"] == "DELETE" and stack["left"] < 0:
            del self.stacks[StackName]
            raise _refusal("DescribeStacks", f"Stack with id {StackName} does not exist")
        state = f"{stack['state']}_{'IN_PROGRESS' if stack['left'] >= 0 else 'COMPLETE'}"
        return {
            "Stacks": [
                {
                    "StackStatus": stack.get("stuck", state),
                    "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in stack["values"].items()],
                    "Outputs": [{"OutputKey": k, "OutputValue": self.outputs.get(k, k)} for k in stack["outputs"]],
                }
            ]
        }

    def describe_stack_events(self, StackName: str) -> dict[str, Any]:
        self._known("DescribeStackEvents", StackName)
        return {"StackEvents": self.events}

    def _begin(self, operation: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self.asked.append(operation)
        assert arguments.keys() == {"StackName", "TemplateURL", "Parameters"}
        host, _, key = urlsplit(arguments["TemplateURL"]).netloc.partition(".")[0], "", urlsplit(arguments["TemplateURL"]).path[1:]
        arguments["text"] = boto3.client("s3").get_object(Bucket=host, Key=key)["Body"].read().decode()
        template: dict[str, Any] = yaml.load(arguments["text"], Loader=Loader)  # noqa: S506 - a SafeLoader
        return str(arguments["StackName"]), template

    def _changed(
        self, operation: str, arguments: dict[str, Any], template: dict[str, Any], before: dict[str, str], state: str
    ) -> dict[str, Any]:
        declared, values = template["Parameters"], {}
        given = {each["ParameterKey"]: each for each in arguments["Parameters"]}
        if unknown := sorted(given.keys() - declared.keys()):
            raise _refusal(operation, f"Parameters: [{', '.join(unknown)}] do not exist in the template")
        for name, each in declared.items():
            if given.get(name, {}).get("UsePreviousValue"):
                if name not in before:
                    raise _refusal(operation, f"Invalid input for parameter key {name}. Cannot specify usePreviousValue as true")
                values[name] = before[name]
            elif name in given:
                values[name] = given[name]["ParameterValue"]
            elif "Default" in each:
                values[name] = str(each["Default"])
            else:
                raise _refusal(operation, f"Parameters: [{name}] must have values")
            if not re.fullmatch(each.get("AllowedPattern", ".*"), values[name]):
                raise _refusal(operation, f"Parameter {name} failed to satisfy constraint")
        return {
            "values": values,
            "text": arguments["text"],
            "state": state,
            "left": self.steps,
            "outputs": template.get("Outputs", {}),
        }

    def _known(self, operation: str, name: str) -> dict[str, Any]:
        if name not in self.stacks:
            raise _refusal(operation, f"Stack with id {name} does not exist")
        return self.stacks[name]


def _refusal(operation: str, message: str, code: str = "ValidationError") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)
