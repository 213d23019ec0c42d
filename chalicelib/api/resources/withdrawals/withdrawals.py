"""Withdrawals in the envelope form: one or a batch, fees, reads, cancelling."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from pydantic_core import PydanticCustomError

from chalicelib.api.coins_by_name import amount_problem, chosen_coin, coin_network
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, CoinSlug, Metadata, NetworkSlug, PositiveAmount, slug
from chalicelib.api.lists import ListQuery
from chalicelib.api.lists.withdrawals import WITHDRAWALS
from chalicelib.api.models import MoneyRequest, Query, Request
from chalicelib.api.problems import shown
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue, Coin
from chalicelib.domain.chain import FeeQuote
from chalicelib.domain.errors import FieldProblem, InvalidParameter
from chalicelib.domain.money import format_units, parse_units
from chalicelib.domain.times import iso
from chalicelib.domain.withdrawals.batches import MOST_OUTPUTS, WithdrawalBatch
from chalicelib.domain.withdrawals.withdrawals import FEE_TENTHS, MINUTES, PRIORITIES, Priority, Withdrawal, fee_at
from chalicelib.usecases.base.views import Views
from chalicelib.usecases.withdrawals.facts import Output

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SINGLE = ("network", "coin", "amount", "to_address")
_PRIORITY = Field(description="Multiplies the fee by 0.8, 1, 1.5 or 2.", examples=["normal"])


class BatchOutputRequest(Request):
    """One payment of a batch."""

    to_address: Annotated[AddressText, Field(examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
    amount: PositiveAmount


class BatchRequest(Request):
    """Many payments of one coin."""

    network: NetworkSlug
    coin: CoinSlug
    outputs: Annotated[
        list[BatchOutputRequest],
        Field(min_length=1, max_length=MOST_OUTPUTS, description="1 to 100 payments. The same address may be there several times."),
    ]
    priority: Annotated[Priority, _PRIORITY] = "normal"


class WithdrawalCreate(MoneyRequest):
    """One withdrawal, or a batch of them under `batch_withdrawal`, with nothing beside it."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": list(_SINGLE), "not": {"required": ["batch_withdrawal"]}},
                {"required": ["batch_withdrawal"], "maxProperties": 1},
            ],
            "examples": [
                {"network": "ethereum", "coin": "eth", "amount": "0.5", "to_address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}
            ],
        }
    )

    network: NetworkSlug | None = None
    coin: CoinSlug | None = None
    amount: PositiveAmount | None = None
    to_address: Annotated[AddressText, Field(examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])] | None = None
    from_address_id: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=128,
                description="The address of a hot wallet of the network.",
                examples=["0x52908400098527886E0F7030069857D2E4169EE7"],
            ),
        ]
        | None
    ) = None
    priority: Annotated[Priority, _PRIORITY] = "normal"
    metadata: Metadata | None = None
    batch_withdrawal: Annotated[BatchRequest | None, Field(description="Many at once, in the place of all the others.")] = None

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        if sent.get("batch_withdrawal") is not None:
            beside = [name for name in sent if name != "batch_withdrawal" and name in cls.model_fields and name not in wrong]
            problems = [FieldProblem(name, shown(name, sent[name]), ("must not be beside batch_withdrawal",)) for name in beside]
            return problems + _check_outputs(sent["batch_withdrawal"], catalogue)
        missing = [name for name in _SINGLE if sent.get(name) is None and name not in wrong]
        problems = [FieldProblem(name, None, ("is required",)) for name in missing]
        return problems + super().cross(sent, wrong | set(missing), catalogue)


