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
from chalicelib.web.parts import Frame


@dataclass(frozen=True, slots=True)
class Typed:
    """The amount that was typed, and the reason why it was `refused`."""

    amount: str | None = None
    refused: str | None = None


def headers(shown: Mapping[str, Any], public_url: str | None) -> dict[str, str]:
    """The page's headers. A browser follows a form's redirect only to where the form may go: the invoice's page begins with
    `public_url`, which may be another host than the one that the page was called by."""
    base = urlsplit(public_url or "")
    goes = f"'self' {base.scheme}://{base.netloc}" if base.scheme and base.netloc else "'self'"
    return {**parts.HEADERS, "Content-Security-Policy": parts.policy(parts.shop_of(shown), forms=goes)}


def page(frame: Frame, link_id: str, shown: Mapping[str, Any], typed: Typed) -> str:
    """The page of a link. `shown` is its record for visitors, with its shop as `shop`."""
    status = shown["status"]
    state = "" if status == "active" else parts.notice("bad", frame.say(f"link.{status}.title"), frame.say(f"link.{status}.text"))
    body = f"""<main class="card one" id="link">
{parts.header(frame)}<section class="info">
<p class="label">{frame.say("common.pay")}{parts.badge(frame)}</p>
<h1 dir="auto">{escape(shown["name"])}</h1>
<p class="amount">{_priced(frame, shown)}</p>
{parts.described(shown)}{parts.refusal(typed.refused)}{state}
</section>
{_form(frame, link_id, shown, typed) if status == "active" else ""}
</main>"""
    return parts.whole(frame, shown["name"], body)


def unknown(frame: Frame) -> str:
    """The page of a link that there is not."""
    return parts.unknown(frame, frame.words.say("common.noLink"), frame.words.say("common.nothing"))


def asked(shown: Mapping[str, Any]) -> Any:
    """The price: a text, or the least and the most where the payer names it."""
    return shown["fiatAmount"] if "fiatAmount" in shown else shown["amount"]


def unit(shown: Mapping[str, Any]) -> str:
    """What the price is in."""
    return str(shown["fiatCurrency"] if "fiatAmount" in shown else shown["currency"].upper())


def bounds(frame: Frame, shown: Mapping[str, Any]) -> dict[str, str]:
    """The least, the most and the unit of an amount that the payer names, in the reader's form."""
    price, number = asked(shown), frame.words.number
    return {"least": number(price["min"]), "most": number(price["max"]), "unit": unit(shown)}


def _priced(frame: Frame, shown: Mapping[str, Any]) -> str:
    price, written = asked(shown), f"<span>{escape(unit(shown))}</span>"
    if isinstance(price, str):
        return f"<bdi>{escape(frame.words.number(price))} {written}</bdi>"
    between = bounds(frame, shown)
    return f"{frame.say('link.range', least=between['least'], most=between['most'])} {written}"


def _form(frame: Frame, link_id: str, shown: Mapping[str, Any], typed: Typed) -> str:
    """The button that opens an invoice, and the question for the amount where the payer names it."""
    say, question = frame.say, ""
    if not isinstance(asked(shown), str):
        value = "" if typed.amount is None else escape(typed.amount)
        wrong = "" if typed.refused is None else ' aria-invalid="true"'
        question = f"""<label class="label" for="amount">{say("link.amount", unit=unit(shown))}</label>
<input class="typed" id="amount" name="amount" value="{value}" maxlength="60" inputmode="decimal" required autocomplete="off"
 dir="ltr" aria-describedby="bounds"{wrong}>
<p class="only" id="bounds">{say("link.bounds", **bounds(frame, shown))}</p>
"""
    if "network" in shown:
        place = say("link.paidIn", coin=shown["currency"].upper(), network=shown["network"])
    else:
        place = say("link.choose")
    return f"""<section class="pay"><form method="post" action="{escape(f"link/{link_id}")}">
{question}<p class="only">{place}</p>
<button class="button" type="submit">{say("link.pay")}</button>
</form></section>"""
