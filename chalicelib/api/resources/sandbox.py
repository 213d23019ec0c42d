"""Control of the simulated networks, for developers with test keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from chalicelib.api.coins_by_name import chosen_coin
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import AddressText, CoinSlug, NetworkSlug, PositiveAmount, amount_text
from chalicelib.api.invoice_fields import FiatCurrency
from chalicelib.api.models import MoneyRequest, Request
from chalicelib.api.problems import shown
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import MOST_CONFIRMATIONS, Catalogue
from chalicelib.domain.catalogue.fiats import FIATS, unknown_fiat
from chalicelib.domain.catalogue.sandbox_rates import OwnRate
from chalicelib.domain.chain import SandboxClock
from chalicelib.domain.errors import BusinessRule, FieldProblem
from chalicelib.domain.money import parse_units
from chalicelib.domain.times import iso
from chalicelib.usecases.catalogue.coins import MOST_DECIMALS, MOST_NAME, MOST_SYMBOL, facts_problem
from chalicelib.usecases.catalogue.rates import LEAST, MOST
from chalicelib.usecases.ports.tokens import TokenFacts
from chalicelib.usecases.sandbox.clock import MOST_AT_ONCE
from chalicelib.usecases.sandbox.mining_budget import BLOCKS_A_CALL


class SandboxDeposit(MoneyRequest):
    """A payment that shall be mined."""

    address: Annotated[AddressText, Field(description="Any address of that network, of ours or not.")]
    network: NetworkSlug
    coin: CoinSlug
    amount: PositiveAmount
    from_: Annotated[AddressText | None, Field(alias="from", description="Whom it shall seem to come from.")] = None


class SandboxToken(Request):
    """A token that shall be there."""

    network: NetworkSlug
    symbol: Annotated[str, Field(min_length=1, max_length=MOST_SYMBOL, description="As wallets show it.", examples=["GLD"])]
    name: Annotated[str, Field(min_length=1, max_length=MOST_NAME, description="What people call it.", examples=["Gold Token"])]
    decimals: Annotated[int, Field(ge=0, le=MOST_DECIMALS, description="Digits behind the point.", examples=[6])]


class SandboxBlocks(Request):
    """Blocks that shall be mined."""

    network: NetworkSlug
    count: Annotated[int, Field(ge=1, le=BLOCKS_A_CALL, description="How many.", examples=[12])]


class SandboxReorg(Request):
    """Blocks that shall be replaced."""

    network: NetworkSlug
    depth: Annotated[
        int,
        Field(
            ge=1,
            le=2 * MOST_CONFIRMATIONS,
            description="At most twice the network's confirmations, or 64 where that is more; bsc and polygon: 256.",
            examples=[3],
        ),
    ]
    remine: Annotated[bool, Field(description="Mine what falls out again, in the new blocks of the same numbers.")] = False


class SandboxOutcome(Request):
    """What shall become of a withdrawal."""

    outcome: Annotated[
        Literal["confirm", "fail", "stick"],
        Field(description="`confirm`: it is mined and confirmed. `fail`: it is mined and fails. `stick`: no block takes it."),
    ]


class SandboxAdvance(Request):
    """How far the time shall move."""

    advance: Annotated[int, Field(ge=1, le=MOST_AT_ONCE, description="Seconds to go forward.", examples=[3_600])]


class SandboxRate(Request):
    """What a coin shall be worth."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"coin": "eth", "fiat": "EUR", "value": "2700"}]})

    coin: CoinSlug
    fiat: FiatCurrency
    value: Annotated[
        PositiveAmount | None,
        Field(description="Units of the currency for one coin, 10^-12 to 10^12; null: the usual rate again.", examples=["2700"]),
    ] = None
    stale: Annotated[bool, Field(description="The usual rate shall count as too old.", examples=[True])] = False

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        problems = []
        if "value" not in sent and sent.get("stale") is not True and "stale" not in wrong:
            problems.append(FieldProblem("value", None, ("is required, or stale: true; null takes the rate back",)))
        value = sent.get("value")
        if value is None or "value" in wrong:
            return problems
        if sent.get("stale") is True:
            problems.append(FieldProblem("stale", True, ("must not be there together with a value",)))
        if not LEAST <= Decimal(amount_text(value)) <= MOST:
            problems.append(FieldProblem("value", shown("value", value), ("must be from 10^-12 to 10^12",)))
        return problems


def _token(ctx: Ctx) -> str | None:
    """The chain is outside of our transactions: what it does under a token it does once, however often it is asked."""
    return None if ctx.idempotency_key is None else f"{ctx.tenant}|{ctx.idempotency_key}|{ctx.request_hash}"


@endpoint(
    "POST", "/sandbox/deposits", family="envelope", permission="sandbox:write", realm="test", body=SandboxDeposit, status=201,
    creates=True, summary="Pay into any address of a simulated network",
    answer="sandbox.Deposit", errors=("INVALID_ADDRESS",),
)  # fmt: skip
def sandbox_deposit(ctx: Ctx, body: SandboxDeposit) -> Answer:
    """Mined at once, in a block of its own; credited after the network's confirmations (`POST /sandbox/blocks`)."""
    coin = chosen_coin(ctx.catalogue, "coin", body.coin, body.network)
    units = parse_units(body.amount, coin.decimals)
    mined = ctx.services.sandbox.deposit(coin.network, body.address, coin, units, body.from_, _token(ctx))
    return ctx.done(mined)


