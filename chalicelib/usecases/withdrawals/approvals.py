"""Approvals of withdrawals: signatures of the merchant's signers, and the operator's word.

The operator's word also lets one go on that waits with the reason `fees`, which needs no approval and may go on by itself.

Until a withdrawal is approved it has neither payout work nor a command: nothing that pays can find it. The acceptance that
completes the approval makes both, in the transaction that stores it. A withdrawal is approved by the configuration that it stored
when it was created.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.domain.catalogue.rates import RatesOf
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.domain.ids import Realm, TenantId, network_parts, tenant_parts
from chalicelib.domain.versions import next_version
from chalicelib.domain.withdrawals.approvals import Approval, ApprovalRequest, ApprovalSignature, Signer, rejection_text
from chalicelib.domain.withdrawals.payout_line import payout_work, ready_order
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.encoding.ed25519 import read_bytes, verify
from chalicelib.usecases.base.newer_states import known_of
from chalicelib.usecases.base.outbox import News
from chalicelib.usecases.base.retries import until_settled
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.ports.addresses import AddressRules
from chalicelib.usecases.ports.changes import Open, Save
from chalicelib.usecases.ports.clock import Clock
from chalicelib.usecases.ports.store import Page, Store
from chalicelib.usecases.screening.grey_list import grey_listed
from chalicelib.usecases.withdrawals.steps import (
    catalogue_views,
    fees_request_id,
    given_back,
    line_command,
    moved_in_line,
    payout_parts,
    purse_of,
    waited_for,
)
from chalicelib.usecases.withdrawals.withdrawals import Withdrawals

MOST_LISTED = 1000
REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Approver:
    """The author of a decision: a key of `tenant`, the operator's where `admin`; with a signature, the signer that it names."""

    key_id: str
    tenant: TenantId
    admin: bool
    signer_id: str | None = None
    signature: str | None = None

    @property
    def realm(self) -> Realm:
        return tenant_parts(self.tenant)[1]


