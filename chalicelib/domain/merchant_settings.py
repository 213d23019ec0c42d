"""What a merchant has decided about its own money, per realm."""

from __future__ import annotations

from dataclasses import dataclass, field

from chalicelib.domain.approvals import MultisigConfig
from chalicelib.domain.ids import TenantId


@dataclass(frozen=True, slots=True)
class MerchantSettings:
    """`version` is shown as the revision, which signed changes name. `updated_by` is a key's id; times in ms since 1970."""

    tenant: TenantId
    whitelist_enforced: bool = False
    multisig: MultisigConfig = field(default_factory=MultisigConfig)
    updated_at: int | None = None
    updated_by: str | None = None
    version: int = 0
