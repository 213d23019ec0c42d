"""Signs stakes on a real network, as part of the payout function, which alone has the key.

What a crash leaves is always one of these, and `sign` goes on from it: an order without signed bytes (the same unsigned bytes are
signed; of two workers one stores its signature); signed bytes stored (they alone are sent); an order to renew, whose bytes have
expired and will never be in a block (others are signed and stored). What is signed and not stored is never sent. The guards are the
engine's (`transactions.accounts.signing`).
"""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.ids import NetworkId, network_parts
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.usecases.base.kill_switch import stopped
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.signing import Signer
from chalicelib.usecases.ports.staking import StakingNode
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.accounts.signing import AccountSigning
from chalicelib.usecases.treasury.tron.stake_attempts import StakeAttempts


class StakeSigning:
    """Needs the signer."""

    def __init__(
        self,
        store: Store,
        context_of: Callable[[Network], NetworkContext],
        signer: Signer,
        node_of: Callable[[Network], StakingNode],
        signing: AccountSigning,
    ) -> None:
        self._store, self._context_of, self._signer = store, context_of, signer
        self._node_of, self._signing = node_of, signing

    def sign(self, network: NetworkId, stake_id: str) -> None:
        """Bring a stake as far as its broadcast. Safe to call at any time, twice, at once.

        Raises Unavailable, OrderMismatch, Conflict: to be called again later.
        """
        until_settled(lambda: self._advance(network, stake_id))

    def _advance(self, network_id: NetworkId, stake_id: str) -> None:
        stake = self._store.get(Stake, network=network_id, id=stake_id)
        realm, slug = network_parts(network_id)
        if stake is None or stake.status != "pending" or stopped(self._store, realm):
            return
        network = self._store.catalogue(realm).networks[slug]
        attempts = StakeAttempts(self._context_of(network), self._node_of(network), self._signer, stake.id)
        ready = self._ready(attempts, stake)
        if ready is not None:
            self._signing.send(attempts, ready)

    def _ready(self, attempts: StakeAttempts, stake: Stake) -> Stake | None:
        """With signed bytes that can be sent; None where there are none to send now."""
        if stake.newest is None:
            return self._signing.first(attempts, stake)
        return self._signing.again(attempts, stake) if stake.renew or stake.unsigned is None else stake
