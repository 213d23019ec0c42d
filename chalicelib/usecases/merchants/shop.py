"""A merchant's shop: what its payers see of it, read for pages and changed by the merchant.

Looks and logo are records of their own beside the settings, in one transaction with them where both change. Signers do not guard
them: no money follows from them. Address, coin and amount on a page are the invoice's, whoever frames it and whatever stands above
it; a stolen key that may change them can show payers another name, which it could on a page of its own as well, and moves nothing.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.domain.ids import TenantId
from chalicelib.domain.merchants.shop import ShopLogo, ShopLooks
from chalicelib.domain.versions import next_version
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.store import Store

FRESH_SECONDS = 30.0
"""How long pages may show former looks: a payer's page reads them at most once in this time and process."""
_MOST_SHOPS, _MOST_LOGOS = 1_000, 32

Wanted = Mapping[str, Any]
"""What is to change: some of `name`, `color`, `frame_ancestors`, and `logo` (the bytes of a rewritten PNG; None: no logo)."""


@dataclass(frozen=True, slots=True)
class Shop:
    """Looks and logo as they are stored."""

    looks: ShopLooks
    logo: ShopLogo

    @classmethod
    def of(cls, tenant: TenantId, looks: ShopLooks | None, logo: ShopLogo | None) -> Shop:
        """What is stored of a shop, or the defaults: no name, no logo, in nobody's frame."""
        return cls(looks or ShopLooks(tenant), logo or ShopLogo(tenant))

    def view(self) -> dict[str, Any]:
        """The record that its merchant sees."""
        looks = self.looks
        return {
            "name": looks.name,
            "color": looks.color,
            "logo": self.logo.png,
            "frameAncestors": list(looks.frame_ancestors),
        }


def keys_of(tenant: TenantId) -> list[tuple[type[Any], Mapping[str, str]]]:
    """What to read of a shop, for `Store.get_many`."""
    return [(ShopLooks, {"tenant": tenant}), (ShopLogo, {"tenant": tenant})]


def changed(before: Shop, wanted: Wanted, by: str, now_ms: int) -> tuple[Shop, Sequence[Change]]:
    """The shop after a change, and what to store of it: nothing where nothing is new."""
    logo, sent = before.logo, dict(wanted)
    changes: list[Change] = []
    if "logo" in sent:
        image = sent.pop("logo")
        png = None if image is None else base64.b64encode(image).decode()
        sent["logo"] = None if image is None else hashlib.sha256(image).hexdigest()
        if png != logo.png:
            logo = replace(next_version(logo), png=png)
            changes.append(Save(logo))
    looks = replace(before.looks, **sent)
    if looks != before.looks:
        looks = replace(next_version(looks), updated_at=now_ms, updated_by=by)
        changes.append(Save(looks))
    return Shop(looks, logo), changes


class Shops:
    """Shops for pages. What it knows is at most half a minute old; a logo is read when its hash is new."""

    def __init__(self, store: Store, seconds: Callable[[], float] = time.monotonic) -> None:
        self._store, self._seconds = store, seconds
        self._looks: dict[TenantId, tuple[float, ShopLooks]] = {}
        self._logos: dict[str, str] = {}

    def looks(self, tenant: TenantId) -> ShopLooks:
        """The looks of a merchant's shop. Raises Unavailable."""
        known, now = self._looks.get(tenant), self._seconds()
        if known is not None and now - known[0] <= FRESH_SECONDS:
            return known[1]
        looks = self._store.get(ShopLooks, tenant=tenant) or ShopLooks(tenant)
        if len(self._looks) >= _MOST_SHOPS:
            self._looks.clear()
        self._looks[tenant] = (now, looks)
        return looks

    def forget(self, tenant: TenantId) -> None:
        """The next page reads the looks afresh: for the process that has just changed them."""
        self._looks.pop(tenant, None)

    def shown(self, tenant: TenantId) -> dict[str, Any]:
        """What a page shows of the shop: `name`, `color`, and `logo` as a data: URI; each may be None. Raises Unavailable."""
        looks = self.looks(tenant)
        png = None if looks.logo is None else self._logo(tenant, looks.logo)
        return {"name": looks.name, "color": looks.color, "logo": png and f"data:image/png;base64,{png}"}

    def _logo(self, tenant: TenantId, digest: str) -> str | None:
        known = self._logos.get(digest)
        if known is not None:
            return known
        stored = self._store.get(ShopLogo, tenant=tenant)
        if stored is None or stored.png is None:
            return None
        if len(self._logos) >= _MOST_LOGOS:
            self._logos.clear()
        # Under its own hash: it may have been changed since the looks were read.
        self._logos[hashlib.sha256(base64.b64decode(stored.png)).hexdigest()] = stored.png
        return stored.png
