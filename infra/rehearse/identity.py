"""What IAM does for functions: a call that a function's role does not allow is refused. Operators may do everything here; what they
need is a file (`infra/deployer.json`).

Looked at are actions, resources and the partition keys of tables. Other conditions, which KMS's have, are not.
https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends

from infra.local.gateway import Request
from infra.local.rights import allowed, items, needed

_OF_OBJECTS = {"GET": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject", "HEAD": "GetObject"}


class Refused(Exception):
    """The role allows it not; the message is AWS's."""


class Identity:
    """Decides about the calls of functions, and remembers what it refused. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refused: set[str] = set()

    @property
    def refused(self) -> list[str]:
        """What was refused, a line each."""
        with self._lock:
            return sorted(self._refused)

    def demand(self, function: str, role: str, service: str, request: Request) -> None:
        """Raises Refused where the function's role, by its ARN, does not allow the call."""
        operation, sent = call_of(service, request)
        policies = list(_policies(role.rsplit("/", 1)[1]))
        wanted: list[tuple[str, str, str | None]] = [(action, arn, None) for action, arn in needed(service, operation, sent)]
        if service == "dynamodb":
            wanted += [(f"dynamodb:{a}", f"arn:aws:dynamodb:r:1:table/{table}", key) for a, table, key in items(operation, sent)]
        for action, arn, key in wanted:
            if not any(allowed(policy, action, arn, key) for policy in policies):
                of = f" (partition key {key.partition('#')[0]}#…)" if key else ""
                said = f"{function} is not authorized to perform: {action} on resource: {arn}{of}"
                with self._lock:
                    self._refused.add(said)
                raise Refused(said)


def call_of(service: str, request: Request) -> tuple[str, dict[str, Any]]:
    """The operation of a request, and what is sent with it, as botocore names both.

    https://docs.aws.amazon.com/AmazonS3/latest/API/Type_API_Reference.html, for S3; others name it themselves.
    """
    if service == "s3":
        bucket, _, key = request.target.partition("?")[0].strip("/").partition("/")
        return _OF_OBJECTS.get(request.method, request.method), {"Bucket": bucket, "Key": key}
    target = next((value for name, value in request.headers if name.lower() == "x-amz-target"), None)
    if target is not None:
        return target.rsplit(".", 1)[1], json.loads(request.body or b"{}")
    return parse_qs(request.body.decode()).get("Action", ["?"])[0], {}


def _policies(role: str) -> Iterator[dict[str, Any]]:
    """The policies in a role, as AWS has them now."""
    found = iam_backends[DEFAULT_ACCOUNT_ID]["aws"].get_role(role).policies
    for text in found.values():
        yield json.loads(text) if isinstance(text, str) else text
