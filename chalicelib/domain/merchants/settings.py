"""A merchant's settings for its own money, per realm."""

from __future__ import annotations

from dataclasses import dataclass, field

from chalicelib.domain.ids import TenantId
from chalicelib.domain.withdrawals.approvals import MultisigConfig

MOST_RESETS = 20


@dataclass(frozen=True, slots=True)
class SettingsReset:
    """A removal of a merchant's signers by the operator. `by` is the AWS identity that did it; `signers` are the ids of the
    removed ones."""

    at: int
    by: str
    signers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MerchantSettings:
    """`version` is shown as the revision, which signed changes name. `updated_by` is a key's id; times in ms since 1970.

    `refund_daily_limit_usd`: the most in US dollars (plain decimal) that refunds and payout links may come to in 24 hours while
    the whitelist is enforced; "0": none is allowed then. `resets`: when the operator took the signers away, and who that was (at
    most the last `MOST_RESETS`).
    """

    tenant: TenantId
    whitelist_enforced: bool = False
    multisig: MultisigConfig = field(default_factory=MultisigConfig)
    updated_at: int | None = None
    updated_by: str | None = None
    resets: tuple[SettingsReset, ...] = ()
    refund_daily_limit_usd: str = "0"
    version: int = 0
