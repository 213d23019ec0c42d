"""Idempotency-Key: once, whatever comes twice, late, at once or torn."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.api import resources
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.routes import ROUTES, Route
from chalicelib.domain.chain import Cursor
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.times import iso
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.idempotency import KEPT_MS, StoredAnswer
from chalicelib.usecases.ports.changes import Add, Change, Conflict, Save
from tests.support.edge import PREPARED, Edge

INVOICE = {"currency": "eth", "amount": "1", "network": "ethereum"}
PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
WITHDRAWAL = {"network": "ethereum", "coin": "eth", "amount": "1", "to_address": PAYEE}


@pytest.fixture
def edge(aws) -> Edge:
    return PREPARED.edge(aws)


def post(edge: Edge, path: str, body: Any, key: str | None = "k-1", caller: str = "client", **kwargs: Any):
    return edge.call("POST", path, key=caller, json=body, headers={} if key is None else {"Idempotency-Key": key}, **kwargs)


def invoices(edge: Edge) -> int:
    return len(edge.services.store.page(Invoice, limit=1000, tenant=f"{edge.shop}:test").items)


def withdrawals(edge: Edge) -> int:
    return len(edge.services.store.page(Withdrawal, limit=1000, tenant=f"{edge.shop}:test").items)


HOOK = {"url": "http://127.0.0.1:8099/hook", "events": ["*"]}
Asked = tuple[dict[str, str], Any]
"""What to put in the path, and the body."""


def plain(body: Any) -> Callable[[Edge], Asked]:
    return lambda edge: ({}, body)


def hook(edge: Edge) -> str:
    return str(post(edge, "/webhooks", HOOK, key=None).json["data"]["id"])


def delivery(edge: Edge) -> str:
    return str(post(edge, f"/webhooks/{hook(edge)}/test", None, key=None).json["data"]["id"])


def a_time(edge: Edge) -> dict[str, str]:
    now = edge.services.clock.now_ms()
    return {"from": iso(now - 3_600_000), "to": iso(now - 1)}


def key(edge: Edge) -> str:
    return str(post(edge, "/api-keys", {"name": "n", "permissions": ["read-only"]}, key=None).json["data"]["key_id"])


def mined(edge: Edge) -> Asked:
    assert post(edge, "/sandbox/blocks", {"network": "ethereum", "count": 9}, key=None).status == 201
    return {}, {"network": "ethereum", "depth": 2}


def merchant(edge: Edge) -> str:
    return str(post(edge, "/merchants", {"name": "n"}, key=None, caller="admin").json["data"]["id"])


def coin(edge: Edge) -> Asked:
    token = {"network": "ethereum", "symbol": "GLD", "name": "Gold", "decimals": 6}
    made = post(edge, "/sandbox/tokens", token, key=None).json["data"]["contractAddress"]
    return {}, {"network": "ethereum", "contractAddress": made}


def polled(edge: Edge) -> Asked:
    network = edge.services.catalogue("test").networks["ethereum"]
    edge.services.store.commit([Save(Cursor(network.id, 50, "0x" + "ab" * 32, 0, 50, 0))])
    return {"network": "ethereum"}, {"fromBlock": 1, "toBlock": 2}


def stakeable(edge: Edge) -> Asked:
    made = edge.call("POST", "/addresses/service-wallets", key="admin", json={"network": "tron", "type": "hot"})
    assert made.status == 201, made.body
    body = {"network": "tron", "coin": "trx", "amount": "100", "address": made.json["address"]}
    assert post(edge, "/sandbox/deposits", body, key=None).status == 201
    held = {"network": "test:tron", "address": made.json["address"], "asset": "test:tron:trx"}
    edge.services.store.commit([Add(WalletBalance, held, {"units": 100 * 10**6})])
    return {}, {"amount": "5", "resource": "ENERGY"}


def strayed(edge: Edge) -> Asked:
    """A payment on polygon to an address that is watched on ethereum alone, as deep as it has to be."""
    address = post(edge, "/addresses", {"network": "ethereum", "mode": "common"}, key=None).json["address"]
    body = {"network": "polygon", "coin": "usdt", "amount": "5", "address": address}
    paid = post(edge, "/sandbox/deposits", body, key=None)
    assert paid.status == 201, paid.body
    assert post(edge, "/sandbox/blocks", {"network": "polygon", "count": 20}, key=None).status == 201
    edge.services.scanner(edge.services.catalogue("test").networks["polygon"]).poll(lambda: True)
    return {}, {"network": "polygon", "txid": paid.json["data"]["txid"]}


def stray(edge: Edge) -> str:
    _, body = strayed(edge)
    (read,) = post(edge, "/stray-payments", body, key=None, caller="admin").json["data"]["payments"]
    return str(read["id"])


def refundable(edge: Edge) -> Asked:
    """A part of an invoice that is paid."""
    invoice = post(edge, "/invoices", INVOICE, key=None).json
    body = {"network": "ethereum", "coin": "eth", "amount": "1", "address": invoice["address"]}
    assert post(edge, "/sandbox/deposits", body, key=None).status == 201
    assert post(edge, "/sandbox/blocks", {"network": "ethereum", "count": 20}, key=None).status == 201
    edge.services.scanner(edge.services.catalogue("test").networks["ethereum"]).poll(lambda: True)
    return {"id": invoice["id"]}, {"mode": "same", "amount": "0.25"}


BODIES: dict[str, Callable[[Edge], Asked]] = {
    "/addresses": plain({"network": "ethereum"}),
    "/addresses/grey-list": plain({"network": "ethereum", "address": PAYEE, "reason": "n"}),
    "/addresses/service-wallets": plain({"network": "ethereum", "type": "hot"}),
    "/api-keys": plain({"name": "n", "permissions": ["read-only"]}),
    "/api-keys/{id}/rotate": lambda edge: ({"id": key(edge)}, {"overlap": 60}),
    "/coins": coin,
    "/invoices": plain(INVOICE),
    "/invoices/{id}/refunds": refundable,
    "/merchants": plain({"name": "n"}),
    "/merchants/{id}/keys": lambda edge: ({"id": merchant(edge)}, {}),
    "/networks/tron/stake": stakeable,
    "/networks/{network}/rescan": polled,
    "/payment-links": plain({"name": "n", "currency": "eth", "network": "ethereum", "amount": "1", "stock": 3}),
    "/payout-links": plain({"network": "ethereum", "coin": "eth", "amount": "1"}),
    "/reconciliation": plain({}),
    "/sandbox/blocks": plain({"network": "ethereum", "count": 3}),
    "/sandbox/clock": plain({"advance": 60}),
    "/sandbox/deposits": plain({"network": "ethereum", "coin": "eth", "amount": "1", "address": PAYEE}),
    "/sandbox/rates": plain({"coin": "eth", "fiat": "EUR", "value": "2000"}),
    "/sandbox/reorg": mined,
    "/sandbox/tokens": plain({"network": "ethereum", "symbol": "TKN", "name": "Token", "decimals": 8}),
    "/stray-payments": strayed,
    "/stray-payments/{id}/credit": lambda edge: ({"id": stray(edge)}, None),
    "/stray-payments/{id}/return": lambda edge: ({"id": stray(edge)}, {"address": PAYEE}),
    "/webhooks": plain(HOOK),
    "/webhooks/deliveries/{id}/redeliver": lambda edge: ({"id": delivery(edge)}, None),
    "/webhooks/{id}/redeliver": lambda edge: ({"id": hook(edge)}, a_time(edge)),
    "/webhooks/{id}/rotate-secret": lambda edge: ({"id": hook(edge)}, {}),
    "/webhooks/{id}/test": lambda edge: ({"id": hook(edge)}, None),
    "/whitelist/addresses": plain({"network": "ethereum", "address": PAYEE, "label": "n"}),
    "/withdrawals": plain(WITHDRAWAL),
    "/withdraws": plain({"network": "ethereum", "coin": "eth", "amount": "1", "address": PAYEE}),
}
"""What makes something on each route that creates; a route that is not here fails its test."""
resources.load()
CREATING = [route for route in ROUTES if route.creates]
ONLY_ONE = {
    "/addresses/grey-list",
    "/api-keys/{id}/rotate",
    "/coins",
    "/merchants/{id}/keys",
    "/stray-payments/{id}/credit",
    "/stray-payments/{id}/return",
    "/whitelist/addresses",
    "/webhooks/{id}/redeliver",
}
"""What is there already can not be made once more, and is answered all the same where the key is repeated."""
UNDER_WAY = "/webhooks/deliveries/{id}/redeliver"
"""Nothing but the answer is stored: the delivery is on its way already."""
OUTSIDE = {"/sandbox/blocks", "/sandbox/deposits", "/sandbox/reorg", "/sandbox/tokens"}
"""What is made outside our transactions: the answer is stored by itself, after it."""


@pytest.fixture
def rendering(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The modules of use cases that wait while an answer is rendered."""
    real, waiting = Ctx.text, set[str]()

    def text(ctx: Ctx, answer: Answer) -> str:
        modules = (frame.frame.f_globals["__name__"] for frame in inspect.stack(context=0))
        waiting.update(name for name in modules if name.startswith("chalicelib.usecases."))
        return real(ctx, answer)

    monkeypatch.setattr(Ctx, "text", text)
    return waiting


