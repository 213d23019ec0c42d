"""Answers about creations that are tried again: about what is stored in the end, and stored under the key where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chalicelib.api.idempotency import Once
from chalicelib.api.rendering import Answer
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.idempotency import StoredAnswer
from chalicelib.usecases.ports.changes import Change, Conflict, Save

NOW = 1_790_000_000_000


class Store:
    """Refuses the first commits; has no answer."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.tried: list[Sequence[Change]] = []

    def get(self, kind: type[Any], **key: str) -> None:
        assert kind is StoredAnswer

    def commit(self, changes: Sequence[Change]) -> None:
        self.tried.append(changes)
        if len(self.tried) <= self.refusals:
            raise Conflict(changes[0])


def once(store: Store, key: str | None, expired_version: int = 0) -> Once:
    about = {"services": SimpleNamespace(store=store), "tenant": "mch_a:live", "now_ms": NOW, "request_hash": "h"}
    request = SimpleNamespace(**about, plain_key="", idempotency_key=key, expired_version=expired_version)
    return Once(cast(Any, request), lambda made: Answer(made, status=201, text=f"about {made}"))


def creation(store: Store, tries: list[str], stored: str | None = None) -> Creation[str]:
    names = iter(tries)

    def refused(conflict: Conflict) -> str:
        if stored is None or len(cast(Store, store).tried) < len(tries):
            raise conflict
        return stored

    def prepare() -> Prepared[str]:
        return Prepared(next(names), [Save(StoredAnswer("mch_a:live", "record", "", 0, "", 0, 0))], refused)  # type: ignore[arg-type]

    return Creation(cast(Any, store), prepare)


@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_the_answer_is_about_the_try_that_was_committed(refusals: int) -> None:
    store = Store(refusals)
    assert (
        once(store, None).create(creation(store, ["first", "second", "third"])).text
        == f"about {('first', 'second', 'third')[refusals]}"
    )


def test_the_answer_is_about_an_earlier_try_that_turns_out_to_be_stored() -> None:
    store = Store(2)
    assert once(store, None).create(creation(store, ["first", "second"], stored="first")).text == "about first"


def test_a_second_try_stores_its_answer_where_the_expired_one_was_removed_meanwhile() -> None:
    """DynamoDB removes it at a moment of its own (TTL), between the read of the request and its commit."""
    store = Store(1)
    once(store, "k", expired_version=3).create(creation(store, ["first", "second"]))
    rows = [cast(Save, changes[-1]).record for changes in store.tried]
    assert [(row.version, row.body) for row in rows] == [(4, "about first"), (1, "about second")]
