"""Open work of a retired wallet: transactions its key still has to sign, and the balance they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from chalicelib.domain.addresses.addresses import RetiredWallet
from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import AssetId
from chalicelib.domain.treasury.moves import AT_REST, Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.domain.work import WorkKind
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.steps import payout_parts


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What names a replaced wallet and is not at its end: how many, and what of each asset they will still
    take from it by the ledger."""

    count: int
    needed: Counter[AssetId] = field(default_factory=Counter)


class Begun:
    """Of one network. Every method raises Unavailable, and TooNew for a record in a form that only a newer version knows: the
    wallet's key may still have to sign that, so the wallet stays until that version has seen to it."""

    def __init__(self, store: Store, network: Network) -> None:
        self._store, self._network = store, network

    def with_(self, old: RetiredWallet) -> UnderWay:
        number, needed = 0, Counter[AssetId]()
        for withdrawal in self._withdrawals("payout"):
            if withdrawal.from_address == old.address and withdrawal.status == "processing":
                number += 1
                needed[withdrawal.asset] += withdrawal.amount
        number += sum(withdrawal.from_address == old.address for withdrawal in self._withdrawals("sent"))
        for works in pages_of(self._store, "stake", self._network.id):
            keys = [(Stake, {"network": self._network.id, "id": work.id}) for work in works]
            for stake in self._store.get_many(keys):
                if stake is not None and stake.wallet == old.address and stake.status == "pending":
                    number += 1
                    needed[stake.asset] += stake.amount
        for works in pages_of(self._store, "move", self._network.id):
            for move in self.moves([work.id for work in works]):
                if move.source == old.address and move.state not in AT_REST and move.id not in old.moves:
                    number += 1
                    needed[move.asset] += move.units if move.state != "signed" else 0
        for works in pages_of(self._store, "loan", self._network.id):
            # What it has lent it has to take back, and to pay for that.
            number += sum(loan.source == old.address for loan in self.moves([work.id for work in works]))
        return UnderWay(number, needed)

    def _withdrawals(self, kind: WorkKind) -> Iterator[Withdrawal]:
        for works in pages_of(self._store, kind, self._network.id):
            keys = [(Withdrawal, dict(zip(("tenant", "id"), payout_parts(work), strict=True))) for work in works]
            found: list[Withdrawal | None] = self._store.get_many(keys)
            yield from (withdrawal for withdrawal in found if withdrawal is not None)

    def moves(self, ids: list[str]) -> list[Move]:
        found: list[Move | None] = (
            self._store.get_many([(Move, {"network": self._network.id, "id": id}) for id in ids]) if ids else []
        )
        return [move for move in found if move is not None]
