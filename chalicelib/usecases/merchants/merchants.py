"""Merchants as the operator sees them: making one, and finding it. Its first API key is in `usecases/merchants/first_key.py`."""

from __future__ import annotations

from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import MerchantId, new_id
from chalicelib.domain.merchants.merchants import Merchant
from chalicelib.domain.merchants.suspensions import ListedMerchant
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.merchants.suspension import listed
from chalicelib.usecases.ports.changes import Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store


class Directory:
    """`clock` is the machines' clock."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def get(self, id: str) -> Merchant:
        """Raises NotFound, Unavailable."""
        found = self._store.get(Merchant, id=id)
        if found is None:
            raise NotFound(f"No merchant {id[:80]}", {"id": id[:80]})
        return found

    def creating(self, name: str) -> Creation[Merchant]:
        """Prepare a new merchant, and its entry of the operator's list."""

        def prepare() -> Prepared[Merchant]:
            now = self._clock.now_ms()
            made = Merchant(MerchantId(new_id("mch", now)), name, now)
            return Prepared(made, [Save(made), Save(ListedMerchant(made.id, made.name, made.created_at))])

        return Creation(self._store, prepare)

    def list_all(self) -> int:
        """Put merchants in the operator's list that were made before there was one; how many. By a scan: not for requests.

        Raises Unavailable.
        """
        added = 0
        for merchant in self._store.every(Merchant):
            if listed(self._store, merchant).version == 0:
                try:
                    self._store.commit([Save(ListedMerchant(merchant.id, merchant.name, merchant.created_at))])
                except Conflict:
                    continue  # suspended meanwhile, which lists it
                added += 1
        return added
