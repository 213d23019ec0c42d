"""An item is read by its key, and stands for the record in it: the two never part."""

from __future__ import annotations

import pytest
from pynamodb.connection import Connection

from chalicelib.domain.ids import TenantId
from chalicelib.domain.invoices.invoices import ExternalId
from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.settings import Settings
from chalicelib.store.models import Models
from tests.support.alarms import raised

SIGNED = FirstSignature("ord_1", "id", 1)
NAMED = ExternalId(TenantId("mch_1:test"), "a", "inv_1")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setattr(Connection, "get_meta_table", lambda *_: None)
    return Models(Settings(stage="test"), Connection(region="eu-central-1"))


@pytest.mark.parametrize("record", [SIGNED, NAMED])
def test_an_item_is_read_as_the_record_that_it_stores(models: Models, record: object) -> None:
    assert models.record(type(record), models.item(record)) == record


@pytest.mark.parametrize(
    ("record", "pk", "sk"),
    [(SIGNED, "signed#ord_2", "-"), (SIGNED, "signed#ord_1", "x"), (NAMED, "ext#mch_2:test", "a"), (NAMED, "ext#mch_1:test", "b")],
)
def test_a_record_in_the_place_of_another_one_is_not_read(
    models: Models, record: object, pk: str, sk: str, caplog: pytest.LogCaptureFixture
) -> None:
    item = models.item(record)
    item.pk, item.sk = pk, sk
    with pytest.raises(LookupError, match="is another one's"):
        models.record(type(record), item)
    (alarm,) = raised(caplog)
    assert f"{pk} / {sk}" in alarm
