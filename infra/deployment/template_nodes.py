"""The text of a template as nodes, so that what CloudFormation's functions say stays as it is where something else is replaced."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KEY_TYPES = ("AWS::KMS::Key", "AWS::KMS::Alias")
KEEPING = ("Retain", "RetainExceptOnCreate")
"""The policies with which a resource stays that leaves its template."""


@functools.lru_cache(maxsize=4)
def resources(text: str) -> dict[str, Any]:
    """The resources of a template by their logical ids. Nobody may change them: they are remembered."""
    return dict(pairs(of(compose(text), "Resources")))


def applies(text: str, logical: str, stage: str) -> bool:
    """Whether a stage has this resource. Raises ValueError for a condition that rests on more than the stage."""
    condition = of(resources(text)[logical], "Condition")
    return condition is None or _holds(_conditions(text)[condition.value], stage)


@functools.lru_cache(maxsize=4)
def _conditions(text: str) -> dict[str, Any]:
    return dict(pairs(of(compose(text), "Conditions")))


def _holds(node: Any, stage: str) -> bool:
    if node.tag == "!Not":
        return not _holds(node.value[0], stage)
    if node.tag == "!Equals" and (values := [_value(each, stage) for each in node.value]).count(None) == 0:
        return values[0] == values[1]
    raise ValueError(f"the condition {node.tag} {node.value} can not be told from the stage")


def _value(node: Any, stage: str) -> str | None:
    if (node.tag, node.value) == ("!Ref", "Stage"):
        return stage
    return None if node.tag.startswith("!") else str(node.value)


def type_of(resource: Any) -> str:
    return str(of(resource, "Type").value)


def policy_of(text: str, logical: str) -> str:
    """What becomes of a resource that leaves this template."""
    return str(getattr(of(resources(text)[logical], "DeletionPolicy"), "value", "Delete"))


def properties_of(resource: Any) -> Any:
    return of(resource, "Properties")


def section(text: str, name: str) -> tuple[str, ...]:
    """The names in a part of a template, such as Parameters."""
    node = of(compose(text), name)
    return () if node is None else tuple(key for key, _ in pairs(node))


def named(node: Any, stage: str) -> str:
    """A name that follows from the stage alone."""
    return str(node.value).replace("${Stage}", stage)


def replaced(text: str, changed: Mapping[str, Mapping[str, Any]]) -> str:
    """The template with these properties of resources in the place of its own; None takes one away."""
    document = compose(text)
    for logical, resource in pairs(of(document, "Resources")):
        if logical in changed:
            properties = properties_of(resource)
            kept = [(key, value) for key, value in properties.value if key.value not in changed[logical]]
            new = compose(json.dumps({name: value for name, value in changed[logical].items() if value is not None}))
            properties.value = [*kept, *new.value]
    return str(yaml.serialize(document))


def retaining(text: str, logical: Collection[str]) -> str:
    """The template with these resources kept, whatever becomes of the stack or the template."""
    document = compose(text)
    for name, resource in pairs(of(document, "Resources")):
        if name in logical:
            kept = [(key, value) for key, value in resource.value if key.value != "DeletionPolicy"]
            resource.value = [*kept, *compose('{"DeletionPolicy": "Retain"}').value]
    return str(yaml.serialize(document))


def joined(base: str | None, text: str, logical: Collection[str]) -> str:
    """`base` with these resources of `text`, and the parameters and conditions that they may need; without a base those alone."""
    document, wanted = compose(text), resources(text)
    if base is not None:
        document = compose(base)
        for part in ("Parameters", "Conditions"):
            _add(document, part, [(k, v) for k, v in pairs(of(compose(text), part) or compose("{}"))])
    own = of(document, "Resources")
    if base is None:
        own.value = []
    _add(document, "Resources", [(name, wanted[name]) for name in logical])
    return str(yaml.serialize(document))


def compose(text: str) -> Any:
    return yaml.compose(text, Loader=_LOADER)


def pairs(node: Any) -> Iterator[tuple[str, Any]]:
    return ((str(key.value), value) for key, value in node.value)


def of(node: Any, name: str) -> Any:
    return next((value for key, value in pairs(node) if key == name), None)


def members(node: Any) -> list[Any]:
    """The members of a list; of one member that stands without a list, that."""
    return node.value if isinstance(node, yaml.SequenceNode) else [node]


def content(node: Any) -> Any:
    """What a node says, however it is written: to compare, functions of CloudFormation too."""
    if isinstance(node, yaml.MappingNode):
        return node.tag, frozenset((key, content(value)) for key, value in pairs(node))
    if isinstance(node, yaml.SequenceNode):
        return node.tag, tuple(map(content, node.value))
    return node.tag, node.value


def plain(node: Any) -> Any:
    """A node without functions of CloudFormation, as Python has it."""
    return None if node is None else yaml.safe_load(yaml.serialize(node))


def _add(document: Any, part: str, added: list[tuple[str, Any]]) -> None:
    if (node := of(document, part)) is None:
        node = compose("{}")
        document.value.append((compose(part), node))
    known = {name for name, _ in pairs(node)}
    node.value = [*node.value, *((compose(name), value) for name, value in added if name not in known)]
