"""The payment page of an invoice. It needs no key, shows a payer's view, and changes nothing."""

from __future__ import annotations

import re

from chalicelib.api.context import Answer, Ctx
from chalicelib.api.rendering import to_json
from chalicelib.api.routes import endpoint
from chalicelib.domain.errors import NotFound
from chalicelib.domain.ids import made_at
from chalicelib.usecases.invoices.checkout import INVOICE_ID

_PLACE = re.compile(r"(?P<root>[A-Za-z0-9/_.-]*?(?:/v1)?)/pay/.*", re.ASCII | re.DOTALL)
_SECONDS = 2
"""How long an answer may be kept on its way: the limit without a key is for all payers behind one address."""
_FRESH_MS = 60_000


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
    shown = checkouts.public(checkouts.find(ctx.param("invoiceId")))
    return Answer(shown, headers={"Cache-Control": f"public, max-age={_SECONDS}"})


@endpoint("GET", "/pay/{invoiceId}", family="object", level="public", media="text/html", summary="The page to pay an invoice on")
def get_checkout(ctx: Ctx) -> Answer:
    """Its links begin with the address that it was called by. An unknown id is a page as well."""
    from chalicelib.web import checkout as page

    match = _PLACE.fullmatch(ctx.address)
    root = match["root"] if match else ""
    headers = {**page.HEADERS, "Content-Type": page.PAGE_TYPE, "Cache-Control": "no-cache"}
    try:
        invoice_id = ctx.param("invoiceId")
        found = ctx.services.checkouts.find(invoice_id)
    except NotFound:
        again = {"Refresh": str(_SECONDS)} if _just_made(ctx) else {}
        return Answer(None, status=404, text=page.unknown(root), headers={**headers, **again})
    shown = ctx.services.checkouts.public(found)
    state = to_json({name: value for name, value in shown.items() if name != "expiresIn"})
    text = page.page(root, invoice_id, shown, state, found.network.name, found.network.realm == "test")
    return Answer(None, text=text, headers=headers)


def _just_made(ctx: Ctx) -> bool:
    """Whether the index may not know the invoice yet: a shop sends its customer here as soon as it has the id."""
    invoice_id = ctx.path["invoiceId"]
    return bool(INVOICE_ID.fullmatch(invoice_id)) and abs(ctx.now_ms - made_at(invoice_id)) < _FRESH_MS
