"""Transactions in flight, signed and not settled: how much the ledger and the chain may differ because of them.

Payments, moves and stakes of networks of accounts. The ledger moves when they are signed and when they are settled, the chain when
they are mined; the receipt says on which side of that a block is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.domain.chain import Receipt
from chalicelib.domain.ids import AssetId
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.domain.work import Work, WorkKind
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.withdrawals.steps import order_of, payout_parts

PlaceKey = tuple[str, AssetId, bool]
"""As `domain.reconciliation.Place.key`: address in storage form, asset, staked."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """One signed transaction, in all its attempts, addresses in storage form. `recipient` is whom it pays; `ours`: another place of
    ours. `staked`: it locks the coins where they are, and the ledger moves only when it is settled."""

    txids: tuple[str, ...]
    source: str
    recipient: str
    asset: AssetId
    contract: str | None
    amount: int
    ours: bool = False
    staked: bool = False

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.source, self.recipient) if self.ours else (self.source,)

    def paid(self, receipt: Receipt) -> bool:
        """Whether the payment succeeded: a token's own log decides (money rule 8)."""
        if not receipt.success or self.contract is None:
            return receipt.success
        return (self.contract, self.source, self.recipient) in receipt.moved

    def arrived(self, receipt: Receipt) -> int:
        """Units that reached its recipient: a token may keep a part."""
        if self.contract is None:
            return self.amount
        return min(self.amount, receipt.arrived(self.contract, self.source, self.recipient))


@dataclass
class Effects:
    """By place, in units. The ledger's balance plus `more` has to be on the chain. `in_flight` is what the ledger has in flight
    from
    there, `leaving` the part of it that has left on the chain."""

    more: dict[PlaceKey, int] = field(default_factory=lambda: defaultdict(int))
    in_flight: dict[PlaceKey, int] = field(default_factory=lambda: defaultdict(int))
    leaving: dict[PlaceKey, int] = field(default_factory=lambda: defaultdict(int))


def effects(ways: Sequence[InFlight], native: AssetId, mined: Callable[[InFlight], Receipt | None]) -> Effects:
    """`mined` gives the receipt of what is in the chain at the block that is compared, of any of its attempts; else None."""
    found = Effects()
    for way in ways:
        source = (way.source, way.asset, False)
        receipt = mined(way)
        if not way.staked:
            found.in_flight[source] += way.amount
        if receipt is not None:
            found.more[way.source, native, False] -= receipt.fee or 0
        if way.staked:
            if receipt is not None and way.paid(receipt):
                found.more[source] -= way.amount
                found.more[way.source, way.asset, True] += way.amount
        elif receipt is None or not way.paid(receipt):
            found.more[source] += way.amount
        elif way.ours:
            found.more[way.recipient, way.asset, False] += way.arrived(receipt)
        else:
            found.leaving[source] += way.amount
    return found


class InFlightWork:
    """Reads the transactions in flight of one account network."""

    def __init__(self, context: NetworkContext) -> None:
        self._network, self._store = context.network, context.store
        self._form, self._contract_form = context.form, context.contract_form

    def read(self) -> list[InFlight]:
        """All transactions that are signed and not settled. Raises Unavailable, and TooNew where one has a form that only a newer
        version knows: without it the ledger and the chain would differ by what it pays, or would agree where money is missing.
        The comparison of this network waits then, and ends incomplete; no other waits for it."""
        return [*self._payments(), *self._moves(), *self._stakes()]

    def _payments(self) -> list[InFlight]:
        orders = self._records("sent", lambda work: (PaymentOrder, {"id": order_of(*payout_parts(work))}))
        return [self._way(o, o.wallet, o.recipient, o.amount) for o in orders if o.state == "signed" and o.txids]

    def _moves(self) -> list[InFlight]:
        moves = self._records("move", lambda work: (Move, {"network": self._network.id, "id": work.id}))
        return [self._way(move, move.source, move.recipient, move.units, ours=True) for move in moves if move.state == "signed"]

    def _stakes(self) -> list[InFlight]:
        stakes = self._records("stake", lambda work: (Stake, {"network": self._network.id, "id": work.id}))
        return [
            InFlight(s.txids, self._form(s.wallet), self._form(s.wallet), s.asset, None, s.amount, staked=True)
            for s in stakes
            if s.status == "pending"
        ]

    def _records(self, kind: WorkKind, key: Callable[[Work], tuple[type[Any], Mapping[str, str]]]) -> list[Any]:
        found: list[Any] = []
        for works in pages_of(self._store, kind, self._network.id):
            found += self._store.get_many([key(work) for work in works])
        return [record for record in found if record is not None]

    def _way(self, sent: Any, source: str, recipient: str, amount: int, ours: bool = False) -> InFlight:
        ends = self._form(source), self._form(recipient)
        return InFlight(sent.txids, *ends, sent.asset, self._contract_form(sent.contract), amount, ours)


def touching(ways: Sequence[InFlight], addresses: Collection[str]) -> list[InFlight]:
    """The transactions that bring something to one of these addresses, or take it from there."""
    return [way for way in ways if any(address in addresses for address in way.addresses)]
