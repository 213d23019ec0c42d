"""The steps of a withdrawal that several use cases take: its obligations, its events, its postings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from chalicelib.domain import ledger
from chalicelib.domain.addresses.addresses import group_of, seat_of
from chalicelib.domain.catalogue.catalogue import Catalogue, Network
from chalicelib.domain.catalogue.rates import RatesOf, no_rates
from chalicelib.domain.ids import NetworkId, TenantId, derived_id, network_parts, tenant_parts
from chalicelib.domain.ledger import Balance, JournalEntry
from chalicelib.domain.money import Amount
from chalicelib.domain.refunds.refunds import event_family
from chalicelib.domain.refunds.status import ending
from chalicelib.domain.screening.risk import Assessment
from chalicelib.domain.versions import next_version, version_after
from chalicelib.domain.webhooks.events import balance_object
from chalicelib.domain.withdrawals.approvals import Approval, ApprovalReason, ApprovalRequest
from chalicelib.domain.withdrawals.limits import Paid, PayeeSpent, Spent, without_payment
from chalicelib.domain.withdrawals.payout_line import RETRY_MS, aside_order, payout_work
from chalicelib.domain.withdrawals.withdrawals import FeeWait, PaymentOrder, Withdrawal, may_follow
from chalicelib.domain.work import Command, Work, time_order
from chalicelib.usecases.base.address_forms import form_of
from chalicelib.usecases.base.awaited_deposits import shown, with_awaited
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.views import Views, views_now
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Change, Close, Open, Post, Save
from chalicelib.usecases.ports.store import Store
from chalicelib.usecases.withdrawals.fee_budget import Counted, corrected

_SEPARATOR = "|"


def sent_work(withdrawal: Withdrawal) -> Work:
    """The obligation to settle a signed payment: in a lane of its own, so that waiting payments delay none in flight."""
    tail = f"{withdrawal.tenant}{_SEPARATOR}{withdrawal.id}"
    return Work("sent", withdrawal.network, time_order(withdrawal.created_at), tail)


def settled_work(withdrawal: Withdrawal, block_number: int, block_hash: str) -> Work:
    """The obligation to watch the block that settled a payment until no reorganisation reaches it. Found by height."""
    tail = f"{withdrawal.tenant}{_SEPARATOR}{withdrawal.id}{_SEPARATOR}{block_hash}"
    return Work("settled", withdrawal.network, f"{block_number:015d}", tail)


def approval_work(withdrawal: Withdrawal) -> Work:
    """The obligation to decide about a withdrawal, in the lane of its merchant."""
    return Work("approval", withdrawal.tenant, withdrawal.id, f"{withdrawal.tenant}{_SEPARATOR}{withdrawal.id}")


def payout_parts(work: Work) -> tuple[TenantId, str]:
    tenant, withdrawal_id = work.id.split(_SEPARATOR)[:2]
    return TenantId(tenant), withdrawal_id


def order_of(tenant: TenantId, withdrawal_id: str) -> str:
    """The id of a withdrawal's one payment order."""
    return derived_id("ord", tenant, withdrawal_id)


def order_id(withdrawal: Withdrawal) -> str:
    """The id of the one payment order of `withdrawal`."""
    return order_of(withdrawal.tenant, withdrawal.id)


def payout_command(withdrawal: Withdrawal) -> Command:
    """Ask to go on with this withdrawal now, whatever the line says: its nonce or inputs hold up those behind it. One group per
    paying wallet, so that one worker at a time takes a nonce."""
    group = group_of(withdrawal.network, seat_of(withdrawal.slot))
    return Command("payouts", group, {"tenant": withdrawal.tenant, "id": withdrawal.id})


def handed_command(withdrawal: Withdrawal, slot: int) -> Command:
    """Ask for a payout that is not started yet in the group of the hot wallet in `slot`, which has enough for it."""
    body = {"tenant": withdrawal.tenant, "id": withdrawal.id, "slot": str(slot)}
    return Command("payouts", group_of(withdrawal.network, seat_of(slot)), body)


def line_command(work: Work, slots: int, again: int = 0) -> Command:
    """Ask for one more payout of `work`'s network: the line chooses it when the message is handled.

    `slots`: over so many hot wallets the messages are spread (`Network.payout_slots`), each with a group of its own; `again` sends
    the same payout's next message to another one. An older worker takes the message for the wallet that it knows.
    """
    tenant, withdrawal_id = payout_parts(work)
    body = {"line": work.lane, "tenant": tenant, "id": withdrawal_id}
    if slots < 2:
        return Command("payouts", work.lane, body)
    slot = (crc32(withdrawal_id.encode()) + again) % slots
    return Command("payouts", group_of(NetworkId(work.lane), seat_of(slot)), {**body, "slot": str(slot), "slots": str(slots)})


