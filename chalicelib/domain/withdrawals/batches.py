"""Batches: many withdrawals that are accepted together or not at all.

A batch has up to a hundred outputs, and a transaction is kept to ten items, which DynamoDB Local of 2020 takes, so that it is
tested there. So one transaction stores the batch and reserves the total, and the withdrawals follow in small ones. They are a
function of the batch: every worker makes the same ones, however often.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.domain.ids import AssetId, NetworkId, TenantId, group_of, member_id
from chalicelib.domain.withdrawals.approvals import Approval, ApprovalReason, Signer
from chalicelib.domain.withdrawals.payout_line import ready_order
from chalicelib.domain.withdrawals.withdrawals import Priority, Withdrawal
from chalicelib.domain.work import Work

MOST_OUTPUTS = 100
_SEPARATOR = "|"


@dataclass(frozen=True, slots=True)
class BatchOutput:
    """One output of a batch. `amount` in units; `reasons` why it needs an approval; `limited` as a withdrawal has it. `charge`
    is reserved beside its amount, `fixed` the part of that which is no fee of its own; None in batches that charge all outputs
    alike."""

    to_address: str
    amount: int
    reasons: tuple[ApprovalReason, ...] = ()
    limited: bool = False
    charge: int | None = None
    fixed: int = 0


@dataclass(frozen=True, slots=True)
class WithdrawalBatch:
    """A batch of withdrawals, never changed. `fee` is the estimate for each, `charge` the debit of each output without one of
    its own, `charge_rate` the rate of all charges; `required` and `signers` are those of the multisig configuration."""

    id: str
    tenant: TenantId
    network: NetworkId
    asset: AssetId
    fee_asset: AssetId
    fee: int
    priority: Priority
    outputs: tuple[BatchOutput, ...]
    created_at: int
    charge: int = 0
    required: int = 0
    signers: tuple[Signer, ...] = ()
    charge_rate: str | None = None
    version: int = 1

    @property
    def reserved(self) -> int:
        """Units that all its withdrawals reserve."""
        return sum(output.amount + self._charge(output) for output in self.outputs)

    def _charge(self, output: BatchOutput) -> int:
        return self.charge if output.charge is None else output.charge

    def members(self) -> list[Withdrawal]:
        """The withdrawals as they are first stored."""
        return [self._member(number, output) for number, output in enumerate(self.outputs, 1)]

    def member(self, withdrawal_id: str) -> Withdrawal | None:
        return next((member for member in self.members() if member.id == withdrawal_id), None)

    def _member(self, number: int, output: BatchOutput) -> Withdrawal:
        approval = None
        if output.reasons:
            signed = "multisig" in output.reasons
            approval = Approval(output.reasons, self.required if signed else 0, self.signers if signed else ())
        return Withdrawal(
            id=member_id("wd", self.id, number),
            tenant=self.tenant,
            network=self.network,
            asset=self.asset,
            amount=output.amount,
            to_address=output.to_address,
            fee_asset=self.fee_asset,
            created_at=self.created_at,
            updated_at=self.created_at,
            pending_reason=None if approval is None else "approval",
            priority=self.priority,
            fee=self.fee,
            emitted=1,
            batch_id=self.id,
            approval=approval,
            limited=output.limited,
            charge=self._charge(output),
            charge_rate=self.charge_rate if self._charge(output) else None,
            charge_fixed=output.fixed,
            line=ready_order(self.tenant, self.created_at),
        )


def batch_of(withdrawal_id: str) -> str:
    """The id of the batch that a withdrawal belongs to, if it belongs to one."""
    return group_of("wdb", withdrawal_id)


def batch_work(batch: WithdrawalBatch) -> Work:
    """Open work: create the batch's withdrawals."""
    return Work("batch", batch.network, f"{batch.created_at:015d}", f"{batch.tenant}{_SEPARATOR}{batch.id}")


def batch_parts(work: Work) -> tuple[TenantId, str]:
    tenant, batch_id = work.id.split(_SEPARATOR)
    return TenantId(tenant), batch_id
