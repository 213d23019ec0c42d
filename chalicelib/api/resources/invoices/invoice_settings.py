"""A merchant's settings for new invoices, and the totals of all its invoices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import PydanticCustomError

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import Amount, CoinSlug, amount_text, slug
from chalicelib.api.models import CamelRequest
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.problems import shown
from chalicelib.api.resources.invoices.invoice_terms import InvoiceTerms
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.invoices.settings import MAX_EXPIRY, InvoiceSettings
from chalicelib.domain.invoices.terms import Terms
from chalicelib.domain.money import plain
from chalicelib.usecases.invoices.summary import dollars, summary

ExpirySeconds = Annotated[int, Field(ge=1, le=MAX_EXPIRY, description="Seconds until it expires unpaid.", examples=[3600])]


class InvoiceSettingsFields(InvoiceTerms):
    """What is not sent stays as it is."""

    selecting = frozenset()

    default_expiration_time: ExpirySeconds | None = None
    auto_confirm_threshold: Annotated[
        Amount | None,
        Field(description="Up to this worth in US dollars a payment in a block completes the invoice; 0: off.", examples=[25]),
    ] = None
    supported_currencies: (
        Annotated[list[CoinSlug], Field(max_length=1000, description="Coin slugs; empty: all.", examples=[["btc", "usdt"]])] | None
    ) = None
    rate_lock_seconds: (
        Annotated[int, Field(ge=10, le=86400, description="Seconds for which a payer's choice has its rate.", examples=[900])]
        | None
    ) = None
    minimum_amounts: (
        Annotated[dict[str, Amount], Field(description="By coin, in coin units; 0: none.", examples=[{"btc": "0.0001"}])] | None
    ) = None


class InvoiceSettingsChange(CamelRequest):
    """The settings that change."""

    settings: Annotated[InvoiceSettingsFields, Field(description="Those that change.")]

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        """Whether each of the minimumAmounts is one of a coin that there is. Those that are no amounts are named already."""
        settings = sent.get("settings")
        least = settings.get("minimumAmounts") if isinstance(settings, dict) else None
        empty = InvoiceSettingsFields.changes_nothing(settings) if isinstance(settings, dict) else []
        problems = [replace(problem, field="settings") for problem in empty]
        named: set[str] = set()
        for name, value in least.items() if isinstance(least, dict) else ():
            field = f"settings.minimumAmounts.{name}"[:200]
            coin = slug(name)
            if coin in named:
                problems.append(FieldProblem(field, shown(name, value), (f"{coin} must be there only once",)))
                continue
            named.add(coin)
            try:
                text = amount_text(value)
            except PydanticCustomError:
                continue
            networks = catalogue.coin_networks(coin)
            finest = max((catalogue.coins[network, coin].decimals for network in networks), default=0)
            if not networks:
                problems.append(
                    FieldProblem(field, shown(name, value), (f"is no coin; coins are: {', '.join(catalogue.slugs())}",))
                )
            elif len(text.partition(".")[2]) > finest:
                problems.append(FieldProblem(field, shown(name, value), (f"must have at most {finest} decimals",)))
        return problems


@endpoint(
    "GET", "/invoices/summary", family="flat", permission="invoices:read", answer="invoices.InvoiceSummary",
    summary="What all invoices come to",
)  # fmt: skip
def invoice_summary(ctx: Ctx) -> Answer:
    """`totalAmount` and `totalReceived` are US dollars at each invoice's own stored rate, rounded to cents invoice by invoice; one
    that has no rate counts nothing in them. `currencies` are in coin units, a coin on several networks added up. `totalReceived`
    counts what is credited, late payments too; `pendingInvoices` what is neither completed, expired, cancelled nor set by hand.
    """
    found = summary(ctx.services.store, ctx.tenant)
    record = {
        "totalInvoices": found.all.invoices,
        "totalAmount": dollars(found.all.usd_amount),
        "totalReceived": dollars(found.all.usd_received),
        "completedInvoices": found.all.completed,
        "pendingInvoices": found.all.pending,
        "currencies": [
            {"currency": one.currency, "totalAmount": one.amount, "totalReceived": one.received} for one in found.currencies
        ],
    }
    return Answer(record)


def _settings(settings: InvoiceSettings) -> dict[str, Any]:
    # What was published stays as it was until the merchant sets more.
    more = {} if settings.rate_lock_seconds is None else {"rateLockSeconds": settings.rate_lock_seconds}
    return (
        {
            "defaultExpirationTime": settings.default_expiration_time,
            "autoConfirmThreshold": JsonNumber(settings.auto_confirm_threshold),
            "supportedCurrencies": list(settings.supported_currencies),
            "minimumAmounts": dict(settings.minimum_amounts),
        }
        | more
        | _terms(settings.terms)
    )


def _terms(terms: Terms | None) -> dict[str, Any]:
    """What is forgiven; nothing is shown before the merchant has ever said so."""
    if terms is None:
        return {}
    return {
        "tolerancePercent": JsonNumber(terms.tolerance_percent),
        "toleranceMaxUSD": None if terms.tolerance_max_usd is None else JsonNumber(terms.tolerance_max_usd),
        "latePayments": terms.late_payments,
        "latePaymentsPercent": JsonNumber(terms.late_payments_percent),
    }


@endpoint(
    "GET", "/invoices/configureSettings", family="flat", permission="invoices:read", answer="invoices.InvoiceSettingsAnswer",
    summary="What new invoices obey",
)  # fmt: skip
def get_invoice_settings(ctx: Ctx) -> Answer:
    """The defaults where nothing was set: no threshold, all currencies, no minimum, the deployment's time to pay (seconds), nothing
    forgiven. What is forgiven (`tolerancePercent` and its neighbours) is shown once any of it was set."""
    return Answer({"settings": _settings(ctx.services.invoice_settings.get(ctx.tenant))})


@endpoint(
    "PUT", "/invoices/configureSettings", family="flat", permission="invoices:write", body=InvoiceSettingsChange, status=201,
    answer="invoices.InvoiceSettingsChanged", summary="Set what new invoices obey",
)  # fmt: skip
def change_invoice_settings(ctx: Ctx, body: InvoiceSettingsChange) -> Answer:
    """A field that is given is replaced, whole; one that is not stays. `toleranceMaxUSD: null` takes that bound away. Counts for
    new invoices, within 30 seconds everywhere.

    The shortfall that is forgiven is the smaller of `tolerancePercent` of the price and `toleranceMaxUSD`, inclusive, at the rate
    that the invoice keeps; where there was none, `toleranceMaxUSD` forgives nothing. With `acceptWithinPercent` and a fiat price, a
    late payment is worth what a fresh rate says when it is first seen; without one the invoice stays expired.
    """
    sent = body.settings
    fields: dict[str, Any] = {}
    if sent.default_expiration_time is not None:
        fields["default_expiration_time"] = sent.default_expiration_time
    if sent.auto_confirm_threshold is not None:
        fields["auto_confirm_threshold"] = plain(sent.auto_confirm_threshold)
    if sent.supported_currencies is not None:
        fields["supported_currencies"] = tuple(dict.fromkeys(sent.supported_currencies))
    if sent.rate_lock_seconds is not None:
        fields["rate_lock_seconds"] = sent.rate_lock_seconds
    if sent.minimum_amounts is not None:
        least = {slug(name): plain(text) for name, text in sent.minimum_amounts.items()}
        fields["minimum_amounts"] = {coin: text for coin, text in least.items() if text != "0"}
    settings = ctx.services.invoice_settings.change(ctx.tenant, sent.terms, **fields)
    return Answer({"message": "Invoice settings saved", "settings": _settings(settings)})
