"""The last versions of a stage: each one's package and its functions' rights, kept in the bucket, for `rollback` to go back to.

Settings are not kept: an API key may be among them, and they are those of `.chalice/config.json`, whatever the version.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from infra.commands.common import CanNot
from infra.deployment.bucket import Bucket

MOST = 5
"""Versions that are kept."""


@dataclass(frozen=True, slots=True)
class Version:
    """The package's checksum, as Lambda tells it; when it was deployed; the rights of each function, by Lambda's name; the forms of
    records that it reads, and those that it writes whatever the settings say (`forms`); the Python and the processor that the
    package is for, None in versions that were kept before these were; the migrations (`forms.MIGRATED`) that its own records do
    not need; what it may need of its stack (`needs`), and what of that was taken away since."""

    code: str
    at: str
    rights: Mapping[str, dict[str, Any]]
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    runtime: str | None = None
    architecture: str | None = None
    migrated: Sequence[str] = ()
    needs: Sequence[str] = ()
    lacks: Sequence[str] = ()

    def key(self, stage: str) -> str:
        """Its package in the bucket: each stage has its own, since it deletes those that it does not know any more."""
        return f"{_packages(stage)}{base64.b64decode(self.code).hex()}.zip"


@dataclass(frozen=True, slots=True)
class Versions:
    """Those of a stage, the newest last. `goal` is the one that the last rollback goes to, or went to, until the next deploy: who
    sees one fail can not tell whether it was done. `begun` is the one that ran before a deploy that did not come to its end.
    `written` are the forms of records that versions have written, or were about to; `etag` is that of what was read."""

    known: tuple[Version, ...] = ()
    goal: str | None = None
    written: tuple[str, ...] = ()
    begun: str | None = None
    etag: str | None = None


def fetch(bucket: Bucket, stage: str) -> Versions:
    """Raises botocore's ClientError."""
    try:
        found = bucket.client.get_object(**bucket.whose, Key=_key(stage))
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("NoSuchKey", "NoSuchBucket"):
            raise
        return Versions()
    content = json.loads(found["Body"].read())
    known, written = tuple(map(_read, content["known"])), tuple(content.get("written", ()))
    return Versions(known, content["goal"], written, content.get("begun"), found["ETag"])


def store(bucket: Bucket, stage: str, versions: Versions) -> Versions:
    """Write them in the place of those that were read. Raises botocore's ClientError where others were written meanwhile."""
    known = [asdict(each) for each in versions.known]
    content = {"known": known, "goal": versions.goal, "written": versions.written, "begun": versions.begun}
    condition = {"IfMatch": versions.etag} if versions.etag else {"IfNoneMatch": "*"}
    answer = bucket.client.put_object(**bucket.whose, Key=_key(stage), Body=json.dumps(content).encode(), **condition)
    return replace(versions, etag=answer["ETag"])


def begin(bucket: Bucket, stage: str, written: Iterable[str]) -> None:
    """Remember, before a deploy changes a function, what ran before it, and the forms of records that it may write: one that is cut
    leaves records in them, and functions of a code that may be known already. Safe to repeat. Raises botocore's ClientError."""
    before = fetch(bucket, stage)
    newest = before.known[-1].code if before.known else None
    forms = tuple(sorted({*before.written, *written}))
    after = replace(before, goal=None, written=forms, begun=before.begun or before.goal or newest)
    if after != before:
        store(bucket, stage, after)


def keep(bucket: Bucket, stage: str, package: Path, made: Version) -> None:
    """Remember what was deployed just now: `made`, with the package's code and the time that it is. Those behind it, where it was
    deployed before, and those behind the one that ran before it are forgotten as after a rollback. Safe to repeat.

    Raises botocore's ClientError, OSError.
    """
    body, before = package.read_bytes(), fetch(bucket, stage)
    version = replace(made, code=_checksum(body), at=datetime.now(UTC).isoformat(timespec="seconds"))
    if not _is_there(bucket, version.key(stage)):
        bucket.client.put_object(**bucket.whose, Key=version.key(stage), Body=body)
    codes = [each.code for each in before.known]
    end = codes.index(before.begun) + 1 if before.begun else len(codes)
    earlier = before.known[: codes.index(version.code)] if version.code in codes[:end] else before.known[:end]
    kept = (*earlier, version)[-MOST:]
    store(bucket, stage, replace(before, known=kept, goal=None, begun=None, written=tuple(sorted({*before.written, *made.writes}))))
    _delete_others(bucket, stage, kept)