class Approvals:
    def __init__(self, store: Store, rules: AddressRules, clock: Clock, withdrawals: Withdrawals, rates_of: RatesOf) -> None:
        self._store, self._rules, self._clock, self._withdrawals = store, rules, clock, withdrawals
        self._rates_of = rates_of

    def waiting(self, tenant: TenantId) -> list[Withdrawal]:
        """The merchant's withdrawals that wait for an approval, oldest first; at most 1,000."""
        works = self._store.open_work("approval", tenant, limit=MOST_LISTED)
        return self._read([payout_parts(work) for work in works])

    def page(self, realm: Realm, limit: int, after: str | None = None, newest_first: bool = True) -> Page[ApprovalRequest]:
        """A page of the withdrawals of all merchants of a realm that wait for an approval."""
        return self._store.page(ApprovalRequest, limit=limit, after=after, newest_first=newest_first, realm=realm)

    def of(self, requests: list[ApprovalRequest]) -> list[Withdrawal]:
        """The withdrawals of `requests` that still wait."""
        return self._read([(request.tenant, request.id) for request in requests])

    def _read(self, names: list[tuple[TenantId, str]]) -> list[Withdrawal]:
        found = known_of(self._store, [(Withdrawal, {"tenant": tenant, "id": name}) for tenant, name in names]) if names else []
        return [withdrawal for withdrawal in found if withdrawal is not None and withdrawal.waits_for_approval]

    def accept(self, approver: Approver, withdrawal_id: str) -> Withdrawal:
        """Agree to a withdrawal. The last agreement that it needs pays it. The same acceptance twice is one.

        An admin key without a signature gives the operator's word, which a grey-listed address or a risk needs; it never stands
        for a signature, nor a signature that it hands on for its word. Findings of risk count as accepted then. The grey
        list is asked again: who agrees to an address that has come to it since may not be the last. The operator's word about one
        that waits with the reason `fees` lets it go on, whatever it costs. Raises NotFound, BusinessRule (nothing to agree to, not
        a signer, a wrong signature).
        """
        tenant = self._owner(approver, withdrawal_id)

        def decide() -> Withdrawal:
            before = self._withdrawals.stored(tenant, withdrawal_id)
            if self._about_fees(approver, before):
                return self._fees_accepted(approver, before)
            approval = self._asked(before, _needed(before))
            now = self._clock.now_ms()
            agreed = self._agreed(approver, before, approval, now)
            if agreed == approval:
                return before  # said before
            if not before.waits_for_approval:
                raise BusinessRule("id", f"this withdrawal does not wait for approval: it is {before.status}")
            after = replace(next_version(before), approval=agreed, updated_at=now)
            if before.risk is not None and agreed.operator is not None:
                after = replace(after, risk=before.risk.agreed())
            if not agreed.given:
                after = replace(after, pending_reason=agreed.waits_for)
                self._store.commit([Save(after)])
                return after
            after = replace(after, pending_reason=None, line=ready_order(before.tenant, now))
            news, work = News(now), payout_work(after)
            news.command(line_command(work, self._slots(before)))
            self._store.commit([Save(after), *waited_for(before), Open(work), *news.emit()])
            return after

        return until_settled(decide)

    def reject(self, approver: Approver, withdrawal_id: str, reason: str | None) -> Withdrawal:
        """Refuse a withdrawal: it fails and its money is available again. An admin's word or one signer's signature is enough; a
        signature that is stored as an acceptance can not reject.

        Rejecting again changes nothing. Raises NotFound, BusinessRule.
        """
        tenant = self._owner(approver, withdrawal_id)
        why = f"{REJECTED}: {reason}" if reason else REJECTED

        def decide() -> Withdrawal:
            before = self._withdrawals.stored(tenant, withdrawal_id)
            if before.waits_for_fees and approver.admin and approver.signer_id is None and approver.signature is None:
                return self._given_back(before, why)
            if before.status == "failed" and before.fee_wait is not None and (before.failure or "").startswith(REJECTED):
                return before
            approval = _needed(before)
            by = self._rejecter(approver, before, approval)
            if before.status == "failed" and approval.rejected_by is not None:
                return before
            if not before.waits_for_approval:
                raise BusinessRule("id", f"this withdrawal does not wait for approval: it is {before.status}")
            now = self._clock.now_ms()
            _, views = catalogue_views(self._store, before, self._rates_of, now)
            after, changes = given_back(self._store, views, before, "failed", why, purse_of(self._store, before), now)
            after = replace(after, approval=replace(approval, rejected_by=by))
            self._store.commit([Save(after), *changes[1:]])
            return after

        return until_settled(decide)

    def _about_fees(self, approver: Approver, before: Withdrawal) -> bool:
        """Whether an acceptance says something about the fees of a withdrawal: the operator's word, where nothing else is asked."""
        if not approver.admin or approver.signer_id is not None or approver.signature is not None or before.waits_for_approval:
            return False
        return before.waits_for_fees or before.fees_accepted

    def _fees_accepted(self, approver: Approver, before: Withdrawal) -> Withdrawal:
        if before.fee_wait is None or before.fees_accepted:
            return before  # said before
        news = News(self._clock.now_ms())
        accepted = replace(before.fee_wait, accepted_by=approver.key_id)
        after = replace(next_version(before), fee_wait=accepted, pending_reason=None, updated_at=news.at)
        after = replace(after, line=ready_order(before.tenant, news.at))
        news.command(line_command(payout_work(after), self._slots(before)))
        self._store.commit([*moved_in_line(before, after), *news.emit()])
        return after

    def _slots(self, withdrawal: Withdrawal) -> int:
        return catalogue_views(self._store, withdrawal)[1].payout_slots(withdrawal.network)

    def _given_back(self, before: Withdrawal, why: str) -> Withdrawal:
        now = self._clock.now_ms()
        _, views = catalogue_views(self._store, before, self._rates_of, now)
        after, changes = given_back(self._store, views, before, "failed", why, purse_of(self._store, before), now)
        self._store.commit(changes)
        return after

    def _owner(self, approver: Approver, withdrawal_id: str) -> TenantId:
        """Whose withdrawal it is. Raises NotFound for one that the approver must not know of."""
        request, about_fees = self._store.get_many(
            [(ApprovalRequest, {"id": name}) for name in (withdrawal_id, fees_request_id(withdrawal_id))]
        )
        request = request or about_fees
        if request is None:
            return approver.tenant  # its own, whatever is to be said of it, or nobody's
        known = request.realm == approver.realm if approver.admin else request.tenant == approver.tenant
        if not known:
            raise NotFound(f"No withdrawal {withdrawal_id[:80]}", {"id": withdrawal_id[:80]})
        return TenantId(request.tenant)

    def _views(self, withdrawal: Withdrawal) -> Views:
        return Views(self._store.catalogue(network_parts(withdrawal.network)[0]))

    def _asked(self, withdrawal: Withdrawal, approval: Approval) -> Approval:
        """`approval`, and the operator's where the address of one that still waits is on the grey list now."""
        if not withdrawal.waits_for_approval or "grey_list" in approval.reasons:
            return approval
        listed = grey_listed(self._store, self._rules, withdrawal.network, withdrawal.to_address)
        return approval.asking("grey_list") if listed else approval

    def _agreed(self, approver: Approver, withdrawal: Withdrawal, approval: Approval, now: int) -> Approval:
        """`approval` with what the approver says. Raises BusinessRule where that is nothing."""
        if approver.signer_id is not None or approver.signature is not None:
            signer, signature = self._signed(approver, withdrawal, approval, (self._views(withdrawal).signing_text(withdrawal),))
            if not approval.signed_by(signer.id):
                made = ApprovalSignature(signer.id, signature, now)
                approval = replace(approval, signatures=(*approval.signatures, made))
        elif not approver.admin:
            raise BusinessRule("signature", "an acceptance needs a signer's signature, or the operator's admin key")
        elif not approval.asks_operator:
            raise BusinessRule("signature", f"{approval.required} signatures of the merchant's signers are needed: send one")
        elif approval.operator is None:
            approval = replace(approval, operator=approver.key_id)
        return approval

    def _rejecter(self, approver: Approver, withdrawal: Withdrawal, approval: Approval) -> str:
        if approver.signer_id is not None or approver.signature is not None:
            text = self._views(withdrawal).signing_text(withdrawal)
            signer, signature = self._signed(approver, withdrawal, approval, (rejection_text(text), text))
            # The bare text is published as that of both decisions, and Ed25519 signs a text with the same bytes each time: those
            # that came as an acceptance went through other hands, and prove no second decision.
            if approval.has(signature):
                raise BusinessRule("signature", "is stored as an acceptance: a rejection is signed with a further line `reject`")
            return signer.id
        if not approver.admin:
            raise BusinessRule("signature", "a rejection needs a signer's signature, or the operator's admin key")
        return approver.key_id

    def _signed(self, approver: Approver, withdrawal: Withdrawal, approval: Approval, texts: tuple[str, ...]) -> tuple[Signer, str]:
        """The signer and the signature (hex) over one of `texts`. Raises BusinessRule."""
        if approver.signer_id is None:
            raise BusinessRule("signer_id", "is needed beside a signature")
        if approver.signature is None:
            raise BusinessRule("signature", "is needed beside a signer_id")
        signer = approval.signer(approver.signer_id)
        if signer is None:
            raise BusinessRule("signer_id", "is none of the signers of this withdrawal")
        try:
            signature = read_bytes(approver.signature, 64).hex()
        except ValueError as error:
            raise BusinessRule("signature", str(error)) from error
        if not any(verify(signer.public_key, text, signature) for text in texts):
            raise BusinessRule("signature", f"is not {signer.id}'s signature over the text of withdrawal {withdrawal.id}")
        return signer, signature


def _needed(withdrawal: Withdrawal) -> Approval:
    if withdrawal.approval is None:
        raise BusinessRule("id", f"this withdrawal needs no approval: it is {withdrawal.status}")
    return withdrawal.approval