def _check_outputs(batch: Any, catalogue: Catalogue) -> list[FieldProblem]:
    """The coin must be on the network, and every amount fit its decimals. What the model itself refuses is passed over."""
    if not isinstance(batch, dict) or not isinstance(batch.get("coin"), str) or not isinstance(batch.get("network"), str):
        return []
    if catalogue.network(slug(batch["network"])) is None or slug(batch["coin"]) not in catalogue.slugs():
        return []
    try:
        coin = chosen_coin(catalogue, "batch_withdrawal.coin", batch["coin"], batch["network"])
    except InvalidParameter as error:
        return list(error.problems)
    problems: list[FieldProblem] = []
    outputs = batch.get("outputs")
    for place, output in enumerate(outputs[: MOST_OUTPUTS + 1] if isinstance(outputs, list) else []):
        amount = output.get("amount") if isinstance(output, dict) else None
        try:
            words = amount_problem(coin, amount)
        except PydanticCustomError:
            continue
        if words is not None:
            problems.append(FieldProblem(f"batch_withdrawal.outputs.{place}.amount", shown("amount", amount), (words,)))
    return problems


class FeesQuery(Query):
    network: NetworkSlug | None = None
    coin: CoinSlug


def created_record(views: Views, withdrawal: Withdrawal) -> dict[str, Any]:
    """The record as creation answers it: with the longer end of the published confirmation time."""
    expected = iso(withdrawal.created_at + MINUTES[withdrawal.priority][1] * 60_000)
    return {**views.withdrawal(withdrawal), "estimated_confirmation_time": expected}


def create_one(
    ctx: Ctx,
    coin: Coin,
    output: Output,
    *,
    priority: Priority = "normal",
    metadata: dict[str, Any] | None = None,
    from_address: str | None = None,
) -> Answer:
    """Both published forms of one withdrawal."""
    creating = ctx.services.withdrawals.creating(
        ctx.tenant, coin, output, priority=priority, metadata=metadata, from_address=from_address
    )
    return ctx.create(creating, lambda withdrawal: created_record(ctx.views, withdrawal))


@endpoint(
    "POST", "/withdrawals", family="envelope", permission="withdrawals:create", rate_class="withdrawals.create",
    body=WithdrawalCreate, status=201, creates=True, answer="withdrawals.CreatedWithdrawals",
    summary="Pay out, to one address or to many",
)  # fmt: skip
def create_withdrawal(ctx: Ctx, body: WithdrawalCreate) -> Answer:
    """The amount is reserved (`frozen`) with the answer. A batch answers `{ batch_id, withdrawals: [...] }` instead of the record:
    all its outputs are accepted, or none; each then lives by itself. Limits and the balance are checked by the batch's total, and
    per whitelist address by what goes there; multisig's `threshold_amount` by each output. In the minute window of a live key a
    batch counts as its outputs, and never as more than the window holds; a test key's windows, and the hour's and the day's, count
    requests. A batch that is answered again by its Idempotency-Key counts as one request. Merchants are paid by turns: a batch
    holds up no other merchant's payments.

    A withdrawal that needs an approval (multisig, grey list) answers `status: pending`, `pending_reason: approval` and what is
    needed in `approval`. Right before its payment begins it is screened for risk (amount against the merchant's history, new
    address, many payments to new addresses, look-alike of an address that was paid or whitelisted, contract, repeated failures):
    above a threshold it waits with `pending_reason: risk` until the operator decides. While the operator has stopped payments
    withdrawals are still taken, and wait with `pending_reason: halted`. A wallet of the service itself, or a registered token's
    contract, as destination is a VALIDATION_ERROR, and so is a deposit address of this service on a network where it is not
    watched: what comes there is seen by nobody. Elsewhere a deposit address of this service, of whichever merchant, is charged
    whole: the fee of the payment and what collecting one deposit of the coin costs now are reserved beside the amount
    (`fee_charged`), whoever pays fees.
    While the network has no fee estimate, or a coin no fresh rate, that is a VALIDATION_ERROR. A malformed destination is
    `INVALID_ADDRESS`; in a batch `details.fields` names all of them."""
    if body.batch_withdrawal is not None:
        return _create_batch(ctx, body.batch_withdrawal)
    assert body.network and body.coin and body.amount and body.to_address  # noqa: S101 - `cross` has seen to it
    coin = chosen_coin(ctx.catalogue, "coin", body.coin, body.network)
    output = Output(body.to_address, parse_units(body.amount, coin.decimals))
    return create_one(ctx, coin, output, priority=body.priority, metadata=body.metadata, from_address=body.from_address_id)


