"""Service wallets: the operator's own addresses, one for each network and role, and their replacement (`rotation` drains them).

A hot wallet pays withdrawals, a collector gathers tokens, a top-up wallet pays the native coins for other addresses' fees (where
there is none, the hot wallet does), a cold wallet stores: of that one only the address is known.
Payments to any of them are the operator's, because each is watched as such from the transaction that registers it.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, NoReturn

from chalicelib.domain.addresses.addresses import (
    CUSTODY_SHOWN,
    MOST_SLOTS,
    SERVICE_TYPE,
    Address,
    RetiredWallet,
    Role,
    Wallet,
    Watched,
    family_key,
    slots_of,
    watched_key,
)
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.errors import BusinessRule, InvalidParameter
from chalicelib.domain.ids import TenantId, new_id
from chalicelib.domain.versions import next_version, version_after
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.creation import Creation, Prepared
from chalicelib.usecases.base.current_wallets import current_wallets, wallet_of
from chalicelib.usecases.base.kill_switch import untouched
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Conflict, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.keys import WalletKeys
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.lookup import retired_wallets, retiring
from chalicelib.usecases.wallets.wallet_reads import WalletReads

log = logging.getLogger(__name__)

SANDBOX_REPLACED = 50
"""How many wallets of one sandbox network API keys replace: each leaves a record that every poll reads, and may leave a key in KMS.
In all, since developers move the sandbox's clock. The operator's `rotate` has no such bound."""

Replacing = Literal["never", "must", "sandbox"]
"""Whether a new wallet takes the place of one: never; there must be one; or where there is one, and in the test realm alone."""


@dataclass(frozen=True, slots=True)
class Registered:
    """`generated`: the private key made here, shown once, and stored by nobody in the clear. `replaced`: whose place it takes."""

    wallet: Wallet
    address: Address | None
    generated: str | None = field(default=None, repr=False)
    replaced: Wallet | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """The owner of the address list that a wallet is in, and its label and metadata there."""

    tenant: TenantId
    label: str | None = None
    metadata: dict[str, Any] | None = None

    def record(self, network: Network, role: Role, address: str, now: int) -> Address:
        """The address record of a wallet that is registered `now` (milliseconds since 1970)."""
        return Address(
            id=new_id("addr", now),
            tenant=self.tenant,
            network=network.id,
            address=address,
            mode="common",
            networks=(network.slug,),
            path="",
            created_at=now,
            label=self.label,
            metadata=self.metadata or {},
            type=role,
        )


class Wallets:
    """Registers service wallets, and reads them by `reads`. Stores private keys and can not read one again."""

    def __init__(self, store: Store, keys: WalletKeys, rules: AddressRules, clock: Clock) -> None:
        self._store, self._keys, self._rules, self._clock = store, keys, rules, clock
        self.reads = WalletReads(store, rules)

    def registering(
        self,
        listed: Listed | None,
        network: Network,
        role: Role,
        *,
        by: str,
        address: str | None = None,
        private_key: str | None = None,
        replace: Replacing = "never",
        slot: int = 0,
    ) -> Creation[Registered]:
        """Prepare the network's wallet of that role and slot, in the lists of an operator as `listed` says (in none without);
        without a key, one is generated here.

        A cold wallet has an `address` and no key; of the others an address is only compared with the key's. Where `replace` lets
        it, it takes the place of the present one, which is retired in the same transaction: what that one has is moved to it.
        `by` says who, in the alarm that each registration raises. Raises InvalidParameter, BusinessRule (there is one already, or
        none to replace, or too many were replaced; the address is taken; a key where none is taken, or that is not ours),
        Unavailable.
        """
        self._check_place(network, role, slot)
        self._present(network, role, replace, slot)
        now = self._clock.now_ms()
        generated: str | None = None
        secrets: list[Change] = []
        if role == "cold":
            wallet = Wallet(network.id, role, self._cold(network, address, private_key), "none", "", "", now)
        elif self._keys.native:
            wallet = self._native(network, role, address, private_key, now)
        else:
            wallet, put_away, generated = self._put_away(network, role, address, private_key, now)
            secrets.append(Save(put_away))
        wallet = dataclasses.replace(wallet, slot=slot)
        record = None if listed is None else listed.record(network, role, wallet.address, now)

        def prepare() -> Prepared[Registered]:
            # Before the time is taken: an operator who stops payments meanwhile did it before this wallet was there.
            switch = untouched(self._store, network.realm)
            present = self._present(network, role, replace, slot)
            self._check_new(network, wallet, present)
            watched = self._watched(network, wallet, None if record is None else record.id)
            listing = [] if record is None else [Save(record)]
            at, version = self._clock.now_ms(), version_after(present)
            made = Registered(dataclasses.replace(wallet, created_at=at, version=version), record, generated, present)
            changes: list[Change] = [Save(made.wallet), *([] if present is None else retiring(present, at)), switch]
            changes += self._told_to_payouts(network, slot)
            return Prepared(made, [*changes, *secrets, Save(watched), *listing], without_known)

        def without_known(conflict: Conflict) -> NoReturn:
            if conflict.change in secrets:
                # The key is there from a wallet that is gone. Its row is named after network and address, so it is the
                # same key; and the signer compares it with the wallet's public key.
                secrets.clear()
            raise conflict

        def tell(made: Registered) -> None:
            self.reads.forget(network, role)
            key = "its key was sent" if private_key is not None else f"its key: {CUSTODY_SHOWN[wallet.custody]}"
            _tell(made.wallet, made.replaced, key, by, rehearsed=replace == "sandbox")

        return Creation(self._store, prepare, tell)

    def _check_place(self, network: Network, role: Role, slot: int) -> None:
        """Raises BusinessRule where the network has no such place for a wallet."""
        if role == "topup" and network.family == "utxo":
            raise BusinessRule("type", f"{network.slug} has no top-ups: a payment's own coins pay its fee")
        if not slot:
            return
        if slot not in slots_of(network, role):
            raise BusinessRule("slot", f"slots 1 to {MOST_SLOTS - 1} are for hot wallets of EVM networks")
        if wallet_of(self._store, network.id, role, slot - 1) is None:
            raise BusinessRule("slot", f"{network.slug} has no hot wallet in slot {slot - 1} yet: slots are filled in turn")

    def _told_to_payouts(self, network: Network, slot: int) -> list[Change]:
        """The change after which payouts are asked for in this slot too."""
        known: Network | None = self._store.get(Network, id=network.id) if slot else None
        if known is None or known.payout_slots > slot:
            return []
        return [Save(dataclasses.replace(next_version(known), payout_slots=slot + 1))]

    def _present(self, network: Network, role: Role, replace: Replacing, slot: int) -> Wallet | None:
        """The wallet that is to be replaced, where one is. Raises BusinessRule where `replace` does not fit what is there."""
        there = wallet_of(self._store, network.id, role, slot)
        if there is None and replace == "must":
            where = f" in slot {slot}" if slot else ""
            raise BusinessRule("replace", f"{network.slug} has no {SERVICE_TYPE[role]} wallet{where} that could be replaced")
        if there is None or replace == "must":
            return there
        if replace == "never" or network.realm != "test":
            raise BusinessRule("type", f"{network.slug} has a {SERVICE_TYPE[role]} wallet already: {there.address}")
        if len(retired_wallets(self._store, network.id)) >= SANDBOX_REPLACED:
            raise BusinessRule("type", f"{SANDBOX_REPLACED} wallets of {network.slug} were replaced, which is all that may be")
        return there

    def _check_new(self, network: Network, wallet: Wallet, present: Wallet | None) -> None:
        """Raises BusinessRule for the address of a wallet that is in place, or was: what is retired stays so."""
        current = (*current_wallets(self._store, network.id), present)
        if any(each.address == wallet.address for each in current if each is not None and each.role == wallet.role):
            raise BusinessRule("address", f"{wallet.address} is the {SERVICE_TYPE[wallet.role]} wallet already")
        if self._store.get(RetiredWallet, network=network.id, address=wallet.address) is not None:
            raise BusinessRule("address", f"{wallet.address} is of a wallet that was replaced: it is not used again")

    def _native(self, network: Network, role: Role, address: str | None, private_key: str | None, now: int) -> Wallet:
        if private_key is not None:
            raise BusinessRule(
                "privateKey", "is not taken here: keys of this deployment's wallets are made in KMS and never leave it"
            )
        if address is not None:
            raise InvalidParameter.one("address", address[:128], "is given for cold wallets alone: the key is made here")
        retired = retired_wallets(self._store, network.id)
        # Where a registration died behind its key, the key is there, and no wallet has it.
        used = {old.address for old in retired} | {wallet.address for wallet in current_wallets(self._store, network.id)}
        for number in count(1 + sum(1 for old in retired if old.role == role)):
            wallet = self._keys.make(network.id, role, number, now)
            if wallet.address not in used:
                return wallet
        raise AssertionError("unreachable")

    def _put_away(
        self, network: Network, role: Role, address: str | None, private_key: str | None, now: int
    ) -> tuple[Wallet, Any, str | None]:
        """The wallet of a key, the record that keeps the key encrypted, and the key where it was generated here.

        Raises InvalidParameter for what is no key, and for an address without its key.
        """
        if address is not None and private_key is None:
            raise InvalidParameter.one("address", address[:128], "is given for cold wallets, or together with its privateKey")
        key = self._keys.new() if private_key is None else private_key
        try:
            wallet, put_away = self._keys.put_away(network.id, role, key, now)
        except ValueError as reason:
            raise InvalidParameter.one("privateKey", "(not shown)", str(reason)) from None
        if address is not None and self._place(network, address) != form_of(self._rules, network, wallet.address):
            raise InvalidParameter.one("address", address[:128], "is not the address of this privateKey")
        return wallet, put_away, key if private_key is None else None

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
            return form_of(self._rules, network, self._rules.normalize(network.id, address))
        except ValueError as reason:
            raise InvalidParameter.one("address", address[:128], str(reason)) from None

    def _watched(self, network: Network, wallet: Wallet, address_id: str | None) -> Watched:
        """The row by which the scanner knows the wallet. EVM networks share addresses, so one row may name several networks, of one
        role."""
        place = form_of(self._rules, network, wallet.address)
        known: Watched | None = self._store.get(Watched, **watched_key(network, place)[1])
        if known is None:
            return Watched(network.realm, family_key(network), place, wallet.role, (network.slug,), address_id=address_id)
        if known.role != wallet.role or known.tenant is not None:
            owner = "a merchant's deposit address" if known.tenant is not None else f"the {SERVICE_TYPE[known.role]} wallet"
            raise BusinessRule("address", f"{wallet.address} is {owner} already")
        networks = known.networks if network.slug in known.networks else (*known.networks, network.slug)
        return dataclasses.replace(next_version(known), networks=networks, address_id=known.address_id or address_id)


def _tell(wallet: Wallet, before: Wallet | None, key: str, by: str, *, rehearsed: bool) -> None:
    """An ALARM: a registered wallet is sent the operator's coins, so nobody registers one unseen."""
    name = SERVICE_TYPE[wallet.role] + (f" (slot {wallet.slot})" if wallet.slot else "")
    if before is None:
        log.error("ALARM %s: the %s wallet was registered: %s (%s), by %s", wallet.network, name, wallet.address, key, by)
        return
    instead = f"{wallet.address} instead of {before.address}"
    if rehearsed:
        # No alarm: developers could ring it as they like, and a live wallet's would be one among many.
        log.warning("%s: the %s wallet was replaced: %s (%s), by %s", wallet.network, name, instead, key, by)
        return
    log.error("ALARM %s: the %s wallet was replaced: %s (%s), by %s", wallet.network, name, instead, key, by)
