"""Records in a state that only a newer version of the service knows: they are left to that version, and others go on.

The store refuses to save them and to close their work. What is sent without saving anything asks here first.

A list of records is read by `known_of`, or by `each_of` where None would be taken for a record that is gone, or where what the
record holds (a nonce, coins, credited money) has to stay held; by `each_readable` where an archived one, whose object can be lost,
may be among them. `Store.get_many`, which fails as a whole, is right where nothing may be decided without one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.domain.versions import newer_state
from chalicelib.usecases.ports.failures import TooNew, Unavailable
from chalicelib.usecases.ports.store import Store

log = logging.getLogger(__name__)


def demand_known(*records: Any) -> None:
    """Raises TooNew, with an alarm, where one of `records` is in a state that only a newer version knows. None is no record."""
    for record in records:
        state = None if record is None else newer_state(record)
        if state is not None:
            what = f"{type(record).__name__} {record.id}"
            log.error("ALARM the %s needs a newer version of the service: it has the state %s", what, state)
            raise TooNew(f"the {what} has the state {state}, which this version does not know")


def each_of(store: Store, wanted: Sequence[tuple[type[Any], Mapping[str, str]]]) -> list[Any]:
    """As `Store.get_many`, with the TooNew itself in the place of a record in a form that only a newer version knows: each was
    reported. Where there is none, it costs what `get_many` costs; else the rest is read again, by halves. Raises Unavailable."""
    return _each(store, wanted, TooNew)


def each_readable(store: Store, wanted: Sequence[tuple[type[Any], Mapping[str, str]]]) -> list[Any]:
    """The same, with whatever keeps a record from being read in its place, such as NotKept. Raises Unavailable."""
    return _each(store, wanted, Exception)


def _each(store: Store, wanted: Sequence[tuple[type[Any], Mapping[str, str]]], told: type[Exception]) -> list[Any]:
    try:
        return store.get_many(wanted)
    except Unavailable:
        raise
    except told as error:
        if len(wanted) == 1:
            return [error]
    half = len(wanted) // 2
    return [*_each(store, wanted[:half], told), *_each(store, wanted[half:], told)]


def known_of(store: Store, wanted: Sequence[tuple[type[Any], Mapping[str, str]]]) -> list[Any]:
    """The same, with None in the place of such a record. Raises Unavailable."""
    return [None if isinstance(found, TooNew) else found for found in each_of(store, wanted)]
