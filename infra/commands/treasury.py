"""Commands for the treasury: collecting what came before a coin was collected."""

from __future__ import annotations

import argparse

from chalicelib.domain.catalogue import NETWORK_ORDER
from chalicelib.domain.ids import REALMS
from infra.commands.common import CanNot, Command, network_of, services


def add(command: Command) -> None:
    """Add the commands of this group."""
    found = command(collect)
    found.add_argument("--realm", choices=REALMS, default="live")
    found.add_argument("--network", choices=NETWORK_ORDER, required=True)
    found.add_argument("--coin", required=True, help="the coin's slug")


def collect(args: argparse.Namespace) -> int:
    """Ask for every address of a network that has some of a coin to be collected. For when its settings are turned on later."""
    from chalicelib.domain.catalogue import Coin
    from chalicelib.domain.coin_settings import collects
    from chalicelib.domain.ledger import WalletBalance
    from chalicelib.usecases.collect_hints import hint
    from chalicelib.usecases.hot_coins import pays_from_coins

    wired = services()
    network = network_of(wired, args.realm, args.network)
    coin = wired.store.get(Coin, network=network.id, slug=args.coin)
    if coin is None:
        raise CanNot(f"{args.network} has no coin {args.coin}")
    if not collects(coin):
        raise CanNot(f"{args.coin} on {args.network} is not collected: set its collectThreshold first, to 0 for everything")
    if pays_from_coins(network):
        raise CanNot(f"{args.network} pays from coins: its deposits are collected each by itself")
    asked = 0
    for balance in wired.store.every(WalletBalance):
        if balance.asset == coin.asset and balance.units > balance.small:
            asked += hint(wired.store, network, balance)
    print(f"{args.realm}:{args.network}: {asked} addresses with {args.coin} will be looked at")
    return 0
