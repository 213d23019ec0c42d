"""Admission by API key: how a key is made, its limits per window of time, and what the edge needs to let a request in.

Knows nothing of HTTP and nothing of the database: `store/access.py` keeps the keys and counts.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, Protocol, TypedDict, Unpack

from chalicelib.domain.ids import MerchantId, Realm, new_id
from chalicelib.domain.merchants.merchants import PERMISSIONS, PRESETS, ApiKey, Level

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
class Asked:
    """The requirements of a request to its key, for it to be admitted and counted. None: no requirement.

    `client` is the address that it comes from; what is no address lies in no range.
    """

    client: str | None = None
    level: Level | None = None
    realm: Realm | None = None
    permission: str | None = None


ANYTHING = Asked()


@dataclass(frozen=True, slots=True)
class Admission:
    """The outcome of one request with one key. The caller checks whether the key is still `alive` and has what was asked: where
    it has not, nothing was counted.

    `exhausted` is the window that refused it (nothing was counted then either); `usage` the window with the least left.
    """

    key: ApiKey
    usage: Usage
    exhausted: Usage | None = None


@dataclass(frozen=True, slots=True)
class Weighed:
    """The outcome of weighing a request: the window with the least left; the minute window, where it had no room (`refused`)."""

    usage: Usage
    refused: bool = False


class Gate(Protocol):
    """Admits requests and counts them."""

    def admit(
        self, key_hash: str, realm: Realm, rate_class: RateClass, now_ms: int, asked: Asked = ANYTHING, requests: int = 1
    ) -> Admission | None:
        """Count one request, unless the key is revoked, expired, suspended, at a limit, or not what is `asked` of it. One that is
        as much work as several counts as so many `requests`, of which the last may go beyond a limit.

        On the demo, whose keys are public, each caller has limits of its own. Returns None for an unknown key. Raises
        Unavailable.
        """
        ...

    def weigh(self, key: ApiKey, weight: int, now_ms: int) -> Weighed:
        """Count a request that was let in at `now_ms` as `weight` requests in the minute window of its live key, and never as more
        than the window holds. One that does not fit is refused, and not counted in any window. Raises Unavailable."""
        ...

    def last_used(self, key_hashes: Sequence[str]) -> dict[str, int]:
        """When each key was last let in, in milliseconds since 1970, to the minute. Raises Unavailable."""
        ...


Networks = tuple[IPv4Network | IPv6Network, ...]


@lru_cache(maxsize=256)
def networks_of(texts: tuple[str, ...]) -> Networks:
    """The ranges of an IP list. An IPv4-mapped IPv6 range (::ffff:192.0.2.0/120, RFC 4291 section 2.5.5.2) is that IPv4 range.
    Raises ValueError for text that is neither an address nor a range."""
    networks: list[IPv4Network | IPv6Network] = []
    for text in texts:
        network = ip_network(text, strict=False)
        if isinstance(network, IPv6Network) and network.prefixlen >= 96 and network.network_address.ipv4_mapped is not None:
            network = IPv4Network((network.network_address.ipv4_mapped, network.prefixlen - 96))
        networks.append(network)
    return tuple(networks)


def may_come_from(ranges: tuple[str, ...], client: str) -> bool:
    """Whether the address `client` lies in an IP list. Every address lies in an empty list; text that is no address lies in no
    other.

    An IPv4-mapped IPv6 address (::ffff:192.0.2.1, RFC 4291 section 2.5.5.2) is that IPv4 address.
    """
    if not ranges:
        return True
    try:
        address = ip_address(client)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return any(address in network for network in networks_of(ranges))


def canonical_range(text: str) -> str:
    """An address or a CIDR range in its usual spelling: `2001:DB8::1` is `2001:db8::1`, `192.0.2.7/24` is `192.0.2.0/24`.

    Raises ValueError, in words for the caller. Masks that are not a prefix length, and zones, are refused.
    """
    _, slash, prefix = text.partition("/")
    if "%" in text:
        raise ValueError("must have no zone")
    if slash and not (prefix.isascii() and prefix.isdigit() and len(prefix) <= 3):
        raise ValueError("must have a prefix length such as /24 behind the slash")
    try:
        (network,) = networks_of((text,))
    except ValueError:
        raise ValueError("must be an IPv4 or IPv6 address, or a range such as 203.0.113.0/24") from None
    return str(network) if slash else str(network.network_address)


SOURCES = 64
"""How many callers of one key are told apart on the demo: all their counters lie in the key's own item, so they are bounded."""


def source_of(address: str) -> str:
    """The caller behind an address: an IPv4 address itself, also as an IPv4-mapped IPv6 address (::ffff:192.0.2.1, RFC 4291 section
    2.5.5.2); of an IPv6 address the first 64 bits, which one customer has (RFC 6177). All text that is no address is one caller."""
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        return f"{int(found) >> 64:016x}" if mapped is None else str(mapped)
    return str(found)


def source_number(source: str, now_ms: int) -> int:
    """Which of `SOURCES` callers an address is, for a day. Two that share a number share its limits, and on the next day it is
    another two."""
    digest = hashlib.sha256(f"{now_ms // 86_400_000} {source_of(source)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % SOURCES


def well_formed(key: str) -> bool:
    """Whether `key` looks like a key of this service: `sk_live_` or `sk_test_` and 16 of [A-Za-z0-9]."""
    return _KEY.fullmatch(key) is not None


def hash_key(key: str) -> str:
    """The SHA-256 of a key, in hex: all that is ever stored. The key has 95 random bits, so no salt and no slow hash is needed."""
    return hashlib.sha256(key.encode()).hexdigest()


def alive(key: ApiKey, now_ms: int) -> bool:
    """Whether the key is neither revoked nor expired, nor its merchant suspended."""
    return key.revoked_at is None and key.suspended_at is None and (key.expires_at is None or key.expires_at > now_ms)


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
    """Permissions by name, presets (`read-only`, `write`, `full`) expanded. Raises ValueError for unknown names."""
    wanted: set[str] = set()
    for name in names:
        if name in PRESETS:
            wanted.update(PRESETS[name])
        elif name in PERMISSIONS:
            wanted.add(name)
        else:
            raise ValueError(f"unknown permission {name!r}; known: {', '.join((*PRESETS, *PERMISSIONS))}")
    return tuple(p for p in PERMISSIONS if p in wanted)


class KeyLimits(TypedDict, total=False):
    """Terms that narrow or widen a new key, in the words of `ApiKey`."""

    rate_limit: int | None
    daily_limit: int | None
    expires_at: int | None
    enterprise: bool
    created_by: str | None


def issue_key(
    *,
    merchant: MerchantId,
    realm: Realm,
    level: Level,
    name: str,
    permissions: Sequence[str],
    now_ms: int,
    ip_whitelist: Collection[str] = (),
    **limits: Unpack[KeyLimits],
) -> tuple[ApiKey, str]:
    """A new key: the record to store, and the key itself, to be shown once and kept nowhere.

    `now_ms` and `expires_at` in milliseconds since 1970, `rate_limit` per minute, `daily_limit` per day.
    Raises ValueError for an unknown permission, an address that is neither an IP nor a CIDR range, or a limit below 1.
    """
    networks_of(tuple(ip_whitelist))
    for limit in (limits.get("rate_limit"), limits.get("daily_limit")):
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
        **limits,
    )
    return record, plain
