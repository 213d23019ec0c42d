"""What a newer version of the service put into an item stays there, whatever this version stores over it."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pynamodb.connection import Connection

from chalicelib.domain.addresses.addresses import OnChain
from chalicelib.domain.ids import AssetId, NetworkId, TenantId
from chalicelib.domain.invoices.invoices import ExternalId, Invoice, Payment
from chalicelib.domain.invoices.quotes import Quote
from chalicelib.domain.invoices.terms import Terms
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.webhooks.endpoints import event_record
from chalicelib.domain.webhooks.events import Event
from chalicelib.domain.work import OutboxRow
from chalicelib.settings import Settings
from chalicelib.store import archive, codec, commit, newer, schema
from chalicelib.store.models import Models
from chalicelib.store.newer import attributes_after, with_unknown
from chalicelib.usecases.ports.changes import Delete, DeleteEmpty, Save
from chalicelib.usecases.ports.failures import TooNew
from tests.support.alarms import raised

PAYMENTS = tuple(Payment(f"tx_{n}", f"0x{n}", n, n) for n in range(3))
OPEN = Invoice(
    id="inv_1",
    tenant=TenantId("mch_1:test"),
    network=NetworkId("test:ethereum"),
    asset=AssetId("test:ethereum/eth"),
    address="0x1",
    address_id="adr_1",
    amount=5,
    created_at=1,
    expires_at=2,
    payments=PAYMENTS,
    terms=Terms(tolerance_percent="1"),
    version=3,
)


USE_CASES = Path(commit.__file__).parents[1] / "usecases"
NAMED = ExternalId(TenantId("mch_1:test"), "a", "inv_1")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setattr(Connection, "get_meta_table", lambda *_: None)
    return Models(Settings(stage="test"), Connection(region="eu-central-1"))


def read(models: Models, item: dict[str, Any], kind: type = Invoice) -> Any:
    return models.record(kind, models.of(kind).from_raw_data(item))


def stored_by_next(models: Models, record: Any = OPEN) -> dict[str, Any]:
    """The item of `record` as a newer version stores it: a field more, and a member more of its nested values."""
    item = models.item(record).serialize()
    item["mood"] = {"S": "calm"}
    payments = [{**payment, "seen": payment["deposit"]} for payment in json.loads(item["payments"]["S"])]
    return {
        **item,
        "payments": {"S": json.dumps(payments)},
        "terms": {"S": json.dumps({**json.loads(item["terms"]["S"]), "more": {"a": 1}})},
    }


def over(models: Models, record: Any) -> dict[str, Any]:
    """What is set, and None of what is removed, when `record` is stored over its version before."""
    return attributes_after(models.over(record))


def nested(attribute: dict[str, Any]) -> Any:
    return json.loads(attribute["S"])


def test_an_update_sets_what_is_there_and_removes_what_is_not(models: Models) -> None:
    before = read(models, stored_by_next(models))
    asked = models.over(replace(before, version=4, description="x", address=None))
    after = attributes_after(asked)
    assert after["mood"] == {"S": "calm"}  # an invoice may be a stub by now, which has none of it
    assert (after["description"], after["version"], after["address"]) == ({"S": "x"}, {"N": "4"}, None)
    assert after["asset_pk"] is None  # of an index that has it no more
    assert asked["Key"] == {"pk": {"S": "inv#mch_1:test"}, "sk": {"S": "inv_1"}}
    place = asked["ConditionExpression"].split(" = ")[0]
    assert asked["ExpressionAttributeNames"][place] == "version"
    assert asked["ExpressionAttributeValues"][":before"] == {"N": "3"}


def test_an_update_names_nothing_that_this_version_does_not_know(models: Models) -> None:
    item = models.item(NAMED).serialize() | {"mood": {"S": "calm"}}
    assert read(models, item, ExternalId) == NAMED
    assert over(models, replace(NAMED, version=2)).keys() == item.keys() - {"pk", "sk", "mood"}


def test_members_stay_in_what_is_changed(models: Models) -> None:
    before = read(models, stored_by_next(models))
    assert before == OPEN
    confirmed = replace(PAYMENTS[1], confirmed=True)
    after = over(models, replace(before, version=4, payments=(PAYMENTS[0], confirmed, Payment("tx_9", "0x9", 9, None))))
    assert nested(after["terms"])["more"] == {"a": 1}
    assert [payment.get("seen") for payment in nested(after["payments"])] == ["tx_0", "tx_1", None]
    assert nested(after["payments"])[1]["confirmed"] is True


def test_members_stay_over_several_saves(models: Models) -> None:
    record = read(models, stored_by_next(models))
    for version in range(4, 8):
        record = replace(record, version=version, description=str(version))
        after = over(models, record)
        assert nested(after["terms"])["more"] == {"a": 1}
        assert [payment["seen"] for payment in nested(after["payments"])] == ["tx_0", "tx_1", "tx_2"]


@pytest.mark.parametrize("version", [3, 4, 8])
def test_what_is_read_counts_and_not_what_was_remembered(models: Models, version: int) -> None:
    """Another writer was first, to whom these parts are as unknown as to this one, and did not keep them."""
    over(models, replace(read(models, stored_by_next(models)), version=4))
    there = read(models, models.item(replace(OPEN, version=version)).serialize())
    assert "more" not in nested(over(models, replace(there, version=version + 1))["terms"])


def test_a_save_that_was_lost_begins_again_with_what_was_there(models: Models) -> None:
    before = read(models, stored_by_next(models))
    for _ in range(2):
        assert nested(over(models, replace(before, version=4, description="x"))["terms"])["more"] == {"a": 1}


class Sent:
    """In the place of pynamodb's transaction."""

    def __init__(self, **_: object) -> None:
        self.puts: list[tuple[dict[str, Any], str]] = []
        self.deleted: list[object] = []

    def save(self, item: Any, condition: Any) -> None:
        self.puts.append((item.serialize(), str(condition)))

    def delete(self, item: Any, condition: Any = None) -> None:
        self.deleted.append(str(condition))

    @property
    def _delete_items(self) -> list[object]:
        return self.deleted