@pytest.fixture
def beside(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each answer that is stored, how many other changes its transaction has."""
    real, seen = edge.services.store.commit, list[int]()

    def commit(changes: Sequence[Change]) -> None:
        if any(isinstance(change, Save) and isinstance(change.record, StoredAnswer) for change in changes):
            seen.append(len(changes) - 1)
        real(changes)

    monkeypatch.setattr(edge.services.store, "commit", commit)
    return seen


@pytest.mark.parametrize("route", CREATING, ids=lambda route: route.path)
def test_the_second_answer_is_the_first_to_the_byte(edge: Edge, route: Route, rendering: set[str], beside: list[int]) -> None:
    edge.credit("ethereum", "eth", 10 * 10**18)
    assert route.path in BODIES, f"say in BODIES what POST {route.path} makes something of"
    named, body = BODIES[route.path](edge)
    path = route.path.format_map(named)
    caller = "admin" if route.level == "admin" else "client"
    first = post(edge, path, body, caller=caller)
    assert first.status == 201, first.body
    assert "idempotency-replayed" not in first.headers
    assert [more > 0 for more in beside] == [route.path not in {*OUTSIDE, UNDER_WAY}], "the answer commits with what it tells of"
    edge.services.clock.shift_ms += 3_500_000
    second = post(edge, "/v1" + path, body, caller=caller)
    assert (second.status, second.body) == (201, first.body)
    assert second.headers["idempotency-replayed"] == "true"
    assert second.headers["x-request-id"] != first.headers["x-request-id"]
    assert second.headers["x-ratelimit-remaining"]
    other = post(edge, path, {**(body or {}), "n": 1}, caller=caller)
    assert other.status == 400, "the same key with another body"
    third = post(edge, path, body, key="k-2", caller=caller)
    assert third.status == (400 if route.path in ONLY_ONE else 201), third.body
    assert third.body != first.body
    above = set() if route.path in OUTSIDE else {"chalicelib.usecases.base.retries"}
    assert rendering == above, "a use case calls back up into the edge"


def test_without_the_header_everything_happens_twice(edge):
    assert post(edge, "/invoices", INVOICE, key=None).json["id"] != post(edge, "/invoices", INVOICE, key=None).json["id"]


def test_the_same_key_with_another_request_is_refused(edge):
    post(edge, "/invoices", INVOICE)
    other = post(edge, "/invoices", {**INVOICE, "amount": "2"})
    assert (other.status, other.json["code"]) == (400, "VALIDATION_ERROR")
    elsewhere = post(edge, "/addresses", INVOICE | {})
    assert elsewhere.status == 400
    assert invoices(edge) == 1
    address = post(edge, "/addresses", {"network": "ethereum"})
    assert (address.status, address.json["error"]["code"]) == (400, "VALIDATION_ERROR")


def test_another_query_or_a_body_of_nothing_is_another_request(edge):
    hook = post(edge, "/webhooks", {"url": "http://127.0.0.1:8099/hook", "events": ["*"]}, key=None).json["data"]["id"]
    path = f"/webhooks/{hook}/test"
    first = post(edge, path, {})
    assert first.status == 201
    for body, query in ((None, None), ({}, {"n": "1"}), ({}, {"n": ["1", "2"]})):
        other = post(edge, path, body, query=query)
        assert (other.status, other.json["error"]["code"]) == (400, "VALIDATION_ERROR"), (body, query)
    assert post(edge, path, {}).body == first.body
    several = post(edge, path, None, key="k-2", query={"a": ["1", "2"], "b": "3"})
    assert post(edge, path, None, key="k-2", query={"b": "3", "a": ["1", "2"]}).body == several.body


def test_keys_of_two_merchants_have_nothing_to_do_with_each_other(edge):
    mine = post(edge, "/invoices", INVOICE)
    theirs = edge.call("POST", "/invoices", key="other", json=INVOICE, headers={"Idempotency-Key": "k-1"})
    assert theirs.status == 201
    assert theirs.json["id"] != mine.json["id"]


def test_after_a_day_the_key_is_new_again(edge):
    first = post(edge, "/invoices", INVOICE)
    edge.services.clock.shift_ms += KEPT_MS - 60_000
    assert post(edge, "/invoices", INVOICE).body == first.body
    edge.services.clock.shift_ms += 120_000
    again = post(edge, "/invoices", {**INVOICE, "amount": "5"})
    assert again.status == 201
    assert again.json["id"] != first.json["id"]
    assert post(edge, "/invoices", {**INVOICE, "amount": "5"}).body == again.body


def test_a_refusal_is_not_kept(edge):
    assert post(edge, "/withdrawals", WITHDRAWAL).json["error"]["code"] == "INSUFFICIENT_BALANCE"
    edge.credit("ethereum", "eth", 10**18)
    assert post(edge, "/withdrawals", WITHDRAWAL).status == 201


def test_a_repeated_request_that_could_not_be_done_again_is_answered_all_the_same(edge):
    edge.credit("ethereum", "eth", 10**18)
    first = post(edge, "/withdrawals", WITHDRAWAL)
    assert post(edge, "/withdrawals", WITHDRAWAL).body == first.body
    assert post(edge, "/withdrawals", WITHDRAWAL, key="k-2").json["error"]["code"] == "INSUFFICIENT_BALANCE"
    body = {**INVOICE, "externalId": "order-1"}
    assert post(edge, "/invoices", body, key="k-3").body == post(edge, "/invoices", body, key="k-3").body
    assert post(edge, "/invoices", body, key="k-4").json["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize("key", ["", "   ", "x" * 256, "é"])
def test_keys_that_are_none(edge, key):
    response = post(edge, "/addresses", {"network": "ethereum"}, key=key)
    assert response.status == 400
    assert response.json["error"]["details"][0]["field"] == "Idempotency-Key"


def test_the_longest_key(edge):
    assert post(edge, "/invoices", INVOICE, key="x" * 255).body == post(edge, "/invoices", INVOICE, key="x" * 255).body


def test_two_different_keys_in_one_request(edge):
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert edge.call("POST", "/invoices", json=INVOICE, headers=headers).status == 400


def webhooks(edge: Edge) -> int:
    return len(edge.services.webhooks.list(f"{edge.shop}:test"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "body", "count"),
    [("/invoices", INVOICE, invoices), ("/withdrawals", WITHDRAWAL, withdrawals), ("/webhooks", HOOK, webhooks)],
)
def test_many_at_once_make_one(edge, path, body, count):
    edge.credit("ethereum", "eth", 100 * 10**18)
    start = threading.Barrier(8)

    def send(_: int):
        start.wait()
        return post(edge, path, body)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert count(edge) == 1


def test_the_twin_that_spent_the_balance_first_answers_for_both(edge, monkeypatch):
    """The second request looked for a stored answer just before the first one committed; then the money was gone."""
    edge.credit("ethereum", "eth", 10**18)
    store = type(edge.services.store)
    real, twin = store.get_many, []

    def late(self, wanted):
        if not twin:
            twin.append(None)
            twin.append(post(edge, "/withdrawals", WITHDRAWAL))
        return real(self, wanted)

    monkeypatch.setattr(store, "get_many", late)
    answer = post(edge, "/withdrawals", WITHDRAWAL)
    assert twin[1].status == 201
    assert (answer.status, answer.body) == (201, twin[1].body)
    assert answer.headers["idempotency-replayed"] == "true"
    assert withdrawals(edge) == 1


def test_the_twin_that_committed_between_reading_and_committing(edge, monkeypatch):
    edge.credit("ethereum", "eth", 100 * 10**18)
    store = type(edge.services.store)
    real, twin = store.commit, []

    def late(self, changes):
        if not twin:
            twin.append(None)
            twin.append(post(edge, "/withdrawals", WITHDRAWAL))
        return real(self, changes)

    monkeypatch.setattr(store, "commit", late)
    answer = post(edge, "/withdrawals", WITHDRAWAL)
    assert (answer.status, answer.body) == (201, twin[1].body)
    assert withdrawals(edge) == 1


@pytest.mark.parametrize("took_effect", [False, True])
def test_a_commit_that_failed_or_seemed_to_is_made_good_by_repeating(edge, monkeypatch, took_effect):
    store = type(edge.services.store)
    real, failures = store.commit, []

    def torn(self, changes):
        if not failures:
            failures.append(None)
            if took_effect:
                real(self, changes)
            raise Conflict(None)
        return real(self, changes)

    monkeypatch.setattr(store, "commit", torn)
    answers = [post(edge, "/invoices", INVOICE), post(edge, "/invoices", INVOICE)]
    assert answers[1].status == 201
    assert invoices(edge) == 1
    if answers[0].status == 201:
        assert answers[0].body == answers[1].body
