"""The simulated networks, as developers with test keys move them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import AddressText, CoinSlug, MoneyRequest, NetworkSlug, PositiveAmount, Request, chosen_coin
from chalicelib.api.routes import endpoint
from chalicelib.domain.money import parse_units


class SandboxDeposit(MoneyRequest):
    address: AddressText
    network: NetworkSlug
    coin: CoinSlug
    amount: PositiveAmount
    from_: Annotated[AddressText | None, Field(alias="from")] = None


class SandboxBlocks(Request):
    network: NetworkSlug
    count: Annotated[int, Field(ge=1, le=10_000)]


class SandboxReorg(Request):
    network: NetworkSlug
    depth: Annotated[int, Field(ge=1)]
    remine: bool = False


class SandboxOutcome(Request):
    outcome: Literal["confirm", "fail", "stick"]


@endpoint(
    "POST", "/sandbox/deposits", family="envelope", permission="sandbox:write", realm="test", body=SandboxDeposit, status=201,
    creates=True, summary="Pay into any address of a simulated network",
)  # fmt: skip
def sandbox_deposit(ctx: Ctx, body: SandboxDeposit) -> Answer:
    coin = chosen_coin(ctx.catalogue, "coin", body.coin, body.network)
    # The chain is outside of our transactions: the token makes sure that it pays once per idempotency key.
    token = None if ctx.idempotency_key is None else f"{ctx.tenant}|{ctx.idempotency_key}|{ctx.request_hash}"
    units = parse_units(body.amount, coin.decimals)
    mined = ctx.services.sandbox.deposit(coin.network, body.address, coin, units, body.from_, token)
    return ctx.once(lambda record: record).done(mined)


@endpoint(
    "POST", "/sandbox/blocks", family="envelope", permission="sandbox:write", realm="test", body=SandboxBlocks, status=201,
    summary="Mine blocks on a simulated network",
)  # fmt: skip
def sandbox_blocks(ctx: Ctx, body: SandboxBlocks) -> Answer:
    return Answer(ctx.services.sandbox.blocks(ctx.catalogue.networks[body.network].id, body.count))


@endpoint(
    "POST", "/sandbox/reorg", family="envelope", permission="sandbox:write", realm="test", body=SandboxReorg, status=201,
    summary="Replace the last blocks of a simulated network",
)  # fmt: skip
def sandbox_reorg(ctx: Ctx, body: SandboxReorg) -> Answer:
    """What fell out stays out, unless `remine`."""
    return Answer(ctx.services.sandbox.reorg(ctx.catalogue.networks[body.network].id, body.depth, body.remine))


@endpoint(
    "POST", "/sandbox/withdrawals/{id}", family="envelope", permission="sandbox:write", realm="test", body=SandboxOutcome,
    summary="Decide what the simulated chain makes of a withdrawal",
)  # fmt: skip
def sandbox_outcome(ctx: Ctx, body: SandboxOutcome) -> Answer:
    return Answer(ctx.services.sandbox.outcome(ctx.tenant, ctx.param("id"), body.outcome))
