"""Takes an unsigned bundle apart, by an operator's decision: one payment that may not be signed stops all the others in it.

1. The command stores the decision; in the same transaction the bundle is dead, without bytes, and its coins are free. From then on
   no worker signs it.
2. The poll lets its payments leave, each in a transaction of its own: they wait for the next bundle. The one that the decision
   names fails, and its money is given back. An order that is not what its withdrawal says goes on naming the bundle, so that no
   other one takes it, and waits for `rebuild-order`.

A crash after 1 leaves a dead bundle whose open work is the poll's; a crash within 2 leaves fewer payments in it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.ledger import JournalEntry
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.payout_line import RETRY_MS, aside_order
from chalicelib.domain.withdrawals.withdrawals import FINAL, PaymentOrder, Withdrawal
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.payouts.bundle_members import members, unlike
from chalicelib.usecases.payouts.failing import failed
from chalicelib.usecases.ports.changes import Change, Save
from chalicelib.usecases.ports.coins import CoinPayer
from chalicelib.usecases.transactions.first_signatures import signed_before
from chalicelib.usecases.transactions.give_up import NotGivenUp
from chalicelib.usecases.transactions.unsigned import decided, demand_unsigned, demand_unspent
from chalicelib.usecases.wallets.utxos import coins_of
from chalicelib.usecases.withdrawals.steps import moved_in_line

log = logging.getLogger(__name__)

WHY = "the operator gave it up: nothing was signed for it"
"""Shown with the withdrawal that fails."""


class BundleApart:
    """The command, on one network. Needs no key."""

    def __init__(self, context: NetworkContext, payer: CoinPayer) -> None:
        self._network, self._store, self._clock, self._payer = context.network, context.store, context.clock, payer

    def take_apart(self, id: str, by: str, reason: str, without: str = "") -> None:
        """End the unsigned bundle `id`; `without` is the withdrawal in it that fails. Raises NotGivenUp, LookupError, Conflict,
        Unavailable."""
        until_settled(lambda: self._decide(id, by, reason, without))

    def _decide(self, id: str, by: str, reason: str, without: str) -> None:
        demand_unsigned(self._store, self._network, id)
        bundle = self._unsigned(id)
        if without and without not in [payout.withdrawal for payout in bundle.payouts]:
            raise NotGivenUp(f"{id} does not pay {without}")
        held = coins_of(self._store, self._network, bundle.wallet)
        reserved = [coin.outpoint for coin in held.reserved(id)]
        if bundle.state == "built" and not reserved:
            raise NotGivenUp(f"no coins of {bundle.wallet} are reserved for {id}: its record was altered, restore it")
        demand_unspent(self._payer, id, reserved)
        now = self._clock.now_ms()
        dead = replace(bundle, state="dead", newest=None, renew=False).next(now)
        free = replace(held.released(id), gathering=None if held.gathering == id else held.gathering).next()
        self._store.commit([Save(dead), Save(free), *decided(self._network, id, "bundle", by, reason, now, without)])

    def _unsigned(self, id: str) -> Bundle:
        bundle = self._store.get(Bundle, id=id)
        if bundle is None or bundle.network != self._network.id:
            raise NotGivenUp(f"there is no bundle {id} on {self._network.id}")
        newest = bundle.newest
        if bundle.state not in ("gathering", "built") or bundle.earlier or (newest is not None and (newest.raw or newest.txid)):
            raise NotGivenUp(f"{id} is {bundle.state}, or has something that was signed")
        each = members(self._store, bundle)
        entries = [(JournalEntry, {"id": ledger.signature_id(order.id)}) for _, order in each]
        posted = self._store.get_many(entries) if entries else []
        for (withdrawal, order), entry in zip(each, posted, strict=True):
            if withdrawal.status != "processing" or not unsigned(order) or entry is not None:
                raise NotGivenUp(f"{withdrawal.id} in {id} is {withdrawal.status}, and its order {order.state}: it may be signed")
        return bundle


class Leaving:
    """The poll's part."""

    def __init__(self, context: NetworkContext, rates_of: RatesOf) -> None:
        self._network, self._store, self._rules, self._clock = context.network, context.store, context.rules, context.clock
        self._rates_of = rates_of

    def let_go(self, bundle: Bundle) -> None:
        """Let the payments of a dead bundle leave that was never signed. Raises LookupError, Conflict, Unavailable."""
        decision = self._store.get(GivenUp, id=bundle.id)
        if decision is None or signed_before(self._store, bundle.id):
            log.error("ALARM %s: bundle %s differs from what was signed in %s", self._network.id, bundle.id, "its attempts")
            raise LookupError(f"{bundle.id} is dead, and its attempts are gone")
        if bundle.payouts:
            log.error("ALARM %s: %s is given up, as %s decided: %s", self._network.id, bundle.id, decision.by, decision.reason)
        for withdrawal, order in members(self._store, bundle):
            fails = withdrawal.id == decision.without and unsigned(order)
            bundle = self._left(bundle, self._failed(withdrawal) if fails else withdrawal, order)

    def _failed(self, before: Withdrawal) -> Withdrawal:
        """By itself: what gives money back may fill a transaction. Once, whoever dies after it."""
        if before.status in FINAL:
            return before
        after, changes = failed(self._store, self._rates_of, before, WHY, self._clock.now_ms())
        self._store.commit(changes)
        return after

    def _left(self, bundle: Bundle, withdrawal: Withdrawal, order: PaymentOrder) -> Bundle:
        now = self._clock.now_ms()
        place = next(n for n, payout in enumerate(bundle.payouts) if payout.withdrawal == withdrawal.id)
        payout, kept = bundle.payouts[place], (*bundle.payouts[:place], *bundle.payouts[place + 1 :])
        after = replace(bundle, payouts=kept).next(now)
        changes: Sequence[Change] = []
        if withdrawal.status in FINAL:
            changes = [Save(replace(next_version(order), bundle=None))]
        elif not unsigned(order) or unlike(self._store, self._rules, self._network, bundle, payout, withdrawal, order):
            log.error(
                "ALARM %s: %s leaves %s, its order was altered: see rebuild-order", self._network.id, withdrawal.id, bundle.id
            )
        else:
            due = aside_order(withdrawal, now + RETRY_MS)
            waits = replace(next_version(withdrawal), pending_reason="liquidity", updated_at=now, line=due)
            changes = [Save(replace(next_version(order), bundle=None)), *moved_in_line(withdrawal, waits)]
        self._store.commit([Save(after), *changes])
        return after


def unsigned(order: PaymentOrder) -> bool:
    """Whether the record of an order has nothing that was signed."""
    return order.state == "built" and not order.raw and not order.txids
