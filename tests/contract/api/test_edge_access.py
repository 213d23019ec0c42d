"""Keys in the store: one call lets a request in, and counts exactly, however many come at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import MerchantId
from chalicelib.domain.merchants.merchants import Tally
from chalicelib.store.access import Access
from chalicelib.usecases.merchants.access import SOURCES, Asked, alive, issue_key, source_number
from chalicelib.usecases.ports.changes import Conflict, Enforce, Save
from chalicelib.wiring import services
from tests.support.edge import PREPARED

SHOP = MerchantId("mch_shop")
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOON = 1_700_000_000_000 // DAY * DAY + DAY // 2
"""The first millisecond of a minute, an hour, and not of a day."""


@pytest.fixture
def access(aws) -> Access:
    client = boto3.client("dynamodb", config=Config(max_pool_connections=32, parameter_validation=False))
    return Access(client, aws.settings.table("tenants"))


def stored(access: Access, **wanted: Any):
    key, plain = issue_key(
        **{"merchant": SHOP, "realm": "test", "level": "client", "name": "n", "permissions": ["read-only"], "now_ms": NOON} | wanted
    )
    services().api_keys.add(key)
    return key, plain


def admit(access: Access, key, now_ms: int = NOON, rate_class: Any = "standard"):
    return access.admit(key.hash, key.realm, rate_class, now_ms)


def counted(access: Access) -> list[str]:
    calls: list[str] = []
    access._client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
    return calls


def raw(access: Access, key) -> dict[str, Any]:
    return access._client.get_item(TableName=access._table, Key={"pk": {"S": f"key#{key.hash}"}, "sk": {"S": "-"}})["Item"]


def test_the_record_comes_back_as_it_was(access):
    for wanted in (
        {},
        {"realm": "live", "level": "admin", "enterprise": True, "ip_whitelist": ["10.0.0.0/8", "::1"]},
        {"rate_limit": 3, "daily_limit": 9, "expires_at": NOON + 5},
        {"permissions": []},
    ):  # fmt: skip
        key, _ = stored(access, **wanted)
        assert services().api_keys.get(key.tenant, key.id) == key
        admission = admit(access, key)
        assert admission is not None
        assert admission.key == key


def test_the_key_itself_is_nowhere_in_the_table(access):
    _, plain = stored(access)
    everything = repr(access._client.scan(TableName=access._table)["Items"])
    assert plain not in everything
    assert plain[12:] not in everything


def test_the_same_key_is_not_stored_twice(access):
    key, _ = stored(access)
    with pytest.raises(Conflict):
        services().api_keys.add(key)


def test_an_unknown_key_is_none_and_leaves_nothing_behind(access):
    key, _ = issue_key(merchant=SHOP, realm="test", level="client", name="n", permissions=[], now_ms=NOON)
    assert admit(access, key) is None
    assert access._client.scan(TableName=access._table)["Count"] == 0


def test_one_call_lets_in_also_when_every_window_begins_anew(access):
    key, _ = stored(access)
    calls = counted(access)
    for now in (NOON, NOON + 1, NOON + MINUTE, NOON + HOUR, NOON + DAY):
        admit(access, key, now)
    assert calls == ["UpdateItem"] * 5


def test_usage_shows_the_window_with_the_least_left_and_of_equals_the_longer_one(access):
    key, _ = stored(access, rate_limit=10, daily_limit=25)
    usages = [admit(access, key, NOON + MINUTE * (n // 10)).usage for n in range(21)]
    shown = [(usage.window.name, usage.remaining, usage.reset_at - NOON // 1000) for usage in usages]
    assert shown[0] == ("minute", 9, 60)
    assert shown[9] == ("minute", 0, 60)
    assert shown[10] == ("minute", 9, 120)
    assert shown[20] == ("day", 4, 43_200)
    even, _ = stored(access, rate_limit=10, daily_limit=10)
    assert admit(access, even).usage.window.name == "day"


def test_the_limit_is_reached_and_a_refused_request_is_not_counted(access):
    key, _ = stored(access, rate_limit=3)
    assert [admit(access, key).exhausted for _ in range(3)] == [None] * 3
    before = raw(access, key)
    refused = [admit(access, key, NOON + 59_999) for _ in range(5)]
    assert all(r.exhausted.window.name == "minute" and r.exhausted.reset_at == NOON // 1000 + 60 for r in refused)
    assert raw(access, key) == before
    assert admit(access, key, NOON + MINUTE).exhausted is None


def test_of_several_full_windows_the_one_that_frees_last_is_named(access):
    key, _ = stored(access, rate_limit=2, daily_limit=2)
    for _ in range(2):
        admit(access, key)
    assert admit(access, key).exhausted.window.name == "day"
    assert admit(access, key, NOON + MINUTE).exhausted.window.name == "day"
    assert admit(access, key, NOON + DAY // 2).exhausted is None


def test_a_class_has_a_window_of_its_own(access):
    key, _ = stored(access)
    for n in range(50):
        assert admit(access, key, NOON + n * MINUTE, "withdrawals.create").exhausted is None
    refused = admit(access, key, NOON + 50 * MINUTE, "withdrawals.create")
    assert (refused.exhausted.window.limit, refused.exhausted.window.seconds) == (50, 3600)
    assert admit(access, key, NOON + 50 * MINUTE).exhausted is None, "other endpoints go on"
    assert admit(access, key, NOON + HOUR, "withdrawals.create").exhausted is None


def test_the_limit_holds_exactly_when_many_come_at_once(access):
    key, _ = stored(access, rate_limit=40)
    start = threading.Barrier(16)

    def run(worker: int) -> list[bool]:
        start.wait()
        return [admit(access, key, NOON + worker).exhausted is None for _ in range(6)]

    with ThreadPoolExecutor(16) as pool:
        results = [ok for several in pool.map(run, range(16)) for ok in several]
    assert len(results) == 96
    assert sum(results) == 40
    assert raw(access, key)[f"n_minute_{NOON // MINUTE}"] == {"N": "40"}
    assert raw(access, key)[f"n_day_{NOON // DAY}"] == {"N": "40"}


def test_fifty_requests_at_once_get_exactly_what_is_left(aws):
    """Through the whole edge, each in a thread of its own."""
    edge = PREPARED.edge(aws)
    edge.services.clock.shift_ms = -(edge.services.clock.now_ms() % MINUTE)  # so that no minute ends in the middle of this
    key = edge.new_key(rate_limit=20)
    start = threading.Barrier(50)

    def ask(_: int) -> Any:
        start.wait()
        return edge.call("GET", "/auth/test", key=key)

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, range(50)))
    let_in = [answer for answer in answers if answer.status == 200]
    assert len(let_in) == 20
    assert sorted(int(answer.headers["x-ratelimit-remaining"]) for answer in let_in) == list(range(20))
    refused = [answer for answer in answers if answer.status != 200]
    assert {(answer.status, answer.headers["x-ratelimit-remaining"]) for answer in refused} == {(429, "0")}
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)


def test_a_request_that_meets_a_change_of_its_key_is_let_in_all_the_same(access):
    """DynamoDB refuses a plain write on an item that a transaction is just writing; moto knows nothing of it."""
    key, _ = stored(access)
    busy = [None, None]

    def conflict(model: Any, **_: Any) -> Any:
        if model.name != "UpdateItem" or not busy:
            return None
        busy.pop()
        error = {"Error": {"Code": "TransactionConflictException", "Message": ""}, "ResponseMetadata": {}}
        return AWSResponse("http://x", 400, {}, None), error

    access._client.meta.events.register("before-call", conflict)
    admission = admit(access, key)
    assert busy == []
    assert admission is not None
    assert admission.exhausted is None
    assert raw(access, key)[f"n_minute_{NOON // MINUTE}"] == {"N": "1"}


def test_clocks_that_disagree_count_in_their_own_spans_and_forget_nothing(access):
    key, _ = stored(access, daily_limit=10)
    for n in range(10):
        assert admit(access, key, NOON + (n % 2) * MINUTE).exhausted is None
    assert admit(access, key, NOON).exhausted.window.name == "day"


def test_counters_of_past_spans_are_removed_and_present_ones_kept(access):
    key, _ = stored(access)
    calls = counted(access)
    for n in range(100):
        admit(access, key, NOON + n * MINUTE)
    counters = [name for name in raw(access, key) if name.startswith("n_")]
    assert len(counters) <= 16
    assert raw(access, key)[f"n_day_{NOON // DAY}"] == {"N": "100"}
    assert len(calls) <= 115, "one call in about nine is for tidying"


REFUSED: list[tuple[dict[str, Any], Asked]] = [
    ({"ip_whitelist": ["203.0.113.7"]}, Asked(client="198.51.100.9")),
    ({"ip_whitelist": ["203.0.113.7"]}, Asked(client="2001:db8::1")),
    ({"ip_whitelist": ["203.0.113.7"]}, Asked(client="no address")),
    ({"ip_whitelist": ["2001:db8::/33"]}, Asked(client="2001:db8:8000::")),
    ({"ip_whitelist": ["203.0.113.7"]}, Asked(client="203.0.113.7", permission="keys:write")),
    ({}, Asked(level="admin")),
    ({}, Asked(realm="live")),
    ({}, Asked(permission="keys:write")),
    ({"permissions": ["keys:write"]}, Asked(permission="keys:read")),
]


@pytest.mark.parametrize(("terms", "asked"), REFUSED)
def test_what_the_key_may_not_is_not_counted_however_often_it_is_tried(access, terms, asked):
    """Else whoever has the key, and none of its addresses, could use up its owner's limits."""
    key, _ = stored(access, rate_limit=2, **terms)
    calls = counted(access)
    before = raw(access, key)
    calls.clear()
    with ThreadPoolExecutor(8) as pool:
        refused = list(pool.map(lambda _: access.admit(key.hash, "test", "standard", NOON, asked), range(16)))
    assert set(calls) == {"UpdateItem"}
    assert all(admission.key == key and admission.usage.remaining == 2 for admission in refused)
    assert raw(access, key) == before
    fitting = Asked(client=key.ip_whitelist[0].partition("/")[0] if key.ip_whitelist else None, level="client", realm="test")
    assert [access.admit(key.hash, "test", "standard", NOON, fitting).exhausted is None for _ in range(3)] == [True, True, False]