def test_a_save_anew_is_a_record_of_something_else(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "TransactWrite", Sent)
    plan: Any = commit._Plan(models, "token", None, 0, apart=True)
    commit._save(plan, Save(replace(read(models, stored_by_next(models)), version=4), anew=True))
    ((item, condition),) = plan.transaction.puts
    assert "mood" not in item
    assert "more" not in nested(item["terms"])
    assert condition == "version = {'N': '3'}"


def test_a_field_that_is_emptied_is_removed_with_its_members(models: Models) -> None:
    before = read(models, stored_by_next(models))
    after = over(models, replace(before, version=4, terms=None, payments=()))
    assert after["terms"] is None
    assert after["payments"] in (None, {"S": "[]"})


def test_where_some_was_forgotten_the_item_is_read_anew(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newer, "MOST", 2)
    asked: list[Any] = []

    class Client:
        def _make_api_call(self, operation: str, arguments: Any) -> Any:
            asked.append((operation, arguments["Key"]["sk"]["S"], arguments["ConsistentRead"]))
            return {"Item": stored_by_next(models, replace(OPEN, id=arguments["Key"]["sk"]["S"]))}

    monkeypatch.setattr(Connection, "client", Client())
    records = [read(models, stored_by_next(models, replace(OPEN, id=f"inv_{n}"))) for n in range(3)]
    for record in records:
        assert nested(over(models, replace(record, version=4))["terms"])["more"] == {"a": 1}
    assert ("GetItem", "inv_0", True) in asked


