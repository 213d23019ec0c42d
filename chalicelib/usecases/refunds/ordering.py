"""Orders the withdrawal of a refund or a payout link, whose address is known now, out of what is reserved for it.

One transaction stores the withdrawal and the record that names it, and rests on the record's version: two claims, a claim and an
expiry, a function that is called twice make one withdrawal. The reservation is the withdrawal's from then on. All rules of
withdrawals count: limits, approvals, risk, the kill switch, the fee budget.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from chalicelib.domain import ledger
from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.errors import BusinessRule, ServiceError
from chalicelib.domain.ids import asset_parts, network_parts, new_id
from chalicelib.domain.money import Amount
from chalicelib.domain.refunds.refunds import Refund, Repays, event_family, refund_work
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import views_now
from chalicelib.usecases.ports.changes import FEW_ITEMS, OUTBOX_ITEMS, Change, Close, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.refunds.endings import give_back
from chalicelib.usecases.refunds.refund_reads import is_covered
from chalicelib.usecases.withdrawals.facts import Output, Reserved
from chalicelib.usecases.withdrawals.new_record import Order, withdrawal_of
from chalicelib.usecases.withdrawals.steps import moved, started
from chalicelib.usecases.withdrawals.withdrawals import Withdrawals

log = logging.getLogger(__name__)

NOT_COVERED = "the payment that it gives back has fallen out of the chain"


@dataclass(frozen=True, slots=True)
class Ordered:
    """One try: the record after it, the withdrawal, and the changes that store both."""

    refund: Refund
    withdrawal: Withdrawal
    changes: list[Change]


class Ordering:
    def __init__(self, store: Store, clock: Clock, withdrawals: Withdrawals, rates_of: RatesOf) -> None:
        self._store, self._clock, self._withdrawals, self._rates_of = store, clock, withdrawals, rates_of

    def prepared(self, before: Refund, address: str, withdrawal_id: str) -> Ordered:
        """What pays `before`, which reserves its amount, to `address`. Raises what the rules of withdrawals raise
        (`Rules.allow`), and Unavailable."""
        terms, now = before.terms, self._clock.now_ms()
        catalogue = self._store.catalogue(network_parts(terms.network)[0])
        slug = network_parts(terms.network)[1]
        coin = catalogue.coin(slug, asset_parts(terms.asset)[1])
        if coin is None:
            raise LookupError(f"{terms.asset} is not in the catalogue")
        rules = self._withdrawals.rules(catalogue, coin)
        (output,) = rules.recipients([Output(address, terms.amount, "address", "amount")])
        reserved = Reserved(terms.amount, any_address=before.counted is not None)
        ruling = rules.allow(before.tenant, [output], "normal", None, now, reserved)
        link = before.status == "awaiting_claim"
        after = replace(
            next_version(before),
            status="claimed",
            address=output.to_address,
            withdrawal_id=withdrawal_id,
            emitted=before.emitted + link,
        )
        named = "refundId" if event_family(before.id) == "refund" else "payoutLinkId"
        repays = Repays(before.id, terms, after.emitted)
        asked_at = now if link else terms.created_at
        order = Order(withdrawal_id, before.tenant, output, asked_at, "normal", {named: before.id}, repays)
        withdrawal = withdrawal_of(rules, ruling, order, now)
        news, views = News(now), views_now(catalogue, self._rates_of, now)
        if link:
            told = views.refund(after, withdrawal)
            news.tell(after.tenant, f"{event_family(after.id)}.claimed", after.id, after.emitted, told, hook=terms.hook)
        changes: list[Change] = [Save(after), *started(news, views, withdrawal), Save(ruling.spent), *map(Save, ruling.own)]
        if withdrawal.charge:
            entry = ledger.withdrawal_reserved(withdrawal.id, now, before.tenant, Amount(terms.asset, withdrawal.charge))
            changes += moved(self._store, news, views, ruling.owned.balance, entry, ruling.owned.awaited)
        if len(changes) + OUTBOX_ITEMS < FEW_ITEMS:  # else the sweep closes it, when it is due
            changes.append(Close(refund_work(before)))
        return Ordered(after, withdrawal, [*changes, *news.emit()])

    def order(self, refund: Refund) -> Refund:
        """Order the withdrawal of a refund whose address came with it; the record by then. Where the rules refuse it now, it fails
        and its money is available again. Raises Conflict, Unavailable."""

        def decide() -> Refund:
            before = self._store.get(type(refund), tenant=refund.tenant, id=refund.id)
            if before is None or before.status != "ordered" or before.address is None:
                return before or refund
            withdrawal_id = before.withdrawal_id or new_id("wd", before.terms.created_at)
            try:
                ordered = self.prepared(before, before.address, withdrawal_id)
                if not is_covered(self._store, before):
                    raise BusinessRule("invoiceId", NOT_COVERED)
            except ServiceError as refused:
                log.warning("%s: %s can not be paid: %s", before.terms.network, before.id, refused.message)
                return give_back(self._store, self._rates_of, before, "failed", self._clock.now_ms(), reason_of(refused))
            self._store.commit(ordered.changes)
            return ordered.refund

        return until_settled(decide)


def reason_of(refused: ServiceError) -> str:
    """What the merchant is told."""
    if isinstance(refused, BusinessRule) and isinstance(refused.details, dict):
        return f"{refused.details['field']}: {refused.message}"
    return refused.message
