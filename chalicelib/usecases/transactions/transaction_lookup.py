"""Finds one transaction of a merchant by its id or by its hash: a deposit, a payment, a stake; for an operator a move, too."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.deposits.deposits import Deposit
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import TenantId
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.transaction_views import coin_move_of, move_of, stake_of, withdrawal_of
from chalicelib.usecases.ports.store import Listed, Store

Transaction = Deposit | Withdrawal | Stake | Move | CoinMove
_IDS = ("tx_", "txw_", "txs_", "txm_", "txc_")


class TransactionLookup:
    """`operators`: under whose name a key of the level admin is shown transactions, beside its own merchant's."""

    def __init__(self, store: Store, catalogue: Catalogue, tenant: TenantId, operators: Sequence[TenantId]) -> None:
        self._store, self._catalogue, self._tenant, self._operators = store, catalogue, tenant, operators

    def named(self, name: str) -> Transaction:
        """By its id, or the newest of those that share a hash. Raises NotFound, also for another merchant's; Unavailable."""
        found = self.by_id(name) if name.startswith(_IDS) else self._by_hash(name)
        if found is None or not self._mine(found):
            raise NotFound(f"No transaction {name[:80]}", {"txId": name[:80]})
        return found

    def by_id(self, name: str) -> Transaction | None:
        """None for one that is not there, or another merchant's. Raises Unavailable."""
        found = self._at(name)
        return found if found is not None and self._mine(found) else None

    def payment_of(self, withdrawal_id: str) -> Transaction | None:
        """The withdrawal, once its transaction is signed. Raises Unavailable."""
        found = self._store.get(Withdrawal, tenant=self._tenant, id=withdrawal_id)
        return None if found is None or found.txid is None else found

    def _at(self, name: str) -> Transaction | None:
        stake_id, withdrawal_id, move_id = stake_of(name), withdrawal_of(name), move_of(name)
        if move_id is not None:
            return self._move(Move, move_id)
        coin_move_id = coin_move_of(name)
        if coin_move_id is not None:
            return self._move(CoinMove, coin_move_id)
        if stake_id is not None:
            return self._store.get(Stake, network=self._catalogue.networks["tron"].id, id=stake_id)
        return self._store.get(Deposit, id=name) if withdrawal_id is None else self.payment_of(withdrawal_id)

    def _mine(self, transaction: Transaction) -> bool:
        return transaction.tenant in (self._tenant, *self._operators)

    def _move(self, kind: type[Move | CoinMove], move_id: str) -> Transaction | None:
        """One that is signed. Its id does not tell its network: all are asked for at once."""
        if not self._operators:
            return None
        wanted = [(kind, {"network": network.id, "id": move_id}) for network in self._catalogue.networks.values()]
        found: list[Move | CoinMove | None] = self._store.get_many(wanted)
        return next((move for move in found if move is not None and move.hash is not None), None)

    def _by_hash(self, txid: str) -> Transaction | None:
        for owner in (self._tenant, *self._operators):
            places = self._store.places(Listed("tx", "hash", owner, txid), limit=1, newest_first=True).places
            found: list[Transaction | None] = self._store.at(places)
            if found:
                return found[0]
        from chalicelib.usecases.archive.reading import newest_by_hash  # of last year, or of nobody's

        return newest_by_hash(self._store, self._tenant, txid)
