"""Which rights the functions' calls to AWS need, and whether their policies give them.

moto enforces no policies of roles. So the calls are recorded where botocore sends them, each with the function that was at
work, and looked up in the policy files.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.client import BaseClient

from infra.local.rights import allowed, items, needed
from tests.deploy.declared import API, CHALICE, function_settings, functions

Call = tuple[str, str, str]
"""Function, IAM action, ARN."""


class Recorder:
    def __init__(self) -> None:
        self.function = API
        self.calls: set[Call] = set()
        self.items: set[tuple[str, str, str, str]] = set()
        """Function, IAM action, ARN of a table, and the partition key that was asked for; queries of indexes are not among them."""

    def note(self, service: str, operation: str, sent: dict[str, Any]) -> None:
        self.calls |= {(self.function, action, arn) for action, arn in needed(service, operation, sent)}
        if service == "dynamodb":
            self.items |= {
                (self.function, f"dynamodb:{a}", f"arn:aws:dynamodb:r:1:table/{t}", pk) for a, t, pk in items(operation, sent)
            }


def policies() -> dict[str, Any]:
    return {f: json.loads((CHALICE / function_settings("local", f)["iam_policy_file"]).read_text()) for f in functions()}


def refused(calls: set[Call]) -> list[Call]:
    """Those that their function's policy does not allow."""
    rights = policies()
    return sorted(call for call in calls if not allowed(rights[call[0]], *call[1:]))


def refused_items(items: set[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """Those whose partition key their function's policy does not allow."""
    rights = policies()
    return sorted(item for item in items if not allowed(rights[item[0]], *item[1:]))


def recording(patch: pytest.MonkeyPatch, into: Recorder | None = None) -> Recorder:
    """From now on every call to AWS is noted, until `patch` is undone."""
    found = into or Recorder()
    send = BaseClient._make_api_call

    def noted(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        found.note(self.meta.service_model.service_name, operation, sent)
        return send(self, operation, sent)

    patch.setattr(BaseClient, "_make_api_call", noted)
    return found
