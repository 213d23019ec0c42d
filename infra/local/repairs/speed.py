"""Repairs of moto (5.2) that only save time: what it works out anew for every request and never changes. And one of pynamodb.

Measured over a fault sweep of 39,000 calls: a tenth of the whole run; what is done for updates and messages: see its functions.
"""

from __future__ import annotations

import time
from collections import deque
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

from moto.core import responses, utils
from moto.core.base_backend import BackendDict
from moto.core.models import MockAWS, botocore_stubber, responses_mock
from moto.dynamodb.comparisons import AttributeValue, ConditionExpressionParser, Func, Op
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from pynamodb.attributes import Attribute
from pynamodb.indexes import Index

# Modules without types.
_nodes: Any = import_module("moto.dynamodb.parsing.ast_nodes")
_expressions: Any = import_module("moto.dynamodb.parsing.expressions")
_validators: Any = import_module("moto.dynamodb.parsing.validators")
_sqs: Any = import_module("moto.sqs.models")
_resources: Any = import_module("moto.utilities.utils")

_PLAIN = frozenset(("S", "N", "BOOL", "NULL"))
_DONE = "_gateway_quick"
_Made = tuple[Any, tuple[str, ...], tuple[str, ...]]
"""What moto makes of a condition, and the names and values that it found in it."""


def repair_speed() -> None:
    """Remember the names of a service's methods, and the tokens of a condition, by its text. May be called any number of times."""
    if getattr(ConditionExpressionParser, _DONE, False):
        return
    setattr(ConditionExpressionParser, _DONE, True)
    lex = ConditionExpressionParser._lex_condition_expression

    @lru_cache(maxsize=1000)
    def tokens(condition: str) -> tuple[Any, ...]:
        # Names and values come in when the tokens are parsed; the tokens are tuples that nobody changes.
        return tuple(lex(ConditionExpressionParser(condition, None, None)))

    def remembered(self: ConditionExpressionParser) -> deque[Any]:
        return deque(tokens(self.condition_expression or ""))

    ConditionExpressionParser._lex_condition_expression = remembered  # type: ignore[method-assign]
    _quick_conditions()
    _quick_starts()
    setattr(responses, "method_names_from_class", lru_cache(maxsize=100)(utils.method_names_from_class))  # noqa: B010 - not exported there
    _quick_updates()
    _quick_copies()
    _quick_values()
    _quick_messages()
    _quick_models()
    _quick_backends()
    _without_machines()


def _quick_updates() -> None:
    """moto parses an update anew each time, copies its tree with `deepcopy`, and asks a traverser at each node what it is for.
    Here the tree of a text is made once, copied node by node, and a traverser's table is made once."""
    # Whoever validates works on a copy; the tree itself is only read.
    make = _expressions.UpdateExpressionParser.make

    @lru_cache(maxsize=1000)
    def made(expression: str) -> Any:
        tree = make(expression)
        tree.checked, tree.clauses = set(), {}
        return tree

    _expressions.UpdateExpressionParser.make = staticmethod(made)
    _validators.UpdateExpressionValidator.validate = _validated
    _validators.deepcopy = _copied
    find = _nodes.Expression.find_clauses

    def clauses(tree: Any, wanted: list[type]) -> list[Any]:
        # Asked of the same tree for every transaction: its nodes stay as they are. Those of a copy are replaced one by one.
        known = tree.__dict__.get("clauses")
        if known is None:
            return cast(list[Any], find(tree, wanted))
        kinds = tuple(wanted)
        if kinds not in known:
            known[kinds] = find(tree, wanted)
        return list(known[kinds])

    _nodes.Expression.find_clauses = clauses
    _nodes.DepthFirstTraverser.traverse = _traversed


def _validated(validator: Any) -> Any:
    """What `UpdateExpressionValidator.validate` gives. Checks that look at the text, its names and the table's keys alone are made
    once for each of these."""
    node = validator.node_to_validate
    asked = (repr(validator.expression_attribute_names), tuple(validator.table.table_key_attrs))
    of_the_text = (_validators.ActionCountValidator, _validators.OverlappingPathsValidator, _validators.UpdateHashRangeKeyValidator)
    checked: set[Any] = node.checked
    for processor in validator.processors:
        if asked not in checked or not isinstance(processor, of_the_text):
            node = processor.traverse(node)
    checked.add(asked)
    return node


