"""Every route of the table with every kind of key. Nothing here names a route: what is expected follows from its row.

All cases share one service. Before each test the clock goes on by a minute, so that no rate limit is met: not before each request,
as the names of a key's counters have the minute in them, and moto parses an expression with new names anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from chalicelib.api import resources
from chalicelib.api.routes import ROUTES, Route
from chalicelib.domain.deposits.deposits import Deposit, deposit_id
from chalicelib.domain.ids import asset_id, network_id, new_id, tenant_id
from chalicelib.domain.merchants.merchants import PERMISSIONS, PRESETS, Level
from chalicelib.domain.refunds.refunds import Refund, Terms
from chalicelib.domain.stray_payments import StrayPayment
from chalicelib.domain.times import iso
from chalicelib.domain.treasury.collections import Collection
from chalicelib.usecases.ports.changes import Save
from infra.bootstrap import make_key
from infra.local.aws import LocalAws
from tests.support.edge import PREPARED, Edge
from tests.support.stack import Response

resources.load()

ALLOWED_FROM, ELSEWHERE = "203.0.113.7", "198.51.100.1"
NO_KEY, EXPIRED, NO_RIGHT, NO_ADDRESS = (
    (401, "INVALID_API_KEY"),
    (401, "EXPIRED_API_KEY"),
    (403, "INSUFFICIENT_PERMISSIONS"),
    (403, "IP_NOT_WHITELISTED"),
)
Refusal = tuple[int, str]
RATE_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-window")

STRANGERS: dict[str, list[tuple[str, str]]] = {
    "no key": [],
    "an empty key": [("X-Api-Key", "")],
    "a malformed key": [("X-Api-Key", "sk_test_short")],
    "an unknown key": [("X-Api-Key", "sk_test_aaaabbbbccccdddd")],
    "an unknown bearer token": [("Authorization", "Bearer sk_live_aaaabbbbccccdddd")],
    "another scheme": [("Authorization", "Basic c2tfdGVzdA==")],
    "two keys": [("X-Api-Key", "sk_test_aaaabbbbccccdddd"), ("Authorization", "Bearer sk_test_ddddccccbbbbaaaa")],
}
KNOWN = (
    "expired", "revoked", "wrong address", "right address", "without the permission", "with the permission alone", "read-only",
    "client", "admin", "another merchant's", "live",
)  # fmt: skip
IDS = [f"{route.method} {route.path}" for route in ROUTES]


@dataclass
class House:
    """The service with a key of every kind. `keys` are those that are the same for every route."""

    edge: Edge
    keys: dict[str, str] = field(default_factory=dict)

    def key_for(self, route: Route, kind: str) -> str:
        """A key of that kind. Where the kind says nothing else, it is one that may do everything that the route asks for."""
        if kind == "without the permission":
            return self._special(route, tuple(p for p in PERMISSIONS if p != route.permission))
        if kind == "with the permission alone":
            return self._special(route, () if route.permission is None else (route.permission,))
        own = f"{_level(route)} {kind}"
        return self.keys[own if own in self.keys else kind]

    def _special(self, route: Route, permissions: tuple[str, ...]) -> str:
        level = _level(route)
        name = f"{level} {','.join(permissions)}"
        if name not in self.keys:
            self.keys[name] = make_key(self.edge.services, self.edge.shop, "test", level, permissions, "special")
        return self.keys[name]

    def ask(self, route: Route, path: str, headers: list[tuple[str, str]], body: bytes | None, source_ip: str) -> Response:
        return self.edge.call(route.method, path, key=None, headers=headers, body=body, source_ip=source_ip)


def _level(route: Route) -> Level:
    return "admin" if route.level == "admin" else "client"


@pytest.fixture
def house(opened_house: House) -> House:
    """The house, a minute later than the test before has left it."""
    opened_house.edge.services.clock.shift_ms += 60_000
    return opened_house


@pytest.fixture(scope="module")
def opened_house(running_aws: LocalAws) -> Iterator[House]:
    with running_aws.active():
        edge = PREPARED.edge(running_aws)
        wired = edge.services
        made = House(edge)
        made.keys = {"live": edge.keys["live"], "client": edge.keys["client"], "admin": edge.keys["admin"]}
        made.keys |= {"another merchant's": edge.keys["other"], "read-only": edge.keys["reader"]}
        for level in ("client", "admin"):
            made.keys[f"{level} expired"] = edge.new_key(level=level, expires_at=wired.clock.now_ms() - 1)
            made.keys[f"{level} revoked"] = edge.new_key(level=level)
            made.keys[f"{level} wrong address"] = made.keys[f"{level} right address"] = edge.new_key(
                level=level, ip_whitelist=["203.0.113.0/28", "2001:db8::/32"]
            )
            made.keys[f"{level} live"] = edge.new_key(level=level, realm="live")
            revoked = edge.call("GET", "/auth/test", key=made.keys[f"{level} revoked"]).json["data"]["key_id"]
            wired.api_keys.revoke(tenant_id(edge.shop, "test"), revoked)
        yield made


def refusal(route: Route, kind: str) -> Refusal | None:
    """What the row says about a key that is known; None: let in."""
    if route.level == "public":
        return None
    always = {"expired": EXPIRED, "revoked": NO_KEY, "wrong address": NO_ADDRESS}
    if kind in always:
        return always[kind]
    if route.level == "admin" and kind in ("client", "read-only", "another merchant's"):
        return NO_RIGHT
    if route.realm == "test" and kind == "live":
        return NO_RIGHT
    if kind == "without the permission" and route.permission is not None:
        return NO_RIGHT
    if kind == "read-only" and route.permission is not None and route.permission not in PRESETS["read-only"]:
        return NO_RIGHT
    return None


def path_of(route: Route) -> str:
    return re.sub(r"\{[^}]+\}", "x", route.address)


def assert_shape(route: Route, answer: Response) -> None:
    """The error has the shape of the route's family, and nothing beside it."""
    if route.family == "flat":
        assert {"error", "code"} <= answer.json.keys() <= {"error", "code", "details"}
        assert all(isinstance(value, str) for value in answer.json.values())
        return
    assert set(answer.json["error"]) == {"code", "message", "details"}
    if route.family == "object":
        assert set(answer.json) == {"error"}
        return
    assert set(answer.json) == {"success", "error", "meta"}
    assert answer.json["success"] is False
    assert set(answer.json["meta"]) == {"timestamp", "request_id"}
    assert answer.json["meta"]["request_id"] == answer.headers["x-request-id"]


