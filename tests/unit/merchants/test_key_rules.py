"""What a key may hand on to another, and how addresses are written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.errors import BusinessRule, ServiceError
from chalicelib.domain.ids import MerchantId
from chalicelib.domain.merchants.merchants import ApiKey
from chalicelib.usecases.merchants.access import canonical_range, issue_key, may_come_from
from chalicelib.usecases.merchants.api_keys import NotHeld, _check_within, _wider, key_view

NOW = 1_767_323_045_006


def a_key(**terms: Any) -> ApiKey:
    wanted = {"realm": "live", "level": "client", "name": "n", "permissions": ["read-only"], "now_ms": NOW} | terms
    return issue_key(merchant=MerchantId("mch_1"), **wanted)[0]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7/24", "203.0.113.0/24"),
        ("203.0.113.7/32", "203.0.113.7/32"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.0/120", "203.0.113.0/24"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
    ],
)
def test_addresses_and_ranges_are_kept_in_their_usual_spelling(sent: str, stored: str) -> None:
    assert canonical_range(sent) == stored


@pytest.mark.parametrize(
    "sent",
    ["", " ", "10.0.0.300", "10.0.0", "010.0.0.1", "10.0.0.1/33", "10.0.0.0/255.0.0.0", "10.0.0.0/", "10.0.0.0/+8", "::1/129",
     "fe80::1%eth0", "fe80::%1/64", "10.0.0.1/8/8", "localhost", "1", "10.0.0.0/٨", "10.0.0.0-10.0.0.9", "10.0.0.1 "],
)  # fmt: skip
def test_what_is_neither_an_address_nor_a_range(sent: str) -> None:
    with pytest.raises(ValueError, match="must "):
        canonical_range(sent)


@pytest.mark.parametrize(
    ("ranges", "client", "expected"),
    [
        ((), "no address", True),
        (("0.0.0.0/0", "::/0"), "no address", False),
        (("0.0.0.0/0",), "2001:db8::1", False),
        (("::/0",), "203.0.113.7", False),
        (("203.0.113.0/25",), "::ffff:203.0.113.7", True),
        (("203.0.113.0/25",), "203.0.113.128", False),
        (("10.0.0.1", "2001:db8::/33"), "2001:db8:7fff::", True),
        (("10.0.0.1", "2001:db8::/33"), "2001:db8:8000::", False),
        (("fe80::/10",), "fe80::1%eth0", True),
    ],
)
def test_which_addresses_lie_in_a_list(ranges: tuple[str, ...], client: str, expected: bool) -> None:
    assert may_come_from(ranges, client) is expected


WIDER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"permissions": ["withdrawals:create"]}),
    ({"ip_whitelist": ["10.0.0.0/8"]}, {"ip_whitelist": []}),
    ({"ip_whitelist": ["10.0.0.0/8"]}, {"ip_whitelist": ["10.1.0.0/16", "11.0.0.1"]}),
    ({"ip_whitelist": ["10.0.0.0/8"]}, {"ip_whitelist": ["::/0"]}),
    ({"ip_whitelist": ["10.0.0.0/8"]}, {"ip_whitelist": ["::ffff:11.0.0.0/104"]}),
    ({"rate_limit": 10}, {"rate_limit": 11}),
    ({"rate_limit": 10}, {"rate_limit": None}),
    ({"daily_limit": 10}, {"daily_limit": None}),
    ({"expires_at": NOW + 5}, {"expires_at": NOW + 6}),
    ({"expires_at": NOW + 5}, {"expires_at": None}),
]
WITHIN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"permissions": ["addresses:read"]}),
    ({}, {"ip_whitelist": ["10.0.0.1"], "rate_limit": 5, "daily_limit": 5, "expires_at": NOW + 5}),
    ({"ip_whitelist": ["10.0.0.0/8", "2001:db8::/32"]}, {"ip_whitelist": ["10.1.0.0/16", "2001:db8::1", "::ffff:10.2.3.4"]}),
    ({"rate_limit": 10}, {"rate_limit": 10}),
    ({}, {"rate_limit": 5_000}),
    ({"expires_at": NOW + 5}, {"expires_at": NOW + 5}),
]


@pytest.mark.parametrize(("giver", "wanted"), WIDER)
def test_nobody_hands_out_more_than_they_have(giver: dict[str, Any], wanted: dict[str, Any]) -> None:
    with pytest.raises(ServiceError) as caught:
        _check_within(a_key(**giver), a_key(**wanted))
    assert isinstance(caught.value, NotHeld if "permissions" in wanted else BusinessRule)
    assert _wider(a_key(**giver), a_key(**wanted))
    assert not _wider(a_key(**wanted), a_key(**wanted))


@pytest.mark.parametrize(("giver", "wanted"), WITHIN)
def test_what_lies_within_is_theirs_to_give(giver: dict[str, Any], wanted: dict[str, Any]) -> None:
    _check_within(a_key(**giver), a_key(**wanted))
    assert not _wider(a_key(**giver), a_key(**wanted))


def test_the_record_shows_the_limits_that_hold_and_never_the_hash() -> None:
    key = a_key(rate_limit=9_999_999, daily_limit=7)
    shown = key_view(key, NOW)
    assert shown["restrictions"] == {"ip_whitelist": [], "rate_limit": 1_000, "daily_limit": 7}
    assert key.hash not in repr(shown)
    assert (shown["status"], shown["expires_at"]) == ("active", None)
    assert key_view(replace(key, expires_at=NOW), NOW)["status"] == "expired"
