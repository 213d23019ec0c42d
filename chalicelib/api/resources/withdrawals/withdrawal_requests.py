"""Withdrawals that wait for an approval, and the decisions about them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.lists import ListQuery
from chalicelib.api.lists.withdrawals import PENDING, WITHDRAWALS
from chalicelib.api.models import Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.ids import tenant_parts
from chalicelib.domain.withdrawals.withdrawals import Withdrawal
from chalicelib.usecases.withdrawals.approvals import Approver


class Decision(Request):
    """What was decided about a withdrawal."""

    id: Annotated[
        str, Field(min_length=1, max_length=64, description="The withdrawal's id.", examples=["wd_01kab7n3q2w8z5r6t4y1v9c0x3"])
    ]
    reason: (
        Annotated[
            str, Field(max_length=200, description="Why; shown in `failure_reason` of a rejected one.", examples=["unknown payee"])
        ]
        | None
    ) = None
    signer_id: (
        Annotated[str, Field(min_length=1, max_length=64, description="The id of a configured signer.", examples=["alice"])] | None
    ) = None
    signature: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=200,
                description="Ed25519 over the `signing_text` of the withdrawal's `approval`, 64 bytes in hex or base64.",
                examples=["00" * 64],
            ),
        ]
        | None
    ) = None


@endpoint(
    "GET", "/withdrawals/requests", family="envelope", permission="withdrawals:read", query=WITHDRAWALS,
    answer="list[withdrawals.Withdrawal]", summary="Withdrawals that wait for an approval",
)  # fmt: skip
def list_requests(ctx: Ctx, query: ListQuery) -> Answer:
    """An admin key sees those of all merchants in its realm, a client key its merchant's own: those that wait for signatures, for
    the operator's word about the grey list (`pending_reason: approval`), or for its decision about a risk (`pending_reason:
    risk`). Those that wait with `pending_reason: fees` are there, too: they go on by themselves, and an operator may let them.
    Asked for by `pending_reason`, all that wait with it are listed, those too that nobody can decide about. `merchant_id` is shown
    to admin keys."""
    admin = ctx.key.level == "admin"
    listing = PENDING if admin else WITHDRAWALS
    waiting = [listing.condition("status", "pending")]
    by_reason = any(condition.field.name == "pending_reason" for condition in query.conditions)
    found, pagination = listing.page(ctx, query, also=waiting, where=None if by_reason else _to_be_decided)
    return Answer([{**ctx.views.withdrawal(w), **(_owner(w) if admin else {})} for w in found], pagination)


def _to_be_decided(withdrawal: Withdrawal) -> bool:
    return withdrawal.waits_for_approval or withdrawal.waits_for_fees


def _owner(withdrawal: Withdrawal) -> dict[str, str]:
    return {"merchant_id": tenant_parts(withdrawal.tenant)[0]}


def _approver(ctx: Ctx, body: Decision) -> Approver:
    return Approver(ctx.key.id, ctx.tenant, ctx.key.level == "admin", body.signer_id, body.signature)


@endpoint(
    "PUT", "/withdrawals/request/accept", family="envelope", permission="withdrawals:write", body=Decision,
    answer="withdrawals.Withdrawal", errors=("NOT_FOUND",), summary="Agree to a withdrawal that waits for an approval",
)  # fmt: skip
def accept_request(ctx: Ctx, body: Decision) -> Answer:
    """Where multisig asks for signatures, `required_signatures` different signers have to send theirs, through any key that may
    (`withdrawals:write`); each is stored, a second one of the same signer counts once. An admin key without a signature gives the
    operator's word, which counts for a grey-listed address or a risk and never instead of a signature; one that hands on a
    signature gives the signature alone. The grey list is asked again with each acceptance and before the payment is started: where
    the address has come to it since, `grey_list` is among the `reasons` and the operator's word is needed, too. When the last one
    has agreed the payment begins. It is screened for risk right before that; where it is one, it is `pending` with `pending_reason:
    risk`, shows what was found in `risk`, and waits for the operator's word. What the operator has accepted is not asked again
    for this withdrawal, what comes up besides is. Saying the same again answers the record as it is. The operator's
    word about one that waits with `pending_reason: fees` lets it go on, whatever its fee is by then; a payment that takes more
    than three times the gas of a plain one fails all the same. The signers are those that
    were configured when the withdrawal was created."""
    return Answer(ctx.views.withdrawal(ctx.services.approvals.accept(_approver(ctx, body), body.id)))


@endpoint(
    "PUT", "/withdrawals/request/reject", family="envelope", permission="withdrawals:write", body=Decision,
    answer="withdrawals.Withdrawal", errors=("NOT_FOUND",), summary="Refuse a withdrawal that waits for an approval",
    shows={"status": "failed", "failure_reason": "rejected: unknown payee"},
)  # fmt: skip
def reject_request(ctx: Ctx, body: Decision) -> Answer:
    """The withdrawal fails (`failure_reason` begins with `rejected`) and the money is available again. An admin key, or one
    signer's signature over `signing_text` with a further line `reject`. Over the bare text is taken, too, but never the very bytes
    that are stored as an acceptance (`VALIDATION_ERROR`): who agreed before needs the further line. An admin key may refuse one
    that waits with `pending_reason: fees`, too."""
    return Answer(ctx.views.withdrawal(ctx.services.approvals.reject(_approver(ctx, body), body.id, body.reason)))
