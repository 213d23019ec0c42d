"""Withdrawals, batches, fees."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from chalicelib.api.records.base import Metadata, Money, Record, Time, Usd

Status = Literal["pending", "processing", "broadcasting", "confirming", "confirmed", "failed", "cancelled"]
Priority = Literal["low", "normal", "high", "urgent"]


class ApprovalSignature(Record):
    """A signature that counts."""

    signer_id: str
    signed_at: Time


class WithdrawalApproval(Record):
    """What the withdrawal needs before anything is done with it."""

    reasons: Annotated[list[Literal["multisig", "grey_list"]], Field(description="Why somebody has to agree.")]
    given: Annotated[bool, Field(description="Everybody who has to has agreed.")]
    required_signatures: Annotated[int, Field(description="Signatures of different signers that are needed.", examples=[2])]
    signers: Annotated[list[str], Field(description="Ids of the signers whose signatures count.")]
    signatures: list[ApprovalSignature]
    operator_accepted: Annotated[bool, Field(description="The operator agreed, which a grey-listed address needs.")]
    signing_text: Annotated[
        str,
        Field(
            description="What a signer signs to accept: id, network, coin, amount and to_address, one a line, LF between, UTF-8.",
            examples=["wd_01kabc\nethereum\neth\n0.5\n0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
        ),
    ]


class Withdrawal(Record):
    """One payment out."""

    id: Annotated[str, Field(examples=["wd_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    status: Status
    network: Annotated[str, Field(examples=["ethereum"])]
    coin: Annotated[str, Field(examples=["eth"])]
    amount: Money
    fee: Annotated[Money, Field(description="The estimate until it is confirmed, then what was paid, in `fee_coin`.")]
    fee_coin: Annotated[str, Field(examples=["eth"])]
    fee_charged: Annotated[
        Money, Field(description="What the merchant is debited for the fee, in `coin`, where the merchant pays it.")
    ] = None  # type: ignore[assignment]
    to_address: str
    from_address: str = None  # type: ignore[assignment]
    priority: Priority
    pending_reason: Annotated[
        Literal["approval", "liquidity", "risk"], Field(description="What a pending one waits for, if it waits for something.")
    ] = None  # type: ignore[assignment]
    failure_reason: str = None  # type: ignore[assignment]
    transaction_hash: str = None  # type: ignore[assignment]
    confirmations: int
    block_number: int = None  # type: ignore[assignment]
    metadata: Metadata = None  # type: ignore[assignment]
    batch_id: Annotated[str, Field(description="The batch that it came with.")] = None  # type: ignore[assignment]
    approval: WithdrawalApproval = None  # type: ignore[assignment]
    created_at: Time
    updated_at: Time
    confirmed_at: Time = None  # type: ignore[assignment]


class CreatedWithdrawal(Withdrawal):
    """A withdrawal as its creation answers it."""

    estimated_confirmation_time: Annotated[Time, Field(description="The longer end of the priority's confirmation time.")]


class CreatedBatch(Record):
    """A batch as its creation answers it."""

    batch_id: Annotated[str, Field(examples=["wdb_01kab7n3q2w8z5r6t4y1v9c000"])]
    withdrawals: Annotated[list[CreatedWithdrawal], Field(description="One for each output, in their order.")]


class CreatedWithdrawals(RootModel[CreatedWithdrawal | CreatedBatch]):
    """One withdrawal, or a batch of them: as was asked for."""


class WithdrawalFee(Record):
    priority: Priority
    multiplier: Annotated[float, Field(examples=[1.5])]
    fee: Annotated[Money | None, Field(description="In `fee_coin`; null while there is no quote.")]
    feeUSD: Annotated[Usd | None, Field(description="Null without a quote or a fresh rate.")]
    confirmation_time: Annotated[str, Field(examples=["5-15 minutes"])]


class WithdrawalFees(Record):
    """What a withdrawal of a coin costs now."""

    network: str
    coin: str
    fee_coin: Annotated[str, Field(description="The native coin, which fees are paid in.", examples=["eth"])]
    estimates: list[WithdrawalFee]