def moved_in_line(before: Withdrawal, after: Withdrawal) -> list[Change]:
    """The changes that save `after`, whose payout is still open, and move it to its position in the line."""
    old, new = payout_work(before), payout_work(after)
    return [Save(after)] if old == new else [Save(after), Close(old), Open(new)]


def moved(
    store: Store, news: News, views: Views, balance: Balance, entry: JournalEntry, awaited: int | None = None
) -> list[Change]:
    """The changes that post `entry` and keep the merchant's balance with it; tells when what is available changed, with what is
    `awaited`, in units: one read where that is None."""
    after = balance.after(entry)
    if after.available != balance.available:
        after = replace(after, emitted=after.emitted + 1)
        record = views.balance(with_awaited(store, after) if awaited is None else shown(after, awaited))
        news.tell(after.tenant, "balance.updated", balance_object(after.asset), after.emitted, record)
    return [Post(entry), Save(after)]


def stepped(news: News, views: Views, before: Withdrawal, after: Withdrawal) -> Withdrawal:
    """`after` with its next version; the event of its change of status goes to `news`. Raises ValueError for a step that is not
    allowed."""
    if after.status == before.status:
        return replace(after, version=version_after(before))
    if not may_follow(before.status, after.status):
        raise ValueError(f"a withdrawal can not go from {before.status} to {after.status}")
    told = replace(after, emitted=before.emitted + 1, version=version_after(before))
    record = views.withdrawal(told)
    # Published as always there in this event: null before the broadcast, where the record has none.
    changed = {"transaction_hash": None, **record}
    news.tell(told.tenant, "withdrawal.status_changed", told.id, told.emitted, changed, before.status)
    if told.status == "confirmed":
        told = replace(told, emitted=told.emitted + 1)
        news.tell(told.tenant, "withdrawal.completed", told.id, told.emitted, record, before.status)
    return _told_of_refund(news, views, told)


def _told_of_refund(news: News, views: Views, after: Withdrawal) -> Withdrawal:
    """The withdrawal once the end of the refund or payout link that it pays is told, where its new status is one."""
    end = ending(after.status)
    if after.repays is None or end is None:
        return after
    told = replace(after, repays=replace(after.repays, told=after.repays.told + 1))
    name = f"{event_family(after.repays.id)}.{end}"
    news.tell(after.tenant, name, after.repays.id, after.repays.told + 1, views.repaid(told), hook=after.repays.terms.hook)
    return told


def started(news: News, views: Views, withdrawal: Withdrawal) -> list[Change]:
    """The changes that store a new withdrawal and its obligation: an approval where it needs one, else its payment."""
    news.tell(withdrawal.tenant, "withdrawal.created", withdrawal.id, 1, views.withdrawal(withdrawal))
    if withdrawal.waits_for_approval:
        return [Save(withdrawal), Open(approval_work(withdrawal)), Save(_request(withdrawal, open=True))]
    work = payout_work(withdrawal)
    news.command(line_command(work, views.payout_slots(withdrawal.network)))
    return [Save(withdrawal), Open(work)]


def waited_for(withdrawal: Withdrawal) -> list[Change]:
    """The change that ends the obligation of a withdrawal that nothing was done with yet."""
    if not withdrawal.waits_for_approval:
        return [Close(payout_work(withdrawal))]
    return [Close(approval_work(withdrawal)), Save(_request(withdrawal, open=False))]


def sent_back(before: Withdrawal, now: int, reason: ApprovalReason, risk: Assessment | None = None) -> list[Change]:
    """The whole transaction that returns a withdrawal, which was about to be paid, to the operator's approval."""
    approval = (before.approval or Approval(())).asking(reason)
    after = replace(
        next_version(before),
        approval=approval,
        pending_reason=approval.waits_for,
        risk=risk or before.risk,
        updated_at=now,
    )
    return [Save(after), Close(payout_work(before)), Open(approval_work(after)), Save(_request(after, open=True))]


def _request(withdrawal: Withdrawal, *, open: bool) -> ApprovalRequest:
    """It is stored with the withdrawal (or where that is sent back), decided once, and perhaps opened and decided again: its
    versions are known."""
    before = 0 if withdrawal.approval is None else 2 * withdrawal.approval.reopened
    return ApprovalRequest(withdrawal.id, withdrawal.tenant, tenant_parts(withdrawal.tenant)[1], open, before + (1 if open else 2))


def fees_request_id(withdrawal_id: str) -> str:
    """The id of the record that shows an operator a withdrawal waiting with the reason `fees`."""
    return f"fees:{withdrawal_id}"


def fees_request(withdrawal: Withdrawal) -> ApprovalRequest:
    """The record of a withdrawal that first waits with the reason `fees`. In no list of approvals: it resumes by itself."""
    return ApprovalRequest(
        fees_request_id(withdrawal.id), withdrawal.tenant, tenant_parts(withdrawal.tenant)[1], open=False, version=1
    )


