"""An item is read by its key, and stands for the record in it: the two never part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pynamodb.attributes import AttributeContainer
from pynamodb.connection import Connection
from pynamodb.exceptions import AttributeNullError
from pynamodb.models import Model

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.invoices.invoices import ExternalId, Invoice
from chalicelib.domain.invoices.quotes import FiatValue
from chalicelib.domain.transactions.first_signatures import FirstSignature
from chalicelib.settings import Settings
from chalicelib.store import codec
from chalicelib.store.models import Models
from tests.bench.accounting import _size
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


def shortening(models: Models, *, on: bool) -> Models:
    return Models(replace(models._settings, short_records=on), models.connection)


def stored(models: Models, record: object) -> dict[str, Any]:
    return dict(models.item(record).serialize())


def read_before(kind: type, item: Mapping[str, Any], models: Models) -> dict[str, Any]:
    """The fields that the version before this one finds in an item: where there is none, the dataclass's default counts."""
    names = codec.hints(kind)
    read = models.of(kind).from_raw_data(dict(item)).attribute_values
    values = {name: read.get(f"f_{name}") for name in names}
    return {name: value for name, value in values.items() if value is not None or codec.optional(names[name])}


TENANT, ASSET = TenantId("mch_01m84jk2tpgfjjfsgx90x3jhv8:live"), AssetId("live:ethereum:usdt")
PAID = Deposit(
    "tx_v5qscam7tfc661reky463ryyv3", NetworkId("live:ethereum"), ASSET, TENANT, "0x" + "c7" * 32, "log:1234",
    "0x97793Bb92A2709fDB5bb4EbB952BEE4A5883F175", "0x9f492B63d78E5f5Af7B55969d2E59375Cd20475B", 1_234_567_890_123_456_789,
    21_234_567, "0x" + "bc" * 32, 1_795_450_057_140, 1_795_450_057_327, address_id="addr_01m84jk7qpt152m9zr625dsr1y",
    invoice_id="inv_01m84jk7q53pcekg3r2k5ncgzs", worth=FiatValue(("1234567.89", "USD", "coingecko")), part=0, emitted=1,
)  # fmt: skip
CREDITED = replace(PAID, status="confirmed", confirmed_at=1_795_450_057_669, emitted=2, version=2)
HELD_ONE = replace(CREDITED, flags=("grey_listed", "held"), late=True, round=2, spends=("a:1",), version=4)
OWN = replace(CREDITED, tenant=None, address_id=None, invoice_id=None)
OPEN = Invoice("inv_1", TENANT, NetworkId("live:ethereum"), ASSET, "0x9f", "addr_1", 5, 1_795_450_052_325, 1_795_453_652_325)
RECORDS = [PAID, CREDITED, HELD_ONE, OWN, replace(PAID, txid="AB" * 32), OPEN, replace(OPEN, late=3, expired=True)]


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "record", [PAID, CREDITED, HELD_ONE, OWN, replace(PAID, txid="AB" * 32), OPEN, replace(OPEN, late=3, expired=True)]
)
def test_a_short_item_is_read_as_the_whole_record(models: Models, on: bool, record: Any) -> None:
    written = stored(shortening(models, on=on), record)
    for reader in (shortening(models, on=True), shortening(models, on=False)):
        item = reader.of(type(record)).from_raw_data(written)
        assert reader.record(type(record), item) == record
    assert written["version"] == {"N": str(record.version)}, "conditions name it"


@pytest.mark.parametrize("record", RECORDS)
def test_without_the_setting_the_version_before_reads_it_too(models: Models, record: Any) -> None:
    written = stored(shortening(models, on=False), record)
    assert type(record)(**read_before(type(record), written, models)) == record


def test_what_the_archive_keeps_is_whole(models: Models) -> None:
    item = shortening(models, on=True).item(CREDITED, whole=True).serialize()
    for name in ("tenant", "txid", "network", "late", "round", "flags"):
        assert name in item
    assert "late" not in stored(models, CREDITED)


@pytest.mark.parametrize("record", [PAID, CREDITED])
def test_a_payment_leaves_room_in_the_kilobyte_of_a_write_unit(models: Models, record: Deposit) -> None:
    assert _size(stored(shortening(models, on=True), record)) <= 960


@pytest.mark.parametrize("record", RECORDS)
def test_items_are_written_and_read_as_pynamodb_does_it(models: Models, record: Any) -> None:
    """Ours go around its descriptors: what they write and read is the same."""
    item = models.item(record)
    written = AttributeContainer._container_serialize(item)
    assert item._container_serialize() == written
    model = type(item)
    theirs = Model._instantiate.__func__(model, written)
    assert model.from_raw_data(written).attribute_values == theirs.attribute_values == item.attribute_values


def test_what_an_item_lacks_has_its_default_and_what_nobody_knows_is_passed_over(models: Models) -> None:
    raw = {"pk": {"S": "pool#a"}, "sk": {"S": "-"}, "ceiling": {"NULL": True}, "newer": {"S": "of a later version"}}
    raw |= {"count_": {"N": "7"}}  # another attribute that is called as Python calls ours
    for read in (models.counter.from_raw_data(raw), Model._instantiate.__func__(models.counter, raw)):
        assert read.attribute_values == {"pk": "pool#a", "sk": "-", "count_": 0}
    with pytest.raises(ValueError, match="f_unknown"):
        models.of(ExternalId)("a", "b", f_unknown="c")


def test_an_item_without_a_field_that_must_be_there_is_not_written(models: Models) -> None:
    item = models.item(NAMED)
    item.attribute_values.pop("f_invoice_id")
    with pytest.raises(AttributeNullError):
        item._container_serialize()
