"""moto's DynamoDB, made to behave like DynamoDB where this service would notice the difference.

Read together with moto 5.2: `dynamodb/models/__init__.py` (backend), `models/table.py`, `models/dynamo_type.py`, `responses.py`.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, localcontext
from functools import wraps
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from moto.dynamodb import models
from moto.dynamodb.exceptions import (
    ERROR_TYPE_PREFIX,
    DynamodbException,
    IncorrectDataType,
    ItemSizeTooLarge,
    MockValidationException,
)
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler, DynamoResult

from infra.local.repairs.rows import Rows

LOCK = threading.RLock()
"""Held during every DynamoDB call, and by whoever looks at the rows directly."""
TOKEN_SECONDS = 600
"""How long a ClientRequestToken counts. Source: DynamoDB API reference, TransactWriteItems."""
_NUMBERS = Context(prec=38, Emin=-130, Emax=125, traps=[Inexact, InvalidOperation, Overflow])
"""DynamoDB's numbers. Source: Developer Guide, "Supported data types", Number."""
_TOO_PRECISE = "Attempting to store more than 38 significant digits in a Number"

ITEM_BYTES = 400 * 1024
"""The largest item. Source: Developer Guide, "Quotas", item size."""
_ANSWERED_PLAINLY = frozenset(
    ("GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")
)

now = time.monotonic
"""Seconds; the age of a ClientRequestToken is measured with it. Tests put another clock here."""

_state = SimpleNamespace(installed=False)


def repair_dynamodb() -> None:
    """Apply every repair of this module, once."""
    if _state.installed:
        return
    _state.installed = True
    calls_one_at_a_time()
    rows_in_order()
    queries_cost_their_page()
    scans_cost_their_page()
    items_and_answers_cost_their_size()
    updates_never_change_an_item_in_place()
    transactions_restore_only_what_they_touched()
    request_tokens_count()
    numbers_keep_38_digits()


def calls_one_at_a_time() -> None:
    """moto's transactions are not isolated: a plain write that lands while one runs is undone with it, reads see half of one,
    and two threads meet "dictionary changed size during iteration". One lock round each call makes every call atomic.
    """
    original = DynamoHandler.call_action

    @wraps(original)
    def call_action(self: DynamoHandler) -> Any:
        with LOCK:
            return original(self)

    DynamoHandler.call_action = call_action  # type: ignore[method-assign]


