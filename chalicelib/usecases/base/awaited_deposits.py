"""What a merchant awaits of a coin: deposits that were seen and are not credited yet, summed over their shards.

The sum lies beside the totals of invoices (`domain/invoices/totals.py`) and moves by ADD, in the transaction that changes the
deposit. It is for showing, and for the bound of sums: no money is spent by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import AssetId, TenantId
from chalicelib.domain.invoices.totals import InvoiceTotals, awaited_by_asset, awaited_key, shard_keys
from chalicelib.domain.ledger import Balance
from chalicelib.usecases.ports.changes import Add
from chalicelib.usecases.ports.store import Store

_PAGE = 1000


class Owned(NamedTuple):
    """A balance as it is stored, and the units that the merchant awaits of the coin, `Balance.pending` among them."""

    balance: Balance
    awaited: int

    @property
    def total(self) -> int:
        """All units of the coin, awaited ones included."""
        return self.balance.available + self.balance.frozen + self.balance.held + self.awaited

    @property
    def shown(self) -> Balance:
        """As `shown`."""
        return shown(self.balance, self.awaited)


def awaiting(tenant: TenantId, deposit: Deposit, units: int) -> Add:
    """The change after which the merchant awaits `units` more, for `deposit`."""
    return Add(InvoiceTotals, awaited_key(tenant, deposit), {"awaited": units})


def balance_keys(tenant: TenantId, asset: AssetId) -> list[tuple[type[Any], dict[str, str]]]:
    """What to read of a merchant's coin: the balance, then the shards."""
    return [(Balance, {"tenant": tenant, "asset": asset}), *_shards(tenant, asset)]


def owned_of(tenant: TenantId, asset: AssetId, found: Sequence[Any]) -> Owned:
    """What the merchant owns and awaits of a coin, out of the records of `balance_keys`."""
    balance, *shards = found
    known: Balance = balance or Balance(tenant, asset)
    return Owned(known, known.pending + _sum(shards))


def shown(balance: Balance, awaited: int) -> Balance:
    """The balance as it is shown, never stored: with all that is awaited. Balance and shards are read one by one, so that a deposit
    that is credited in between may be missing twice: less than nothing is shown as nothing."""
    return replace(balance, pending=max(0, awaited))


def with_awaited(store: Store, balance: Balance) -> Balance:
    """`balance` as it is shown: one read. Raises Unavailable."""
    shards = store.get_many(_shards(balance.tenant, balance.asset))
    return shown(balance, balance.pending + _sum(shards))


def balances_of(store: Store, tenant: TenantId) -> list[Balance]:
    """Every balance that a merchant ever had, and those of coins that it awaits for the first time, as they are shown: two queries.
    Raises Unavailable."""
    known = {balance.asset: balance for balance in store.page(Balance, limit=_PAGE, tenant=tenant).items}
    shards: list[InvoiceTotals] = []
    after: str | None = None
    while True:
        page = store.page(InvoiceTotals, limit=_PAGE, after=after, tenant=tenant)
        shards += page.items
        after = page.next
        if after is None:
            break
    sums = awaited_by_asset(shards)
    every = {asset: Balance(tenant, asset) for asset in sums} | known
    return [shown(balance, balance.pending + sums.get(asset, 0)) for asset, balance in every.items()]


def _shards(tenant: TenantId, asset: AssetId) -> list[tuple[type[Any], dict[str, str]]]:
    return [(InvoiceTotals, key) for key in shard_keys(tenant, asset)]


def _sum(shards: Iterable[InvoiceTotals | None]) -> int:
    return sum(shard.awaited for shard in shards if shard is not None)
