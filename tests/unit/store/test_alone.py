"""Records that are put without a transaction: BatchWriteItem may leave some of them, or all, to be sent again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from chalicelib.store import alone
from chalicelib.usecases.ports.failures import Unavailable


class Table:
    """Takes the first `takes` items of each round trip, and answers with the others, as DynamoDB does where it is throttled."""

    def __init__(self, *takes: int) -> None:
        self.takes, self.stored, self.asked = list(takes), list[str](), list[int]()

    def __call__(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert operation == "BatchWriteItem"
        puts = [put for several in arguments["RequestItems"].values() for put in several]
        self.asked.append(len(puts))
        taken = self.takes.pop(0) if len(self.takes) > 1 else self.takes[0]
        self.stored += [put["PutRequest"]["Item"]["pk"] for put in puts[:taken]]
        return {"UnprocessedItems": {"t": puts[taken:]}} if puts[taken:] else {}


def items(count: int) -> list[Any]:
    return [("t", {"PutRequest": {"Item": {"pk": str(n)}}}) for n in range(count)]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(alone.time, "sleep", found.append)
    return found


def test_what_is_left_is_sent_again_and_all_is_stored_once(pauses: list[float]) -> None:
    table = Table(20, 0, 7, 25)
    alone.write_all(table, items(60))
    assert sorted(table.stored, key=int) == [str(n) for n in range(60)]
    assert max(table.asked) == 25 and len(pauses) == 3


def test_a_long_list_that_is_throttled_all_the_way_is_never_paused_for_long(pauses: list[float]) -> None:
    alone.write_all(table := Table(20), items(1000))
    assert len(table.stored) == 1000 and max(pauses) <= 0.02


def test_tables_that_take_nothing_are_given_up(pauses: list[float]) -> None:
    with pytest.raises(Unavailable, match="throttled"):
        alone.write_all(Table(0), items(3))
    assert len(pauses) < 6 and sum(pauses) < 2


def test_nothing_else_is_put_over_what_a_newer_version_may_have_stored() -> None:
    """Events and hints say nothing that does not follow from their row, or their key; an event is never saved over its version
    before. Everything else is an update of what this version knows, or a put where nothing is."""
    root = Path(alone.__file__).parents[1]
    shape = re.compile(r"\.put_all\(|anew=False\)|PutRequest|Save\(event\)|next_version\(event")
    found = {
        (str(path.relative_to(root)), words)
        for path in root.rglob("*.py")
        for words in shape.findall(path.read_text(encoding="utf-8"))
    }
    assert found == {
        ("usecases/webhooks/relay.py", ".put_all("),
        ("usecases/webhooks/test_event.py", "Save(event)"),  # a new one
        ("store/unheard.py", "anew=False)"),
        ("store/dynamo.py", "PutRequest"),
    }
