"""Payments' items without what need not be in them: a write unit pays for a kilobyte, and one byte more costs another.

Left out of the kinds that `schema.Kind.brief` marks is a field that has its default: every version reads the default where an
item has no such field. So a default of theirs never changes (`tests/deploy/frozen_names.json` has them).

Left out of those that `schema.Kind.repeated` names, where the setting SHORT_RECORDS says so, is what another attribute of the item
tells: an index's attributes have the merchant and the hash as well. A version that does not know this fails at such a record, and
leaves it as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

from chalicelib.store import codec
from chalicelib.store.schema import where_is


def may_be_absent(kind: type) -> frozenset[str]:
    """The fields of `kind` that an item may be without, beside those that may be None."""
    return frozenset({*_defaults(kind), *where_is(kind).repeated})


def shortened(kind: type, values: Mapping[str, Any], *, repeated: bool) -> dict[str, Any]:
    """The attributes of an item of `kind` without its defaults; with `repeated` also without what its other attributes tell."""
    defaults, told = _defaults(kind), where_is(kind).repeated if repeated else {}
    left_out = {f"f_{name}" for name, default in defaults.items() if values.get(f"f_{name}") == default}
    left_out |= {f"f_{name}" for name, tell in told.items() if values.get(f"f_{name}") == tell(values)}
    return {name: value for name, value in values.items() if name not in left_out}


@cache
def _defaults(kind: type) -> Mapping[str, Any]:
    """The defaults that are read where an item has no such field: None is read of a field that may be None. The version is what
    conditions name."""
    if not where_is(kind).brief:
        return {}
    found = {field.name: field.default for field in dataclasses.fields(kind) if field.default is not dataclasses.MISSING}
    hints = codec.hints(kind)
    return {name: default for name, default in found.items() if name != "version" and not codec.optional(hints[name])}
