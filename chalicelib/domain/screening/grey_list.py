"""The grey list: addresses under the operator's watch. A deposit from one is held, a withdrawal to one waits for approval."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import Realm


@dataclass(frozen=True, slots=True)
class GreyListEntry:
    """One address of one network of a realm, for all merchants.

    `network` is the slug, `address` the storage form (`AddressRules.storage_form`), by which it is looked up; `shown` is the
    public spelling. `added_by` is the id of the key that put it there. `created_at` in milliseconds since 1970.
    """

    realm: Realm
    network: str
    address: str
    shown: str
    created_at: int
    added_by: str
    reason: str | None = None
    version: int = 1
