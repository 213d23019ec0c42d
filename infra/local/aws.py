"""AWS inside this process: moto with its faults repaired, fake credentials, and the stack of `infra/template.yaml`.

For the local stack and the tests only. Nothing here can reach the real AWS: credentials, profiles and endpoints of the
machine are put out of the way first, for this process and those that it starts.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.session
from botocore.loaders import create_loader
from moto.core.base_backend import BackendDict
from moto.core.models import DEFAULT_ACCOUNT_ID, MockAWS
from moto.dynamodb.models import dynamodb_backends
from moto.kms.models import kms_backends
from moto.s3.models import s3_backends
from moto.sqs.models import Message, Queue, sqs_backends

from chalicelib.settings import Settings
from infra.local import repairs
from infra.local.repairs import direct
from infra.local.repairs.dynamodb import LOCK, request_tokens, rows_of

REGION = "eu-central-1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_SESSION_TOKEN": "local",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_REGION": REGION,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
_MISLEADING = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CA_BUNDLE")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the tables, queues, buckets, keys and parameters held. Good for any number of restores while the same stack runs."""

    rows: dict[str, tuple[Any, ...]]
    tokens: dict[str, Any]
    queues: dict[str, tuple[list[dict[str, Any]], set[int], set[str]]]
    keys: dict[str, tuple[Any, dict[str, Any]]]
    parameters: dict[str, list[Any]]
    objects: dict[str, dict[str, list[Any]]]


@dataclass
class LocalAws:
    """A running moto. `stop` ends it and forgets everything; a process has one at a time."""

    settings: Settings
    _mock: Any
    _empty: Snapshot = field(init=False)
    _parked: dict[Any, dict[str, Any]] | None = None
    _named: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Whose the buckets are: moto keeps that beside its accounts, since no two in the world share a name."""

    def __post_init__(self) -> None:
        self._empty = self.snapshot()

    def snapshot(self) -> Snapshot:
        """Remember the data of every table, queue and bucket, and the set of keys: a few milliseconds, nothing is copied deeply."""
        with LOCK:
            dynamodb, sqs, kms, parameters = _backends()
            return Snapshot(
                rows={name: rows_of(table).freeze() for name, table in dynamodb.tables.items()},
                tokens=dict(request_tokens(dynamodb)),
                queues={name: _freeze_queue(queue) for name, queue in sqs.queues.items()},
                keys={key_id: (key, dict(key.aliases)) for key_id, key in kms.keys.items()},
                parameters={name: list(history) for name, history in parameters.items()},
                objects={name: dict(bucket.keys.lists()) for name, bucket in _buckets().items()},
            )

    def holds(self, token: Snapshot) -> bool:
        """Whether nothing has changed since `token` was taken, or given back."""
        with LOCK:
            dynamodb, sqs, kms, parameters = _backends()
            return (
                {name: rows_of(table).generation for name, table in dynamodb.tables.items()}
                == {name: rows[0] for name, rows in token.rows.items()}
                and {name: _freeze_queue(queue) for name, queue in sqs.queues.items()} == token.queues
                and kms.keys.keys() == token.keys.keys()
                and dict(parameters) == token.parameters
            )

    def restore(self, token: Snapshot) -> None:
        """Make the data what it was at `snapshot`; tables and queues made since are gone. Only changed tables cost anything."""
        with LOCK:
            dynamodb, sqs, kms, parameters = _backends()
            parameters.clear()
            parameters.update({name: list(history) for name, history in token.parameters.items()})
            for name, bucket in _buckets().items():
                for key in bucket.keys.keys() - token.objects[name].keys():
                    del bucket.keys[key]
            for made, known in ((dynamodb.tables, token.rows), (sqs.queues, token.queues)):
                for name in made.keys() - known.keys():
                    del made[name]
            for name, rows in token.rows.items():
                rows_of(dynamodb.tables[name]).thaw(rows)
            tokens = request_tokens(dynamodb)
            tokens.clear()
            tokens.update(token.tokens)
            for name, messages in token.queues.items():
                _thaw_queue(sqs.queues[name], messages)
            kms.keys.clear()
            for key_id, (key, aliases) in token.keys.items():
                key.aliases.clear()
                key.aliases.update(aliases)
                kms.keys[key_id] = key

    def reset_data(self) -> None:
        """Empty every table and queue; the stack stays as `start_aws` made it."""
        self.restore(self._empty)

    @contextmanager
    def active(self) -> Iterator[LocalAws]:
        """Let this AWS answer again after `park`; parked again at the end. May be nested."""
        if self._parked is None:
            yield self
            return
        self._mock.start()
        for backends, content in self._parked.items():
            dict.update(backends, content)
            _in_use().append(backends)
        _name_buckets(self._named)
        self._parked = None
        direct.begin(REGION)
        try:
            yield self
        finally:
            self.park()

    def park(self) -> None:
        """Step aside with all data, so that a test of something else can have a moto of its own."""
        direct.end()
        self._parked = {backends: dict(backends) for backends in _in_use()}
        self._named = dict(s3_backends.bucket_accounts)
        for backends in self._parked:
            backends.clear()
        _name_buckets({})
        _in_use().clear()
        self._mock.stop()

    def stop(self) -> None:
        """End it. All data is gone."""
        direct.end()
        if self._parked is None:
            self._mock.stop()
        self._parked = {}


def start_aws(settings: Settings) -> LocalAws:
    """Start AWS in this process and make the stack of `settings.stage`: tables, queues and keys from `infra/template.yaml`.

    Call it before anything makes an AWS client. Raises RuntimeError when one runs already.
    """
    if MockAWS._mocks_active:
        raise RuntimeError("AWS runs in this process already")
    isolate_environment()
    share_loader()  # first: moto asks botocore about all regions when it is imported
    repairs.install()
    mock = MockAWS(config={"core": {"mock_credentials": False, "reset_boto3_session": False}})
    mock.start()
    try:
        boto3.setup_default_session(region_name=REGION)
        from infra.deploy import create_stack

        create_stack(settings.stage)
        direct.begin(REGION)
        return LocalAws(settings, mock)
    except BaseException:
        mock.stop()
        raise


def isolate_environment() -> None:
    """Fake credentials and region in `os.environ`; the machine's own profiles, roles and endpoints out of it."""
    for name in list(os.environ):
        if name in _MISLEADING or name.startswith("AWS_ENDPOINT_URL"):
            del os.environ[name]
    os.environ.update(ENVIRONMENT)


