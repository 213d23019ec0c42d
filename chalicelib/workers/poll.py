"""Once a minute per network: scan new blocks, confirm deposits, then follow our transactions in flight. Both realms, one after
the other.

Crediting comes first and has a deadline of its own, in every realm: however much is in flight and however slowly nodes answer, it
costs no payer a poll. Transactions in flight share the time that is left: those that were not reached come first in the next poll
(`usecases.transactions.round_robin`).

Blocks are read before transactions in flight are followed: sightings in blocks decide them (money rule 13). Before the blocks only
what fell out of the chain is undone: the cursor must not stand on a new branch while the ledger still has what the old one settled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.retries import Each
from chalicelib.wiring import services
from chalicelib.workers.deadlines import Deadline

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.domain.chain import Cursor
    from chalicelib.domain.ids import NetworkId
    from chalicelib.usecases.payouts.bundle_settlement import BundleSettlement
    from chalicelib.usecases.payouts.settlement import Settlement
    from chalicelib.usecases.scanning.mempool import MempoolScan
    from chalicelib.usecases.treasury.consolidation.following import CoinMoveFollowing
    from chalicelib.usecases.treasury.moves.following import MoveFollowing

log = logging.getLogger(__name__)

SECONDS = 30.0
"""How long one run may begin new work, all realms together; what it has started ends well within the function's 60 seconds."""
CREDITING = 2 / 3
"""The part of it that crediting may take, all realms together: the rest is for what is out, also in a long catch-up."""
SCANNING = 3 / 4
"""The part of crediting in which blocks are read: what is deep enough is confirmed in the same poll, also in a long catch-up."""
EXPIRING = 1 / 4
"""The part of the time left behind crediting in which invoices expire, if so many are due; and in which payments get a rate."""
READING = 1 / 6
"""The part of the run for what waits in a mempool, whatever time crediting took: of a full one some, the rest in the next polls."""
LEAST = 1 / 10
"""The part of the run, once in crediting, once behind it, and half as much for rescans, that each realm has to itself, whatever the
others take: also where a node that is slow has kept one of them beyond its time."""
A_LITTLE = 1.0
"""Seconds that ending a watch, and what comes behind collecting, have in each poll: much dust takes all that collecting has."""


def run(slug: str) -> None:
    """Poll the network `slug` in every realm where it is active.

    One realm's failure does not keep the other from being polled, nor one step the next. Raises `Failures` at the end.
    """
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    poll(slug)


def poll(slug: str) -> None:
    """As `run`, also while the demo is being filled anew."""
    whole, crediting = Deadline.after(SECONDS), Deadline.after(SECONDS * CREDITING)
    networks = [services().store.catalogue(realm).network(slug) for realm in services().settings.realms]
    active = [network for network in networks if network is not None and network.status == "active" and not _put_back(network)]
    polls = [Poll(network) for network in active]
    with Each(f"polling {slug}") as each:
        _in_turn(each, {one.network.id: one.credit for one in polls}, crediting, LEAST * SECONDS)
        for one in polls:
            each.take(one.network.id, one.read_mempool)
        _in_turn(each, {one.network.id: one.follow for one in polls}, whole, LEAST * SECONDS)
        for one in polls:
            each.take(one.network.id, one.report)
        # Work without a deadline comes last, and after all realms: a long rescan must hold up none.
        _in_turn(each, {network.id: partial(_rescan, network) for network in active}, whole, LEAST * SECONDS / 2)


def _in_turn(each: Each, realms: Mapping[NetworkId, Callable[[Deadline], None]], until: Deadline, own: float) -> None:
    """Take a step in every realm, one after the other. Each leaves `own` seconds to every later one, and has as many itself."""
    for later, (name, step) in zip(reversed(range(len(realms))), realms.items(), strict=True):
        each.take(name, partial(_with_time, step, until.before(later * own), own))


def _with_time(step: Callable[[Deadline], None], until: Deadline, own: float) -> None:
    step(until.at_least(own))


def _put_back(network: Network) -> bool:
    if put_back(services().store, network.realm) is None:
        return False
    log.warning("%s: the tables were put back, and after-restore is not done: nothing is polled", network.id)
    return True


