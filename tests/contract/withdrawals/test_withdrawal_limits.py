"""What can keep money from being paid out: limits, the whitelist, and that they hold when all ask at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.errors import DailyLimitExceeded, InsufficientBalance
from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.withdrawals.limits import DAY_MS, MONTH_MS, MOST_PAYEES, Paid, Spent, with_payments
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.withdrawals.facts import Output
from tests.support.edge import PREPARED, Edge

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # these are EIP-55's own examples
OTHER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
CROWD = ["0x" + digit * 40 for digit in "123"]
ETHER = 10**18


@pytest.fixture
def edge(aws) -> Iterator[Edge]:
    made = PREPARED.edge(aws)
    made.credit("ethereum", "eth", 100 * ETHER)
    yield made
    assert made.violations() == []


def limit(edge: Edge, **settings: Any) -> None:
    store = edge.services.store
    coin = store.catalogue("test").coins["ethereum", "eth"]
    store.commit([Save(replace(coin, settings=settings, version=coin.version + 1))])
    store.forget_catalogue()


def ask(edge: Edge, amount: str, to: str = PAYEE, **more: Any) -> Any:
    return edge.call(
        "POST", "/withdrawals", json={"network": "ethereum", "coin": "eth", "amount": amount, "to_address": to, **more}
    )


def batch(edge: Edge, *outputs: tuple[str, str]) -> Any:
    asked = {"network": "ethereum", "coin": "eth", "outputs": [{"to_address": to, "amount": amount} for to, amount in outputs]}
    return edge.call("POST", "/v1/withdrawals", json={"batch_withdrawal": asked})


def error(response: Any) -> tuple[str, Any]:
    assert response.status == 400, response.body
    return response.json["error"]["code"], response.json["error"]["details"]


def trust(edge: Edge, address: str = PAYEE, **more: Any) -> Any:
    return edge.call(
        "POST", "/v1/whitelist/addresses", json={"network": "ethereum", "address": address, "label": "Payroll", **more}
    )


def test_the_day_rolls(edge: Edge) -> None:
    limit(edge, maxValueDaily="3")
    start = edge.services.clock
    first = ask(edge, "2").json["data"]["id"]
    start.shift_ms += DAY_MS // 2
    assert ask(edge, "1").status == 201
    code, details = error(ask(edge, "0.5"))
    assert (code, details) == ("DAILY_LIMIT_EXCEEDED", {"limit": "3", "used": "3", "requested": "0.5", "available": "0"})
    start.shift_ms += DAY_MS // 2 + 60_000
    assert ask(edge, "2").status == 201
    assert error(ask(edge, "0.000000000000000001"))[1]["used"] == "3"
    # Too old to count: giving it back makes no room.
    assert edge.call("DELETE", f"/withdrawals/{first}").status == 200
    assert error(ask(edge, "1"))[1]["available"] == "0"


def test_what_is_cancelled_or_rejected_counts_no_more(edge: Edge) -> None:
    limit(edge, maxValueDaily="3")
    made = ask(edge, "3").json["data"]["id"]
    assert error(ask(edge, "1"))[0] == "DAILY_LIMIT_EXCEEDED"
    edge.call("DELETE", f"/withdrawals/{made}")
    assert batch(edge, (PAYEE, "1"), (OTHER, "1.5")).status == 201
    code, details = error(batch(edge, (PAYEE, "0.3"), (PAYEE, "0.3")))
    assert (code, details) == ("DAILY_LIMIT_EXCEEDED", {"limit": "3", "used": "2.5", "requested": "0.6", "available": "0.5"})
    listed = edge.call("GET", "/withdrawals").json["data"]
    assert Counter(w["status"] for w in listed) == {"pending": 2, "cancelled": 1}
    for w in listed:
        if w["status"] == "pending":
            edge.call("DELETE", f"/withdrawals/{w['id']}")
    assert ask(edge, "3").status == 201


def test_limits_in_usd(edge: Edge) -> None:
    rate = edge.services.rates("test").get("eth")
    assert rate is not None
    limit(edge, useUsdLimits=True, maxValueDaily=str(rate.decimal * 2))
    assert ask(edge, "1.5").status == 201
    assert error(ask(edge, "1"))[1] == {"limit": "2", "used": "1.5", "requested": "1", "available": "0.5"}


def test_the_smallest_and_the_largest_withdrawal(edge: Edge) -> None:
    limit(edge, minValue="0.5", maxValue="2")
    assert error(ask(edge, "0.49")) == ("VALIDATION_ERROR", {"field": "amount", "reason": "must be at least 0.5 ETH"})
    assert error(ask(edge, "2.01"))[1]["reason"] == "must be at most 2 ETH"
    code, details = error(batch(edge, (PAYEE, "1"), (PAYEE, "2"), (OTHER, "2.5")))
    assert (code, details["field"]) == ("VALIDATION_ERROR", "batch_withdrawal.outputs.2.amount")
    assert edge.call("GET", "/withdrawals").json["data"] == []


@pytest.mark.parametrize("what", ["balance", "day", "whitelist"])
def test_fifty_at_once_get_what_there_is(edge: Edge, what: str) -> None:
    """Seven fit, whatever it is that ends there."""
    if what == "day":
        limit(edge, maxValueDaily="7.9")
    elif what == "whitelist":
        assert trust(edge, daily_limit="7.9").status == 201
    withdrawals, tenant = edge.services.withdrawals, f"{edge.shop}:test"
    coin = edge.services.catalogue("test").coins["ethereum", "eth"]
    units = 13 * ETHER if what == "balance" else ETHER

    def one(_: int) -> str:
        try:
            return withdrawals.create(tenant, coin, Output(PAYEE, units)).status  # type: ignore[arg-type]
        except (InsufficientBalance, DailyLimitExceeded) as refused:
            return refused.code

    with ThreadPoolExecutor(50) as pool:
        answers = Counter(pool.map(one, range(50)))
    refusal = "INSUFFICIENT_BALANCE" if what == "balance" else "DAILY_LIMIT_EXCEEDED"
    assert answers == {"pending": 7, refusal: 43}
    stored = edge.services.store.page(Withdrawal, limit=100, tenant=tenant).items
    assert sum(w.amount for w in stored) == 7 * units


def test_the_whitelist(edge: Edge) -> None:
    made = trust(edge, PAYEE.lower(), daily_limit=1.50, monthly_limit="20.0")
    assert made.status == 201
    entry = made.json["data"]
    assert (entry["address"], entry["network"], entry["label"]) == (PAYEE, "ethereum", "Payroll")
    assert (entry["daily_limit"], entry["monthly_limit"]) == ("1.5", "20")
    path = f"/whitelist/addresses/{entry['id']}"
    assert edge.call("GET", path).json["data"] == entry
    assert [e["id"] for e in edge.call("GET", "/v1/whitelist/addresses").json["data"]] == [entry["id"]]
    assert error(trust(edge))[1]["field"] == "address"
    elsewhere = edge.call("POST", "/whitelist/addresses", json={"network": "bsc", "address": PAYEE})
    assert elsewhere.json["data"]["id"] != entry["id"]
    assert edge.call("GET", "/whitelist/addresses?limit=1&order=asc").json["data"] == [entry]
    changed = edge.call("PUT", path, json={"label": "Rent", "daily_limit": None})
    assert (changed.json["data"]["label"], changed.json["data"]["daily_limit"], changed.json["data"]["monthly_limit"]) == (
        "Rent", None, "20",
    )  # fmt: skip
    assert error(edge.call("PUT", path, json={"daily_limit": "21"}))[0] == "VALIDATION_ERROR"
    assert edge.call("PUT", path, json={"daily_limit": 0, "monthly_limit": "0"}).json["data"]["monthly_limit"] is None
    for method, body in (("GET", None), ("PUT", {"label": "x"}), ("DELETE", None)):
        assert edge.call(method, path, key="other", json=body).status == 404
    assert edge.call("GET", "/whitelist/addresses", key="other").json["data"] == []
    assert edge.call("DELETE", path).status == 200
    assert edge.call("GET", path).status == edge.call("DELETE", path).status == 404
    assert len(edge.call("GET", "/whitelist/addresses").json["data"]) == 1
    again = trust(edge, label="Payroll again").json["data"]
    assert (again["id"], again["daily_limit"]) == (entry["id"], None)


@pytest.mark.parametrize(
    ("body", "code", "fields"),
    [
        ({}, "INVALID_PARAMETER", {"address", "network"}),
        ({"address": "0x1", "network": "ethereum"}, "INVALID_ADDRESS", None),
        ({"address": PAYEE, "network": "mars", "daily_limit": "-1", "x": 1}, "INVALID_PARAMETER", {"network", "daily_limit", "x"}),
        ({"address": PAYEE, "network": "bsc", "daily_limit": "1e3"}, "INVALID_PARAMETER", {"daily_limit"}),
        ({"address": PAYEE, "network": "bsc", "daily_limit": "2", "monthly_limit": 1}, "VALIDATION_ERROR", None),
    ],
)
def test_what_can_not_be_on_the_whitelist(edge: Edge, body: Any, code: str, fields: set[str] | None) -> None:
    found, details = error(edge.call("POST", "/whitelist/addresses", json=body))
    assert found == code
    assert fields is None or {problem["field"] for problem in details} == fields


def test_the_whitelist_needs_its_permissions(edge: Edge) -> None:
    reader = edge.new_key("whitelist:read")
    assert edge.call("GET", "/whitelist/addresses", key=reader).status == 200
    asked = {"network": "ethereum", "address": PAYEE}
    assert edge.call("POST", "/whitelist/addresses", key=reader, json=asked).status == 403
    assert edge.call("GET", "/whitelist/addresses", key=edge.new_key("withdrawals:read")).status == 403


def test_trusting_twice_with_one_idempotency_key_is_once(edge: Edge) -> None:
    sent = {"json": {"network": "ethereum", "address": PAYEE}, "headers": {"Idempotency-Key": "w"}}
    first, second = (edge.call("POST", "/whitelist/addresses", **sent) for _ in range(2))
    assert (first.status, second.body, second.headers["idempotency-replayed"]) == (201, first.body, "true")


def test_an_enforced_whitelist_lets_nobody_else_be_paid(edge: Edge) -> None:
    trust(edge)
    assert edge.call("PUT", "/merchant/settings", json={"whitelist_enforced": True}).status == 200
    assert ask(edge, "1", PAYEE.lower()).status == 201
    assert error(ask(edge, "1", OTHER)) == (
        "VALIDATION_ERROR",
        {"field": "to_address", "reason": "is not on the whitelist for ethereum"},
    )
    form = {"network": "ethereum", "coin": "eth", "amount": "1", "address": OTHER}
    assert error(edge.call("POST", "/withdraws", json=form))[1]["field"] == "address"
    assert error(batch(edge, (PAYEE, "1"), (OTHER, "1")))[1]["field"] == "batch_withdrawal.outputs.1.to_address"
    assert len(edge.call("GET", "/withdrawals").json["data"]) == 1
    # The other merchant's money has nothing to do with it.
    poor = edge.call("POST", "/withdraws", key="other", json=form)
    assert error(poor)[0] == "INSUFFICIENT_BALANCE"


def test_limits_of_a_whitelist_address(edge: Edge) -> None:
    entry = trust(edge, daily_limit="2", monthly_limit="3").json["data"]["id"]
    assert ask(edge, "50", OTHER).status == 201
    assert ask(edge, "1.5").status == 201
    assert error(ask(edge, "1")) == (
        "DAILY_LIMIT_EXCEEDED", {"limit": "2", "used": "1.5", "requested": "1", "available": "0.5"},
    )  # fmt: skip
    assert error(batch(edge, (PAYEE, "0.3"), (OTHER, "1"), (PAYEE, "0.3")))[0] == "DAILY_LIMIT_EXCEEDED"
    edge.services.clock.shift_ms += 2 * DAY_MS
    code, details = error(ask(edge, "2"))
    assert (code, details["field"]) == ("VALIDATION_ERROR", "amount")
    assert "monthly" in details["reason"]
    kept = ask(edge, "1.5").json["data"]["id"]
    # Removed and trusted again, it has not forgotten.
    edge.call("DELETE", f"/whitelist/addresses/{entry}")
    trust(edge, daily_limit="2", monthly_limit="3")
    assert error(ask(edge, "0.1"))[0] == "VALIDATION_ERROR"
    edge.call("DELETE", f"/withdrawals/{kept}")
    assert batch(edge, (PAYEE, "1"), (PAYEE, "0.5")).status == 201
    assert error(ask(edge, "0.1"))[0] == "VALIDATION_ERROR"
    edge.services.clock.shift_ms += MONTH_MS - DAY_MS
    assert ask(edge, "0.1").status == 201


def test_each_coin_has_the_limit_for_itself(edge: Edge) -> None:
    edge.credit("ethereum", "usdt", 10_000_000)
    trust(edge, daily_limit="2")
    assert ask(edge, "2").status == 201
    body = {"network": "ethereum", "coin": "usdt", "amount": "2", "to_address": PAYEE}
    assert edge.call("POST", "/withdrawals", json=body).status == 201
    assert error(edge.call("POST", "/withdrawals", json={**body, "amount": "0.000001"}))[0] == "DAILY_LIMIT_EXCEEDED"


def test_limits_hold_where_the_shared_record_is_full(edge: Edge) -> None:
    """More payees with limits than it has room for: each has a record of its own then, and two of them fit into a batch."""
    store, tenant = edge.services.store, TenantId(f"{edge.shop}:test")
    asset, now = AssetId("test:ethereum:eth"), edge.services.clock.now_ms()
    full, _ = with_payments(Spent(tenant, asset), {}, now, [Paid(f"0x{n:040x}", 1, True) for n in range(MOST_PAYEES)])
    store.commit([Save(full)])
    entry = trust(edge, daily_limit="2").json["data"]["id"]
    for address in (OTHER, *CROWD[:2]):
        trust(edge, address, daily_limit="2")
    made = ask(edge, "1.5").json["data"]["id"]
    assert error(ask(edge, "1"))[1] == {"limit": "2", "used": "1.5", "requested": "1", "available": "0.5"}
    code, details = error(batch(edge, (PAYEE, "0.1"), (OTHER, "1"), (CROWD[2], "1"), (CROWD[0], "1")))
    assert (code, details["field"]) == ("VALIDATION_ERROR", "batch_withdrawal.outputs.3.to_address")
    pair = batch(edge, (PAYEE, "0.5"), (OTHER, "1"), (CROWD[2], "1"), (OTHER, "1"))
    assert pair.status == 201
    assert error(ask(edge, "0.1", OTHER))[0] == error(ask(edge, "0.1"))[0] == "DAILY_LIMIT_EXCEEDED"
    assert edge.call("DELETE", f"/withdrawals/{made}").status == 200
    assert edge.call("DELETE", f"/withdrawals/{pair.json['data']['withdrawals'][1]['id']}").status == 200
    assert [ask(edge, "1.5").status, ask(edge, "1", OTHER).status] == [201, 201]
    assert error(ask(edge, "0.1", OTHER))[0] == error(ask(edge, "0.1"))[0] == "DAILY_LIMIT_EXCEEDED"
    # Removed and trusted again, it has not forgotten; and many at once are told the truth.
    edge.call("DELETE", f"/whitelist/addresses/{entry}")
    trust(edge, daily_limit="3")
    with ThreadPoolExecutor(6) as pool:
        found = Counter(answer.status for answer in pool.map(lambda _: ask(edge, "0.25"), range(12)))
    assert found == {201: 4, 400: 8}


def test_what_a_withdrawal_costs_in_calls(edge: Edge) -> None:
    trust(edge, daily_limit="2")
    ask(edge, "0.1")
    calls = edge.calls()
    assert ask(edge, "0.1").status == 201
    assert calls.made == ["UpdateItem", "BatchGetItem", "TransactWriteItems", "SendMessage"]
