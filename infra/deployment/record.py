"""Chalice's record of what it made on a stage, shared by way of the bucket for deployments.

Chalice keeps it in .chalice/deployed, a file that no other checkout has, and writes it at the very end of a deploy that went well.
The shared one is written on condition that nobody else wrote it since it was read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from infra.commands.common import CanNot
from infra.deployment.bucket import Bucket

Resource = dict[str, Any]
"""One entry: `name`, `resource_type`, and what Chalice needs to find it again."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded; `etag` is the shared one's, None where there is none."""

    resources: tuple[Resource, ...]
    etag: str | None = None


def fetch(bucket: Bucket, stage: str) -> Record | None:
    """The shared record, None where there is none, nor a bucket. Raises ClientError, CanNot for one that can not be read."""
    try:
        found = bucket.client.get_object(**bucket.whose, Key=_key(stage))
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchKey", "NoSuchBucket"):
            return None
        raise
    return Record(_resources(found["Body"].read(), f"s3://{bucket.name}/{_key(stage)}"), found["ETag"])


def store(bucket: Bucket, stage: str, resources: Sequence[Resource], etag: str | None) -> str:
    """Write the shared record in the place of the one with this ETag; the new one's. Raises CanNot where it is another by now."""
    condition = {"IfMatch": etag} if etag else {"IfNoneMatch": "*"}
    try:
        answer = bucket.client.put_object(**bucket.whose, Key=_key(stage), Body=_content(resources), **condition)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("PreconditionFailed", "NoSuchKey", "ConditionalRequestConflict"):
            raise
        now = fetch(bucket, stage)
        if now is not None and now.etag and now.resources == tuple(resources):
            return now.etag  # ours: the answer was lost
        raise CanNot(f"the record of stage {stage} was written by somebody else meanwhile: run this again") from error
    return str(answer["ETag"])


def read_file(file: Path) -> Record | None:
    """The record of this checkout, None where there is none. Raises CanNot for one that can not be read."""
    return Record(_resources(file.read_bytes(), str(file))) if file.exists() else None


def write_file(file: Path, resources: Sequence[Resource]) -> None:
    """Give this checkout a record. It is there as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    begun = file.with_suffix(".begun")
    begun.write_bytes(_content(resources))
    begun.replace(file)


def is_of(resources: Sequence[Resource], account: str, region: str) -> bool:
    """Whether functions are recorded, and all of them in this account and region: a role's entry names no region."""
    arns = [str(each["lambda_arn"]) for each in resources if each["resource_type"] == "lambda_function"]
    return bool(arns) and all(arn.split(":")[3:5] == [region, account] for arn in arns)


def file_of(project: Path, stage: str) -> Path:
    """Where Chalice keeps it."""
    return project / ".chalice" / "deployed" / f"{stage}.json"


def _key(stage: str) -> str:
    return f"deployed/{stage}.json"


def _content(resources: Sequence[Resource]) -> bytes:
    """As Chalice writes it."""
    whole = {"resources": list(resources), "schema_version": "2.0", "backend": "api"}
    return (json.dumps(whole, indent=2, separators=(",", ": ")) + "\n").encode()


def _resources(content: bytes, where: str) -> tuple[Resource, ...]:
    try:
        return tuple(json.loads(content)["resources"])
    except (ValueError, LookupError, TypeError) as error:
        raise CanNot(f"{where} is no record of Chalice: restore the version before, or delete it, and run this again") from error
