"""What a deployment needs before its first request: catalogue, seed, hot wallets, the operator's merchant.

Every step may be run again: what is there is left alone. Used by the operator's command line and by the local stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import boto3

from chalicelib.custody.derive import POOLS
from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import SEED_ID, account_xpubs, create_seed, seal_seed, unlock_seed
from chalicelib.custody.wallets import new_kms_wallet
from chalicelib.domain import demo
from chalicelib.domain.addresses.addresses import Wallet, Watched, Xpub, family_key, watched_key
from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER, Coin, Network, corrected, default_coins, default_networks
from chalicelib.domain.ids import MerchantId, Realm, network_id, tenant_id
from chalicelib.domain.merchants.merchants import PRESETS, Level, Merchant
from chalicelib.domain.versions import next_version, version_after
from chalicelib.settings import Settings
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.current_wallets import wallet_of
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.merchants.access import issue_key
from chalicelib.usecases.ports.changes import Change, Conflict, Save
from chalicelib.wiring import Services, services


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node to use for a live network, and the tokens' contracts on it by coin slug, where they are not the catalogue's."""

    rpc_url: str
    contracts: Mapping[str, str] = field(default_factory=dict)


def _absent(wired: Services, changes: Sequence[Change]) -> bool:
    """Commit `changes` unless they were made before."""
    try:
        wired.store.commit(changes)
    except Conflict:
        return False
    return True


def make_catalogue(wired: Services, nodes: Mapping[str, NodeInfo] | None = None) -> None:
    """Networks and coins of both realms. Live networks that have a node are active, with the tokens that the node has."""
    known = nodes or {}
    records: list[Network | Coin] = []
    for realm in wired.settings.realms:
        for network in default_networks(realm):
            node = known.get(network.slug) if realm == "live" else None
            records.append(network if node is None else replace(network, rpc_url=node.rpc_url, status="active"))
        for coin in default_coins(realm):
            node = known.get(coin.network.split(":")[1]) if realm == "live" else None
            if node is not None and coin.contract is not None and node.contracts:
                contract = node.contracts.get(coin.slug)
                state: Literal["ACTIVE", "INACTIVE"] = "ACTIVE" if contract else "INACTIVE"
                records.append(replace(coin, contract=contract or coin.contract, status=state))
            else:
                records.append(coin)
    for start in range(0, len(records), 10):
        part = records[start : start + 10]
        if not _absent(wired, [Save(record) for record in part]):
            for record in part:
                _absent(wired, [Save(record)])
    wired.store.forget_catalogue()
    correct_networks(wired)


def correct_networks(wired: Services) -> list[str]:
    """Give stored networks the block times of today where they have those of before; which ones. Twice changes nothing."""
    found = []
    for realm in wired.settings.realms:
        for slug in NETWORK_ORDER:

            def decide(realm: Realm = realm, slug: str = slug) -> bool:
                stored = wired.store.get(Network, id=network_id(realm, slug))
                after = None if stored is None else corrected(stored)
                if after is not None:
                    wired.store.commit([Save(after)])
                return after is not None

            if until_settled(decide):
                found.append(network_id(realm, slug))
    wired.store.forget_catalogue()
    return [str(each) for each in found]


def make_seed(wired: Services, kms: Any) -> None:
    """The seed of the deposit addresses, once for ever; its xpubs, which is all that the API sees; and how far indexes may go."""
    _make_xpubs(wired, kms)
    for realm in wired.settings.realms:
        wired.ceilings.keep(realm)


def _make_xpubs(wired: Services, kms: Any) -> None:
    now = wired.clock.now_ms()
    known = [wired.store.get(Xpub, realm=realm, pool=pool) for realm in wired.settings.realms for pool in POOLS]
    if all(xpub is not None for xpub in known):
        return  # the seed stays shut
    if wired.store.get(EncryptedSeed, id=SEED_ID) is None:
        _absent(wired, [Save(create_seed(kms, wired.settings, now))])
    stored = wired.store.get(EncryptedSeed, id=SEED_ID)
    if stored is None:
        raise LookupError("the seed that was just stored is not there")
    with unlock_seed(kms, wired.settings, stored) as seed:
        for xpub in account_xpubs(seed, now):
            if xpub.realm in wired.settings.realms:
                _absent(wired, [Save(xpub)])


def restore_seed(wired: Services, kms: Any, seed: bytearray) -> None:
    """Put a seed into a store that never gave out an address, in the place of one that it may have already.

    Every pool is shut first: no address is given out before those of before are found again (usecases/recovery/addresses.py).
    Running it again goes on where it died. Raises BusinessRule where an address was given out; Unavailable, Conflict.
    """
    now, realms = wired.clock.now_ms(), wired.settings.realms
    for realm in realms:
        wired.pools.close(realm, POOLS)
    before = wired.store.get(EncryptedSeed, id=SEED_ID)
    known = {(realm, pool): wired.store.get(Xpub, realm=realm, pool=pool) for realm in realms for pool in POOLS}
    xpubs = [xpub for xpub in account_xpubs(seed, now) if xpub.realm in realms]
    if all(stored is not None and stored.xpub == x.xpub for x in xpubs for stored in [known[x.realm, x.pool]]):
        return
    sealed = seal_seed(kms, wired.settings, seed, now)
    wired.store.commit([Save(replace(sealed, version=version_after(before)))])
    for xpub in xpubs:
        stored = known[xpub.realm, xpub.pool]
        wired.store.commit([Save(replace(xpub, version=version_after(stored)))])


