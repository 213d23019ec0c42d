"""Given-up transactions: an operator's recorded decision ends a transaction that no sighting ends (money rule 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Work, time_order

GivenKind = Literal["payout", "move", "stake", "bundle", "coin_move"]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The decision about the record `id` (a withdrawal, a move, a stake, a bundle, a coin move): who decided and why, `at` in
    milliseconds since 1970, and at which scanned `height`. `owner` is the tenant of a withdrawal, empty for everything else.

    `txids` are the attempts that were signed by then: each may still be mined. `state`: `open` while the record is to be ended,
    or is watched afterwards; `mined`: the chain had an attempt after all; `over`: none is looked for any more. `used_at` is how
    high the chain was when its nonce was first said to be used while none of its attempts had been met; None while it is free.

    Of a record that nothing was signed for there are no `txids`, and it is `over` at once. `without` is the withdrawal that fails
    when such a bundle is taken apart.
    """

    id: str
    network: NetworkId
    kind: GivenKind
    owner: str
    by: str
    reason: str
    at: int
    height: int
    txids: tuple[str, ...]
    state: Literal["open", "over", "mined"] = "open"
    used_at: int | None = None
    without: str = ""
    version: int = 1


def given_up_work(decision: GivenUp) -> Work:
    """Open work: end the given-up record, and watch it."""
    return Work("givenup", decision.network, time_order(decision.at), decision.id)
