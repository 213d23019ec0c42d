"""A scan goes on behind each page, and a page may be empty: a scan ends where DynamoDB names no key to go on behind."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb.connection import Connection

from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.invoices import ExternalId
from chalicelib.settings import Settings
from chalicelib.store import scans
from chalicelib.store.models import Models

NAMES = [ExternalId(TenantId("mch_1:test"), name, f"inv_{name}") for name in "abc"]
ELSE = {"pk": {"S": "inset#mch_1:test"}, "sk": {"S": "-"}}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setattr(Connection, "get_meta_table", lambda *_: None)
    return Models(Settings(stage="test"), Connection(region="eu-central-1"))


class Pages:
    """Answers Scan with one page after the other; `asked` has the keys that it was to go on behind."""

    def __init__(self, *pages: list[dict[str, Any]]) -> None:
        self.pages, self.asked = list(pages), list[Any]()

    def __call__(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        assert (operation, request["ConsistentRead"]) == ("Scan", True)
        self.asked.append(request.get("ExclusiveStartKey"))
        page = self.pages.pop(0)
        return {"Items": page, **({"LastEvaluatedKey": {"n": len(self.pages)}} if self.pages else {})}


def test_empty_pages_end_nothing(models: Models) -> None:
    first, second, third = (models.item(name).serialize() for name in NAMES)
    call = Pages([first, second], [], [third])
    assert list(scans.items(call, "t")) == [first, second, third]
    assert call.asked == [None, {"n": 2}, {"n": 1}]


def test_the_records_of_the_kinds_that_were_asked_for(models: Models) -> None:
    first, second, third = (models.item(name).serialize() for name in NAMES)
    assert scans.every_of(models, Pages([first, ELSE], [], [second, third]), [ExternalId]) == {ExternalId: NAMES}
