"""The way from a client to moto's DynamoDB and SQS, without HTTP between them: same checks, same answers, a tenth of the time.

botocore writes a call as a signed HTTP request, moto reads that back, and both do the same with the answer: four fifths of the
time of a test that uses the store. Here the operations on items go from the client's arguments to moto's handler, which checks
and does what it always did, with every repair of this folder. What botocore itself would refuse, and whatever is not as plain
as our own calls, takes the usual way; so does everything while `installed` AWS is parked.

The seams that tests use are kept: `BaseClient._make_api_call` can be replaced, and `before-call` is told and may answer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from http import HTTPStatus
from importlib import import_module
from threading import RLock
from typing import Any

from botocore.client import BaseClient
from botocore.model import Shape
from moto.core.exceptions import ServiceException
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.utils import camelcase_to_underscores
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType, LimitedSizeDict
from moto.dynamodb.responses import DynamoHandler
from moto.sqs.responses import SQSResponse
from werkzeug.exceptions import HTTPException

from infra.local.repairs.dynamodb import LOCK

Reader = Callable[[Any], Any]
# Modules of theirs whose names are not exported.
_responses: Any = import_module("moto.dynamodb.responses")
_slowly = _responses.dynamo_to_dict

_OPERATIONS = {
    name: camelcase_to_underscores(name)
    for name in (
        "BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "TransactGetItems",
        "TransactWriteItems", "UpdateItem", "GetQueueUrl", "SendMessage",
    )
}  # fmt: skip
_PLAIN_TYPES = frozenset(("S", "N", "BOOL", "NULL"))
_regions: set[str] = set()
"""Where calls go this way: those of the running AWS; none while it is parked."""
_readers: dict[str, Reader] = {}
_unfinished: dict[str, Reader] = {}
_MAKING = RLock()
_answers: dict[str, frozenset[str]] = {}


class _Unusual(Exception):
    """Arguments that the usual way has to look at."""


def begin(region: str) -> None:
    """Send calls of this region's clients directly, until `end`. Call it when moto has started."""
    _regions.add(region)


def end() -> None:
    """Every call takes the usual way again."""
    _regions.clear()


def repair_way() -> None:
    """Let clients ask moto's DynamoDB directly where `begin` said so. May be called any number of times."""
    client: Any = BaseClient
    usual = client._make_api_call
    if getattr(usual, "direct", False):
        return

    def call(self: Any, operation_name: str, api_params: Any) -> Any:
        meta = self.meta
        if operation_name not in _OPERATIONS or meta.region_name not in _regions:
            return usual(self, operation_name, api_params)
        if meta.service_model.service_name not in _HANDLERS or not meta.endpoint_url.endswith(".amazonaws.com"):
            return usual(self, operation_name, api_params)
        operation = meta.service_model.operation_model(operation_name)
        try:
            arguments = _reader(operation.input_shape)(api_params)
        except (_Unusual, KeyError):
            return usual(self, operation_name, api_params)
        handler = _HANDLERS[meta.service_model.service_name](meta.region_name, meta.endpoint_url, arguments)
        if not handler.takes():
            return usual(self, operation_name, api_params)
        try:
            return _asked(self, operation, handler)
        except ServiceException:
            return usual(self, operation_name, api_params)  # a refusal of SQS, before any effect: written as SQS writes it

    call.direct, call.usual = True, usual  # type: ignore[attr-defined]
    client._make_api_call = call
    _responses.dynamo_to_dict = _plain


class _Items(DynamoHandler):
    """moto's handler, with what it otherwise reads off a request."""

    lock = LOCK

    def __init__(self, region: str, _: str, arguments: dict[str, Any]) -> None:
        self.region = region
        self.body = self.params = arguments
        self._backend: DynamoDBBackend = dynamodb_backends[DEFAULT_ACCOUNT_ID][region]

    def takes(self) -> bool:
        return True

    @property
    def dynamodb_backend(self) -> DynamoDBBackend:
        return self._backend


class _Messages(SQSResponse):
    """The same for messages to a queue that is there: refusals of SQS are written otherwise, and take the usual way."""

    lock = nullcontext()

    def __init__(self, region: str, url: str, arguments: dict[str, Any]) -> None:
        self.region, self.uri, self.path = region, url, "/"
        self.params, self.uri_match = arguments, {}
        self.automated_parameter_parsing = True
        self.current_account = DEFAULT_ACCOUNT_ID

    def takes(self) -> bool:
        name = self.params.get("QueueName") or self.params.get("QueueUrl", "").rsplit("/", 1)[-1]
        return name in self.sqs_backend.queues


_HANDLERS: dict[str, Callable[[str, str, dict[str, Any]], Any]] = {"dynamodb": _Items, "sqs": _Messages}