@endpoint(
    "POST", "/sandbox/tokens", family="envelope", permission="sandbox:write", realm="test", body=SandboxToken, status=201,
    creates=True, summary="Make a token contract on a simulated network", answer="coins.SandboxContract",
)  # fmt: skip
def sandbox_token(ctx: Ctx, body: SandboxToken) -> Answer:
    """The contract says of itself what was sent. No coin is registered for it: an admin key does that with `POST /v1/coins`,
    and `PUT /v1/coins/precreate-token` shows what that would make. Bitcoin and litecoin have no tokens."""
    facts = TokenFacts(body.symbol, body.name, body.decimals)
    problem = facts_problem(facts)
    if problem is not None:
        raise BusinessRule("symbol" if "symbol" in problem else "name", problem)
    made = ctx.services.sandbox.token(ctx.catalogue.networks[body.network].id, facts, _token(ctx))
    return ctx.done(made)


@endpoint(
    "POST", "/sandbox/blocks", family="envelope", permission="sandbox:write", realm="test", body=SandboxBlocks, status=201,
    creates=True, summary="Mine blocks on a simulated network", answer="sandbox.Blocks",
)  # fmt: skip
def sandbox_blocks(ctx: Ctx, body: SandboxBlocks) -> Answer:
    """At once. Payments that wait get their confirmations, and are credited by the next look at the network.

    All merchants of a deployment share its simulated networks: each can have 10,000 blocks an hour there, those that replace
    others (`POST /sandbox/reorg`) among them. More is VALIDATION_ERROR.
    """
    mined = ctx.services.sandbox.blocks(ctx.catalogue.networks[body.network].id, body.count, _token(ctx), ctx.tenant)
    return ctx.done(mined)


@endpoint(
    "POST", "/sandbox/reorg", family="envelope", permission="sandbox:write", realm="test", body=SandboxReorg, status=201,
    creates=True, summary="Replace the last blocks of a simulated network", answer="sandbox.Reorganisation",
)  # fmt: skip
def sandbox_reorg(ctx: Ctx, body: SandboxReorg) -> Answer:
    """What fell out stays out, unless `remine`. The new blocks, one more than the old ones, are of the merchant's 10,000 an
    hour (`POST /sandbox/blocks`)."""
    done = ctx.services.sandbox.reorg(ctx.catalogue.networks[body.network].id, body.depth, body.remine, _token(ctx), ctx.tenant)
    return ctx.done(done)


@endpoint(
    "POST", "/sandbox/withdrawals/{id}", family="envelope", permission="sandbox:write", realm="test", body=SandboxOutcome,
    summary="Decide what the simulated chain makes of a withdrawal", answer="sandbox.Outcome",
)  # fmt: skip
def sandbox_outcome(ctx: Ctx, body: SandboxOutcome) -> Answer:
    """`confirm`: mined, with all its confirmations. `fail`: mined and failed, with all of them. `stick`: in no block until it is
    told otherwise; meanwhile the service replaces it as it would a real one, so that its hash and fee change. Said before the
    payment is sent, it is remembered for a day; after its last confirmation it is too late.
    """
    decided = ctx.services.sandbox.outcome(ctx.tenant, ctx.param("id"), body.outcome)
    ctx.note()
    return Answer(decided)


@endpoint(
    "POST", "/sandbox/clock", family="envelope", permission="sandbox:write", realm="test", body=SandboxAdvance, status=201,
    creates=True, summary="Move the sandbox's time forward", answer="sandbox.Clock",
)  # fmt: skip
def sandbox_clock(ctx: Ctx, body: SandboxAdvance) -> Answer:
    """Invoices expire, payments come late and rolling limits are over as if the time had passed. Everything that test keys see
    lives in that time; rate limits, keys' expiry, Idempotency-Key and webhooks' signatures and retries stay on real time. Each
    simulated network mines one block of the new time and no more, however far the clock is moved.

    All merchants of a deployment share its simulated networks, and so their clock. It never goes back; two advances add up. It
    can be moved by a year a call and by ten years in all (a demo's by a week, until its next reset).
    """

    def render(moved: SandboxClock) -> dict[str, Any]:
        return {"now": iso(ctx.services.clock.now_ms() + moved.ahead_ms), "advanced": moved.ahead_ms // 1000}

    answer = ctx.create(ctx.services.sandbox_time.advancing(body.advance), render)
    ctx.services.sandbox.catch_up()
    return answer


@endpoint(
    "POST", "/sandbox/rates", family="envelope", permission="sandbox:write", realm="test", body=SandboxRate, status=201,
    creates=True, summary="Set a rate of the merchant's own sandbox", answer="sandbox.OwnRate",
)  # fmt: skip
def sandbox_rate(ctx: Ctx, body: SandboxRate) -> Answer:
    """From now on, for what this merchant prices in that currency; quotes made before keep theirs. `value` null: the usual rate
    again. `stale`: the rate counts as older than 15 minutes, so that nothing is priced by it."""
    if body.fiat not in FIATS:
        raise BusinessRule("fiat", unknown_fiat())
    rate = OwnRate(body.coin, body.fiat, body.value, body.stale)
    return ctx.create(ctx.services.rate_setter.setting(ctx.tenant, rate), asdict)