def test_a_key_with_an_address_list_costs_one_call_once_it_is_known(access):
    key, _ = stored(access, ip_whitelist=["203.0.113.0/24", "2001:db8::/32"])
    calls = counted(access)
    for client in ("203.0.113.7", "2001:db8::1", "203.0.113.8", "198.51.100.9", "203.0.113.7"):
        access.admit(key.hash, "test", "standard", NOON, Asked(client=client))
    assert calls == ["UpdateItem"] * 6
    assert raw(access, key)[f"n_minute_{NOON // MINUTE}"] == {"N": "4"}


def test_an_address_list_that_changes_counts_at_once(access):
    key, _ = stored(access)
    here, there = Asked(client="203.0.113.7"), Asked(client="2001:db8::5")

    def counts(asked: Asked) -> bool:
        before = raw(access, key)
        access.admit(key.hash, "test", "standard", NOON, asked)
        return raw(access, key) != before

    assert counts(here)
    assert counts(there)
    for version, (ranges, expected) in enumerate(
        [
            (("203.0.113.0/25",), (True, False)),
            (("::/0",), (False, True)),
            (("::/1", "203.0.113.7"), (True, True)),
            ((), (True, True)),
        ],
        2,
    ):
        changed = replace(key, ip_whitelist=ranges, version=version)
        services().store.commit([Save(changed), Enforce(changed)])
        assert (counts(here), counts(there)) == expected, ranges


