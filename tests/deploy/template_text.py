"""How tests read the text of infra/template.yaml."""

from __future__ import annotations

from typing import Any

import yaml


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads the short forms of CloudFormation's functions: `!Ref X` as {"Ref": "X"}, `!Sub X` as {"Fn::Sub": "X"}."""


def _function(loader: Loader, tag: str, node: Any) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {tag if tag == "Ref" else f"Fn::{tag}": value}


Loader.add_multi_constructor("!", _function)