class Poll:
    """One poll of one network: `credit`, `read_mempool`, `follow`. All raise `Failures`, and take every step all the same."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._began = services().clock.now_ms()
        self._reached: list[Cursor] = []
        """Where the scan stands; empty where it failed."""
        self._mempool_scan: MempoolScan | None = None
        """Those of a network with a mempool, once this poll has scanned."""

    def credit(self, deadline: Deadline) -> None:
        """Undo the effects of blocks that fell out, scan, confirm."""
        network, wired = self.network, services()
        with in_realm(network.realm), Each(network.id) as each:
            if network.simulated:
                each.take("follow the clock", self._follow_the_clock)
            each.take("hear nodes", wired.node_votes(network).look)
            _undo(network, each, deadline)
            each.take("scan", partial(self._scan, deadline.part(SCANNING)))
            # Whatever time a slow answer has taken: in each poll something is credited.
            each.take("confirm", lambda: self._confirm(deadline.at_least(SECONDS * LEAST)))
            each.take("plan ticks", self._plan_ticks)

    def _plan_ticks(self) -> None:
        wired, cursor = services(), self._reached[-1] if self._reached else None
        wired.ticks.plan(self.network, self._began, wired.clock_of(self.network.realm).now_ms(), cursor)

    def read_mempool(self) -> None:
        """Record new mempool transactions, and end those that are gone, with a time of its own."""
        if self._mempool_scan is not None:
            reading = Deadline.after(SECONDS * READING)
            with in_realm(self.network.realm):
                self._mempool_scan.read(reading.part(3 / 4), reading)

    def follow(self, deadline: Deadline) -> None:
        """Expire unpaid invoices and unclaimed refunds, and bring our transactions in flight forward: half of the time that is
        left for each kind, so that none takes all of it."""
        network, wired = self.network, services()
        with in_realm(network.realm), Each(network.id) as each:
            each.take("find rates of payments", lambda: wired.unpriced(network).work(deadline.part(EXPIRING)))
            each.take("expire", partial(self._expire, deadline.part(EXPIRING)))
            waits = self._follow(each, deadline)
            each.take("refunds", partial(wired.open_refunds.work, network.id, deadline.part(EXPIRING)))
            each.take("quote fees", self._quote_fees)
            if waits:
                # Something may be final as soon as it is scanned, deposits too.
                each.take("scan on", partial(self._pass_blocks, deadline.part(1 / 2)))
                each.take("confirm", partial(self._confirm, deadline.part(1 / 2)))
                self._follow(each, deadline)
            _let_rest(network, each, deadline.part(1 / 4).at_least(A_LITTLE))
            _collect(network, each, deadline.part(1 / 2))
            each.take("drain replaced wallets", lambda: wired.drains(network).work(deadline))
            each.take("look at wallets", wired.observer(network).look)
            _by_family(network, each, deadline.at_least(A_LITTLE))

    def report(self) -> None:
        """Store how the network's nodes did, for the operator. A simulated one has none."""
        if not self.network.simulated:
            services().node_reports(self.network).note(self._reached[-1].tip if self._reached else None)

    def _follow_the_clock(self) -> None:
        # The process that moved the sandbox's clock may have died before every chain had a block of the new time.
        services().sandbox_time.look()
        services().simulated(self.network.id).catch_up()

    def _pass_blocks(self, more: Callable[[], bool]) -> Cursor:
        self._reached[:] = [services().scanner(self.network).advance(more)]
        return self._reached[-1]

    def _scan(self, more: Callable[[], bool]) -> None:
        self._mempool_scan = services().mempool_scan(self.network)
        if self._mempool_scan is None:
            self._pass_blocks(more)
        else:
            self._mempool_scan.look(partial(self._pass_blocks, more))

    def _confirm(self, more: Callable[[], bool]) -> None:
        for cursor in self._reached:
            services().scanner(self.network).confirm(cursor, more)

    def _expire(self, more: Callable[[], bool]) -> None:
        # How far the chain is known decides, whatever else went wrong: not the mempool, which is first sight alone.
        wired = services()
        for cursor in self._reached:
            now = wired.clock_of(self.network.realm).now_ms()
            until = now if cursor.number >= cursor.tip else cursor.block_time
            wired.invoice_expiries.expire_due(self.network.id, until, more)

    def _quote_fees(self) -> None:
        from chalicelib.usecases.base.current_wallets import wallet_of
        from chalicelib.usecases.wallets.signers import quoted_for

        wired = services()
        hot = wallet_of(wired.store, self.network.id, "hot")
        if hot is not None:
            wired.fee_quotes(self.network).quote(quoted_for(wired.store, hot))

    def _follow(self, each: Each, deadline: Deadline) -> bool:
        """Whether something is deep enough by the node's height, and not by what is scanned."""
        followed = _followed(self.network)
        for what, following in followed.items():
            each.take(what, partial(following.follow, deadline.part(1 / 2)))
        return any(following.waits_for_scan for following in followed.values())


