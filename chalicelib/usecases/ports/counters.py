"""Counters beside the transactions: one conditional write each, so that many at once do not meet. `store/counters.py` fits it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Counters(Protocol):
    """Numbers of records that have no version and are in no transaction."""

    def up(self, kind: type[Any], key: Mapping[str, str], name: str, most: int, **sets: int) -> bool:
        """Add one to the number `name` of the record of `kind` with this key, and set the numbers `sets`; False, and nothing done,
        where it is `most` already. Raises Unavailable."""
        ...

    def down(self, kind: type[Any], key: Mapping[str, str], name: str) -> None:
        """Take one back. Raises Unavailable."""
        ...
