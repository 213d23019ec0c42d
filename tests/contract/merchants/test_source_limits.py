"""What one source may ask without a valid key: 600 requests a minute, counted without a call, and no valid key pays for it."""

from __future__ import annotations

import random
import re
import string
from collections import Counter

import pytest

from chalicelib.usecases.merchants.source_limits import LIMIT, SourceLimits
from chalicelib.web.parts import PAGE_TYPE
from infra.local.server import Server
from tests.support.edge import PREPARED, Edge
from tests.support.stack import Response

HERE, ELSEWHERE = "198.51.100.7", "203.0.113.9"
MINUTE = 60_000


FEW = 20
"""Where what is tested is which requests count, and not how many may."""


@pytest.fixture
def edge(aws) -> Edge:
    """At the first millisecond of a minute, as far as the service knows."""
    edge = PREPARED.edge(aws)
    clock = edge.services.clock
    clock.shift_ms = -(clock.now_ms() % MINUTE)
    return edge


@pytest.fixture
def few(edge: Edge) -> Edge:
    """The same with a limit of `FEW`."""
    edge.services.__dict__["source_limits"] = SourceLimits(FEW)
    return edge


def unknown_key(number: int) -> str:
    letters = random.Random(number).choices(string.ascii_letters, k=16)
    return "sk_test_" + "".join(letters)


def get(edge: Edge, path: str = "/health", key: str | None = None, source: str = HERE) -> Response:
    return edge.call("GET", path, key=key, source_ip=source)


def exhaust(edge: Edge, source: str = HERE, path: str = "/health", count: int = FEW) -> None:
    for _ in range(count):
        assert get(edge, path, source=source).status != 429


def send_unknown_keys(edge: Edge, count: int, source: str = HERE) -> Counter[int]:
    return Counter(get(edge, "/auth/test", unknown_key(n), source).status for n in range(count))


def assert_refused(edge: Edge, answer: Response, limit: int = FEW) -> None:
    assert answer.status == 429
    now = edge.services.clock.now_ms()
    assert 0 <= int(answer.headers["retry-after"]) - (MINUTE - now % MINUTE) / 1000 < 2
    if answer.headers["content-type"] == PAGE_TYPE:
        assert "Wait a minute, and load this page again." in answer.body.decode()
    else:
        error = answer.json["error"]
        code, details = (answer.json["code"], None) if isinstance(error, str) else (error["code"], error["details"])
        assert code == "RATE_LIMIT_EXCEEDED"
        if details is not None:
            assert (details["limit"], details["window"]) == (limit, 60)
            assert re.fullmatch(r".*:00\.000Z", details["reset_at"])
    assert (answer.headers["x-ratelimit-limit"], answer.headers["x-ratelimit-remaining"]) == (str(limit), "0")


@pytest.mark.parametrize(
    "path",
    ["/health", "/v1/health", "/openapi", "/openapi/openapi.json", "/openapi/nothing.css", "/pay/inv_1", "/v1/pay/inv_1/status"],
)
def test_public_pages_files_and_documents_are_bounded(edge: Edge, path: str) -> None:
    exhaust(edge, count=LIMIT - 1)
    exhaust(edge, path=path, count=1)
    calls = edge.calls()
    refused = get(edge, path)
    assert_refused(edge, refused, LIMIT)
    assert refused.headers["content-type"] == (PAGE_TYPE if path == "/pay/inv_1" else "application/json"), "people read pages"
    assert calls.made == []
    assert get(edge, path, source=ELSEWHERE).status != 429, "other sources go on"
    edge.services.clock.shift_ms += MINUTE
    assert get(edge, path).status != 429, "the next minute is another one"


def test_public_pages_and_requests_without_a_key_are_one_sum(edge: Edge) -> None:
    ways = [("/health", None), ("/auth/test", None), ("/coins", "nonsense"), ("/pay/inv_1", None), ("/networks", "sk_test_short")]
    for n in range(LIMIT):
        assert get(edge, *ways[n % len(ways)]).status != 429
    calls = edge.calls()
    for path, key in ways:
        assert_refused(edge, get(edge, path, key), LIMIT)
    assert calls.made == []


def test_random_keys_cost_six_hundred_reads_a_minute_and_no_more(edge: Edge) -> None:
    get(edge, "/auth/test", "client")
    calls = edge.calls()
    assert send_unknown_keys(edge, 2 * LIMIT) == {401: LIMIT, 429: LIMIT}
    assert calls.made == ["UpdateItem"] * LIMIT
    edge.services.clock.shift_ms += MINUTE
    assert send_unknown_keys(edge, 5) == {401: 5}


def test_revoked_expired_and_foreign_keys_count_as_none(few: Edge) -> None:
    now = few.services.clock.now_ms()
    revoked, expired = few.new_key(), few.new_key(expires_at=now - 1)
    few.services.api_keys.revoke(f"{few.shop}:test", get(few, "/auth/test", revoked).json["data"]["key_id"])
    foreign = few.new_key(ip_whitelist=[ELSEWHERE])
    keys = (revoked, expired, foreign)
    calls = few.calls()
    seen = Counter(get(few, "/auth/test", keys[n % 3]).status for n in range(2 * FEW))
    assert seen == {401: 14, 403: 6, 429: FEW}
    # The foreign key's first request asks a second time, with the list of addresses that it learned.
    assert set(calls.made) == {"UpdateItem"}
    assert len(calls.made) <= FEW + 1
    assert get(few, "/auth/test", foreign, ELSEWHERE).status == 200


