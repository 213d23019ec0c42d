"""Failures of outside systems, as the use cases tell them apart: the outcome is unknown, or the request is refused."""

from __future__ import annotations


class Unavailable(Exception):
    """A node, a queue or a key service did not answer, or answered nonsense. Nothing is known; try again later."""


class Unstorable(Exception):
    """The store takes no such transaction: an item, or all of it, is larger than may be, or an item is in it twice. Nothing was
    stored, and trying it again changes nothing."""


class Exhausted(Unavailable):
    """A pool of address indexes has none that may be given out: it is being restored, or nobody has raised its ceiling."""


class TooNew(LookupError):
    """A newer version of the service stored a record in a form that this one does not know, and has to be at work again. It says
    nothing about other records: work on these goes on, as where a record is another one's."""


class Unanswered(Unavailable):
    """There was no answer at all: no connection, no end in time, or a server's status in the place of one."""


class Contradiction(Unavailable):
    """A node contradicts an earlier answer about the chain. Of one node nothing is known then; of several, one lies."""


class Halted(Exception):
    """Crediting on this network has stopped until an operator takes it up again."""


class Refused(Exception):
    """The chain says that this payment can not be made as it stands (it would revert, no funds). The message says why."""


class TooMuchGas(Refused):
    """The chain would take it, and it would compute more at the payer's expense than is allowed. The message is for the caller."""


class InsufficientFunds(Refused):
    """The paying wallet has too little now, for the amount or for the fee. Waiting for more helps."""
