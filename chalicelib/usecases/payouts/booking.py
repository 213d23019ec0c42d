"""Postings of payouts: settled once their block is deep enough, reversed when it falls out of the chain all the same.

The block is watched as deep as a reorganisation is followed. Undone, a payout is as if it had never been settled: its bytes
are sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import Receipt
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.transactions.outgoing import Attempt
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.fees import debit_of, operators_part
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.address_forms import account_at, form_of
from chalicelib.usecases.base.fiat_values import withdrawal_worth
from chalicelib.usecases.base.network_context import NetworkContext
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.payouts.sent import Sent
from chalicelib.usecases.ports.changes import Change, Close, Conflict, Open, Save
from chalicelib.usecases.transactions.accounts.losing import NONCE_USED, Losing
from chalicelib.usecases.transactions.finality import Finality, Scanned
from chalicelib.usecases.transactions.forgotten import unlike_met
from chalicelib.usecases.transactions.given_up import LOST, WHY
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.transactions.marks import traces_of
from chalicelib.usecases.transactions.watching import Watch, demand_over
from chalicelib.usecases.withdrawals.fee_budget import corrected
from chalicelib.usecases.withdrawals.steps import (
    bounced,
    catalogue_views,
    moved,
    order_id,
    payout_parts,
    purse_of,
    sent_work,
    settled_work,
    stepped,
    unspent,
)

log = logging.getLogger(__name__)


class PayoutBooking:
    """Books and unbooks the payouts of one network. Needs no key."""

    def __init__(
        self,
        context: NetworkContext,
        sent: Sent,
        finality: Finality,
        rates_of: RatesOf,
        losses: Losses,
    ) -> None:
        self._network, self._reader, self._store = context.network, context.reader, context.store
        self._rules, self._clock, self._sent, self._finality, self._rates_of = (
            context.rules,
            context.clock,
            sent,
            finality,
            rates_of,
        )
        self._losing = Losing(context, losses, sent.told_nonces)

    def ripen(self, withdrawal: Withdrawal, order: PaymentOrder, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> bool:
        """One of its transactions is in the chain, be it the newest or an earlier one: that one has paid. Settle it once its block
        is deep enough and believed; whether it is deep enough by the node's height alone. Nothing is settled by a record that
        is not what was signed. Raises Conflict, Unavailable."""
        if withdrawal.status == "broadcasting":
            withdrawal = self.confirming(withdrawal)
        confirmations = scanned.depth(receipt.block_number)
        if confirmations >= self._network.confirmations:
            if self._altered(order, attempt):
                return False
            believed = self._finality.believed(
                receipt, scanned, withdrawal.asset, withdrawal.amount, lambda told: self._paid(order, told),
                traces_of(self._network, self._rules, order),
            )  # fmt: skip
            if believed is not None:
                self._settle(withdrawal, order, attempt, believed, scanned.depth(believed.block_number))
            return False
        counted = replace(
            withdrawal,
            txid=attempt.txid,
            confirmations=confirmations,
            block_number=receipt.block_number,
            block_hash=receipt.block_hash,
        )
        if counted != withdrawal:
            self._store.commit([Save(replace(counted, version=version_after(withdrawal)))])
        return scanned.tip - receipt.block_number + 1 >= self._network.confirmations

    def lose(self, withdrawal: Withdrawal, order: PaymentOrder, scanned: Scanned) -> None:
        """Its nonce is used for good by a transaction that is not ours: its money is given back. Raises Conflict, Unavailable."""
        if self._altered(order, *self._sent.transactions(order)):
            return
        now, txids = self._clock.now_ms(), self._sent.ours(order).txids
        watch = GivenUp(withdrawal.id, self._network.id, "payout", withdrawal.tenant, LOST, NONCE_USED, now, scanned.height, txids)
        if self._losing.begin(order, order.wallet, watch, scanned):
            self._bounce(withdrawal, order, NONCE_USED, now)

    def _altered(self, order: PaymentOrder, *attempts: Attempt) -> bool:
        """Whether the record is not what was signed, with an alarm. By such a one nothing is booked: the chain may have paid it,
        and say of what the record names that it failed."""
        wrong = dict.fromkeys(name for attempt in attempts for name in self._unlike(order, attempt))
        if wrong:
            named = ", ".join(wrong)
            log.error("ALARM %s: order %s differs from what was signed in %s", self._network.id, order.id, named)
        return bool(wrong)

    def _unlike(self, order: PaymentOrder, attempt: Attempt) -> list[str]:
        forgotten = unlike_met(self._network, self._rules, self._store, order, order.wallet, attempt)
        return [*self._sent.altered(order, attempt), *forgotten]

    def give_up(self, withdrawal: Withdrawal, order: PaymentOrder) -> None:
        """Its money is given back by an operator's decision. It is watched on (`given_up_watching`). Raises as `lose`."""
        if self._altered(order, *self._sent.transactions(order)):
            return
        self._bounce(withdrawal, order, WHY, self._clock.now_ms())

    def _bounce(self, withdrawal: Withdrawal, order: PaymentOrder, why: str, now: int) -> None:
        _, changes = bounced(self._store, self._rules, self._rates_of, self._network, withdrawal, order, now, why)
        self._store.commit(changes)

    def sent_again(self, withdrawal: Withdrawal, newest: Attempt) -> Withdrawal:
        """A node took its bytes again. Raises Conflict, Unavailable."""
        if withdrawal.status == "broadcasting":
            return self.confirming(withdrawal)
        if withdrawal.block_number is None:
            return withdrawal
        # It was in a block that is gone. From now on it waits for another one.
        lost = replace(
            next_version(withdrawal), txid=newest.txid, block_number=None, block_hash=None, confirmations=0,
            updated_at=self._clock.now_ms(),
        )  # fmt: skip
        self._store.commit([Save(lost)])
        return lost

    def confirming(self, before: Withdrawal) -> Withdrawal:
        """Its bytes are sent. Raises Conflict, Unavailable."""
        news = News(self._clock.now_ms())
        _, views = catalogue_views(self._store, before)
        after = stepped(news, views, before, replace(before, status="confirming", updated_at=news.at))
        self._store.commit([Save(after), *news.emit()])
        return after

    def _settle(self, before: Withdrawal, order: PaymentOrder, attempt: Attempt, receipt: Receipt, confirmations: int) -> None:
        news = News(self._clock.now_ms())
        catalogue, views = catalogue_views(self._store, before, self._rates_of, news.at)
        success = self._paid(order, receipt)
        state: Literal["settled", "bounced"] = "settled" if success else "bounced"
        fee = self._sent.fee(order, attempt, receipt)
        debited = debit_of(before, fee, success)
        counted = corrected(self._store, self._rates_of, before if success else replace(before, uncharged=0), fee, news.at)
        if counted.changes and not success and order.contract is not None:
            # Two coins of the wallet are moved by that, and its transaction has no room for more: by itself, and once.
            self._store.commit([Save(replace(counted.withdrawal, version=version_after(before))), *counted.changes])
            raise Conflict(None)
        entry = self._entry(catalogue, before, order, state, fee, debited, news.at)
        after = replace(
            counted.withdrawal,
            status="confirmed" if success else "failed",
            failure=None if success else "the transaction failed on the chain",
            txid=attempt.txid,
            fee=fee,
            debited=debited,
            confirmations=confirmations,
            block_number=receipt.block_number,
            block_hash=receipt.block_hash,
            confirmed_at=news.at if success else None,
            worth=withdrawal_worth(before, catalogue, self._rates_of, news.at) if success else before.worth,
            updated_at=news.at,
        )
        after = stepped(news, views, before, after)
        done = replace(next_version(order), state=state, renew=False)
        works = (Close(sent_work(before)), Open(settled_work(before, receipt.block_number, receipt.block_hash)))
        money = moved(self._store, news, views, self._balance(before), entry)
        self._store.commit([Save(after), Save(done), *works, *money, *counted.changes, *news.emit()])

    def _entry(
        self,
        catalogue: Catalogue,
        w: Withdrawal,
        order: PaymentOrder,
        state: Literal["settled", "bounced"],
        fee: int,
        debited: int,
        at: int,
    ) -> JournalEntry:
        place = account_at(self._rules, self._network, order.wallet)
        post = ledger.withdrawal_settled if state == "settled" else ledger.withdrawal_bounced
        paid = Amount(catalogue.native(self._network.slug).asset, fee)
        amount, realm = Amount(w.asset, w.amount), self._network.realm
        payment = ledger.SignedPayment(w.id, order.id, order.round, w.tenant, realm, place, amount)
        return post(payment, at, paid, w.charge, debited)

    def _paid(self, order: PaymentOrder, receipt: Receipt) -> bool:
        """Whether it succeeded, and a token's own log says that it moved: success alone does not (money rule 8)."""
        if not receipt.success or order.contract is None:
            return receipt.success
        wanted = tuple(form_of(self._rules, self._network, text) for text in (order.contract, order.wallet, order.recipient))
        return wanted in receipt.moved

    def _balance(self, w: Withdrawal) -> Balance:
        return self._store.get(Balance, tenant=w.tenant, asset=w.asset) or Balance(w.tenant, w.asset)

    def watch_settled(self, more: Callable[[], bool]) -> None:
        """Undo settled payments whose block fell out of the chain.

        Otherwise the bytes would be forgotten by the nodes, and every later payment of the wallet would wait for their nonce.
        Stops when `more` says that the time is over. Raises Unavailable, Failures.
        """
        self._watched().undo_fallen(more)

    def let_rest(self, more: Callable[[], bool]) -> None:
        """End the watch over settled payments that no reorganisation reaches. Stops and raises as above."""
        self._watched().let_rest(more)

    def _watched(self) -> Watch:
        return Watch(
            "settled", "settled payments", self._network, self._reader, self._store, self._finality, self._unsettle, self._rest
        )

    def _rest(self, work: Work) -> None:
        """No reorganisation reaches it any more. What failed on the chain counts towards no limit from now on, unless it burnt a
        fee at the operator's cost: that it may not do all day."""
        tenant, withdrawal_id = payout_parts(work)
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        changes: list[Change] = [Close(work)]
        if withdrawal is not None and withdrawal.status == "failed" and not operators_part(withdrawal, withdrawal.fee):
            changes += unspent(purse_of(self._store, withdrawal), withdrawal, self._clock.now_ms())
        self._store.commit(changes)

    def _unsettle(self, work: Work) -> None:
        """The block that settled a payment is gone: as if it had never been settled, and its bytes are sent again."""
        tenant, withdrawal_id = payout_parts(work)
        before = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        order = None if before is None else self._store.get(PaymentOrder, id=order_id(before))
        if before is None or order is None or order.state not in ("settled", "bounced"):
            demand_over(self._store, work)
            return
        if settled_work(before, before.block_number or 0, before.block_hash or "") != work:
            demand_over(self._store, work)
            return
        log.warning("%s: the block that settled %s fell out of the chain", self._network.id, before.id)
        news = News(self._clock.now_ms())
        catalogue, views = catalogue_views(self._store, before, self._rates_of, news.at)
        # What was settled before debits were kept was debited by the same function, without a rate.
        debited = debit_of(before, before.fee, order.state == "settled") if before.debited is None else before.debited
        settled = self._entry(catalogue, before, order, order.state, before.fee, debited, news.at)
        entry = ledger.settlement_reversed(settled, order.id, order.round, news.at)
        newest = self._sent.transactions(order)[0]
        after = replace(
            before, status="confirming", failure=None, confirmations=0, block_number=None, block_hash=None, confirmed_at=None,
            debited=None, txid=newest.txid, fee=newest.fee or before.fee, updated_at=news.at,
        )  # fmt: skip
        after = stepped(news, views, before, after)
        again = replace(next_version(order), state="signed", round=order.round + 1)
        money = moved(self._store, news, views, self._balance(before), entry)
        self._store.commit([Save(after), Save(again), Close(work), Open(sent_work(before)), *money, *news.emit()])