def forget_after(bucket: Bucket, stage: str, versions: Versions, target: Version) -> None:
    """Forget what was rolled back: the next version's predecessor is `target`. Safe to repeat. Raises botocore's ClientError."""
    kept = versions.known[: versions.known.index(target) + 1]
    if kept != versions.known:
        store(bucket, stage, replace(versions, known=kept))
    _delete_others(bucket, stage, kept)


def before(versions: Versions, running: Iterable[str], stage: str, wanted: str | None = None) -> Version:
    """The version to go back to: the one with the code or the time `wanted`; otherwise that of the last rollback, where nothing was
    deployed since; otherwise what ran before a deploy that did not come to its end, once that has changed a function; otherwise
    the one before what functions run. Raises CanNot where none is kept, or something that it may need is not there any more.

    Code that is not known is of a plain `chalice deploy`, whose predecessor is the newest that is known.
    """
    found = _before(versions, set(running), stage, wanted)
    if found.lacks:
        raise CanNot(
            f"{found.code} of {found.at} does not come back: {', '.join(found.lacks)}, which it may need, was taken away since."
            f" Check that version out, and deploy it. Others: {listed(versions)}"
        )
    return found


def _before(versions: Versions, running: set[str], stage: str, wanted: str | None) -> Version:
    if wanted is not None:
        named = [each for each in versions.known if wanted in (each.code, each.at)]
        if len(named) != 1:
            raise CanNot(f"{len(named)} versions of stage {stage} are {wanted}; kept are {listed(versions)}")
        return named[0]
    if versions.goal is not None:
        return _of(versions, versions.goal)
    if versions.begun is not None and running - {versions.begun}:
        return _of(versions, versions.begun)
    if versions.known and running - {each.code for each in versions.known}:
        return versions.known[-1]
    places = [place for place, each in enumerate(versions.known) if each.code in running]
    newest = max(places, default=len(versions.known))
    if newest == 0:
        raise CanNot(f"no version before this one is kept of stage {stage}: check the older one out, and deploy that")
    return versions.known[newest - 1]


def listed(versions: Versions) -> str:
    """Code and time of those that can come back, for the operator."""
    return ", ".join(f"{each.code} of {each.at}" for each in versions.known if not each.lacks) or "none"


def package_of(folder: Path, code: str) -> Path:
    """The package with this checksum among those that were made here. Raises CanNot where there is none."""
    for file in sorted(folder.glob("*.zip"), key=lambda each: -each.stat().st_mtime):
        if _checksum(file.read_bytes()) == code:
            return file
    raise CanNot(f"{folder} does not hold the package that functions run ({code}): somebody deployed meanwhile. Run this again")


def _of(versions: Versions, code: str) -> Version:
    return next(each for each in versions.known if each.code == code)


def _read(stored: Mapping[str, Any]) -> Version:
    """What a later checkout has added is left out."""
    return Version(**{each.name: stored[each.name] for each in fields(Version) if each.name in stored})


def _checksum(body: bytes) -> str:
    """As Lambda's CodeSha256. https://docs.aws.amazon.com/lambda/latest/api/API_FunctionConfiguration.html"""
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def _delete_others(bucket: Bucket, stage: str, known: Iterable[Version]) -> None:
    """Delete the stage's packages of other versions, those that an earlier cut left included."""
    kept = {each.key(stage) for each in known}
    pages = bucket.client.get_paginator("list_objects_v2").paginate(**bucket.whose, Prefix=_packages(stage))
    for key in [each["Key"] for page in pages for each in page.get("Contents", [])]:
        if key not in kept:
            bucket.client.delete_object(**bucket.whose, Key=key)


def _packages(stage: str) -> str:
    return f"packages/{stage}/"


def _is_there(bucket: Bucket, key: str) -> bool:
    try:
        bucket.client.head_object(**bucket.whose, Key=key)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
            raise
        return False
    return True


def _key(stage: str) -> str:
    return f"versions/{stage}.json"