def test_the_archive_keeps_them_and_gives_them_back(models: Models) -> None:
    before = read(models, stored_by_next(models))
    kept = models.kept(before)
    assert kept["mood"] == {"S": "calm"}
    assert nested(kept["terms"])["more"] == {"a": 1}

    elsewhere = Models(models._settings, models.connection)
    elsewhere.whole = lambda kind, name, pk, sk: read(elsewhere, kept, kind)
    stub = {"pk": kept["pk"], "sk": kept["sk"], "archive": {"S": "name"}, "version": {"N": "3"}}
    restored = read(elsewhere, stub)
    after = over(elsewhere, replace(restored, version=4, archives=("name",)))
    assert after["mood"] == {"S": "calm"}
    assert after["archive"] is None
    assert nested(after["terms"])["more"] == {"a": 1}


def test_an_attribute_of_bytes_lies_in_the_archive(models: Models) -> None:
    kept = {"a": {"B": b"\x00\xff"}, "b": {"M": {"c": {"B": b""}}}}
    assert json.loads(json.dumps(kept, default=archive._as_json), object_hook=archive._from_json) == kept


def test_a_row_that_a_newer_version_says_more_of_is_not_removed(models: Models) -> None:
    row = WalletBalance(OPEN.network, "0x1", OPEN.asset)
    item = models.item(row).serialize()
    for more, kept in (({}, False), ({"lent": {"N": "5"}}, True), ({}, False)):
        assert read(models, {**item, **more}, WalletBalance) == row
        plan = commit._Plan(models, "token", None, 0, apart=True)
        commit._put_in(plan, DeleteEmpty(row))
        assert (plan.owners[1] == []) is kept


def test_a_state_of_a_newer_version_stays(models: Models) -> None:
    before = read(models, {**models.item(OPEN).serialize(), "status": {"S": "resting"}})
    assert before.status == "resting"
    assert over(models, replace(before, version=4, description="x"))["status"] == {"S": "resting"}


