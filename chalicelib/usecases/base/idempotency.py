"""Stored answers to requests with an `Idempotency-Key`: only the record. The HTTP edge reads and replays it."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import TenantId

KEPT_MS = 24 * 3600 * 1000
"""How long an answer is kept, in milliseconds."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to the request with the key `key`, committed in the same transaction as the request's effect.

    `request_hash` is the SHA-256 of method, path and body; `body` is the answer to the byte. `expires_at` is in milliseconds
    since 1970; `ttl` is the same moment in seconds, for DynamoDB's own removal, which may come days later: readers look at
    `expires_at`, and an expired answer is overwritten with the next version. `sealed`: it shows a secret, and `body` is
    encrypted (`custody.sealed_answers`). `packed`: `body` is compressed, since an item has 400 KB and an answer may have more
    (`api.idempotency`).
    """

    tenant: TenantId
    key: str
    request_hash: str
    status: int
    body: str
    expires_at: int
    ttl: int
    sealed: bool = False
    packed: bool = False
    version: int = 1
