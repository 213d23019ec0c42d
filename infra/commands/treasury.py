"""Commands for the treasury: collecting what came before a coin was collected, and what left a cold wallet."""

from __future__ import annotations

import argparse
import sys

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.ids import REALMS
from infra.commands.common import CanNot, Command, network_of, services


def add(command: Command) -> None:
    """Add the commands of this group."""
    found = command(collect)
    found.add_argument("--realm", choices=REALMS, default="live")
    found.add_argument("--network", choices=NETWORK_ORDER, required=True)
    found.add_argument("--coin", required=True, help="the coin's slug")

    spent = command(cold_adjust)
    spent.add_argument("--realm", choices=REALMS, default="live")
    spent.add_argument("--network", choices=NETWORK_ORDER, required=True)
    spent.add_argument("--coin", required=True, help="the coin's slug")
    spent.add_argument("--amount", required=True, help="in coins, such as 1.5: all that left the wallet, its fee included")
    spent.add_argument("--reference", required=True, help="the id of the transaction on the chain")
    spent.add_argument("--reason", required=True, help="why; stays in the journal")
    spent.add_argument("--address", help="of a cold wallet that was replaced; without it the one in place")


def collect(args: argparse.Namespace) -> int:
    """Ask for every address of a network that has some of a coin to be collected. For when its settings are turned on later."""
    from chalicelib.domain.catalogue.catalogue import Coin
    from chalicelib.domain.catalogue.coin_settings import collects
    from chalicelib.domain.ledger import WalletBalance
    from chalicelib.usecases.wallets.sweep_candidates import hint
    from chalicelib.usecases.wallets.utxos import pays_from_coins

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


def cold_adjust(args: argparse.Namespace) -> int:
    """Book what the owner of a cold wallet has paid out of it. Once for each transaction; the chain has to agree where it tells."""
    from chalicelib.domain.catalogue.catalogue import Coin
    from chalicelib.domain.errors import ServiceError
    from chalicelib.domain.money import format_units, parse_units
    from chalicelib.usecases.reconciliation.cold_adjusting import NotBooked

    wired = services()
    network = network_of(wired, args.realm, args.network)
    coin = wired.store.get(Coin, network=network.id, slug=args.coin)
    if coin is None:
        raise CanNot(f"{args.network} has no coin {args.coin}")
    try:
        amount = parse_units(args.amount, coin.decimals)
        done = wired.cold_adjusting(network).book(coin, amount, args.reference, args.reason[:500], args.address)
    except (NotBooked, ServiceError, LookupError, ValueError) as error:
        raise CanNot(str(error)) from error
    if done.word is not None:
        print(f"on your word alone: {done.word}", file=sys.stderr)
    said = "was booked before" if done.again else "is booked"
    print(f"{args.amount} {args.coin} {said}: {format_units(done.left, coin.decimals)} {args.coin} are left there by the ledger")
    return 0
