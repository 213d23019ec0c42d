"""Payment links: a public page that opens an invoice for each visitor."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.api.accepted_coins import Accept, choosable
from chalicelib.api.coins_by_name import amount_problem, chosen_coin
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.fields import NOT_NULL, CoinSlug, NetworkSlug, amount_schema, positive_amount
from chalicelib.api.invoice_fields import FiatCurrency, Metadata, RedirectUrl, price_problems
from chalicelib.api.lists import Listing, ListQuery, text, time
from chalicelib.api.models import CamelRequest
from chalicelib.api.problems import shown
from chalicelib.api.routes import endpoint
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.catalogue.fiats import fiat_problem
from chalicelib.domain.errors import FieldProblem, InvalidParameter, NotFound
from chalicelib.domain.ids import asset_parts, first_id, network_parts
from chalicelib.domain.money import NotAnAmount, parse_units
from chalicelib.domain.payment_links.links import PREFIX, Offered, PaymentLink, Price
from chalicelib.domain.payment_links.stock import MOST_PIECES
from chalicelib.usecases.payment_links.links import LinkTerms
from chalicelib.usecases.payment_links.stock import Stocked, stocked
from chalicelib.usecases.payment_links.views import link_view

_RANGE = ("min", "max")
_PRICE = ("currency", "network", "accept", "amount", "fiat_amount", "fiat_currency")
MOST_NAME, MOST_DESCRIPTION = 200, 1000


def _problem(words: str) -> PydanticCustomError:
    return PydanticCustomError("constraint", "{text}", {"text": words})


def _asked(value: Any) -> tuple[str, str | None]:
    """A fixed amount; or the least and the most that a payer may name."""
    if not isinstance(value, dict):
        return positive_amount(value), None
    if value.keys() != set(_RANGE):
        raise _problem("must be an amount, or an object with min and max and nothing else")
    found = []
    for name in _RANGE:
        try:
            found.append(positive_amount(value[name]))
        except PydanticCustomError as wrong:
            raise _problem(f"{name} {wrong.message()}") from None
    decimals = max(len(text.partition(".")[2]) for text in found)
    try:
        least, most = (parse_units(text, decimals) for text in found)
    except NotAnAmount as reason:
        raise _problem(str(reason)) from None
    if least > most:
        raise _problem("min must not be more than max")
    return found[0], found[1]


def _asked_schema(example: Any) -> WithJsonSchema:
    one = cast(dict[str, Any], amount_schema(positive=True).json_schema)
    bound = {"anyOf": one["anyOf"]}
    ranged = {"type": "object", "properties": dict.fromkeys(_RANGE, bound), "required": list(_RANGE), "additionalProperties": False}
    words = "Exact, as a string or a number; or `{min, max}`: then the payer names an amount."
    return WithJsonSchema({"anyOf": [*one["anyOf"], ranged], "description": words, "examples": [example]})


def _moment(value: Any) -> int:
    if not isinstance(value, str) or len(value) > 40:
        raise _problem("must be a time in ISO 8601, such as 2026-05-01T12:00:00Z")
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise _problem("must be a time in ISO 8601, such as 2026-05-01T12:00:00Z") from None
    if found.tzinfo is None or not 2000 <= found.year <= 9000:
        raise _problem("must have a time zone, such as Z for UTC, and a year from 2000 on")
    return int(found.timestamp() * 1000)


Asked = Annotated[tuple[str, str | None], BeforeValidator(_asked), _asked_schema("49.9")]
Moment = Annotated[
    int,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "description": "ISO 8601 with a time zone: from then on nobody opens it any more.",
            "examples": ["2027-01-01T00:00:00Z"],
        }
    ),
]
Name = Annotated[
    str,
    Field(min_length=1, max_length=MOST_NAME, description="What is sold; the payer sees it.", examples=["Two pairs of shoes"]),
]
Description = Annotated[
    str,
    Field(max_length=MOST_DESCRIPTION, description="More about it; the payer sees it.", examples=["Size 42, in black"]),
]
Stock = Annotated[
    int,
    Field(
        ge=0,
        le=MOST_PIECES,
        description="Pieces that are left. Opening takes one; an invoice that expires or is cancelled gives its piece back.",
        examples=[25],
    ),
]


class _Terms(CamelRequest):
    """What a link offers."""

    currency: Annotated[CoinSlug | None, Field(description="A coin slug.", examples=["usdt"])] = None
    network: Annotated[NetworkSlug | None, Field(description="Of `currency`; absent: its first active one.", examples=["tron"])] = (
        None
    )
    accept: Accept | None = None
    amount: Annotated[Asked | None, Field(description="In units of `currency`.")] = None
    fiat_amount: Annotated[Asked | None, Field(description="In `fiatCurrency`; priced when it is opened.")] = None
    fiat_currency: FiatCurrency | None = None
    description: Description | None = None
    stock: Stock | None = None
    expires_at: Moment | None = None
    redirect_url: RedirectUrl | None = None
    metadata: Metadata | None = None


class PaymentLinkCreate(_Terms):
    """A link with a price: `amount`, or `fiatAmount` with `fiatCurrency`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Two pairs of shoes", "currency": "eth", "amount": "0.05", "stock": 25}]}
    )

    name: Name

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        return _price_problems(sent, wrong, catalogue)