def _by_family(network: Network, each: Each, more: Callable[[], bool]) -> None:
    wired = services()
    if network.family == "evm" and not network.simulated:
        each.take("book balances", lambda: wired.balance_booker(network).work(more))
    if (loans := wired.loans(network)) is not None:
        each.take("loans", lambda: loans.take_back(more))
    if network.family == "tron":
        each.take("stake", lambda: (wired.staker(network) if network.simulated else wired.stake_following(network)).work(more))


def _pays_from_coins(network: Network) -> bool:
    from chalicelib.usecases.wallets.utxos import pays_from_coins

    return pays_from_coins(network)


def _undo(network: Network, each: Each, more: Callable[[], bool]) -> None:
    """Undo settled payments and given-up transactions where the chain says otherwise now."""
    wired = services()
    each.take("watch settled payments", lambda: wired.settlement(network).watch_settled(more))
    each.take("watch what was given up", lambda: wired.given_up_watching(network).work(more))
    if not _pays_from_coins(network):
        each.take("watch moved", lambda: wired.moves(network).watch(more))


def _let_rest(network: Network, each: Each, more: Callable[[], bool]) -> None:
    """End the watch over what no reorganisation reaches."""
    wired = services()
    each.take("let settled payments rest", lambda: wired.settlement(network).let_rest(more))
    if not _pays_from_coins(network):
        each.take("let moves rest", lambda: wired.moves(network).let_rest(more))


def _followed(network: Network) -> dict[str, Settlement | BundleSettlement | CoinMoveFollowing | MoveFollowing]:
    """Whatever was signed and is not final, by what it is called."""
    wired = services()
    answers = wired.answers(network)
    payments = {"settle payments": wired.settlement(network, answers)}
    if _pays_from_coins(network):
        bundles = wired.bundle_settlement(network, answers)
        return {**payments, "bundles": bundles, "coin moves": wired.coin_moves(network)}
    return {**payments, "moves": wired.moves(network)}


def _collect(network: Network, each: Each, more: Callable[[], bool]) -> None:
    each.take("hot floor", lambda: services().hot_floor(network).look())
    if _pays_from_coins(network):
        _collect_coins(network, each, more)
        return
    if network.family == "evm":
        each.take("return payments", partial(services().stray_returns(network).work, more))
    each.take("collect", partial(services().collecting(network).work, more))
    each.take("distribute", partial(services().distributor(network).work, more))
    if network.payout_slots > 1:
        each.take("hot wallets", partial(services().slot_moves(network).work, more))


def _collect_coins(network: Network, each: Each, more: Callable[[], bool]) -> None:
    """Plan what goes from deposit addresses to the hot wallet, and from there to the cold one. Of networks of coins."""
    from chalicelib.usecases.wallets.signers import draining

    wired = services()
    each.take("consolidate", lambda: wired.coin_move_planning(network).look(wired.finality(network).scanned(), more))
    cold = wired.cold_coins(network)
    each.take("store away", cold.look)
    for old in draining(wired.store, network.id, "hot"):
        each.take(f"drain {old.address}", partial(cold.drain, old.wallet))


def _rescan(network: Network, more: Callable[[], bool]) -> None:
    with in_realm(network.realm):
        services().rescanner(network).work(more)