def _traversed(traverser: Any, root: Any) -> Any:
    """What `DepthFirstTraverser.traverse` gives: a node is looked at after those below it, and replaced by what is made of it."""
    processors = tuple(traverser._processing_map().items())
    found: dict[type, Any] = {}
    """What each kind of node is made into, None for those that stay."""
    before = type(traverser).pre_processing_of_child
    told = None if before is _nodes.DepthFirstTraverser.pre_processing_of_child else traverser.pre_processing_of_child

    def walk(node: Any, place: int) -> Any:
        parent = node.parent
        if node.children is not None:
            for n, child in enumerate(node.children):
                if told is not None:
                    told(node, n)
                if _is_node(child):
                    walk(child, n)
        kind = type(node)
        if kind not in found:
            found[kind] = next((processor for wanted, processor in processors if issubclass(kind, wanted)), None)
        processor = found[kind]
        if processor is not None:
            node = processor(node)
            node.parent = parent
            if parent:
                parent.children[place] = node
        return node

    return walk(root, -1) if isinstance(root, _nodes.Node) else root


def _quick_conditions() -> None:
    """moto parses the condition of a change three times: to check it, to refuse the transaction, and to commit. What it makes of
    the same text, names and values is asked about items, and never changed. Of the same text with other values of the same types
    it makes the same, but for the values: a time in a condition would else have it parsed for every request."""
    parse = ConditionExpressionParser.parse
    parser: Any = ConditionExpressionParser

    @lru_cache(maxsize=500)
    def made_of(condition: str | None, names: str, kinds: tuple[tuple[str, str], ...], own: _Own) -> _Made:
        # Errors are not remembered: they are raised each time.
        asked = own.parser
        values = asked.expression_attribute_values
        if values:
            asked.expression_attribute_values = {name: {kind: name} for name, kind in kinds}
        try:
            made = parse(asked)
        finally:
            asked.expression_attribute_values = values
        return made, tuple(asked.expr_attr_names_found), tuple(asked.expr_attr_values_found)

    @lru_cache(maxsize=200)
    def parsed(condition: str | None, names: str, values: str, own: _Own) -> _Made:
        given = own.parser.expression_attribute_values or {}
        kinds = tuple((name, next(iter(value), "")) for name, value in given.items())
        made, names_found, values_found = made_of(condition, names, kinds, own)
        return _with_values(made, given), names_found, values_found

    def remembered(self: Any) -> Any:
        names, values = repr(self.expression_attribute_names), repr(self.expression_attribute_values)
        made, names_found, values_found = parsed(self.condition_expression, names, values, _Own(self))
        self.expr_attr_names_found, self.expr_attr_values_found = list(names_found), list(values_found)
        return made

    parser.parse = remembered


def _with_values(part: Any, values: dict[str, dict[str, Any]]) -> Any:
    """A copy of a condition in which names of values stand for them, with the values in their places."""
    if isinstance(part, AttributeValue):
        return AttributeValue(values[part.value])
    if isinstance(part, tuple):
        return tuple(_with_values(each, values) for each in part)
    if not isinstance(part, (Op, Func)):
        return part
    twin: Any = object.__new__(type(part))
    twin.__dict__.update({name: _with_values(inner, values) for name, inner in part.__dict__.items()})
    return twin


class _Own:
    """The parser that a condition is parsed by where it is not remembered. All are equal: it is no part of what is asked."""

    def __init__(self, parser: Any) -> None:
        self.parser = parser

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Own)

    def __hash__(self) -> int:
        return 0


def _quick_starts() -> None:
    """moto makes the same 1,300 patterns of addresses each time that it starts: 50 ms, and the tests start it for each of them."""
    enable = MockAWS._enable_patching
    made: list[Any] = []

    def patched(self: MockAWS, reset: bool = True) -> None:
        if not made:
            enable(self, reset)
            made.extend(responses_mock.registered())
            return
        botocore_stubber.enabled = True
        if reset:
            self.reset()
        responses_mock.start()
        for response in made:
            responses_mock.get_registry().add(response)

    MockAWS._enable_patching = patched  # type: ignore[method-assign]