def code_of(answer: Response) -> str:
    return str(answer.json["code"] if isinstance(answer.json["error"], str) else answer.json["error"]["code"])


def assert_refused(route: Route, answer: Response, expected: Refusal) -> None:
    assert (answer.status, code_of(answer)) == expected, answer.body
    assert_shape(route, answer)
    assert answer.headers["x-request-id"]


def assert_let_in(route: Route, answer: Response) -> None:
    assert answer.status not in (401, 403, 429)
    assert answer.status < 500, answer.body
    assert answer.headers["x-request-id"]
    if answer.status >= 400 and answer.headers["content-type"].startswith("text/html"):
        assert route.media == "text/html"
    elif answer.status >= 400:
        assert_shape(route, answer)


def each(kinds: Iterable[str], check: Callable[[str], None]) -> None:
    """Check one kind of key after the other. What fails says with which."""
    for kind in kinds:
        try:
            check(kind)
        except AssertionError as error:
            raise AssertionError(f"{kind}: {error}") from error


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_strangers(house: House, route: Route) -> None:
    """The body is no JSON: it must not come to that."""
    each(STRANGERS, partial(check_stranger, house, route))


def check_stranger(house: House, route: Route, kind: str) -> None:
    headers = STRANGERS[kind]
    if route.level == "public":
        assert_let_in(route, house.ask(route, path_of(route), headers, None, ELSEWHERE))
        return
    answer = house.ask(route, path_of(route), headers, b"{", ELSEWHERE)
    assert_refused(route, answer, NO_KEY)
    assert not [name for name in RATE_HEADERS if name in answer.headers], "nobody's limits"


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_known_keys(house: House, route: Route) -> None:
    each(KNOWN, partial(check_known, house, route))


