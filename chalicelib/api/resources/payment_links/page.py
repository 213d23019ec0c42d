"""The page of a payment link. It needs no key: who has the link gets an invoice to pay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from chalicelib.api.auth import refusal_headers
from chalicelib.api.context import Answer, Ctx
from chalicelib.api.errors import STATUS, RateLimitExceeded
from chalicelib.api.fields import amount_schema, positive_amount
from chalicelib.api.models import Request
from chalicelib.api.numbers import JsonNumber
from chalicelib.api.pages import frame, in_language, page_root
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import InvalidParameter, NotFound, ServiceError
from chalicelib.domain.ids import tenant_parts
from chalicelib.usecases.payment_links.opening import Caller, TooManyOpened
from chalicelib.usecases.payment_links.views import page_view

if TYPE_CHECKING:
    from chalicelib.web.parts import Frame

_MOST_TYPED = 100
SEE_OTHER = 303
"""The one redirect that this interface has: from the form to the invoice's own page."""


def _typed(value: Any) -> str:
    """The text of an amount, whatever was typed in the form: it is read when the link is known. A number is none of a form's."""
    if isinstance(value, bool) or not isinstance(value, (str, int, JsonNumber)):
        raise PydanticCustomError("constraint", "{text}", {"text": "must be a decimal, as a string or a number"})
    text = value.text if isinstance(value, JsonNumber) else str(value)
    if len(text) > _MOST_TYPED:
        raise PydanticCustomError("constraint", "{text}", {"text": f"must have at most {_MOST_TYPED} characters"})
    return positive_amount(value) if isinstance(value, JsonNumber) else text


class LinkOpen(Request):
    """The amount, where the payer names it."""

    amount: (
        Annotated[
            str,
            BeforeValidator(_typed),
            amount_schema(positive=True),
            Field(description="Where the link has a range, and only there.", examples=["20"]),
        ]
        | None
    ) = None


@endpoint(
    "POST", "/link/{id}", family="object", level="public", body=LinkOpen, form=True, redirects=True, status=201,
    answer="payment_links.OpenedLink", summary="Open a payment link: an invoice to pay",
)  # fmt: skip
def open_link(ctx: Ctx, body: LinkOpen) -> Answer:
    """A browser's form is answered with 303 and the invoice's page, or with this page and the reason. Sold out, expired, an amount
    that is out of range, missing, or not asked for: VALIDATION_ERROR. At most 100 invoices in an hour for each caller on each
    link."""
    if ctx.form:
        return _by_form(ctx, body)
    try:
        return Answer(_open(ctx, body))
    except TooManyOpened as error:
        raise RateLimitExceeded(error.usage, " that open an invoice of this link") from None


@endpoint("GET", "/link/{id}", family="object", level="public", media="text/html", summary="The page of a payment link")
def get_link(ctx: Ctx) -> Answer:
    """It changes nothing: its form opens the invoice. Its links begin with the address that it was called by. An unknown link is a
    page as well, with 404; one that is sold out or expired says so."""
    return _page(ctx, 200)


def _open(ctx: Ctx, body: LinkOpen) -> dict[str, str]:
    made = ctx.services.link_opening.open(ctx.param("id"), body.amount, Caller(ctx.source_ip, ctx.now_ms, ctx.gateway_url))
    return {"invoiceId": made.id, "checkoutUrl": made.checkout_url or f"{page_root(ctx, 'link')}/pay/{made.id}"}


def _by_form(ctx: Ctx, body: LinkOpen) -> Answer:
    try:
        opened = _open(ctx, body)
    except TooManyOpened as error:
        page = _page(ctx, 429, body.amount, error)
        return Answer(None, status=429, text=page.text, headers={**page.headers, **refusal_headers(error.usage, ctx.now_ms)})
    except NotFound:
        return _page(ctx, 404)
    except ServiceError as error:
        if STATUS.get(error.code) != 400:
            raise
        return _page(ctx, 400, body.amount, error)
    headers = {"Location": opened["checkoutUrl"], "Content-Type": _type(), "Cache-Control": "no-store"}
    return Answer(None, status=SEE_OTHER, text="", headers=headers)


def _page(ctx: Ctx, status: int, typed: str | None = None, refused: ServiceError | None = None) -> Answer:
    from chalicelib.web import link as page
    from chalicelib.web.framing import framed

    public_url, unkept = ctx.services.settings.public_url, {"Cache-Control": "no-store"}
    try:
        link_id = ctx.param("id")
        stocked, over = ctx.services.link_opening.look(link_id)
    except NotFound:
        headers = {**page.headers({}, public_url), **unkept}
        return Answer(None, status=404, text=page.unknown(frame(ctx, "link")), headers=headers)
    realm = tenant_parts(stocked.link.tenant)[1]
    shops, tenant = ctx.services.shops, stocked.link.tenant
    shown = page_view(stocked, over, ctx.services.catalogue(realm)) | {"shop": shops.shown(tenant)}
    of = frame(ctx, "link", shown, testnet=realm == "test")
    said = None if refused is None else _said(of, shown, refused)
    text = page.page(of, link_id, shown, page.Typed(typed, said))
    headers = framed(page.headers(shown, public_url), shops.looks(tenant).frame_ancestors)
    return Answer(None, status=status, text=text, headers={**headers, **unkept})


def _said(of: Frame, shown: dict[str, Any], refused: ServiceError) -> str:
    """Why the link was not opened, in the reader's language."""
    from chalicelib.web import link as page

    if isinstance(refused, TooManyOpened):
        return of.words.say("link.tooMany")
    if shown["status"] == "active" and not isinstance(page.asked(shown), str):
        return in_language(of, _words(refused), "link.wrongAmount", **page.bounds(of, shown))
    return in_language(of, _words(refused), "link.refused")


def _words(error: ServiceError) -> str:
    """What was refused, for a person."""
    if isinstance(error, InvalidParameter):
        return "; ".join(f"This amount {', '.join(problem.constraints)}" for problem in error.problems) + "."
    details = error.details if isinstance(error.details, dict) else {}
    subject = "The amount" if details.get("field") == "amount" else "This"
    return f"{subject} {error.message}."


def _type() -> str:
    from chalicelib.web.parts import PAGE_TYPE

    return PAGE_TYPE