class PaymentLinkChange(_Terms):
    """What is not sent stays; null takes away what a link may be without."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"stock": 40}]})
    selecting = frozenset()

    name: Annotated[Name | None, NOT_NULL] = None

    @classmethod
    def cross(cls, sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
        fixed = ("name", "amount", "fiatAmount", "fiatCurrency")
        return [FieldProblem(name, None, ("must not be null",)) for name in fixed if name in sent and sent[name] is None]


def _price_problems(sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
    """The problems of a price as it is sent: which fields are there, whether the coin is, and its decimals."""
    amount, fiat, currency = (sent.get(name) for name in ("amount", "fiatAmount", "fiatCurrency"))
    problems = choosable(sent, wrong, catalogue) + price_problems(sent, wrong)
    if fiat is not None and currency is not None and not wrong & {"fiatAmount", "fiatCurrency"}:
        found = (fiat_problem(amount, currency.upper()) for amount in _asked(fiat) if amount is not None)
        problems += [FieldProblem("fiatAmount", shown("fiatAmount", fiat), (words,)) for words in found if words is not None][:1]
    if wrong & {"currency", "network"} or sent.get("currency") is None:
        return problems
    try:
        coin = chosen_coin(catalogue, "currency", sent["currency"], sent.get("network"))
    except InvalidParameter as error:
        return [*problems, *error.problems]
    if amount is None or "amount" in wrong:
        return problems
    found = (amount_problem(coin, one) for one in _asked(amount) if one is not None)
    return problems + [FieldProblem("amount", shown("amount", amount), (words,)) for words in found if words is not None][:1]


def _price(catalogue: Catalogue, body: _Terms | Mapping[str, Any]) -> Price:
    fields = body if isinstance(body, Mapping) else {name: getattr(body, name) for name in _PRICE}
    amount, most = fields["amount"] or fields["fiat_amount"]
    if fields["currency"] is not None:
        coin = chosen_coin(catalogue, "currency", fields["currency"], fields["network"])
        return Price(amount, most, coin.asset, fields["fiat_currency"])
    accept = None if fields["accept"] is None else tuple(Offered(each.coin, each.network) for each in fields["accept"])
    return Price(amount, most, None, fields["fiat_currency"], accept)


def _changed_price(ctx: Ctx, link: PaymentLink, body: PaymentLinkChange) -> Price | None:
    """The price with what is sent of it; None where nothing is. Raises InvalidParameter where the two do not fit each other."""
    named = body.model_fields_set & set(_PRICE)
    if not named:
        return None
    price = link.price
    network, slug = asset_parts(price.asset) if price.asset is not None else (None, None)
    known = (price.amount, price.most)
    merged: dict[str, Any] = {
        "currency": None if body.accept is not None else slug,
        "accept": None if body.currency is not None else price.accept,
        # Another coin is not looked for on the network of the one before.
        "network": None if network is None or named & {"currency", "accept"} else network_parts(network)[1],
        "amount": known if price.fiat is None else None,
        "fiat_amount": known if price.fiat is not None else None,
        "fiat_currency": price.fiat,
    }
    if "amount" in named:
        merged |= {"fiat_amount": None, "fiat_currency": None}
    elif named & {"fiat_amount", "fiat_currency"}:
        merged["amount"] = None
    merged |= {name: getattr(body, name) for name in named}
    problems = _price_problems(_as_sent(merged), frozenset(), ctx.catalogue)
    if problems:
        raise InvalidParameter(problems)
    return _price(ctx.catalogue, merged)


def _as_sent(merged: Mapping[str, Any]) -> dict[str, Any]:
    names = {"fiat_amount": "fiatAmount", "fiat_currency": "fiatCurrency"}
    found = {names.get(name, name): value for name, value in merged.items()}
    for name in ("amount", "fiatAmount"):
        if found[name] is not None:
            least, most = found[name]
            found[name] = least if most is None else {"min": least, "max": most}
    if found["accept"] is not None:
        found["accept"] = [{"coin": each.coin, "network": each.network} for each in found["accept"]]
    return found


def _named(ctx: Ctx, sent: Any) -> list[PaymentLink]:
    try:
        return [ctx.services.payment_links.get(ctx.tenant, sent)]
    except NotFound:
        return []


PAYMENT_LINKS = Listing(
    "payment-links",
    (
        time("createdAt", lambda r, _: r.created_at, "When it was made.").known_as("created_at").indexed("time"),
        text("id", lambda r, _: r.id, "The link's id.", sortable=False),
        text("name", lambda r, _: r.name, "Its name."),
        time("expiresAt", lambda r, _: r.expires_at, "Until when it can be opened.").known_as("expires_at"),
    ),
    family="plink",
    indexes=frozenset({"time"}),
    position=lambda ms: first_id(PREFIX, ms),
    visible=lambda r: r.deleted_at is None,
    keyed={"id": _named},
)


def _shown(ctx: Ctx, stocked: Stocked) -> dict[str, Any]:
    base = ctx.services.settings.public_url or ctx.gateway_url or ""
    return link_view(stocked, ctx.services.realm_clock.now_ms(), base)


@endpoint(
    "POST", "/payment-links", family="object", permission="invoices:create", body=PaymentLinkCreate, status=201, creates=True,
    answer="payment_links.PaymentLink", summary="Make a payment link",
)  # fmt: skip
def create_payment_link(ctx: Ctx, body: PaymentLinkCreate) -> Answer:
    """Who opens `url` and wants to pay gets an invoice of its own: over `amount` of `currency`, or over `fiatAmount` priced at that
    moment. A price in fiat may leave `currency` out: then the payer chooses the coin, of those in `accept` where that is there, and
    the invoice has no address before. Either amount can be `{min, max}`: then the payer names an amount. `redirectUrl`, `metadata`
    and `description` (without one, `name`) go to the invoices, which name the link in `paymentLinkId`.

    With `stock` an invoice takes a piece, and gives it back when it expires or is cancelled; without a piece nothing is opened, and
    an expired invoice is not completed by a late payment."""
    terms = LinkTerms(
        name=body.name,
        price=_price(ctx.catalogue, body),
        description=body.description,
        stock=body.stock,
        expires_at=body.expires_at,
        redirect_url=body.redirect_url,
        metadata=body.metadata,
    )
    return ctx.create(ctx.services.payment_links.creating(ctx.tenant, terms), lambda made: _shown(ctx, made))


@endpoint(
    "GET", "/payment-links", family="object", permission="invoices:read", query=PAYMENT_LINKS, envelope=True,
    answer="list[payment_links.PaymentLink]", summary="The merchant's payment links, newest first",
)  # fmt: skip
def list_payment_links(ctx: Ctx, query: ListQuery) -> Answer:
    """Deleted ones are left out."""
    found, pagination = PAYMENT_LINKS.page(ctx, query)
    return Answer([_shown(ctx, each) for each in stocked(ctx.services.store, found)], pagination)


@endpoint(
    "GET", "/payment-links/{id}", family="object", permission="invoices:read", answer="payment_links.PaymentLink",
    summary="One payment link",
)  # fmt: skip
def get_payment_link(ctx: Ctx) -> Answer:
    """With the pieces that are left of its stock."""
    links = ctx.services.payment_links
    return Answer(_shown(ctx, stocked(ctx.services.store, [links.get(ctx.tenant, ctx.param("id"))])[0]))


@endpoint(
    "PUT", "/payment-links/{id}", family="object", permission="invoices:write", body=PaymentLinkChange,
    answer="payment_links.PaymentLink", summary="Change a payment link",
)  # fmt: skip
def change_payment_link(ctx: Ctx, body: PaymentLinkChange) -> Answer:
    """Invoices that are open stay as they are. `stock` is what is left from now on, beside the pieces that open invoices hold; null
    takes the limit away. `amount` takes the place of a price in fiat, and the other way round; another `currency` without `network`
    is looked for on its first active one. `accept`, or null for `currency`, lets the payer choose."""
    links, link_id = ctx.services.payment_links, ctx.param("id")
    changes = {name: getattr(body, name) for name in body.model_fields_set if name not in _PRICE}
    price = _changed_price(ctx, links.get(ctx.tenant, link_id), body)
    return Answer(_shown(ctx, links.change(ctx.tenant, link_id, changes | ({} if price is None else {"price": price}))))


@endpoint(
    "DELETE", "/payment-links/{id}", family="object", permission="invoices:write", answer="payment_links.PaymentLink",
    summary="Delete a payment link",
)  # fmt: skip
def delete_payment_link(ctx: Ctx) -> Answer:
    """Answers the link as it was; from now on it is 404, its page too. Its invoices stay, and can be paid."""
    return Answer(_shown(ctx, ctx.services.payment_links.delete(ctx.tenant, ctx.param("id"))))
