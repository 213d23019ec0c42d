"""`usecases.ports.archive.Archive` on S3, and the reading of what stubs stand for.

An object has the rows of one payment as one JSON text, in the form in which DynamoDB keeps them, so that a row that comes back is
what it was. Its key is made of the SHA-256 of the content (192 bits of it): the same rows are the same object, two contents never
share a key, and a reader knows by the key alone that it reads what was written. On S3:

* A read sees every write that was answered before (strong read-after-write consistency), so what is read back is what is there.
  https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel
* `If-None-Match: *` writes only where no object is: 412 says that there is one, and 409 that another write is under way.
  https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
* The checksum goes along: S3 stores nothing that does not fit it, and a bucket with Object Lock demands one.
  https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
* Object Lock keeps the version that was written, whatever is done to its key later; the bucket's own rule says how long.
  https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html
* Bucket names are unique in the world, so ours has the account and the region in it. The account is told with each call as the
  bucket's owner: a bucket of somebody else under that name would be refused.
  https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.domain.archive import KINDS
from chalicelib.settings import Settings
from chalicelib.store.models import Models
from chalicelib.usecases.ports.archive import NotKept
from chalicelib.usecases.ports.failures import Unavailable

log = logging.getLogger(__name__)

_FORMAT = 1
_BYTES = "base64"
_NAME = 32
"""Characters of an object's name, six bits each."""
_REMEMBERED = 16
"""Objects that a process keeps: the invoice, the deposits and the address of one payment are read one after the other."""


class Archived:
    """Safe to share between threads."""

    def __init__(self, settings: Settings, region: str, models: Models, client: Callable[[str], Any]) -> None:
        self._settings, self._region, self._models, self._client = settings, region, models, client
        self._known: dict[str, list[dict[str, Any]]] = {}

    def keep(self, records: Sequence[Any], /) -> str:
        """Write, read back, compare. Raises Unavailable, NotKept."""
        rows = [{"kind": type(record).__name__, "item": self._models.kept(record)} for record in records]
        content = json.dumps({"format": _FORMAT, "rows": rows}, separators=(",", ":"), sort_keys=True, default=_as_json).encode()
        digest = hashlib.sha256(content).digest()
        name = _name(digest)
        try:
            self._s3.put_object(
                **self._place(name),
                Body=content,
                ContentType="application/json",
                IfNoneMatch="*",
                ChecksumSHA256=base64.b64encode(digest).decode(),
            )
        except (BotoCoreError, ClientError) as error:
            if _code(error) != "PreconditionFailed":
                raise Unavailable("the archive did not take an object") from error
            log.info("the archive has %s already", name)  # of a try that was cut short, or of another worker
        if self._read(name) != content:
            raise NotKept(f"{name} is not in the archive as it was written")
        return name

    def records(self, name: str, /) -> list[Any]:
        """All records of an object. Raises Unavailable, NotKept."""
        return [self._shaped(row) for row in self._rows(name)]

    def record(self, kind: type, name: str, pk: str, sk: str) -> Any:
        """The record of `kind` at a key, out of an object. Raises Unavailable, NotKept where it is not in there."""
        for row in self._rows(name):
            if row["kind"] == kind.__name__ and (row["item"]["pk"]["S"], row["item"]["sk"]["S"]) == (pk, sk):
                return self._shaped(row)
        log.error("ALARM the object %s of the archive has no %s for %s / %s", name, kind.__name__, pk, sk)
        raise NotKept(f"{name} has no {kind.__name__} for {pk} / {sk}")

    def _shaped(self, row: dict[str, Any]) -> Any:
        kind = KINDS[row["kind"]]
        return self._models.record(kind, self._models.of(kind).from_raw_data(row["item"]))

    def _rows(self, name: str) -> list[dict[str, Any]]:
        found = self._known.get(name)
        if found is None:
            content = self._read(name)
            if _name(hashlib.sha256(content).digest()) != name:
                log.error("ALARM the object %s of the archive was altered", name)
                raise NotKept(f"{name} is not what its name says")
            parsed = json.loads(content, object_hook=_from_json)
            if parsed["format"] != _FORMAT:
                raise NotKept(f"{name} has the format {parsed['format']}, which this version does not know")
            found = parsed["rows"]
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[name] = found
        return found

    def _read(self, name: str) -> bytes:
        try:
            return bytes(self._s3.get_object(**self._place(name), ChecksumMode="ENABLED")["Body"].read())
        except (BotoCoreError, ClientError) as error:
            if _code(error) == "NoSuchKey":
                log.error("ALARM the object %s of the archive is gone", name)
                raise NotKept(f"{name} is not in the archive") from error
            raise Unavailable("the archive did not answer") from error

    def _place(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"payments/{name}", "ExpectedBucketOwner": self._account}

    @property
    def _s3(self) -> Any:
        return self._client("s3")

    @cached_property
    def _account(self) -> str:
        try:
            return str(self._client("sts").get_caller_identity()["Account"])
        except (BotoCoreError, ClientError) as error:
            raise Unavailable("AWS did not say whose account this is") from error

    @cached_property
    def _bucket(self) -> str:
        return self._settings.archive_bucket(self._account, self._region)


def _as_json(value: Any) -> dict[str, str]:
    """An attribute of bytes: none of ours, so a newer version's."""
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} is no value of an item")
    return {_BYTES: base64.b64encode(value).decode()}


def _from_json(found: dict[str, Any]) -> Any:
    return base64.b64decode(found[_BYTES]) if found.keys() == {_BYTES} else found


def _name(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode()[:_NAME]


def _code(error: Exception) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""
