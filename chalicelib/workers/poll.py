"""Once a minute per network: settle what is out, scan new blocks, confirm, expire. Both realms, one after the other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from chalicelib.domain.addresses import Wallet
from chalicelib.domain.catalogue import Network
from chalicelib.usecases.changes import Conflict
from chalicelib.usecases.hot_coins import pays_from_coins
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.realm_time import in_realm
from chalicelib.usecases.scan import Halted
from chalicelib.wiring import services

log = logging.getLogger(__name__)

SECONDS = 30.0
"""How long one run may begin new work, all realms together; what it has begun ends well within the function's 60 seconds."""


def run(slug: str) -> None:
    """Poll the network `slug` in every realm where it is active.

    One realm's failure does not keep the other from being polled, nor one step the next. Raises what went wrong, at the end.
    """
    wired = services()
    if wired.settings.stage == "demo" and wired.demo_resets.busy():
        return
    poll(slug)


def poll(slug: str) -> None:
    """The same, also while the demo is being filled anew."""
    until = time.monotonic() + SECONDS
    failures: list[Exception] = []
    polled: list[Network] = []
    for realm in services().settings.realms:
        network = services().store.catalogue(realm).network(slug)
        if network is not None and network.status == "active":
            with in_realm(realm):
                wrong = _poll(network, lambda: time.monotonic() < until)
                if not wrong:
                    polled.append(network)
                failures += wrong
    # What has time comes last, and after both realms: a long rescan must hold up neither.
    for network in polled:
        with in_realm(network.realm):
            failures += _rescan(network, lambda: time.monotonic() < until)
    if failures:
        raise ExceptionGroup(f"polling {slug}", failures)


def _poll(network: Network, more: Callable[[], bool]) -> list[Exception]:
    wired = services()

    def follow_the_clock() -> None:
        # Whoever moved the sandbox's clock may have died before every chain had a block of the new time.
        wired.sandbox_time.look()
        wired.simulated(network.id).catch_up()

    def scan() -> None:
        scanner, glimpses = wired.scanner(network), wired.glimpses(network)
        cursor = scanner.poll(more) if glimpses is None else glimpses.look(lambda: scanner.poll(more), more)
        wired.invoices.expire_due(
            network.id, wired.clock_of(network.realm).now_ms() if cursor.number >= cursor.tip else cursor.block_time
        )

    def follow() -> bool:
        """Whether something that is out is final as soon as it is scanned."""
        settlement = wired.settlement(network)
        settlement.follow(more)
        if not pays_from_coins(network):
            return settlement.waits_for_scan
        together = wired.bundle_settlement(network)
        together.follow(more)
        return settlement.waits_for_scan or together.waits_for_scan

    waiting = False

    def settle() -> None:
        nonlocal waiting
        settlement = wired.settlement(network)
        settlement.watch_settled(more)
        waiting = follow()
        hot = wired.store.get(Wallet, network=network.id, role="hot")
        if hot is not None:
            settlement.quote_fees(hot.address)

    def settle_scanned() -> None:
        if waiting:
            follow()

    def stake() -> None:
        (wired.staker(network) if network.simulated else wired.stake_following(network)).work(more)

    def reconcile() -> None:
        wired.reconciler(network).work(more)

    def go_round() -> None:
        wired.reconciler(network).go_round(more)

    # What is out first: a long catch-up must not keep it waiting.
    steps: list[tuple[str, Callable[[], Any]]] = [("settle", settle), ("scan", scan), ("settle what was scanned", settle_scanned)]
    if network.family == "evm" and not network.simulated:
        steps += [("reconcile", reconcile), ("go round", go_round)]
    if network.simulated:
        steps.insert(0, ("follow the clock", follow_the_clock))
    if network.family == "tron":
        steps.append(("stake", stake))
    return _steps(network, *steps)


def _rescan(network: Network, more: Callable[[], bool]) -> list[Exception]:
    return _steps(network, ("rescan", lambda: services().rescanner(network).work(more)))


def _steps(network: Network, *steps: tuple[str, Callable[[], Any]]) -> list[Exception]:
    """Take all steps, whatever goes wrong with one; what went wrong."""
    failures: list[Exception] = []
    for name, step in steps:
        try:
            step()
        except Conflict:
            log.info("%s: another poll was first to %s", network.id, name)
        except (Unavailable, Halted) as error:
            log.warning("%s: could not %s now: %s", network.id, name, error)
            failures.append(error)
    return failures