def test_a_key_that_was_just_valid_here_passes_whatever_its_neighbours_send(few: Edge) -> None:
    assert get(few, "/auth/test", "client").status == 200
    exhaust(few)
    assert set(send_unknown_keys(few, FEW + 1)) == {429}
    for minutes in (0, 9, 9):
        few.services.clock.shift_ms += minutes * MINUTE
        send_unknown_keys(few, FEW + 1)
        assert get(few, "/auth/test", "client").status == 200, "each time, it is valid for ten minutes more"
    few.services.clock.shift_ms += 10 * MINUTE
    send_unknown_keys(few, FEW + 1)
    assert_refused(few, get(few, "/auth/test", "client"))


def test_a_key_of_which_this_process_knows_nothing_passes_beside_payers(few: Edge) -> None:
    """Many payers behind one address, on public pages: the shop's own first request comes from there too."""
    exhaust(few)
    assert get(few).status == 429
    assert get(few, "/auth/test", "client").status == 200
    assert get(few, "/auth/test", "reader").status == 200


def test_valid_keys_are_never_counted(few: Edge) -> None:
    """Also where they lack a right or are at their own limit: those answers are the key's."""
    key = few.new_key("coins:read", rate_limit=10)
    answers = Counter(get(few, path, key).status for _ in range(FEW) for path in ("/auth/test", "/balances"))
    assert answers == {200: 10, 429: FEW - 10, 403: FEW}
    assert send_unknown_keys(few, FEW) == {401: FEW}


def test_a_key_remembered_as_valid_is_refused_as_soon_as_it_is_revoked(few: Edge) -> None:
    key = few.new_key()
    found = get(few, "/auth/test", key)
    few.services.api_keys.revoke(f"{few.shop}:test", found.json["data"]["key_id"])
    assert get(few, "/auth/test", key).status == 401
    calls = few.calls()
    assert Counter(get(few, "/auth/test", key).status for _ in range(FEW + 5)) == {401: FEW - 1, 429: 6}
    assert len(calls.made) == FEW


def test_a_key_valid_elsewhere_opens_no_door_here(few: Edge) -> None:
    """It is bound to another address: who has got hold of it is a stranger, and pays as one."""
    key = few.new_key(ip_whitelist=[ELSEWHERE])
    assert get(few, "/auth/test", key, ELSEWHERE).status == 200
    assert Counter(get(few, "/auth/test", key).status for _ in range(FEW + 5)) == {403: FEW, 429: 5}
    assert get(few, "/auth/test", key, ELSEWHERE).status == 200


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("198.51.100.7", "::ffff:198.51.100.7", True),
        ("198.51.100.7", "::ffff:c633:6407", True),
        ("198.51.100.7", "198.51.100.8", False),
        ("::ffff:198.51.100.7", "::ffff:198.51.100.8", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "no address", True),
    ],
)
def test_which_addresses_are_one_source(few: Edge, first: str, second: str, same: bool) -> None:
    exhaust(few, first)
    assert get(few, source=first).status == 429
    assert (get(few, source=second).status == 429) is same


def test_no_header_moves_a_request_to_another_source(few: Edge) -> None:
    claims = ("X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip")
    for n in range(FEW):
        few.call("GET", "/health", key=None, headers={claims[n % 6]: f"192.0.2.{n % 250}"}, source_ip=HERE)
    for claim in claims:
        assert few.call("GET", "/health", key=None, headers={claim: "192.0.2.251"}, source_ip=HERE).status == 429


def test_both_versions_of_a_path_and_all_methods_count_together(few: Edge) -> None:
    for n in range(FEW):
        few.call(("GET", "POST")[n % 2], ("/v1/addresses", "/addresses")[n % 3 % 2], key=None, source_ip=HERE)
    for method, path in (("GET", "/invoices"), ("POST", "/coins"), ("GET", "/balances")):
        assert_refused(few, few.call(method, path, key=None, source_ip=HERE))


def test_the_store_is_not_flooded_while_it_is_down(few: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that nothing has shown to be valid stays counted; one that was valid a moment ago is asked for."""
    from chalicelib.usecases.ports.failures import Unavailable

    assert get(few, "/auth/test", "client").status == 200
    asked: list[str] = []

    def away(key_hash: str, *_: object) -> None:
        asked.append(key_hash)
        raise Unavailable("the key store did not answer")

    monkeypatch.setattr(few.services.gate, "admit", away)
    assert send_unknown_keys(few, FEW + 50) == {500: FEW, 429: 50}
    assert len(asked) == FEW
    assert get(few, "/auth/test", "client").status == 500


def test_over_sockets_the_source_is_who_connects(edge: Edge) -> None:
    import http.client

    from app import app

    server = Server(app, 0)
    server.start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        seen: Counter[int] = Counter()
        for n in range(LIMIT + 20):
            connection.request("GET", "/api/health", headers={"X-Forwarded-For": f"192.0.2.{n % 250}"})
            answer = connection.getresponse()
            answer.read()
            seen[answer.status] += 1
        assert int(answer.headers["Retry-After"]) <= 60
        connection.request("GET", "/api/auth/test", headers={"X-Api-Key": edge.keys["client"]})
        assert connection.getresponse().status == 200
    finally:
        server.stop()
    assert seen == {200: LIMIT, 429: 20}