def _create_batch(ctx: Ctx, asked: BatchRequest) -> Answer:
    ctx.weigh(len(asked.outputs))
    coin = chosen_coin(ctx.catalogue, "batch_withdrawal.coin", asked.coin, asked.network)
    where = "batch_withdrawal.outputs"
    outputs = [
        Output(o.to_address, parse_units(o.amount, coin.decimals), f"{where}.{n}.to_address", f"{where}.{n}.amount")
        for n, o in enumerate(asked.outputs)
    ]

    def record(batch: WithdrawalBatch) -> dict[str, Any]:
        return {"batch_id": batch.id, "withdrawals": [created_record(ctx.views, member) for member in batch.members()]}

    return ctx.create(ctx.services.withdrawals.creating_batch(ctx.tenant, coin, outputs, priority=asked.priority), record)


@endpoint(
    "GET", "/withdrawals/fees", family="envelope", permission="withdrawals:read", query=FeesQuery,
    answer="withdrawals.WithdrawalFees", summary="What a withdrawal costs now, by priority",
)  # fmt: skip
def withdrawal_fees(ctx: Ctx, query: FeesQuery) -> Answer:
    """From the quote that the network's poll stores once a minute: no request waits for a node. `fee` is null while there is
    none (the network has not been polled yet), `feeUSD` also without a fresh rate. Without `network` the coin's first active
    one counts."""
    coin = chosen_coin(ctx.catalogue, "coin", query.coin, query.network)
    network = coin_network(coin)
    fee_coin = ctx.catalogue.native(network)
    quote = ctx.services.store.get(FeeQuote, network=coin.network)
    base = None if quote is None else quote.fees.get(coin.slug)
    rates = None if base is None else ctx.services.rates(ctx.realm)

    def estimate(priority: Priority) -> dict[str, Any]:
        fee = None if base is None else fee_at(base, priority)
        least, most = MINUTES[priority]
        return {
            "priority": priority,
            "multiplier": FEE_TENTHS[priority] / 10,
            "fee": None if fee is None else format_units(fee, fee_coin.decimals),
            "feeUSD": None if fee is None or rates is None else rates.usd(fee_coin.slug, fee, fee_coin.decimals, ctx.now_ms),
            "confirmation_time": f"{least}-{most} minutes",
        }

    estimates = [estimate(priority) for priority in PRIORITIES]
    return Answer({"network": network, "coin": coin.slug, "fee_coin": fee_coin.slug, "estimates": estimates})


@endpoint(
    "GET", "/withdrawals", family="envelope", permission="withdrawals:read", query=WITHDRAWALS,
    answer="list[withdrawals.Withdrawal]", summary="The merchant's withdrawals, newest first",
)  # fmt: skip
def list_withdrawals(ctx: Ctx, query: ListQuery) -> Answer:
    """`from_date` and `to_date` are about `created_at` and inclusive; a day means all of it, in UTC."""
    found, pagination = WITHDRAWALS.page(ctx, query)
    return Answer([ctx.views.withdrawal(w) for w in found], pagination)


@endpoint(
    "GET", "/withdrawals/{id}", family="envelope", permission="withdrawals:read", answer="withdrawals.Withdrawal",
    summary="One withdrawal",
)  # fmt: skip
def get_withdrawal(ctx: Ctx) -> Answer:
    """Those of a batch are found as soon as the batch is accepted."""
    return Answer(ctx.views.withdrawal(ctx.services.withdrawals.get(ctx.tenant, ctx.param("id"))))


@endpoint(
    "DELETE", "/withdrawals/{id}", family="envelope", permission="withdrawals:write", answer="withdrawals.Withdrawal",
    summary="Cancel a pending withdrawal",
    shows={"status": "cancelled"},
)  # fmt: skip
def cancel_withdrawal(ctx: Ctx) -> Answer:
    """Also one that waits for an approval or for liquidity. The money is available again, and the limits count it no more."""
    return Answer(ctx.views.withdrawal(ctx.services.withdrawals.cancel(ctx.tenant, ctx.param("id"))))
