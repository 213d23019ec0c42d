"""Matching of chain movements: to watched recipients, in registered coins, and not made by ourselves.

Change, consolidation, top-ups, sweeps: what our own transactions bring to our addresses is no deposit (money rule 8). The
settlement of such a transaction posts what it moves. Its record is stored with its signature, before anything is sent, so that no
scanner can be first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from chalicelib.domain.addresses.addresses import Watched, watched_key
from chalicelib.domain.catalogue.catalogue import Coin, Network
from chalicelib.domain.catalogue.native_faces import known_face
from chalicelib.domain.chain import Reward, Transfer
from chalicelib.domain.ids import AssetId
from chalicelib.domain.scanning.internal_transfers import POSITION
from chalicelib.domain.treasury.hot_utxos import OwnTransaction
from chalicelib.domain.treasury.moves import WHOLE_TRANSACTION
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.wallets.utxos import pays_from_coins

log = logging.getLogger(__name__)

_READ_AT_ONCE = 1_000
"""Recipients that are looked up at once: a block may have 80,000, and each costs more memory as a key than as an address."""

_told: set[AssetId] = set()
"""Known faces that this process has told of: a poll asks for the tokens many times."""


class Matcher:
    def __init__(self, context: NetworkContext) -> None:
        self._context, self._network, self._store = context, context.network, context.store

    def contracts(self) -> dict[str, Coin]:
        """The network's tokens by the storage form of their contracts.

        Without known faces of the network's own coin (`domain.catalogue.native_faces`), which were registered before they were
        refused: what they log is the native payment once more.
        """
        return {contract: coin for contract, coin in self._context.tokens().items() if not self._face(contract, coin)}

    def _face(self, contract: str, coin: Coin) -> bool:
        known = known_face(self._network.slug, contract)
        if known is not None and coin.asset not in _told:
            _told.add(coin.asset)
            own = self._context.native().slug
            log.error("ALARM %s: %s is %s itself, says %s: nothing of it is credited", self._network.id, coin.slug, own, known)
        return known is not None

    def ours(self, transfers: Iterable[Transfer | Reward], returned: bool = False) -> dict[str, Watched]:
        """The watched addresses among all recipients, by batch reads: the cost does not depend on the number of watched addresses.

        Strongly consistent, and nothing is remembered of those that are not watched: an address is watched from the commit that
        gives it out, and a payment to it may be in the very next block. With `returned` also those that are not watched here, and
        to which a payment was returned here: each payment to them has to be looked up (`returned_payments.owner_of`).
        """
        moved, slug = list(transfers), self._network.slug
        recipients = sorted({t.recipient for t in moved})
        ours: dict[str, Watched] = {}
        for start in range(0, len(recipients), _READ_AT_ONCE):
            some = recipients[start : start + _READ_AT_ONCE]
            found = self._store.get_many([watched_key(self._network, address) for address in some])
            ours |= {address: watched for address, watched in zip(some, found, strict=True) if watched is not None}
        for address, watched in ours.items():
            if not watched.holds_on(slug):
                self.astray(next(t for t in moved if t.recipient == address), watched)
        return {a: watched for a, watched in ours.items() if slug in watched.networks or (returned and slug in watched.returned)}

    def astray(self, moved: Transfer | Reward, watched: Watched) -> None:
        """Log that a payment to one of our addresses is credited to nobody, and its remedy."""
        by = f"in {moved.txid}" if isinstance(moved, Transfer) else moved.source
        helps = watched.role == "user" and isinstance(moved, Transfer)
        log.error(
            "ALARM %s: a payment to %s, which receives on %s, %s%s",
            *(self._network.id, moved.recipient, ", ".join(watched.networks), by),
            ": POST /v1/stray-payments shows it, and credits or returns it" if helps else "",
        )

    def bookable(self, transfer: Transfer, contracts: dict[str, Coin]) -> bool:
        """Whether a transfer is in a registered coin. Its amount does not matter: recording sets aside what sums can not take."""
        return transfer.contract is None or transfer.contract in contracts


def from_others(store: Store, network: Network, transfers: Sequence[Transfer], watched: Mapping[str, Watched]) -> list[Transfer]:
    """Those of `transfers` that are not our own movements. One batch read, only where there may be any.

    On UTXO networks only service wallets receive from us (change, consolidation). On account networks every match may be a
    top-up or a sweep; what was found in a balance is no transaction at all. `watched` by the storage form of the recipient.
    Raises Unavailable.
    """
    accounts = not pays_from_coins(network)

    def may_be(t: Transfer) -> bool:
        return not t.position.startswith(POSITION) if accounts else watched[t.recipient].role != "user"

    doubtful = sorted({t.txid for t in transfers if may_be(t)})
    if not doubtful:
        return list(transfers)
    found = store.get_many([(OwnTransaction, {"network": network.id, "txid": txid}) for txid in doubtful])
    ours = {(own.txid, position) for own in found if own is not None for position in own.positions}
    return [t for t in transfers if (t.txid, t.position) not in ours and (t.txid, WHOLE_TRANSACTION) not in ours]