def _asked(client: Any, operation: Any, handler: Any) -> dict[str, Any]:
    """What `BaseClient._make_api_call` answers, or raises. The answer's own parts belong to the caller."""
    request = {"method": "POST", "url_path": "/", "url": client.meta.endpoint_url, "headers": {}, "body": b"", "query_string": ""}
    context: dict[str, Any] = {}
    events = client.meta.events
    # The names of these events have no alias, and looking for one takes longer than telling.
    _, told = getattr(events, "_emitter", events).emit_until_response(
        f"before-call.{operation.service_model.service_id.hyphenize()}.{operation.name}",
        model=operation,
        params=request | {"context": context},
        request_signer=client._request_signer,
        context=context,
    )
    if told is not None:
        http, parsed = told
        return _answered(client, operation, http.status_code, parsed)
    try:
        with handler.lock:
            result = getattr(handler, _OPERATIONS[operation.name])().result
    except HTTPException as error:
        return _answered(client, operation, error.code or HTTPStatus.BAD_REQUEST, _error(client, operation, error))
    members = _answers.get(operation.name)
    if members is None:
        members = _answers[operation.name] = frozenset(operation.output_shape.members)
    parsed = {name: value for name, value in result.items() if name in members and value is not None}
    parsed["ResponseMetadata"] = {"RequestId": "direct", "HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}
    return parsed


def _answered(client: Any, operation: Any, status: int, parsed: dict[str, Any]) -> dict[str, Any]:
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        raise client.exceptions.from_code(parsed.get("Error", {}).get("Code"))(parsed, operation.name)
    return parsed


def _error(client: Any, operation: Any, error: HTTPException) -> dict[str, Any]:
    """moto's refusal as botocore's own parser reads it."""
    headers = dict(error.get_headers())
    status = error.code or int(HTTPStatus.BAD_REQUEST)
    response = {"status_code": status, "headers": {name.lower(): value for name, value in headers.items()}}
    body: Any = error.get_body()
    response["body"] = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    parser = client._response_parser
    parsed: dict[str, Any] = parser.parse(response, operation.output_shape)
    client._endpoint._add_modeled_error_fields(response, parsed, operation, parser)
    parsed["ResponseMetadata"].setdefault("RetryAttempts", 0)
    return parsed


def _plain(value: Any) -> Any:
    """moto's `dynamo_to_dict`, which asks of each text whether it has methods: here the plain types are told by their type."""
    kind = type(value)
    if kind is str or kind is int or kind is float or kind is bool or value is None:
        return value
    if kind is DynamoType:
        return {value.type: value.value} if value.type in _PLAIN_TYPES else _slowly(value)
    if kind is dict or kind is LimitedSizeDict:
        return {
            # An attribute of an item, mostly: told here, without a call for it and another for its value.
            name: {inner.type: inner.value} if type(inner) is DynamoType and inner.type in _PLAIN_TYPES else _plain(inner)
            for name, inner in value.items()
        }
    if kind is list:
        return [_plain(inner) for inner in value]
    return _slowly(value)


# ---- Arguments: a copy of them, checked as botocore checks them -------------------------------------------------------------


def _reader(shape: Shape) -> Reader:
    """What copies a value of `shape`, and raises _Unusual where botocore would refuse it or write it otherwise."""
    found = _readers.get(shape.name)
    return found or _made(shape)


def _made(shape: Shape) -> Reader:
    with _MAKING:
        found = _readers.get(shape.name) or _unfinished.get(shape.name)
        if found is None:
            # Shapes contain each other: the name is taken before the parts are made, and no other thread sees it before they are.
            _unfinished[shape.name] = partial(_read_later, shape.name)
            found = _readers[shape.name] = _KINDS.get(shape.type_name, _never)(shape)
            del _unfinished[shape.name]
        return found


def _read_later(name: str, value: Any) -> Any:
    return _readers[name](value)


def _never(shape: Shape) -> Reader:
    def read(value: Any) -> Any:
        raise _Unusual(shape.name)

    return read


def _scalar(*kinds: type) -> Callable[[Shape], Reader]:
    def make(shape: Shape) -> Reader:
        least = shape.metadata.get("min")

        def read(value: Any) -> Any:
            # Not isinstance: True is an int, and an Enum of texts is written as its value.
            if type(value) not in kinds or (least is not None and (len(value) if type(value) is str else value) < least):
                raise _Unusual(shape.name)
            return value

        return read

    return make


def _structure(shape: Any) -> Reader:
    members = {name: _reader(member) for name, member in shape.members.items()}
    required = tuple(shape.metadata.get("required", ()))
    tagged = shape.is_tagged_union

    def read(value: Any) -> Any:
        if type(value) is not dict or (tagged and len(value) != 1):
            raise _Unusual(shape.name)
        for name in required:
            if name not in value:
                raise _Unusual(name)
        return {name: members[name](inner) for name, inner in value.items()}

    return read


def _map(shape: Any) -> Reader:
    key, member = _reader(shape.key), _reader(shape.value)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _Unusual(shape.name)
        return {key(name): member(inner) for name, inner in value.items()}

    return read


def _list(shape: Any) -> Reader:
    member, least = _reader(shape.member), shape.metadata.get("min", 0)

    def read(value: Any) -> Any:
        if type(value) not in (list, tuple) or len(value) < least:
            raise _Unusual(shape.name)
        return [member(inner) for inner in value]

    return read


def _blob(shape: Shape) -> Reader:
    """Bytes in an item. Those in a message take the usual way: SQS hashes them."""
    if shape.name != "BinaryAttributeValue":
        return _never(shape)

    def read(value: Any) -> str:
        if type(value) is not bytes:
            raise _Unusual(shape.name)
        return base64.b64encode(value).decode()  # as it is written in JSON, which is how moto keeps it

    return read


_KINDS: dict[str, Callable[[Any], Reader]] = {
    "structure": _structure,
    "map": _map,
    "list": _list,
    "string": _scalar(str),
    "boolean": _scalar(bool),
    "integer": _scalar(int),
    "long": _scalar(int),
    "blob": _blob,
}
