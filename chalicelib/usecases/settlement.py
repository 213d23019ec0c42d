"""What became of the payments that were sent: the chain's receipts alone decide (money rule 8)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from chalicelib.domain import ledger
from chalicelib.domain.catalogue import Catalogue, Network
from chalicelib.domain.chain import FeeQuote, Receipt
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.withdrawals import PaymentOrder, Withdrawal
from chalicelib.domain.work import Work
from chalicelib.usecases.changes import Change, Close, Conflict, Open, Save
from chalicelib.usecases.outbox import News
from chalicelib.usecases.payouts import order_id
from chalicelib.usecases.ports import AddressRules, ChainPayer, ChainReader, Clock, Payment, Refused, Store
from chalicelib.usecases.sweeping import pages_of
from chalicelib.usecases.trying import until_settled
from chalicelib.usecases.withdrawal_steps import (
    catalogue_views,
    moved,
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
    """Follows the open payments of one network. Needs no key: it only sends bytes that are already signed."""

    def __init__(
        self, network: Network, reader: ChainReader, payer: ChainPayer, store: Store, rules: AddressRules, clock: Clock
    ) -> None:
        self._network, self._reader, self._payer = network, reader, payer
        self._store, self._rules, self._clock = store, rules, clock

    def follow(self, more: Callable[[], bool]) -> int:
        """Look at every payment that is out, oldest first: send again what the chain lost, settle what is final; how many.

        Stops when `more` says that the time is over. Raises Unavailable.
        """
        looked, tip = 0, None
        for works in pages_of(self._store, "sent", self._network.id):
            tip = self._reader.tip() if tip is None else tip
            wanted = [(Withdrawal, dict(zip(("tenant", "id"), payout_parts(work), strict=True))) for work in works]
            for withdrawal in self._store.get_many(wanted):
                if not more():
                    return looked
                try:
                    until_settled(partial(self._look, withdrawal, tip))
                except Conflict:
                    log.info("%s is being worked on elsewhere; looking again at the next poll", withdrawal.id)
                looked += 1
        return looked

    def _look(self, seen: Withdrawal, tip: int) -> None:
        withdrawal = self._store.get(Withdrawal, tenant=seen.tenant, id=seen.id)
        order = self._store.get(PaymentOrder, id=order_id(seen))
        if withdrawal is None or withdrawal.status not in ("broadcasting", "confirming"):
            return
        if order is None or order.raw is None or order.txid is None:
            raise LookupError(f"{seen.id} is {withdrawal.status} without signed bytes")
        receipt = self._reader.receipt(order.txid)
        if receipt is None:
            self._send_again(withdrawal, order)
            return
        if self._reader.block_hash(receipt.block_number) != receipt.block_hash:
            return
        if withdrawal.status == "broadcasting":
            withdrawal = self._confirming(withdrawal)
        confirmations = max(0, tip - receipt.block_number + 1)
        if confirmations >= self._network.confirmations:
            self._settle(withdrawal, order, receipt, confirmations)
        elif (confirmations, receipt.block_hash) != (withdrawal.confirmations, withdrawal.block_hash):
            counted = replace(
                withdrawal,
                confirmations=confirmations,
                block_number=receipt.block_number,
                block_hash=receipt.block_hash,
                version=withdrawal.version + 1,
            )
            self._store.commit([Save(counted)])

    def _send_again(self, withdrawal: Withdrawal, order: PaymentOrder) -> None:
        """The same bytes, as often as it takes: a node that forgot them hears of them again (money rule 5)."""
        if order.raw is None:
            return
        try:
            self._payer.broadcast(order.raw)
        except Refused as refused:
            log.warning("%s: %s is in no block and the node refuses it: %s", self._network.id, order.id, refused)
            return
        if withdrawal.status == "broadcasting":
            self._confirming(withdrawal)
        elif withdrawal.block_number is not None:
            # It was in a block that is gone.
            lost = replace(withdrawal, block_number=None, block_hash=None, confirmations=0, version=withdrawal.version + 1)
            self._store.commit([Save(lost)])

    def _confirming(self, before: Withdrawal) -> Withdrawal:
        news = News(self._clock.now_ms())
        _, views = catalogue_views(self._store, before)
        after = stepped(news, views, before, replace(before, status="confirming", updated_at=news.at))
        self._store.commit([Save(after), *news.emit()])
        return after

    def _settle(self, before: Withdrawal, order: PaymentOrder, receipt: Receipt, confirmations: int) -> None:
        news = News(self._clock.now_ms())
        catalogue, views = catalogue_views(self._store, before)
        success = receipt.success and self._moved(order, receipt)
        state: Literal["settled", "bounced"] = "settled" if success else "bounced"
        fee = order.fee if receipt.fee is None else receipt.fee
        entry = self._entry(catalogue, before, order, state, fee, news.at)
        after = replace(
            before,
            status="confirmed" if success else "failed",
            failure=None if success else "the transaction failed on the chain",
            fee=fee,
            confirmations=confirmations,
            block_number=receipt.block_number,
            block_hash=receipt.block_hash,
            confirmed_at=news.at if success else None,
            updated_at=news.at,
        )
        after = stepped(news, views, before, after)
        done = replace(order, state=state, version=order.version + 1)
        works = (Close(sent_work(before)), Open(settled_work(before, receipt.block_number, receipt.block_hash)))
        money = moved(news, views, self._balance(before), entry)
        self._store.commit([Save(after), Save(done), *works, *money, *news.emit()])

    def _entry(
        self, catalogue: Catalogue, w: Withdrawal, order: PaymentOrder, state: Literal["settled", "bounced"], fee: int, at: int
    ) -> JournalEntry:
        place = ledger.wallet(self._network.id, self._rules.storage_form(self._network.slug, order.wallet))
        post = ledger.withdrawal_settled if state == "settled" else ledger.withdrawal_bounced
        paid = Amount(catalogue.native(self._network.slug).asset, fee)
        return post(
            w.id, order.id, order.round, at, w.tenant, self._network.realm, place, Amount(w.asset, w.amount), paid, w.charge
        )

    def _moved(self, order: PaymentOrder, receipt: Receipt) -> bool:
        """Whether a token's own log says that it moved: success alone does not (money rule 8)."""
        if order.contract is None:
            return True
        wanted = tuple(
            self._rules.storage_form(self._network.slug, text) for text in (order.contract, order.wallet, order.recipient)
        )
        return wanted in receipt.moved

    def _balance(self, w: Withdrawal) -> Balance:
        return self._store.get(Balance, tenant=w.tenant, asset=w.asset) or Balance(w.tenant, w.asset)

    def watch_settled(self, more: Callable[[], bool]) -> None:
        """See that settled payments stay in the chain as deep as a reorganisation is followed; undo those that do not.

        Otherwise the bytes would be forgotten by the nodes, and every later payment of the wallet would wait for their nonce.
        Stops when `more` says that the time is over. Raises Unavailable.
        """
        tip: int | None = None
        hashes: dict[int, str | None] = {}
        for works in pages_of(self._store, "settled", self._network.id):
            tip = self._reader.tip() if tip is None else tip
            for work in works:
                if not more():
                    return
                number, block_hash = int(work.order), work.id.rsplit("|", 1)[1]
                if number not in hashes:
                    hashes[number] = self._reader.block_hash(number)
                if hashes[number] is None:
                    continue  # the node is behind, or a shorter branch has won for a moment
                try:
                    if hashes[number] != block_hash:
                        until_settled(partial(self._unsettle, work))
                    elif number <= tip - self._network.reorg_depth:
                        until_settled(partial(self._rest, work))
                except Conflict:
                    log.info("%s is being looked at elsewhere", work.id)

    def _rest(self, work: Work) -> None:
        """No reorganisation reaches it any more. What failed on the chain counts towards no limit from now on."""
        tenant, withdrawal_id = payout_parts(work)
        withdrawal = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        changes: list[Change] = [Close(work)]
        if withdrawal is not None and withdrawal.status == "failed":
            changes += unspent(purse_of(self._store, withdrawal), withdrawal, self._clock.now_ms())
        self._store.commit(changes)

    def _unsettle(self, work: Work) -> None:
        """The block that settled a payment is gone: as if it had never been settled, and its bytes are sent again."""
        tenant, withdrawal_id = payout_parts(work)
        before = self._store.get(Withdrawal, tenant=tenant, id=withdrawal_id)
        order = None if before is None else self._store.get(PaymentOrder, id=order_id(before))
        if before is None or order is None or order.state not in ("settled", "bounced"):
            raise LookupError(f"{work.id} is watched as settled and is not")
        log.warning("%s: the block that settled %s fell out of the chain", self._network.id, before.id)
        news = News(self._clock.now_ms())
        catalogue, views = catalogue_views(self._store, before)
        settled = self._entry(catalogue, before, order, order.state, before.fee, news.at)
        entry = ledger.settlement_reversed(settled, order.id, order.round, news.at)
        after = replace(
            before, status="confirming", failure=None, confirmations=0, block_number=None, block_hash=None, confirmed_at=None,
            updated_at=news.at,
        )  # fmt: skip
        after = stepped(news, views, before, after)
        again = replace(order, state="signed", round=order.round + 1, version=order.version + 1)
        money = moved(news, views, self._balance(before), entry)
        self._store.commit([Save(after), Save(again), Close(work), Open(sent_work(before)), *money, *news.emit()])

    def quote_fees(self, sender: str) -> None:
        """Store what a plain payment of each coin costs now, once a minute: the API shows it without asking a node."""
        now = self._clock.now_ms()
        known = self._store.get(FeeQuote, network=self._network.id)
        if known is not None and now - known.at < QUOTE_SECONDS * 1000:
            return
        fees: dict[str, int] = {}
        for coin in self._store.catalogue(self._network.realm).coins_of(self._network.slug):
            if coin.status != "ACTIVE":
                continue
            try:
                fees[coin.slug] = self._payer.estimate(Payment(sender, sender, coin.contract, 1, 0)).fee
            except Refused as refused:
                log.info("%s: no fee estimate for %s: %s", self._network.id, coin.slug, refused)
        quote = FeeQuote(self._network.id, fees, now, version=1 if known is None else known.version + 1)
        try:
            self._store.commit([Save(quote)])
        except Conflict:
            log.info("%s: another poll stored its fee estimate first", self._network.id)
