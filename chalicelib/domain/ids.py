"""Identifiers of tenants, networks, assets and records. All are strings, so that they can be part of a storage key.

A *realm* is ``live`` or ``test``. Test keys work on simulated networks with data of their own, so the realm is part of
every name below and nothing of one realm can be reached with a name of the other.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Literal, NewType, cast

Realm = Literal["live", "test"]
REALMS: tuple[Realm, ...] = ("live", "test")
Environment = Literal["production", "test"]
"""The interface's word for a realm."""

MerchantId = NewType("MerchantId", str)
"""``mch_...``: a merchant, whatever the realm."""
TenantId = NewType("TenantId", str)
"""``mch_...:live``: one merchant in one realm. Part of the key of everything that a merchant owns (money rule 9)."""
NetworkId = NewType("NetworkId", str)
"""``live:ethereum``: one network in one realm."""
AssetId = NewType("AssetId", str)
"""``live:ethereum:usdt``: one coin on one network. Two assets are never added."""

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
"""Two digits at a time: an outbox row's deliveries have their ids worked out again and again."""


def environment(realm: Realm) -> Environment:
    """``live`` → ``production``."""
    return "production" if realm == "live" else "test"


def tenant_id(merchant: MerchantId, realm: Realm) -> TenantId:
    return TenantId(f"{merchant}:{realm}")


def tenant_parts(tenant: TenantId) -> tuple[MerchantId, Realm]:
    merchant, realm = tenant.rsplit(":", 1)
    return MerchantId(merchant), cast(Realm, realm)


def network_id(realm: Realm, slug: str) -> NetworkId:
    return NetworkId(f"{realm}:{slug}")


def network_parts(network: NetworkId) -> tuple[Realm, str]:
    """``live:ethereum`` → ``("live", "ethereum")``."""
    realm, slug = network.split(":", 1)
    return cast(Realm, realm), slug


def asset_id(network: NetworkId, coin: str) -> AssetId:
    return AssetId(f"{network}:{coin}")


def asset_parts(asset: AssetId) -> tuple[NetworkId, str]:
    """``live:ethereum:usdt`` → ``("live:ethereum", "usdt")``."""
    network, coin = asset.rsplit(":", 1)
    return NetworkId(network), coin


def _base32(value: int, length: int) -> str:
    text = "".join([_PAIRS[value >> shift & 1023] for shift in range(10 * ((length - 1) // 2), -1, -10)])
    return text[-length:]


def new_id(prefix: str, now_ms: int) -> str:
    """A fresh id, ``prefix_`` + 26 characters, that sorts by time of creation (the layout of a ULID).

    `now_ms` is the time in milliseconds since 1970.
    """
    return f"{prefix}_{_base32(now_ms, 10)}{_base32(secrets.randbits(80), 16)}"


def next_id(id: str) -> str:
    """The id that follows `id`, which `new_id` made: with the same time, so that two of one millisecond have an order."""
    prefix, _, tail = id.partition("_")
    value = 0
    for digit in tail:
        value = value * 32 + _CROCKFORD.index(digit)
    return f"{prefix}_{_base32(value + 1, len(tail))}"


def first_id(prefix: str, at_ms: int) -> str:
    """The lower bound of the ids that `new_id` makes from this time on: itself no id. `at_ms` in milliseconds since 1970."""
    return f"{prefix}_{_base32(max(0, at_ms), 10)}"


def made_at(id: str) -> int:
    """The creation time in an id of `new_id`, in milliseconds since 1970. Raises ValueError for any other text."""
    digits = id.partition("_")[2][:10]
    value = 0
    for digit in digits:
        value = value * 32 + _CROCKFORD.index(digit)
    return value


def place_in_time(at_ms: int, id: str) -> str:
    """The position in lists by time of a record whose id has no time. `at_ms` in milliseconds since 1970."""
    return f"{at_ms:015d}#{id}"


def derived_id(prefix: str, *parts: str) -> str:
    """The id that belongs to `parts`: the same parts always give the same id, so that doing a thing twice finds the first."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return f"{prefix}_{_base32(int.from_bytes(digest[:17], 'big') >> 6, 26)}"


def group_id(prefix: str, now_ms: int) -> str:
    """A fresh id of a group of up to 1,023 numbered members, see `member_id`. Sorts by time as `new_id` does."""
    return new_id(prefix, now_ms)[:-2] + "00"


def member_id(prefix: str, group: str, number: int) -> str:
    """The id of member `number` (from 1) of a group: derived from the group's id, and sorted behind it."""
    return f"{prefix}_{group.partition('_')[2][:-2]}{_base32(number, 2)}"


def group_of(prefix: str, member: str) -> str:
    """The id of the group that `member` belongs to, if it belongs to one."""
    return f"{prefix}_{member.partition('_')[2][:-2]}00"