def make_hot_wallets(wired: Services, kms: Any, realm: Realm, slugs: Sequence[str]) -> None:
    """A hot wallet under the realm's KMS key on each network, watched so that its funding is seen."""
    catalogue = wired.store.catalogue(realm)
    alias = wired.settings.key_alias(f"hot-{realm}")
    for slug in slugs:
        network = catalogue.networks[slug]
        if wallet_of(wired.store, network.id, "hot") is None:
            chain = wired.settings.chain(network.id)
            _absent(wired, [Save(new_kms_wallet(kms, alias, network.id, "hot", wired.clock.now_ms(), chain))])
        wallet = wallet_of(wired.store, network.id, "hot")
        if wallet is not None:
            watch(wired, network, wallet)


def watch(wired: Services, network: Network, wallet: Wallet) -> None:
    """Let the scanner know a service wallet. EVM networks share addresses, so one row names all networks where it is ours."""
    place = form_of(wired.rules, network, wallet.address)
    kind, key = watched_key(network, place)
    known = wired.store.get(kind, **key)
    if known is None:
        row = Watched(network.realm, family_key(network), place, wallet.role, (network.slug,))
        _absent(wired, [Save(row)])
    elif network.slug not in known.networks:
        wired.store.commit([Save(replace(next_version(known), networks=(*known.networks, network.slug)))])


def make_merchant(wired: Services, name: str) -> MerchantId:
    """A new merchant; its id."""
    return wired.directory.creating(name).run().id


def make_key(
    wired: Services, merchant: MerchantId, realm: Realm, level: Level, permissions: Sequence[str], name: str, **limits: Any
) -> str:
    """A new API key; the key itself, shown this once. Raises LookupError for an unknown merchant, ValueError."""
    if realm not in wired.settings.realms:
        raise ValueError(f"the stage {wired.settings.stage} has no {realm} keys")
    if wired.store.get(Merchant, id=merchant) is None:
        raise LookupError(f"there is no merchant {merchant}")
    record, plain = issue_key(
        merchant=merchant, realm=realm, level=level, name=name, permissions=permissions, now_ms=wired.clock.now_ms(), **limits
    )
    wired.api_keys.add(record)
    return plain


def prepare(wired: Services, kms: Any, nodes: Mapping[str, NodeInfo] | None = None) -> None:
    """Everything but merchants and keys. The scanner of every active network starts at today's tip; then the simulated hot
    wallets are funded, as a faucet would, so that test keys can withdraw."""
    make_catalogue(wired, nodes)
    make_seed(wired, kms)
    for realm in wired.settings.realms:
        catalogue = wired.store.catalogue(realm)
        active = [n for n in catalogue.networks.values() if n.status == "active"]
        make_hot_wallets(wired, kms, realm, [n.slug for n in active])
        for network in active:
            wired.scanner(network).start()
    wired.sandbox.fund_hot_wallets()


def first_keys(wired: Services) -> dict[str, str]:
    """An operator, a merchant and another one, with a key of every sort: what the local stack hands to its developer."""
    operator = make_merchant(wired, "Operator")
    shop, other = make_merchant(wired, "Demo Shop"), make_merchant(wired, "Other Shop")
    full = ("full",)
    return {
        "admin_live": make_key(wired, operator, "live", "admin", full, "operator, live"),
        "client_live": make_key(wired, shop, "live", "client", full, "shop, live"),
        "admin_test": make_key(wired, operator, "test", "admin", full, "operator, test"),
        "client_test": make_key(wired, shop, "test", "client", full, "shop, test"),
        "other_merchant_test": make_key(wired, other, "test", "client", full, "another merchant, test"),
        "read_only_test": make_key(wired, shop, "test", "client", PRESETS["read-only"], "shop, reading only, test"),
    }


def demo_keys(wired: Services) -> dict[str, str]:
    """The keys that a demo publishes, for merchants whose ids are always the same. They can make and revoke no keys: what is
    published has to go on working. Run it once per deployment: each run makes new ones."""
    for merchant, name in ((demo.OPERATOR, "Operator"), (demo.SHOP, "Demo Shop")):
        _absent(wired, [Save(Merchant(merchant, name, wired.clock.now_ms()))])
    rights = tuple(p for p in PRESETS["full"] if p != "keys:write")
    return {
        "admin_test": make_key(wired, demo.OPERATOR, "test", "admin", rights, "the demo's operator", **demo.LIMITS),
        "client_test": make_key(wired, demo.SHOP, "test", "client", rights, "the demo's shop", **demo.LIMITS),
        "read_only_test": make_key(
            wired, demo.SHOP, "test", "client", PRESETS["read-only"], "the demo's shop, reading only", **demo.LIMITS
        ),
    }


def demo_is_published(wired: Services) -> bool:
    """Whether all of the demo's keys were made: a cut may have left fewer, which nobody saw. Raises Unavailable."""
    made = [sum(1 for _ in wired.api_keys.every(tenant_id(merchant, "test"))) for merchant in (demo.OPERATOR, demo.SHOP)]
    return made[0] >= 1 and made[1] >= 2


def first_start(settings: Settings, nodes: Mapping[str, NodeInfo] | None = None) -> dict[str, str]:
    """Prepare a fresh local stack; the keys by name."""
    wired = services()
    if wired.settings != settings:
        raise ValueError("the process was started with other settings than these")
    prepare(wired, boto3.client("kms"), nodes)
    return first_keys(wired)