def test_an_expired_key_is_recognised_and_not_counted(access):
    key, _ = stored(access, expires_at=NOON + 10)
    assert alive(admit(access, key, NOON + 9).key, NOON + 9)
    before = raw(access, key)
    admission = admit(access, key, NOON + 10)
    assert not alive(admission.key, NOON + 10)
    assert admission.exhausted is None
    assert raw(access, key) == before


def test_revoking(access):
    first, _ = stored(access)
    second, _ = stored(access, now_ms=NOON + 1)
    stored(access, merchant=MerchantId("mch_other"))
    keys = services().api_keys
    for tenant, id in (("mch_other:test", first.id), (first.tenant, "key_nobodys"), ("mch_shop:live", first.id)):
        with pytest.raises(NotFound):
            keys.revoke(tenant, id)
    revoked = keys.revoke(first.tenant, first.id)
    assert revoked.version == 2
    assert keys.revoke(first.tenant, first.id) == revoked, "it keeps its time"
    before = raw(access, first)
    assert not alive(admit(access, first).key, NOON)
    assert raw(access, first) == before, "what a revoked key asks is not counted"
    assert alive(admit(access, second).key, NOON)
    assert [key.id for key in keys.every(first.tenant)] == [first.id, second.id]
    assert services().store.get(Tally, tenant=first.tenant, of="keys").count == 1


