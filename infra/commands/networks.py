"""Commands for networks: their nodes, taking up a halted one, and what contracts sent unseen."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.ids import REALMS
from chalicelib.domain.versions import version_after
from infra.commands.common import CanNot, Command, height, network_of, scanner_of, services


def add(command: Command) -> None:
    """Add the commands of this group."""
    net = command(network)
    net.add_argument("slug", choices=NETWORK_ORDER)
    net.add_argument("--rpc-url", action="append", help="a node; give it again for each further one. Replaces all there were")
    net.add_argument("--audit-usd", type=int, metavar="USD", help="logs of blocks with a payment worth more are always compared")
    net.add_argument("--agreement-usd", type=int, metavar="USD", help="a payment worth more needs two nodes that vouch for it")
    net.add_argument("--finality-tag", choices=("safe", "finalized"), help="what a node has to call the block of a large payment")
    net.add_argument("--finality-usd", type=int, metavar="USD", help="what a large payment is worth at least")
    net.add_argument("--tracing", choices=("auto", "on", "off"), help="whether nodes are asked what contracts sent (EVM networks)")
    net.add_argument("--status", choices=("active", "inactive"), default="active")
    command(book_balances).add_argument("slug", choices=NETWORK_ORDER)
    again = command(resume)
    again.add_argument("slug", choices=NETWORK_ORDER)
    again.add_argument("--realm", choices=REALMS, default="live")
    again.add_argument(
        "--from-block",
        type=height,
        metavar="N",
        help="scan again what follows this block; by default the highest with deposits that the chain still has",
    )


def network(args: argparse.Namespace) -> int:
    """Connect a live network to its nodes, or put it to rest. Activating makes its hot wallet and starts scanning at the tip."""
    import boto3

    from chalicelib.domain.errors import BusinessRule
    from chalicelib.usecases.catalogue.node_urls import url_problem
    from chalicelib.usecases.ports.changes import Save
    from infra import bootstrap

    wired = services()
    before = network_of(wired, "live", args.slug)
    wanted = {"status": args.status} | {name: value for name, value in _settings_of(args).items() if value is not None}
    for url in args.rpc_url or ():
        if problem := url_problem(url, ("http", "https"), credentials=True):
            raise CanNot(f"--rpc-url: the URL {problem}")
    if args.status == "active" and not (args.rpc_url or before.rpc_url):
        raise CanNot("an active network needs --rpc-url")
    try:
        after = replace(wired.networks.changed(before, wanted), version=version_after(before))
    except BusinessRule as error:
        raise CanNot(str(error)) from error
    if after.status == "active":
        # The scanner starts before the first address can be given out: nothing paid to one is ever below the cursor.
        scanner_of(wired, after).start()
    wired.store.commit([Save(after)])
    wired.store.forget_catalogue()
    if after.status == "active":
        bootstrap.make_hot_wallets(wired, boto3.client("kms"), "live", [args.slug])
    print(f"{args.slug} is {after.status}")
    return 0


def _settings_of(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "rpc_urls": args.rpc_url,
        "agreement_usd": args.agreement_usd,
        "audit_usd": args.audit_usd,
        "finality_tag": args.finality_tag,
        "finality_usd": args.finality_usd,
        "tracing": args.tracing,
    }


def book_balances(args: argparse.Namespace) -> int:
    """Compare the balance of every deposit address of a live EVM network with the ledger, and book what contracts sent unseen."""
    from chalicelib.usecases.ports.failures import Unavailable

    wired = services()
    network = network_of(wired, "live", args.slug)
    if network.family != "evm" or network.status != "active":
        raise CanNot(f"{args.slug} is no active EVM network")
    try:
        booked = wired.balance_booker(network).everything()
    except (LookupError, Unavailable) as error:
        raise CanNot(str(error)) from error
    print(f"{args.slug}: {booked} booked")
    return 0


def resume(args: argparse.Namespace) -> int:
    """Take up a network again that halted on a deep reorganisation. Takes back what the chain no longer has, and scans again."""
    wired = services()
    scanner = scanner_of(wired, network_of(wired, args.realm, args.slug))
    try:
        cursor = scanner.resume(args.from_block)
    except ValueError as error:  # it is not halted, or the block is too high
        raise CanNot(str(error)) from error
    print(f"{args.realm}:{args.slug} goes on behind block {cursor.number}")
    return 0