def check_known(house: House, route: Route, kind: str) -> None:
    expected = refusal(route, kind)
    address = ELSEWHERE if kind == "wrong address" else ALLOWED_FROM
    # Who is let in asks for nothing; who is not must be refused before anybody looks at what they ask for.
    body = b"{" if expected else b"{}" if route.body is not None else None
    answer = house.ask(route, path_of(route), [("X-Api-Key", house.key_for(route, kind))], body, address)
    if expected is None:
        assert_let_in(route, answer)
    else:
        assert_refused(route, answer, expected)
    if route.level != "public":
        assert not [name for name in RATE_HEADERS if not answer.headers.get(name, "").isdecimal()]
    if expected == NO_RIGHT and route.permission is not None and route.family != "flat" and kind == "without the permission":
        assert answer.json["error"]["details"]["required"] == route.permission


@pytest.mark.parametrize("route", [route for route in ROUTES if route.level != "public"], ids=lambda r: f"{r.method} {r.path}")
def test_two_keys_that_are_both_good(house: House, route: Route) -> None:
    """None of the two counts."""
    headers = [("X-Api-Key", house.keys["admin"]), ("Authorization", f"Bearer {house.keys['client']}")]
    assert_refused(route, house.ask(route, path_of(route), headers, b"{", ALLOWED_FROM), NO_KEY)


def test_rate_classes_are_the_published_ones() -> None:
    """Webhook endpoints, admin endpoints, and what test keys create (decisions §13)."""
    for route in ROUTES:
        first = route.path.split("/")[1]
        expected = "webhooks" if first == "webhooks" else "admin" if route.level == "admin" else "standard"
        if (route.method, route.path) == ("POST", "/addresses"):
            expected = "addresses.create"
        if route.method == "POST" and route.path in ("/withdrawals", "/withdraws"):
            expected = "withdrawals.create"
        assert route.rate_class == expected, f"{route.method} {route.path}"


OPERATORS = {"coins", "merchants", "networks", "openapi"}
"""First parts of paths whose things belong to the operator: all merchants see them alike, or admin keys alone see them at all."""