def test_of_a_published_key_each_caller_has_the_limits(access):
    shared = Access(access._client, access._table, by_source=True)
    key, _ = stored(access, rate_limit=2)
    used: dict[int, int] = {}
    for n in range(200):
        source = f"192.0.2.{n}" if n % 2 else f"2001:db8:0:{n:x}::1"
        who = source_number(source, NOON)
        assert 0 <= who < SOURCES
        admission = shared.admit(key.hash, key.realm, "standard", NOON, Asked(source))
        assert (admission.exhausted is None) == (used.get(who, 0) < 2)
        if admission.exhausted is None:
            used[who] = used.get(who, 0) + 1
    assert len(used) > SOURCES / 2
    assert len(raw(access, key)) < 4 * SOURCES, "bounded, however many there are"
    assert source_number("2001:db8::1", NOON) == source_number("2001:db8::ffff:1", NOON)
    assert source_number("::ffff:192.0.2.1", NOON) == source_number("192.0.2.1", NOON)
    assert len({source_number("192.0.2.1", NOON + n * DAY) for n in range(20)}) > 5
    # What is over is removed here too, and one request is one write otherwise.
    made = counted(access)
    later = NOON + 30 * MINUTE
    assert shared.admit(key.hash, key.realm, "standard", later, Asked("192.0.2.1")).exhausted is None
    assert made == ["UpdateItem", "UpdateItem"]
    assert not [name for name in raw(access, key) if name.startswith("n_minute_") and name.endswith(f"_{NOON // MINUTE}")]
    assert shared.last_used([key.hash]) == {key.hash: later}


def test_a_batch_counts_as_its_outputs_in_the_minute_and_as_one_request_elsewhere(access):
    key, _ = stored(access, realm="live", rate_limit=150)
    assert admit(access, key).exhausted is None
    weighed = access.weigh(key, 100, NOON)
    assert (weighed.refused, weighed.usage.window.name, weighed.usage.remaining) == (False, "minute", 50)
    item = raw(access, key)
    counts = {name.split("_")[1]: int(value["N"]) for name, value in item.items() if name.startswith("n_")}
    assert counts == {"minute": 100, "hour": 1, "day": 1}


def test_a_batch_that_does_not_fit_is_refused_and_not_counted(access):
    key, _ = stored(access, realm="live", rate_limit=150)
    for _ in range(60):
        admit(access, key)
    assert admit(access, key).exhausted is None
    calls = counted(access)
    weighed = access.weigh(key, 100, NOON)
    assert (weighed.refused, weighed.usage.window.name, weighed.usage.remaining) == (True, "minute", 90)
    assert weighed.usage.reset_at * 1000 == NOON + MINUTE
    assert calls == ["UpdateItem", "UpdateItem"]
    item = raw(access, key)
    assert {int(value["N"]) for name, value in item.items() if name.startswith("n_")} == {60}
    assert access.weigh(key, 90, NOON).refused is False


def test_a_batch_counts_as_no_more_than_the_minute_holds(access):
    key, _ = stored(access, realm="live", rate_limit=40)
    assert admit(access, key).exhausted is None
    weighed = access.weigh(key, 100, NOON)
    assert (weighed.refused, weighed.usage.remaining) == (False, 0)
    assert admit(access, key).exhausted is not None
    admit(access, key, NOON + MINUTE)
    assert admit(access, key, NOON + MINUTE).exhausted is None, "the next minute is a new one"
    assert access.weigh(key, 100, NOON + MINUTE).refused, "two requests are in it already"


def test_of_batches_at_once_as_many_fit_as_the_minute_holds(access):
    key, _ = stored(access, realm="live", rate_limit=350)

    def one(_: int) -> bool:
        assert admit(access, key).exhausted is None
        return access.weigh(key, 100, NOON).refused

    with ThreadPoolExecutor(max_workers=8) as pool:
        refused = list(pool.map(one, range(8)))
    assert refused.count(False) == 3
    item = raw(access, key)
    counts = {name.split("_")[1]: int(value["N"]) for name, value in item.items() if name.startswith("n_")}
    assert counts == {"minute": 300, "hour": 3, "day": 3}
