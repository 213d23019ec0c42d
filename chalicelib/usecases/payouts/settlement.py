"""Settlement of sent payments: the chain's receipts alone decide (money rule 8)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.chain import FeeQuote, Receipt
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.transactions.given_up import GivenUp
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.withdrawals.fees import debit_of, operators_part
from chalicelib.domain.withdrawals.withdrawals import Attempt, NonceCounter, PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.base.kill_switch import put_back, stopped
from chalicelib.usecases.base.open_work import is_open, pages_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import Each, until_settled
from chalicelib.usecases.payouts.following import PaymentsOut
from chalicelib.usecases.payouts.sent import Sent
from chalicelib.usecases.ports.accounts import FeeEstimate
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Conflict, Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.ports.readers import ChainReader
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.transactions.chain_cache import Answers
from chalicelib.usecases.transactions.finality import Scanned, Verdicts
from chalicelib.usecases.transactions.given_up import LOST, WHY, GivenUps, watched_on
from chalicelib.usecases.transactions.losses import Losses
from chalicelib.usecases.transactions.marks import traces_of
from chalicelib.usecases.transactions.mined_attempts import mined_attempt
from chalicelib.usecases.transactions.rivals import by_whom, outbid
from chalicelib.usecases.transactions.watching import Watch
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

QUOTE_SECONDS = 60


class Settlement:
    """Follows the open payments of one network. Needs no key: it only sends bytes that are already signed.

    A payment may have several transactions, each of which replaced the one before (`Sent`); the chain takes at most one of them.
    """

    def __init__(
        self,
        network: Network,
        reader: ChainReader,
        sent: Sent,
        store: Store,
        rules: AddressRules,
        clock: Clock,
        verdicts: Verdicts,
        rates_of: RatesOf,
        answers: Answers | None = None,
    ) -> None:
        """`answers` are shared with whoever follows the same transactions in this run."""
        self._answers = answers or Answers(reader)
        self._rates_of = rates_of
        self._network, self._reader, self._sent, self._verdicts = network, reader, sent, verdicts
        self.waits_for_scan = False
        """Whether something was met that is deep enough by the node's height and not by what was scanned yet."""
        self._store, self._rules, self._clock = store, rules, clock
        self._losses = Losses(network, reader, store)
        self._given_ups = GivenUps(network, store, self._losses, verdicts)

    def follow(self, more: Callable[[], bool]) -> int:
        """Look at the payments that are out and due, and at some of the others: send again what the chain lost, settle what is
        final; how many (`transactions.sorting`, `transactions.asking`).

        Stops when `more` says that the time is over. Raises Unavailable, Failures.
        """
        self.waits_for_scan = False
        out: PaymentsOut | None = None
        with Each(f"{self._network.id}: payments") as each:
            for works in pages_of(self._store, "sent", self._network.id):
                if out is None:
                    scanned = self._verdicts.scanned()
                    out = PaymentsOut(self._network, self._store, self._clock, self._sent, self._given_ups, scanned)
                out.add(works)
            if out is None:
                return 0
            self.waits_for_scan = out.ripens
            return out.take(more, lambda work: each.take(work.id, partial(until_settled, partial(self._look, work, scanned))), each)

    def _look(self, work: Work, scanned: Scanned) -> None:
        tenant, withdrawal_id = payout_parts(work)
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        if withdrawal is None or withdrawal.status not in ("broadcasting", "confirming"):
            return
        order = self._store.get(PaymentOrder, id=order_id(withdrawal))
        attempts = () if order is None else self._sent.transactions(order)
        if order is None or not attempts:
            raise LookupError(f"{withdrawal.id} is {withdrawal.status} without signed bytes")
        mined = mined_attempt(self._network, self._answers, order.id, [attempt.txid for attempt in attempts], scanned)
        if mined.receipt is not None:
            self._count(withdrawal, order, attempts[mined.place], mined.receipt, scanned)
            return
        ours = self._sent.ours(order)
        if mined.somewhere or self._losses.met(order.id, ours, scanned):
            return
        if put_back(self._store, self._network.realm) is not None:
            return  # what it was replaced by may be unknown here: nothing is lost before that is looked for
        if self._sent.lost(order, scanned) and self._denied(withdrawal, attempts):
            self._lose(withdrawal, order, scanned)
        elif self._given_ups.standing(withdrawal.id, ours, scanned) is not None:
            self._give_up(withdrawal, order)
        elif not stopped(self._store, self._network.realm):
            self._renew(self._send_again(withdrawal, order, attempts), order, scanned)

    def _denied(self, withdrawal: Withdrawal, attempts: tuple[Attempt, ...]) -> bool:
        return self._verdicts.denied([attempt.txid for attempt in attempts], withdrawal.asset, withdrawal.amount)

    def _count(self, withdrawal: Withdrawal, order: PaymentOrder, attempt: Attempt, receipt: Receipt, scanned: Scanned) -> None:
        """One of its transactions is in the chain, be it the newest or an earlier one: that one has paid."""
        if withdrawal.status == "broadcasting":
            withdrawal = self._confirming(withdrawal)
        confirmations = scanned.depth(receipt.block_number)
        if confirmations >= self._network.confirmations:
            believed = self._verdicts.believed(
                receipt, scanned, withdrawal.asset, withdrawal.amount, lambda told: self._paid(order, told),
                traces_of(self._network, self._rules, order),
            )  # fmt: skip
            if believed is not None:
                self._settle(withdrawal, order, attempt, believed, scanned.depth(believed.block_number))
            return
        self.waits_for_scan |= scanned.tip - receipt.block_number + 1 >= self._network.confirmations
        counted = replace(
            withdrawal,
            txid=attempt.txid,
            confirmations=confirmations,
            block_number=receipt.block_number,
            block_hash=receipt.block_hash,
        )
        if counted != withdrawal:
            self._store.commit([Save(replace(counted, version=version_after(withdrawal)))])

    def _send_again(self, withdrawal: Withdrawal, order: PaymentOrder, attempts: tuple[Attempt, ...]) -> Withdrawal:
        """The same bytes, as often as it takes: a node that forgot them hears of them again (money rule 5).

        The newest first; where the node refuses those, the earlier ones are as good: any of them pays.
        """
        for attempt in attempts:
            try:
                self._sent.broadcast(attempt.raw)
            except Refused as refused:
                log.warning("%s: %s is in no block and the node refuses it: %s", self._network.id, attempt.txid, refused)
                continue
            break
        else:
            return withdrawal
        if withdrawal.status == "broadcasting":
            return self._confirming(withdrawal)
        if withdrawal.block_number is not None:
            # It was in a block that is gone. From now on it waits for another one.
            lost = replace(
                next_version(withdrawal), txid=attempts[0].txid, block_number=None, block_hash=None, confirmations=0,
                updated_at=self._clock.now_ms(),
            )  # fmt: skip
            self._store.commit([Save(lost)])
            return lost
        return withdrawal

    def _renew(self, withdrawal: Withdrawal, order: PaymentOrder, scanned: Scanned) -> None:
        """Ask for a replacement where it is due. The function that signs makes it."""
        if outbid(self._store, order):
            return
        news = News(self._clock.now_ms())
        changes = [*self._sent.renewal(withdrawal, order, news, scanned), *news.emit()]
        if changes:
            self._store.commit(changes)

    def _lose(self, withdrawal: Withdrawal, order: PaymentOrder, scanned: Scanned) -> None:
        """Its nonce is used for good by a transaction that is not ours: it can never be mined, and its money is given back.

        Nonces that were not allotted and are used as well are passed over first, in a transaction of its own: whatever is built
        from then on leaves no hole. Who dies between the two begins anew. Those that a reorganisation may give back are waited for.
        It is watched on.
        """
        counter = self._store.get(NonceCounter, network=order.network, wallet=order.wallet)
        if counter is not None:
            used = self._losses.used(self._rules.storage_form(self._network.slug, order.wallet), counter.next, scanned)
            if used is None:
                return
            if used > counter.next:
                self._store.commit([Save(counter.caught_up(used))])
        log.error(
            "ALARM %s: %s can never be mined, its nonce %d was used by %s",
            *(self._network.id, order.id, order.nonce, by_whom(self._store, self._reader, self._network, order)),
        )
        now, why = self._clock.now_ms(), "another transaction used the nonce of its own: it can not be mined any more"
        txids = self._sent.ours(order).txids
        watch = GivenUp(withdrawal.id, self._network.id, "payout", withdrawal.tenant, LOST, why, now, scanned.height, txids)
        if watching := watched_on(self._store, watch):
            self._store.commit(watching)  # by itself: what gives the money back may fill a transaction
        _, changes = bounced(self._store, self._rules, self._rates_of, self._network, withdrawal, order, now, why)
        self._store.commit(changes)

    def _give_up(self, withdrawal: Withdrawal, order: PaymentOrder) -> None:
        """Its money is given back by an operator's decision. It is watched on: see `given_up_watching`."""
        now = self._clock.now_ms()
        _, changes = bounced(self._store, self._rules, self._rates_of, self._network, withdrawal, order, now, WHY)
        self._store.commit(changes)

    def _confirming(self, before: Withdrawal) -> Withdrawal:
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
            updated_at=news.at,
        )
        after = stepped(news, views, before, after)
        done = replace(next_version(order), state=state, renew=False)
        works = (Close(sent_work(before)), Open(settled_work(before, receipt.block_number, receipt.block_hash)))
        money = moved(news, views, self._balance(before), entry)
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
        place = ledger.wallet(self._network.id, self._rules.storage_form(self._network.slug, order.wallet))
        post = ledger.withdrawal_settled if state == "settled" else ledger.withdrawal_bounced
        paid = Amount(catalogue.native(self._network.slug).asset, fee)
        amount, realm = Amount(w.asset, w.amount), self._network.realm
        payment = ledger.SignedPayment(w.id, order.id, order.round, w.tenant, realm, place, amount)
        return post(payment, at, paid, w.charge, debited)

    def _paid(self, order: PaymentOrder, receipt: Receipt) -> bool:
        """Whether it succeeded, and a token's own log says that it moved: success alone does not (money rule 8)."""
        if not receipt.success or order.contract is None:
            return receipt.success
        wanted = tuple(
            self._rules.storage_form(self._network.slug, text) for text in (order.contract, order.wallet, order.recipient)
        )
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
            "settled", "settled payments", self._network, self._reader, self._store, self._verdicts, self._unsettle, self._rest
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
            if not is_open(self._store, work):
                return  # another poll has done it between two of these reads
            raise LookupError(f"{work.id} is watched as settled and is not")
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
        money = moved(news, views, self._balance(before), entry)
        self._store.commit([Save(after), Save(again), Close(work), Open(sent_work(before)), *money, *news.emit()])

    def quote_fees(self, senders: Sequence[str]) -> None:
        """Store what a plain payment of each coin costs now, and collecting one deposit of it, once a minute: the API shows the one
        and charges both without asking a node."""
        now = self._clock.now_ms()
        known = self._store.get(FeeQuote, network=self._network.id)
        if known is not None and now - known.at < QUOTE_SECONDS * 1000:
            return
        found: dict[str, FeeEstimate] = {}
        catalogue = self._store.catalogue(self._network.realm)
        native = catalogue.native(self._network.slug)
        for coin in catalogue.coins_of(self._network.slug):
            if coin.status != "ACTIVE":
                continue
            for sender in senders:
                try:
                    found[coin.slug] = self._sent.quote(sender, coin)
                    break
                except Refused as refused:
                    log.info("%s: no fee estimate for %s of %s: %s", self._network.id, coin.slug, sender, refused)
        fees = {slug: estimate.fee for slug, estimate in found.items()}
        collecting = {slug: estimate.sweep for slug, estimate in found.items() if slug == native.slug}
        if native.slug in fees:  # the address of a token needs the sweep's fee first
            collecting |= {slug: fees[native.slug] + found[slug].sweep for slug in found if slug != native.slug}
        version = version_after(known)
        quote = FeeQuote(self._network.id, fees, now, collecting, version)
        try:
            self._store.commit([Save(quote)])
        except Conflict:
            log.info("%s: another poll stored its fee estimate first", self._network.id)
