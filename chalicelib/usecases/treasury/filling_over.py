"""An operator's filler over one open payment's nonce: it ends a payment that no sighting ends (money rule 13).

It is a filler (`domain/treasury/moves.py`): one unit from the wallet to itself, at a fee that nodes take in place of every attempt
of the payment. The payment stays open and is not replaced beside it. One nonce is used once, so one of two things follows:

* the filler is mined: it is met with the payment's nonce, and deeper than reorganisations the payment is lost as to any other
  transaction (`losses`), and given back;
* the payment is mined: it settles as usual, and the filler fails as what lost its nonce.

Nothing is given back here, and nothing about the payment is decided.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.domain.treasury.moves import Move, Origin, move_command, move_work
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.accounts import ChainPayer, Payment
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.transactions.finality import Finality
from chalicelib.usecases.transactions.give_up import MOST_REASON, located
from chalicelib.usecases.transactions.losses import Losses, has_nonces
from chalicelib.usecases.transactions.marks import traces_of
from chalicelib.usecases.transactions.rivals import filler_over, rival_bytes
from chalicelib.usecases.wallets.signers import signing_wallet

ALLOWED = "named is a withdrawal (wd_...) that is signed, in no block and open"


class NotFilled(Exception):
    """Nothing is put over it. The message says why."""


class FillingOver:
    """Of one network whose transactions have nonces. Needs no key."""

    def __init__(self, context: NetworkContext, payer: ChainPayer, losses: Losses, finality: Finality) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._payer, self._losses, self._finality = payer, losses, finality

    def plan(self, id: str, by: str, reason: str) -> Move:
        """Plan the filler over the withdrawal `id`, by whom and why. Raises NotFilled, Unavailable, Conflict."""
        if not 0 < len(reason) <= MOST_REASON:
            raise NotFilled(f"--reason has to have 1 to {MOST_REASON} characters")
        if not has_nonces(self._network):
            raise NotFilled(f"transactions on {self._network.id} have no nonces")
        return until_settled(lambda: self._plan(id, f"{by} decided: {reason}"))

    def _plan(self, id: str, decided: str) -> Move:
        order = self._order(id)
        self._demand_unmined(id, order)
        before = filler_over(self._store, order)
        if before is not None and before.state != "dropped":
            raise NotFilled(f"{before.id} has its nonce already, and is {before.state}")
        try:
            over = rival_bytes(self._store, self._payer, order.id)
            self._payer.estimate(Payment(order.wallet, order.wallet, None, 1, order.nonce, over=over))
        except Refused as refused:
            raise NotFilled(f"nothing can be put over {id} now: {refused}") from refused
        news = News(self._clock.now_ms())
        filler = self._filler(order, before, decided, news.at)
        news.command(move_command(filler))
        # A replacement that is being signed now is not stored any more: what was asked of the order is another version.
        held = replace(next_version(order), renew=False)
        self._store.commit([Save(held), Save(filler), Open(move_work(filler)), *news.emit()])
        return filler

    def _order(self, id: str) -> PaymentOrder:
        wanted = located(self._store, self._network, id) if id.startswith("wd_") else None
        if wanted is None:
            raise NotFilled(f"{id} is not open on {self._network.id}: {ALLOWED}")
        if not wanted.signed or not isinstance(wanted.record, PaymentOrder):
            raise NotFilled(f"nothing is signed for {id}: {ALLOWED}")
        order = wanted.record
        wallet = signing_wallet(self._store, self._network.id, order.wallet)
        if wallet is None or order.network != self._network.id:
            raise NotFilled(f"{id} leaves {order.wallet}, of which nothing here has the key")
        return order

    def _demand_unmined(self, id: str, order: PaymentOrder) -> None:
        if put_back(self._store, self._network.realm) is not None:
            raise NotFilled("the tables were put back, and after-restore is not done")
        scanned = self._finality.scanned()
        if scanned.unsure:
            raise NotFilled(f"{self._network.id} is halted, or follows a reorganisation: that comes first")
        seen = self._losses.mined(traces_of(self._network, self._rules, order), scanned)
        if seen is not None:
            raise NotFilled(f"{id} is in the chain: {seen.txid} was met in block {seen.number}")
        if self._payer.next_nonce(order.wallet) > order.nonce:
            raise NotFilled(f"{id}: a block has used its nonce {order.nonce}, and the scan tells by what: wait for it")

    def _filler(self, order: PaymentOrder, before: Move | None, decided: str, at: int) -> Move:
        """`before` was dropped: nothing was ever signed for it, and it begins anew."""
        native = self._store.catalogue(self._network.realm).native(self._network.slug).asset
        filler = Move.fill(Origin(order.network, order.id, 1, at), native, order.wallet, None, order.nonce)
        return replace(
            filler,
            created_at=at if before is None else before.created_at,
            over=order.id,
            decided=decided,
            version=version_after(before),
        )
