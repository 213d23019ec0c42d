"""The whitelist: a merchant's trusted withdrawal addresses, and their limits."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import NetworkId, TenantId, derived_id
from chalicelib.domain.money import floor_units


@dataclass(frozen=True, slots=True)
class WhitelistEntry:
    """One address of one network. `address` is its public spelling, of which there is one.

    The limits are plain decimals in coin units, for every coin by itself; None: no limit. Times in milliseconds since 1970.
    A removed entry stays, so that its address keeps one id.
    """

    id: str
    tenant: TenantId
    network: NetworkId
    address: str
    label: str
    created_at: int
    updated_at: int
    daily_limit: str | None = None
    monthly_limit: str | None = None
    removed_at: int | None = None
    version: int = 1

    @property
    def limited(self) -> bool:
        return self.daily_limit is not None or self.monthly_limit is not None


def entry_id(tenant: TenantId, network: NetworkId, address: str) -> str:
    """The id of an address (public spelling): the entry is found without an index, and exists once."""
    return derived_id("wla", tenant, network, address)


def limit_of(text: str | None, decimals: int) -> int | None:
    """A limit in units of a coin, rounded down; None: no limit."""
    return None if text is None else floor_units(text, decimals)
