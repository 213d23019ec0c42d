"""Reads service wallets with their ledger balances and on-chain balances: of a network's hot wallets all slots together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from chalicelib.domain.addresses.addresses import SERVICE_ROLES, SERVICE_TYPE, Observed, Role, Wallet, slots_of, wallet_key
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import distributes
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import AssetId
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.collections import Distribution
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.balance_views import Holdings
from chalicelib.usecases.base.current_wallets import current_wallets, wallet_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.store import Store

REMEMBERED_SECONDS = 30.0
Key = tuple[type[Any], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class WalletRead:
    """A service wallet with its ledger balances and its on-chain balances. `others` are the hot wallets in further slots."""

    wallet: Wallet
    holdings: Holdings
    observed: Observed | None
    waits: Mapping[AssetId, str] = field(default_factory=dict)
    """Why what is to go on to another wallet of ours has not gone yet, by coin: for operators."""
    others: tuple[WalletRead, ...] = ()

    @property
    def slots(self) -> tuple[WalletRead, ...]:
        """The same wallet by itself, and the others."""
        return (replace(self, others=()), *self.others)

    def units(self, coin: Coin) -> int:
        """What the ledger has of `coin` in all slots."""
        found = [read.holdings.get(coin.asset) for read in self.slots]
        return sum(balance.units for balance in found if balance is not None)

    def on_chain(self, coin: Coin) -> int | None:
        """The on-chain balance of `coin` in all slots, in units; None where one of them was not read, or could not be."""
        if self.observed is None:
            return None
        found = [self.observed.units(read.wallet.address, coin.asset) for read in self.slots]
        return None if None in found else sum(units for units in found if units is not None)


class WalletReads:
    def __init__(self, store: Store, rules: AddressRules) -> None:
        self._store, self._rules = store, rules
        self._known: dict[tuple[str, Role], tuple[float, list[Wallet]]] = {}

    def read(self, network: Network, role: Role, coins: Sequence[Coin], *, waits: bool = False) -> WalletRead:
        """The network's wallet of that role, its balances of `coins`, and with `waits` why it is not drained. Raises NotFound,
        Unavailable."""
        wallets = self._wallets(network, role)
        if not wallets:
            raise NotFound(f"No {SERVICE_TYPE[role]} wallet is registered on {network.slug}", {"network": network.slug})
        shared_out = [coin for coin in coins if waits and distributes(coin)]
        return self._read([(network, wallet, coins, shared_out) for wallet in wallets])[0]

    def every(self, networks: Sequence[Network], coins_of: Callable[[Network], Sequence[Coin]]) -> list[WalletRead]:
        """The wallets of these networks with the balances of their coins, as `read` gives them for operators, in a few reads
        together. Raises Unavailable."""
        placed = [(network, role, slot) for network in networks for role in SERVICE_ROLES for slot in slots_of(network, role)]
        keys = [wallet_key(network.id, role, slot) for network, role, slot in placed]
        found: list[Wallet | None] = self._store.get_many(keys)
        wanted = []
        for (network, role, _), wallet in zip(placed, found, strict=True):
            if wallet is not None:
                coins = coins_of(network)
                wanted.append((network, wallet, coins, [] if role == "cold" else coins))
        return self._read(wanted)

    def forget(self, network: Network, role: Role) -> None:
        """The wallets of that role are others now."""
        self._known.pop((network.id, role), None)

    def _read(self, wanted: Sequence[tuple[Network, Wallet, Sequence[Coin], Sequence[Coin]]]) -> list[WalletRead]:
        """Wallets with their coins, and those coins whose waits are asked for. The slots of one role follow each other."""
        keys: dict[Key, dict[str, str]] = {}
        for network, wallet, coins, shared_out in wanted:
            keys[Observed, (network.id,)] = {"network": network.id}
            place = form_of(self._rules, network, wallet.address)
            for kind, asked in ((WalletBalance, coins), (Distribution, shared_out)):
                for coin in asked:
                    key = {"network": network.id, "address": place, "asset": coin.asset}
                    keys[kind, tuple(key.values())] = key
        answers = self._store.get_many([(kind, key) for (kind, _), key in keys.items()])
        known = {name: record for name, record in zip(keys, answers, strict=True) if record is not None}
        reads = [self._put_together(network, wallet, coins, known) for network, wallet, coins, _ in wanted]
        together = groupby(reads, key=lambda read: (read.wallet.network, read.wallet.role))
        groups = [list(slots) for _, slots in together]
        return [replace(first, others=tuple(others)) for first, *others in groups]

    def _put_together(self, network: Network, wallet: Wallet, coins: Sequence[Coin], known: Mapping[Key, Any]) -> WalletRead:
        """A wallet with what was read of it, by kind and key."""
        place = form_of(self._rules, network, wallet.address)
        names = [(network.id, place, coin.asset) for coin in coins]
        balances: list[WalletBalance] = [known[WalletBalance, name] for name in names if (WalletBalance, name) in known]
        records: list[Distribution] = [known[Distribution, name] for name in names if (Distribution, name) in known]
        reasons = {one.asset: one.reason for one in records if one.reason is not None}
        return WalletRead(wallet, {one.asset: one for one in balances}, known.get((Observed, (network.id,))), reasons)

    def _wallets(self, network: Network, role: Role) -> list[Wallet]:
        """By slot. Remembered for a while once there is one: a request for its balances then reads these alone."""
        now = time.monotonic()
        known = self._known.get((network.id, role))
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        if role == "hot":
            found = [wallet for wallet in current_wallets(self._store, network.id) if wallet.role == role]
        else:
            found = [wallet for wallet in (wallet_of(self._store, network.id, role),) if wallet is not None]
        if found:
            self._known[network.id, role] = (now, found)
        return found
