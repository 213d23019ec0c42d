"""An operator's decision to give up a transaction of ours (money rule 13).

For what no sighting ends: a nonce or an input that was used in blocks which nothing noted, a payment that no block will take. The
decision is stored with who made it and why, and the poll carries it out (`given_up`). What was given up is watched on
(`given_up_watching`). What was never signed ends in another way (`unsigned`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.given_up import GivenKind, GivenUp, given_up_work
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.treasury.stakes import Stake
from chalicelib.domain.versions import version_after
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import WorkKind
from chalicelib.usecases.base.kill_switch import put_back
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.open_work import pages_of
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.ports.changes import Close, Open, Save, Still
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.given_up import LOST
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.transactions.marks import Record, traces_of
from chalicelib.usecases.withdrawals.steps import order_of, payout_parts

MOST_REASON = 500


class NotGivenUp(Exception):
    """It can not be given up. The message says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What shall be given up. `record` has its transactions, None where there is none yet; `at_end` is the state in which it is at
    its end; `owner` is the tenant of a withdrawal."""

    kind: GivenKind
    record: Record | None
    signed: bool
    at_end: str | None = None
    owner: str = ""


class GivingUp:
    """Of one network. Needs no key."""

    def __init__(self, context: NetworkContext, losses: Losses, finality: Finality, coins: CoinPayer | None = None) -> None:
        """`coins` is there on networks of coins."""
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._losses, self._finality, self._coins = losses, finality, coins

    def give_up(self, id: str, by: str, reason: str) -> GivenUp:
        """Store the decision; the poll carries it out. Raises NotGivenUp, Unavailable, Conflict."""
        demand_reason(reason)
        return until_settled(lambda: self._decide(id, by, reason))

    def _decide(self, id: str, by: str, reason: str) -> GivenUp:
        before = demand_new(self._store, id)
        wanted = located(self._store, self._network, id)
        if wanted is None:
            raise NotGivenUp(f"{id} is not open on {self._network.id}")
        record, scanned = self._demand_open(id, wanted), self._demand_scanned()
        ours = traces_of(self._network, self._rules, record)
        met = self._losses.mined(ours, scanned)
        if met is not None:
            raise NotGivenUp(f"{id} is in the chain: {met.txid} was met in block {met.number}")
        if not self._finality.untold(ours.txids):
            raise NotGivenUp(f"a node tells that {id} is in a block, or a node that has a vote does not answer")
        self._demand_gone(id, record)
        decision = GivenUp(
            id, self._network.id, wanted.kind, wanted.owner, by, reason, self._clock.now_ms(), scanned.height, ours.txids
        )
        if before is not None:
            decision = replace(decision, version=version_after(before))
        past = [Close(given_up_work(before))] if before is not None and before.state == "open" else []
        self._store.commit([Save(decision), *past, Open(given_up_work(decision)), Still(record)])
        return decision

    def _demand_open(self, id: str, wanted: Wanted) -> Record:
        if wanted.at_end is not None:
            raise NotGivenUp(f"{id} is at its end: it is {wanted.at_end}")
        if isinstance(wanted.record, PaymentOrder) and wanted.record.bundle is not None:
            how = "with all its payments" if wanted.signed else f"--without {id}"
            raise NotGivenUp(f"{id} is paid by {wanted.record.bundle}: give that up, {how}")
        if wanted.record is None or not wanted.signed:
            raise NotGivenUp(f"nothing is signed for {id}: it can not reach the chain, and needs no giving up")
        if isinstance(wanted.record, Stake) and self._network.simulated:
            raise NotGivenUp("simulated stakes are never lost")
        return wanted.record

    def _demand_gone(self, id: str, record: Record) -> None:
        """Of coins: one that all attempts spend is spent or gone. Else the next transaction of the same coins may be this very one,
        by its bytes and its id."""
        if self._coins is None or not isinstance(record, Bundle | CoinMove):
            return
        needed = record.outpoints if isinstance(record, CoinMove) else [coin.outpoint for coin in record.signed[-1].inputs]
        if None not in self._coins.unspent(needed, mempool=False):
            raise NotGivenUp(f"every coin that {id} spends is unspent: it can be mined, and is sent again until it is")

    def _demand_scanned(self) -> Scanned:
        """A network that is halted, or far behind, may have it in a block that was not looked at."""
        if put_back(self._store, self._network.realm) is not None:
            raise NotGivenUp("the tables were put back, and after-restore is not done")
        scanned = self._finality.scanned()
        if scanned.unsure:
            raise NotGivenUp(f"{self._network.id} is halted, or follows a reorganisation: that comes first")
        if scanned.tip - scanned.height > self._network.confirmations:
            raise NotGivenUp(f"{self._network.id} is scanned to block {scanned.height} of {scanned.tip}: wait for the rest")
        return scanned


def network_of(store: Store, networks: Iterable[Network], id: str) -> Network:
    """The one of `networks` where `id` is to be given up. Raises NotGivenUp where it is unknown or at its end, Unavailable."""
    demand_new(store, id)
    for network in networks:
        if located(store, network, id) is not None:
            return network
    # Whose a withdrawal is that has no open work, only the records say; an operator waits for that.
    for withdrawal in store.every(Withdrawal) if id.startswith("wd_") else ():
        if withdrawal.id == id:
            raise NotGivenUp(f"{id} can not be given up: it is {withdrawal.status}")
    raise NotGivenUp(f"there is no withdrawal, move, stake, bundle or coin move {id}")


def located(store: Store, network: Network, id: str) -> Wanted | None:
    """The open withdrawal, or the move, stake, bundle or coin move of that id on a network. Raises Unavailable."""
    if id.startswith("wd_"):
        return _withdrawal(store, network, id)
    move = store.get(Move, network=network.id, id=id)
    if move is not None:
        return Wanted("move", move, move.state == "signed", move.state if move.at_rest else None)
    stake = store.get(Stake, network=network.id, id=id)
    if stake is not None:
        return Wanted("stake", stake, stake.was_signed, None if stake.status == "pending" else stake.status)
    bundle = store.get(Bundle, id=id)
    if bundle is not None and bundle.network == network.id:
        return Wanted("bundle", bundle, bool(bundle.signed), bundle.state if bundle.state in ("settled", "dead") else None)
    coins = store.get(CoinMove, network=network.id, id=id)
    if coins is not None:
        ended = coins.state if coins.state in ("settled", "dead", "dropped") else None
        return Wanted("coin_move", coins, bool(coins.signed), ended)
    return None


def _withdrawal(store: Store, network: Network, id: str) -> Wanted | None:
    lanes: tuple[WorkKind, ...] = ("sent", "payout")
    for kind in lanes:
        for works in pages_of(store, kind, network.id):
            for work in works:
                tenant, found = payout_parts(work)
                if found == id:
                    order = store.get(PaymentOrder, id=order_of(tenant, id))
                    return Wanted("payout", order, kind == "sent" and order is not None and order.state == "signed", None, tenant)
    return None


def demand_reason(reason: str) -> None:
    """Raises NotGivenUp for one that is empty or too long."""
    if not 0 < len(reason) <= MOST_REASON:
        raise NotGivenUp(f"the reason has to have 1 to {MOST_REASON} characters")


def demand_new(store: Store, id: str) -> GivenUp | None:
    """The watch over what was lost once, where there is one. Raises NotGivenUp where an operator gave it up before."""
    before = store.get(GivenUp, id=id)
    if before is not None and before.by != LOST:
        raise NotGivenUp(f"{id} was given up before, by {before.by}: {before.reason}")
    return before
