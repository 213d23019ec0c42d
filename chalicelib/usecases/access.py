"""API keys: how they are made, what they may do in which window of time, and what the edge needs to let a request in.

Knows nothing of HTTP and nothing of the database: `store/access.py` keeps the keys and counts.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Literal, Protocol

from chalicelib.domain.ids import MerchantId, Realm, new_id
from chalicelib.domain.merchants import PERMISSIONS, PRESETS, ApiKey, Level

_ALPHABET = string.ascii_letters + string.digits
_RANDOM_LENGTH = 16
_KEY = re.compile(r"sk_(live|test)_[A-Za-z0-9]{16}", re.ASCII)
PREFIX_LENGTH = 12
"""How much of a key may be shown: `sk_live_` and four characters. The other twelve are 71 bits nobody can guess."""

RateClass = Literal["standard", "webhooks", "admin", "addresses.create", "withdrawals.create"]
WINDOW_SECONDS: Mapping[str, int] = {"minute": 60, "hour": 3600, "day": 86400}
_LIMITS: Mapping[str, tuple[int, int, int]] = {
    "test": (100, 1_000, 10_000),
    "production": (1_000, 10_000, 100_000),
    "enterprise": (5_000, 50_000, 500_000),
}


@dataclass(frozen=True, slots=True)
class Window:
    """At most `limit` requests in each span of `seconds`, counted from 1970 on (fixed windows). `name` is its counter's."""

    name: str
    seconds: int
    limit: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a window is left, and when it starts anew (`reset_at` in seconds since 1970)."""

    window: Window
    remaining: int
    reset_at: int


@dataclass(frozen=True, slots=True)
class Admission:
    """The outcome of asking for one request with one key. The caller looks whether the key is still `alive`.

    `exhausted` is the window that refused it (nothing was counted then); `usage` the window with the least left.
    """

    key: ApiKey
    usage: Usage
    exhausted: Usage | None = None


class Gate(Protocol):
    """Where keys are kept and requests counted."""

    def admit(self, key_hash: str, realm: Realm, rate_class: RateClass, now_ms: int) -> Admission | None:
        """Count one request, unless the key is revoked, expired or at a limit. None: there is no such key. Raises Unavailable."""
        ...

    def save(self, key: ApiKey) -> None:
        """Store a new key. Raises Conflict when it is there already."""
        ...

    def keys_of(self, merchant: MerchantId) -> list[ApiKey]:
        """Every key of a merchant, both realms, oldest first."""
        ...

    def revoke(self, merchant: MerchantId, key_id: str, now_ms: int) -> ApiKey | None:
        """Refuse the key from now on. None: the merchant has no such key."""
        ...


def well_formed(key: str) -> bool:
    """Whether `key` looks like a key of this service: `sk_live_` or `sk_test_` and 16 of [A-Za-z0-9]."""
    return _KEY.fullmatch(key) is not None


def hash_key(key: str) -> str:
    """The SHA-256 of a key, in hex: all that is ever stored. The key has 95 random bits, so no salt and no slow hash is needed."""
    return hashlib.sha256(key.encode()).hexdigest()


def alive(key: ApiKey, now_ms: int) -> bool:
    """Neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now_ms)


def limits_of(key: ApiKey) -> tuple[Window, Window, Window]:
    """The minute, hour and day windows of a key. Its own limits may only lower those of its type (decisions §13)."""
    kind = "test" if key.realm == "test" else "enterprise" if key.enterprise else "production"
    minute, hour, day = _LIMITS[kind]
    if key.rate_limit is not None:
        minute = min(minute, key.rate_limit)
    if key.daily_limit is not None:
        day = min(day, key.daily_limit)
    return Window("minute", 60, minute), Window("hour", 3600, hour), Window("day", 86400, day)


CLASS_WINDOWS: Mapping[str, Window] = {
    "webhooks": Window("webhooks", 60, 100),
    "admin": Window("admin", 60, 500),
    "addresses.create": Window("addresses", 3600, 100),
    "withdrawals.create": Window("withdrawals", 3600, 50),
}
_TEST_ONLY = ("addresses.create", "withdrawals.create")


def class_window(rate_class: RateClass, realm: Realm) -> Window | None:
    """The window that a class of endpoints has beside the key's own three (decisions §13)."""
    return None if realm == "live" and rate_class in _TEST_ONLY else CLASS_WINDOWS.get(rate_class)


def permissions_of(names: Sequence[str]) -> tuple[str, ...]:
    """Permissions by name, presets (`read-only`, `write`, `full`) as what they stand for. Raises ValueError for unknown names."""
    wanted: set[str] = set()
    for name in names:
        if name in PRESETS:
            wanted.update(PRESETS[name])
        elif name in PERMISSIONS:
            wanted.add(name)
        else:
            raise ValueError(f"unknown permission {name!r}; known: {', '.join((*PRESETS, *PERMISSIONS))}")
    return tuple(p for p in PERMISSIONS if p in wanted)


def issue_key(
    *,
    merchant: MerchantId,
    realm: Realm,
    level: Level,
    name: str,
    permissions: Sequence[str],
    now_ms: int,
    ip_whitelist: Collection[str] = (),
    rate_limit: int | None = None,
    daily_limit: int | None = None,
    expires_at: int | None = None,
    enterprise: bool = False,
) -> tuple[ApiKey, str]:
    """A new key: the record to store, and the key itself, to be shown once and kept nowhere.

    `now_ms` and `expires_at` in milliseconds since 1970, `rate_limit` per minute, `daily_limit` per day.
    Raises ValueError for an unknown permission, an address that is neither an IP nor a CIDR range, or a limit below 1.
    """
    for text in ip_whitelist:
        ip_network(text, strict=False)
    for limit in (rate_limit, daily_limit):
        if limit is not None and limit < 1:
            raise ValueError("a limit is at least 1")
    plain = f"sk_{realm}_" + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    record = ApiKey(
        id=new_id("key", now_ms),
        hash=hash_key(plain),
        prefix=plain[:PREFIX_LENGTH],
        merchant=merchant,
        realm=realm,
        level=level,
        name=name,
        permissions=permissions_of(permissions),
        created_at=now_ms,
        ip_whitelist=tuple(ip_whitelist),
        rate_limit=rate_limit,
        daily_limit=daily_limit,
        expires_at=expires_at,
        enterprise=enterprise,
    )
    return record, plain
