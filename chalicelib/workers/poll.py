"""Once a minute per network: scan new blocks, settle what is out, confirm, expire. Both realms, one after the other.

Blocks are read before what is out is looked at: what becomes of a transaction is decided by the blocks that it was met in, or was
not (money rule 13). A long catch-up has half of the time at the most, so that what is out does not wait for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.domain.addresses import Wallet
from chalicelib.domain.catalogue import Network
from chalicelib.domain.chain import Cursor
from chalicelib.usecases.hot_coins import pays_from_coins
from chalicelib.usecases.realm_time import in_realm
from chalicelib.usecases.switch import put_back
from chalicelib.usecases.trying import Each
from chalicelib.usecases.wallet_lookup import quoted_for, retired_wallets
from chalicelib.wiring import services

if TYPE_CHECKING:
    from chalicelib.usecases.bundle_settlement import BundleSettlement
    from chalicelib.usecases.coin_move_following import CoinMoveFollowing
    from chalicelib.usecases.move_following import MoveFollowing
    from chalicelib.usecases.settlement import Settlement

log = logging.getLogger(__name__)

SECONDS = 30.0
"""How long one run may begin new work, all realms together; what it has begun ends well within the function's 60 seconds."""


def run(slug: str) -> None:
    """Poll the network `slug` in every realm where it is active.

    One realm's failure does not keep the other from being polled, nor one step the next. Raises `Failures` at the end.
    """
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    poll(slug)


def poll(slug: str) -> None:
    """The same, also while the demo is being filled anew."""
    until = time.monotonic() + SECONDS

    def more() -> bool:
        return time.monotonic() < until

    networks = [services().store.catalogue(realm).network(slug) for realm in services().settings.realms]
    active = [network for network in networks if network is not None and network.status == "active" and not _put_back(network)]
    with Each(f"polling {slug}") as each:
        for network in active:
            each.take(network.id, partial(_poll, network, more))
        # What has time comes last, and after all realms: a long rescan must hold up none.
        for network in active:
            each.take(network.id, partial(_rescan, network, more))


def _put_back(network: Network) -> bool:
    if put_back(services().store, network.realm) is None:
        return False
    log.warning("%s: the tables were put back, and after-restore is not done: nothing is polled", network.id)
    return True


def _poll(network: Network, more: Callable[[], bool]) -> None:
    wired = services()
    reached: list[Cursor] = []
    begun = time.monotonic()

    def may_scan() -> bool:
        return more() and time.monotonic() - begun < SECONDS / 2

    def follow_the_clock() -> None:
        # Whoever moved the sandbox's clock may have died before every chain had a block of the new time.
        wired.sandbox_time.look()
        wired.simulated(network.id).catch_up()

    def pass_blocks() -> Cursor:
        reached[:] = [wired.scanner(network).advance(may_scan)]
        return reached[-1]

    def scan() -> None:
        glimpses = wired.glimpses(network)
        if glimpses is None:
            pass_blocks()
        else:
            glimpses.look(pass_blocks, may_scan)

    def confirm() -> None:
        for cursor in reached:
            wired.scanner(network).confirm(cursor, more)

    def expire() -> None:
        # How far the chain is known decides, whatever else went wrong: not the mempool, which is first sight alone.
        for cursor in reached:
            now = wired.clock_of(network.realm).now_ms()
            wired.invoices.expire_due(network.id, now if cursor.number >= cursor.tip else cursor.block_time)

    def quote_fees() -> None:
        hot = wired.store.get(Wallet, network=network.id, role="hot")
        if hot is not None:
            wired.settlement(network).quote_fees(quoted_for(wired.store, hot))

    following: dict[str, Settlement | BundleSettlement | CoinMoveFollowing | MoveFollowing] = {}
    """What was last followed: something of it may be final as soon as it is scanned."""

    def follow(each: Each) -> None:
        following.update(_followed(network))
        for what, settlement in following.items():
            each.take(what, partial(settlement.follow, more))

    with in_realm(network.realm), Each(network.id) as each:
        if network.simulated:
            each.take("follow the clock", follow_the_clock)
        each.take("hear nodes", wired.node_votes(network).look)
        # What fell out of the chain is undone before the cursor stands on the new branch.
        _watch(network, each, more)
        each.take("scan", scan)
        follow(each)
        each.take("quote fees", quote_fees)
        if any(settlement.waits_for_scan for settlement in following.values()):
            each.take("scan on", pass_blocks)
            follow(each)
        each.take("confirm", confirm)
        each.take("expire", expire)
        _collect(network, each, more)
        each.take("drain replaced wallets", lambda: wired.drains(network).work(more))
        each.take("look at wallets", wired.observer(network).look)
        _by_family(network, each, more)


def _by_family(network: Network, each: Each, more: Callable[[], bool]) -> None:
    wired = services()
    if network.family == "evm" and not network.simulated:
        each.take("book balances", lambda: wired.balance_booker(network).work(more))
        each.take("go round", lambda: wired.balance_booker(network).go_round(more))
    if (loans := wired.loans(network)) is not None:
        each.take("loans", lambda: loans.take_back(more))
    if network.family == "tron":
        each.take("stake", lambda: (wired.staker(network) if network.simulated else wired.stake_following(network)).work(more))


def _watch(network: Network, each: Each, more: Callable[[], bool]) -> None:
    """See that what is settled stays in the chain."""
    wired = services()
    each.take("watch settled payments", lambda: wired.settlement(network).watch_settled(more))
    each.take("watch what was given up", lambda: wired.given_up_watching(network).work(more))
    if not pays_from_coins(network):
        each.take("watch moved", lambda: wired.moves(network).watch(more))


def _followed(network: Network) -> dict[str, Settlement | BundleSettlement | CoinMoveFollowing | MoveFollowing]:
    """Whatever was signed and is not final, by what it is called."""
    wired = services()
    payments = {"settle payments": wired.settlement(network)}
    if pays_from_coins(network):
        return {**payments, "bundles": wired.bundle_settlement(network), "coin moves": wired.coin_moves(network)}
    return {**payments, "moves": wired.moves(network)}


def _collect(network: Network, each: Each, more: Callable[[], bool]) -> None:
    each.take("hot floor", lambda: services().hot_floor(network).look())
    if pays_from_coins(network):
        _collect_coins(network, each)
        return
    if network.family == "evm":
        each.take("return payments", partial(services().stray_returns(network).work, more))
    each.take("collect", partial(services().collecting(network).work, more))
    each.take("distribute", partial(services().distributor(network).work, more))


def _collect_coins(network: Network, each: Each) -> None:
    """Plan what goes from deposit addresses to the hot wallet, and from there to the cold one. Of networks of coins."""
    wired = services()
    each.take("consolidate", lambda: wired.coin_move_planning(network).look(wired.verdicts(network).scanned()))
    cold = wired.cold_coins(network)
    each.take("store away", cold.look)
    for old in retired_wallets(wired.store, network.id):
        if old.role == "hot" and old.drained_at is None:
            each.take(f"drain {old.address}", partial(cold.drain, old.wallet))


def _rescan(network: Network, more: Callable[[], bool]) -> None:
    with in_realm(network.realm):
        services().rescanner(network).work(more)