def _quick_copies() -> None:
    """moto copies an item value by value before each update. Texts, numbers and truths are only ever replaced."""
    deeply = DynamoType.__deepcopy__

    def deepcopy(self: DynamoType, memo: dict[int, Any]) -> DynamoType:
        return self if self.type in _PLAIN else deeply(self, memo)

    def copied(self: Item, memo: dict[int, Any]) -> Item:
        twin = object.__new__(type(self))
        twin.hash_key, twin.range_key, twin.attrs = self.hash_key, self.range_key, LimitedSizeDict()
        for name, value in self.attrs.items():
            dict.__setitem__(twin.attrs, name, value if value.type in _PLAIN else deeply(value, memo))
        return twin

    DynamoType.__deepcopy__ = deepcopy  # type: ignore[method-assign]
    Item.__deepcopy__ = copied  # type: ignore[method-assign]


def _quick_values() -> None:
    """moto asks of every value what it is not, before it weighs or compares it. Most are texts and numbers."""
    weigh, equal, hashed = DynamoType.size, DynamoType.__eq__, DynamoType.__hash__

    def size(self: DynamoType) -> int:
        value = self.value
        if self.type in ("S", "N") and type(value) is str:
            return len(value) if value.isascii() else len(value.encode())
        return weigh(self)

    def item_size(self: Item) -> int:
        total = 0
        for name, attribute in self.attrs.items():
            value = attribute.value
            total += len(name) if name.isascii() else len(name.encode())
            plain = attribute.type in ("S", "N") and type(value) is str and value.isascii()
            total += len(value) if plain else attribute.size()
        return total

    def same(self: DynamoType, other: DynamoType) -> bool:
        return self.value == other.value if self.type == "S" and other.type == "S" else equal(self, other)

    def hash_of(self: DynamoType) -> int:
        return hash(("S", self.value)) if self.type == "S" else hashed(self)

    DynamoType.size = size  # type: ignore[method-assign]
    DynamoType.__eq__ = same  # type: ignore[method-assign]
    DynamoType.__hash__ = hash_of  # type: ignore[method-assign]
    Item.size = item_size  # type: ignore[method-assign]


def _copied(node: Any, parent: Any = None) -> Any:
    """A node with copies of all below it; what is no node stays the same one, since nobody changes it."""
    if not _is_node(node):
        return node
    twin = object.__new__(type(node))
    twin.__dict__.update(node.__dict__)
    twin.__dict__.pop("clauses", None)
    twin.parent = parent
    if isinstance(node.children, list):
        twin.children = [_copied(child, twin) for child in node.children]
    return twin


_node_types: dict[type, bool] = {}


def _is_node(thing: Any) -> bool:
    """Whether it is a node: an abstract class looks that up in Python each time."""
    kind = type(thing)
    if kind not in _node_types:
        _node_types[kind] = issubclass(kind, _nodes.Node)
    return _node_types[kind]


def _quick_messages() -> None:
    """moto counts a queue's messages whenever one is sent, and asks a clock of date objects at each. This one is the machine's."""
    slow = _sqs.unix_time_millis

    def millis(when: Any = None) -> Any:
        return time.time() * 1000 if when is None else slow(when)

    _sqs.unix_time_millis = millis
    _sqs.camelcase_to_underscores = lru_cache(maxsize=1000)(utils.camelcase_to_underscores)


def _quick_models() -> None:
    """pynamodb asks a class for every attribute that it has, methods included, three times for each model. Each test makes its
    models anew, and what is looked for stands in the classes' own dictionaries."""
    for name, wanted in (("attributes", Attribute), ("models", Index), ("indexes", Attribute)):

        def members(cls: Any, _: Any, wanted: type = wanted) -> list[tuple[str, Any]]:
            found = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
            return [(name, found[name]) for name in sorted(found) if isinstance(found[name], wanted)]

        setattr(import_module(f"pynamodb.{name}"), "getmembers", members)  # noqa: B010 - not exported there


def _quick_backends() -> None:
    """moto looks at each call whether a service is among those in use, and compares their names one by one. None equals another."""

    def same(self: Any, other: Any) -> bool:
        return self is other

    backends: Any = BackendDict
    backends.__eq__ = same


def _without_machines() -> None:
    """moto's EC2, which its SSM imports, reads all types of machines that there are: a sixth of a second of each start. Nobody
    here starts any."""
    load = _resources.load_resource

    def loaded(file: str) -> Any:
        return {} if file.startswith("ec2/resources/instance_type") else load(file)

    _resources.load_resource = loaded