@pytest.fixture(scope="module")
def owned(opened_house: House) -> dict[str, str]:
    """A thing of the shop's test realm for every place of a path that names one."""
    edge = opened_house.edge
    edge.services.clock.shift_ms += 60_000
    edge.credit("ethereum", "eth", 10**18)

    def post(path: str, **body: Any) -> Any:
        answer = edge.call("POST", path, json=body)
        assert answer.status == 201, answer.body
        return answer.json.get("data", answer.json)

    address = post("/addresses", network="ethereum")
    payee = "0x52908400098527886E0F7030069857D2E4169EE7"  # EIP-55's own example
    withdrawal = post("/withdrawals", network="ethereum", coin="eth", amount="0.1", to_address=payee)
    hook = post("/webhooks", url="http://127.0.0.1:8099/hook", events=["*"])
    sent = post(f"/webhooks/{hook['id']}/test")
    now = edge.services.clock.now_ms()
    job = post(f"/webhooks/{hook['id']}/redeliver", **{"from": iso(now - 2000), "to": iso(now - 1000)})
    key = post("/api-keys", name="n", permissions=["read-only"])
    invoice = post("/invoices", currency="eth", amount="1", network="ethereum")
    link = post("/payment-links", name="n", currency="eth", amount="1", network="ethereum")
    listed = post("/whitelist/addresses", network="ethereum", address=payee, label="n")
    network, txid = network_id("test", "ethereum"), "0x" + "ab" * 32
    deposit = Deposit(
        deposit_id(network, txid, "native"), network, asset_id(network, "eth"), tenant_id(edge.shop, "test"), txid, "native",
        payee, address["address"], 10**9, 1, "0x" + "cd" * 32, 1, 1,
    )  # fmt: skip
    collection = Collection(
        "col_01kab7n3q2w8z5r6t4y1v9c0x3", network, deposit.asset, address["address"], "m/0",
        tenant_id(edge.shop, "test"), 10**9, 1, 1, 1,
    )  # fmt: skip
    stray = StrayPayment(
        deposit.id, network, txid, "native", None, payee, address["address"], 10**9, 1, "0x" + "cd" * 32, 1, deposit.tenant or "",
        address["id"], 1, 1,
    )  # fmt: skip
    terms = Terms(network, deposit.asset, 1, now, invoice_id=invoice["id"], mode="same", expires_at=now + 60_000)
    refund = Refund(tenant_id(edge.shop, "test"), new_id("ref", now), terms, "awaiting_claim")
    edge.services.store.commit([Save(deposit), Save(collection), Save(stray), Save(refund)])
    return {
        "/addresses": address["id"],
        "/api-keys": key["key_id"],
        "/collections": collection.id,
        "/events": sent["eventId"],
        "/invoices": invoice["id"],
        "/payout-links": post("/payout-links", network="ethereum", coin="eth", amount="0.1")["id"],
        "/refunds": refund.id,
        "/payment-links": link["id"],
        "/sandbox/withdrawals": withdrawal["id"],
        "/stray-payments": stray.id,
        "/transactions": deposit.id,
        "/transactions/address": address["id"],
        "/webhooks": hook["id"],
        "/webhooks/deliveries": sent["id"],
        "/webhooks/redeliveries": job["id"],
        "/whitelist/addresses": listed["id"],
        "/withdrawals": withdrawal["id"],
    }


SHARED = {"{coin}", "{network}", "{slug}"}
"""Parts of paths that name the operator's things wherever they stand."""
NAMED = [
    route
    for route in ROUTES
    if set(re.findall(r"\{\w+\}", route.path)) - SHARED and route.level != "public" and route.path.split("/")[1] not in OPERATORS
]


@pytest.mark.parametrize("route", NAMED, ids=lambda r: f"{r.method} {r.path}")
def test_what_is_not_mine_looks_as_if_it_never_was(house: House, owned: dict[str, str], route: Route) -> None:
    """By another merchant's key and by a live key, the answer for a thing that is there is the one for a thing that is not. A live
    key reaches its merchant's test keys, and nothing else of the sandbox."""
    before, _, after = route.path.partition("/{")
    assert before in owned, f"say in `owned` which thing of a merchant's {route.path} names, or in OPERATORS that it is nobody's"
    real = owned[before]
    # Of the same length and kind, so that nothing but its being there tells the two apart.
    never = real[:-2] + ("0a" if real[-2:] != "0a" else "0b")
    rest = re.sub(r"^\w+\}", "", after).replace("{coin}", "eth")
    body = b"{}" if route.body is not None else None
    for kind in ("another merchant's", "live"):
        if refusal(route, kind) is not None or (kind == "live" and before == "/api-keys"):
            continue
        headers = [("X-Api-Key", house.key_for(route, kind))]
        seen = [house.ask(route, f"/v1{before}/{name}{rest}", headers, body, ALLOWED_FROM) for name in (real, never)]
        assert {answer.status for answer in seen} <= {400, 404}, seen[0].body
        told = [_comparable(answer.body.decode(), name) for answer, name in zip(seen, (real, never), strict=True)]
        assert told[0] == told[1]


def _comparable(text: str, name: str) -> str:
    """Without what differs between any two answers."""
    text = re.sub(r'"(timestamp|request_id)":"[^"]*"', "", text)
    return text.replace(name, "<name>")
