"""What has to be done after the tables were put back to an earlier second (docs/runbooks.md, A table was damaged)."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.ids import REALMS
from infra.commands.books import finished
from infra.commands.common import CanNot, Command, height, services

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.recovery.point_in_time import Stray
    from chalicelib.wiring import Services


def add(command: Command) -> None:
    """Add the commands of this group."""
    found = command(after_restore)
    found.add_argument("--realm", choices=REALMS, required=True)
    found.add_argument(
        "--from-block", action="append", default=[], metavar="SLUG:N", help="where polls went on before this was run; repeat it"
    )
    found.add_argument("--book-unmatched", action="store_true", help="what nothing asked for was the operator's loss")
    found.add_argument(
        "--by-hand",
        action="append",
        choices=NETWORK_ORDER,
        default=[],
        help="a network of coins that you have put right; repeat it",
    )
    found.add_argument(
        "--below", type=height, metavar="N", help="all address indexes given out were below; needed where no parameter says so"
    )
    found.add_argument("--done", action="store_true", help="compare with the chains, and end it where nothing is left")


def after_restore(args: argparse.Namespace) -> int:
    """Find and book what the chains did after the second that the tables were put back to. Exit code 1 while something is left."""
    from chalicelib.custody.derive import pool_of
    from chalicelib.domain.errors import BusinessRule
    from chalicelib.usecases.base.clock import in_realm
    from chalicelib.usecases.wallets.utxos import pays_from_coins

    wired = services()
    if args.realm not in wired.settings.realms:
        raise CanNot(f"the stage {wired.settings.stage} has no realm {args.realm}")
    from_blocks = dict(_begin(text) for text in args.from_block)
    since = wired.switches.begin_restore(args.realm)
    try:
        first_free = wired.ceilings.put_back(args.realm, since, args.below)
    except BusinessRule as error:
        raise CanNot(f"{error}: --below N") from error
    active = [n for n in wired.catalogue(args.realm).networks.values() if n.status == "active"]
    left: list[str] = []
    for network in active:
        with in_realm(network.realm):
            if wired.pools.unwatched(network.id, since, first_free.get(pool_of(network.slug), 0)):
                left.append(
                    f"{network.slug}: addresses given out after that second are not watched: "
                    f"restore --realm {args.realm} --network {network.slug} --merchant …"
                )
            else:
                left += _put_right(args, wired, network, since, from_blocks.get(network.slug))
    if args.done and not left:
        at = wired.reconciliations.order(args.realm, None).at
        left += [
            f"{network.slug}: the chain and the ledger differ, see GET /v1/reconciliation" for network in active
            if not finished(wired, network, at) and not (pays_from_coins(network) and network.slug in args.by_hand)
        ]  # fmt: skip
    for line in left:
        print(line)
    if args.done and not left:
        wired.switches.end_restore(args.realm)
        print(f"{args.realm}: the restore is over. Enable the functions, look, then: resume-payments --realm {args.realm}")
    elif not left:
        print("nothing is left: run it with --done")
    return 1 if left else 0


def _put_right(args: argparse.Namespace, wired: Services, network: Network, since: int, from_block: int | None) -> list[str]:
    """What is left to do on one network, after what this command can do there."""
    from chalicelib.usecases.wallets.utxos import pays_from_coins

    if not pays_from_coins(network):
        return [f"{network.slug}: {line}" for line in _traced(wired, network, since, from_block, args.book_unmatched)]
    if network.slug in args.by_hand:
        return []
    return [f"{network.slug}: a network of coins: put it right by hand, then say --by-hand {network.slug}"]


def _begin(text: str) -> tuple[str, int]:
    slug, _, number = text.partition(":")
    if slug not in NETWORK_ORDER or not number.isdecimal():
        raise CanNot(f"--from-block takes SLUG:N, not {text}")
    return slug, int(number)


def _traced(wired: Services, network: Network, since: int, from_block: int | None, book: bool) -> list[str]:
    """Trace, scan, settle; what is left. Scanning comes after tracing: what was found credits nobody."""
    from chalicelib.domain.chain import Cursor

    try:
        tracing, scanner = wired.after_restore(network), wired.scanner(network)
    except (LookupError, ValueError) as error:
        raise CanNot(str(error)) from error
    if from_block is None and wired.store.get(Cursor, network=network.id) is None:
        return []  # never scanned, so nothing was ever booked that could be paid from
    wired.batch_maker.sweep(network.id)
    tracing.trace(since, from_block)
    scanner.advance(_always)
    for settle in (wired.settlement(network).watch_settled, wired.settlement(network).follow, wired.moves(network).follow):
        settle(_always)
    wired.moves(network).watch(_always)
    trace = tracing.trace(since)  # what was mined meanwhile; and what the scan knows by now is deep
    if book:
        tracing.book_strays(trace)
    return tracing.left(trace, partial(_shown, wired, network))


def _shown(wired: Services, network: Network, stray: Stray) -> str:
    from chalicelib.domain.money import format_units

    slug = stray.asset.rsplit(":", 1)[1]
    coin = wired.catalogue(network.realm).coin(network.slug, slug)
    amount = format_units(stray.amount, coin.decimals) if coin is not None else str(stray.amount)
    return f"{stray.txid}: {amount} {slug} from {stray.sender} to {stray.recipient}, block {stray.block_number}"


def _always() -> bool:
    return True
