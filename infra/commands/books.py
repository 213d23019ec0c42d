"""Commands for the books: whether they are whole, and whether the chains hold what they say."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from chalicelib.domain.catalogue.catalogue import NETWORK_ORDER
from infra.commands.common import CanNot, Command, say, services

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.wiring import Services

PAUSE_SECONDS = 2.0
PAUSES_TOLD = 15
"""Pauses after which the operator is told again what the command waits for: half a minute."""
PATIENCE_MS = 60_000
"""How long the command waits for a network that can not be read. The schedule has more patience."""


def add(command: Command) -> None:
    """Add the commands of this group."""
    command(audit)
    compares = command(reconcile)
    compares.add_argument("--realm", choices=("live", "test"), default="live")
    compares.add_argument("--network", choices=NETWORK_ORDER, help="this one alone")


def audit(_: argparse.Namespace) -> int:
    """Prove that the books are whole. Exit code 1, and a sentence for each violation, when they are not."""
    from chalicelib.usecases.reconciliation.audit import audit as run

    found = run(services().store)
    for sentence in found:
        print(sentence)
    print(f"{len(found)} violations" if found else "the books are whole")
    return 1 if found else 0


def reconcile(args: argparse.Namespace) -> int:
    """Compare the ledger with the chains now, and print the report. Exit code 1 where something differs, is not solvent, or could
    not be compared."""
    from chalicelib.usecases.reconciliation.reports import comparable
    from chalicelib.usecases.reconciliation.views import whole_view

    wired = services()
    if args.realm not in wired.settings.realms:
        raise CanNot(f"the stage {wired.settings.stage} has no realm {args.realm}")
    catalogue = wired.catalogue(args.realm)
    # One that is out of service is compared where it is named.
    everything = catalogue.networks.values()
    if args.network is None:
        networks = [network for network in everything if network.status == "active"]
    else:
        networks = [network for network in everything if network.slug == args.network and comparable(network)]
    if not networks:
        raise CanNot("no such network is active, or has a node")
    at = wired.reconciliations.order(args.realm, None).at
    found = [finished(wired, network, at) for network in networks]  # all of them, whatever the first one finds
    say(whole_view(wired.reconciliations.read(catalogue), catalogue, wired.rules, args.network))
    return 0 if all(found) else 1


def finished(wired: Services, network: Network, at: int) -> bool:
    """Bring the run of a network that began at `at` or later to its end; whether it found nothing. The schedule may help."""
    from chalicelib.domain.reconciliation import ComparisonReport
    from chalicelib.usecases.base.clock import in_realm
    from chalicelib.usecases.ports.changes import Conflict

    with in_realm(network.realm):
        try:
            run = wired.reconciliation_run(network)
        except (LookupError, ValueError) as error:
            raise CanNot(str(error)) from error
        pauses = 0
        while True:
            report = wired.store.get(ComparisonReport, network=network.id)
            if report is not None and report.started_at >= at:
                return report.clean
            try:
                waits = run.begin() and run.step(PATIENCE_MS) == "waits"
            except Conflict:
                waits = True  # the schedule is at it as well
            if waits:
                if pauses % PAUSES_TOLD == 0:
                    _tell(wired, network)
                pauses += 1
                time.sleep(PAUSE_SECONDS)


def _tell(wired: Services, network: Network) -> None:
    from chalicelib.domain.reconciliation import Comparison

    state = wired.store.get(Comparison, network=network.id)
    if state is None or state.trouble is None:
        why = "it waits for blocks, to look once more where something differs, or for a comparison by the schedule"
    else:
        why = state.trouble
    print(f"{network.id}: {why}. Ctrl-C leaves the comparison to the schedule.", file=sys.stderr, flush=True)
