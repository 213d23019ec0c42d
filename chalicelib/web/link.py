"""The page of a payment link: what is sold, its price, and a form that opens an invoice. It needs no script.

Looking at it changes nothing, so that whoever fetches links beforehand (mail programs, search engines) opens no invoices. What the
merchant wrote and what a visitor typed is text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlsplit

from chalicelib.web import parts

_STATES = {
    "sold_out": ("Sold out", "Nothing is left of this. Ask the shop, or come back later."),
    "expired": ("This offer has ended", "It can not be paid any more. Ask the shop."),
}
"""What the page says of a link that can not be opened: the title, and what it means for the visitor."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The amount that was typed, and the reason why it was `refused`."""

    amount: str | None = None
    refused: str | None = None


def headers(public_url: str | None) -> dict[str, str]:
    """The page's headers. A browser follows a form's redirect only to where the form may go: the invoice's page begins with
    `public_url`, which may be another host than the one that the page was called by."""
    base = urlsplit(public_url or "")
    goes = f"'self' {base.scheme}://{base.netloc}" if base.scheme and base.netloc else "'self'"
    policy = (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; "
        # In nobody's frame but those of the sites that the merchant lists (`web.framing`).
        f"base-uri 'self'; form-action {goes}; frame-ancestors 'none'"
    )
    return {**parts.HEADERS, "Content-Security-Policy": policy}


def page(root: str, link_id: str, shown: Mapping[str, Any], testnet: bool, typed: Typed) -> str:
    """The page of a link below `root`. `shown` is its record for visitors."""
    active = shown["status"] == "active"
    state = "" if active else parts.state("bad", *_STATES[shown["status"]])
    body = f"""<main class="card one" id="link">
<section class="info">
<p class="label">Pay{parts.badge(testnet)}</p>
<h1 dir="auto">{escape(shown["name"])}</h1>
<p class="amount">{_priced(shown)}</p>
{parts.described(shown)}{parts.refusal(typed.refused)}{state}
</section>
{_form(link_id, shown, typed) if active else ""}
</main>"""
    return parts.whole(root, shown["name"], body)


def unknown(root: str) -> str:
    """The page of a link that there is not."""
    return parts.unknown(root, "No such link", parts.NOTHING_TO_PAY)


def _unit(shown: Mapping[str, Any]) -> str:
    return escape(shown["fiatCurrency"] if "fiatAmount" in shown else shown["currency"].upper())


def _asked(shown: Mapping[str, Any]) -> Any:
    return shown["fiatAmount"] if "fiatAmount" in shown else shown["amount"]


def _priced(shown: Mapping[str, Any]) -> str:
    asked = _asked(shown)
    text = asked if isinstance(asked, str) else f"{asked['min']} to {asked['max']}"
    return f"{escape(text)} <span>{_unit(shown)}</span>"


def _form(link_id: str, shown: Mapping[str, Any], typed: Typed) -> str:
    """The button that opens an invoice, and the question for the amount where the payer names it."""
    asked = _asked(shown)
    question = ""
    if not isinstance(asked, str):
        value = "" if typed.amount is None else escape(typed.amount)
        question = f"""<label class="label" for="amount">Amount in {_unit(shown)}</label>
<input class="typed" id="amount" name="amount" value="{value}" maxlength="60" inputmode="decimal" required autocomplete="off">
<p class="only">From {escape(asked["min"])} to {escape(asked["max"])} {_unit(shown)}.</p>
"""
    place = (
        ""
        if "network" not in shown
        else f'<p class="only">Paid in {escape(shown["currency"].upper())} on {escape(shown["network"])}.</p>\n'
    )
    return f"""<section class="pay"><form method="post" action="{escape(f"link/{link_id}")}">
{question}{place}<button class="button" type="submit">Pay</button>
</form></section>"""
