"""Keys: how they are made, what they may do, how much of what in which window."""

from __future__ import annotations

import hashlib
import re

import pytest

from chalicelib.domain.ids import MerchantId
from chalicelib.domain.merchants.merchants import PERMISSIONS, PRESETS
from chalicelib.usecases.merchants.access import class_window, issue_key, limits_of, permissions_of, well_formed

SHOP = MerchantId("mch_1")


def made(**wanted):
    return issue_key(
        **{"merchant": SHOP, "realm": "live", "level": "client", "name": "n", "permissions": ["full"], "now_ms": 5} | wanted
    )


def test_a_key_has_the_published_form_and_is_kept_as_a_hash():
    for realm in ("live", "test"):
        record, plain = made(realm=realm)
        assert re.fullmatch(rf"sk_{realm}_[A-Za-z0-9]{{16}}", plain)
        assert well_formed(plain)
        assert record.hash == hashlib.sha256(plain.encode()).hexdigest()
        assert plain.startswith(record.prefix)
        assert plain[len(record.prefix) :] not in repr(record)
    assert len({made()[1] for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    "text",
    ["", "sk_live_", "sk_live_" + "a" * 15, "sk_live_" + "a" * 17, "sk_demo_" + "a" * 16, "SK_LIVE_" + "a" * 16,
     "ck_test_" + "a" * 16, "sk_test_" + "a" * 15 + "é", "sk_test_" + "a" * 15 + "-", "sk_test_" + "a" * 16 + "\n",
     "sk_test_" + "١" * 16],
)  # fmt: skip
def test_what_is_no_key(text):
    assert not well_formed(text)


def test_presets_are_kept_as_what_they_stand_for():
    assert made(permissions=["read-only"])[0].permissions == PRESETS["read-only"]
    assert permissions_of(["full"]) == PERMISSIONS
    assert permissions_of(["withdrawals:create", "addresses:read", "addresses:read"]) == ("addresses:read", "withdrawals:create")
    assert "withdrawals:create" not in permissions_of(["write"])
    with pytest.raises(ValueError, match="unknown permission"):
        permissions_of(["withdrawals:*"])


@pytest.mark.parametrize(
    "wrong", [{"ip_whitelist": ["10.0.0.300"]}, {"rate_limit": 0}, {"daily_limit": -1}, {"permissions": ["x"]}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError):
        made(**wrong)


@pytest.mark.parametrize(
    ("wanted", "limits"),
    [
        ({"realm": "test"}, (100, 1_000, 10_000)),
        ({"realm": "live"}, (1_000, 10_000, 100_000)),
        ({"realm": "live", "enterprise": True}, (5_000, 50_000, 500_000)),
        ({"realm": "live", "rate_limit": 7, "daily_limit": 9}, (7, 10_000, 9)),
        ({"realm": "test", "rate_limit": 5_000, "daily_limit": 10**6}, (100, 1_000, 10_000)),
    ],
)
def test_the_published_limits_which_a_key_can_only_lower(wanted, limits):
    windows = limits_of(made(**wanted)[0])
    assert tuple(window.limit for window in windows) == limits
    assert tuple(window.seconds for window in windows) == (60, 3600, 86400)


@pytest.mark.parametrize(
    ("rate_class", "realm", "expected"),
    [
        ("standard", "test", None),
        ("webhooks", "live", (60, 100)),
        ("admin", "live", (60, 500)),
        ("addresses.create", "test", (3600, 100)),
        ("addresses.create", "live", None),
        ("withdrawals.create", "test", (3600, 50)),
        ("withdrawals.create", "live", None),
    ],
)
def test_the_published_limits_of_classes(rate_class, realm, expected):
    window = class_window(rate_class, realm)
    assert (None if window is None else (window.seconds, window.limit)) == expected
