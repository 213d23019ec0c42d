"""Activity: which API key changed what, and when. One record for each request that changed something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.domain.ids import Realm, TenantId

PREFIX = "act"
KEPT_SECONDS = 366 * 86_400
"""How long a record is kept: a year."""

Outcome = Literal["done", "noted"]
"""`done`: the record is of the same transaction as the change, so neither is there without the other. `noted`: the change lies
outside of our transactions (a simulated chain), and the record was stored right after it."""


@dataclass(frozen=True, slots=True)
class Activity:
    """One request that changed something. It has no body, no query and no secret.

    `tenant` is the owner of the list that it is in: the key's own, `operators_of(realm)` for the operator's routes. `key_name` and
    `key_prefix` are the key's at that time. `object_id` is the object that the path names, else the one that the request named or
    made; `made_id` what was made beside it. `created_at` in milliseconds since 1970, `ttl` in seconds, for DynamoDB's own removal.
    """

    id: str
    tenant: TenantId
    key_id: str
    key_name: str
    key_prefix: str
    method: str
    route: str
    request_id: str
    created_at: int
    ttl: int
    object_id: str | None = None
    made_id: str | None = None
    outcome: Outcome = "done"
    version: int = 1

    @property
    def realm(self) -> Realm:
        return "test" if self.tenant.endswith(":test") else "live"


def operators_of(realm: Realm) -> TenantId:
    """The owner of the activity on the operator's routes, whichever admin key did it."""
    return TenantId(f"operator:{realm}")
