"""Suspended merchants: one record for each merchant and realm, and the operator's list of merchants, which shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.domain.ids import MerchantId, Realm, TenantId
from chalicelib.domain.versions import next_version

Standing = Literal["active", "suspending", "suspended", "resuming"]


@dataclass(frozen=True, slots=True)
class Suspension:
    """Whether a merchant is suspended in a realm, since when (milliseconds since 1970), why, and by which key. There is none of a
    merchant that never was.

    `carried`: every API key says the same. Until then some keys may be let in that are not to be, or the other way round.
    """

    tenant: TenantId
    suspended: bool
    since: int
    by: str
    reason: str | None = None
    carried: bool = False
    version: int = 1

    @property
    def standing(self) -> Standing:
        if self.suspended:
            return "suspended" if self.carried else "suspending"
        return "active" if self.carried else "resuming"


def standing_of(found: Suspension | None) -> Standing:
    """The standing of a merchant with this record, or without one."""
    return "active" if found is None else found.standing


@dataclass(frozen=True, slots=True)
class ListedMerchant:
    """An entry of the operator's list of merchants: all of them lie together, in the order of their ids. `created_at` in
    milliseconds since 1970; `suspended` are the realms where the merchant is suspended."""

    id: MerchantId
    name: str
    created_at: int
    suspended: tuple[Realm, ...] = ()
    version: int = 1

    def standing_in(self, realms: tuple[Realm, ...], suspended: bool) -> ListedMerchant:
        """The next version, suspended in `realms`, or not any more."""
        others = [realm for realm in self.suspended if realm not in realms]
        return replace(next_version(self), suspended=tuple(sorted([*others, *(realms if suspended else ())])))
