"""The command for records that an older version wrote: it gives them what newer ones have."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from infra.commands.common import Command, services

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.ports.readers import ChainReader


def add(command: Command) -> None:
    """Add the command."""
    command(migrate)


def migrate(args: argparse.Namespace) -> int:
    """Give records of an older version what newer ones have, while the service runs. Run it after each update, and after a cut: it
    goes on where it was."""
    from chalicelib.domain.ids import REALMS
    from chalicelib.usecases.recovery.deposit_migration import DepositMigration

    wired = services()
    networks = [network for realm in REALMS for network in wired.catalogue(realm).networks.values()]

    def reader_of(network: Network) -> ChainReader | None:
        try:
            return wired.reader(network)
        except (LookupError, ValueError):  # it has no node
            return None

    done = DepositMigration(networks, reader_of, wired.store, wired.clock).run(_tell)
    print(f"deposits: {done.blocks} blocks listed by height, the logs of {done.claimed} transactions claimed")
    for network_id, left in sorted(done.left.items()):
        text = f"{network_id}: {left} token transactions are left: its node is away, or does not have them in the block scanned"
        print(text, file=sys.stderr)
    return 1 if done.left else 0


def _tell(line: str) -> None:
    print(line, flush=True)