def waiting_for_fees(before: Withdrawal, now: int, since: int | None) -> list[Change]:
    """The changes that store the wait; `since` is when its own fee became too high, in milliseconds since 1970."""
    known = before.fee_wait
    wait = FeeWait(since, None if known is None else known.accepted_by)
    due = aside_order(before, now + RETRY_MS)
    waiting = replace(next_version(before), pending_reason="fees", fee_wait=wait, updated_at=now, line=due)
    # So that an operator's key, which knows its id alone, finds it.
    return [*moved_in_line(before, waiting), *([Save(fees_request(before))] if known is None else [])]


@dataclass(frozen=True, slots=True)
class Purse:
    """The balance that a withdrawal's money goes back to, and the limits that it counts for; `own` where its address has a
    record of its own."""

    balance: Balance
    spent: Spent
    own: PayeeSpent | None = None


def purse_of(store: Store, withdrawal: Withdrawal) -> Purse:
    """The balance that a withdrawal's money goes back to."""
    key = {"tenant": withdrawal.tenant, "asset": withdrawal.asset}
    wanted: list[tuple[type[Any], dict[str, str]]] = [(Balance, key), (Spent, key)]
    if withdrawal.limited:
        wanted.append((PayeeSpent, {**key, "address": withdrawal.to_address}))
    balance, spent, *own = store.get_many(wanted)
    return Purse(
        balance or Balance(withdrawal.tenant, withdrawal.asset),
        spent or Spent(withdrawal.tenant, withdrawal.asset),
        own[0] if own else None,
    )


def unspent(purse: Purse, w: Withdrawal, now: int) -> list[Change]:
    """The changes after which a withdrawal counts towards no limit."""
    signed = w.approval is not None and "multisig" in w.approval.reasons
    spent, own = without_payment(purse.spent, purse.own, now, w.created_at, Paid(w.to_address, w.amount, w.limited, signed))
    return [Save(spent)] if own is None else [Save(spent), Save(own)]


def given_back(
    store: Store, views: Views, before: Withdrawal, status: Any, failure: str | None, purse: Purse, now: int
) -> tuple[Withdrawal, list[Change]]:
    """The whole transaction that returns the reserved amount of a withdrawal cancelled, rejected or failed before its signature.

    `purse` comes from `purse_of`.
    """
    news = News(now)
    entry = ledger.withdrawal_released(before.id, now, before.tenant, Amount(before.asset, before.reserved))
    after = stepped(news, views, before, replace(before, status=status, failure=failure, pending_reason=None, updated_at=now))
    changes = [Save(after), *waited_for(before), *moved(store, news, views, purse.balance, entry), *unspent(purse, before, now)]
    return after, [*changes, *news.emit()]


def bounced(
    store: Store,
    rules: AddressRules,
    rates_of: RatesOf,
    network: Network,
    before: Withdrawal,
    order: PaymentOrder,
    now: int,
    why: str,
) -> tuple[Withdrawal, list[Change]]:
    """The whole transaction for a withdrawal whose signed attempts can never be mined: it fails, its coins return to the wallet
    and its amount to the merchant. It counts towards no limit any more."""
    news = News(now)
    catalogue, views = catalogue_views(store, before, rates_of, now)
    purse = purse_of(store, before)
    place = ledger.wallet(network.id, form_of(rules, network, order.wallet))
    amount, no_fee = Amount(before.asset, before.amount), Amount(catalogue.native(network.slug).asset, 0)
    payment = ledger.SignedPayment(before.id, order.id, order.round, before.tenant, network.realm, place, amount)
    entry = ledger.withdrawal_bounced(payment, now, no_fee, before.charge, 0)
    counts_no_more = unspent(purse, before, now)
    uncounted = corrected(store, rates_of, before, None, now)
    if len(counts_no_more) > 1:  # no room: what it never burnt counts towards its merchant's fee budget until the day is over
        uncounted = Counted(before)
    after = replace(
        uncounted.withdrawal,
        status="failed",
        failure=why,
        fee=0,
        debited=0,
        confirmations=0,
        block_number=None,
        block_hash=None,
        updated_at=now,
    )
    after = stepped(news, views, before, after)
    done = replace(next_version(order), state="bounced", renew=False)
    money = moved(store, news, views, purse.balance, entry)
    works = (Close(sent_work(before)), *uncounted.changes)
    return after, [Save(after), Save(done), *works, *money, *counts_no_more, *news.emit()]


def catalogue_views(store: Store, withdrawal: Withdrawal, rates_of: RatesOf = no_rates, now: int = 0) -> tuple[Catalogue, Views]:
    """The views of a withdrawal's coin and network. Where money moves with it, they need its value at `now`."""
    catalogue = store.catalogue(network_parts(withdrawal.network)[0])
    return catalogue, views_now(catalogue, rates_of, now)