@functools.cache
def _loader(search_path: str | None) -> Any:
    return create_loader(search_path)


def share_loader() -> None:
    """One botocore loader for all sessions: each would parse the same service descriptions again, 50 ms a client."""
    botocore.session.create_loader = _loader


def _in_use() -> list[Any]:
    """moto's own list of the services that hold anything."""
    return BackendDict._instances  # type: ignore[misc]


def _backends() -> tuple[Any, Any, Any, Any]:
    # Imported here: it brings moto's EC2, which reads what botocore knows of 40 regions, once where sessions share a loader.
    from moto.ssm.models import ssm_backends

    return (
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION],
        sqs_backends[DEFAULT_ACCOUNT_ID][REGION],
        kms_backends[DEFAULT_ACCOUNT_ID][REGION],
        ssm_backends[DEFAULT_ACCOUNT_ID][REGION]._parameters,
    )


def _buckets() -> dict[str, Any]:
    """S3's backend is one for all regions. Objects are written once and never removed."""
    return dict(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets)


def _name_buckets(named: dict[str, tuple[str, str]]) -> None:
    s3_backends.bucket_accounts.clear()
    s3_backends.bucket_accounts.update(named)


def _freeze_queue(queue: Queue) -> tuple[list[dict[str, Any]], set[int], set[str]]:
    pending = {place for place, message in enumerate(queue._messages) if message in queue._pending_messages}
    return [copy.deepcopy(message.__dict__) for message in queue._messages], pending, set(queue.deleted_messages)


def _thaw_queue(queue: Queue, frozen: tuple[list[dict[str, Any]], set[int], set[str]]) -> None:
    messages, pending, deleted = frozen
    with queue._messages_lock:
        queue._messages = [_message(fields) for fields in messages]
        queue._pending_messages.clear()
        queue._pending_messages.update(queue._messages[place] for place in pending)
        queue.deleted_messages.clear()
        queue.deleted_messages.update(deleted)


def _message(fields: dict[str, Any]) -> Message:
    message: Message = object.__new__(Message)
    message.__dict__.update(copy.deepcopy(fields))
    return message
