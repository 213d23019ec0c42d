"""Commands for outgoing payments: stopping all of them, and letting them go on."""

from __future__ import annotations

import argparse

from chalicelib.domain.ids import REALMS, Realm
from infra.commands.common import Command, services


def add(command: Command) -> None:
    """Add the commands of this group."""
    for run in (stop_payments, resume_payments):
        parser = command(run)
        parser.add_argument("--realm", choices=REALMS, default="live")
        parser.add_argument("--reason", help="why; shown by GET /v1/withdrawals/switch and in the log")


def stop_payments(args: argparse.Namespace) -> int:
    """Stop all outgoing payments of a realm at once. Everything else goes on."""
    return _throw(args.realm, True, args.reason)


def resume_payments(args: argparse.Namespace) -> int:
    """Let the outgoing payments of a realm go on, oldest first."""
    return _throw(args.realm, False, args.reason)


def _throw(realm: Realm, stop: bool, reason: str | None) -> int:
    wired = services()
    found = wired.switches.throw(realm, stop, reason, "operator")
    print(f"outgoing payments of the realm {realm} {'are stopped' if found.stopped else 'go on'}")
    return 0
