"""The page of a claim link: a form that asks for an address, shows it back, and says how far its payment is.

It needs no script. What anybody wrote, the merchant or the payee, is text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from chalicelib.web import parts

HEADERS = {
    **parts.HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; "
        # In nobody's frame: a page around it could cover the address with another one. The form goes to this page alone.
        "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    ),
}
_STATES = {
    "awaiting_claim": ("calm", "This money is for you", "Enter your address on {network}. Nothing is paid before you confirm it."),
    "pending": ("busy", "It is on its way", "Your address is taken. The payment begins soon; this page follows by itself."),
    "processing": ("busy", "It is being paid", "The network is confirming the payment. You may close this page."),
    "completed": ("good", "Paid", "The payment is complete."),
    "failed": ("bad", "It could not be paid", "Ask who sent you this link for a new one."),
    "expired": ("bad", "This link has expired", "Ask who sent it to you for a new one."),
    "cancelled": ("bad", "This link was cancelled", "Ask who sent it to you."),
}
"""What the page says by the status: its tone, the title, and what it means for the payee."""
_CHECKED = ("warn", "Is this your address?", "Nothing is paid before you press the button below it.")


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed: an address, with `confirm` where it was found right, or with the reason why it was `refused`."""

    address: str | None = None
    confirm: str | None = None
    refused: str | None = None


def page(root: str, token: str, shown: Mapping[str, Any], network: str, testnet: bool, typed: Typed) -> str:
    """The page of a link below `root`. `shown` is its public record, `network` the network's name."""
    asks = shown["status"] == "awaiting_claim" and typed.confirm is not None
    tone, title, words = _CHECKED if asks else _STATES[shown["status"]]
    waiting = '<meta http-equiv="refresh" content="15">' if shown["status"] in ("pending", "processing") else ""
    body = f"""<main class="card one" id="claim">
<section class="info">
<p class="label">For you{parts.badge(testnet)}</p>
<p class="amount">{escape(shown["amount"])} <span>{escape(shown["symbol"])}</span></p>
{parts.described(shown)}{parts.state(tone, title, words.format_map({"network": network}))}
{parts.refusal(typed.refused)}<dl>{_facts(shown, network)}</dl>
</section>
{_form(token, shown, network, typed)}
</main>"""
    return parts.whole(root, f"{shown['amount']} {shown['symbol']}: {title}", body, waiting)


def unknown(root: str) -> str:
    """The page of a link that there is not."""
    return parts.unknown(root, "No such link", "Look at the link again, or ask who sent it to you for a new one.")


def _facts(shown: Mapping[str, Any], network: str) -> str:
    facts = [("Network", escape(network))]
    if "address" in shown:
        facts.append(("Address", f"<code>{escape(shown['address'])}</code>"))
    if "transactionHash" in shown:
        facts.append(("Transaction", f"<code>{escape(shown['transactionHash'])}</code>"))
    if shown["status"] == "awaiting_claim":
        facts.append(("Until", f'<time datetime="{escape(shown["expiresAt"])}">{escape(_minute(shown["expiresAt"]))} UTC</time>'))
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)


def _minute(moment: str) -> str:
    """``2026-05-01T12:00:00.000Z`` → ``2026-05-01 12:00``."""
    return moment[:16].replace("T", " ")


def _form(token: str, shown: Mapping[str, Any], network: str, typed: Typed) -> str:
    """The question for the address, or the address once more with the button that pays."""
    if shown["status"] != "awaiting_claim":
        return ""
    here, care = escape(f"claim/{token}"), "A payment can not be called back: compare the address to its last character."
    if typed.confirm is not None and typed.address is not None:
        return f"""<section class="pay"><form method="post" action="{here}">
<input type="hidden" name="address" value="{escape(typed.address)}">
<input type="hidden" name="confirm" value="{escape(typed.confirm)}">
<div class="field"><span class="label">Your {escape(network)} address</span><code id="address">{escape(typed.address)}</code></div>
<p class="only">{care}</p>
<button class="button" type="submit">Pay {escape(shown["amount"])} {escape(shown["symbol"])} to this address</button>
</form>
<a class="only" href="{here}">Another address</a></section>"""
    value = "" if typed.address is None else escape(typed.address)
    return f"""<section class="pay"><form method="post" action="{here}">
<label class="label" for="address">Your {escape(network)} address</label>
<input class="typed" id="address" name="address" value="{value}" maxlength="128" required autocomplete="off" spellcheck="false">
<p class="only">Only an address of {escape(network)}: on any other network the money is lost.</p>
<button class="button" type="submit">Check this address</button>
</form></section>"""
