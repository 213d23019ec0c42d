"""A model that is a copy of an earlier one stores and reads as that does, on the connection that it was made for."""

from __future__ import annotations

from pynamodb.connection import Connection

from chalicelib.domain.catalogue.rates import Rate
from chalicelib.domain.webhooks.endpoints import EventRecord
from chalicelib.settings import Settings
from chalicelib.store.models import Models
from infra.local.repairs.models import repair_models


def models(stage: str = "test") -> Models:
    repair_models()
    return Models(Settings(stage=stage), Connection(region="eu-central-1"))


def test_each_has_its_own_connection() -> None:
    first, second = models(), models()
    for kind in (EventRecord, Rate):
        one, other = first.of(kind), second.of(kind)
        assert one is not other
        assert one._get_connection().connection is first.connection
        assert other._get_connection().connection is second.connection
        assert (one._attributes, one._hash_keyname) == (other._attributes, other._hash_keyname)


def test_another_stage_has_tables_of_its_own() -> None:
    tables = {models(stage).of(EventRecord)._get_connection().table_name for stage in ("test", "dev", "test")}
    assert len(tables) == 2 and all("test" in table or "dev" in table for table in tables)


def test_a_copy_writes_what_a_first_one_writes() -> None:
    rate = Rate("eth", "usd", "3000", 1, "here")
    first, second = models(), models()
    assert first.item(rate).to_simple_dict() == second.item(rate).to_simple_dict()
    assert second.record(Rate, second.item(rate)) == rate
