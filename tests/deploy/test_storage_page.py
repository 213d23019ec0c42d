"""docs/storage.md: which functions use a table is what their policies say, and its keys are those of the store."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from chalicelib.domain.invoices.totals import SHARDS
from chalicelib.domain.work import WorkKind
from chalicelib.settings import TABLES
from chalicelib.store.indexes import INDEXES
from chalicelib.store.schema import ONE_ITEM_ROWS, RECORDS, name_key
from infra.deploy import TEMPLATE
from infra.policies import FUNCTIONS
from tests.deploy.frozen import shape

PAGE = (TEMPLATE.parents[1] / "docs" / "storage.md").read_text(encoding="utf-8")
ROWS = {cells[1]: cells[3] for line in PAGE.splitlines() if len(cells := [c.strip() for c in line.split("|")]) == 5}
BESIDE = {"pool", "invhook", ONE_ITEM_ROWS, name_key("")[0].rstrip("#")}
"""Beginnings of keys that no record's type has: counters, stubs' names, and second places of a type's rows."""


def names(text: str) -> list[str]:
    return [name.strip(" `").lower() for name in text.split(",") if name.strip()]


def functions(text: str) -> set[str]:
    """The functions that a list of names means."""
    if text.startswith("all but "):
        return set(FUNCTIONS) - functions(text.removeprefix("all but "))
    (money,) = re.findall(r"\*Money\* means (.*?);", " ".join(PAGE.split()))
    short = {"money": set(names(money.replace(" and ", ", "))), "deliver": {"deliver", "deliver_slow"}}
    found = set().union(*(short.get(name, {name}) for name in names(text)))
    assert found <= set(FUNCTIONS), found - set(FUNCTIONS)
    return found


@pytest.mark.parametrize("table", TABLES)
def test_who_uses_a_table_is_who_may(table: str) -> None:
    whole, _, part = ROWS[table].partition("in part ")
    may = {name for name, rights in FUNCTIONS.items() if table in rights.tables}
    assert functions(whole.rstrip("; ")) == may
    assert functions(part) - may == {n for n, r in FUNCTIONS.items() if table in r.only} - may


def test_every_key_is_on_the_page_and_no_other() -> None:
    told = set(re.findall(r"`(\w+)#", PAGE))
    known = {shape(kind.pk).partition("#")[0] for kind in RECORDS.values()}
    assert known <= told
    assert told <= known | BESIDE | set(get_args(WorkKind)) | {family for family, _ in INDEXES} | {"hot"}
    assert f"invoice sums {SHARDS} shards" in " ".join(PAGE.split())
