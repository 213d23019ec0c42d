"""Public records of balances: a merchant's of each coin, and an address's, with their sums in US dollars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from chalicelib.domain.addresses.addresses import Address
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.ids import AssetId, network_parts
from chalicelib.domain.ledger import Balance, WalletBalance
from chalicelib.domain.money import format_units

Holdings = Mapping[AssetId, WalletBalance]
"""The ledger's balances of one address by asset; a missing asset was never there."""


def owned(balance: Balance) -> int:
    """What belongs to the merchant, in units of the coin: unconfirmed payments come on top."""
    return balance.available + balance.frozen + balance.held


def balance_record(coin: Coin, balance: Balance, usd: float | None) -> dict[str, Any]:
    """A merchant's balance of one coin. `usd` is the value of what it owns, None where no fresh rate tells it."""
    parts = {"balance": owned(balance), "available": balance.available, "frozen": balance.frozen, "held": balance.held}
    amounts = {name: format_units(units, coin.decimals) for name, units in (parts | {"pending": balance.pending}).items()}
    network = network_parts(coin.network)[1]
    return {"network": network, "coin": coin.slug, "symbol": coin.symbol, **amounts, "balanceUSD": usd}


def holding_record(coin: Coin, there: WalletBalance | None, usd: float | None) -> dict[str, Any]:
    """An address's balance of one coin."""
    return {
        "coin": coin.slug,
        "symbol": coin.symbol,
        "network": network_parts(coin.network)[1],
        "balance": format_units(there.units if there is not None else 0, coin.decimals),
        "balanceUSD": usd,
        "contractAddress": coin.contract,
    }


def with_parts(record: dict[str, Any], coin: Coin, there: WalletBalance | None) -> dict[str, Any]:
    """A balance of an address with its available, frozen and unconfirmed parts.

    `balance` is what the ledger has there: `confirmed`, which is `frozen` and `available`; `unconfirmed` comes on top.
    """
    units, pending, held = (there.units, there.pending, there.held) if there is not None else (0, 0, 0)
    parts = {"confirmed": units, "unconfirmed": pending, "frozen": held, "available": units - held}
    return record | {name: format_units(part, coin.decimals) for name, part in parts.items()}


def coins_on(catalogue: Catalogue, address: Address) -> list[Coin]:
    """The coins that an address can hold: all of its networks', and in the mode single the one it was made for."""
    coins = [coin for slug in address.networks for coin in catalogue.coins_of(slug)]
    return [coin for coin in coins if coin.slug == address.coin] if address.mode == "single" else coins


def total_usd(balances: Iterable[Mapping[str, Any]]) -> float | None:
    """The sum of `balanceUSD`, to the cent; None where one of them is unknown."""
    values = [balance["balanceUSD"] for balance in balances]
    if None in values:
        return None
    return float(sum((Decimal(str(value)) for value in values), Decimal(0)))
