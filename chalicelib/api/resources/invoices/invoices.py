"""Invoices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from chalicelib.api.accepted_coins import Accept, choosable
from chalicelib.api.coins_by_name import chosen_coin
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import CoinSlug, NetworkSlug, PositiveAmount, matching, positive_amount
from chalicelib.api.invoice_fields import CancelUrl, FiatAmount, FiatCurrency, Metadata, RedirectUrl, price_problems
from chalicelib.api.lists import ListQuery
from chalicelib.api.lists.coverage import covered
from chalicelib.api.lists.invoices import INVOICES
from chalicelib.api.models import CamelRequest, MoneyRequest, Query
from chalicelib.api.problems import shown
from chalicelib.api.resources.invoices.invoice_settings import ExpirySeconds
from chalicelib.api.resources.invoices.invoice_terms import InvoiceTerms
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.catalogue.fiats import fiat_problem
from chalicelib.domain.errors import FieldProblem, InvalidParameter, NotFound
from chalicelib.domain.invoices.invoices import Invoice
from chalicelib.domain.money import parse_units
from chalicelib.usecases.invoices.choosable import Offer
from chalicelib.usecases.invoices.invoices import FiatPrice, Wishes

if TYPE_CHECKING:
    from chalicelib.usecases.base.creation import Creation
    from chalicelib.usecases.invoices.invoices import NewInvoice
    from chalicelib.usecases.webhooks.hooks import NewHook

ExternalId = Annotated[
    str, Field(min_length=1, max_length=255, description="The merchant's own id, unique among its invoices.", examples=["order-7"])
]
InvoiceId = Annotated[
    str, Field(min_length=1, max_length=128, description="The invoice's id.", examples=["inv_01jc9w3zj8q2m4k6n8r0t2v4x6"])
]

_HOOK_URL = Field(
    description="Told of every event of this invoice and of its refunds: https, a public host, no user name and no fragment.",
    examples=["https://shop.example/hook"],
    json_schema_extra={"type": ["string", "null"], "format": "uri", "maxLength": 2048},
)
_HOOK_SECRET = Field(
    description="16 to 256 printable characters; `whsec_` must be followed by base64. Made by the service when none is given.",
    examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    json_schema_extra={"type": ["string", "null"], "minLength": 16, "maxLength": 256},
)


def _decimals_problems(fiat: Any, currency: Any) -> list[FieldProblem]:
    """The amount has more digits than its currency: of a well-formed pair alone."""
    problem = fiat_problem(positive_amount(fiat), str(currency).upper())
    return [] if problem is None else [FieldProblem("fiatAmount", shown("fiatAmount", fiat), (problem,))]


class InvoiceCreate(MoneyRequest, InvoiceTerms):
    """What shall be paid: `amount`, or `fiatAmount` with `fiatCurrency`. Without `currency` the payer chooses the coin."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"currency": "eth", "amount": "0.05", "description": "Two pairs of shoes"},
                {"fiatAmount": "49.90", "fiatCurrency": "EUR", "accept": [{"coin": "usdt"}, {"coin": "btc"}]},
            ]
        }
    )
    coin_field: ClassVar[str] = "currency"

    currency: Annotated[CoinSlug, Field(description="A coin slug. Absent: the payer chooses.", examples=["usdt"])] | None = None
    accept: Accept | None = None
    amount: Annotated[
        PositiveAmount | None, Field(description="In coin units, exact; a number or a string.", examples=["12.5"])
    ] = None
    fiat_amount: FiatAmount | None = None
    fiat_currency: FiatCurrency | None = None
    network: Annotated[NetworkSlug, Field(description="A network slug.", examples=["ethereum"])] | None = None
    external_id: ExternalId | None = None
    description: (
        Annotated[str, Field(max_length=1000, description="What is paid for; the payer sees it.", examples=["Two pairs of shoes"])]
        | None
    ) = None
    redirect_url: RedirectUrl | None = None
    cancel_url: CancelUrl | None = None
    metadata: Metadata | None = None
    webhook_url: Annotated[Any, _HOOK_URL] = None
    webhook_secret: Annotated[Any, _HOOK_SECRET] = None
    expires_in: ExpirySeconds | None = None

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        fiat, currency = sent.get("fiatAmount"), sent.get("fiatCurrency")
        problems = super().cross(sent, wrong, catalogue) + price_problems(sent, wrong)
        if fiat is not None and currency is not None and not wrong & {"fiatAmount", "fiatCurrency"}:
            problems += _decimals_problems(fiat, currency)
        if sent.get("webhookSecret") is not None and sent.get("webhookUrl") is None:
            problems.append(FieldProblem("webhookUrl", None, ("is required with webhookSecret",)))
        return problems + choosable(sent, wrong, catalogue)

    @classmethod
    def problems_of(cls, ctx: Ctx, sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
        if sent.get("webhookUrl") is None:
            return []
        return ctx.services.invoice_hooks.problems(sent["webhookUrl"], sent.get("webhookSecret"))


class InvoiceNetwork(Query):
    """Decisions §3: the network of an invoice's coin stands in the query or in the body."""

    for_body = True

    network: Annotated[
        NetworkSlug | None, Field(description="The same as `network` in the body, in its place.", examples=["tron"])
    ] = None


class InvoiceOverride(CamelRequest):
    """A status that is set by hand."""

    invoice_id: InvoiceId
    status: Annotated[
        str,
        Field(description="1 to 64 characters of a-z, 0-9, _ and -.", examples=["completed"]),
        matching(r"[a-z0-9_-]{1,64}", "must have 1 to 64 characters of a-z, 0-9, _ and -"),
    ]


class InvoiceById(Query):
    id: InvoiceId


class InvoiceByExternalId(Query, CamelRequest):
    external_id: ExternalId


@endpoint(
    "POST", "/invoices", family="flat", permission="invoices:create", body=InvoiceCreate, query=InvoiceNetwork, status=201,
    creates=True, answer="invoices.NewInvoice", summary="Ask to be paid",
)  # fmt: skip
def create_invoice(ctx: Ctx, body: InvoiceCreate) -> Answer:
    """`network` stands in the body or in the query; in both, it has to be the same. Without it: the coin on its first active
    network; the answer says which. `expiresIn` in seconds, by default what the settings say.

    Exactly one of `amount` (coin units) and `fiatAmount` with `fiatCurrency` (ISO 4217, every one that the rate providers tell,
    with the decimals that it has; another is VALIDATION_ERROR, which names those there are). A fiat price is turned into coin
    units at the rate of now, rounded up to at most 8 decimals, and the rate is kept (`rate`); without a rate of the last 15
    minutes it is VALIDATION_ERROR. The rate in USD is kept with every invoice that there is one for.

    The settings count here: `supportedCurrencies`, `minimumAmounts`, and `autoConfirmThreshold`, by the value in USD at that rate.
    Such a small invoice is `completed` by a payment in a block; `received` still shows what is credited, `unconfirmed` the rest.

    So do `tolerancePercent`, `toleranceMaxUSD`, `latePayments` and `latePaymentsPercent`, each unless the invoice has its own: what
    they mean is said at `PUT /v1/invoices/configureSettings`. They stay what they were.

    On an EVM network the address is watched on all EVM networks: what comes on another one, or in another known coin, is credited
    to the merchant, listed in `GET /v1/transactions` and in `misdirected`, and counts for no invoice.

    A fiat price without `currency`: the payer chooses one of `accept`, on the page or by `POST /v1/pay/{invoiceId}/choice`.
    `accept` absent: all active coins that the settings allow. Until then there is no address, and `currency`, `network`, `address`
    and `amount` are null; later they are those of the latest of `choices`. Payments in each coin count at the rate that was locked
    for it (`rateLockSeconds`), else at the one of their arrival, and add up exactly; `paidPercent` is the credited part.

    Less than the coin's `minDepositAmount` is `VALIDATION_ERROR`; one in USD counts by a fresh rate, and not at all without
    one. While the invoice is `pending`, `partial` or `confirming`, payments of any amount count.

    `webhookUrl` is told of the events of this invoice and of its refunds, signed and retried as all webhooks are, until it answers
    410. `webhookSecret` is in this answer and in none after it.
    """
    hook = None if body.webhook_url is None else ctx.services.invoice_hooks.new(ctx.tenant, body.webhook_url, body.webhook_secret)
    wishes = Wishes(
        external_id=body.external_id,
        description=body.description,
        redirect_url=body.redirect_url,
        cancel_url=body.cancel_url,
        metadata=body.metadata,
        hook=None if hook is None else hook.hook,
        terms={name: value for name, value in body.terms.items() if value is not None},
        expires_in=body.expires_in,
        gateway_url=ctx.gateway_url,
    )
    fiat = None if body.fiat_amount is None else FiatPrice(body.fiat_amount, body.fiat_currency or "")
    if body.currency is None and fiat is not None:
        accept = None if body.accept is None else [Offer(one.coin, one.network) for one in body.accept]
        return _made(ctx, ctx.services.choosable.creating(ctx.tenant, fiat, accept, wishes), hook)
    coin = chosen_coin(ctx.catalogue, "currency", body.currency or "", body.network)
    price: int | FiatPrice = parse_units(body.amount or "", coin.decimals) if fiat is None else fiat
    return _made(ctx, ctx.services.invoices.creating(ctx.tenant, coin, price, wishes), hook)


def _made(ctx: Ctx, creation: Creation[NewInvoice], hook: NewHook | None) -> Answer:
    secret = {} if hook is None else {"webhookSecret": hook.secret}
    return ctx.create(creation, lambda made: {**made.shown, **secret}, secret=hook is not None)


def shown_invoices(ctx: Ctx, invoices: Sequence[Invoice]) -> list[dict[str, Any]]:
    """Their public records, with confirmations as of now: one read where something is paid."""
    tips = ctx.services.invoices.tips(invoices)
    return [ctx.views.invoice(invoice, tips) for invoice in invoices]


def looked_at(ctx: Ctx, invoice: Invoice) -> dict[str, Any]:
    """One invoice, with new rates where its payer's lock has ended."""
    return shown_invoices(ctx, [ctx.services.choices.looked(invoice)])[0]


@endpoint(
    "GET", "/invoices", family="flat", permission="invoices:read", query=InvoiceById, answer="invoices.Invoice",
    summary="One invoice",
)  # fmt: skip
def get_invoice(ctx: Ctx, query: InvoiceById) -> Answer:
    """An id that never was, or another merchant's, is INVALID_PARAMETER."""
    try:
        found = ctx.services.invoices.get(ctx.tenant, query.id)
    except NotFound:
        raise InvalidParameter.one("id", query.id, "must be the id of an invoice") from None
    return Answer(looked_at(ctx, found))


@endpoint(
    "GET", "/invoices/getByExternalId", family="flat", permission="invoices:read", query=InvoiceByExternalId,
    answer="invoices.Invoice", summary="One invoice by the merchant's own id",
)  # fmt: skip
def get_by_external_id(ctx: Ctx, query: InvoiceByExternalId) -> Answer:
    """An id that never was, or another merchant's, is INVALID_PARAMETER."""
    try:
        found = ctx.services.invoices.by_external_id(ctx.tenant, query.external_id)
    except NotFound:
        raise InvalidParameter.one("externalId", query.external_id, "must be the externalId of an invoice") from None
    return Answer(looked_at(ctx, found))


@endpoint(
    "GET", "/invoices/getAll", family="flat", permission="invoices:read", query=INVOICES,
    answer="invoices.InvoiceList", summary="The merchant's invoices, newest first",
)  # fmt: skip
def list_invoices(ctx: Ctx, query: ListQuery) -> Answer:
    """`from` and `to` are inclusive days in UTC; `count` is how many invoices there are in all (see `pagination`)."""
    found, pagination = INVOICES.page(ctx, query)
    pagination |= covered(ctx)
    data = shown_invoices(ctx, found)
    count = len(data) if pagination["total"] is None else pagination["total"]
    return Answer({"count": count, "data": data, "meta": {"pagination": pagination}})


@endpoint(
    "PUT", "/invoices", family="flat", permission="invoices:write", body=InvoiceOverride, status=201,
    answer="invoices.InvoiceOverridden", summary="Set an invoice's status by hand",
)  # fmt: skip
def override_invoice(ctx: Ctx, body: InvoiceOverride) -> Answer:
    """Any status of a-z, 0-9, _ and -. Recorded with who and when; from then on nothing changes the status by itself, while
    payments are still credited and shown. An id that never was, or another merchant's, is INVALID_PARAMETER.
    """
    try:
        invoice = ctx.services.invoices.override(ctx.tenant, body.invoice_id, body.status, ctx.key.id)
    except NotFound:
        raise InvalidParameter.one("invoiceId", body.invoice_id, "must be the id of an invoice") from None
    return Answer({"message": "Invoice status updated", "invoiceId": invoice.id, "newStatus": invoice.status})