def test_a_form_that_is_not_known_is_refused(
    models: Models, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    item = {**models.item(OPEN).serialize(), "s": {"N": "1"}}
    with pytest.raises(TooNew, match="Invoice at inv#mch_1:test / inv_1 has the form 1"):
        read(models, item)
    (alarm,) = raised(caplog)
    assert "inv#mch_1:test / inv_1 needs a newer version of the service" in alarm
    for writes, stored in ((0, None), (1, {"N": "1"})):
        monkeypatch.setitem(schema.RECORDS, "Invoice", replace(schema.RECORDS["Invoice"], understands=1, writes=writes))
        later = Models(models._settings, models.connection)
        assert read(later, item) == OPEN
        assert over(later, replace(OPEN, version=4))["s"] == stored  # it is stored in the form of this version
        with pytest.raises(TooNew, match="has the form 2"):
            read(later, {**item, "s": {"N": "2"}})


def test_no_version_writes_what_it_does_not_read() -> None:
    assert all(kind.writes <= kind.understands for kind in schema.RECORDS.values())


def test_what_is_added_to_without_being_read_has_one_form() -> None:
    """Nobody would see that it has another one."""
    added = set(re.findall(r"\b(?:Add|Take)\(([A-Z]\w+)", "".join(path.read_text() for path in USE_CASES.rglob("*.py"))))
    assert added >= {"InvoiceTotals", "LinkStock"}
    assert all(schema.RECORDS[name].understands == 0 for name in {*added, "WalletBalance"})


def test_what_is_removed_has_a_form_that_is_known(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "TransactWrite", Sent)
    plan: Any = commit._Plan(models, "token", None, 0, apart=True)
    for form in (0, 1):
        monkeypatch.setitem(schema.RECORDS, "ExternalId", replace(schema.RECORDS["ExternalId"], understands=form))
        commit._put_in(plan, Delete(ExternalId, {"tenant": NAMED.tenant, "value": NAMED.value}))
    assert plan.transaction.deleted == ["attribute_not_exists (s)", "(attribute_not_exists (s) OR s <= {'N': '1'})"]


def test_what_replaces_a_thing_does_not_get_its_members() -> None:
    hint = codec.hints(Invoice)["usd"]
    quote = codec.plain(Quote("USD", "1", 2, 1, "kraken"))
    before = {**quote, "note": "of one"}
    assert with_unknown(hint, before, {**quote, "source": "x"}) == {**quote, "source": "x", "note": "of one"}
    assert with_unknown(hint, before, {**quote, "at": 2}) == {**quote, "at": 2}


def test_elements_that_one_member_does_not_tell_apart() -> None:
    x, y = (OnChain("A", AssetId(f"test:ethereum:{coin}"), 1) for coin in ("x", "y"))
    hint = tuple[OnChain, ...]
    before = [{**codec.plain(each), "note": each.asset} for each in (x, y)]
    changed = codec.plain(replace(y, units=7))
    assert with_unknown(hint, before, [changed]) == [{**changed, "note": y.asset}]
    twice = [{**codec.plain(x), "note": n} for n in range(2)]
    assert with_unknown(hint, twice, [codec.plain(replace(x, units=7))]) == [codec.plain(replace(x, units=7))]


members = st.dictionaries(st.sampled_from(("new", "newer")), st.integers() | st.lists(st.text(max_size=3), max_size=2), min_size=1)


@given(added=st.lists(members, max_size=5), data=st.data())
def test_elements_keep_theirs_whatever_goes_comes_moves_and_changes(added: list[dict[str, Any]], data: st.DataObject) -> None:
    payments = [Payment(f"tx_{n}", f"0x{n}", n, n) for n in range(len(added))]
    hint = codec.hints(Invoice)["payments"]
    before = [{**codec.plain(payment), **more} for payment, more in zip(payments, added, strict=True)]
    left = data.draw(st.permutations(range(len(added))))[data.draw(st.integers(0, len(added))) :]
    changed = {n: replace(payments[n], confirmed=data.draw(st.booleans())) for n in left}
    come = [Payment(f"tx_9{n}", "0x", n, None) for n in range(data.draw(st.integers(0, 2)))]
    now = data.draw(st.permutations([*changed.values(), *come]))
    found = with_unknown(hint, before, [codec.plain(each) for each in now])
    theirs = {payments[n].deposit: added[n] for n in left}
    assert found == [{**codec.plain(each), **theirs.get(each.deposit, {})} for each in now]
    assert codec.shaped(hint, found) == tuple(now)


@pytest.mark.parametrize("packed", [False, True])
def test_an_event_says_what_a_newer_version_said_of_it(models: Models, packed: bool) -> None:
    """A relay of this version tells it, and does not know the member."""
    models._settings = Settings(stage="test", packed_records=packed)
    event = Event("evt_1", OPEN.tenant, "invoice.created", "inv_1", 1, 5, {"id": "inv_1"})
    item = models.item(OutboxRow("out_1", 5, (event,))).serialize()
    (mine,) = json.loads(zlib.decompress(item["packed"]["B"]) if packed else item["events"]["S"])
    assert "more" not in mine
    text = json.dumps([{**mine, "trace": {"hops": [1, {"at": 2.0}]}, "timestamp": "of another"}])
    if packed:
        item["packed"]["B"] = zlib.compress(text.encode())
    else:
        item["events"]["S"] = text
    (told,) = read(models, {**item, "mood": {"S": "calm"}}, OutboxRow).events
    assert told == replace(event, more={"trace": {"hops": [1, {"at": 2.0}]}, "timestamp": "of another"})
    assert event_record(told, "2026-01-02", 5).body == (
        '{"id":"evt_1","event":"invoice.created","data":{"id":"inv_1"},"timestamp":"2026-01-02","sequence":1,"trace":{"hops":[1,{"at":2}]}}'
    )
    (again,) = json.loads(models.of(OutboxRow).f_events.serialize((told,)))
    assert again == json.loads(text)[0]
    assert event_record(event, "x", 5).body == event_record(replace(event, more={}), "x", 5).body
