"""The record of a new withdrawal, as the rules have allowed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.domain.ids import TenantId
from chalicelib.domain.refunds.refunds import Repays
from chalicelib.domain.withdrawals.payout_line import ready_order
from chalicelib.domain.withdrawals.withdrawals import Priority, Withdrawal
from chalicelib.usecases.withdrawals.facts import Output, Ruling
from chalicelib.usecases.withdrawals.rules import Rules


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for. `output` has its address in the public spelling; `asked_at` in milliseconds since 1970."""

    id: str
    tenant: TenantId
    output: Output
    asked_at: int
    priority: Priority
    metadata: dict[str, Any]
    repays: Repays | None = None


def withdrawal_of(rules: Rules, ruling: Ruling, order: Order, now: int) -> Withdrawal:
    """The withdrawal that `ruling`, which is about this one output, allows."""
    approval, (charge,) = ruling.approval(ruling.reasons[0]), ruling.charges
    return Withdrawal(
        id=order.id,
        tenant=order.tenant,
        network=rules.coin.network,
        asset=rules.coin.asset,
        amount=order.output.amount,
        to_address=order.output.to_address,
        fee_asset=rules.fee_asset,
        created_at=order.asked_at,
        updated_at=now,
        pending_reason=None if approval is None else "approval",
        priority=order.priority,
        metadata=order.metadata,
        fee=ruling.fee,
        emitted=1,
        approval=approval,
        limited=ruling.limited[0],
        charge=charge.units,
        charge_rate=charge.rate,
        charge_fixed=charge.fixed,
        line=ready_order(order.tenant, order.asked_at),
        repays=order.repays,
    )
