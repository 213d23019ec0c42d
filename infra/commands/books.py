"""Commands for the books: whether they are whole."""

from __future__ import annotations

import argparse

from infra.commands.common import Command, services


def add(command: Command) -> None:
    """Add the commands of this group."""
    command(audit)


def audit(_: argparse.Namespace) -> int:
    """Prove that the books are whole. Exit code 1, and a sentence for each violation, when they are not."""
    from chalicelib.usecases.audit import audit as run

    found = run(services().store)
    for sentence in found:
        print(sentence)
    print(f"{len(found)} violations" if found else "the books are whole")
    return 1 if found else 0
