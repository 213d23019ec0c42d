"""The command for records that an older version wrote: it gives them what newer ones have."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from infra.commands.common import Command, services

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.ports.readers import ChainReader


def add(command: Command) -> None:
    """Add the command."""
    command(migrate).add_argument("--again", action="store_true", help="also where it was done: all records, from the beginning")


def migrate(args: argparse.Namespace) -> int:
    """Give records of an older version what newer ones have, while the service runs. `deploy` does it where it was not done; after
    a cut it goes on where it was. The exit code is 1 while something is left."""
    return 1 if _run(again=args.again) else 0


def migrate_behind() -> None:
    """As a part of a deploy. What is left does not fail it: every version reads records of the older one."""
    _run(again=False)


def reopen() -> None:
    """Have everything migrated once more: an older version's functions run."""
    from chalicelib.usecases.recovery import deposit_migration

    deposit_migration.reopen(services().store)


def _run(*, again: bool) -> bool:
    """Whether something is left."""
    from chalicelib.domain.ids import REALMS
    from chalicelib.usecases.recovery.deposit_migration import DepositMigration

    wired = services()
    networks = [network for realm in REALMS for network in wired.catalogue(realm).networks.values()]

    def reader_of(network: Network) -> ChainReader | None:
        try:
            return wired.reader(network)
        except (LookupError, ValueError):  # it has no node
            return None

    done = DepositMigration(networks, reader_of, wired.store, wired.clock).run(_tell, again=again, wait=time.sleep)
    if done.ran:
        print(f"deposits: {done.blocks} blocks listed by height, the logs of {done.claimed} transactions claimed")
    else:
        print("deposits: migrated before; migrate --again looks at all of them once more")
    for network_id, left in sorted(done.left.items()):
        text = (
            f"{network_id}: {left} token transactions are left: its node is away, or does not have them in the block scanned."
            " They are safe as they are; migrate --again tries them"
        )
        print(text, file=sys.stderr)
    return bool(done.left)


def _tell(line: str) -> None:
    print(line, flush=True)
