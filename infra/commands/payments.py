"""Commands for outgoing payments: stopping all of them, letting them go on, one whose order was altered, and missing nonces."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from chalicelib.domain.errors import ServiceError
from chalicelib.domain.ids import REALMS, Realm
from infra.commands.common import CanNot, Command, network_of, services

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.wiring import Services


def add(command: Command) -> None:
    """Add the commands of this group."""
    for run in (stop_payments, resume_payments):
        parser = command(run)
        parser.add_argument("--realm", choices=REALMS, default="live")
        parser.add_argument("--reason", help="why; shown by GET /v1/withdrawals/switch and in the log")
    parser = command(rebuild_order)
    parser.add_argument("merchant", help="mch_...")
    parser.add_argument("withdrawal", help="wd_...: what its record says now is paid. Compare it with what the merchant asked for")
    parser.add_argument("--realm", choices=REALMS, default="live")
    parser.add_argument("--nonce", type=int, help="the one that was allotted, where the order was altered in that, too")
    parser = command(give_up)
    parser.add_argument("id", help="wd_..., mov_..., stk_..., bun_... or cmv_...: signed and in no block, or not signed")
    parser.add_argument("--without", metavar="WITHDRAWAL", default="", help="wd_...: fails when its unsigned bundle is taken apart")
    parser.add_argument("--reason", required=True, help="why; stays with the decision and in the log")
    parser.add_argument("--realm", choices=REALMS, default="live")
    parser = command(fill_nonces)
    parser.add_argument("--realm", choices=REALMS, default="live")
    parser.add_argument("--network", choices=NETWORK_ORDER, required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--address", help="a service wallet, or a deposit address")
    where.add_argument("--over", metavar="ID", help="wd_...: the one payment, signed and in no block, whose nonce is used")
    parser.add_argument("--reason", help="why, with --over; stays with the move and in the log")
    parser.add_argument("--accept", action="store_true", help="nothing of ours left it yet: begin where all nodes say")


def stop_payments(args: argparse.Namespace) -> int:
    """Stop all outgoing payments of a realm at once. Everything else goes on."""
    return _throw(args.realm, True, args.reason)


def resume_payments(args: argparse.Namespace) -> int:
    """Let the outgoing payments of a realm go on, oldest first."""
    return _throw(args.realm, False, args.reason)


def _throw(realm: Realm, stop: bool, reason: str | None) -> int:
    wired = services()
    try:
        found = wired.switches.throw(realm, stop, reason, "operator")
    except ServiceError as error:
        raise CanNot(str(error)) from error
    print(f"outgoing payments of the realm {realm} {'are stopped' if found.stopped else 'go on'}")
    return 0


def rebuild_order(args: argparse.Namespace) -> int:
    """Make the order of a withdrawal anew that differs from it, and of which nothing was signed."""
    from chalicelib.domain.ids import MerchantId, tenant_id
    from chalicelib.domain.withdrawals.withdrawals import Withdrawal
    from chalicelib.usecases.payouts.rebuild import made_anew

    wired = services()
    found = wired.store.get(Withdrawal, tenant=tenant_id(MerchantId(args.merchant), args.realm), id=args.withdrawal)
    if found is None:
        raise CanNot(f"{args.merchant} has no withdrawal {args.withdrawal} in the realm {args.realm}")
    try:
        order = made_anew(wired.store, wired.catalogue(args.realm), found, args.nonce)
    except LookupError as error:
        raise CanNot(str(error)) from error
    print(
        f"{order.id} pays {order.amount} units of {order.asset} to {order.recipient} with the nonce {order.nonce}: it is built anew"
    )
    return 0


def give_up(args: argparse.Namespace) -> int:
    """End a transaction of ours that no block will ever settle, by your decision. What is in the chain is never given up.

    A bundle that nothing was signed for is taken apart, and a move dropped: they can not be signed as they are.
    """
    import boto3

    from chalicelib.usecases.base.clock import in_realm
    from chalicelib.usecases.transactions.give_up import NotGivenUp, located
    from chalicelib.usecases.transactions.give_up import network_of as open_on

    wired = services()
    by = str(boto3.client("sts").get_caller_identity()["Arn"])
    try:
        network = open_on(wired.store, wired.catalogue(args.realm).networks.values(), args.id)
        found = located(wired.store, network, args.id)
        if found is not None and found.kind in ("bundle", "move", "coin_move") and not found.signed and found.at_end is None:
            return _give_up_unsigned(wired, network, found.kind, args, by)
        if args.without:
            raise CanNot("--without belongs to a bundle that nothing was signed for")
        with in_realm(network.realm):
            wired.node_votes(network).know()
            decision = wired.giving_up(network).give_up(args.id, by, args.reason)
    except (NotGivenUp, LookupError) as error:
        raise CanNot(str(error)) from error
    print(
        f"{args.id} is given up on {network.id} by {by}: the next poll ends it, and goes on looking for {', '.join(decision.txids)}"
    )
    return 0


def _give_up_unsigned(wired: Services, network: Network, kind: str, args: argparse.Namespace, by: str) -> int:
    from chalicelib.usecases.base.clock import in_realm

    if args.without and kind != "bundle":
        raise CanNot("--without belongs to a bundle")
    with in_realm(network.realm):
        if kind != "bundle":
            wired.unsigned_moves(network).give_up(args.id, by, args.reason)
            print(f"{args.id} is dropped on {network.id} by {by}: nothing was signed for it")
            return 0
        wired.bundle_apart(network).take_apart(args.id, by, args.reason, args.without)
    but = f"{args.without} fails, the others wait" if args.without else "they wait"
    print(f"{args.id} is taken apart on {network.id} by {by}: its coins are free; the next poll lets its payments go, {but} again")
    return 0


def fill_nonces(args: argparse.Namespace) -> int:
    """Use the nonces of an address that the chain waits for and no transaction of ours has. Ten at once; again for more.

    With --over: that of one open payment. Whichever of the two is mined, the payment is paid or given back.
    """
    from chalicelib.domain.catalogue.coin_settings import NoFreshRate
    from chalicelib.usecases.base.clock import in_realm
    from chalicelib.usecases.treasury.nonce_gaps import NonceFilling
    from chalicelib.usecases.treasury.topups import PayerShort, TopUps
    from chalicelib.usecases.wallets.utxos import pays_from_coins

    wired = services()
    network = network_of(wired, args.realm, args.network)
    if pays_from_coins(network) or (network.family == "tron" and not network.simulated):
        raise CanNot(f"{args.network} has no nonces")
    if args.over is not None:
        return _fill_over(wired, network, args)
    if args.reason is not None:
        raise CanNot("--reason belongs to --over")
    filling = NonceFilling(wired.context(network), wired.payer(network), TopUps(wired.move_fees(network)))
    try:
        with in_realm(network.realm):
            if args.accept:
                print(f"{args.address} begins with the nonce {filling.accept(args.address)}")
                return 0
            filled, left = filling.fill(args.address)
    except (LookupError, ValueError, PayerShort, NoFreshRate) as error:
        raise CanNot(str(error)) from error
    print(f"{args.address}: nonces are filled: {', '.join(map(str, filled)) or 'none'}; missing still: {left}")
    return 0


def _fill_over(wired: Services, network: Network, args: argparse.Namespace) -> int:
    import boto3

    from chalicelib.usecases.base.clock import in_realm
    from chalicelib.usecases.treasury.filling_over import NotFilled

    if args.accept:
        raise CanNot("--accept belongs to --address")
    by = str(boto3.client("sts").get_caller_identity()["Arn"])
    try:
        with in_realm(network.realm):
            wired.node_votes(network).know()
            filler = wired.filling_over(network).plan(args.over, by, args.reason or "")
    except (NotFilled, LookupError) as error:
        raise CanNot(str(error)) from error
    print(
        f"{filler.id} is planned on the nonce {filler.nonce} of {args.over}: if it is mined, the payment is given back"
        f" {network.reorg_depth} blocks later; if the payment is mined first, it is paid"
    )
    return 0
