"""Service wallets: the operator's own addresses, registered once for each network and role.

A hot wallet pays withdrawals, a collector gathers tokens, a cold wallet stores: of that one only the address is known. What is
paid to any of them is the operator's, because each is watched as such from the transaction that registers it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.domain.addresses import SERVICE_TYPE, Address, Role, Wallet, Watched
from chalicelib.domain.catalogue import Coin, Network
from chalicelib.domain.errors import BusinessRule, InvalidParameter, NotFound
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.usecases.addresses import family_key, watched_key
from chalicelib.usecases.changes import Also, Change, Conflict, Save, nothing_more
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.keys import WalletKeys
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.trying import until_settled
from chalicelib.usecases.views import Holdings

REMEMBERED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Registered:
    """`generated` is the private key that the service made up: to be shown once, and kept by nobody in the clear."""

    wallet: Wallet
    address: Address
    generated: str | None = field(default=None, repr=False)


class Wallets:
    """Registers and reads service wallets. Puts private keys away and can not get at one again."""

    def __init__(self, store: Store, keys: WalletKeys, rules: AddressRules, clock: Clock) -> None:
        self._store, self._keys, self._rules, self._clock = store, keys, rules, clock
        self._known: dict[tuple[str, Role], tuple[float, Wallet]] = {}

    def register(
        self,
        tenant: TenantId,
        network: Network,
        role: Role,
        *,
        address: str | None = None,
        private_key: str | None = None,
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
        also: Also = nothing_more,
    ) -> Registered:
        """The network's wallet of that role, of the operator `tenant`; without a key, with one that is generated here.

        A cold wallet has an `address` and no key; of the others an address is only compared with the key's. `also` gets the
        Registered. Raises InvalidParameter, BusinessRule (there is one already, or the address is taken), Unavailable.
        """
        self._check_free(network, role)
        now = self._clock.now_ms()
        generated: str | None = None
        secrets: list[Change] = []
        if role == "cold":
            wallet = Wallet(network.id, role, self._cold(network, address, private_key), "none", "", "", now)
        else:
            if address is not None and private_key is None:
                raise InvalidParameter.one("address", address[:128], "is given for cold wallets, or together with its privateKey")
            if private_key is None:
                private_key = generated = self._keys.new()
            try:
                wallet, put_away = self._keys.put_away(network.id, role, private_key, now)
            except ValueError as reason:
                raise InvalidParameter.one("privateKey", "(not shown)", str(reason)) from None
            if address is not None and self._place(network, address) != self._form(network, wallet.address):
                raise InvalidParameter.one("address", address[:128], "is not the address of this privateKey")
            secrets.append(Save(put_away))
        record = Address(
            id=new_id("addr", now),
            tenant=tenant,
            network=network.id,
            address=wallet.address,
            mode="common",
            networks=(network.slug,),
            path="",
            created_at=now,
            label=label,
            metadata=metadata or {},
            type=role,
        )
        made = Registered(wallet, record, generated)

        def decide() -> Registered:
            self._check_free(network, role)
            watched = self._watched(network, wallet, record.id)
            try:
                self._store.commit([Save(wallet), *secrets, Save(watched), Save(record), *also(made)])
            except Conflict as conflict:
                if conflict.change in secrets:
                    # The key is there from a wallet that is gone. Its row is named after network and address, so it is the
                    # same key; and whoever signs holds it against the wallet's public key.
                    secrets.clear()
                raise
            return made

        return until_settled(decide)

    def _check_free(self, network: Network, role: Role) -> None:
        there = self._store.get(Wallet, network=network.id, role=role)
        if there is not None:
            raise BusinessRule("type", f"{network.slug} has a {SERVICE_TYPE[role]} wallet already: {there.address}")

    def _cold(self, network: Network, address: str | None, private_key: str | None) -> str:
        if private_key is not None:
            raise InvalidParameter.one("privateKey", "(not shown)", "is never given for a cold wallet: its key stays with you")
        if address is None:
            raise InvalidParameter.one("address", None, "is required for a cold wallet")
        self._place(network, address)
        return self._rules.normalize(network.id, address)

    def _place(self, network: Network, address: str) -> str:
        """Its storage form. Raises InvalidParameter."""
        try:
            return self._form(network, self._rules.normalize(network.id, address))
        except ValueError as reason:
            raise InvalidParameter.one("address", address[:128], str(reason)) from None

    def _form(self, network: Network, address: str) -> str:
        return self._rules.storage_form(network.slug, address)

    def _watched(self, network: Network, wallet: Wallet, address_id: str) -> Watched:
        """What the scanner has to know. EVM networks share addresses, so one row may name several networks, of one role."""
        place = self._form(network, wallet.address)
        known: Watched | None = self._store.get(Watched, **watched_key(network, place)[1])
        if known is None:
            return Watched(network.realm, family_key(network), place, wallet.role, (network.slug,), address_id=address_id)
        if known.role != wallet.role or known.tenant is not None:
            owner = "a merchant's deposit address" if known.tenant is not None else f"the {SERVICE_TYPE[known.role]} wallet"
            raise BusinessRule("address", f"{wallet.address} is {owner} already")
        networks = known.networks if network.slug in known.networks else (*known.networks, network.slug)
        return replace(known, networks=networks, address_id=known.address_id or address_id, version=known.version + 1)

    def read(self, network: Network, role: Role, coins: Sequence[Coin]) -> tuple[Wallet, Holdings]:
        """The network's wallet of that role, and what the ledger has there of `coins`. Raises NotFound, Unavailable."""
        wallet = self._wallet(network, role)
        if wallet is None:
            raise NotFound(f"No {SERVICE_TYPE[role]} wallet is registered on {network.slug}", {"network": network.slug})
        place = self._form(network, wallet.address)
        wanted = [(WalletBalance, {"network": network.id, "address": place, "asset": coin.asset}) for coin in coins]
        found: list[WalletBalance | None] = self._store.get_many(wanted) if wanted else []
        return wallet, {balance.asset: balance for balance in found if balance is not None}

    def _wallet(self, network: Network, role: Role) -> Wallet | None:
        """Remembered for a while once it is there: whoever asks for its balances pays for these alone."""
        now = time.monotonic()
        known = self._known.get((network.id, role))
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        wallet = self._store.get(Wallet, network=network.id, role=role)
        if wallet is not None:
            self._known[network.id, role] = (now, wallet)
        return wallet
