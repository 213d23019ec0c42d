"""The operator's kill switch for outgoing payments."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictBool

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import Request
from chalicelib.api.routes import endpoint
from chalicelib.domain.kill_switch import PaymentSwitch
from chalicelib.domain.times import iso


class SwitchRequest(Request):
    """Whether payments go out."""

    stopped: Annotated[StrictBool, Field(description="True: nothing is paid out any more. False: payments go on.", examples=[True])]
    reason: (
        Annotated[str, Field(min_length=1, max_length=200, description="Why; for whoever looks.", examples=["key leaked"])] | None
    ) = None


def _shown(switch: PaymentSwitch) -> dict[str, Any]:
    return {
        "stopped": switch.stopped,
        "reason": switch.reason,
        "changed_at": None if switch.changed_at is None else iso(switch.changed_at),
        "changed_by": switch.changed_by,
    }


@endpoint(
    "GET", "/withdrawals/switch", family="envelope", level="admin", permission="withdrawals:read", answer="withdrawals.Switch",
    summary="Whether payments go out",
)  # fmt: skip
def get_switch(ctx: Ctx) -> Answer:
    """Of the admin key's realm, all merchants and networks."""
    return Answer(_shown(ctx.services.switches.state(ctx.realm)))


@endpoint(
    "PUT", "/withdrawals/switch", family="envelope", level="admin", permission="withdrawals:write", body=SwitchRequest,
    answer="withdrawals.Switch", summary="Stop all outgoing payments at once, or let them go on",
)  # fmt: skip
def put_switch(ctx: Ctx, body: SwitchRequest) -> Answer:
    """Of the admin key's realm, all merchants and networks. Once this is answered with `stopped: true` no payment to anybody is
    signed any more, and nothing that is signed is sent, sent again or replaced; what a node has already, the chain decides, and its
    receipts are followed. Stakes stop too. Deposits, invoices and moves between the operator's own wallets go on. Withdrawals can
    still be asked for, cancelled and decided about: they wait as `pending` with `pending_reason: halted`. With `stopped: false`
    everything goes on by itself, oldest first. The same again changes nothing, but for another `reason` of a stop."""
    return Answer(_shown(ctx.services.switches.throw(ctx.realm, body.stopped, body.reason, ctx.key.id)))
