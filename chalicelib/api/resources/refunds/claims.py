"""The page of a claim link. It needs no key: who has the link names an address, and is paid once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.models import Request
from chalicelib.api.pages import frame, in_language
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import BusinessRule, NotFound
from chalicelib.usecases.refunds.claims import Claim
from chalicelib.usecases.refunds.public_views import payee_view

_PRIVATE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_NO_ADDRESS = "an address is needed, of the network of the link"


class ClaimRequest(Request):
    """The address to be paid at, and the word that was shown with it."""

    address: Annotated[
        str | None,
        Field(
            max_length=200,
            description="An address of the network of the link.",
            examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
        ),
    ] = None
    confirm: Annotated[
        str | None,
        Field(max_length=64, description="What the answer to the same address alone has shown.", examples=["8d1f0c2b7a6e5d43"]),
    ] = None


@endpoint(
    "GET", "/claim/{token}/status", family="object", level="public", answer="refunds.Claim", errors=("NOT_FOUND",),
    summary="A claim link as its payee sees it",
)  # fmt: skip
def get_claim_status(ctx: Ctx) -> Answer:
    """Who has the link may see it: the amount, the network, the merchant's own words, and where it was paid to."""
    return Answer(payee_view(ctx.services.claims.find(ctx.param("token"))), headers=_PRIVATE)


@endpoint("GET", "/claim/{token}", family="object", level="public", media="text/html", summary="The page to be paid on")
def get_claim(ctx: Ctx) -> Answer:
    """Its links begin with the address that it was called by. An unknown link is a page as well."""
    try:
        return _page(ctx, ctx.services.claims.find(ctx.param("token")))
    except NotFound:
        return _unknown(ctx)


@endpoint(
    "POST", "/claim/{token}", family="object", level="public", body=ClaimRequest, form=True, answer="refunds.Claim",
    errors=("NOT_FOUND",), summary="Name an address, and be paid",
)  # fmt: skip
def claim(ctx: Ctx, body: ClaimRequest) -> Answer:
    """`address` alone changes nothing: it is checked and shown back, with `confirm`. The same address with that `confirm` is paid,
    once: whoever comes later is refused. A browser's form is answered with the page. A wrong address, a link that was used, was
    cancelled or has expired: VALIDATION_ERROR, with what to do."""
    if ctx.form:
        return _by_form(ctx, body)
    claims, token = ctx.services.claims, ctx.param("token")
    if not body.address:
        claims.find(token)  # an unknown link is told before anything that is missing
    address = _address(body)
    if body.confirm is None:
        checked = claims.check(token, address)
        return Answer(payee_view(checked.claim) | {"address": checked.address, "confirm": checked.confirm}, headers=_PRIVATE)
    return Answer(payee_view(claims.pay(token, address, body.confirm)), headers=_PRIVATE)


def _address(body: ClaimRequest) -> str:
    address = (body.address or "").strip()
    if not address:
        raise BusinessRule("address", _NO_ADDRESS)
    return address


def _by_form(ctx: Ctx, body: ClaimRequest) -> Answer:
    claims = ctx.services.claims
    try:
        token = ctx.param("token")
        found = claims.find(token)
        try:
            address = _address(body)
            if body.confirm is None:
                checked = claims.check(token, address)
                return _page(ctx, found, asked=checked.address, confirm=checked.confirm)
            return _page(ctx, claims.pay(token, address, body.confirm))
        except BusinessRule as refused:
            # As it is now: somebody else may have used it a moment ago.
            now = claims.find(token)
            if body.confirm is not None and payee_view(now).get("address") == (body.address or "").strip():
                return _page(ctx, now)  # the form that was accepted, sent once more by a reload: its payee reads how it stands
            return _page(ctx, now, asked=body.address, refused=refused, status=400)
    except NotFound:
        return _unknown(ctx)


def _words(refused: BusinessRule) -> str:
    """What was refused, as a sentence."""
    details: Mapping[str, Any] = refused.details if isinstance(refused.details, dict) else {}
    bare = details.get("field") == "address" and refused.message.startswith("is ")
    text = f"the address {refused.message}" if bare else refused.message
    return f"{text[:1].upper()}{text[1:]}."


def _page(
    ctx: Ctx,
    found: Claim,
    *,
    asked: str | None = None,
    confirm: str | None = None,
    refused: BusinessRule | None = None,
    status: int | None = None,
) -> Answer:
    from chalicelib.web import claim as page

    shown = payee_view(found) | {"shop": ctx.services.shops.shown(found.refund.tenant)}
    of = frame(ctx, "claim", shown, testnet=found.realm == "test")
    said = None
    if refused is not None:
        said = in_language(of, _words(refused), _reason(refused), network=found.network.name)
    text = page.page(of, ctx.param("token"), shown, found.network.name, page.Typed(asked, confirm, said))
    return Answer(None, status=status, text=text, headers={**page.headers(shown), **_PRIVATE})


def _reason(refused: BusinessRule) -> str:
    """The message for a refusal where the rule's own words are not the reader's."""
    details: Mapping[str, Any] = refused.details if isinstance(refused.details, dict) else {}
    return {"address": "claim.refused.address", "confirm": "claim.refused.confirm"}.get(
        details.get("field", ""), "claim.refused.now"
    )


def _unknown(ctx: Ctx) -> Answer:
    from chalicelib.web import claim as page

    return Answer(None, status=404, text=page.unknown(frame(ctx, "claim")), headers={**page.headers({}), **_PRIVATE})
