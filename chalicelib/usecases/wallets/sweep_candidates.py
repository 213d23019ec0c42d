"""Sweep candidates: an address (on UTXO networks a deposit) whose coins may have to be collected.

A hint is open work and nothing else: it may be there twice over time, late, or for nothing. The collection run that finds one
reads the ledger.
"""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.coin_settings import collects
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.ids import NetworkId, asset_parts
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.work import Command, Work
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Conflict, Open
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.utxos import pays_from_coins


def hint_work(network: NetworkId, id: str) -> Work:
    """The obligation to decide about a collection: the same one however often it is asked for."""
    return Work("collectable", network, "", id)


def place_id(address: str, slug: str) -> str:
    """The id of the hint for a coin at an address of ours (storage form)."""
    return f"{address}|{slug}"


def hint_place(id: str) -> tuple[str, str]:
    """The opposite of `place_id`: address and the coin's slug."""
    address, slug = id.rsplit("|", 1)
    return address, slug


def hint_for(rules: AddressRules, network: Network, coin: Coin | None, deposit: Deposit) -> Command | None:
    """The change that asks for a collection of a merchant's deposit, just credited or released; None where it is not to be
    collected."""
    if coin is None or deposit.tenant is None or deposit.below_minimum or deposit.set_aside or not collects(coin):
        return None
    id = deposit.id if pays_from_coins(network) else place_id(form_of(rules, network, deposit.address), coin.slug)
    return Command("collectable", network.id, {"id": id})


def hint(store: Store, network: Network, balance: WalletBalance) -> bool:
    """Open the hint for a ledger balance at one of our addresses, on account networks; whether it was not open before.

    Nothing is decided here: a hint for an address with nothing to collect closes by itself. Raises Unavailable.
    """
    if pays_from_coins(network):
        raise ValueError(f"{network.id} pays from coins: its hints are deposits")
    return open_hint(store, network.id, place_id(balance.address, asset_parts(balance.asset)[1]))


def open_hint(store: Store, network: NetworkId, id: str) -> bool:
    """Open a hint; False where it is open already, which is as good. Raises Unavailable."""
    try:
        store.commit([Open(hint_work(network, id))])
    except Conflict as conflict:
        if conflict.change is None:
            raise
        return False
    return True
