"""Withdrawals, batches, fees."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from chalicelib.api.records.base import HASH, FiatValue, Metadata, Money, Record, Time, Usd

Status = Literal["pending", "processing", "broadcasting", "confirming", "confirmed", "failed", "cancelled"]
Priority = Literal["low", "normal", "high", "urgent"]


class ApprovalSignature(Record):
    """A signature that counts."""

    signer_id: Annotated[str, Field(description="Whose it is.", examples=["alice"])]
    signed_at: Annotated[Time, Field(description="When it came.")]


class SignerKey(Record):
    """A signer, and the key that its signatures are verified with."""

    id: Annotated[str, Field(description="Whose it is.", examples=["alice"])]
    public_key: Annotated[
        str,
        Field(
            description="Ed25519, 32 bytes in hex.", examples=["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]
        ),
    ]


class WithdrawalApproval(Record):
    """What the withdrawal needs before anything is done with it."""

    reasons: Annotated[
        list[Literal["multisig", "grey_list", "risk"]], Field(description="Why somebody has to agree.", examples=[["multisig"]])
    ]
    given: Annotated[bool, Field(description="Everybody who has to has agreed.")]
    required_signatures: Annotated[int, Field(description="Signatures of different signers that are needed.", examples=[2])]
    signers: Annotated[list[str], Field(description="Ids of the signers whose signatures count.", examples=[["alice", "bob"]])]
    signer_keys: Annotated[
        list[SignerKey],
        Field(description="The same signers with their keys, as they were configured when the withdrawal was created."),
    ]
    signatures: Annotated[list[ApprovalSignature], Field(description="Those that are there already.")]
    operator_accepted: Annotated[bool, Field(description="The operator agreed, which a grey-listed address or a risk needs.")]
    signing_text: Annotated[
        str,
        Field(
            description="What a signer signs to accept: id, network, coin, amount and to_address, one a line, LF between, UTF-8.",
            examples=["wd_01kabc\nethereum\neth\n0.5\n0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
        ),
    ]


class RiskFinding(Record):
    """Something that speaks against a withdrawal."""

    name: Annotated[
        Literal["new_address", "unusual_amount", "velocity", "look_alike", "contract", "own_address", "repeated_failures"],
        Field(
            description="`new_address`: first paid less than a day ago, and not whitelisted for an hour. `unusual_amount`: larger "
            "than every one before, and many times the typical one. `velocity`: too many payments to new addresses in an hour or "
            "a day, or too much in all. `look_alike`: begins and ends like another address that was paid or whitelisted. "
            "`contract`: a contract that is new. `own_address`: a deposit address of the same merchant. `repeated_failures`: "
            "payments to it failed on the chain.",
            examples=["look_alike"],
        ),
    ]
    weight: Annotated[int, Field(description="How much it counts.", examples=[100])]


class WithdrawalRisk(Record):
    """What was found about a withdrawal when its payment was about to begin."""

    score: Annotated[
        int,
        Field(description="The sum of the weights. From the deployment's threshold on it waits for the operator.", examples=[100]),
    ]
    findings: Annotated[list[RiskFinding], Field(description="What it is made of.")]


class Withdrawal(Record):
    """One payment out."""

    id: Annotated[str, Field(description="Names the withdrawal.", examples=["wd_01kab7n3q2w8z5r6t4y1v9c0x3"])]
    status: Annotated[
        Status,
        Field(
            description="`pending`: waits. `processing`: is prepared. `broadcasting`: is sent to the network. `confirming`: is "
            "seen there. `confirmed`, `failed` and `cancelled` are final."
        ),
    ]
    network: Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
    coin: Annotated[str, Field(description="The coin's slug.", examples=["eth"])]
    amount: Money
    fee: Annotated[
        Money, Field(description="The estimate until it is confirmed, then what was paid, in `fee_coin`.", examples=["0.00042"])
    ]
    fee_coin: Annotated[str, Field(description="The coin of the fee: the network's own.", examples=["eth"])]
    fee_charged: Annotated[
        Money,
        Field(
            description="What is reserved beside `amount`, in `coin`, and at the end what was debited of it; the rest is available "
            "again. Where the merchant pays the fee: the real fee at the rate of the reservation, never more than was reserved. "
            "Where `to_address` is one of this service, whoever pays fees: that, and what collecting one deposit costs."
        ),
    ] = None  # type: ignore[assignment]
    to_address: Annotated[str, Field(description="Whom it pays.", examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    from_address: Annotated[
        str,
        Field(
            description="The hot wallet that pays it, once that is chosen.", examples=["0x52908400098527886E0F7030069857D2E4169EE7"]
        ),
    ] = None  # type: ignore[assignment]
    priority: Annotated[Priority, Field(description="What was asked for.", examples=["normal"])]
    pending_reason: Annotated[
        Literal["approval", "liquidity", "risk", "halted", "fees", "suspended"],
        Field(
            description="What a pending one waits for, if for something: an approval; money in the hot wallet; `risk`: the "
            "operator's decision about what `risk` of the record says, or its merchant's balance of the coin to be no longer "
            "negative; `halted`: the operator to let payments go on; `fees`: the network's fee to fall (it fails after 24 hours, "
            "and the money is available again), its merchant's fee budget of the next day, or the operator's word; `suspended`: "
            "the operator to resume its merchant."
        ),
    ] = None  # type: ignore[assignment]
    merchant_id: Annotated[
        str,
        Field(
            description="Whose it is: in `GET /withdrawals/requests`, for admin keys.", examples=["mch_01jd2w3x4y5z6a7b8c9d0e1f2g"]
        ),
    ] = None  # type: ignore[assignment]
    failure_reason: Annotated[str, Field(description="Why it failed.", examples=["rejected: unknown payee"])] = None  # type: ignore[assignment]
    transaction_hash: Annotated[
        str,
        Field(
            description="On the chain, once it was broadcast. A payment that no block takes is replaced by one with a higher fee: "
            "this is the newest one's until one of them is in a block, then that one's.",
            examples=[HASH],
        ),
    ] = None  # type: ignore[assignment]
    confirmations: Annotated[int, Field(description="Blocks on it, its own included.", examples=[0])]
    block_number: Annotated[int, Field(description="The block that it is in.", examples=[19_000_000])] = None  # type: ignore[assignment]
    metadata: Metadata = None  # type: ignore[assignment]
    batch_id: Annotated[str, Field(description="The batch that it came with.", examples=["wdb_01kab7n3q2w8z5r6t4y1v9c000"])] = None  # type: ignore[assignment]
    approval: WithdrawalApproval = None  # type: ignore[assignment]
    risk: WithdrawalRisk = None  # type: ignore[assignment]
    created_at: Time
    updated_at: Time
    confirmed_at: Time = None  # type: ignore[assignment]
    fiat_value: Annotated[
        FiatValue,
        Field(description="What it was worth when it was confirmed; absent before, in events, and without a fresh rate."),
    ] = None  # type: ignore[assignment]


class CreatedWithdrawal(Withdrawal):
    """A withdrawal as its creation answers it."""

    estimated_confirmation_time: Annotated[
        Time, Field(description="The longer end of the priority's confirmation time.", examples=["2026-05-01T12:30:00.000Z"])
    ]


class CreatedBatch(Record):
    """A batch as its creation answers it."""

    batch_id: Annotated[str, Field(description="Names the batch.", examples=["wdb_01kab7n3q2w8z5r6t4y1v9c000"])]
    withdrawals: Annotated[list[CreatedWithdrawal], Field(description="One for each output, in their order.")]


class CreatedWithdrawals(RootModel[CreatedWithdrawal | CreatedBatch]):
    """One withdrawal, or a batch of them: as was asked for."""


class WithdrawalFee(Record):
    """What a priority costs, and how long it takes."""

    priority: Annotated[Priority, Field(description="The priority.", examples=["high"])]
    multiplier: Annotated[float, Field(description="What the usual fee is multiplied by.", examples=[1.5])]
    fee: Annotated[Money | None, Field(description="In `fee_coin`; null while there is no quote.", examples=["0.00063"])]
    feeUSD: Annotated[Usd | None, Field(description="Null without a quote or a fresh rate.", examples=[1.89])]
    confirmation_time: Annotated[str, Field(description="How long that priority takes.", examples=["5-15 minutes"])]


class WithdrawalFees(Record):
    """What a withdrawal of a coin costs now."""

    network: Annotated[str, Field(description="The network's slug.", examples=["ethereum"])]
    coin: Annotated[str, Field(description="The coin's slug.", examples=["eth"])]
    fee_coin: Annotated[str, Field(description="The native coin, which fees are paid in.", examples=["eth"])]
    estimates: Annotated[list[WithdrawalFee], Field(description="One for each priority.")]


class Switch(Record):
    """Whether payments go out. All but `stopped` are null while nobody has ever stopped any."""

    stopped: Annotated[bool, Field(description="True: nothing is paid out.", examples=[True])]
    reason: Annotated[str | None, Field(description="Why, in the words of who changed it.", examples=["key leaked"])]
    changed_at: Annotated[Time | None, Field(description="When it was changed last.")]
    changed_by: Annotated[
        str | None, Field(description="The id of the key that did, or `operator`: the command line.", examples=["key_01kab7n3q2w8"])
    ]
