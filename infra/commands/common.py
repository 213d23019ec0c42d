"""What the operator's commands share: how they say what they can not do, and what they work with."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chalicelib.domain.catalogue.catalogue import Network
    from chalicelib.usecases.scanning.scanner import Scanner
    from chalicelib.wiring import Services

Run = Callable[[argparse.Namespace], int]
Command = Callable[[Run], argparse.ArgumentParser]
"""Adds a function as the command of its name; its docstring's first sentence is the help. Gives the parser of its arguments."""


class CanNot(Exception):
    """The command can not be done as it was given. The message tells the operator why."""


def say(record: Any) -> None:
    """Print a record as JSON."""
    print(json.dumps(record, indent=2))


def services() -> Services:
    """What the commands work with. Raises CanNot where the environment is not complete."""
    from chalicelib import wiring

    try:
        return wiring.services()
    except (LookupError, ValueError) as error:  # no region; a setting that is not allowed
        raise CanNot(str(error)) from error


def network_of(wired: Services, realm: str, slug: str) -> Network:
    """A network of the catalogue. Raises CanNot where there is no catalogue yet."""
    from chalicelib.domain.catalogue.catalogue import Network

    found = wired.store.get(Network, id=f"{realm}:{slug}")
    if found is None:
        raise CanNot("this stage is not prepared yet: run the command prepare first")
    return found


def scanner_of(wired: Services, network: Network) -> Scanner:
    """The scanner of a network. Raises CanNot where it has no node, or what was given as URL is none."""
    try:
        return wired.scanner(network)
    except (LookupError, ValueError) as error:
        raise CanNot(str(error)) from error


def height(text: str) -> int:
    """A block number of the command line. Raises ValueError."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def ask(question: str = "Go on? [y/N] ", agreeing: Sequence[str] = ("y", "yes")) -> None:
    """Ask the operator whether to go on. Raises CanNot unless he agrees."""
    try:
        agreed = input(question).strip().lower() in agreeing
    except EOFError:
        raise CanNot("nothing was done: nobody answers here; --yes does without") from None
    if not agreed:
        raise CanNot("nothing was done")
