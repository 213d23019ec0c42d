"""The lock of a stage's deploy: an object in the bucket for deployments, there while one is under way.

It is put on condition that there is none (If-None-Match), and renewed each minute on condition that it is still ours (If-Match with
its ETag). One that was not renewed for five minutes is a dead deploy's, and taken over by the same condition: of two who try, one
succeeds. The content differs at each renewal, since an ETag is the content's.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.commands.common import CanNot
from infra.deployment.bucket import Bucket

RENEWED = 60.0
"""Seconds between renewals."""
DEAD = 300.0
"""Seconds without a renewal after which it is taken over."""
_DOUBTFUL = DEAD - RENEWED
"""Seconds after which the holder stops: it would be taken over before the next step ends."""
_TRIES = 5


@dataclass
class Lock:
    """The lock of one stage, held or not."""

    bucket: Bucket
    stage: str
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    _etag: str = ""
    _renewed: float = 0.0
    _count: int = 0
    _lost: str = ""

    @property
    def key(self) -> str:
        return f"locks/{self.stage}"

    def take(self, wait: Callable[[float], None] = time.sleep) -> None:
        """Take it. Raises CanNot where another deploy has it; botocore's ClientError."""
        for _ in range(_TRIES):
            if self._put(IfNoneMatch="*"):
                return
            held = self._read()
            if held is None:  # given back this moment
                wait(1.0)
                continue
            if held["token"] == self.token:  # ours: the answer was lost
                self._have(held["etag"])
                return
            if held["age"] < DEAD:
                raise CanNot(
                    f"{held['who']} deploys stage {self.stage} (seen {held['age']:.0f} seconds ago): wait until that has ended."
                    f" If it died, this goes on {DEAD / 60:.0f} minutes after it was seen last"
                )
            if self._put(IfMatch=held["etag"]):
                return
        raise CanNot(f"others take the lock of stage {self.stage} at the same time: try again")

    def renew(self) -> None:
        """Say that the deploy lives. Where nobody has the lock it is not renewed, and not lost: a new bucket may hide what
        is in it for minutes. Raises botocore's ClientError, BotoCoreError where S3 can not be asked.

        https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketVersioning.html
        """
        if self._put(IfMatch=self._etag):
            return
        held = self._read()
        if held is not None and held["token"] == self.token:
            self._have(held["etag"])
        elif held is not None:
            self._lost = held["who"]

    def demand(self) -> None:
        """Raises CanNot unless the lock is still ours: two who deploy at a time would leave a mixture."""
        if self._lost:
            raise CanNot(f"the lock of stage {self.stage} was taken over by {self._lost}: look at what it did, then run this again")
        if time.monotonic() - self._renewed > _DOUBTFUL:
            raise CanNot(
                f"the lock of stage {self.stage} could not be renewed for four minutes: S3 can not be reached, or somebody"
                " took it away. Run this again"
            )

    def release(self) -> None:
        """Give it back, unless it is another's by now. Raises botocore's ClientError."""
        if not self._etag:
            held = self._read()
            if held is None or held["token"] != self.token:
                return
            self._have(held["etag"])
        try:
            self.bucket.client.delete_object(**self.bucket.whose, Key=self.key, IfMatch=self._etag)
        except ClientError as error:
            if _code(error) not in ("PreconditionFailed", "NoSuchKey"):
                raise

    def _put(self, **condition: str) -> bool:
        """Write it under a condition; whether that was met. A conflict with another write counts as not."""
        self._count += 1
        content = {"who": self.bucket.caller, "token": self.token, "count": self._count}
        try:
            answer = self.bucket.client.put_object(
                **self.bucket.whose, Key=self.key, Body=json.dumps(content).encode(), **condition
            )
        except ClientError as error:
            if _code(error) in ("PreconditionFailed", "NoSuchKey", "ConditionalRequestConflict"):
                return False
            raise
        self._have(answer["ETag"])
        return True

    def _have(self, etag: str) -> None:
        self._etag, self._renewed = etag, time.monotonic()

    def _read(self) -> dict[str, Any] | None:
        """Who has it, with its age by S3's own clock; None where nobody has, or there is no bucket."""
        try:
            found = self.bucket.client.get_object(**self.bucket.whose, Key=self.key)
        except ClientError as error:
            if _code(error) in ("NoSuchKey", "NoSuchBucket"):
                return None
            raise
        return {**json.loads(found["Body"].read()), "etag": found["ETag"], "age": _age(found)}


@contextmanager
def locked(bucket: Bucket, stage: str, tell: Callable[[str], None], every: float = RENEWED) -> Iterator[Lock]:
    """Hold the lock of a stage, and renew it meanwhile. Raises CanNot where another deploy has it; botocore's ClientError."""
    lock = Lock(bucket, stage)
    try:
        lock.take()
    except (ClientError, BotoCoreError):
        _give_back(lock, tell)  # it may have been taken, and the answer lost
        raise
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(lock, ended, tell, every), daemon=True)
    renewing.start()
    try:
        yield lock
    except (Exception, KeyboardInterrupt):
        _end(ended, renewing)
        _give_back(lock, tell)
        raise
    finally:
        _end(ended, renewing)
    lock.release()


def _give_back(lock: Lock, tell: Callable[[str], None]) -> None:
    """After a failure, which is what the operator is to see."""
    try:
        lock.release()
    except (ClientError, BotoCoreError) as error:
        tell(f"the lock of stage {lock.stage} stays for five minutes: {error}")


def _end(ended: threading.Event, renewing: threading.Thread) -> None:
    ended.set()
    renewing.join(timeout=RENEWED)


def _renew(lock: Lock, ended: threading.Event, tell: Callable[[str], None], every: float) -> None:
    """Until the end. After a failure sooner again: `demand` says when it was too long."""
    pause = every
    while not ended.wait(pause):
        try:
            lock.renew()
            pause = every
        except (ClientError, BotoCoreError) as error:
            tell(f"the lock was not renewed, and is tried again: {error}")
            pause = every / 6


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]


def _age(found: Any) -> float:
    """Seconds since an object was written, by the time of S3's answer; by this machine's where something took that out."""
    date = found["ResponseMetadata"]["HTTPHeaders"].get("date")
    now = parsedate_to_datetime(date) if date else datetime.now(UTC)
    return float((now - found["LastModified"]).total_seconds())
