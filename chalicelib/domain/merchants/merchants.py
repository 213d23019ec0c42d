"""Merchants and their API keys: levels, permissions, restrictions, and the caller's identity."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from chalicelib.domain.ids import MerchantId, Realm, TenantId, tenant_id
from chalicelib.domain.versions import next_version

Level = Literal["client", "admin"]

PERMISSIONS: tuple[str, ...] = tuple(
    f"{resource}:{action}"
    for resource, actions in {
        "addresses": ("read", "create", "write"),
        "balances": ("read",),
        "coins": ("read", "write"),
        "events": ("read",),
        "invoices": ("read", "create", "write"),
        "keys": ("read", "write"),
        "merchant": ("read", "write"),
        "networks": ("read", "write"),
        "sandbox": ("write",),
        "transactions": ("read",),
        "webhooks": ("read", "write"),
        "whitelist": ("read", "write"),
        "withdrawals": ("read", "create", "write"),
    }.items()
    for action in actions
)
PRESETS: dict[str, tuple[str, ...]] = {
    "read-only": tuple(p for p in PERMISSIONS if p.endswith(":read")),
    "write": tuple(p for p in PERMISSIONS if not p.startswith(("withdrawals:create", "withdrawals:write", "keys:write"))),
    "full": PERMISSIONS,
}


@dataclass(frozen=True, slots=True)
class Merchant:
    """A merchant of this deployment. `created_at` in milliseconds since 1970."""

    id: MerchantId
    name: str
    created_at: int
    plan: Literal["standard", "enterprise"] = "standard"
    settings: dict[str, Any] = field(default_factory=dict)
    version: int = 1


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key. The key itself is shown once and never stored: `hash` is its SHA-256, `prefix` what may be shown of it.

    Times in milliseconds since 1970; `rate_limit` per minute and `daily_limit` per day may only lower the key type's own.
    `suspended_at` is there while its merchant is suspended. `replaced_by` is the id of its successor after a rotation, `created_by`
    that of the key that made this one (None: the operator did, at the command line).
    """

    id: str
    hash: str
    prefix: str
    merchant: MerchantId
    realm: Realm
    level: Level
    name: str
    permissions: tuple[str, ...]
    created_at: int
    ip_whitelist: tuple[str, ...] = ()
    rate_limit: int | None = None
    daily_limit: int | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    enterprise: bool = False
    replaced_by: str | None = None
    created_by: str | None = None
    suspended_at: int | None = None
    version: int = 1

    @property
    def tenant(self) -> TenantId:
        return tenant_id(self.merchant, self.realm)


@dataclass(frozen=True, slots=True)
class Tally:
    """A tenant's count of its records of one kind, `of`. Written in the transaction that adds or removes a record, so that a
    maximum holds exactly, also for concurrent requests.
    """

    tenant: TenantId
    of: Literal["keys", "webhooks"]
    count: int
    version: int = 1

    def plus(self, change: int) -> Tally:
        """The count after `change` more (fewer, where it is negative)."""
        return replace(next_version(self), count=max(0, self.count + change))
