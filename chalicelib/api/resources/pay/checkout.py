"""The payment page of an invoice. It needs no key, shows a payer's view, and changes nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from chalicelib.api.auth import refusal_headers
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.errors import STATUS, RateLimitExceeded
from chalicelib.api.models import Query, Request
from chalicelib.api.pages import frame, in_language
from chalicelib.api.rendering import to_json
from chalicelib.api.routes import endpoint
from chalicelib.api.waiting_payers import payer_waits
from chalicelib.domain.errors import BusinessRule, InvalidParameter, NotFound, ServiceError
from chalicelib.domain.ids import made_at
from chalicelib.domain.invoices.choices import MOST_CHOICES
from chalicelib.usecases.invoices.checkout import Checkout
from chalicelib.usecases.invoices.choosing import INVOICE_ID, TooManyChoices
from chalicelib.usecases.invoices.wallet_facts import wallet_facts
from chalicelib.usecases.merchants.access import Usage, Window

_SECONDS = 2
"""How long an answer may be kept on its way: the limit without a key is for all payers behind one address."""
_FRESH_MS = 60_000
_CHANGING = {"Cache-Control": "no-cache"}
_PASSING = ("expiresIn", "lockedIn", "accept")
"""Fields that change with every look, or without any news for a payer: the page does not load itself anew for them."""


@endpoint(
    "GET", "/pay/{invoiceId}/status", family="object", level="public", answer="checkout.Checkout",
    summary="An invoice as its payer sees it",
)  # fmt: skip
def get_checkout_status(ctx: Ctx) -> Answer:
    """What the page at `checkoutUrl` (`/pay/{invoiceId}`) asks while it is open. Who knows the id of an invoice may see it: the
    amount, what was paid, where to, and the merchant's own words; not externalId, merchant or rates.

    `paymentUri` asks for what is `missing`, and is absent once the invoice is paid, its time is over or it is cancelled. An answer
    may be two seconds old. An invoice made a moment ago may not be found yet.
    """
    checkouts = ctx.services.checkouts
    found = checkouts.find(ctx.param("invoiceId"))
    payer_waits(ctx.services, found.invoice)
    shown = checkouts.public(found)
    return Answer(shown, headers={"Cache-Control": f"public, max-age={_SECONDS}"})


class PageQuery(Query):
    """What was searched for among the coins. Other names are of no account: shops and mail programs add some to links."""

    model_config = ConfigDict(extra="ignore")

    search: Annotated[
        str | None, Field(max_length=100, description="Words of a coin's or a network's name.", examples=["tron"])
    ] = None


@endpoint(
    "GET", "/pay/{invoiceId}", family="object", level="public", query=PageQuery, media="text/html",
    summary="The page to pay an invoice on",
)  # fmt: skip
def get_checkout(ctx: Ctx, query: PageQuery) -> Answer:
    """Its links begin with the address that it was called by, its words are those of the browser's language. An unknown id is a
    page as well."""
    try:
        found = ctx.services.checkouts.find(ctx.param("invoiceId"))
        payer_waits(ctx.services, found.invoice)
        return _page(ctx, found, search=query.search or "")
    except NotFound:
        return _unknown(ctx)


class ChoiceRequest(Request):
    """The coin that the payer chooses. Names are understood in any case."""

    coin: Annotated[str, Field(min_length=1, max_length=64, description="A coin slug of `accept`.", examples=["usdt"])]
    network: Annotated[
        str | None, Field(max_length=64, description="Its network's slug; absent: the first one of `accept`.", examples=["tron"])
    ] = None


@endpoint(
    "POST", "/pay/{invoiceId}/choice", family="object", level="public", body=ChoiceRequest, form=True, answer="checkout.Choice",
    errors=("NOT_FOUND", "VALIDATION_ERROR"), summary="Choose the coin to pay in",
)  # fmt: skip
def choose_coin(ctx: Ctx, body: ChoiceRequest) -> Answer:
    """For an invoice whose payer chooses. Makes an address, which all choices of EVM networks share, and locks a rate until
    `lockedUntil`. The same coin again answers the same; earlier choices stay payable. At most 20 different coins can be chosen
    (`RATE_LIMIT_EXCEEDED`). A coin that is not accepted, one without a fresh rate, an invoice that names its coin or is no longer
    open: `VALIDATION_ERROR`. A browser's form is answered with the page.
    """
    checkouts, coin = ctx.services.checkouts, body.coin.strip().lower()
    network = None if body.network is None else body.network.strip().lower()
    try:
        chosen = ctx.services.choices.choose(ctx.param("invoiceId"), coin, network)
    except NotFound:
        if ctx.form:
            return _unknown(ctx)
        raise
    except (BusinessRule, InvalidParameter) as refused:
        if ctx.form:
            return _page(ctx, checkouts.find(ctx.param("invoiceId")), refused)
        raise
    except TooManyChoices as refused:
        usage = Usage(Window("choices", refused.seconds_left, MOST_CHOICES), 0, ctx.now_ms // 1000 + refused.seconds_left)
        if ctx.form:
            page = _page(ctx, checkouts.find(ctx.param("invoiceId")), refused)
            return Answer(None, status=429, text=page.text, headers={**page.headers, **refusal_headers(usage, ctx.now_ms)})
        raise RateLimitExceeded(usage, " for different coins of one invoice") from None
    payer_waits(ctx.services, chosen.invoice)
    if ctx.form:
        return _page(ctx, checkouts.of(chosen.invoice))
    return Answer(checkouts.chosen(chosen.invoice, chosen.choice))


def _page(ctx: Ctx, found: Checkout, refused: ServiceError | None = None, search: str = "") -> Answer:
    from chalicelib.web import checkout as page
    from chalicelib.web.framing import framed

    shown = ctx.services.checkouts.public(found)
    state = to_json({name: value for name, value in shown.items() if name not in _PASSING})
    shops, tenant = ctx.services.shops, found.invoice.tenant
    settings = ctx.services.settings
    on_main = settings.stage != "local" and settings.chain(found.network.id) == "main"
    shown |= {"shop": shops.shown(tenant), "wallet": wallet_facts(found, on_main)}
    if found.invoice.payment_link is not None:
        shown |= {"again": f"link/{found.invoice.payment_link}"}
    of = frame(ctx, "pay", shown, testnet=found.network.realm == "test")
    names = ctx.services.checkouts.names(found)
    said = None if refused is None else in_language(of, _words(refused), _reason(refused))
    text = page.page(of, page.Visit(found.invoice.id, shown, state, names, search, said))
    status = 200 if refused is None else STATUS[refused.code]
    headers = framed(page.headers(shown), shops.looks(tenant).frame_ancestors)
    return Answer(None, status=status, text=text, headers={**headers, **_CHANGING})


def _unknown(ctx: Ctx) -> Answer:
    from chalicelib.web import checkout as page

    again = {"Refresh": str(_SECONDS)} if _just_made(ctx) else {}
    headers = {**page.headers({}), **_CHANGING, **again}
    return Answer(None, status=404, text=page.unknown(frame(ctx, "pay")), headers=headers)


def _reason(refused: ServiceError) -> str:
    """The message for a refusal where the rule's own words are not the reader's."""
    return "choice.tooMany" if isinstance(refused, TooManyChoices) else "choice.refused"


def _words(refused: ServiceError) -> str:
    """What was refused, as a sentence."""
    if isinstance(refused, InvalidParameter):
        text = "; ".join(f"{problem.field}: {', '.join(problem.constraints)}" for problem in refused.problems)
    else:
        text = refused.message
    return f"{text[:1].upper()}{text[1:]}."


def _just_made(ctx: Ctx) -> bool:
    """Whether the index may not know the invoice yet: a shop sends its customer here as soon as it has the id."""
    invoice_id = ctx.path["invoiceId"]
    return bool(INVOICE_ID.fullmatch(invoice_id)) and abs(ctx.now_ms - made_at(invoice_id)) < _FRESH_MS