def rows_in_order() -> None:
    """moto sorts the whole table for every query. `Rows` keeps the order as it goes; `all_items` reads it off."""
    original = Table.__init__

    @wraps(original)
    def init(self: Table, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.items = Rows(self)  # type: ignore[assignment]

    Table.__init__ = init  # type: ignore[method-assign]
    Table.all_items = lambda self: rows_of(self).all()  # type: ignore[method-assign]


def rows_of(table: Table) -> Rows:
    return cast(Rows, table.items)


class _Query(NamedTuple):
    """The arguments of moto's `Table.query`, in its order: that is how moto calls it."""

    hash_key: DynamoType
    range_comparison: str | None
    range_objs: list[DynamoType]
    limit: int | None
    exclusive_start_key: dict[str, Any] | None
    scan_index_forward: bool
    projection_expressions: list[list[str]] | None
    index_name: str | None = None
    consistent_read: bool = False
    filter_expression: Any = None


def queries_cost_their_page() -> None:
    """moto's query looks at every item of the table, and copies what it returns deeply. This one walks the sorted keys of its
    partition. It also answers LastEvaluatedKey whenever it stopped at Limit, as DynamoDB does, even where nothing follows.
    Local secondary indexes, indexes with several hash or range keys and the old `QueryFilter` are left to moto.
    """
    original = Table.query

    @wraps(original)
    def query(self: Table, *asked: Any, **others: Any) -> tuple[list[Item], int, dict[str, Any] | None]:
        rows, query = rows_of(self), _Query(*asked)
        old_style = others.keys() - {"hash_key_conditions", "range_key_conditions"}
        if old_style or (query.index_name is not None and not rows.serves(query.index_name)):
            return original(self, *asked, **others)
        if query.consistent_read and query.index_name is not None:
            raise MockValidationException("Consistent reads are not supported on global secondary indexes")
        try:
            page, stopped = rows.select(
                query.index_name,
                query.hash_key,
                query.range_comparison,
                query.range_objs,
                start=query.exclusive_start_key,
                forward=query.scan_index_forward,
                limit=query.limit,
            )
        except TypeError:
            raise MockValidationException(
                "One or more parameter values were invalid: Condition parameter type does not match schema type"
            ) from None
        last_key = self._get_last_evaluated_key(page[-1], query.index_name) if stopped else None
        results = page
        if query.index_name is not None:
            index, keys = self.get_index(query.index_name), rows.keys_only(query.index_name)
            # A count of ten thousand keys goes through here: moto's own way takes twenty times as long for keys alone.
            results = [index.project(item) if keys is None else _of_keys(item, keys) for item in results]
        if query.filter_expression is not None:
            results = [item for item in results if query.filter_expression.expr(item)]
        if query.projection_expressions:
            results = [item.project(query.projection_expressions) for item in results]
        return results, len(page), last_key

    Table.query = query  # type: ignore[method-assign]


def scans_cost_their_page() -> None:
    """moto's scan weighs each item twice and copies each deeply. Items in a table are never changed, so neither is needed. Indexes,
    segments and the old `ScanFilter` are left to moto.
    """
    original = Table.scan

    @wraps(original)
    def scan(
        self: Table, filters: dict[str, Any], limit: int, exclusive_start_key: dict[str, Any], filter_expression: Any = None,
        index_name: str | None = None, consistent_read: bool = False, projection: list[list[str]] | None = None, **part: Any,
    ) -> tuple[list[Item], int, dict[str, Any] | None]:  # fmt: skip
        start = exclusive_start_key
        odd_start = start is not None and start.keys() != set(self.table_key_attrs)
        if filters or index_name or odd_start or part.get("segments", (None, None)) != (None, None):
            return original(self, filters, limit, start, filter_expression, index_name, consistent_read, projection, **part)
        page, more = rows_of(self).scan(start, limit)
        results = page if filter_expression is None else [item for item in page if filter_expression.expr(item)]
        if projection:
            results = [item.project(projection) for item in results]
        return results, len(page), self._get_last_evaluated_key(page[-1], None) if more else None

    Table.scan = scan  # type: ignore[method-assign, assignment]


def _of_keys(item: Item, keys: list[str]) -> Item:
    """The part of `item` that an index of keys alone holds."""
    found = object.__new__(Item)
    found.hash_key, found.range_key = item.hash_key, item.range_key
    found.attrs = LimitedSizeDict()
    for name in keys:
        dict.__setitem__(found.attrs, name, item.attrs[name])
    return found


def items_and_answers_cost_their_size() -> None:
    """moto weighs an item again for each attribute that it puts in (their number squared), and writes each attribute of an
    answer by asking eight aliases what it might be called: 1.2 ms for an item of 17. Both are done once and plainly here.
    It also never lets go of an item, whatever becomes of it, so that its memory only grows.
    """

    def init(self: Item, hash_key: DynamoType, range_key: DynamoType | None, attrs: dict[str, Any]) -> None:
        self.hash_key = hash_key
        self.range_key = range_key
        self.attrs = LimitedSizeDict()
        for name, value in attrs.items():
            dict.__setitem__(self.attrs, name, DynamoType(value))
        if self.size() > ITEM_BYTES:
            raise ItemSizeTooLarge

    original = DynamoResult.execute_result

    @wraps(original)
    def execute_result(self: DynamoResult, context: Any) -> Any:
        if context.operation_model.name not in _ANSWERED_PLAINLY:
            return original(self, context)
        answer = {name: value for name, value in cast(dict[str, Any], self.result).items() if value is not None}
        return 200, {"Content-Type": "application/x-amz-json-1.0"}, json.dumps(answer, default=_base64)

    # moto keeps a list of every item that was ever made, for its dashboard.
    Item.__new__ = lambda cls, *_, **__: object.__new__(cls)  # type: ignore[method-assign]
    Item.__init__ = init  # type: ignore[method-assign]
    DynamoResult.execute_result = execute_result  # type: ignore[assignment, method-assign]


def _base64(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} in an answer of DynamoDB")


def updates_never_change_an_item_in_place() -> None:
    """moto's UpdateItem changes the stored item as it evaluates: an expression that fails half-way leaves its first half behind,
    and index keys change behind the index's back. Here it works on a copy that is stored when all went well.
    """
    original = DynamoDBBackend.update_item

    @wraps(original)
    def update_item(self: DynamoDBBackend, table_name: str, key: dict[str, Any], *args: Any, **kwargs: Any) -> Item:
        table = self.get_table(table_name)
        table._validate_item_types(kwargs.get("expression_attribute_values") or {})
        rows = rows_of(table)
        hash_key, range_key = self.get_keys_value(table, key)
        before = rows.peek(hash_key, range_key)
        if before is not None:
            rows.swap(hash_key, range_key, copy.deepcopy(before))
        try:
            item = original(self, table_name, key, *args, **kwargs)
            rows.store(hash_key, range_key, item)
        except BaseException:
            rows.put_back(hash_key, range_key, before)
            raise
        return item

    DynamoDBBackend.update_item = update_item  # type: ignore[method-assign]


def transactions_restore_only_what_they_touched() -> None:
    """moto copies every table of a transaction deeply, to put the copies back when it fails: at 5,000 rows that is 8
    transactions a second. Items are never changed in place here, so remembering the touched ones is enough.
    """
    # The backend's module uses `copy` for items, and for the tables of a transaction: those it now gets back as they are.
    models.copy = _CopyNoTables()  # type: ignore[assignment, attr-defined]
    original = DynamoDBBackend.transact_write_items

    @wraps(original)
    def transact_write_items(self: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        touched = list(_touched(self, transact_items))
        try:
            original(self, transact_items)
        except BaseException:
            for rows, hash_key, range_key, before in touched:
                if rows.peek(hash_key, range_key) is not before:
                    rows.put_back(hash_key, range_key, before)
            raise

    DynamoDBBackend.transact_write_items = transact_write_items  # type: ignore[method-assign]


class _CopyNoTables:
    """Stands in for the module `copy`."""

    @staticmethod
    def deepcopy(thing: Any) -> Any:
        return thing if isinstance(thing, Table) else copy.deepcopy(thing)


def _touched(
    backend: DynamoDBBackend, transact_items: list[dict[str, Any]]
) -> Iterator[tuple[Rows, DynamoType, DynamoType | None, Item | None]]:
    """Each item that the transaction may write, and what is there now. What names no table or no whole key can write nothing."""
    for entry in transact_items:
        for operation in entry.values():
            table = backend.tables.get(operation.get("TableName", ""))
            source = operation.get("Item", operation.get("Key", {}))
            if table is None or any(attribute not in source for attribute in table.table_key_attrs):
                continue
            hash_key, range_key = backend.get_keys_value(table, source)
            rows = rows_of(table)
            yield rows, hash_key, range_key, rows.peek(hash_key, range_key)


def request_tokens_count() -> None:
    """moto ignores ClientRequestToken, so a repeated transaction happens twice. DynamoDB answers the repetition within ten
    minutes with success and does nothing; with other contents it refuses. Source: API reference, TransactWriteItems.
    """
    original = DynamoHandler.transact_write_items

    @wraps(original)
    def transact_write_items(self: DynamoHandler) -> Any:
        token = self.body.get("ClientRequestToken")
        if not token:
            return original(self)
        tokens = request_tokens(self.dynamodb_backend)
        contents = json.dumps(self.body["TransactItems"], sort_keys=True, default=str)
        if token in tokens:
            _, known, answer = tokens[token]
            if known != contents:
                raise DynamodbException(
                    ERROR_TYPE_PREFIX + "IdempotentParameterMismatchException",
                    "The request uses the same client token as a previous, but non-identical request.",
                )
            return answer
        answer = original(self)
        tokens[token] = (now(), contents, answer)
        return answer

    DynamoHandler.transact_write_items = transact_write_items  # type: ignore[method-assign]


def request_tokens(backend: DynamoDBBackend) -> OrderedDict[str, tuple[float, str, Any]]:
    """The tokens of the last ten minutes: when, the contents, the answer. Oldest first."""
    tokens: OrderedDict[str, tuple[float, str, Any]] = backend.__dict__.setdefault("request_tokens", OrderedDict())
    while tokens and next(iter(tokens.values()))[0] <= now() - TOKEN_SECONDS:
        tokens.popitem(last=False)
    return tokens


def numbers_keep_38_digits() -> None:
    """moto adds decimals at Python's 28 digits, refuses an exponent in a stored number with a 500, and stores any number of
    digits. Here sums and differences are exact to 38 digits, and what does not fit is refused as DynamoDB does.
    """
    DynamoType.__add__ = _arithmetic(Decimal.__add__)  # type: ignore[method-assign]
    DynamoType.__sub__ = _arithmetic(Decimal.__sub__)  # type: ignore[method-assign]
    original = Table._validate_number_type
    legacy = Item.update_with_attribute_updates

    @wraps(original)
    def validate(self: Table, value: Any) -> None:
        original(self, value)
        if isinstance(value, str):
            with _exactly():
                +Decimal(value)

    @wraps(legacy)
    def update_with_attribute_updates(self: Item, attribute_updates: dict[str, Any]) -> None:
        with _exactly():
            legacy(self, attribute_updates)

    Table._validate_number_type = validate  # type: ignore[method-assign]
    Item.update_with_attribute_updates = update_with_attribute_updates  # type: ignore[method-assign]


def _arithmetic(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[[DynamoType, DynamoType], DynamoType]:
    def combine(left: DynamoType, right: DynamoType) -> DynamoType:
        if not (left.is_number() and right.is_number()):
            raise IncorrectDataType()
        with _exactly():
            result = operation(Decimal(left.value), Decimal(right.value)).normalize()
        return DynamoType({"N": format(result if result else Decimal(0), "f")})

    return combine


@contextmanager
def _exactly() -> Iterator[None]:
    """Decimals of 38 digits; a result that does not fit raises ValidationException instead of losing digits."""
    try:
        with localcontext(_NUMBERS):
            yield
    except Overflow:
        raise MockValidationException(
            "Number overflow. Attempting to store a number with magnitude larger than supported range"
        ) from None
    except Inexact:
        raise MockValidationException(_TOO_PRECISE) from None
